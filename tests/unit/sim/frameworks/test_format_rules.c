// Legality of fp8's recipes, of adapters with packed experts, and of all-to-alls over heads where their group is
// context parallelism's.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/frameworks/target.h"
#include "sim/frameworks/target_choices.h"
#include "tests/support/sizes.h"
#include "tests/unit/sim/frameworks/plan_on.h"

static Arena arena;
static ModelSpec model;

static const Target *found(const char *name) {
    const Target *target = NULL;
    Error error = {0};
    cr_assert_eq(target_find(name, &target, &error), STATUS_OK);
    return target;
}

static void begin(void) {
    Error error = {0};
    cr_assert_eq(model_find("llama-3-8b", NULL, &model, &error), STATUS_OK);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(format_rules, .init = begin, .fini = end);

static TrainPlan plan_of(const Target *target, int shard, int tp) {
    return plan_on(target, &(Mesh){.size = SIZES(1, shard, 1, tp)});
}

static void check_legal(const Target *target, const TrainPlan *plan) {
    const char *reason = "not touched";
    target_check(target, &model, plan, &arena, &reason);
    cr_assert_null(reason, "%s", reason);
}

static void check_reason(const Target *target, const TrainPlan *plan, const char *sentence) {
    const char *reason = NULL;
    target_check(target, &model, plan, &arena, &reason);
    cr_assert_not_null(reason, "legal, expected: %s", sentence);
    cr_assert_str_eq(reason, sentence);
}

Test(format_rules, fp8_runs_where_the_target_has_it_with_the_recipes_that_it_has) {
    const Target *accelerate = found("accelerate"), *ndtune = found("ndtune");
    const Target *megatron = found("megatron"), *torchtitan = found("torchtitan"), *newest = found("torchtitan@0.3");
    TrainPlan plan = plan_of(ndtune, 8, 1);
    plan.precision = DTYPE_FP8;
    check_reason(ndtune, &plan, "ndtune does not run fp8: use precision bf16");
    check_legal(accelerate, &plan);
    plan.fp8_recipe = FP8_DELAYED;
    check_reason(torchtitan, &plan,
                 "torchtitan has no fp8_recipe=delayed: use fp8_recipe tensorwise, rowwise or rowwise-bf16");
    plan.fp8_recipe = FP8_ROWWISE;
    plan.zero = 1;
    check_reason(megatron, &plan,
                 "megatron has no fp8_recipe=rowwise: use fp8_recipe tensorwise, delayed, mxfp8, blockwise or nvfp4");
    plan = plan_of(newest, 8, 1);
    plan.precision = DTYPE_FP8;
    plan.fp8_recipe = FP8_TENSORWISE;
    check_reason(newest, &plan,
                 "torchtitan has no fp8_recipe=tensorwise: use fp8_recipe rowwise, mxfp8, nvfp4 or rowwise-bf16");
    cr_assert_eq(target_default_fp8(newest), FP8_ROWWISE);
    plan = plan_of(accelerate, 4, 2);
    plan.precision = DTYPE_FP8;
    check_reason(accelerate, &plan, "accelerate does not run fp8 beside tp=2: use tp=1 or precision bf16");
    check_legal(torchtitan, &plan);
}

// transformer_config.py of Megatron-core; Megatron-LM's arguments have no flag for it.
Test(format_rules, megatron_keeps_the_input_of_swiglu_in_fp8) {
    TrainPlan plan = plan_of(found("megatron"), 8, 1);
    plan.fp8_activation = true;
    plan.fused = FUSED_FUSED;
    check_legal(found("megatron"), &plan);
    check_reason(found("megatron@2022"), &plan, "megatron@2022 has no fp8_activation=on: use fp8_activation off");
    plan.fused = FUSED_EAGER;
    check_reason(found("megatron"), &plan,
                 "fp8_activation=on is of the fused activation: use kernels fused, or fp8_activation off");
}

Test(format_rules, megatron_keeps_no_input_of_gpt_oss_activation_in_fp8) {
    Error error = {0};
    cr_assert_eq(model_find("gpt-oss-20b", NULL, &model, &error), STATUS_OK);
    TrainPlan plan = plan_of(found("megatron"), 8, 1);
    plan.fused = FUSED_FUSED;
    check_legal(found("megatron"), &plan);
    plan.fp8_activation = true;
    check_reason(found("megatron"), &plan,
                 "Storing activation input in FP8 is supported only for SwiGLU, which gpt-oss-20b has not: use "
                 "fp8_activation off");
}

// attn_forward_func_with_cp of Transformer Engine.
Test(format_rules, megatron_cuts_no_sequences_of_attention_with_sinks) {
    Error error = {0};
    cr_assert_eq(model_find("gpt-oss-20b", NULL, &model, &error), STATUS_OK);
    static const char *const targets[] = {"megatron", "megatron@0.19", "megatron@bridge-0.6", "megatron@fsdp"};
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const TrainPlan plan = plan_on(found(targets[i]), &(Mesh){.size = SIZES(1, 4, 2, 1)});
        check_reason(found(targets[i]), &plan,
                     "Context parallelism only supports softmax_type='learnable', the sinks of gpt-oss-20b, with "
                     "cp_comm_type = 'a2a', which is axis sp here: use cp=1");
    }
    const TrainPlan other = plan_on(found("automodel"), &(Mesh){.size = SIZES(1, 4, 2, 1)});
    const char *reason = NULL;
    target_check(found("automodel"), &model, &other, &arena, &reason);
    cr_expect(!reason || !strstr(reason, "softmax_type"), "%s", reason);
}

// Attention's get_query_key_value_tensors returns before a rank takes its own queries.
Test(format_rules, megatrons_kernel_of_queries_keys_and_values_takes_whole_groups) {
    const Target *megatron = found("megatron");
    TrainPlan plan = plan_of(megatron, 1, 8);
    plan.qkv_rope = true;
    check_legal(megatron, &plan);
    plan.mesh.size[AXIS_TP] = 16;
    check_reason(megatron, &plan,
                 "fused_single_qkv_rope takes all heads of a group, of which tp=16 cuts each of the 8 key-value heads' "
                 "of llama-3-8b: use qkv_rope off");
    plan.qkv_rope = false;
    check_legal(megatron, &plan);
}

// An adapter wraps the layer that TEFusedMLP asks for.
Test(format_rules, megatrons_fused_operations_go_with_adapters_of_attention) {
    const Target *bridge = found("megatron@bridge-0.6");
    TrainPlan plan = plan_of(bridge, 8, 1);
    plan.op_fuser = true;
    check_legal(bridge, &plan);
    check_reason(found("megatron@2022"), &plan, "megatron@2022 has no op_fuser=on: use op_fuser off");
    plan.finetune = FINETUNE_LORA;
    check_reason(bridge, &plan,
                 "TEFusedMLP expects FC1 to be Transformer Engine LayerNormLinear, but found LoRALinear: use "
                 "lora_targets attention, or op_fuser off");
    plan.lora_targets = LORA_ATTENTION;
    check_legal(bridge, &plan);
}

Test(format_rules, megatrons_fused_operations_of_experts_are_predicted_in_mxfp8_alone) {
    Error error = {0};
    cr_assert_eq(model_find("mixtral-8x7b", NULL, &model, &error), STATUS_OK);
    TrainPlan plan = plan_of(found("megatron"), 8, 1);
    plan.op_fuser = true;
    check_reason(
        found("megatron"), &plan,
        "op_fuser=on of layers of experts, which mixtral-8x7b has, is predicted in mxfp8 alone, though megatron "
        "has operations for others: use op_fuser off");
    plan.precision = DTYPE_FP8;
    plan.fp8_recipe = FP8_MX;
    check_legal(found("megatron"), &plan);
    plan.fp8_activation = true;
    check_reason(found("megatron"), &plan,
                 "op_fuser=on has the activation of experts in their products, so that its input is not cast and it is "
                 "not recomputed: use fp8_activation off, recompute_modules without moe-act, or op_fuser off");
}

// Megatron-core's attention asserts it.
Test(format_rules, megatrons_kernel_of_queries_keys_and_values_takes_plain_rotary_attention) {
    static const char *const words = "fused_single_qkv_rope requested but not available/supported for the config: it "
                                     "takes no packed sequences, norms of queries and keys, latents or YaRN: use "
                                     "qkv_rope off";
    const Target *bridge = found("megatron@bridge-0.6");
    TrainPlan plan = plan_of(bridge, 8, 1);
    plan.qkv_rope = true;
    check_legal(bridge, &plan);
    check_reason(found("megatron@2022"), &plan, "megatron@2022 has no qkv_rope=on: use qkv_rope off");
    plan.pack = 1024;
    check_reason(bridge, &plan, words);
    Error error = {0};
    cr_assert_eq(model_find("gpt-oss-20b", NULL, &model, &error), STATUS_OK);
    plan.pack = 0;
    plan.attention = ATTENTION_CUDNN;
    check_reason(bridge, &plan, words);
    model.yarn = (YarnScaling){0};
    check_legal(bridge, &plan);
}

// Transformer Engine's DotProductAttention has learnable sinks in cp by all-to-all alone.
Test(format_rules, sinks_go_with_all_to_alls_over_heads_where_transformer_engine_attends) {
    Error error = {0};
    cr_assert_eq(model_find("gpt-oss-20b", NULL, &model, &error), STATUS_OK);
    const Target *megatron = found("megatron@0.19"), *ndtune = found("ndtune");
    Mesh mesh = {.size = SIZES(1, 2, 1, 1)};
    mesh.size[AXIS_SP] = 2;
    TrainPlan plan = plan_on(megatron, &mesh);
    plan.attention = ATTENTION_CUDNN;
    check_legal(megatron, &plan);
    plan = plan_on(ndtune, &mesh);
    check_reason(ndtune, &plan, "sp=2 of attention with sinks (gpt-oss-20b) is not predicted yet: use sp=1");
}

// With ep and without.
Test(format_rules, experts_are_kept_in_mxfp8_alone) {
    Error error = {0};
    cr_assert_eq(model_find("mixtral-8x7b", NULL, &model, &error), STATUS_OK);
    const Target *megatron = found("megatron");
    TrainPlan plan = plan_of(megatron, 8, 1);
    plan.precision = DTYPE_FP8;
    plan.fp8_recipe = FP8_MX;
    plan.zero = 1;
    plan.fp8_parameters = true;
    check_legal(megatron, &plan);
    plan.mesh.size[AXIS_EP] = 4;
    check_legal(megatron, &plan);
    plan.fp8_recipe = FP8_DELAYED;
    check_reason(megatron, &plan,
                 "fp8_parameters=on of layers of experts, which mixtral-8x7b has, is predicted with fp8_recipe mxfp8 "
                 "alone: use fp8_parameters off");
}

// Its context-parallel group is sp x cp: chunks from either end, and a ring between groups.
Test(format_rules, megatrons_a2a_cuts_heads_and_sequences_and_its_outer_ranks_are_a_ring) {
    const Target *megatron = found("megatron@0.19");
    Mesh mesh = {.size = SIZES(1, 1, 2, 1)};
    mesh.size[AXIS_SP] = 4;
    TrainPlan plan = plan_on(megatron, &mesh);
    plan.cp_rotate = CP_ROTATE_RING;
    check_legal(megatron, &plan);
    plan.cp_rotate = CP_ROTATE_ALLGATHER;
    check_reason(megatron, &plan, "a2a+p2p (sp=4 with cp=2) moves keys and values in a ring: use cp_rotate ring");
    plan.mesh.size[AXIS_CP] = 1;
    plan.seq = 4100;
    check_reason(megatron, &plan, "seq=4100 cannot be cut into the 8 equal chunks of sp x cp = 4: use seq 4104");
    check_reason(found("megatron@2022"), &plan, "megatron has no sp: use sp=1");
}

// Two stages are each other's next and previous one (Megatron-LM's arguments.py).
Test(format_rules, megatron_waits_for_messages_of_chunks_between_three_stages_or_more) {
    const Target *megatron = found("megatron"), *torchtitan = found("torchtitan");
    Mesh mesh = {.size = SIZES(1, 1, 1, 1)};
    mesh.size[AXIS_PP] = 4;
    TrainPlan plan = plan_on(megatron, &mesh);
    plan.grad_accum = 8;
    plan.pp_schedule = PP_INTERLEAVED;
    plan.virtual_stages = 2;
    plan.p2p_waits = true;
    check_legal(megatron, &plan);
    plan.mesh.size[AXIS_PP] = 2;
    check_reason(megatron, &plan,
                 "When interleaved schedule is used and p2p communication overlap is disabled, pipeline-model-parallel "
                 "size should be greater than 2 to avoid having multiple p2p sends and recvs between same 2 ranks per "
                 "communication batch: use p2p_overlap on, or pp 3 or more");
    plan.p2p_waits = false;
    check_legal(megatron, &plan);
    plan.p2p_waits = true;
    plan.fused = FUSED_COMPILED;
    check_reason(torchtitan, &plan,
                 arena_format(&arena,
                              "torchtitan@%s has no switch for messages between stages: use "
                              "p2p_overlap on",
                              torchtitan->version));
    plan.pp_schedule = PP_1F1B;
    plan_canonical(&plan);
    check_legal(torchtitan, &plan);
}

Test(format_rules, adapters_beside_packed_experts_are_refused) {
    const Target *trl = found("trl");
    Error error = {0};
    cr_assert_eq(model_find("qwen3-30b-a3b", NULL, &model, &error), STATUS_OK);
    TrainPlan plan = plan_of(trl, 8, 1);
    plan.finetune = FINETUNE_LORA;
    check_legal(trl, &plan);
    plan.finetune = FINETUNE_QLORA;
    check_reason(
        trl, &plan,
        "the experts of qwen3-30b-a3b are plain parameters, which bitsandbytes does not pack: use finetune lora");
}

// transformer_config.py of Megatron-core raises them; elsewhere all inputs leave.
Test(format_rules, megatron_offloads_what_layers_save_where_nothing_is_recomputed) {
    const Target *megatron = found("megatron"), *newest = found("megatron@0.19");
    TrainPlan plan = plan_of(megatron, 8, 1);
    plan.zero = 1;
    plan.offload = OFFLOAD_ACTIVATIONS;
    check_legal(megatron, &plan);
    plan.offload_layers = 20;
    check_legal(megatron, &plan);
    plan.recompute = RECOMPUTE_FULL;
    check_reason(megatron, &plan,
                 "CPU offloading does not work when activation recomputation is enabled: use recompute none");
    plan.zero = 3;
    check_reason(found("accelerate"), &plan,
                 "accelerate offloads the inputs of all recomputed layers: use offload_layers 0");
    plan.zero = 1;
    plan.recompute = RECOMPUTE_NONE;
    plan.offload_layers = 1000;
    check_reason(megatron, &plan, "CPU offloading can be done only for layers less than 32: use offload_layers 31");
    plan.offload_layers = 1;
    plan.cuda_graphs = CUDA_GRAPHS_ON;
    check_reason(newest, &plan, "CUDA graphs not supported with CPU offloading: use cuda_graphs off");
}

// What sharding has nothing to do with is not lost where nothing is sharded; accelerate's is of FSDP's wrapper.
Test(format_rules, megatron_is_refused_offloading_beside_recomputation_without_sharding_too) {
    const Target *megatron = found("megatron"), *accelerate = found("accelerate");
    TrainPlan plan = plan_of(megatron, 1, 8), other = plan_of(accelerate, 1, 8);
    plan.recompute = other.recompute = RECOMPUTE_FULL;
    plan.offload = other.offload = OFFLOAD_ACTIVATIONS;
    target_canonical(megatron, &plan);
    target_canonical(accelerate, &other);
    cr_expect_eq(plan.zero, 0);
    check_reason(megatron, &plan,
                 "CPU offloading does not work when activation recomputation is enabled: use recompute none");
    cr_expect_eq(other.offload, OFFLOAD_NONE);
}

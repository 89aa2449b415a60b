// How a family's choices affect a step: slices of the right size in the right order, and the tasks they need.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/support/lowered.h"
#include "tests/support/sizes.h"

static int count_kind(const StepProgram *program, TaskKind kind, Phase phase) {
    int count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        count += program->tasks[i].kind == kind && program->tasks[i].phase == phase;
    }
    return count;
}

static int64_t slice_sum(const StepProgram *program) {
    int64_t parameters = 0;
    for (int u = 0; u < program->unit_count; u++) {
        for (int i = 0; i < program->units[u].slice_count; i++) {
            const ParamSlice *slice = &program->slices[program->units[u].first_slice + i];
            const double instances = (slice->share > 0 ? slice->share : 1) * program->units[u].instances;
            parameters += slice->global_rows * slice->global_cols * llround(instances);
        }
    }
    return parameters;
}

Test(models, slices_of_every_preset_add_up_to_its_parameters) {
    int count = 0;
    const ModelPreset *presets = model_presets(&count);
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        // Not our executor, whose layers have room for either kind.
        const char *target = presets[i].spec.run_count > 0 ? "torchtitan" : NULL;
        const LoweredRequest request = {
            .model = presets[i].spec.name, .target = target, .mesh = "dp_shard=2", .seq = 64, .bf16 = target != NULL};
        const StepProgram program = lowered(&arena, request);
        cr_assert_eq(slice_sum(&program), model_parameters(&program.model), "%s", presets[i].spec.name);
        arena_free(&arena);
    }
}

// tp ranks together hold every split element once and every replicated one tp times, and these lead the unit.
static void check_replicas(const StepProgram *program, const char *label) {
    const int tp = program->plan.mesh.size[AXIS_TP];
    for (int u = 0; u < program->unit_count; u++) {
        const Unit *unit = &program->units[u];
        int64_t whole = 0;
        for (int i = 0; i < unit->slice_count; i++) {
            const ParamSlice *slice = &program->slices[unit->first_slice + i];
            const int64_t here = (int64_t)(slice->share * (double)(slice->local_rows * slice->local_cols));
            whole += slice->share > 0 ? here * (slice->split == SPLIT_NONE ? 1 : tp)
                                      : slice->global_rows * slice->global_cols;
            const bool leads = slice->offset_elements < unit->replicated_elements;
            cr_assert_eq(leads, slice->split == SPLIT_NONE, "%s: %s", label, slice->name);
        }
        cr_assert_eq(tp * unit->elements - (tp - 1) * unit->replicated_elements, whole, "%s: %s", label, unit->name);
        cr_assert_leq(unit->partial_elements, unit->replicated_elements);
    }
}

Test(models, what_every_tp_rank_holds_leads_its_unit) {
    static const char *const models[] = {"qwen2.5-7b",    "qwen3-8b",     "gemma-7b",    "phi-3-mini",
                                         "gpt3-125m",     "gpt-neox-20b", "mpt-7b",      "llama-3.2-1b",
                                         "qwen3-30b-a3b", "deepseek-v3",  "gpt-oss-20b", "qwen1.5-moe-a2.7b"};
    static const char *const targets[] = {"ndtune", "megatron", "deepspeed", "accelerate"};
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
            Arena arena = {0};
            const LoweredRequest request = {.model = models[m], .target = targets[t], .mesh = "dp_shard=2,tp=2"};
            if (lowered_is_legal(&request, &arena)) {
                const StepProgram program = lowered(&arena, request);
                check_replicas(&program, models[m]);
            }
            arena_free(&arena);
        }
    }
}

static const ParamSlice *slice_named(const StepProgram *program, const char *name) {
    for (int32_t i = 0; i < program->slice_count; i++) {
        if (strcmp(program->slices[i].name, name) == 0) {
            return &program->slices[i];
        }
    }
    cr_assert_fail("no slice %s", name);
    return NULL;
}

Test(models, column_parallel_biases_are_split_and_row_parallel_ones_are_not) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "gpt3-125m", .mesh = "tp=2"});
    cr_assert_eq(slice_named(&program, "bq")->local_rows, 384);
    cr_assert_eq(slice_named(&program, "bup")->local_rows, 1536);
    cr_assert_eq(slice_named(&program, "bo")->local_cols, 768);
    cr_assert_eq(slice_named(&program, "bdown")->local_cols, 768);
    cr_assert_eq(slice_named(&program, "positions")->local_rows, 2048);
    arena_free(&arena);
}

Test(models, norms_begin_at_one_biases_at_zero_and_neither_decays) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "gpt2", .mesh = "dp_shard=1"});
    cr_assert_eq(slice_named(&program, "attention_norm")->init_value, 1);
    cr_assert_eq(slice_named(&program, "attention_norm_bias")->init_value, 0);
    cr_assert_eq(slice_named(&program, "bq")->init_std, 0);
    cr_assert_not(slice_named(&program, "bq")->decay);
    cr_assert(slice_named(&program, "positions")->decay);
    arena_free(&arena);
}

static int64_t norm_gradient_bytes(Arena *arena, const char *model, const char *target) {
    const StepProgram program =
        lowered(arena, (LoweredRequest){.model = model, .target = target, .mesh = "dp_shard=2,tp=2", .bf16 = true});
    for (int32_t i = 0; i < program.task_count; i++) {
        if (strcmp(program.tasks[i].name, "norm gradient sum") == 0 &&
            strcmp(program.units[program.tasks[i].unit].name, "layer") == 0) {
            return program.tasks[i].payload_bytes;
        }
    }
    return 0;
}

// Tokens are split between the blocks of a sequence-parallel layer, heads always: without sequence parallelism only the
// norms of single heads are sums over tp (transformers marks them replicated_with_grad_allreduce).
Test(models, gradients_that_tp_ranks_share_out_are_summed) {
    Arena arena = {0};
    cr_assert_eq(norm_gradient_bytes(&arena, "qwen3-8b", "ndtune"), (2 * 128 + 2 * 4096) * 4);
    cr_assert_eq(norm_gradient_bytes(&arena, "qwen3-8b", "accelerate"), 2 * 128 * 2);
    cr_assert_eq(norm_gradient_bytes(&arena, "llama-3-8b", "accelerate"), 0);
    cr_assert_eq(norm_gradient_bytes(&arena, "gpt3-125m", "ndtune"), (4 + 2) * 768 * 4);
    arena_free(&arena);
}

Test(models, gpt2_has_layer_norms_positions_plain_gelu_and_no_rotary) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "gpt2", .mesh = "dp_shard=1"});
    cr_assert_eq(count_kind(&program, TASK_LAYERNORM, PHASE_FORWARD), 2);
    cr_assert_eq(count_kind(&program, TASK_LAYERNORM_BACKWARD, PHASE_BACKWARD), 3);
    cr_assert_eq(count_kind(&program, TASK_ACTIVATION, PHASE_FORWARD), 1);
    cr_assert_eq(count_kind(&program, TASK_POSITION, PHASE_FORWARD), 1);
    cr_assert_eq(count_kind(&program, TASK_POSITION_BACKWARD, PHASE_BACKWARD), 1);
    cr_assert_eq(count_kind(&program, TASK_COLUMN_SUM, PHASE_BACKWARD), 4);  // qkv, out, up, down
    cr_assert_null(first_of_kind(&program, TASK_ROPE));
    cr_assert_null(first_of_kind(&program, TASK_RMSNORM));
    cr_assert_eq(first_of_kind(&program, TASK_GEMM)->operand_count, 4);  // qkv with its bias
    arena_free(&arena);
}

Test(models, mpt_has_alibi_in_attention_and_norms_without_bias) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "mpt-7b", .mesh = "cp=2"});
    cr_assert_null(first_of_kind(&program, TASK_ROPE));
    cr_assert_null(first_of_kind(&program, TASK_COLUMN_SUM));
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        if (task->kind == TASK_ATTENTION || task->kind == TASK_ATTENTION_BACKWARD) {
            cr_assert(task->alibi);
        }
    }
    const Task *norm = first_of_kind(&program, TASK_LAYERNORM);
    cr_assert_eq(task_operand(&program, norm, AT_LAYERNORM_BIAS)->ref.buffer, -1);
    arena_free(&arena);
}

Test(models, gpt_neox_turns_a_quarter_of_each_head) {
    Arena arena = {0};
    const StepProgram neox = lowered(&arena, (LoweredRequest){.model = "gpt-neox-20b", .mesh = "dp_shard=1"});
    const Task *rope = first_of_kind(&neox, TASK_ROPE);
    cr_assert_eq(rope->inner, 24);
    cr_assert_eq(rope->traffic_bytes, 2 * 64 * 2 * 64 * 24 * 4);  // read and write; tokens, q and k, heads, dims, fp32
    arena_free(&arena);
}

// Side by side both halves answer to the same gradient: it is gathered once, and both norms read the layer's input.
Test(models, gpt_neox_gathers_the_gradient_of_a_layer_once) {
    Arena arena = {0};
    const StepProgram neox = lowered(&arena, (LoweredRequest){.model = "pythia-1.4b", .mesh = "tp=2"});
    const StepProgram llama = lowered(&arena, (LoweredRequest){.mesh = "tp=2"});
    cr_assert_eq(tasks_named(&neox, "mlp gradient") + tasks_named(&neox, "attention gradient"), 1);
    cr_assert_eq(tasks_named(&llama, "mlp gradient") + tasks_named(&llama, "attention gradient"), 2);
    int32_t read[2] = {-1, -1};
    int norms = 0;
    for (int32_t i = 0; i < neox.task_count && norms < 2; i++) {
        if (neox.tasks[i].kind == TASK_LAYERNORM && neox.tasks[i].phase == PHASE_FORWARD) {
            read[norms++] = task_operand(&neox, &neox.tasks[i], AT_NORM_X)->ref.buffer;
        }
    }
    cr_assert_eq(read[0], read[1]);
    arena_free(&arena);
}

// What comes back through the feed-forward half must not touch the gradient that attention still needs.
Test(models, gpt_neox_keeps_the_feed_forward_halfs_gradient_aside) {
    Arena arena = {0};
    const StepProgram neox = lowered(&arena, (LoweredRequest){.model = "pythia-1.4b", .mesh = "tp=2"});
    const Task *norms[3] = {0};
    int count = 0;
    for (int32_t i = 0; i < neox.task_count && count < 3; i++) {
        if (neox.tasks[i].kind == TASK_LAYERNORM_BACKWARD) {
            norms[count++] = &neox.tasks[i];
        }
    }
    const int32_t g = task_operand(&neox, norms[1], AT_NORM_BACKWARD_RESIDUAL)->ref.buffer,
                  aside = task_operand(&neox, norms[1], AT_NORM_BACKWARD_DX)->ref.buffer;
    cr_assert_neq(g, aside);
    cr_assert_eq(task_operand(&neox, norms[2], AT_NORM_BACKWARD_RESIDUAL)->ref.buffer, aside);
    cr_assert_eq(task_operand(&neox, norms[2], AT_NORM_BACKWARD_DX)->ref.buffer, g);
    arena_free(&arena);
}

Test(models, olmo2_norms_behind_its_halves_and_keeps_their_outputs) {
    Arena arena = {0};
    const StepProgram program =
        lowered(&arena, (LoweredRequest){.model = "olmo2-7b", .target = "accelerate", .mesh = "dp_shard=2"});
    const Task *norm = first_of_kind(&program, TASK_RMSNORM);
    const Buffer *input = &program.buffers[task_operand(&program, norm, AT_NORM_X)->ref.buffer];
    cr_assert_str_eq(input->name, "attention_sum");
    cr_assert_eq(input->slots, program.model.layers);
    cr_assert_str_eq(program.tasks[norm - program.tasks + 1].name, "add");
    const Task *first_gemm = first_of_kind(&program, TASK_GEMM);
    cr_assert_str_eq(program.buffers[task_operand(&program, first_gemm, AT_GEMM_A)->ref.buffer].name, "x");
    arena_free(&arena);
}

// What the host does once for each half back is priced at that norm.
Test(models, a_half_has_one_norm_that_stands_for_its_sum_wherever_it_is_normed) {
    static const char *const models[] = {"llama-3-8b", "olmo2-7b", "gemma-3-1b", "deepseek-v2-lite"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        Arena arena = {0};
        const StepProgram program =
            lowered(&arena, (LoweredRequest){.model = models[i], .target = "megatron", .mesh = "dp_shard=8"});
        unsigned parts = 0;
        for (int32_t t = 0; t < program.task_count; t++) {
            const Task *task = &program.tasks[t];
            if (task->kind == TASK_RMSNORM_BACKWARD && task->part != 0 && !task->within) {
                cr_expect_eq(parts & (unsigned)task->part, 0, "%s: part %d", models[i], task->part);
                parts |= (unsigned)task->part;
            }
        }
        cr_expect_gt(parts, 0, "%s", models[i]);
        arena_free(&arena);
    }
}

Test(models, queries_and_keys_are_normed_before_they_turn_and_back_in_reverse) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "qwen3-8b", .mesh = "tp=2"});
    const Task *norm = first_of_kind(&program, TASK_QK_NORM);
    cr_assert_eq(norm->inner, 128);
    cr_assert_eq(norm->heads, 16);
    cr_assert_eq(norm[1].kind, TASK_ROPE);
    const Task *back = first_of_kind(&program, TASK_QK_NORM_BACKWARD);
    cr_assert_eq(back[-1].kind, TASK_ROPE);
    cr_assert(back[-1].backward);
    arena_free(&arena);
}

Test(models, gemma_scales_embeddings_and_gates_with_gelu) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "gemma-2b", .mesh = "dp_shard=1"});
    cr_assert(first_of_kind(&program, TASK_EMBED)->scaled);
    cr_assert_eq(first_of_kind(&program, TASK_SWIGLU)->activation, ACTIVATION_GELU_TANH);
    cr_assert_str_eq(first_of_kind(&program, TASK_SWIGLU)->name, "geglu");
    arena_free(&arena);
}

// The model's own code has one matrix for q, k and v: so has every framework that runs it.
Test(models, phi_3_has_fused_projections_on_an_unfused_target) {
    Arena arena = {0};
    const LoweredRequest request = {.model = "phi-3-mini", .target = "accelerate", .mesh = "dp_shard=2"};
    const StepProgram program = lowered(&arena, request);
    cr_assert_eq(tasks_named(&program, "qkv"), 1);
    cr_assert_eq(tasks_named(&program, "gate up"), 1);
    cr_assert_eq(tasks_named(&program, "q"), 0);
    arena_free(&arena);
}

Test(models, sequences_beyond_learned_positions_are_refused_in_words) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    const Target *target;
    const char *reason = NULL;
    cr_assert_eq(model_find("gpt2", &arena, &model, &error), STATUS_OK);
    cr_assert_eq(target_find("ndtune", &target, &error), STATUS_OK);
    const TrainPlan plan = {.mesh = {SIZES(1, 1, 1, 1)}, .seq = 2048, .micro_batch = 1, .grad_accum = 1};
    target_check(target, &model, &plan, &arena, &reason);
    cr_assert_str_eq(reason, "gpt2 has learned 1024 positions, seq=2048 is longer: use seq 1024 or less");
    arena_free(&arena);
}

static const char *refusal(Arena *arena, const char *name, const char *target_name, int tp) {
    Error error = {0};
    ModelSpec model;
    const Target *target;
    const char *reason = NULL;
    cr_assert_eq(model_find(name, arena, &model, &error), STATUS_OK);
    cr_assert_eq(target_find(target_name, &target, &error), STATUS_OK);
    const TrainPlan plan = {.mesh = {SIZES(1, 1, 1, tp)}, .seq = 512, .micro_batch = 1, .grad_accum = 1};
    target_check(target, &model, &plan, arena, &reason);
    return reason;
}

Test(models, types_that_transformers_cannot_split_are_refused_in_words) {
    Arena arena = {0};
    cr_assert_str_eq(refusal(&arena, "gpt2", "accelerate", 4),
                     "tp=4: transformers has no tensor-parallel plan for gpt2 models: use tp=1");
    cr_assert_not_null(strstr(refusal(&arena, "mpt-7b", "axolotl", 2), "no tensor-parallel plan for mpt"));
    cr_assert_not_null(strstr(refusal(&arena, "phi-3-mini", "accelerate", 2), "colwise_gather_output"));
    cr_assert_null(refusal(&arena, "gpt2", "accelerate", 1));
    cr_assert_null(refusal(&arena, "mpt-7b", "megatron", 2));
    cr_assert_null(refusal(&arena, "pythia-6.9b", "accelerate", 2));
    arena_free(&arena);
}

Test(models, a_norm_over_all_heads_refuses_tensor_parallelism_in_words) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    const Target *target;
    const char *reason = NULL;
    cr_assert_eq(model_find("olmo2-7b", &arena, &model, &error), STATUS_OK);
    cr_assert_eq(target_find("megatron", &target, &error), STATUS_OK);
    const TrainPlan plan = {.mesh = {SIZES(1, 1, 1, 2)}, .seq = 2048, .micro_batch = 1, .grad_accum = 1};
    target_check(target, &model, &plan, &arena, &reason);
    cr_assert_str_eq(reason, "olmo2-7b norms all heads of a token together, tp=2 would split them: use tp=1");
    arena_free(&arena);
}

static int64_t bytes_of(const StepProgram *program, const char *name) {
    const Buffer *buffer = buffer_named(program, name);
    return buffer ? buffer->slot_bytes : 0;
}

// act(gate) * up, two operations: backward of the product needs act(gate), which half of the two's columns are.
Test(models, act_of_gate_is_kept_where_the_activation_is_written_out_whatever_made_gate_and_up) {
    Arena arena = {0};
    const StepProgram out = lowered(&arena, (LoweredRequest){.target = "nanotron", .mesh = "dp_replicate=2"});
    const StepProgram fused = lowered(&arena, (LoweredRequest){.target = "megatron@core", .mesh = "dp_replicate=2"});
    cr_expect_gt(bytes_of(&out, "gate_up"), 0);
    cr_expect_eq(2 * bytes_of(&out, "activation_values"), bytes_of(&out, "gate_up"));
    cr_expect_eq(bytes_of(&fused, "activation_values"), 0);
    arena_free(&arena);
}

// Transformer Engine flattens keys and values of different widths into one buffer, which goes round (its
// AttnFuncWithCPAndKVP2P): what the latents were made into, not the latents.
Test(models, keys_and_values_of_latent_attention_travel_whole_between_ranks_of_cp) {
    enum { TOKENS = 128 / 2, HEADS = 16, KEY = 192, VALUE = 128, BYTES = 2, RANKS = 2 };
    const int64_t own = (int64_t)TOKENS * HEADS * (KEY + VALUE) * BYTES;
    Arena arena = {0};
    LoweredRequest request = {
        .model = "deepseek-v2-lite", .target = "megatron", .mesh = "dp_shard=2,cp=2", .seq = 128, .bf16 = true};
    const StepProgram ring = lowered(&arena, request);
    cr_expect_eq(first_named(&ring, "ring kv")->payload_bytes, own);
    request.target = "torchtitan";
    request.cp_rotate = CP_ROTATE_ALLGATHER;
    const StepProgram gathered = lowered(&arena, request);
    cr_expect_eq(first_named(&gathered, "gather kv")->payload_bytes, own * RANKS);
    arena_free(&arena);
}

// Of 61 layers three are dense, and a rank has four tokens: what is 16 bytes in one of them is 0.8 in the mean.
Test(models, a_tensor_of_few_layers_and_few_tokens_has_bytes) {
    const LoweredRequest request = {
        .model = "deepseek-v3", .target = "megatron", .mesh = "tp=128,cp=8,ep=32", .seq = 4096, .bf16 = true};
    Arena arena = {0};
    const StepProgram program = lowered(&arena, request);
    for (int32_t i = 0; i < program.buffer_count; i++) {
        cr_expect_gt(program.buffers[i].bytes, 0, "%s", program.buffers[i].name);
    }
    arena_free(&arena);
}

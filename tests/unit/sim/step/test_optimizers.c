// What optimizers keep and move: bytes of states, temporaries, traffic of the update, and that there are no races.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/cluster/cluster.h"
#include "sim/cost/cost_program.h"
#include "sim/frameworks/target_choices.h"
#include "sim/memory/memory.h"
#include "sim/step/step.h"
#include "tests/support/hazard_check.h"
#include "tests/support/lowered.h"

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(optimizers, .fini = end);

// Of Llama-3-8B: two tables of 128256 x 4096, 65 norms of 4096, 32 layers of 218,103,808 in matrices (test_adapters.c).
static const int64_t TABLE = INT64_C(128256) * 4096, NORMS = INT64_C(65) * 4096, MATRICES = INT64_C(32) * 218103808;

// On each of two replicas; accelerate, where a script has any of them.
static StepProgram replicas_with(Optimizer optimizer) {
    return lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                            .target = "accelerate",
                                            .mesh = "dp_replicate=2",
                                            .zero = -1,
                                            .bf16 = true,
                                            .eager = true,
                                            .optimizer = optimizer});
}

static int64_t bytes_of_role(const StepProgram *program, BufferRole role, bool persistent) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        bytes += buffer->role == role && buffer->persistent == persistent ? buffer->bytes * buffer->slots : 0;
    }
    return bytes;
}

static int64_t state_bytes(Optimizer optimizer) {
    const StepProgram program = replicas_with(optimizer);
    return bytes_of_role(&program, ROLE_OPTIMIZER, true);
}

static int64_t update_temporary(const char *target, const char *mesh, int zero) {
    const StepProgram program = lowered(
        &arena, (LoweredRequest){
                    .model = "llama-3-8b", .target = target, .mesh = mesh, .zero = zero, .bf16 = true, .eager = true});
    return bytes_of_role(&program, ROLE_OPTIMIZER, false);
}

// sub_group_size 1e9 of deepspeed 0.19.8 (runtime/zero/stage3.py): four bytes of a shard, of at most 1e9 parameters.
Test(optimizers, gradients_of_deepspeeds_stage_3_are_copied_a_sub_group_at_a_time) {
    const int64_t all = 2 * TABLE + NORMS + MATRICES;
    cr_assert_eq(update_temporary("deepspeed@0.19.8", "dp_shard=4", 3), INT64_C(4000000000));
    cr_assert_eq(update_temporary("deepspeed@0.19.8", "dp_shard=64", 3), 4 * all / 64);
    cr_assert_eq(update_temporary("deepspeed@0.19.8", "dp_shard=64", 2), 0);
    cr_assert_eq(update_temporary("deepspeed@0.19", "dp_shard=64", 3), 0);
}

Test(optimizers, of_adamw_keep_eight_bytes_of_a_parameter) {
    const int64_t all = 2 * TABLE + NORMS + MATRICES;
    cr_assert_eq(all, 8030261248);
    cr_assert_eq(state_bytes(OPTIMIZER_TARGET), 8 * all);
    cr_assert_eq(state_bytes(OPTIMIZER_ADAMW_FUSED), 8 * all);
    cr_assert_eq(state_bytes(OPTIMIZER_ADAMW_32BIT_PAGED), 8 * all);
}

// A byte and a scale of fp32 for 256 of each of m and v; transformers keeps those of nn.Embedding in fp32.
Test(optimizers, of_bitsandbytes_keep_a_64th_beside_a_byte_and_the_embedding_whole) {
    const int64_t packed = TABLE + NORMS + MATRICES;
    cr_assert_eq(state_bytes(OPTIMIZER_ADAMW_8BIT), 8 * TABLE + 2 * (packed + packed / 64));
    cr_assert_eq(state_bytes(OPTIMIZER_ADAMW_8BIT_PAGED), state_bytes(OPTIMIZER_ADAMW_8BIT));
    cr_assert_eq(state_bytes(OPTIMIZER_LION_8BIT), 4 * TABLE + packed + packed / 64);
    cr_assert_eq(state_bytes(OPTIMIZER_LION), 4 * (TABLE + packed));
}

// Two halves of a byte and two scales of fp32 for 128.
Test(optimizers, of_torchao_keep_a_byte_and_a_16th_in_4_bits) {
    const int64_t all = 2 * TABLE + NORMS + MATRICES;
    cr_assert_eq(state_bytes(OPTIMIZER_ADAMW_8BIT_TORCHAO), 2 * (all + all / 64));
    cr_assert_eq(state_bytes(OPTIMIZER_ADAMW_4BIT_TORCHAO), all + all / 16);
}

// A norm's shard on two ranks has 2048 elements, fewer than the 4096 that are packed.
Test(optimizers, of_torchao_leave_small_shards_wide) {
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                                                 .target = "trainer",
                                                                 .mesh = "dp_shard=2",
                                                                 .bf16 = true,
                                                                 .eager = true,
                                                                 .optimizer = OPTIMIZER_ADAMW_8BIT_TORCHAO});
    const int64_t packed = (2 * TABLE + MATRICES) / 2;
    cr_assert_eq(bytes_of_role(&program, ROLE_OPTIMIZER, true), 2 * (packed + packed / 64) + 8 * NORMS / 2);
}

Test(optimizers, without_momentum_keep_nothing) {
    const StepProgram program = replicas_with(OPTIMIZER_SGD);
    cr_assert_eq(bytes_of_role(&program, ROLE_OPTIMIZER, true), 0);
    cr_assert_eq(state_bytes(OPTIMIZER_SGD_MOMENTUM), 4 * (2 * TABLE + NORMS + MATRICES));
}

// Of a layer: q and o 4096 + 4096, k and v 1024 + 4096, gate, up and down 14336 + 4096 each; of a table 128256 + 4096.
Test(optimizers, that_factor_keep_rows_and_columns_of_a_matrix) {
    const int64_t layer = 2 * 8192 + 2 * 5120 + 3 * 18432, tables = 2 * (128256 + 4096);
    cr_assert_eq(state_bytes(OPTIMIZER_ADAFACTOR), 4 * (32 * layer + tables + NORMS));
}

// accelerate's own AdamW is torch's foreach: a temporary as wide as the masters, which one kernel does without.
Test(optimizers, by_one_kernel_hold_no_temporary) {
    const StepProgram foreach = replicas_with(OPTIMIZER_TARGET), fused = replicas_with(OPTIMIZER_ADAMW_FUSED);
    cr_assert_eq(bytes_of_role(&foreach, ROLE_OPTIMIZER, false), 4 * (2 * TABLE + NORMS + MATRICES));
    cr_assert_eq(bytes_of_role(&fused, ROLE_OPTIMIZER, false), 0);
}

static double traffic_per_parameter(const char *target, Optimizer optimizer) {
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                                                 .target = target,
                                                                 .mesh = "dp_replicate=2",
                                                                 .zero = -1,
                                                                 .bf16 = true,
                                                                 .eager = true,
                                                                 .optimizer = optimizer});
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        if (task->unit == UNIT_LAYER && (task->kind == TASK_ADAMW || task->kind == TASK_UPDATE)) {
            return cost_update_bytes(program.target, &program, task) / (double)task->cols;
        }
    }
    return 0;
}

// Master, gradient and states read, all but the gradient written: 12 and 8 for a state of fp32.
Test(optimizers, move_what_they_keep_both_ways) {
    cr_expect_float_eq(traffic_per_parameter("trainer", OPTIMIZER_TARGET), 28, 1e-9);
    cr_expect_float_eq(traffic_per_parameter("trainer", OPTIMIZER_LION), 12 + 8, 1e-9);
    cr_expect_float_eq(traffic_per_parameter("trainer", OPTIMIZER_SGD), 12, 1e-9);
    cr_expect_float_eq(traffic_per_parameter("trainer", OPTIMIZER_ADAMW_8BIT), 12 + 4 * (1 + 1 / 64.0), 1e-3);
    cr_expect_float_eq(traffic_per_parameter("torchtitan@0.3", OPTIMIZER_ADAMW_BF16), 20 * 40 / 28.0, 1e-9);
}

// Megatron-core's precision-aware optimizer: a whole bf16 weight, and of each parameter of the shard 2 bytes that the
// weight lacks and two states of 2 (megatron-core 0.19.2, optimizer_config.py: 2 + 6 / dp).
Test(optimizers, whose_masters_stand_beside_remainders_keep_six_bytes_of_a_shard) {
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                                                 .target = "megatron@0.19",
                                                                 .mesh = "dp_shard=2",
                                                                 .zero = 1,
                                                                 .bf16 = true,
                                                                 .optimizer = OPTIMIZER_ADAMW_BF16});
    int64_t shards = 0;
    for (int32_t u = 0; u < program.unit_count; u++) {
        shards += program.units[u].shard_elements * program.units[u].instances;
    }
    cr_assert_eq(bytes_of_role(&program, ROLE_PARAMETER, true), (2 * 2 + 2) * shards);
    cr_assert_eq(bytes_of_role(&program, ROLE_OPTIMIZER, true), 4 * shards);
}

static StepProgram precision_aware(Optimizer optimizer) {
    return lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                            .target = "megatron@0.19",
                                            .mesh = "dp_shard=2",
                                            .zero = 1,
                                            .bf16 = true,
                                            .reduce_dtype = REDUCE_DTYPE_BF16,
                                            .optimizer = optimizer});
}

// Others have an fp32 copy of their shard.
Test(optimizers, that_are_precision_aware_read_gradients_as_they_are_reduced) {
    const StepProgram aware = precision_aware(OPTIMIZER_ADAMW_BF16), other = precision_aware(OPTIMIZER_TARGET);
    const Unit *of_aware = &aware.units[UNIT_LAYER], *of_other = &other.units[UNIT_LAYER];
    cr_expect_eq(of_aware->gradient_shard, of_aware->gradient_full);
    cr_expect_neq(of_other->gradient_shard, of_other->gradient_full);
}

// Transformer Engine before 2.14, as a row's label has it.
Test(optimizers, that_are_precision_aware_once_cast_states_in_bf16_too) {
    const StepProgram program = precision_aware(OPTIMIZER_ADAMW_BF16);
    Target before = *program.target;
    before.casts_half_states = true;
    StepProgram casts;
    Error error = {0};
    cr_assert_eq(step_lower(&program.model, &program.plan, &before, &arena, &casts, &error), STATUS_OK, "%s",
                 error.message);
    cr_expect_eq(bytes_of_role(&program, ROLE_OPTIMIZER, false), 0);
    cr_expect_eq(bytes_of_role(&casts, ROLE_OPTIMIZER, false), 2 * bytes_of_role(&casts, ROLE_OPTIMIZER, true));
}

// Two of a master beside its weight, and states of 8, 2 and 3 bytes; those in fp8 are fp32 while they are updated,
// with whatever is beside them (Transformer Engine's FusedAdam, step).
Test(optimizers, that_are_precision_aware_have_states_in_formats_of_their_own) {
    static const struct {
        Optimizer optimizer;
        int states, temporary;
    } cases[] = {{OPTIMIZER_ADAMW_REMAINDERS, 8, 0}, {OPTIMIZER_ADAMW_FP8, 2, 8}, {OPTIMIZER_ADAMW_FP8_BF16, 3, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const StepProgram program = precision_aware(cases[i].optimizer);
        int64_t shards = 0;
        for (int32_t u = 0; u < program.unit_count; u++) {
            shards += program.units[u].shard_elements * program.units[u].instances;
        }
        cr_expect_eq(bytes_of_role(&program, ROLE_PARAMETER, true), (2 * 2 + 2) * shards);
        cr_expect_eq(bytes_of_role(&program, ROLE_OPTIMIZER, true), cases[i].states * shards);
        cr_expect_eq(bytes_of_role(&program, ROLE_OPTIMIZER, false), cases[i].temporary * shards);
    }
}

// 80 bytes where one kernel moves 28.
Test(optimizers, by_foreach_move_80_bytes_wherever_they_run) {
    cr_expect_float_eq(traffic_per_parameter("accelerate", OPTIMIZER_TARGET), 80, 1e-9);
    cr_expect_float_eq(traffic_per_parameter("accelerate", OPTIMIZER_ADAMW_FUSED), 28, 1e-9);
    cr_expect_float_eq(traffic_per_parameter("trainer", OPTIMIZER_ADAMW_FOREACH), 80, 1e-9);
}

static int64_t temporaries(const char *target, Optimizer optimizer) {
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                                                 .target = target,
                                                                 .mesh = "dp_shard=2",
                                                                 .zero = 3,
                                                                 .bf16 = true,
                                                                 .eager = true,
                                                                 .optimizer = optimizer});
    return bytes_of_role(&program, ROLE_OPTIMIZER, false);
}

// _optimizer_step (runtime/zero/stage3.py) updates 1e9 elements at a time, plus the copy of their gradients in fp32.
Test(optimizers, of_a_sub_group_hold_the_temporaries_of_a_sub_group) {
    cr_assert_eq(temporaries("deepspeed", OPTIMIZER_ADAMW_FOREACH), INT64_C(1000000000) * (4 + 4));
}

// Of a 7B over 8 ranks at stage 2 the log has 28.28 GiB, a second 3.14 GiB being asked for (LlamaFactory#1221): weights
// 12.55, masters, moments and gradients 3.14 each, and one temporary.
Test(optimizers, tensor_by_tensor_hold_two_temporaries_of_a_flat_copy) {
    cr_expect_eq(temporaries("deepspeed", OPTIMIZER_ADAMW_LOOP), INT64_C(1000000000) * (8 + 4));
    cr_expect_eq(temporaries("deepspeed", OPTIMIZER_ADAMW_FOREACH_2_0), INT64_C(1000000000) * (8 + 4));
}

// The embedding's 525 million are more than a layer's 218, and two ranks share them.
Test(optimizers, tensor_by_tensor_hold_temporaries_of_the_largest_alone) {
    cr_expect_eq(temporaries("accelerate", OPTIMIZER_ADAMW_LOOP), 8 * INT64_C(128256) * 4096 / 2);
    cr_expect_eq(temporaries("accelerate", OPTIMIZER_ADAMW_FOREACH_2_0),
                 2 * temporaries("accelerate", OPTIMIZER_ADAMW_FOREACH));
}

static StepProgram with_muon(void) {
    return lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                            .target = "axolotl",
                                            .mesh = "dp_replicate=2",
                                            .zero = -1,
                                            .bf16 = true,
                                            .eager = true,
                                            .optimizer = OPTIMIZER_MUON});
}

// axolotl's states are as its weights, bf16: one of a layer's matrices, two of tables and norms.
Test(optimizers, that_orthogonalise_keep_one_state_of_a_layers_matrices) {
    const StepProgram program = with_muon();
    cr_assert_eq(bytes_of_role(&program, ROLE_OPTIMIZER, true), 2 * MATRICES + 4 * (2 * TABLE + NORMS));
}

// Of gate, up and down, 4096 x 14336 in bf16: four of them and three squares of the shorter side.
Test(optimizers, that_orthogonalise_work_on_the_largest_matrix) {
    const StepProgram program = with_muon();
    cr_assert_eq(bytes_of_role(&program, ROLE_OPTIMIZER, false), 2 * (4 * INT64_C(4096) * 14336 + 3 * 4096 * 4096));
}

// 5 (4 m m n + 2 m m m) operations of each matrix, 20.8e12 of a layer of Llama-3-8B: at no more than an H100 peaks at
// (989.5e12 a second) and no less than half of what it sustains.
Test(optimizers, that_orthogonalise_take_the_time_of_their_products) {
    Error error = {0};
    ClusterProfile profile;
    cr_assert_eq(cluster_find("dgx-h100", &arena, &profile, &error), STATUS_OK, "%s", error.message);
    const StepProgram program = with_muon();
    const CostModel model = {.profile = &profile, .target = program.target};
    const double q = 4096, kv = 1024, ffn = 14336;
    const double flops =
        5 * (2 * 6 * q * q * q + 2 * (4 * kv * kv * q + 2 * kv * kv * kv) + 3 * (4 * q * q * ffn + 2 * q * q * q));
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        if (task->kind == TASK_UPDATE && task->unit == UNIT_LAYER) {
            const double seconds = cost_task(&model, &program, task).seconds;
            cr_expect_gt(seconds, flops / profile.accelerator.gemm[DTYPE_BF16].peak_flop_per_s);
            cr_expect_lt(seconds, 2 * flops / profile.accelerator.gemm[DTYPE_BF16].sustained_flop_per_s);
        }
    }
}

static StepProgram dealt_out(const char *mesh, const ClusterProfile *profile, double *update_s) {
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                                                 .target = "megatron",
                                                                 .mesh = mesh,
                                                                 .zero = 1,
                                                                 .bf16 = true,
                                                                 .eager = true,
                                                                 .optimizer = OPTIMIZER_MUON});
    const CostModel model = {.profile = profile, .target = program.target};
    *update_s = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        const bool of_layer = task->kind == TASK_UPDATE && task->unit == UNIT_LAYER;
        *update_s += of_layer ? cost_task(&model, &program, task).seconds : 0;
    }
    return program;
}

// Megatron-core's stage 1: a half of states and of the products' time, of matrices that are whole.
Test(optimizers, that_orthogonalise_are_dealt_out_over_ranks_by_megatron) {
    Error error = {0};
    ClusterProfile profile;
    cr_assert_eq(cluster_find("dgx-h100", &arena, &profile, &error), STATUS_OK, "%s", error.message);
    double two_s = 0, eight_s = 0, most_s = 0;
    const StepProgram two = dealt_out("dp_shard=2", &profile, &two_s);
    const StepProgram eight = dealt_out("dp_shard=8", &profile, &eight_s);
    dealt_out("dp_shard=256", &profile, &most_s);
    const double tolerance = 0.1;  // a launch is no shorter
    cr_expect_float_eq((double)bytes_of_role(&two, ROLE_OPTIMIZER, true) / 4,
                       (double)bytes_of_role(&eight, ROLE_OPTIMIZER, true), 1e6);
    cr_expect_float_eq(two_s / 4 / eight_s, 1, tolerance, "%g %g", two_s, eight_s);
    cr_expect_gt(
        most_s, 1.1 * eight_s * 8 / 256,
        "32 layers have 224 matrices (192 where gate and up are one), the largest takes longer than its share");
}

static TrainPlan canonical(const char *name, Optimizer optimizer) {
    Error error = {0};
    const Target *target = NULL;
    TrainPlan plan = {.seq = 64, .micro_batch = 1, .grad_accum = 1, .optimizer = optimizer};
    cr_assert_eq(target_find(name, &target, &error), STATUS_OK);
    cr_assert_eq(mesh_parse("dp_shard=1", &plan.mesh, &error), STATUS_OK);
    target_canonical(target, &plan);
    return plan;
}

Test(optimizers, that_are_the_targets_own_are_no_choice) {
    cr_expect_eq(canonical("trainer", OPTIMIZER_ADAMW_FUSED).optimizer, OPTIMIZER_TARGET);
    cr_expect_eq(canonical("accelerate", OPTIMIZER_ADAMW_FOREACH).optimizer, OPTIMIZER_TARGET);
    cr_expect_eq(canonical("accelerate", OPTIMIZER_ADAMW_FUSED).optimizer, OPTIMIZER_ADAMW_FUSED);
}

static bool is_legal(const char *target, const char *mesh, Optimizer optimizer, Offload offload) {
    const LoweredRequest request = {.target = target,
                                    .mesh = mesh,
                                    .zero = mesh[3] == 'r' ? -1 : 0,
                                    .bf16 = true,
                                    .offload = offload,
                                    .optimizer = optimizer};
    return lowered_is_legal(&request, &arena);
}

// Its distributed optimizer shards over one rank too.
Test(optimizers, that_are_precision_aware_run_on_one_rank_of_data_but_on_no_whole_replicas) {
    cr_expect(is_legal("megatron@0.19", "tp=2", OPTIMIZER_ADAMW_BF16, OFFLOAD_NONE));
    cr_expect_not(is_legal("megatron@0.19", "dp_replicate=2", OPTIMIZER_ADAMW_BF16, OFFLOAD_NONE));
}

Test(optimizers, of_bitsandbytes_take_no_sharded_parameters) {
    cr_expect(is_legal("trainer", "dp_replicate=2", OPTIMIZER_ADAMW_8BIT, OFFLOAD_NONE));
    cr_expect_not(is_legal("trainer", "dp_shard=2", OPTIMIZER_ADAMW_8BIT, OFFLOAD_NONE));
    cr_expect(is_legal("trainer", "dp_shard=2", OPTIMIZER_ADAMW_8BIT_TORCHAO, OFFLOAD_NONE));
    cr_expect(is_legal("accelerate@1.0", "dp_shard=2", OPTIMIZER_ADAMW_8BIT, OFFLOAD_NONE), "flat parameters");
}

Test(optimizers, of_states_on_the_host_are_adamw) {
    cr_expect(is_legal("accelerate", "dp_shard=2", OPTIMIZER_ADAMW_FUSED, OFFLOAD_PARAMETERS));
    cr_expect_not(is_legal("accelerate", "dp_shard=2", OPTIMIZER_ADAMW_8BIT_TORCHAO, OFFLOAD_PARAMETERS));
}

Test(optimizers, are_those_that_a_target_has) {
    cr_expect_not(is_legal("torchtitan", "dp_shard=2", OPTIMIZER_ADAMW_BF16, OFFLOAD_NONE));
    cr_expect(is_legal("torchtitan@0.3", "dp_shard=2", OPTIMIZER_ADAMW_BF16, OFFLOAD_NONE));
    cr_expect_not(is_legal("ndtune", "dp_shard=2", OPTIMIZER_SGD, OFFLOAD_NONE));
    cr_expect(is_legal("deepspeed", "dp_shard=2", OPTIMIZER_LION, OFFLOAD_NONE));
    cr_expect(is_legal("axolotl", "dp_replicate=2", OPTIMIZER_MUON, OFFLOAD_NONE));
    cr_expect_not(is_legal("axolotl", "dp_shard=2", OPTIMIZER_MUON, OFFLOAD_NONE), "exchanges matrices");
    cr_expect_not(is_legal("megatron", "dp_shard=2,tp=2", OPTIMIZER_MUON, OFFLOAD_NONE), "gathers them over tp");
    cr_expect_not(is_legal("megatron@fsdp", "dp_shard=2", OPTIMIZER_MUON, OFFLOAD_NONE));
    const LoweredRequest instances = {.target = "megatron",
                                      .mesh = "dp_replicate=2,dp_shard=2",
                                      .zero = 1,
                                      .bf16 = true,
                                      .optimizer = OPTIMIZER_MUON};
    cr_expect_not(lowered_is_legal(&instances, &arena));
}

static const char *muon_refusal(LoweredRequest request) {
    request.bf16 = true;
    request.optimizer = OPTIMIZER_MUON;
    const char *refusal = lowered_refusal(&request, &arena);
    return refusal ? refusal : "(none)";
}

Test(optimizers, that_orthogonalise_cut_matrices_are_refused_by_what_cuts_them_and_its_value_that_does_not) {
    static const struct {
        LoweredRequest request;
        const char *cut, *use;
    } cases[] = {{{.target = "megatron", .mesh = "dp_shard=2,tp=2", .zero = 1}, "are cut (tp=2)", "use tp=1, or"},
                 {{.target = "megatron", .model = "qwen3-30b-a3b", .mesh = "dp_shard=4,ep=2", .zero = 1, .etp = 2},
                  "are cut (etp=2)",
                  "use etp=1, or"},
                 {{.target = "axolotl", .mesh = "dp_shard=2"}, "are cut (zero=3)", "use dp_replicate alone, or"},
                 {{.target = "axolotl", .mesh = "dp_shard=2,tp=2"},
                  "are cut (zero=3, tp=2)",
                  "use dp_replicate alone, tp=1, or"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *refusal = muon_refusal(cases[i].request);
        cr_expect(strstr(refusal, cases[i].cut) && strstr(refusal, cases[i].use), "%s", refusal);
    }
}

static LoweredRequest in_backward(bool on) {
    return (LoweredRequest){.target = "torchtitan@0.2", .mesh = "dp_shard=2", .bf16 = true, .update_in_backward = on};
}

static int count_of(const StepProgram *program, TaskKind kind, LaneId lane) {
    int count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        count += program->tasks[i].kind == kind && (lane == LANE_COUNT || program->tasks[i].lane == (int)lane);
    }
    return count;
}

// Of embedding, layers and head, on the stream that reduces, as FSDP2 runs hooks; nothing is left to be clipped.
Test(optimizers, in_backward_update_behind_each_reduction_and_keep_one_gradient) {
    const StepProgram late = lowered(&arena, in_backward(false)), early = lowered(&arena, in_backward(true));
    cr_expect_eq(count_of(&late, TASK_ADAMW, LANE_COMPUTE), 3);
    cr_expect_eq(count_of(&early, TASK_ADAMW, LANE_RS), 3);
    cr_expect_eq(count_of(&early, TASK_ADAMW, LANE_COUNT), 3);
    cr_expect_eq(count_of(&early, TASK_SQUARE_SUM, LANE_COUNT) + count_of(&early, TASK_CLIP, LANE_COUNT), 0);
    const int64_t saved = bytes_of_role(&late, ROLE_GRADIENT, false) - bytes_of_role(&early, ROLE_GRADIENT, false);
    cr_expect_eq(saved, (early.model.layers - 1) * early.units[UNIT_LAYER].trained_shard * 4);
}

Test(optimizers, in_backward_race_with_nothing) {
    static const char *const meshes[] = {"dp_shard=1", "dp_shard=2", "dp_replicate=2,dp_shard=2", "dp_shard=2,tp=2"};
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        Error error = {0};
        MemoryPlan plan;
        LoweredRequest request = in_backward(true);
        request.mesh = meshes[i];
        const StepProgram program = lowered(&arena, request);
        cr_assert_eq(memory_plan(&program, &arena, &plan, &error), STATUS_OK, "%s: %s", meshes[i], error.message);
        cr_assert_eq(hazard_check(&program, &plan, &arena, NULL, &error), STATUS_OK, "%s: %s", meshes[i],
                     error.message);
    }
}

Test(optimizers, in_backward_neither_accumulate_nor_wait_for_replicas_or_stages) {
    LoweredRequest bad[4] = {in_backward(true), in_backward(true), in_backward(true), in_backward(true)};
    bad[0].grad_accum = 2;
    bad[1].mesh = "dp_replicate=2";
    bad[2].mesh = "pp=2";
    bad[3].target = "torchtitan@0.3";
    for (int i = 0; i < 4; i++) {
        cr_expect_not(lowered_is_legal(&bad[i], &arena), "case %d", i);
    }
}

Test(optimizers, race_with_nothing_and_every_memory_plan_is_proved) {
    for (int i = 0; i < OPTIMIZER_COUNT; i++) {
        static const char *const targets[] = {"trainer", "axolotl", "torchtitan@0.3", "megatron@0.19", "deepspeed"};
        for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
            const LoweredRequest request = {
                .target = targets[t], .mesh = "dp_shard=2", .bf16 = true, .optimizer = (Optimizer)i};
            if (lowered_is_legal(&request, &arena)) {
                Error error = {0};
                MemoryPlan plan;
                const StepProgram program = lowered(&arena, request);
                cr_assert_eq(memory_plan(&program, &arena, &plan, &error), STATUS_OK, "%d: %s", i, error.message);
                cr_assert_eq(hazard_check(&program, &plan, &arena, NULL, &error), STATUS_OK, "%d: %s", i,
                             error.message);
            }
        }
    }
}

// The contents of a lowered step, checked against the published tables of collectives (sources next to the numbers).

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"
#include "tests/support/sizes.h"

typedef struct Tally {
    int64_t count;
    double payload_bytes;
} Tally;

// Collectives of one kind and group in one iteration of the layers, by phase.
static Tally tally(const StepProgram *program, TaskKind kind, int16_t group, Phase phase) {
    Tally result = {0};
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program->tasks[instance.task];
        const bool in_layer = cursor.depth == 2;  // micro-batch loop, layer loop
        if (in_layer && instance.layer == 1 && instance.micro_step == 0 && task->kind == kind && task->group == group &&
            task->phase == phase) {
            result.count++;
            result.payload_bytes += (double)task->payload_bytes;
        }
    }
    return result;
}

// Llama-2-7B, R2 S4 C2 T2, one sequence of 8192 tokens, bf16: A = 2*b*(s/C)*h = 32 MiB.
static StepProgram example(Arena *arena, const char *target) {
    return lowered(arena, (LoweredRequest){.model = "llama-2-7b",
                                           .target = target,
                                           .mesh = "dp_replicate=2,dp_shard=4,cp=2,tp=2",
                                           .seq = 8192,
                                           .bf16 = true});
}

static const double MIB = 1024.0 * 1024.0;

Test(lowering, sequence_parallel_layer_has_two_gathers_and_two_reduce_scatters_each_way) {
    Arena arena = {0};
    const StepProgram program = example(&arena, "ndtune");
    // Korthikanti et al. 2022, section 4.2.2: 4 collectives of A forward, 4 backward.
    cr_assert_eq(tally(&program, TASK_ALL_GATHER, program.tp_group, PHASE_FORWARD).count, 2);
    cr_assert_eq(tally(&program, TASK_REDUCE_SCATTER, program.tp_group, PHASE_FORWARD).count, 2);
    cr_assert_eq(tally(&program, TASK_ALL_GATHER, program.tp_group, PHASE_BACKWARD).count, 2);
    cr_assert_eq(tally(&program, TASK_REDUCE_SCATTER, program.tp_group, PHASE_BACKWARD).count, 2);
    cr_assert_float_eq(tally(&program, TASK_ALL_GATHER, program.tp_group, PHASE_FORWARD).payload_bytes, 2 * 32 * MIB,
                       1);
    arena_free(&arena);
}

Test(lowering, transformers_layer_has_two_all_reduces_forward_and_five_backward) {
    Arena arena = {0};
    const StepProgram program = example(&arena, "accelerate");
    // q, k, v, gate and up each reduce their own input gradient (sim/SOURCES.md P8): 1.75x the bytes of Megatron.
    cr_assert_eq(tally(&program, TASK_ALL_REDUCE, program.tp_group, PHASE_FORWARD).count, 2);
    cr_assert_eq(tally(&program, TASK_ALL_REDUCE, program.tp_group, PHASE_BACKWARD).count, 5);
    cr_assert_float_eq(tally(&program, TASK_ALL_REDUCE, program.tp_group, PHASE_BACKWARD).payload_bytes, 5 * 32 * MIB,
                       1);
    arena_free(&arena);
}

Test(lowering, stage_3_gathers_twice_and_reduces_once_per_layer) {
    Arena arena = {0};
    const StepProgram program = example(&arena, "ndtune");
    // A layer has 202,383,360 parameters, half of them on a tp rank (norms whole): 193 MiB in bf16, 386 MiB in fp32.
    const Tally forward = tally(&program, TASK_ALL_GATHER, program.units[0].shard_group, PHASE_FORWARD);
    const Tally backward = tally(&program, TASK_ALL_GATHER, program.units[0].shard_group, PHASE_BACKWARD);
    const Tally reduce = tally(&program, TASK_REDUCE_SCATTER, program.units[0].shard_group, PHASE_REDUCE);
    cr_assert_eq(forward.count, 1);
    cr_assert_eq(backward.count, 1);
    cr_assert_eq(reduce.count, 1);
    cr_assert_float_eq(forward.payload_bytes / MIB, 193, 0.5);
    cr_assert_float_eq(reduce.payload_bytes / MIB, 386, 0.5);
    arena_free(&arena);
}

Test(lowering, accelerate_reduces_gradients_in_bf16) {
    Arena arena = {0};
    const StepProgram program = example(&arena, "accelerate");
    cr_assert_float_eq(
        tally(&program, TASK_REDUCE_SCATTER, program.units[0].shard_group, PHASE_REDUCE).payload_bytes / MIB, 193, 0.5);
    arena_free(&arena);
}

Test(lowering, accelerate_reduces_gradients_of_fp16_in_fp16) {
    Arena arena = {0};
    const StepProgram program = example(&arena, "accelerate");
    TrainPlan plan = program.plan;
    plan.precision = DTYPE_FP16;
    StepProgram half;
    Error error = {0};
    cr_assert_eq(step_lower(&program.model, &plan, program.target, &arena, &half, &error), STATUS_OK);
    // its mixed-precision policy has one dtype for parameters and reduction (accelerate's set_mixed_precision)
    cr_assert_eq(tally(&half, TASK_REDUCE_SCATTER, half.units[0].shard_group, PHASE_REDUCE).payload_bytes,
                 tally(&program, TASK_REDUCE_SCATTER, program.units[0].shard_group, PHASE_REDUCE).payload_bytes);
    arena_free(&arena);
}

// 2 ranks of dp_shard: a layer's gradient travels whole into the reduction, in the format that was asked for.
Test(lowering, fp32_gradients_may_be_reduced_in_bf16) {
    Arena arena = {0};
    const char *const targets[] = {"ndtune", "accelerate"};
    for (int i = 0; i < 2; i++) {
        LoweredRequest request = {.target = targets[i], .mesh = "dp_shard=2"};
        const StepProgram full = lowered(&arena, request);
        request.reduce_dtype = REDUCE_DTYPE_BF16;
        const StepProgram half = lowered(&arena, request);
        const Tally whole = tally(&full, TASK_REDUCE_SCATTER, full.units[0].shard_group, PHASE_REDUCE),
                    cut = tally(&half, TASK_REDUCE_SCATTER, half.units[0].shard_group, PHASE_REDUCE);
        cr_expect_eq(cut.count, whole.count);
        cr_expect_float_eq(cut.payload_bytes, whole.payload_bytes / 2, 1);
        const Unit *layer = &half.units[1];
        cr_expect_eq(half.buffers[layer->gradient_full].dtype, DTYPE_FP32);
        cr_expect_eq(half.buffers[layer->gradient_shard].dtype, DTYPE_FP32);
    }
    arena_free(&arena);
}

Test(lowering, bf16_gradients_may_be_reduced_in_fp32) {
    Arena arena = {0};
    LoweredRequest request = {.target = "accelerate", .mesh = "dp_shard=2", .bf16 = true};
    const StepProgram half = lowered(&arena, request);
    request.reduce_dtype = REDUCE_DTYPE_FP32;
    const StepProgram full = lowered(&arena, request);
    cr_expect_float_eq(tally(&full, TASK_REDUCE_SCATTER, full.units[0].shard_group, PHASE_REDUCE).payload_bytes,
                       2 * tally(&half, TASK_REDUCE_SCATTER, half.units[0].shard_group, PHASE_REDUCE).payload_bytes, 1);
    arena_free(&arena);
}

Test(lowering, replicas_all_reduce_the_shard_of_a_layer) {
    Arena arena = {0};
    const StepProgram program = example(&arena, "ndtune");
    int16_t replicate = -1;
    for (int16_t g = 0; g < program.group_count; g++) {
        replicate = program.groups[g].axes == AXIS_BIT(AXIS_DP_REPLICATE) ? g : replicate;
    }
    // 386 MiB over F = S*C = 8 ranks: 48.3 MiB.
    const Tally sum = tally(&program, TASK_ALL_REDUCE, replicate, PHASE_REDUCE);
    cr_assert_eq(sum.count, 1);
    cr_assert_float_eq(sum.payload_bytes / MIB, 48.3, 0.1);
    arena_free(&arena);
}

Test(lowering, ring_moves_keys_and_values_c_minus_1_times_and_fp32_gradients_c_times) {
    Arena arena = {0};
    const StepProgram program =
        lowered(&arena, (LoweredRequest){.model = "llama-2-7b", .mesh = "cp=4,tp=2", .seq = 8192, .bf16 = true});
    // KV = 2*2*b*(s/C)*(k/T)*d = 16 MiB; dKV in fp32 is twice that (sim/SOURCES.md P7).
    const Tally forward = tally(&program, TASK_SEND_RECV, program.cp_group, PHASE_FORWARD);
    const Tally backward = tally(&program, TASK_SEND_RECV, program.cp_group, PHASE_BACKWARD);
    cr_assert_eq(forward.count, 3);
    cr_assert_eq(backward.count, 3 + 4);
    cr_assert_float_eq(forward.payload_bytes, 3 * 16 * MIB, 1);
    cr_assert_float_eq(backward.payload_bytes, (3 * 16 + 4 * 32) * MIB, 1);
    arena_free(&arena);
}

Test(lowering, all_gather_rotation_gathers_keys_and_values_once_each_way) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "llama-2-7b",
                                                                 .target = "accelerate",
                                                                 .mesh = "dp_shard=2,cp=4",
                                                                 .seq = 8192,
                                                                 .bf16 = true,
                                                                 .cp_rotate = CP_ROTATE_ALLGATHER});
    const Tally forward = tally(&program, TASK_ALL_GATHER, program.cp_group, PHASE_FORWARD);
    cr_assert_eq(forward.count, 1);
    cr_assert_float_eq(forward.payload_bytes, 4 * 32 * MIB, 1);
    cr_assert_eq(tally(&program, TASK_ALL_GATHER, program.cp_group, PHASE_BACKWARD).count, 1);
    cr_assert_eq(tally(&program, TASK_SEND_RECV, program.cp_group, PHASE_BACKWARD).count, 4);
    arena_free(&arena);
}

Test(lowering, a_target_that_scatters_brings_gradients_of_keys_and_values_home_at_once) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "llama-2-7b",
                                                                 .target = "axolotl",
                                                                 .mesh = "dp_shard=2,cp=4",
                                                                 .seq = 8192,
                                                                 .bf16 = true,
                                                                 .cp_rotate = CP_ROTATE_ALLGATHER});
    const Tally scattered = tally(&program, TASK_REDUCE_SCATTER, program.cp_group, PHASE_BACKWARD);
    cr_assert_eq(scattered.count, 1);
    cr_assert_float_eq(scattered.payload_bytes, 4 * 32 * MIB, 1);  // dKV of all four ranks in bf16
    cr_assert_eq(tally(&program, TASK_SEND_RECV, program.cp_group, PHASE_BACKWARD).count, 0);
    arena_free(&arena);
}

static int64_t count_named(const StepProgram *program, const char *name, Phase phase) {
    int64_t count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        count += strcmp(program->tasks[i].name, name) == 0 && program->tasks[i].phase == phase;
    }
    return count;
}

Test(lowering, block_recompute_repeats_everything_but_the_last_projection) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.recompute = RECOMPUTE_FULL});
    cr_assert_eq(count_named(&program, "qkv", PHASE_RECOMPUTE), 1);
    cr_assert_eq(count_named(&program, "attention", PHASE_RECOMPUTE), 1);
    cr_assert_eq(count_named(&program, "attention out", PHASE_RECOMPUTE), 1);
    cr_assert_eq(count_named(&program, "gate up", PHASE_RECOMPUTE), 1);
    cr_assert_eq(count_named(&program, "mlp down", PHASE_RECOMPUTE), 0);
    arena_free(&arena);
}

Test(lowering, child_recompute_repeats_neither_output_projection) {
    Arena arena = {0};
    const StepProgram program = lowered(
        &arena, (LoweredRequest){.target = "accelerate@1.14", .mesh = "dp_shard=2", .recompute = RECOMPUTE_FULL});
    cr_assert_eq(count_named(&program, "q", PHASE_RECOMPUTE), 1);
    cr_assert_eq(count_named(&program, "attention out", PHASE_RECOMPUTE), 0);
    cr_assert_eq(count_named(&program, "mlp down", PHASE_RECOMPUTE), 0);
    arena_free(&arena);
}

static double gemm_flops(const StepProgram *program) {
    double flops = 0;
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program->tasks[instance.task];
        flops += task->kind == TASK_GEMM && task->phase != PHASE_RECOMPUTE ? task->flops : 0;
    }
    return flops;
}

Test(lowering, gemm_flops_of_all_ranks_are_six_per_matrix_parameter_and_token) {
    Arena arena = {0};
    const char *const meshes[] = {"dp_shard=1", "dp_shard=4", "tp=4", "cp=4", "dp_shard=2,cp=2,tp=2"};
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        const StepProgram program =
            lowered(&arena, (LoweredRequest){.mesh = meshes[i], .grad_accum = 2, .recompute = RECOMPUTE_FULL});
        const ModelSpec *m = &program.model;
        const int64_t norms = (int64_t)m->hidden * (2 * m->layers + 1);
        const double expected =
            6.0 * (double)(model_flop_parameters(m) - norms) * (double)plan_tokens_per_step(&program.plan);
        cr_assert_float_eq(gemm_flops(&program) * mesh_world(&program.plan.mesh) / expected, 1.0, 1e-12, "mesh %s",
                           meshes[i]);
    }
    arena_free(&arena);
}

Test(lowering, deferred_reduction_scatters_gradients_on_the_last_micro_step_only) {
    Arena arena = {0};
    const StepProgram program =
        lowered(&arena, (LoweredRequest){.target = "accelerate", .mesh = "dp_shard=4", .grad_accum = 4, .bf16 = true});
    StepCursor cursor = step_cursor_begin(&program);
    StepInstance instance;
    int64_t reductions = 0;
    while (step_cursor_next(&cursor, &instance)) {
        if (program.tasks[instance.task].kind == TASK_REDUCE_SCATTER) {
            cr_assert_eq(instance.micro_step, 3);
            reductions++;
        }
    }
    cr_assert_eq(reductions, program.model.layers + 2);
    arena_free(&arena);
}

// Megatron's ParamAndGradBuffer is there from the start: 4 bytes for each of the 6.74 G parameters / tp 2.
Test(lowering, megatron_holds_whole_gradients_without_accumulation_too) {
    Arena arena = {0};
    const StepProgram program = lowered(
        &arena, (LoweredRequest){
                    .model = "llama-2-7b", .target = "megatron", .mesh = "dp_shard=4,tp=2", .seq = 4096, .bf16 = true});
    double held = 0;
    for (int u = 0; u < program.unit_count; u++) {
        const Buffer *gradients = &program.buffers[program.units[u].gradient_full];
        held += gradients->persistent ? (double)gradients->slots * (double)gradients->slot_bytes : 0;
    }
    cr_assert_float_eq(held / (4 * 6.738e9 / 2), 1, 0.001, "%g bytes", held);
    arena_free(&arena);
}

Test(lowering, reshard_never_gathers_each_layer_once_and_keeps_all) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.mesh = "dp_shard=4", .reshard = RESHARD_NEVER});
    cr_assert_eq(tally(&program, TASK_ALL_GATHER, program.units[0].shard_group, PHASE_BACKWARD).count, 0);
    cr_assert_eq(program.buffers[program.units[1].gathered].slots, program.model.layers);
    arena_free(&arena);
}

Test(lowering, middle_micro_steps_are_one_segment_whatever_their_number) {
    Arena arena = {0};
    const StepProgram few = lowered(&arena, (LoweredRequest){.grad_accum = 4});
    const StepProgram many = lowered(&arena, (LoweredRequest){.grad_accum = 64});
    cr_assert_eq(few.task_count, many.task_count);
    cr_assert_eq(few.segment_count, many.segment_count);
    arena_free(&arena);
}

Test(lowering, a_405b_like_step_is_some_hundred_tasks) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "llama-3-70b",
                                                                 .target = "accelerate",
                                                                 .mesh = "dp_shard=32,tp=8",
                                                                 .seq = 8192,
                                                                 .grad_accum = 64,
                                                                 .recompute = RECOMPUTE_FULL,
                                                                 .bf16 = true,
                                                                 .layers = 126});
    cr_assert_lt(program.task_count, 500);
    cr_assert_gt(step_instance_count(&program), 400000);
    arena_free(&arena);
}

Test(lowering, a_plan_that_the_target_refuses_is_infeasible_in_words) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    const Target *target;
    StepProgram program;
    cr_assert_eq(model_find("tiny", &arena, &model, &error), STATUS_OK);
    cr_assert_eq(target_find("ndtune", &target, &error), STATUS_OK);
    const TrainPlan plan = {.mesh = {SIZES(1, 1, 1, 16)}, .seq = 64, .micro_batch = 1, .grad_accum = 1};
    cr_assert_eq(step_lower(&model, &plan, target, &arena, &program, &error), STATUS_INFEASIBLE);
    cr_assert_neq(strstr(error.message, "16"), NULL);
    arena_free(&arena);
}

static uint64_t template_hash(Arena *arena, LoweredRequest request) {
    const StepProgram program = lowered(arena, request);
    return step_template_hash(&program);
}

Test(lowering, equal_requests_give_equal_templates_and_a_changed_one_another) {
    Arena arena = {0};
    const LoweredRequest request = {.mesh = "dp_shard=2,tp=2"};
    LoweredRequest other = request;
    other.recompute = RECOMPUTE_FULL;
    cr_assert_eq(template_hash(&arena, request), template_hash(&arena, request));
    cr_assert_neq(template_hash(&arena, request), template_hash(&arena, other));
    arena_free(&arena);
}

Test(lowering, per_op_recompute_runs_every_second_product_again) {
    Arena arena = {0};
    const StepProgram program = lowered(
        &arena,
        (LoweredRequest){.target = "torchtitan@0.2", .mesh = "dp_shard=2,tp=2", .recompute = RECOMPUTE_SELECTIVE});
    const char *const again[] = {"k", "up"}, *const kept[] = {"q", "v", "gate", "attention", "mlp down"};
    for (size_t i = 0; i < sizeof again / sizeof again[0]; i++) {
        cr_assert_eq(count_named(&program, again[i], PHASE_RECOMPUTE), 1, "%s", again[i]);
    }
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        cr_assert_eq(count_named(&program, kept[i], PHASE_RECOMPUTE), 0, "%s", kept[i]);
    }
    arena_free(&arena);
}

Test(lowering, core_recompute_runs_only_attention_again) {
    Arena arena = {0};
    const StepProgram program =
        lowered(&arena, (LoweredRequest){.target = "megatron", .recompute = RECOMPUTE_SELECTIVE});
    int64_t again = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        again += program.tasks[i].phase == PHASE_RECOMPUTE;
    }
    cr_assert_eq(count_named(&program, "attention", PHASE_RECOMPUTE), 1);
    cr_assert_eq(again, 1);
    arena_free(&arena);
}

Test(lowering, megatron_gathers_projection_inputs_again_in_backward) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.target = "megatron", .mesh = "tp=4"});
    cr_assert_eq(tally(&program, TASK_ALL_GATHER, program.tp_group, PHASE_RECOMPUTE).count, 2);
    arena_free(&arena);
}

static int root_gathers(const StepProgram *program, Phase phase) {
    int count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        const bool root = task->unit >= 0 && strcmp(program->units[task->unit].name, "root") == 0;
        count += root && task->kind == TASK_ALL_GATHER && task->phase == phase;
    }
    return count;
}

Test(lowering, a_root_unit_is_gathered_before_forward_and_again_before_backward) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.target = "accelerate@1.13", .mesh = "dp_shard=4"});
    cr_assert_eq(program.unit_count, 2);
    cr_assert_eq(root_gathers(&program, PHASE_FORWARD), 1);  // embedding, norm and head at once
    cr_assert_eq(root_gathers(&program, PHASE_BACKWARD), 1);
    arena_free(&arena);
}

// FSDP version 1 spares the root after forward and frees it when its gradient is ready: the last one.
Test(lowering, a_kept_root_is_gathered_once_and_held_until_its_gradient_is_copied_out) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.target = "fsdp1", .mesh = "dp_shard=4"});
    cr_assert_eq(root_gathers(&program, PHASE_FORWARD), 1);
    cr_assert_eq(root_gathers(&program, PHASE_BACKWARD), 0);
    int32_t last = -1;  // task that reads the gathered root
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        for (int k = 0; k < task->operand_count; k++) {
            const Operand *operand = task_operand(&program, task, k);
            last = operand->access == ACCESS_READ && operand->ref.buffer == program.units[0].gathered ? i : last;
        }
    }
    cr_assert_geq(last, 0);
    cr_assert_str_eq(program.tasks[last].name, "reduce copy in");
    cr_assert_eq(program.tasks[last].unit, 0);
    arena_free(&arena);
}

// Parts of a root unit begin as they do in units of their own.
Test(lowering, a_root_unit_keeps_the_keys_of_initial_values) {
    Arena arena = {0};
    const LoweredRequest apart = {.model = "gpt2", .target = "accelerate", .mesh = "dp_shard=4", .bf16 = true};
    LoweredRequest root = apart;
    root.target = "accelerate@1.13";
    const StepProgram a = lowered(&arena, apart), b = lowered(&arena, root);
    cr_assert_eq(a.slice_count, b.slice_count);
    for (int32_t i = 0; i < a.slice_count; i++) {
        int32_t k = 0;
        while (k < b.slice_count && strcmp(a.slices[i].name, b.slices[k].name) != 0) {
            k++;
        }
        cr_assert_lt(k, b.slice_count);
        cr_assert_eq(a.slices[i].part, b.slices[k].part, "%s", a.slices[i].name);
        cr_assert_eq(a.slices[i].tensor, b.slices[k].tensor, "%s", a.slices[i].name);
    }
    arena_free(&arena);
}

// torchtitan never enters no_sync, accelerate's accumulate() does (sim/SOURCES.md P2).
Test(lowering, pure_replicas_are_reduced_on_every_micro_step_where_the_framework_does_not_defer) {
    static const char *const targets[] = {"torchtitan@0.2", "torchtitan@head", "fsdp1", "accelerate", "megatron"};
    for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
        Arena arena = {0};
        const StepProgram program =
            lowered(&arena, (LoweredRequest){.target = targets[t], .mesh = "dp_replicate=4", .grad_accum = 3});
        const int units = program.model.layers + program.unit_count - 1;
        for (int micro_step = 0; micro_step < 3; micro_step++) {
            cr_assert_eq(runs_in_micro_step(&program, "gradient sum", micro_step), t < 3 || micro_step == 2 ? units : 0,
                         "%s, micro-step %d", targets[t], micro_step);
        }
        arena_free(&arena);
    }
}

// Its reduce-scatter writes into the buffer that it reads: 4 bytes per parameter once, not 4 + 4/F.
Test(lowering, megatron_reduces_in_its_gradient_buffer) {
    Arena arena = {0};
    const StepProgram program =
        lowered(&arena, (LoweredRequest){.target = "megatron", .mesh = "dp_shard=4", .bf16 = true, .grad_accum = 2});
    for (int u = 0; u < program.unit_count; u++) {
        cr_assert_eq(program.units[u].gradient_shard, program.units[u].gradient_full);
    }
    arena_free(&arena);
}

// FP32GradientAccumulator: 2 bytes per parameter in addition to the buffer's 4, added on every micro-step.
Test(lowering, nanotron_adds_whole_bf16_gradients_to_its_fp32_buffer) {
    Arena arena = {0};
    const StepProgram program =
        lowered(&arena, (LoweredRequest){.target = "nanotron", .mesh = "dp_shard=2", .bf16 = true, .grad_accum = 3});
    const int units = program.model.layers + 2;
    cr_assert_eq(runs_in_micro_step(&program, "gradient cast", 0), units);
    cr_assert_eq(runs_in_micro_step(&program, "gradient add", 1), units);
    cr_assert_eq(runs_in_micro_step(&program, "gradient add", 2), units);
    double held = 0;
    for (int32_t i = 0; i < program.buffer_count; i++) {
        const Buffer *buffer = &program.buffers[i];
        held += buffer->role == ROLE_GRADIENT ? (double)buffer->slots * (double)buffer->slot_bytes : 0;
    }
    cr_assert_float_eq(held / (double)model_parameters(&program.model), 6, 0.001);
    arena_free(&arena);
}

// Transformer Engine's buffers of the ring have the dtype of keys and values.
Test(lowering, megatron_rotates_gradients_of_keys_and_values_in_bf16) {
    Arena arena = {0};
    const StepProgram program = lowered(
        &arena,
        (LoweredRequest){.model = "llama-2-7b", .target = "megatron", .mesh = "cp=4,tp=2", .seq = 8192, .bf16 = true});
    const Tally backward = tally(&program, TASK_SEND_RECV, program.cp_group, PHASE_BACKWARD);
    cr_assert_eq(backward.count, 3 + 4);
    cr_assert_float_eq(backward.payload_bytes, (3 * 16 + 4 * 16) * MIB, 1);
    arena_free(&arena);
}

static int last_task(const StepProgram *program, TaskKind kind, Phase phase) {
    int last = -1;
    for (int32_t i = 0; i < program->task_count; i++) {
        last = program->tasks[i].kind == kind && program->tasks[i].phase == phase ? i : last;
    }
    return last;
}

static int first_task(const StepProgram *program, TaskKind kind) {
    for (int32_t i = 0; i < program->task_count; i++) {
        if (program->tasks[i].kind == kind) {
            return i;
        }
    }
    return program->task_count;
}

Test(lowering, a_target_that_reduces_late_scatters_behind_the_last_backward) {
    Arena arena = {0};
    LoweredRequest request = {.target = "nanotron", .mesh = "dp_shard=4", .zero = 1, .bf16 = true, .grad_accum = 2};
    const StepProgram late = lowered(&arena, request);
    cr_assert_gt(first_task(&late, TASK_REDUCE_SCATTER), last_task(&late, TASK_GEMM, PHASE_BACKWARD));
    request.target = "megatron";
    const StepProgram beside = lowered(&arena, request);
    cr_assert_lt(first_task(&beside, TASK_REDUCE_SCATTER), last_task(&beside, TASK_GEMM, PHASE_BACKWARD));
    arena_free(&arena);
}

typedef struct OnePass {
    int64_t alone, adding, sums, losses;
} OnePass;

// Norms and sums of one step's forward and loss, micro-step 0.
static OnePass fused_of(const StepProgram *program) {
    OnePass found = {0};
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program->tasks[instance.task];
        if (task->phase == PHASE_FORWARD || task->phase == PHASE_LOSS) {
            found.adding += task->kind == TASK_RMSNORM && task_added_operand(task);
            found.alone += task->kind == TASK_RMSNORM && !task_added_operand(task);
            found.sums += task->kind == TASK_ADD;
            found.losses += task->kind == TASK_LOSS;
        }
    }
    return found;
}

static LoweredRequest fused_request(bool eager) {
    return (LoweredRequest){
        .model = "llama-3-8b", .target = "ndtune", .mesh = "dp_shard=2", .seq = 4096, .bf16 = true, .eager = eager};
}

// Of 32 layers with two norms each and the head's, all but the first layer's first one have a sum before them.
Test(lowering, sums_of_the_residual_stream_are_part_of_the_norm_behind_them) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, fused_request(false));
    const OnePass fused = fused_of(&program);
    cr_assert(fused.adding == 64 && fused.alone == 1 && fused.sums == 0 && fused.losses == 1);
    const StepProgram apart = lowered(&arena, fused_request(true));
    const OnePass single = fused_of(&apart);
    cr_assert(single.adding == 0 && single.alone == 65 && single.sums == 64 && single.losses == 0);
    arena_free(&arena);
}

Test(lowering, a_norm_that_adds_moves_four_planes) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, fused_request(false));
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        if (task->kind == TASK_RMSNORM) {
            const int64_t plane = 4096 * 4096 * 2;
            cr_assert_eq(task->traffic_bytes, (task_added_operand(task) ? 4 : 2) * plane);
            cr_assert_str_eq(task->name, task_added_operand(task) ? "add norm" : "norm");
        }
    }
    arena_free(&arena);
}

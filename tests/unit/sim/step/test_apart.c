// Linear layers that are parallel by themselves (aleph_scaling): what is reduced, gathered and held. Experts whose
// activation no kernel fuses.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(apart, .fini = clean);

static StepProgram with(const char *mesh, SequenceParallel sequence_parallel) {
    return lowered(&arena, (LoweredRequest){.target = "aleph_scaling",
                                            .mesh = mesh,
                                            .grad_accum = 2,
                                            .bf16 = true,
                                            .sequence_parallel = sequence_parallel});
}

static int count(const StepProgram *program, TaskKind kind, AxisMask axes, Phase phase) {
    int found = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        found += task->kind == kind && task->phase == phase && program->groups[task->group].axes == axes;
    }
    return found;
}

// Buffers of the name, times their slots.
static int64_t bytes_of(const StepProgram *program, const char *name) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        bytes +=
            strcmp(program->buffers[i].name, name) == 0 ? program->buffers[i].slots * program->buffers[i].bytes : 0;
    }
    return bytes;
}

// A layer is listed once. Queries, keys and values are one product.
Test(apart, gate_and_up_each_reduce_their_input_s_gradient_without_sequence_parallelism) {
    const StepProgram off = with("tp=2", SEQUENCE_PARALLEL_OFF);
    const StepProgram on = with("tp=2", SEQUENCE_PARALLEL_TARGET);
    const int micro_steps = count(&off, TASK_ALL_GATHER, AXIS_BIT(AXIS_TP), PHASE_LOSS);
    cr_expect_eq(count(&off, TASK_ALL_REDUCE, AXIS_BIT(AXIS_TP), PHASE_BACKWARD) % micro_steps, 0);
    cr_expect_geq(count(&off, TASK_ALL_REDUCE, AXIS_BIT(AXIS_TP), PHASE_BACKWARD), 3 * micro_steps);
    cr_expect_eq(count(&on, TASK_ALL_REDUCE, AXIS_BIT(AXIS_TP), PHASE_BACKWARD), 0);
}

Test(apart, the_loss_works_on_whole_logits_in_either_mode) {
    for (int mode = 0; mode < 2; mode++) {
        const StepProgram program = with("tp=2", mode ? SEQUENCE_PARALLEL_OFF : SEQUENCE_PARALLEL_TARGET);
        cr_expect_eq(bytes_of(&program, "logits"), (int64_t)64 * program.model.vocab * 2);
        cr_expect_gt(count(&program, TASK_ALL_GATHER, AXIS_BIT(AXIS_TP), PHASE_LOSS), 0);
    }
}

Test(apart, two_micro_steps_of_logits_are_held) {
    const StepProgram program = with("tp=2", SEQUENCE_PARALLEL_TARGET);
    cr_expect_eq(bytes_of(&program, "held_logits"), (int64_t)2 * 64 * program.model.vocab * 2);
}

Test(apart, gradients_are_summed_in_bf16_and_reduced_in_fp32) {
    const StepProgram program = with("dp_shard=2", SEQUENCE_PARALLEL_TARGET);
    int reductions = 0;
    for (int32_t i = 0; i < program.buffer_count; i++) {
        cr_expect(strcmp(program.buffers[i].name, "layer gradients") != 0 || program.buffers[i].dtype == DTYPE_BF16);
    }
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        if (task->kind == TASK_REDUCE_SCATTER) {
            reductions++;
            cr_expect_eq(task->dtype, DTYPE_FP32);
            cr_expect_eq(task->phase, PHASE_REDUCE);
        }
    }
    cr_expect_gt(reductions, 0);
}

// Besides the statistics, of each number an fp32 copy of its input, 4 bytes, and its result before the weight, 2, less
// the 2 of the input itself.
Test(apart, norms_that_are_written_out_keep_four_bytes_more_of_a_number) {
    const StepProgram program = with("dp_shard=1", SEQUENCE_PARALLEL_TARGET);
    const int64_t tokens = 64, numbers = 1 + program.model.hidden;
    cr_expect_eq(bytes_of(&program, "attention_rstd"), tokens * numbers * 4 * program.model.layers);
}

// Of a routed element: act(gate), up with its offset and their product are kept. Beside SwiGLU's own planes the offset
// moves 4 bytes, the weights 6 and their cast 6; back 34, and 8 where the gradients of gate and up are joined.
Test(apart, experts_that_no_kernel_fuses_keep_each_step_of_their_activation) {
    const StepProgram fused = lowered(
        &arena,
        (LoweredRequest){.model = "qwen3-30b-a3b", .target = "megatron@0.19", .mesh = "dp_shard=8,ep=4", .bf16 = true});
    Target target = *fused.target;
    target.gate_kept = target.activation_apart = true;
    StepProgram apart;
    Error error = {0};
    cr_assert_eq(step_lower(&fused.model, &fused.plan, &target, &arena, &apart, &error), STATUS_OK);
    const Task *to = first_named(&apart, "experts swiglu"), *back = first_named(&apart, "experts swiglu backward");
    cr_expect_null(buffer_named(&fused, "experts_values"));
    cr_expect_eq(buffer_named(&apart, "experts_values")->bytes, 3 * to->rows * to->cols * 2);
    cr_expect_eq(to->cast_bytes - first_named(&fused, "experts swiglu")->cast_bytes, (4 + 6 + 6) * to->rows * to->cols);
    cr_expect_eq(back->cast_bytes - first_named(&fused, "experts swiglu backward")->cast_bytes,
                 (34 + 8) * to->rows * to->cols);
}

// Sequence parallelism switched off where a framework has the switch: what it sends and keeps, which targets refuse it.

#include <criterion/criterion.h>

#include "sim/frameworks/target_choices.h"
#include "tests/support/lowered.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(sequence_parallel, .fini = clean);

static StepProgram with(SequenceParallel sequence_parallel, const char *target) {
    return lowered(&arena, (LoweredRequest){
                               .target = target, .mesh = "tp=2", .bf16 = true, .sequence_parallel = sequence_parallel});
}

static int count_of(const StepProgram *program, TaskKind kind) {
    int count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        count += program->tasks[i].kind == kind && program->tasks[i].lane == LANE_TP;
    }
    return count;
}

// Korthikanti et al. 2022: an all-reduce is the two of them.
Test(sequence_parallel, without_it_layers_all_reduce_and_gather_nothing) {
    const StepProgram on = with(SEQUENCE_PARALLEL_TARGET, "megatron@core");
    const StepProgram off = with(SEQUENCE_PARALLEL_OFF, "megatron@core");
    cr_expect_gt(count_of(&on, TASK_ALL_GATHER), 0);
    cr_expect_gt(count_of(&on, TASK_REDUCE_SCATTER), 0);
    cr_expect_eq(count_of(&off, TASK_ALL_GATHER), 0);
    cr_expect_eq(count_of(&off, TASK_REDUCE_SCATTER), 0);
    cr_expect_gt(count_of(&off, TASK_ALL_REDUCE), count_of(&on, TASK_ALL_REDUCE));
}

static double activation_bytes(const StepProgram *program) {
    double bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        bytes += buffer->role == ROLE_ACTIVATION ? (double)buffer->slots * (double)buffer->slot_bytes : 0;
    }
    return bytes;
}

Test(sequence_parallel, without_it_each_rank_keeps_all_tokens_between_blocks) {
    const StepProgram on = with(SEQUENCE_PARALLEL_TARGET, "megatron@core");
    const StepProgram off = with(SEQUENCE_PARALLEL_OFF, "megatron@core");
    cr_expect_gt(activation_bytes(&off), activation_bytes(&on));
}

static const char *reason_of(const char *name, TrainPlan plan, TrainPlan *canonical) {
    Error error = {0};
    ModelSpec model;
    const Target *target;
    const char *reason = NULL;
    cr_assert_eq(model_find("tiny", &arena, &model, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(target_find(name, &target, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(mesh_parse("tp=2", &plan.mesh, &error), STATUS_OK, "%s", error.message);
    plan.seq = 64;
    plan.micro_batch = plan.grad_accum = 1;
    plan.attention = target->default_attention;
    plan.fused = target->default_fused;
    target_canonical(target, &plan);
    target_check(target, &model, &plan, &arena, &reason);
    *canonical = plan;
    return reason;
}

Test(sequence_parallel, its_own_value_said_is_the_plan_of_nothing_said) {
    TrainPlan plan;
    const TrainPlan said = {.precision = DTYPE_BF16, .sequence_parallel = SEQUENCE_PARALLEL_ON};
    cr_expect_null(reason_of("megatron@core", said, &plan));
    cr_expect_eq(plan.sequence_parallel, SEQUENCE_PARALLEL_TARGET);
}

Test(sequence_parallel, who_has_no_switch_refuses_to_do_without) {
    TrainPlan plan;
    const TrainPlan off = {.precision = DTYPE_BF16, .sequence_parallel = SEQUENCE_PARALLEL_OFF};
    cr_expect_str_eq(reason_of("torchtitan@0.2", off, &plan),
                     "torchtitan@0.2 has no switch for sequence_parallel=off: use sequence_parallel target");
}

// Megatron-LM arguments.py: --tp-comm-overlap asserts --sequence-parallel.
Test(sequence_parallel, overlapped_tp_needs_it) {
    TrainPlan plan;
    const TrainPlan off = {.precision = DTYPE_BF16, .sequence_parallel = SEQUENCE_PARALLEL_OFF, .tp_overlap = true};
    cr_expect_str_eq(reason_of("megatron@core", off, &plan),
                     "tp_overlap=on needs sequence parallelism: use tp_overlap off or sequence_parallel on");
}

// Megatron's layers in pipelines of a library that sums gradients by itself (megatron@bigscience, megatron@neox): what
// runs again, what gradients are summed in, and when they are reduced.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(pipe_engine, .fini = clean);

static StepProgram on(const char *mesh, const char *target, Recompute recompute) {
    return lowered(
        &arena, (LoweredRequest){
                    .target = target, .mesh = mesh, .grad_accum = 2, .zero = 1, .bf16 = true, .recompute = recompute});
}

static StepProgram with(const char *target, Recompute recompute) {
    return on("pp=2,dp_shard=2", target, recompute);
}

static Dtype gradients_of(const StepProgram *program) {
    Dtype dtype = DTYPE_COUNT;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        dtype = strcmp(program->buffers[i].name, "layer gradients") == 0 ? program->buffers[i].dtype : dtype;
    }
    return dtype;
}

static void check_reductions(const StepProgram *program, Dtype dtype) {
    int reductions = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        if (program->tasks[i].kind == TASK_REDUCE_SCATTER) {
            reductions++;
            cr_expect_eq(program->tasks[i].phase, PHASE_REDUCE);
            cr_expect_eq(program->tasks[i].dtype, dtype);
        }
    }
    cr_expect_gt(reductions, 0);
}

// Forward once and backward once: the last product of a layer as often as the first one.
Test(pipe_engine, a_recomputed_layer_runs_to_its_end) {
    const StepProgram again = with("megatron@bigscience", RECOMPUTE_FULL);
    const StepProgram kept = with("megatron@bigscience", RECOMPUTE_NONE);
    cr_expect_gt(tasks_named(&kept, "mlp down"), 0);
    cr_expect_eq(tasks_named(&again, "mlp down"), 2 * tasks_named(&kept, "mlp down"));
}

// Without stages the script checkpoints, not the engine.
Test(pipe_engine, deepspeeds_own_stages_run_again_to_their_end_too) {
    const StepProgram stages = with("deepspeed", RECOMPUTE_FULL), kept = with("deepspeed", RECOMPUTE_NONE);
    cr_expect_gt(tasks_named(&kept, "mlp down"), 0);
    cr_expect_eq(tasks_named(&stages, "mlp down"), 2 * tasks_named(&kept, "mlp down"));
    const StepProgram alone = on("dp_shard=2", "deepspeed", RECOMPUTE_FULL);
    const StepProgram alone_kept = on("dp_shard=2", "deepspeed", RECOMPUTE_NONE);
    cr_expect_eq(tasks_named(&alone, "mlp down"), tasks_named(&alone_kept, "mlp down"));
}

Test(pipe_engine, gradients_are_summed_and_reduced_in_the_dtype_of_the_weights) {
    const StepProgram program = with("megatron@bigscience", RECOMPUTE_NONE);
    cr_expect_eq(gradients_of(&program), DTYPE_BF16);
    cr_expect_eq(tasks_named(&program, "gradient add"), 0);
    check_reductions(&program, DTYPE_BF16);
}

Test(pipe_engine, the_optimizer_of_bf16_adds_every_micro_step_to_fp32_ones) {
    const StepProgram program = with("megatron@bigscience-bf16", RECOMPUTE_NONE);
    cr_expect_eq(gradients_of(&program), DTYPE_FP32);
    cr_expect_gt(tasks_named(&program, "gradient add"), 0);
    check_reductions(&program, DTYPE_FP32);
}

// GPT-NeoX runs DeepSpeed's pipeline with pipe-parallel-size 1 too.
Test(pipe_engine, one_stage_reduces_behind_the_last_backward_too) {
    const StepProgram program = on("dp_shard=2", "megatron@neox", RECOMPUTE_FULL);
    check_reductions(&program, DTYPE_BF16);
}

static int64_t bytes_apart(const char *target, const char *task) {
    const StepProgram program =
        lowered(&arena, (LoweredRequest){.model = "pythia-1.4b", .target = target, .bf16 = true});
    return first_named(&program, task)->cast_bytes;
}

// Bytes of each element of its 16 heads of 128: forward 3 x 4 + 2 x 4 + 3 x 4 + 3 x 4 + 4, backward 4 + 2 x 14 + 3 x 4;
// of the 32 that are turned 12 for the kernel's 16, of queries and of keys.
Test(pipe_engine, what_joins_queries_keys_and_values_moves_its_bytes) {
    cr_expect_eq(bytes_apart("megatron@neox", "rope"), INT64_C(64) * 16 * (48 * 128 - 8 * 32));
    cr_expect_eq(bytes_apart("megatron@neox", "rope backward"), INT64_C(64) * 16 * (44 * 128 - 8 * 32));
    cr_expect_eq(bytes_apart("megatron@bigscience", "rope"), 0);
}

// Megatron-LM's gradients of fp16, and the buffer that its own attention multiplies into.

#include <criterion/criterion.h>

#include "tests/support/lowered.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(fp16_gradients, .fini = clean);

enum { TOKENS = 2048, HEADS = 32 };  // llama-3-8b

static StepProgram of_precision(const char *target, Dtype precision, AttentionKernel attention) {
    const StepProgram base = lowered(
        &arena, (LoweredRequest){
                    .model = "llama-3-8b", .target = target, .mesh = "dp_replicate=2", .seq = TOKENS, .bf16 = true});
    TrainPlan plan = base.plan;
    plan.precision = precision;
    plan.attention = attention;
    StepProgram program;
    Error error = {0};
    cr_assert_eq(step_lower(&base.model, &plan, base.target, &arena, &program, &error), STATUS_OK, "%s", error.message);
    return program;
}

// accumulate_allreduce_grads_in_fp32 follows bf16 alone.
Test(fp16_gradients, are_summed_in_fp16_where_those_of_bf16_are_summed_in_fp32) {
    static const char *const targets[] = {"megatron", "megatron@2022", "megatron@0.4"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const StepProgram half = of_precision(targets[i], DTYPE_FP16, ATTENTION_EAGER);
        const StepProgram whole = of_precision(targets[i], DTYPE_BF16, ATTENTION_EAGER);
        cr_expect_eq(half.buffers[half.units[UNIT_LAYER].gradient_full].dtype, DTYPE_FP16, "%s", targets[i]);
        cr_expect_eq(whole.buffers[whole.units[UNIT_LAYER].gradient_full].dtype, DTYPE_FP32, "%s", targets[i]);
    }
}

// allreduce_gradients of train_step, until 2022.
Test(fp16_gradients, of_replicas_wait_for_backward_in_megatron_of_2022_alone) {
    const StepProgram of_then = of_precision("megatron@2022", DTYPE_FP16, ATTENTION_EAGER);
    const StepProgram of_now = of_precision("megatron", DTYPE_FP16, ATTENTION_EAGER);
    cr_expect_eq(target_reduce_overlap(of_then.target, &of_then.plan), REDUCE_OVERLAP_OFF);
    cr_expect_eq(target_reduce_overlap(of_now.target, &of_now.plan), REDUCE_OVERLAP_ON);
}

Test(fp16_gradients, do_not_share_with_the_one_buffer_of_scores_that_separate_attention_has_for_good) {
    const StepProgram apart = of_precision("megatron@0.4", DTYPE_FP16, ATTENTION_EAGER);
    const StepProgram fused = of_precision("megatron@0.4", DTYPE_FP16, ATTENTION_FLASH);
    const Buffer *buffer = buffer_named(&apart, "attention_scores_buffer");
    cr_assert_not_null(buffer);
    cr_expect(buffer->persistent);
    cr_expect_eq(buffer->slots, 1);
    cr_expect_eq(buffer->bytes, 2LL * HEADS * TOKENS * TOKENS);
    cr_expect_null(buffer_named(&fused, "attention_scores_buffer"));
    const StepProgram engine = of_precision("megatron", DTYPE_FP16, ATTENTION_EAGER);
    cr_expect_null(buffer_named(&engine, "attention_scores_buffer"));
}

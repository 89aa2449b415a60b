// Dropout of what the halves of a layer add to the stream: masks of a byte an element, kept for backward.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(dropout, .fini = clean);

enum { LAYERS = 32, TOKENS = 2048, HIDDEN = 4096 };  // llama-3-8b

static StepProgram dropped(const char *mesh, Recompute recompute) {
    const StepProgram kept = lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                                              .target = "megatron",
                                                              .mesh = mesh,
                                                              .seq = TOKENS,
                                                              .bf16 = true,
                                                              .recompute = recompute});
    Target drops = *kept.target;
    drops.halves_drop = true;
    StepProgram program;
    Error error = {0};
    cr_assert_eq(step_lower(&kept.model, &kept.plan, &drops, &arena, &program, &error), STATUS_OK, "%s", error.message);
    return program;
}

static double bytes_of(const StepProgram *program, const char *name) {
    for (int32_t i = 0; i < program->buffer_count; i++) {
        if (strcmp(program->buffers[i].name, name) == 0) {
            return (double)program->buffers[i].slots * (double)program->buffers[i].bytes;
        }
    }
    return 0;
}

Test(dropout, each_half_of_a_layer_keeps_a_byte_for_each_element_that_it_adds) {
    const StepProgram program = dropped("dp_shard=8", RECOMPUTE_NONE);
    cr_expect_eq(bytes_of(&program, "attention_mask"), (double)LAYERS * TOKENS * HIDDEN);
    cr_expect_eq(bytes_of(&program, "mlp_mask"), (double)LAYERS * TOKENS * HIDDEN);
}

Test(dropout, ranks_that_share_tokens_keep_the_masks_of_theirs) {
    const StepProgram program = dropped("dp_shard=4,tp=2", RECOMPUTE_NONE);
    cr_expect_eq(bytes_of(&program, "attention_mask"), (double)LAYERS * TOKENS / 2 * HIDDEN);
}

static double scores_bytes(DropoutUse dropout) {
    const StepProgram base = lowered(
        &arena, (LoweredRequest){
                    .model = "llama-3-8b", .target = "megatron", .mesh = "dp_shard=8", .seq = TOKENS, .bf16 = true});
    TrainPlan plan = base.plan;
    Target target = *base.target;
    StepProgram program;
    Error error = {0};
    plan.attention = ATTENTION_EAGER;
    target.attention_dropout = dropout;
    cr_assert_eq(step_lower(&base.model, &plan, &target, &arena, &program, &error), STATUS_OK, "%s", error.message);
    return bytes_of(&program, "attention_probabilities");
}

// One copy of the probabilities in bf16, not two and a mask.
Test(dropout, scores_of_which_none_is_dropped_are_kept_once) {
    enum { HEADS = 32 };
    const double scores = (double)HEADS * TOKENS * TOKENS * LAYERS;
    cr_expect_eq(scores_bytes(DROPOUT_UNSAID), 5 * scores);
    cr_expect_eq(scores_bytes(DROPOUT_NONE), 2 * scores);
}

Test(dropout, recomputed_layers_make_their_masks_again) {
    const StepProgram program = dropped("dp_shard=8", RECOMPUTE_FULL);
    cr_expect_eq(bytes_of(&program, "attention_mask"), (double)TOKENS * HIDDEN);
}

// In the kernel that adds: no operation more forward, one for each half backward.
Test(dropout, only_backward_has_an_operation_more) {
    const StepProgram program = dropped("dp_shard=8", RECOMPUTE_NONE);
    const StepProgram kept = lowered(
        &arena, (LoweredRequest){
                    .model = "llama-3-8b", .target = "megatron", .mesh = "dp_shard=8", .seq = TOKENS, .bf16 = true});
    cr_expect_eq(tasks_named(&program, "dropout gradient"), 2);
    cr_expect_eq(tasks_named(&kept, "dropout gradient"), 0);
    cr_expect_eq(bytes_of(&kept, "attention_mask"), 0);
    cr_expect_eq(tasks_named(&program, "add"), tasks_named(&kept, "add"));
}

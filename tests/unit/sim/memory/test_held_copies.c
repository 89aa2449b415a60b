// What a framework's code holds beside what its operations need, mechanism by mechanism: a program with it against the
// same without.

#include <criterion/criterion.h>

#include "sim/memory/cached_bytes.h"
#include "sim/memory/memory_breakdown.h"
#include "tests/support/lowered.h"

enum { SHORT = 512, LONG = 4096, LAYERS = 4, TP = 2, SHARDS = 4, HALF = 2 };

static Arena arena;

static void begin(void) {
    arena = (Arena){0};
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(held_copies, .init = begin, .fini = end);

typedef struct Shape {
    const char *model;
    int stages, tp, shards, grad_accum, seq;
} Shape;

static Target nanotron(void) {
    Error error = {0};
    const Target *target = NULL;
    cr_assert_eq(target_find("nanotron", &target, &error), STATUS_OK, "%s", error.message);
    return *target;
}

static StepProgram first_stage(const Target *target, const Shape *shape) {
    Error error = {0};
    StepPrograms programs;
    ModelSpec *model = ARENA_NEW(&arena, ModelSpec);
    cr_assert_eq(model_find(shape->model, &arena, model, &error), STATUS_OK, "%s", error.message);
    model->layers = LAYERS;
    model->run_count = 0;
    TrainPlan plan = {.seq = shape->seq,
                      .micro_batch = 1,
                      .grad_accum = shape->grad_accum,
                      .precision = DTYPE_BF16,
                      .attention = ATTENTION_FLASH,
                      .fused = FUSED_EAGER,
                      .pp_schedule = PP_1F1B,
                      .virtual_stages = 1};
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        plan.mesh.size[axis] = 1;
    }
    plan.mesh.size[AXIS_PP] = shape->stages;
    plan.mesh.size[AXIS_TP] = shape->tp;
    plan.mesh.size[AXIS_DP_SHARD] = shape->shards;
    plan.zero = shape->shards > 1 ? 1 : 0;
    plan_canonical(&plan);
    cr_assert_eq(step_lower_stages(model, &plan, target, &arena, &programs, &error), STATUS_OK, "%s", error.message);
    return programs.of[0];
}

static double live_bytes(const StepProgram *program) {
    Error error = {0};
    MemoryBreakdown memory;
    cr_assert_eq(memory_breakdown(program, &arena, &memory, &error), STATUS_OK, "%s", error.message);
    return memory.peak_bytes;
}

static double cached_bytes(const StepProgram *program) {
    LiveTraces traces = {0};
    Error error = {0};
    double bytes = 0;
    cr_assert_eq(memory_cached_bytes(program, 0, &traces, &bytes, &error), STATUS_OK, "%s", error.message);
    live_traces_free(&traces);
    return bytes;
}

Test(held_copies, what_is_gathered_again_has_two_buffers_for_good) {
    Target with = nanotron(), without = with;
    without.gather_buffers = false;
    const Shape stages = {"llama-3-8b", 2, TP, 1, 4, SHORT}, alone = {"llama-3-8b", 1, TP, 1, 4, SHORT};
    const int64_t one = (int64_t)SHORT * 4096 * HALF;
    const StepProgram a = first_stage(&with, &stages), b = first_stage(&without, &stages);
    cr_expect_eq(memory_resident_bytes(&a) - memory_resident_bytes(&b), 2 * one);
    cr_expect_null(buffer_named(&a, "attention_in_full"));
    cr_expect_leq(live_bytes(&a) - live_bytes(&b), 2 * (double)one, "those that lived for a time are in them");
    const StepProgram c = first_stage(&with, &alone), d = first_stage(&without, &alone);
    cr_expect_eq(memory_resident_bytes(&c) - memory_resident_bytes(&d), one, "inputs are kept: gradients alone");
    cr_expect(buffer_named(&c, "attention_in_full"));
}

Test(held_copies, queries_keep_the_packed_product_where_keys_have_as_many_heads) {
    const Target with = nanotron();
    Target without = with;
    without.packed_kept = false;
    const Shape as_many = {"llama-2-7b", 1, 1, 1, 1, LONG}, fewer = {"llama-3-8b", 1, 1, 1, 1, LONG};
    const StepProgram copies = first_stage(&with, &as_many), none = first_stage(&with, &fewer);
    const Buffer *kept = buffer_named(&copies, "kv");
    cr_assert_not_null(kept);
    cr_expect_eq(kept->slots, LAYERS);
    cr_expect_eq(kept->bytes, (int64_t)LONG * 2 * 4096 * HALF);
    cr_expect_null(buffer_named(&none, "kv"));
    const StepProgram before = first_stage(&without, &as_many);
    cr_expect_gt(live_bytes(&copies), live_bytes(&before));
}

Test(held_copies, half_gradients_live_until_their_backward_ends) {
    const Target target = nanotron();
    const StepProgram program = first_stage(&target, &(Shape){"llama-3-8b", 2, 1, 1, 4, SHORT});
    const Buffer *half = buffer_named(&program, "layer half gradients");
    cr_assert_not_null(half);
    cr_expect(half->held);
    cr_expect_not(half->persistent);
}

// 2 bytes of each parameter in the block that NCCL fills; the copies, a block for each rank, are where activations
// were.
Test(held_copies, weights_are_gathered_by_flat_copies) {
    Target with = nanotron(), without = with;
    without.gathers_flat = false;
    const Shape shape = {"llama-3-8b", 1, 1, SHARDS, 1, SHORT};
    const StepProgram a = first_stage(&with, &shape), b = first_stage(&without, &shape);
    const Buffer *flat = buffer_named(&a, "flat weights"), *parts = buffer_named(&a, "flat parts");
    cr_assert(flat && parts);
    cr_expect_eq(parts->pieces, SHARDS);
    cr_expect_eq(flat->bytes, parts->bytes);
    const double more = cached_bytes(&a) - cached_bytes(&b);
    cr_expect_geq(more, 0.8 * (double)flat->bytes);
    cr_expect_leq(more, 2.3 * (double)flat->bytes);
    cr_expect_null(buffer_named(&b, "flat weights"));
}

// Qwen3 30B, 48 layers of 2,048 of which a token visits 8 experts, two sequences of 4,096 in bf16: inputs of attention
// and router with their gradients are 4 rows of 2,048 a token, gradients of what is dispatched, computed and combined 3
// of 8 x 2,048. By DeepEP the dispatched ones are two rows. 24 layers of a stage in 12 chunks keep two of them.
Test(held_copies, overlapped_chunks_of_old_megatron_keep_gradients_of_their_nodes) {
    static const struct {
        const char *target, *mesh;
        int grad_accum, chunks;
        Dispatch dispatch;
        bool overlaps;
        int64_t rows;  // of a token, in all layers of a chunk
    } cases[] = {{"megatron@0.15", "dp_shard=8,ep=8", 2, 1, DISPATCH_TARGET, true, 48 * (4 + 3 * 8)},
                 {"megatron@0.15", "dp_shard=8,ep=8", 2, 1, DISPATCH_DEEPEP, true, 48 * (6 + 2 * 8)},
                 {"megatron@0.15", "pp=2,dp_shard=8,ep=8", 8, 12, DISPATCH_TARGET, true, 2 * (4 + 3 * 8)},
                 {"megatron@0.15", "dp_shard=8,ep=8", 1, 1, DISPATCH_TARGET, true, 0},
                 {"megatron@0.15", "dp_shard=8,ep=8", 2, 1, DISPATCH_TARGET, false, 0},
                 {"megatron", "dp_shard=8,ep=8", 2, 1, DISPATCH_TARGET, true, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool stages = cases[i].chunks > 1;
        const StepProgram program = lowered(&arena, (LoweredRequest){.target = cases[i].target,
                                                                     .model = "qwen3-30b-a3b",
                                                                     .mesh = cases[i].mesh,
                                                                     .seq = LONG,
                                                                     .micro_batch = 2,
                                                                     .grad_accum = cases[i].grad_accum,
                                                                     .zero = 1,
                                                                     .bf16 = true,
                                                                     .dispatch = cases[i].dispatch,
                                                                     .ep_overlap = cases[i].overlaps,
                                                                     .pp_schedule = stages ? PP_INTERLEAVED : PP_1F1B,
                                                                     .virtual_stages = cases[i].chunks});
        const double kept = (double)(cases[i].rows * 2 * LONG * 2048 * HALF);
        Target without = *program.target;
        without.ep_overlap_keeps = false;
        StepProgram freed = program;
        freed.target = &without;
        cr_expect_eq(live_bytes(&program) - live_bytes(&freed), kept, "%zu", i);
    }
}

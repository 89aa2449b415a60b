// The MLP in tiles: tensors inside have the size of a tile, and are computed once more than without tiles.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/memory/memory.h"
#include "tests/support/hazard_check.h"
#include "tests/support/lowered.h"

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(tiles, .fini = end);

enum { TOKENS = 65536, FFN = 14336, LAYERS = 32, TILES = 8 };  // of llama-3-8b

static LoweredRequest request_of(int tiles, Recompute recompute) {
    return (LoweredRequest){.model = "llama-3-8b",
                            .target = "axolotl",
                            .mesh = "dp_shard=8",
                            .seq = TOKENS,
                            .bf16 = true,
                            .recompute = recompute,
                            .eager = true,
                            .mlp_tiles = tiles};
}

static int64_t bytes_of(const StepProgram *program, const char *name) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        bytes += strcmp(buffer->name, name) == 0 ? buffer->bytes * buffer->slots : 0;
    }
    return bytes;
}

static double flops_of(const StepProgram *program, const char *name) {
    double flops = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        flops += strcmp(program->tasks[i].name, name) == 0 ? program->tasks[i].flops : 0;
    }
    return flops;
}

Test(tiles, hold_the_inside_of_one_tile_of_one_layer) {
    static const char *const inside[] = {"gate", "up", "activation_out", "dgate", "dup", "dactivation"};
    const LoweredRequest whole_request = request_of(0, RECOMPUTE_NONE), request = request_of(TILES, RECOMPUTE_NONE);
    const StepProgram whole = lowered(&arena, whole_request), program = lowered(&arena, request);
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
        const int64_t plane = INT64_C(2) * TOKENS * FFN, kept = i < 3 ? LAYERS : 1;
        cr_expect_eq(bytes_of(&whole, inside[i]), kept * plane, "%s", inside[i]);
        cr_expect_eq(bytes_of(&program, inside[i]), plane / TILES, "%s", inside[i]);
    }
    cr_assert_eq(bytes_of(&program, "mlp_in"), bytes_of(&whole, "mlp_in"));  // which is kept of each layer
}

// Without tiles recomputation stops in front of the last product; with them it runs to its end, and each tile again.
Test(tiles, run_forward_twice_and_three_times_where_layers_are_recomputed) {
    static const struct {
        Recompute recompute;
        double whole_up, whole_down, up, down;
    } cases[] = {{RECOMPUTE_NONE, 1, 1, 2, 2}, {RECOMPUTE_FULL, 2, 1, 3, 3}};
    const double product = 2.0 * TOKENS * 4096 * FFN;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const StepProgram whole = lowered(&arena, request_of(0, cases[i].recompute));
        const StepProgram program = lowered(&arena, request_of(TILES, cases[i].recompute));
        cr_expect_eq(flops_of(&whole, "up"), cases[i].whole_up * product);
        cr_expect_eq(flops_of(&program, "up"), cases[i].up * product);
        cr_expect_eq(flops_of(&whole, "mlp down"), cases[i].whole_down * product);
        cr_expect_eq(flops_of(&program, "mlp down"), cases[i].down * product);
        static const char *const once[] = {"up dgrad", "up wgrad", "mlp down dgrad", "mlp down wgrad", "q", "q wgrad"};
        for (size_t k = 0; k < sizeof once / sizeof once[0]; k++) {
            cr_expect_eq(flops_of(&program, once[k]), flops_of(&whole, once[k]), "%s", once[k]);
        }
    }
}

Test(tiles, race_with_nothing_whatever_the_layer_is_made_of) {
    static const char *const models[] = {"tiny", "gpt2", "pythia-6.9b", "olmo2-7b"};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        for (int recompute = 0; recompute < 2; recompute++) {
            Error error = {0};
            MemoryPlan plan;
            const StepProgram program = lowered(&arena, (LoweredRequest){.model = models[i],
                                                                         .mesh = "dp_shard=2",
                                                                         .layers = 2,
                                                                         .grad_accum = 2,
                                                                         .recompute = (Recompute)recompute,
                                                                         .mlp_tiles = 4});
            cr_assert_eq(memory_plan(&program, &arena, &plan, &error), STATUS_OK, "%s: %s", models[i], error.message);
            cr_assert_eq(hazard_check(&program, &plan, &arena, NULL, &error), STATUS_OK, "%s: %s", models[i],
                         error.message);
        }
    }
}

Test(tiles, are_refused_where_they_are_not_had_or_not_equal) {
    const LoweredRequest good = request_of(TILES, RECOMPUTE_FULL);
    LoweredRequest bad[6];
    for (int i = 0; i < 6; i++) {
        bad[i] = good;
    }
    bad[0].target = "accelerate";
    bad[1].mlp_tiles = 7;
    bad[2].mesh = "dp_shard=4,tp=2";
    bad[3].finetune = FINETUNE_LORA;
    bad[4].model = "mixtral-8x7b";
    bad[5].target = "deepspeed@0.19";
    cr_expect(lowered_is_legal(&good, &arena));
    for (int i = 0; i < 6; i++) {
        cr_expect_not(lowered_is_legal(&bad[i], &arena), "case %d", i);
    }
}

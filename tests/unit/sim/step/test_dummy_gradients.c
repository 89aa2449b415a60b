// What stands for gradients that products have added to the buffer already: a tensor of each weight's shape, once.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"

static int64_t bytes_of(const StepProgram *program, const char *name) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        bytes += strcmp(program->buffers[i].name, name) == 0 ? program->buffers[i].bytes : 0;
    }
    return bytes;
}

static StepProgram program_of(Arena *arena, const char *target, const char *mesh) {
    return lowered(arena,
                   (LoweredRequest){.model = "llama-3-8b", .target = target, .mesh = mesh, .seq = 8192, .bf16 = true});
}

// Its queries, keys and values are one weight of 6144 rows, gate and up one of 28672; the table is not multiplied by.
Test(dummy_gradients, are_of_each_shape_of_a_layer_and_of_the_head) {
    Arena arena = {0};
    const StepProgram whole = program_of(&arena, "megatron", "dp_shard=8");
    const StepProgram halves = program_of(&arena, "megatron", "dp_shard=4,tp=2");
    const int64_t rows = 6144 + 4096 + 28672 + 14336;
    cr_expect_eq(bytes_of(&whole, "layer dummy gradients"), 2 * rows * 4096);
    cr_expect_eq(bytes_of(&whole, "head dummy gradients"), 2 * 128256LL * 4096);
    cr_expect_eq(bytes_of(&whole, "embedding dummy gradients"), 0);
    cr_expect_eq(bytes_of(&halves, "layer dummy gradients"), rows * 4096);
    arena_free(&arena);
}

Test(dummy_gradients, are_none_before_transformer_engine_kept_them) {
    Arena arena = {0};
    const StepProgram older = program_of(&arena, "megatron@0.4", "dp_shard=8");
    const StepProgram other = program_of(&arena, "torchtitan", "dp_shard=8");
    cr_expect_eq(bytes_of(&older, "layer dummy gradients"), 0);
    cr_expect_eq(bytes_of(&other, "layer dummy gradients"), 0);
    arena_free(&arena);
}

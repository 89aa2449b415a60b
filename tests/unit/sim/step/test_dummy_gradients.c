// What stands for gradients that products have added to the buffer already: a tensor of each shape of a weight, once a
// process.

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

static int64_t bytes_for(const char *model, const char *target, const char *mesh) {
    Arena arena = {0};
    const StepProgram program =
        lowered(&arena, (LoweredRequest){.model = model, .target = target, .mesh = mesh, .seq = 4096, .bf16 = true});
    const int64_t bytes = bytes_of(&program, "dummy gradients");
    arena_free(&arena);
    return bytes;
}

// Its queries, keys and values are one weight of 6144 rows, gate and up one of 28672; the table is not multiplied by.
Test(dummy_gradients, are_of_each_shape_of_a_layer_and_of_the_head) {
    const int64_t rows = 6144 + 4096 + 28672 + 14336 + 128256;
    cr_expect_eq(bytes_for("llama-3-8b", "megatron", "dp_shard=8"), 2 * rows * 4096);
    cr_expect_eq(bytes_for("llama-3-8b", "megatron", "dp_shard=4,tp=2"), rows * 4096);
}

// The shared expert is as wide as one that is routed to: wherever ep puts these, one tensor serves both.
Test(dummy_gradients, of_one_shape_are_one_wherever_its_weights_are) {
    const int64_t latent = 7168 * (1536 + 576 + 16384) + 1536 * 24576 + 512 * 32768, ffn = 3 * 7168;
    const int64_t elements = latent + ffn * (18432 + 2048) + 129280LL * 7168;
    cr_expect_eq(bytes_for("deepseek-v3", "megatron", "dp_shard=8"), 2 * elements);
    cr_expect_eq(bytes_for("deepseek-v3", "megatron", "dp_shard=8,ep=8"), 2 * elements);
}

Test(dummy_gradients, are_none_before_transformer_engine_kept_them) {
    cr_expect_eq(bytes_for("llama-3-8b", "megatron@0.4", "dp_shard=8"), 0);
    cr_expect_eq(bytes_for("llama-3-8b", "torchtitan", "dp_shard=8"), 0);
}

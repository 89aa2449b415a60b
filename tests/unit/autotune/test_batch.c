// The batch that a search chooses if none is given.

#include <criterion/criterion.h>
#include <stdlib.h>

#include "autotune/search/batch.h"
#include "autotune/search/prune.h"
#include "autotune/search/space.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;

static void begin(void) {
    arena = (Arena){0};
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(batch, .init = begin, .fini = end);

static int64_t settled(int world, const char *model, int seq) {
    TuneRequest request = request_for(&arena, world, model, "dgx-h100", "accelerate");
    request.seq = seq;
    return batch_settle(&request, &arena)->global_batch;
}

Test(batch, the_nearest_multiple_rounds_to_the_closer_side_and_never_to_zero) {
    cr_assert_eq(batch_nearest_multiple(1000, 16), 992);  // 62 * 16; 1008 is 8 away too, the smaller wins
    cr_assert_eq(batch_nearest_multiple(1005, 16), 1008);
    cr_assert_eq(batch_nearest_multiple(3, 16), 16);
}

Test(batch, around_a_batch_are_the_multiples_of_the_world_the_nearest_first) {
    int64_t around[BATCHES_AROUND];
    cr_expect(batches_around(65, 8, around) == 2 && around[0] == 64 && around[1] == 72);
    cr_expect(batches_around(68, 8, around) == 2 && around[0] == 72 && around[1] == 64);  // as near: the greater
    cr_expect(batches_around(64, 8, around) == 1 && around[0] == 72);
    cr_expect(batches_around(3, 8, around) == 1 && around[0] == 8);
}

Test(batch, the_default_batch_is_4M_tokens) {
    cr_assert_eq(batch_default(4096), 1024);  // 4 * 2^20 / 2^12
    cr_assert_eq(batch_default(8192), 512);
    cr_assert_eq(batch_default(1 << 24), 1);  // longer than the batch: one sequence
}

Test(batch, every_legal_shape_can_make_it_with_every_small_micro_batch) {
    static const int worlds[] = {1, 6, 8, 24, 32, 56, 96};
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
        TuneRequest request = request_for(&arena, worlds[w], "7b", "dgx-h100", "accelerate");
        const int64_t batch = batch_settle(&request, &arena)->global_batch;
        cr_expect_leq(llabs(batch - 1024), 102, "world %d: %lld", worlds[w], (long long)batch);
        Space space;
        space_meshes(&request, &arena, &space);
        for (int i = 0; i < space.mesh_count; i++) {
            TrainPlan plan;
            const char *reason;
            space_plain_plan(&request, &space.meshes[i], &plan);
            if (!prune(&request, &plan, NULL, &arena, &reason)) {
                cr_expect_eq(batch % (2 * plan_global_batch(&plan)), 0, "world %d, shape %d", worlds[w], i);
            }
        }
    }
}

// 1024 ranks of one sequence of 8192 tokens each are twice 4M tokens, and no more.
Test(batch, it_may_be_twice_4M_tokens) {
    cr_assert_eq(settled(1024, "llama-3-8b", 8192), 1024);
}

// 8192 data ranks would need eight times 4M tokens: 2048 sequences serve all shapes of at most 2048 data ranks.
Test(batch, beyond_that_it_is_the_one_that_most_shapes_can_make) {
    cr_assert_eq(settled(8192, "7b", 4096), 2048);
}

// Of 131071 ranks, a prime, every shape that could run has as many data ranks.
Test(batch, where_no_shape_can_make_less_it_is_the_least_that_one_can) {
    cr_assert_eq(settled(131071, "7b", 4096), 131071);
}

Test(batch, a_batch_that_was_asked_for_is_kept) {
    TuneRequest request = request_for(&arena, 24, "7b", "dgx-h100", "accelerate");
    request.global_batch = 1032;
    cr_assert_eq(batch_settle(&request, &arena), &request);
}

Test(batch, it_follows_the_sequence_length_of_a_changed_request) {
    TuneRequest request = request_for(&arena, 32, "7b", "dgx-h100", "accelerate");
    request.seq = 4096;
    TuneRequest changed = *batch_settle(&request, &arena);
    cr_assert(changed.batch_assumed);
    changed.seq = 2048;
    cr_assert_eq(batch_settle(&changed, &arena)->global_batch, 2048);
}

Test(batch, a_micro_batch_that_was_asked_for_divides_it) {
    TuneRequest request = request_for(&arena, 32, "7b", "dgx-h100", "accelerate");
    request.micro_batch = 3;
    cr_assert_eq(batch_settle(&request, &arena)->global_batch % 96, 0);
}

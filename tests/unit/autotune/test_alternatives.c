// What lets something fit, and which batch near the asked one is faster.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/alternatives.h"
#include "autotune/search.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static Error error;

static void end(void) {
    arena_free(&arena);
}

TestSuite(alternatives, .fini = end);

static TuneResult search(TuneRequest *request) {
    TuneResult result;
    request->effort = EFFORT_ESTIMATE;
    request->threads = 1;
    cr_assert_eq(search_run(request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
    return result;
}

static bool names_way(const char *const *ways, int count, const char *begin) {
    for (int i = 0; i < count; i++) {
        if (strncmp(ways[i], begin, strlen(begin)) == 0) {
            return true;
        }
    }
    return false;
}

// 16 bytes a parameter of 70 B on 16 x 80 GB leave nothing for activations; on 32 they do, and in bf16 it is half.
Test(alternatives, more_accelerators_or_bf16_state_let_a_model_fit) {
    TuneRequest request = request_for(&arena, 16, "llama-3-70b", "dgx-h100", "accelerate");
    const char *ways[ALTERNATIVES_MOST];
    int count = 0;
    cr_assert_eq(search(&request).entry_count, 0);
    cr_assert_eq(alternatives_that_fit(&request, &arena, ways, &count, &error), STATUS_OK, "%s", error.message);
    cr_assert_geq(count, 2);
    cr_expect(names_way(ways, count, "--world 32 ("));
    cr_expect(names_way(ways, count, "--master-weights bf16 ("));
}

Test(alternatives, what_is_said_to_fit_fits) {
    TuneRequest request = request_for(&arena, 16, "llama-3-70b", "dgx-h100", "accelerate");
    request.world = 32;
    cr_expect_gt(search(&request).entry_count, 0);
    request.world = 16;
    request.asked[PLAN_MASTER_WEIGHTS] = true;
    cr_expect_gt(search(&request).entry_count, 0);
}

// 65 = 5 x 13: 8 ranks can only share sequences by cp and tp.
Test(alternatives, a_batch_that_more_shapes_can_make_is_named) {
    TuneRequest request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate");
    request.global_batch = 65;
    const TuneResult result = search(&request);
    BatchAlternative better;
    cr_assert_eq(alternative_batch(&result, &arena, &better, &error), STATUS_OK, "%s", error.message);
    cr_expect(better.global_batch == 64 || better.global_batch == 72, "%lld", (long long)better.global_batch);
    cr_expect_gt(better.gain, 0.02);
    cr_expect_eq(better.mesh.size[AXIS_CP] * better.mesh.size[AXIS_TP], 1);
}

// The closed form takes all ranks to be as fast.
Test(alternatives, no_batch_is_named_where_a_rank_is_slow) {
    TuneRequest request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate");
    request.global_batch = 65;
    const TuneResult result = search(&request);
    const Handicap slow = {.index = 3, .factor = 2};
    BatchAlternative better;
    request.handicaps = &slow;
    request.handicap_count = 1;
    cr_assert_eq(alternative_batch(&result, &arena, &better, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(better.global_batch, 0);
}

Test(alternatives, a_batch_that_every_shape_makes_has_none) {
    TuneRequest request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate");
    request.global_batch = 64;
    const TuneResult result = search(&request);
    BatchAlternative better;
    cr_assert_eq(alternative_batch(&result, &arena, &better, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(better.global_batch, 0);
}

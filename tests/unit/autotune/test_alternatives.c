// Which batch near the asked one is faster.

#include <criterion/criterion.h>

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

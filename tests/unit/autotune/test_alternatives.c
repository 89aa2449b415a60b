// Which batch near the asked one is faster.

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

static int offers(const char *target, Optimizer said, const char *option) {
    TuneRequest request = request_for(&arena, 8, "7b", "dgx-h100", target);
    FormatAlternative formats[ALTERNATIVE_FORMATS];
    int count = 0, offered = 0;
    request.asked[PLAN_OPTIMIZER] = said;
    const TuneResult result = search(&request);
    cr_assert_eq(result.entries[0].plan.optimizer, said, "the search has tried another one");
    cr_assert_eq(alternative_formats(&result, &arena, formats, &count, &error), STATUS_OK, "%s", error.message);
    for (int i = 0; i < count; i++) {
        offered += strncmp(formats[i].option, "--optimizer", strlen("--optimizer")) == 0;
        cr_expect(strncmp(formats[i].option, "--optimizer", strlen("--optimizer")) != 0 ||
                  (strcmp(formats[i].option, option) == 0 && formats[i].saved_bytes > 0));
    }
    return offered;
}

// One line at most: bf16 where the target has it, else 8 bits; none where an optimizer was named.
Test(alternatives, narrower_states_are_named_and_never_tried) {
    cr_expect_eq(offers("accelerate", OPTIMIZER_TARGET, "--optimizer adamw-8bit-torchao"), 1);
    cr_expect_eq(offers("torchtitan@0.3", OPTIMIZER_TARGET, "--optimizer adamw-bf16"), 1);
    cr_expect_eq(offers("torchtitan", OPTIMIZER_TARGET, ""), 0);
    cr_expect_eq(offers("accelerate", OPTIMIZER_SGD, ""), 0);
}

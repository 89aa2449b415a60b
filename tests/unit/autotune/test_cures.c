// What makes something fit where nothing does: tried, with its cost, the nearest first.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "autotune/explain/cures.h"
#include "tests/support/kept.h"
#include "tests/support/search_all.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static Error error;

static void end(void) {
    arena_free(&arena);
}

TestSuite(cures, .fini = end);

static int entries_of(TuneRequest *request) {
    TuneResult result;
    request->effort = EFFORT_ESTIMATE;
    request->threads = 1;
    cr_assert_eq(search_run(request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
    return result.entry_count;
}

static const Cure *find(const TuneRequest *request, int *count) {
    const Cure *cures = NULL;
    cr_assert_eq(cures_find(request, &arena, &cures, count, &error), STATUS_OK, "%s", error.message);
    return cures;
}

static TuneRequest too_large(void) {
    return request_for(&arena, 16, "llama-3-70b", "dgx-h100", "accelerate");
}

typedef struct Found {
    int count;
    Cure cures[CURES_MOST];
    char options[CURES_MOST][80];
} Found;

static void find_for_too_large(void *value) {
    Found *found = value;
    const TuneRequest request = too_large();
    const Cure *cures = find(&request, &found->count);
    for (int i = 0; i < found->count; i++) {
        found->cures[i] = cures[i];
        cr_assert_lt(snprintf(found->options[i], sizeof *found->options, "%s", cures[i].option),
                     (int)sizeof *found->options);
    }
}

// What several claims look at, found once.
static const Cure *of_too_large(int *count) {
    Found *found = ARENA_NEW(&arena, Found);
    kept("cures of a model that is too large", found, sizeof *found, find_for_too_large);
    for (int i = 0; i < found->count; i++) {
        found->cures[i].option = found->options[i];
    }
    *count = found->count;
    return found->cures;
}

static const Cure *named(const Cure *cures, int count, const char *option) {
    for (int i = 0; i < count; i++) {
        if (strcmp(cures[i].option, option) == 0) {
            return &cures[i];
        }
    }
    return NULL;
}

// 16 bytes a parameter of 70 B on 16 x 80 GB leave nothing for activations; on 32 they do, in bf16 it is half, and on
// the host there is room.
Test(cures, the_host_more_accelerators_and_bf16_state_let_a_model_fit) {
    TuneRequest request = too_large();
    int count = 0;
    cr_assert_eq(entries_of(&request), 0);
    const Cure *cures = of_too_large(&count);
    cr_expect_not_null(named(cures, count, "--offload parameters,optimizer"));
    cr_expect_not_null(named(cures, count, "--world 32"));
    cr_expect_not_null(named(cures, count, "--master-weights bf16"));
}

// 141 GB of frozen weights are 9 GB on each of 16; what is trained is another thing, so it comes last.
Test(cures, adapters_are_the_last_resort) {
    int count = 0;
    const Cure *cures = of_too_large(&count);
    cr_assert_gt(count, 0);
    cr_expect_str_eq(cures[count - 1].option, "--finetune lora");
}

Test(cures, what_is_said_to_fit_fits) {
    TuneRequest request = too_large();
    request.world = 32;
    cr_expect_gt(entries_of(&request), 0);
    request.world = 16;
    request.asked[PLAN_MASTER_WEIGHTS] = true;
    cr_expect_gt(entries_of(&request), 0);
    request.asked[PLAN_MASTER_WEIGHTS] = TUNE_ANY;
    request.asked[PLAN_OFFLOAD] = OFFLOAD_PARAMETERS;
    cr_expect_gt(entries_of(&request), 0);
    request.asked[PLAN_OFFLOAD] = TUNE_ANY;
    request.asked[PLAN_FINETUNE] = FINETUNE_LORA;
    cr_expect_gt(entries_of(&request), 0);
}

Test(cures, what_keeps_training_and_accelerators_comes_first_then_the_fastest) {
    int count = 0;
    const Cure *cures = of_too_large(&count);
    cr_assert_geq(count, 3);
    for (int i = 1; i < count; i++) {
        cr_expect(cures[i - 1].kind < cures[i].kind ||
                      (cures[i - 1].kind == cures[i].kind && cures[i - 1].slower <= cures[i].slower),
                  "%s before %s", cures[i - 1].option, cures[i].option);
    }
}

// With memory enough nothing runs faster than without a limit.
Test(cures, what_a_cure_costs_is_between_nothing_and_all) {
    const TuneRequest request = too_large();
    int count = 0;
    const Cure *cures = of_too_large(&count);
    for (int i = 0; i < count; i++) {
        if (cures[i].kind == CURE_PLAN) {
            cr_expect(cures[i].slower > 0 && cures[i].slower < 1, "%s: %g", cures[i].option, cures[i].slower);
            cr_expect_leq(cures[i].reserved_bytes, request.memory_limit_bytes);
        }
    }
}

Test(cures, choices_that_the_user_fixed_are_freed_first) {
    TuneRequest request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate");
    request.global_batch = 512;
    request.micro_batch = 64;
    request.asked[PLAN_RECOMPUTE] = RECOMPUTE_NONE;
    int count = 0;
    cr_assert_eq(entries_of(&request), 0);
    const Cure *cures = find(&request, &count);
    cr_assert_gt(count, 0);
    cr_expect_str_eq(cures[0].option, "--micro-batch --recompute auto");
}

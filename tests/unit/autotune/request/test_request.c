// What was asked as a TuneRequest: defaults are said, errors point at their part.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/request/request.h"

static const RequestDefaults searched = {.cluster = "dgx-h100", .gpu_cluster = "dgx-h100"};
static const RequestDefaults one_plan = {.cluster = "dgx-h100", .gpu_cluster = "dgx-h100", .single_plan = true};

static Arena arena;
static TuneRequest request;
static Error error;

static void begin(void) {
    arena = (Arena){0};
    error = (Error){0};
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(request, .init = begin, .fini = end);

static bool says(const char *sentence) {
    for (int i = 0; i < request.assumption_count; i++) {
        if (strstr(request.assumptions[i], sentence)) {
            return true;
        }
    }
    return false;
}

// The part that the error is about.
static int refused(Asked asked, const RequestDefaults *defaults) {
    cr_assert_eq(request_resolve(&asked, defaults, &arena, &request, &error), STATUS_USAGE, "%s", error.message);
    return asked.about;
}

Test(request, what_is_not_said_is_taken_and_said) {
    Asked asked = {.model = "7b", .world = 32};
    cr_assert_eq(request_resolve(&asked, &searched, &arena, &request, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(request.seq, TUNE_DEFAULT_SEQ);
    cr_assert(says("sequences of 4096 tokens; change it with --seq"));
    cr_assert(says("cluster dgx-h100"));
    cr_assert_eq(request.default_count, 4, "cluster, target, sequence, precision");
}

Test(request, what_is_said_is_no_default) {
    Asked asked = {.model = "7b", .world = 32, .seq = 8192, .cluster = "dgx-h100", .target = "torchtitan"};
    asked.choices[PLAN_PRECISION] = "bf16";
    cr_assert_eq(request_resolve(&asked, &searched, &arena, &request, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(request.seq, 8192);
    cr_assert_eq(request.default_count, 0);
}

Test(request, nodes_count_accelerators_of_the_cluster) {
    Asked asked = {.model = "7b", .nodes = 4};
    cr_assert_eq(request_resolve(&asked, &searched, &arena, &request, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(request.world, 32);
}

Test(request, an_error_is_about_the_part_that_it_names) {
    const char *const changes[] = {"node.gpus=4", "no.such=1"};
    cr_assert_eq(refused((Asked){.model = "no such model", .world = 8}, &searched), ASKED_MODEL);
    cr_assert_eq(refused((Asked){.model = "7b", .mesh = "dp_shard=x"}, &one_plan), ASKED_MESH);
    cr_assert_eq(refused((Asked){.model = "7b", .world = 8, .baseline = "dp_shard=4"}, &searched), ASKED_BASELINE);
    cr_assert_eq(refused((Asked){.model = "7b", .world = 8, .changes = changes, .change_count = 2}, &searched),
                 ASKED_CHANGE + 1);
}

Test(request, a_choice_that_goes_with_another_is_refused_alone) {
    Asked asked = {.model = "7b", .world = 8};
    asked.choices[PLAN_LORA_RANK] = "8";
    cr_assert_eq(refused(asked, &searched), ASKED_CHOICE + PLAN_LORA_RANK);
}

Test(request, the_accumulation_of_one_plan_makes_the_global_batch) {
    Asked asked = {.model = "7b", .mesh = "dp_shard=8", .global_batch = 64};
    TrainPlan plan;
    cr_assert_eq(request_resolve(&asked, &one_plan, &arena, &request, &error), STATUS_OK, "%s", error.message);
    request_plan(&request, &request.mesh, &plan);
    cr_assert_eq(plan.grad_accum, 8);
}

// The interval of a step time.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "autotune/predict/host_interval.h"
#include "autotune/predict/interval.h"
#include "sim/analytic/analytic.h"
#include "sim/frameworks/framework.h"
#include "sim/frameworks/target_choices.h"
#include "tests/support/sizes.h"
#include "tests/unit/autotune/requests.h"

Test(interval, unvalidated_is_minus_20_plus_45_percent) {
    // spread 0.232: exp(-1.2816 * 0.75 * 0.232) = 0.800, exp(1.2816 * 1.25 * 0.232) = 1.450
    const ClusterProfile cluster = {.relative_uncertainty = 0.05};
    const Target target = {.evidence = "unvalidated", .runtime.relative_uncertainty = 0.05};
    double low_s = 0, high_s = 0;
    interval_of(10, &cluster, &target, &(ModelSpec){0}, 8, &low_s, &high_s);
    cr_assert_float_eq(low_s, 8.00, 0.01);
    cr_assert_float_eq(high_s, 14.50, 0.01);
}

Test(interval, evidence_narrows_it_to_what_profile_and_target_say) {
    // spread hypot(0.06, 0.08) = 0.1: exp(-0.09612) = 0.90836, exp(0.16019) = 1.17374
    const ClusterProfile cluster = {.relative_uncertainty = 0.06};
    const Target target = {.evidence = "120 runs", .runtime.relative_uncertainty = 0.08};
    double low_s = 0, high_s = 0;
    interval_of(1, &cluster, &target, &(ModelSpec){0}, 8, &low_s, &high_s);
    cr_assert_float_eq(low_s, 0.90836, 1e-5);
    cr_assert_float_eq(high_s, 1.17374, 1e-5);
}

Test(interval, a_wider_profile_widens_even_the_unvalidated) {
    const ClusterProfile cluster = {.relative_uncertainty = 0.5};
    const Target target = {.evidence = "unvalidated"};
    double low_s = 0, high_s = 0;
    interval_of(1, &cluster, &target, &(ModelSpec){0}, 8, &low_s, &high_s);
    cr_assert_lt(low_s, 0.63);   // exp(-1.2816 * 0.375) = 0.6184
    cr_assert_gt(high_s, 2.22);  // exp(1.2816 * 0.625) = 2.2277
}

static double slow_tail(const char *framework, const char *accelerator, double own, int ranks) {
    ClusterProfile cluster = {.relative_uncertainty = 0.06};
    snprintf(cluster.accelerator.name, sizeof cluster.accelerator.name, "%s", accelerator);
    const Target target = {.name = framework, .evidence = "120 runs", .runtime.relative_uncertainty = own};
    double low_s = 0, high_s = 0;
    interval_of(1, &cluster, &target, &(ModelSpec){0}, ranks, &low_s, &high_s);
    return log(high_s);
}

Test(interval, is_as_wide_as_left_out_runs_of_the_framework_on_the_chip_need) {
    int count = 0, seen = 0;
    const Framework *const *frameworks = framework_list(&count);
    for (int i = 0; i < count; i++) {
        for (const ChipWidth *chip = frameworks[i]->widths; chip && chip->accelerator; chip++) {
            const double plain = slow_tail(frameworks[i]->name, "none of theirs", 0.08, 1);
            const double here = slow_tail(frameworks[i]->name, chip->accelerator, 0.08, 1);
            cr_expect_float_eq(here, chip->width * plain, 1e-9, "%s on %s", frameworks[i]->name, chip->accelerator);
            seen++;
        }
    }
    cr_assert_gt(seen, 0);
}

Test(interval, of_a_calibrated_machine_is_its_own) {
    // Calibration states the runner's part as 0: it is in the profile's.
    cr_assert_eq(slow_tail("fsdp1", "A100-SXM4-80GB", 0, 8), slow_tail("fsdp1", "another", 0, 8));
}

Test(interval, of_many_ranks_is_wide_where_such_runs_went_astray) {
    const double near = slow_tail("megatron", "H100-SXM5-80GB", 0.08, 256);
    cr_assert_float_eq(slow_tail("megatron", "H100-SXM5-80GB", 0.08, 512), near, 1e-9, "its runs on 512 did not");
    cr_assert_gt(slow_tail("nanotron", "H100-SXM5-80GB", 0.08, 512), 3 * near);
    cr_assert_gt(slow_tail("deepspeed", "H100-SXM5-80GB", 0.08, 512), near);
}

Test(interval, of_experts_is_what_runs_with_experts_say_and_a_guess_where_there_are_none) {
    // hypot(0.06, 0.08) = 0.1; with megatron's 0.08 on top 0.128, with the guess of 0.232 0.2526
    const ModelSpec experts = {.experts.count = 8};
    const ClusterProfile cluster = {.relative_uncertainty = 0.06};
    Target target = {.name = "megatron", .evidence = "120 runs", .runtime.relative_uncertainty = 0.08};
    double low_s = 0, high_s = 0;
    interval_of(1, &cluster, &target, &experts, 8, &low_s, &high_s);
    cr_expect_float_eq(high_s, exp(1.2815515655 * 1.25 * hypot(0.1, framework_of("megatron")->experts.spread)), 1e-6);
    target.name = "deepspeed";
    interval_of(1, &cluster, &target, &experts, 8, &low_s, &high_s);
    cr_expect_float_eq(high_s, exp(1.2815515655 * 1.25 * hypot(0.1, 0.232)), 1e-6);
}

static Prediction prediction_on_8(const TuneRequest *request) {
    Prediction prediction = {.origin = ORIGIN_ENGINE, .step_s = 1, .step_low_s = 0.9, .step_high_s = 1.1};
    prediction.plan = (TrainPlan){.mesh = {.size = SIZES(1, 8, 1, 1)},
                                  .seq = 1024,
                                  .micro_batch = 1,
                                  .grad_accum = 1,
                                  .zero = 1,
                                  .precision = DTYPE_BF16,
                                  .attention = request->target->default_attention,
                                  .fused = request->target->default_fused};
    plan_canonical(&prediction.plan);
    return prediction;
}

static double slow_tail_of(const char *target, int width) {
    Arena arena = {0};
    TuneRequest request = request_for(&arena, 8, "7b", "dgx-h100", target);
    request.model.hidden = width;
    request.model.ffn = 4 * width;
    request.model.head_dim = width / request.model.heads;
    Prediction prediction = prediction_on_8(&request);
    Error error = {0};
    cr_assert_eq(host_intervals(&request, &prediction, 1, &error), STATUS_OK, "%s", error.message);
    arena_free(&arena);
    return prediction.step_high_s;
}

static double all_by_its_host(void) {
    return exp(hypot(log(1.1), 1.2815515655 * 1.25 * 0.126));
}

Test(interval, of_a_step_that_waits_for_its_host_is_as_wide_as_hosts_differ) {
    const double host_bound = all_by_its_host();
    cr_expect(slow_tail_of("megatron", 512) > 1.18 && slow_tail_of("megatron", 512) < host_bound + 1e-9);
    cr_expect_float_eq(slow_tail_of("megatron", 8192), 1.1, 0.005, "its device is behind");
    cr_expect_eq(slow_tail_of("torchtitan", 512), 1.1, "no time of its modules was measured");
}

// Whose host is late by so little that a slower one decides which stage is last.
Test(interval, no_step_is_more_uncertain_than_its_host) {
    Arena arena = {0};
    const TuneRequest request = request_for(&arena, 16, "llama-3-70b", "dgx-h100", "megatron");
    Prediction prediction = prediction_on_8(&request);
    TrainPlan *plan = &prediction.plan;
    Error error = {0};
    cr_assert_eq(mesh_parse("tp=8,pp=2", &plan->mesh, &error), STATUS_OK);
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].scope != PLAN_OF_BATCH) {
            plan_set(plan, (PlanFieldId)id, target_usual(request.target, plan, (PlanFieldId)id));
        }
    }
    plan->seq = 4096;
    plan->grad_accum = 8;
    plan->pp_schedule = PP_1F1B;
    plan->precision = DTYPE_FP8;
    plan->tp_overlap = true;
    target_canonical(request.target, plan);
    cr_assert_eq(host_intervals(&request, &prediction, 1, &error), STATUS_OK, "%s", error.message);
    cr_expect(prediction.step_high_s <= all_by_its_host() * (1 + 1e-9), "%g", prediction.step_high_s);
    arena_free(&arena);
}

Test(interval, of_the_last_prediction_has_its_hosts_pace_as_the_first_has) {
    enum { MANY = 40 };
    Arena arena = {0};
    const TuneRequest request = request_for(&arena, 8, "125m", "dgx-h100", "megatron");
    Prediction predictions[MANY];
    Error error = {0};
    for (int i = 0; i < MANY; i++) {
        predictions[i] = prediction_on_8(&request);
    }
    cr_assert_eq(host_intervals(&request, predictions, MANY, &error), STATUS_OK, "%s", error.message);
    cr_expect_gt(predictions[0].step_high_s, 1.15);
    cr_expect_eq(predictions[MANY - 1].step_high_s, predictions[0].step_high_s);
    arena_free(&arena);
}

// What was estimated is not again: only a slower host is.
Test(interval, of_an_estimate_is_that_of_the_same_plan_simulated) {
    Arena arena = {0};
    const TuneRequest request = request_for(&arena, 8, "125m", "dgx-h100", "megatron");
    const CostModel cost = {.profile = &request.cluster, .target = request.target};
    Prediction simulated = prediction_on_8(&request), estimated = simulated;
    Analytic *analytic = analytic_new(&request.model, &cost, &arena);
    Estimate estimate;
    Error error = {0};
    cr_assert_eq(analytic_estimate(analytic, &estimated.plan, &estimate, &error), STATUS_OK, "%s", error.message);
    analytic_free(analytic);
    estimated.origin = ORIGIN_ESTIMATE;
    estimated.step_s = estimate.step_s;
    estimated.step_low_s *= estimate.step_s;
    estimated.step_high_s *= estimate.step_s;
    cr_assert_eq(host_intervals(&request, &simulated, 1, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(host_intervals(&request, &estimated, 1, &error), STATUS_OK, "%s", error.message);
    cr_expect_float_eq(estimated.step_high_s / estimated.step_s, simulated.step_high_s, 1e-9);
    cr_expect_gt(simulated.step_high_s, 1.15);
    arena_free(&arena);
}

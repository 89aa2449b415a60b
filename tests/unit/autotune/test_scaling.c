// Time, cost and efficiency by hand.

#include <criterion/criterion.h>

#include "autotune/explain/scaling.h"

static TuneRequest requests[3];
static ScalingPoint points[3];
static ScalingCurve curve;

// Worlds 4, 8 and 16: nothing runs on 4, then 1000 tokens/s on 8 and 1600 on 16, at $2 per accelerator and hour.
static void begin(void) {
    static const int worlds[] = {4, 8, 16};
    static const double tokens_per_s[] = {0, 1000, 1600};
    static const double reserved[] = {0, 70, 40};
    for (int i = 0; i < 3; i++) {
        requests[i] = (TuneRequest){.world = worlds[i]};
        requests[i].cluster.price_usd_per_accelerator_hour = 2;
        points[i] = (ScalingPoint){.request = &requests[i], .feasible = i > 0};
        points[i].best.tokens_per_s = tokens_per_s[i];
        points[i].best.memory.reserved_bytes = reserved[i];
    }
    curve = (ScalingCurve){.points = points, .count = 3};
}

TestSuite(scaling, .init = begin);

Test(scaling, efficiency_is_against_the_smallest_world_that_runs) {
    scaling_finish(&curve, OBJECTIVE_THROUGHPUT);
    cr_assert_eq(points[0].efficiency, 0);
    cr_assert_eq(points[1].efficiency, 1);
    cr_assert_float_eq(points[2].efficiency, 0.8, 1e-15);  // 100 tokens/s each of 125
}

Test(scaling, each_objective_has_its_best_world) {
    scaling_finish(&curve, OBJECTIVE_THROUGHPUT);
    cr_assert_eq(curve.best, 2);
    scaling_finish(&curve, OBJECTIVE_COST);
    cr_assert_eq(curve.best, 1);  // 125 tokens/s per accelerator against 100
    scaling_finish(&curve, OBJECTIVE_MEMORY);
    cr_assert_eq(curve.best, 2);
}

Test(scaling, where_nothing_runs_nothing_is_best) {
    points[1].feasible = points[2].feasible = false;
    scaling_finish(&curve, OBJECTIVE_THROUGHPUT);
    cr_assert_eq(curve.best, -1);
}

Test(scaling, tokens_take_time_and_cost_money) {
    // 3.6e6 tokens at 1000/s take an hour; 8 accelerators at $2
    cr_assert_float_eq(scaling_seconds(&points[1].best, 3.6e6), 3600, 1e-9);
    cr_assert_float_eq(scaling_usd(&requests[1], &points[1].best, 3.6e6), 16, 1e-9);
}

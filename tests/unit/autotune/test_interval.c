// The interval of a step time.

#include <criterion/criterion.h>
#include <math.h>

#include "autotune/interval.h"

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

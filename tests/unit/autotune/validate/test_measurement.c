// Each number is derived next to it.

#include <criterion/criterion.h>
#include <math.h>

#include "autotune/validate/measurement.h"

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(measurement, .fini = end);

Test(measurement, the_warm_up_does_not_count) {
    const double steps[] = {9, 8, 1, 3, 2};
    cr_assert_eq(measurement_median(steps, 5, 2, &arena), 2);
}

Test(measurement, a_step_without_a_time_does_not_count) {
    const double steps[] = {9, 1, NAN, 3};
    cr_assert_eq(measurement_median(steps, 4, 1, &arena), 2);
}

Test(measurement, of_warm_up_alone_there_is_no_median) {
    const double steps[] = {9};
    cr_assert_eq(measurement_median(steps, 1, 1, &arena), 0);
}

Test(measurement, an_interval_of_eight_leaves_out_one_at_each_end) {
    const double values[] = {8, 7, 6, 5, 4, 3, 2, 1};  // 2 P(B(8, 1/2) <= 1) = 2 * 9/256 = 0.07; <= 2: 0.29
    double low, high;
    measurement_interval(values, 8, &arena, &low, &high);
    cr_assert_eq(low, 2);
    cr_assert_eq(high, 7);
}

Test(measurement, of_few_values_the_interval_is_their_range) {
    const double values[] = {3, 1, 2};
    double low, high;
    measurement_interval(values, 3, &arena, &low, &high);
    cr_assert_eq(low, 1);
    cr_assert_eq(high, 3);
}

Test(measurement, an_interval_of_thousands_is_narrow_and_not_empty) {
    enum { COUNT = 4000 };
    double values[COUNT], low, high;
    for (int i = 0; i < COUNT; i++) {
        values[i] = i;
    }
    measurement_interval(values, COUNT, &arena, &low, &high);
    cr_assert_float_eq(low, 1947, 2);  // normal: 2000 - 1.645 sqrt(4000) / 2 = 1948
    cr_assert_float_eq(high, COUNT - 1 - low, 0.1);
}

Test(measurement, the_spread_of_repeats_is_the_largest_over_the_smallest) {
    const double values[] = {1.1, 1.0, 1.25};
    cr_assert_float_eq(measurement_spread(values, 3), 0.25, 1e-15);
    cr_assert(isnan(measurement_spread(values, 1)));
}

Test(measurement, regret_is_what_the_predicted_best_takes_longer_than_the_best) {
    const double predicted[] = {1.0, 1.1, 2.0}, measured[] = {1.2, 1.0, 3.0};
    Agreement agreement;
    measurement_agree(predicted, measured, 3, &arena, &agreement);
    cr_assert_eq(agreement.best_predicted, 0);
    cr_assert_eq(agreement.best_measured, 1);
    cr_assert_float_eq(agreement.regret, 1.2, 1e-15);
    cr_assert_float_eq(agreement.kendall_tau, 1.0 / 3.0, 1e-15);  // two pairs agree, one does not
}

Test(measurement, errors_are_relative_to_what_was_measured) {
    const double predicted[] = {1, 3, 4}, measured[] = {2, 2, 5};  // -0.5, 0.5, -0.2
    Agreement agreement;
    measurement_agree(predicted, measured, 3, &arena, &agreement);
    cr_assert_float_eq(agreement.median_abs_error, 0.5, 1e-15);
    cr_assert_float_eq(agreement.median_bias, -0.2, 1e-15);
}

Test(measurement, one_constant_rate_stands_next_to_the_prediction) {
    const double predicted[] = {1, 2, 3}, measured[] = {1, 2, 4};  // the middle, 2, against each: 1, 0, -0.5
    Agreement agreement;
    measurement_agree(predicted, measured, 3, &arena, &agreement);
    cr_assert_float_eq(agreement.constant_median_abs_error, 0.5, 1e-15);
    measurement_agree(predicted, measured, 1, &arena, &agreement);
    cr_assert(isnan(agreement.constant_median_abs_error));
}

Test(measurement, nothing_agrees_with_nothing) {
    Agreement agreement;
    measurement_agree(NULL, NULL, 0, &arena, &agreement);
    cr_assert_eq(agreement.best_predicted, -1);
    cr_assert(isnan(agreement.regret));
}

// Each number is derived next to it.

#include <criterion/criterion.h>
#include <math.h>

#include "autotune/accuracy/statistics.h"

Test(statistics, the_median_of_an_even_count_is_the_middle_of_two) {
    double values[] = {4, 1, 3, 2};
    cr_assert_float_eq(statistics_median(values, 4), 2.5, 1e-15);
}

Test(statistics, a_quantile_lies_between_order_statistics) {
    double values[] = {0.5, 0.1, 0.0, 0.3, 0.1};  // sorted 0, .1, .1, .3, .5; place 0.9 * 4 = 3.6: .3 + .6 * .2
    cr_assert_float_eq(statistics_quantile(values, 5, 0.9), 0.42, 1e-15);
}

Test(statistics, of_one_value_every_quantile_is_that_value) {
    double value = 7;
    cr_assert_eq(statistics_quantile(&value, 1, 0.9), 7);
}

Test(statistics, of_nothing_the_median_is_zero) {
    cr_assert_eq(statistics_median(NULL, 0), 0);
}

Test(statistics, kendalls_tau_counts_pairs) {
    const double a[] = {1, 2, 3, 4}, b[] = {1, 3, 2, 4};  // 5 pairs agree, 1 does not: 4 / 6
    cr_assert_float_eq(statistics_kendall_tau(a, b, 4), 4.0 / 6.0, 1e-15);
}

Test(statistics, ties_shrink_the_denominator_of_kendalls_tau) {
    const double a[] = {1, 2, 2, 3}, b[] = {1, 2, 3, 4};  // 5 pairs agree, a orders 5 and b orders 6 of them
    cr_assert_float_eq(statistics_kendall_tau(a, b, 4), 5.0 / sqrt(30.0), 1e-15);
}

Test(statistics, a_reversed_order_has_tau_minus_one) {
    const double a[] = {1, 2, 3}, b[] = {9, 8, 7};
    cr_assert_float_eq(statistics_kendall_tau(a, b, 3), -1.0, 1e-15);
}

Test(statistics, against_a_constant_there_is_no_tau) {
    const double a[] = {1, 2, 3}, b[] = {5, 5, 5};
    cr_assert(isnan(statistics_kendall_tau(a, b, 3)));
}

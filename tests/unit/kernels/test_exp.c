// exp_fast is used inside the kernels; its error bound is checked here on a dense sweep.

#include "kernels/cpu/lanes.h"

#include <criterion/criterion.h>
#include <math.h>

Test(exp_fast, is_within_two_ulp_of_exp) {
    for (float x = -87.0f; x < 88.36f; x += 1.0f / 4096) {
        const double want = exp((double)x);
        const double ulp = (double)(nextafterf((float)want, INFINITY) - (float)want);
        cr_assert_lt(fabs((double)exp_fast(x) - want), 2.0 * ulp, "at %.9g", (double)x);
    }
}

Test(exp_fast, is_exact_at_zero_and_right_at_the_ends) {
    cr_assert_eq(exp_fast(0.0f), 1.0f);
    cr_assert_eq(exp_fast(-INFINITY), 0.0f);
    cr_assert_eq(exp_fast(-200.0f), 0.0f);
    cr_assert_eq(exp_fast(-88.0f), 0.0f);
    cr_assert_eq(exp_fast(INFINITY), INFINITY);
    cr_assert_eq(exp_fast(1e30f), INFINITY);
    cr_assert(isnan(exp_fast(NAN)));
}

// Laws of the statistics over random samples. The seed is printed; NDTUNE_SEED repeats a failure.

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "autotune/validate/measurement.h"
#include "tests/support/seed.h"
#include "tests/support/splitmix.h"

enum { ROUNDS = 300, MOST = 40, TRIALS = 4000 };

static double uniform(uint64_t *state) {
    return (double)(splitmix_next(state) >> 11) * 0x1p-53;
}

static uint64_t seed_begin(void) {
    return seed_of_run("measurements", 20261120);
}

static int fill(double *values, uint64_t *seed) {
    const int count = 1 + (int)(splitmix_next(seed) % MOST);
    for (int i = 0; i < count; i++) {
        values[i] = 0.01 - log(1 - uniform(seed));  // a long tail, as times have
    }
    return count;
}

Test(measurement_properties, the_interval_holds_the_median_of_its_sample) {
    uint64_t seed = seed_begin();
    Arena arena = {0};
    for (int round = 0; round < ROUNDS; round++) {
        double values[MOST], low, high;
        const int count = fill(values, &seed);
        const double median = measurement_median(values, count, 0, &arena);
        measurement_interval(values, count, &arena, &low, &high);
        cr_assert(low <= median && median <= high, "round %d", round);
    }
    arena_free(&arena);
}

Test(measurement_properties, the_interval_holds_the_true_median_nine_times_in_ten) {
    uint64_t seed = seed_begin();
    Arena arena = {0};
    const int counts[] = {8, 15, 30};
    for (int c = 0; c < 3; c++) {
        int held = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            double values[MOST], low, high;
            for (int i = 0; i < counts[c]; i++) {
                values[i] = -log(1 - uniform(&seed));
            }
            measurement_interval(values, counts[c], &arena, &low, &high);
            held += low <= log(2) && log(2) <= high;
            arena_reset(&arena);
        }
        cr_assert_gt(held, 0.89 * TRIALS, "%d values: %d of %d", counts[c], held, TRIALS);  // 0.9 less 2 sigma
    }
    arena_free(&arena);
}

Test(measurement_properties, a_perfect_order_has_no_regret_however_wrong_the_times) {
    uint64_t seed = seed_begin();
    Arena arena = {0};
    for (int round = 0; round < ROUNDS; round++) {
        double measured[MOST], predicted[MOST];
        const int count = fill(measured, &seed);
        for (int i = 0; i < count; i++) {
            predicted[i] = 3 * pow(measured[i], 0.7);
        }
        Agreement agreement;
        measurement_agree(predicted, measured, count, &arena, &agreement);
        cr_assert_eq(agreement.regret, 1);
        cr_assert(count < 2 || fabs(agreement.kendall_tau - 1) < 1e-12, "round %d", round);
    }
    arena_free(&arena);
}

Test(measurement_properties, regret_is_never_below_one) {
    uint64_t seed = seed_begin();
    Arena arena = {0};
    for (int round = 0; round < ROUNDS; round++) {
        double measured[MOST], predicted[MOST];
        const int count = fill(measured, &seed);
        for (int i = 0; i < count; i++) {
            predicted[i] = uniform(&seed);
        }
        Agreement agreement;
        measurement_agree(predicted, measured, count, &arena, &agreement);
        cr_assert_geq(agreement.regret, 1);
    }
    arena_free(&arena);
}

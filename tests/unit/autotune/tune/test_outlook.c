// Who wins, and what to run next, where the answer is known by hand.

#include <criterion/criterion.h>
#include <gsl/gsl_cdf.h>
#include <math.h>

#include "autotune/tune/outlook.h"

enum { MOST = 4 };

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(outlook, .fini = forget);

// Independent shapes with these means and standard deviations.
static Belief apart(const double *mean, const double *sd, int count) {
    Belief belief = {.count = count,
                     .mean = ARENA_ARRAY(&arena, double, count),
                     .covariance = ARENA_ARRAY(&arena, double, MOST *MOST),
                     .out = ARENA_ARRAY(&arena, bool, count),
                     .lean = ARENA_ARRAY(&arena, double, count),
                     .run_sd = 0.01};
    for (int i = 0; i < count; i++) {
        belief.mean[i] = mean[i];
        belief.covariance[i * count + i] = sd[i] * sd[i];
    }
    return belief;
}

static Outlook taken(const Belief *belief, double tolerance) {
    Outlook outlook;
    Error error = {0};
    cr_assert_eq(outlook_take(belief, tolerance, 1, &arena, &outlook, &error), STATUS_OK, "%s", error.message);
    return outlook;
}

// The difference of the two is N(0.1, 2 * 0.05^2): P(first is faster) = Phi(0.1 / 0.0707) = 0.921.
Test(outlook, the_probability_of_two_shapes_is_that_of_their_difference) {
    const double mean[] = {0, 0.1}, sd[] = {0.05, 0.05};
    const Belief belief = apart(mean, sd, 2);
    const Outlook outlook = taken(&belief, 0);
    const double p = gsl_cdf_ugaussian_P(0.1 / (0.05 * sqrt(2)));
    cr_assert_eq(outlook.winner, 0);
    cr_assert_float_eq(outlook.probability, p, 5 * sqrt(p * (1 - p) / OUTLOOK_DRAWS));
    cr_assert_float_eq(outlook.entropy, -p * log2(p) - (1 - p) * log2(1 - p), 0.05);
}

Test(outlook, equal_shapes_are_both_good_within_the_tolerance) {
    const double mean[] = {0, 0.001}, sd[] = {0.001, 0.001};
    const Belief belief = apart(mean, sd, 2);
    const Outlook outlook = taken(&belief, 0.01);
    cr_assert_gt(outlook.good[0], 0.999);
    cr_assert_gt(outlook.good[1], 0.999);
    cr_assert_gt(outlook.entropy, 0.1, "which of the two is the fastest stays open");
}

Test(outlook, what_is_out_does_not_win) {
    const double mean[] = {0, 1, 2}, sd[] = {0.01, 0.01, 0.01};
    const Belief belief = apart(mean, sd, 3);
    ((bool *)belief.out)[0] = true;
    const Outlook outlook = taken(&belief, 0.01);
    double gain;
    cr_assert_eq(outlook.winner, 1);
    cr_assert_eq(outlook.good[0], 0);
    cr_assert_neq(outlook_next(&belief, &outlook, 1, &arena, &gain), 0);
}

Test(outlook, nobody_wins_where_all_are_out) {
    const double mean[] = {0, 1}, sd[] = {0.1, 0.1};
    const Belief belief = apart(mean, sd, 2);
    ((bool *)belief.out)[0] = ((bool *)belief.out)[1] = true;
    const Outlook outlook = taken(&belief, 0.01);
    double gain;
    cr_assert_eq(outlook.winner, -1);
    cr_assert_eq(outlook_next(&belief, &outlook, 1, &arena, &gain), -1);
}

// Two contenders close together and one far behind: a run of the third cannot change the winner.
Test(outlook, a_shape_that_cannot_win_is_not_run) {
    const double mean[] = {0, 0.02, 1}, sd[] = {0.05, 0.05, 0.05};
    const Belief belief = apart(mean, sd, 3);
    const Outlook outlook = taken(&belief, 0.001);
    double gain;
    cr_assert_neq(outlook_next(&belief, &outlook, 1, &arena, &gain), 2);
    cr_assert_gt(gain, 0.1);
}

// The same means, one known and one not: only a run of the unknown one tells.
Test(outlook, the_unknown_one_of_two_is_run) {
    const double mean[] = {0, 0}, known_first[] = {0.001, 0.2}, known_second[] = {0.2, 0.001};
    const Belief first = apart(mean, known_first, 2), second = apart(mean, known_second, 2);
    const Outlook of_first = taken(&first, 0.01), of_second = taken(&second, 0.01);
    double gain;
    cr_assert_eq(outlook_next(&first, &of_first, 1, &arena, &gain), 1);
    cr_assert_gt(gain, 0.7, "nearly the whole bit: %g", gain);
    cr_assert_eq(outlook_next(&second, &of_second, 1, &arena, &gain), 0);
}

// Two shapes that rise and fall together: a run of one says where both are.
Test(outlook, a_run_tells_little_of_who_wins_where_shapes_move_together) {
    const double mean[] = {0, 0}, sd[] = {0.2, 0.2};
    Belief belief = apart(mean, sd, 2);
    belief.covariance[1] = belief.covariance[2] = 0.2 * 0.2 * 0.999;  // they rise and fall together
    const Outlook together = taken(&belief, 0);
    double gain_together, gain_apart;
    outlook_next(&belief, &together, 1, &arena, &gain_together);
    const Belief alone = apart(mean, sd, 2);
    const Outlook outlook = taken(&alone, 0);
    outlook_next(&alone, &outlook, 1, &arena, &gain_apart);
    cr_assert_lt(gain_together, 0.05, "one run says where both are, not which is faster: %g", gain_together);
    cr_assert_gt(gain_apart, 0.2);
}

#include "kernels/kernels.h"
#include "kernels/shared_expert.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { ROWS = 37, EXPERTS = 6, ACTIVE = 2, CHOICES = ROWS * ACTIVE, COLS = 19 };

typedef struct Routed {
    float logits[ROWS * EXPERTS], weights[CHOICES];
    int32_t places[CHOICES], counts[EXPERTS];
} Routed;

static KernelRoute shape_of(bool unscaled) {
    return (KernelRoute){.rows = ROWS, .experts = EXPERTS, .active = ACTIVE, .unscaled = unscaled};
}

static Routed routed_of(bool unscaled) {
    Routed routed;
    float *logits = check_floats(ROWS * EXPERTS, 1);
    memcpy(routed.logits, logits, sizeof routed.logits);
    free(logits);
    const KernelRoute shape = shape_of(unscaled);
    kernel_route(&shape, routed.logits, routed.weights, routed.places, routed.counts);
    return routed;
}

static int expert_of(const Routed *routed, int choice) {
    int expert = 0, end = routed->counts[0];
    while (routed->places[choice] >= end) {
        end += routed->counts[++expert];
    }
    return expert;
}

// ---------------------------------------------------------------------------------------------- routing

Test(kernel_experts, a_row_visits_the_experts_of_its_largest_logits) {
    const Routed routed = routed_of(false);
    for (int row = 0; row < ROWS; row++) {
        const float *logits = routed.logits + row * EXPERTS;
        const int first = expert_of(&routed, row * ACTIVE), second = expert_of(&routed, row * ACTIVE + 1);
        for (int e = 0; e < EXPERTS; e++) {
            cr_expect(logits[e] <= logits[first]);
            cr_expect(e == first || logits[e] <= logits[second]);
        }
    }
}

// The rows of each expert are contiguous, those of earlier rows first.
Test(kernel_experts, places_are_in_the_order_of_experts_and_then_of_rows) {
    const Routed routed = routed_of(false);
    int at[CHOICES], sum = 0;
    for (int i = 0; i < CHOICES; i++) {
        at[i] = -1;
    }
    for (int i = 0; i < CHOICES; i++) {
        cr_assert(routed.places[i] >= 0 && routed.places[i] < CHOICES && at[routed.places[i]] == -1);
        at[routed.places[i]] = i;
    }
    for (int p = 1; p < CHOICES; p++) {
        const int before = expert_of(&routed, at[p - 1]), here = expert_of(&routed, at[p]);
        cr_expect(before < here || (before == here && at[p - 1] < at[p]));
    }
    for (int e = 0; e < EXPERTS; e++) {
        sum += routed.counts[e];
    }
    cr_expect_eq(sum, CHOICES);
}

Test(kernel_experts, of_equal_logits_the_lower_expert_is_visited) {
    const float logits[] = {1, 3, 3, 3, 0, 3};
    float weights[3];
    int32_t places[3], counts[EXPERTS];
    const KernelRoute shape = {.rows = 1, .experts = EXPERTS, .active = 3};
    kernel_route(&shape, logits, weights, places, counts);
    const int32_t want[EXPERTS] = {0, 1, 1, 1, 0, 0};
    cr_expect_arr_eq(counts, want, sizeof want);
    cr_expect_float_eq(weights[0], 1.0 / 3, 1e-7);
}

Test(kernel_experts, logits_that_are_no_numbers_still_choose_as_many_experts) {
    const float logits[] = {NAN, NAN, 1, NAN, NAN, INFINITY};
    float weights[4];
    int32_t places[4], counts[EXPERTS];
    const KernelRoute shape = {.rows = 1, .experts = EXPERTS, .active = 4};
    kernel_route(&shape, logits, weights, places, counts);
    const int32_t want[EXPERTS] = {1, 1, 1, 0, 0, 1};
    cr_expect_arr_eq(counts, want, sizeof want);
    for (int i = 0; i < 4; i++) {
        cr_expect(places[i] >= 0 && places[i] < 4);
    }
}

// exp(2), exp(1) and exp(0) are the logits' shares: of the two chosen, or of all.
Test(kernel_experts, weights_are_of_the_softmax_over_the_choices_or_over_all) {
    const float logits[] = {0, 2, 1};
    float weights[2];
    int32_t places[2], counts[3];
    const double two = exp(2) + exp(1);
    for (int unscaled = 0; unscaled < 2; unscaled++) {
        const KernelRoute shape = {.rows = 1, .experts = 3, .active = 2, .unscaled = unscaled};
        kernel_route(&shape, logits, weights, places, counts);
        cr_expect_float_eq(weights[0], exp(2) / (two + unscaled), 1e-7);
        cr_expect_float_eq(weights[1], exp(1) / (two + unscaled), 1e-7);
    }
}

typedef struct Choice {
    const Routed *routed;
    double *logits;
    const float *dweights;
    bool unscaled;
} Choice;

// The sum of dweights times weights, with the chosen experts fixed.
static double weighed(const void *context) {
    const Choice *c = context;
    double sum = 0;
    for (int row = 0; row < ROWS; row++) {
        double all = 0, of_row = 0;
        for (int e = 0; e < EXPERTS && c->unscaled; e++) {
            all += exp(c->logits[row * EXPERTS + e]);
        }
        for (int i = row * ACTIVE; i < (row + 1) * ACTIVE; i++) {
            const double share = exp(c->logits[row * EXPERTS + expert_of(c->routed, i)]);
            all += c->unscaled ? 0 : share;
            of_row += share * (double)c->dweights[i];
        }
        sum += of_row / all;
    }
    return sum;
}

static void check_gradient(const KernelRoute *shape, Routed routed, double (*sum)(const void *context), bool unscaled) {
    float *dweights = check_floats(CHOICES, 2), dlogits[ROWS * EXPERTS];
    kernel_route_backward(shape, routed.logits, routed.weights, routed.places, routed.counts, dweights, dlogits);
    Choice c = {&routed, check_doubles(routed.logits, ROWS * EXPERTS), dweights, unscaled};
    for (int i = 0; i < ROWS * EXPERTS; i++) {
        cr_assert_float_eq(dlogits[i], check_slope(sum, &c, c.logits + i), 1e-6);
    }
    free(dweights), free(c.logits);
}

Test(kernel_experts, the_gradient_of_the_logits_equals_central_differences) {
    for (int unscaled = 0; unscaled < 2; unscaled++) {
        const KernelRoute shape = shape_of(unscaled);
        check_gradient(&shape, routed_of(unscaled), weighed, unscaled);
    }
}

// ---------------------------------------------------------------------------------------------- sigmoids

static Routed routed_by_scores(const KernelRoute *shape) {
    Routed routed = routed_of(false);
    kernel_route(shape, routed.logits, routed.weights, routed.places, routed.counts);
    return routed;
}

static double score(double logit) {
    return 1 / (1 + exp(-logit));
}

// Groups {0,1} {2,3} {4,5}: of their sums .9 .8 .7 the first two are open, and the largest score, expert 4's, is shut.
Test(kernel_experts, of_scores_the_largest_with_their_corrections_in_the_best_groups_are_visited) {
    const float scores[] = {0.5F, 0.4F, 0.4F, 0.3F, 0.65F, 0.05F}, correction[] = {0, 0, 0, 0.15F, 0, 0};
    float logits[EXPERTS], weights[ACTIVE];
    int32_t places[ACTIVE], counts[EXPERTS];
    const int32_t want[] = {1, 1, 0, 0, 0, 0}, corrected[] = {0, 0, 1, 1, 0, 0};
    KernelRoute shape = {
        .rows = 1, .experts = EXPERTS, .active = ACTIVE, .sigmoid = true, .groups = 3, .active_groups = 2, .factor = 2};
    for (int e = 0; e < EXPERTS; e++) {
        logits[e] = logf(scores[e] / (1 - scores[e]));
    }
    shape.correction = correction;  // .3 + .15 of expert 3 comes before the .4 of experts 1 and 2
    kernel_route(&shape, logits, weights, places, counts);
    cr_expect_eq(counts[0] + counts[3], 2);
    cr_expect_float_eq(weights[0] + weights[1], 2, 1e-6);
    shape.correction = NULL;
    kernel_route(&shape, logits, weights, places, counts);
    cr_expect_arr_eq(counts, want, sizeof want);
    cr_expect_float_eq(weights[0], 2 * 0.5 / 0.9, 1e-6);
    shape.active_groups = 1;
    shape.correction = (const float[]){0, 0, 0.2F, 0.2F, 0, 0};
    kernel_route(&shape, logits, weights, places, counts);
    cr_expect_arr_eq(counts, corrected, sizeof corrected);
    cr_expect_float_eq(weights[0], 2 * 0.4 / 0.7, 1e-6, "weights are of scores without corrections");
}

static double weighed_scores(const void *context) {
    const Choice *c = context;
    double sum = 0;
    for (int row = 0; row < ROWS; row++) {
        double all = c->unscaled ? 1 : 0, of_row = 0;
        for (int i = row * ACTIVE; i < (row + 1) * ACTIVE; i++) {
            const double share = score(c->logits[row * EXPERTS + expert_of(c->routed, i)]);
            all += c->unscaled ? 0 : share;
            of_row += 2.5 * share * (double)c->dweights[i];
        }
        sum += of_row / all;
    }
    return sum;
}

Test(kernel_experts, the_gradient_of_logits_that_scores_come_from_equals_central_differences) {
    for (int unscaled = 0; unscaled < 2; unscaled++) {
        KernelRoute shape = shape_of(unscaled);
        shape.sigmoid = true;
        shape.groups = 3;
        shape.active_groups = 2;
        shape.factor = 2.5F;
        check_gradient(&shape, routed_by_scores(&shape), weighed_scores, unscaled);
    }
}

// ---------------------------------------------------------------------------------------------- load balancing

typedef struct Spreading {
    double *logits;
    const float *visits;
    bool sigmoid;
} Spreading;

// One sequence of all rows.
static double spreading_loss(const void *context) {
    const Spreading *s = context;
    double sum = 0;
    for (int row = 0; row < ROWS; row++) {
        double all = 0, of_row = 0;
        for (int e = 0; e < EXPERTS; e++) {
            const double logit = s->logits[row * EXPERTS + e], chance = s->sigmoid ? score(logit) : exp(logit);
            all += chance;
            of_row += chance * (double)s->visits[e];
        }
        sum += 0.25 * of_row / all;
    }
    return sum;
}

Test(kernel_experts, visits_are_counted_and_the_spreading_loss_pulls_as_central_differences_say) {
    for (int sigmoid = 0; sigmoid < 2; sigmoid++) {
        KernelRoute shape = shape_of(false);
        shape.sigmoid = sigmoid;
        shape.groups = shape.active_groups = sigmoid;
        shape.factor = 1;
        const Routed routed = routed_by_scores(&shape);
        float visits[EXPERTS], dlogits[ROWS * EXPERTS];
        kernel_count_visits(&shape, ROWS, routed.places, routed.counts, visits);
        for (int e = 0; e < EXPERTS; e++) {
            cr_expect_eq(visits[e], (float)routed.counts[e]);
        }
        memset(dlogits, 0, sizeof dlogits);
        kernel_balance_backward(&shape, ROWS, 0.25F, visits, routed.logits, dlogits);
        Spreading s = {check_doubles(routed.logits, ROWS * EXPERTS), visits, sigmoid};
        for (int i = 0; i < ROWS * EXPERTS; i++) {
            cr_assert_float_eq(dlogits[i], check_slope(spreading_loss, &s, s.logits + i), 1e-5);
        }
        free(s.logits);
    }
}

// ---------------------------------------------------------------------------------------------- rows and places

static KernelSpread spread_of(const Routed *routed) {
    return (KernelSpread){ROWS, COLS, ACTIVE, routed->places};
}

Test(kernel_experts, rows_that_are_spread_and_collected_are_their_weighted_sums) {
    const Routed routed = routed_of(true);
    const KernelSpread shape = spread_of(&routed);
    float *x = check_floats(ROWS * COLS, 3), *more = check_floats(ROWS * COLS, 4);
    float y[CHOICES * COLS], back[ROWS * COLS];
    kernel_spread(&shape, x, y);
    for (int i = 0; i < CHOICES; i++) {
        cr_assert_arr_eq(y + routed.places[i] * COLS, x + i / ACTIVE * COLS, COLS * sizeof *x);
    }
    kernel_collect(&shape, routed.weights, y, more, back);
    for (int i = 0; i < ROWS * COLS; i++) {
        const float *w = routed.weights + i / COLS * ACTIVE;
        cr_assert_float_eq(back[i], (double)more[i] + ((double)w[0] + (double)w[1]) * (double)x[i], 1e-6);
    }
    kernel_collect(&shape, NULL, y, NULL, back);
    for (int i = 0; i < ROWS * COLS; i++) {
        cr_assert_eq(back[i], x[i] + x[i]);
    }
    free(x), free(more);
}

Test(kernel_experts, gradients_of_the_sum_are_weighted_rows_and_their_products) {
    const Routed routed = routed_of(false);
    const KernelSpread shape = spread_of(&routed);
    float *dx = check_floats(ROWS * COLS, 5), *y = check_floats(CHOICES * COLS, 6);
    float dy[CHOICES * COLS], dweights[CHOICES];
    kernel_collect_backward(&shape, routed.weights, dx, y, dy, dweights);
    for (int i = 0; i < CHOICES; i++) {
        double product = 0;
        for (int col = 0; col < COLS; col++) {
            const float of_row = dx[i / ACTIVE * COLS + col];
            cr_assert_eq(dy[routed.places[i] * COLS + col], routed.weights[i] * of_row);
            product += (double)of_row * (double)y[routed.places[i] * COLS + col];
        }
        cr_assert_float_eq(dweights[i], product, 1e-6);
    }
    free(dx), free(y);
}

// ---------------------------------------------------------------------------------------------- groups

// From two ranks for three experts, one of them without rows: a0 a0 c0 | a1 b1 b1.
Test(kernel_experts, rows_of_parts_are_regrouped_and_brought_back) {
    const int32_t counts[] = {2, 0, 1, 1, 2, 0};
    const KernelGroups groups = {2, 3, counts};
    const float came[] = {1, 2, 3, 4, 5, 6}, want[] = {1, 2, 4, 5, 6, 3};
    float sorted[6], back[6];
    kernel_regroup(&groups, 1, false, came, sorted);
    cr_expect_arr_eq(sorted, want, sizeof want);
    kernel_regroup(&groups, 1, true, sorted, back);
    cr_expect_arr_eq(back, came, sizeof came);
}

// Counts come in two parts; the second group has no rows.
Test(kernel_experts, grouped_products_are_the_products_of_each_group) {
    enum { GROUPS = 3, OUTER = 9, INNER = 7, ALL = 18 };
    const int32_t counts[] = {3, 0, 4, 5, 0, 6};
    const KernelGroups groups = {2, GROUPS, counts};
    const int64_t rows[GROUPS] = {8, 0, 10};
    float *x = check_floats(ALL * INNER, 7), *w = check_floats(GROUPS * OUTER * INNER, 8);
    float *dy = check_floats(ALL * OUTER, 9), *before = check_floats(GROUPS * OUTER * INNER, 10);
    float y[ALL * OUTER], dx[ALL * INNER], dw[GROUPS * OUTER * INNER], want[GROUPS * OUTER * INNER];
    kernel_grouped_gemm(&groups, false, true, OUTER, INNER, x, w, y, false);
    kernel_grouped_gemm(&groups, false, false, INNER, OUTER, dy, w, dx, false);
    memcpy(dw, before, sizeof dw);
    kernel_grouped_gemm(&groups, true, false, OUTER, INNER, dy, x, dw, true);
    int64_t first = 0;
    for (int g = 0; g < GROUPS; first += rows[g++]) {
        const int64_t at = g * OUTER * INNER;
        kernel_gemm(false, true, rows[g], OUTER, INNER, x + first * INNER, w + at, want, false);
        cr_expect_arr_eq(y + first * OUTER, want, (size_t)(rows[g] * OUTER) * sizeof *want);
        kernel_gemm(false, false, rows[g], INNER, OUTER, dy + first * OUTER, w + at, want, false);
        cr_expect_arr_eq(dx + first * INNER, want, (size_t)(rows[g] * INNER) * sizeof *want);
        memcpy(want, before + at, OUTER * INNER * sizeof *want);
        kernel_gemm(true, false, OUTER, INNER, rows[g], dy + first * OUTER, x + first * INNER, want, true);
        cr_expect_arr_eq(dw + at, want, OUTER * INNER * sizeof *want);
    }
    kernel_grouped_gemm(&groups, true, false, OUTER, INNER, dy, x, dw, false);
    for (int i = 0; i < OUTER * INNER; i++) {
        cr_expect_eq(dw[OUTER * INNER + i], 0, "of a group without rows");
    }
    free(x), free(w), free(dy), free(before);
}

// ---------------------------------------------------------------------------------------------- the shared expert

typedef struct SharedCase {
    double gate[ROWS], y[ROWS * COLS];
    const float *dx;
} SharedCase;

static double shared_value(const void *context) {
    const SharedCase *s = context;
    double value = 0;
    for (int i = 0; i < ROWS * COLS; i++) {
        value += (double)s->dx[i] * s->y[i] / (1 + exp(-s->gate[i / COLS]));
    }
    return value;
}

Test(kernel_experts, a_shared_expert_is_added_by_its_gate_and_backward_equals_central_differences) {
    float *gate = check_floats(ROWS, 4), *y = check_floats(ROWS * COLS, 5), *dx = check_floats(ROWS * COLS, 6);
    float *was = check_floats(ROWS * COLS, 7), x[ROWS * COLS], dy[ROWS * COLS], dgate[ROWS];
    SharedCase s = {.dx = dx};
    const KernelShared shared = {ROWS, COLS, gate, y};
    memcpy(x, was, sizeof x);
    for (int i = 0; i < ROWS * COLS; i++) {
        s.y[i] = (double)y[i];
        s.gate[i / COLS] = (double)gate[i / COLS];
    }
    kernel_shared(&shared, x);
    kernel_shared_backward(&shared, dx, dy, dgate);
    for (int i = 0; i < ROWS * COLS; i++) {
        cr_assert_float_eq(x[i], (double)was[i] + s.y[i] / (1 + exp(-s.gate[i / COLS])), 1e-6);
        cr_assert_float_eq(dy[i], check_slope(shared_value, &s, s.y + i), 1e-6);
        cr_assert_float_eq(dgate[i / COLS], check_slope(shared_value, &s, s.gate + i / COLS), 1e-5);
    }
    free(gate);
    free(y);
    free(dx);
    free(was);
}

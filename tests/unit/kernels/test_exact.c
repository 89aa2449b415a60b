// Exact sums: the same bits in any order and any split, and close to the double reference.

#include "kernels/exact.h"
#include "tests/unit/kernels/attention_reference.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static bool equal(ExactSum a, ExactSum b) {
    return a.high == b.high && a.low == b.low;
}

enum { TERMS = 5000 };

// From 2^-40 to 2^20, both signs: float sums would lose most of them.
static double *terms(void) {
    float *x = check_floats(TERMS, 5);
    double *wide = check_doubles(x, TERMS);
    for (int i = 0; i < TERMS; i++) {
        wide[i] = ldexp(wide[i], i % 61 - 40);
    }
    free(x);
    return wide;
}

static ExactSum sum_of(const double *x, int first, int end, int stride) {
    ExactSum sum = {0};
    for (int i = first; i < end; i += stride) {
        exact_add(&sum, x[i]);
    }
    return sum;
}

Test(exact, sums_do_not_depend_on_order_or_grouping) {
    double *x = terms();
    const ExactSum forward = sum_of(x, 0, TERMS, 1);
    ExactSum backward = {0};
    for (int i = TERMS - 1; i >= 0; i--) {
        exact_add(&backward, x[i]);
    }
    cr_expect(equal(forward, backward));
    for (int ranks = 2; ranks <= 9; ranks++) {
        ExactSum together = {0};
        for (int rank = ranks - 1; rank >= 0; rank--) {
            together = exact_plus(sum_of(x, rank, TERMS, ranks), together);
        }
        cr_expect(equal(forward, together), "%d ranks", ranks);
    }
    free(x);
}

Test(exact, a_sum_is_that_of_its_terms_to_the_grid) {
    double *x = terms();
    long double want = 0;
    for (int i = 0; i < TERMS; i++) {
        want += (long double)x[i];
    }
    // a term loses less than 2^-62; the value is rounded to a double
    cr_expect_leq(fabsl((long double)exact_value(sum_of(x, 0, TERMS, 1)) - want),
                  TERMS * 0x1p-62L + fabsl(want) * 0x1p-52L);
    free(x);
}

Test(exact, a_float_above_2_to_minus_38_is_a_sum_of_itself) {
    float *x = check_floats(TERMS, 9);
    for (int i = 0; i < TERMS; i++) {
        const float value = ldexpf(copysignf(1.0f + fabsf(x[i]), x[i]), i % 70 - 38);
        cr_assert_eq((float)exact_value(exact_of((double)value)), value);
    }
    free(x);
}

Test(exact, what_is_out_of_range_is_not_a_number_and_stays_so) {
    const double bad[] = {NAN, INFINITY, -INFINITY, 0x1p34, -0x1p40, 1e300};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ExactSum sum = exact_of(1.0);
        exact_add(&sum, bad[i]);
        exact_add(&sum, 0x1p33);
        cr_expect(isnan(exact_value(sum)), "%g", bad[i]);
    }
    ExactSum grown = exact_of(0x1p33);
    exact_add(&grown, 0x1p33);
    cr_expect(isnan(exact_value(grown)));
    const ExactSum lost = exact_of(NAN);  // added as a transport does, without checks in between
    for (int ranks = 1; ranks <= 256; ranks++) {
        const ExactSum of_all = {ranks * lost.high, ranks * lost.low};
        cr_assert(isnan(exact_value(of_all)), "%d ranks", ranks);
    }
}

enum { M = 7, N = 9, K = 40 };

// Rows and columns of a product as ranks split them, against the whole.
Test(exact, a_product_cut_along_its_inner_side_is_the_whole) {
    float *a = check_floats(M * K, 1), *b = check_floats(K * N, 2), whole[M * N], parts[M * N];
    ExactSum sums[M * N], part_sums[M * N];
    exact_gemm((const bool[]){false, false}, (const int64_t[]){M, N, K}, a, b, false, sums, whole);
    for (int part = 0; part < 4; part++) {
        float cut[M * K / 4];
        for (int row = 0; row < M; row++) {
            memcpy(cut + row * K / 4, a + row * K + part * K / 4, K / 4 * sizeof(float));
        }
        exact_gemm((const bool[]){false, false}, (const int64_t[]){M, N, K / 4}, cut, b + part * K / 4 * N, part > 0,
                   part_sums, parts);
    }
    cr_expect_eq(memcmp(whole, parts, sizeof whole), 0);
    for (int i = 0; i < M * N; i++) {
        double want = 0;
        for (int k = 0; k < K; k++) {
            want += (double)a[i / N * K + k] * (double)b[k * N + i % N];
        }
        cr_expect_eq(whole[i], (float)want, "%d: %.9g, want %.9g", i, (double)whole[i], want);
    }
    free(a);
    free(b);
}

Test(exact, a_product_takes_transposed_sides) {
    float *a = check_floats(M * K, 1), *b = check_floats(K * N, 2), *at = check_zeros(M * K), *bt = check_zeros(K * N);
    float want[M * N], got[M * N];
    ExactSum sums[M * N];
    for (int i = 0; i < M * K; i++) {
        at[i % K * M + i / K] = a[i];
    }
    for (int i = 0; i < K * N; i++) {
        bt[i % N * K + i / N] = b[i];
    }
    exact_gemm((const bool[]){false, false}, (const int64_t[]){M, N, K}, a, b, false, sums, want);
    for (int i = 1; i < 4; i++) {
        const bool trans[] = {i & 1, i & 2};
        exact_gemm(trans, (const int64_t[]){M, N, K}, trans[0] ? at : a, trans[1] ? bt : b, false, sums, got);
        cr_expect_eq(memcmp(want, got, sizeof want), 0, "%d", i);
    }
    free(a), free(b), free(at), free(bt);
}

// Terms far inside the range, near its end (2^34, of which no sum is looked at below a quarter), beyond it and none; on
// top of sums that are there, one of them near the end.
Test(exact, sums_of_a_product_are_those_of_its_terms_one_by_one) {
    static const double scales[] = {1, 0x1p15, 0x1p16, 0x1p17, 0x1p20, NAN};
    float *a = check_floats(M * K, 1), *b = check_floats(K * N, 2), c[M * N];
    int lost = 0, kept = 0;
    for (size_t scale = 0; scale < sizeof scales / sizeof *scales; scale++) {
        ExactSum sums[M * N], want[M * N];
        float left[M * K], right[K * N];
        for (int i = 0; i < M * K; i++) {
            left[i] = (float)((double)a[i] * (i / K % 2 ? 1 : scales[scale]));
        }
        for (int i = 0; i < K * N; i++) {
            right[i] = (float)((double)b[i] * (isnan(scales[scale]) ? 1 : scales[scale]));
        }
        for (int i = 0; i < M * N; i++) {
            sums[i] = want[i] = exact_of(i == 2 ? 0x1.8p33 : 1.0 / (i + 1));
            for (int k = 0; k < K; k++) {
                exact_add(&want[i], (double)left[i / N * K + k] * (double)right[k * N + i % N]);
            }
        }
        exact_gemm((const bool[]){false, false}, (const int64_t[]){M, N, K}, left, right, true, sums, c);
        for (int i = 0; i < M * N; i++) {
            cr_expect(equal(sums[i], want[i]), "scale %g, %d", scales[scale], i);
            lost += exact_is_lost(want[i]);
            kept += !exact_is_lost(want[i]);
        }
    }
    cr_expect_gt(lost, M * N / 2);
    cr_expect_gt(kept, M * N);
    free(a), free(b);
}

// ---------------------------------------------------------------------------------------------- attention

enum { TOKENS = 24, HEADS = 4, KV_HEADS = 2, HEAD_DIM = 8, Q_ROW = HEADS * HEAD_DIM, KV_ROW = KV_HEADS * HEAD_DIM };

static const KernelAttention sequence = {TOKENS, TOKENS, 0,      0, HEADS, KV_HEADS, HEAD_DIM, Q_ROW,
                                         KV_ROW, Q_ROW,  TOKENS, 0, 0,     0,        {0},      0};

typedef struct Results {
    float o[TOKENS * Q_ROW], lse[HEADS * TOKENS], delta[HEADS * TOKENS];
    ExactSum o_sums[TOKENS * Q_ROW], lse_sums[HEADS * TOKENS];
    ExactSum dq[TOKENS * Q_ROW], dk[TOKENS * KV_ROW], dv[TOKENS * KV_ROW];
} Results;

static KernelAttention block_of(int parts, int i, int j) {
    KernelAttention s = sequence;
    s.queries = s.keys = TOKENS / parts;
    s.q_first = i * s.queries;
    s.k_first = j * s.keys;
    return s;
}

static ExactAttention out_of(Results *r, const KernelAttention *s) {
    return (ExactAttention){r->o + s->q_first * Q_ROW, r->lse + s->q_first, r->o_sums + s->q_first * Q_ROW,
                            r->lse_sums + s->q_first};
}

static void forward_parts(const AttentionCase *c, int parts, Results *r) {
    for (int i = 0; i < parts; i++) {
        const KernelAttention own = block_of(parts, i, i);
        const ExactAttention out = out_of(r, &own);
        exact_attention_begin(&own, c->q + own.q_first * Q_ROW, c->k + own.k_first * KV_ROW, &out);
        for (int step = 0; step < parts; step++) {
            const KernelAttention s = block_of(parts, i, (i - step + parts) % parts);
            exact_attention_block(&s, c->q + s.q_first * Q_ROW, c->k + s.k_first * KV_ROW, c->v + s.k_first * KV_ROW,
                                  &out);
        }
        exact_attention_end(&own, &out);
    }
}

static void backward_parts(const AttentionCase *c, int parts, Results *r) {
    kernel_attention_delta(&sequence, r->o, c->d_o, r->delta);
    for (int i = 0; i < parts * parts; i++) {
        const KernelAttention s = block_of(parts, i % parts, i / parts);
        const int64_t q = s.q_first * Q_ROW, k = s.k_first * KV_ROW;
        exact_attention_backward(&s,
                                 &(ExactAttentionBackward){c->q + q, c->k + k, c->v + k, c->d_o + q, r->lse + s.q_first,
                                                           r->delta + s.q_first, r->dq + q, r->dk + k, r->dv + k});
    }
}

static void near_usual(const char *name, const ExactSum *sums, const float *usual, int64_t count) {
    float *got = check_zeros(count);
    exact_round(count, sums, got);
    cr_expect_lt(check_distance_f(got, usual, count), 1e-5, "%s", name);
    free(got);
}

Test(exact, attention_in_any_blocks_is_the_whole_and_near_the_usual_one) {
    static Results whole, parts[2];
    AttentionCase c = attention_case(sequence, 3);
    forward_parts(&c, 1, &whole);
    backward_parts(&c, 1, &whole);
    for (int i = 0; i < 2; i++) {
        forward_parts(&c, i == 0 ? 2 : 8, &parts[i]);
        backward_parts(&c, i == 0 ? 2 : 8, &parts[i]);
        cr_expect_eq(memcmp(&whole, &parts[i], sizeof whole), 0);
    }
    reference_attention(&c);
    cr_expect_lt(check_distance(whole.o, c.o, c.o_size), 1e-6);
    cr_expect_lt(check_distance(whole.lse, c.lse, c.lse_size), 1e-6);
    float *dq = check_zeros(c.q_size), *dk = check_zeros(c.kv_size), *dv = check_zeros(c.kv_size);
    kernel_attention_backward(&sequence, c.q, c.k, c.v, c.d_o, whole.lse, whole.delta, dq, Q_ROW, dk, dv, KV_ROW);
    near_usual("dq", whole.dq, dq, c.q_size);
    near_usual("dk", whole.dk, dk, c.kv_size);
    near_usual("dv", whole.dv, dv, c.kv_size);
    free(dq), free(dk), free(dv);
    attention_case_free(&c);
}

// ---------------------------------------------------------------------------------------------- elements

enum { ELEMENTS = 101 };

typedef struct State {
    float gradient[ELEMENTS], master[ELEMENTS], moment1[ELEMENTS], moment2[ELEMENTS];
} State;

static State state_of(void) {
    State s;
    float *x = check_floats(4 * ELEMENTS, 8);
    memcpy(s.gradient, x, sizeof s.gradient);
    memcpy(s.master, x + ELEMENTS, sizeof s.master);
    memcpy(s.moment1, x + 2 * ELEMENTS, sizeof s.moment1);
    for (int i = 0; i < ELEMENTS; i++) {
        s.moment2[i] = x[3 * ELEMENTS + i] * x[3 * ELEMENTS + i];
    }
    free(x);
    return s;
}

Test(exact, adamw_of_any_stretch_is_that_of_its_elements_and_near_the_usual_one) {
    const KernelAdamw options = {0.01f, 0.9f, 0.95f, 1e-8f, 0.1f, 3};
    const float scale = 0.7f;
    State whole = state_of(), cut = whole, usual = whole;
    exact_adamw(ELEMENTS, 10, &options, &scale, whole.gradient, whole.master, whole.moment1, whole.moment2);
    for (int first = 0; first < ELEMENTS; first += 13) {
        const int count = ELEMENTS - first < 13 ? ELEMENTS - first : 13, lead = 10 - first;
        exact_adamw(count, lead < 0 ? 0 : lead, &options, &scale, cut.gradient + first, cut.master + first,
                    cut.moment1 + first, cut.moment2 + first);
    }
    cr_expect_eq(memcmp(&whole, &cut, sizeof whole), 0);
    kernel_adamw(ELEMENTS, 10, &options, &scale, usual.gradient, usual.master, usual.moment1, usual.moment2);
    cr_expect_lt(check_distance_f(whole.master, usual.master, ELEMENTS), 1e-6);
    cr_expect_lt(check_distance_f(whole.moment2, usual.moment2, ELEMENTS), 1e-6);
}

Test(exact, a_gated_activation_is_near_the_usual_one) {
    const KernelGated shape = {KERNEL_SILU, 3, 31, 40};
    float *gate = check_floats(120, 1), *up = check_floats(120, 2), *ds = check_floats(93, 3);
    float got[3][120] = {{0}}, want[3][120] = {{0}};
    exact_gated(&shape, gate, up, got[0]);
    kernel_gated(&shape, gate, up, want[0]);
    exact_gated_backward(&shape, ds, gate, up, got[1], got[2]);
    kernel_gated_backward(&shape, ds, gate, up, want[1], want[2]);
    for (int i = 0; i < 3; i++) {
        cr_expect_lt(check_distance_f(got[i], want[i], 120), 1e-6, "%d", i);
    }
    free(gate), free(up), free(ds);
}

// Work split as ranks split it equals the whole: context-parallel attention by merged blocks, the loss by vocabulary
// ranges, embeddings by vocabulary ranges.

#include "tests/unit/kernels/attention_reference.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { TOKENS = 192, HEADS = 4, KV_HEADS = 2, HEAD_DIM = 32, Q_ROW = HEADS * HEAD_DIM, KV_ROW = KV_HEADS * HEAD_DIM };

static const KernelAttention whole = {TOKENS, TOKENS, 0,      0,  HEADS, KV_HEADS, HEAD_DIM, Q_ROW,
                                      KV_ROW, Q_ROW,  TOKENS, 12, 4,     0,        {0},      0};

// Block (i, j) of a sequence cut into `parts`: queries of part i against keys of part j.
static KernelAttention block_of(int parts, int i, int j) {
    KernelAttention s = whole;
    s.queries = s.keys = TOKENS / parts;
    s.q_first = i * s.queries;
    s.k_first = j * s.keys;
    return s;
}

typedef struct Outputs {
    float *o, *lse, *delta, *dq, *dk, *dv;
} Outputs;

static Outputs outputs(const AttentionCase *c) {
    return (Outputs){check_zeros(c->o_size), check_zeros(c->lse_size), check_zeros(c->lse_size),
                     check_zeros(c->q_size), check_zeros(c->kv_size),  check_zeros(c->kv_size)};
}

static void outputs_free(Outputs *x) {
    free(x->o), free(x->lse), free(x->delta), free(x->dq), free(x->dk), free(x->dv);
}

// The ring's order: every query part starts with its own keys and goes on with those of the parts before it, wrapping
// round.
static void in_parts(const AttentionCase *c, int parts, Outputs *x) {
    for (int i = 0; i < parts; i++) {
        for (int step = 0; step < parts; step++) {
            const KernelAttention s = block_of(parts, i, (i - step + parts) % parts);
            kernel_attention(&s, c->q + s.q_first * Q_ROW, c->k + s.k_first * KV_ROW, c->v + s.k_first * KV_ROW,
                             x->o + s.q_first * Q_ROW, x->lse + s.q_first, step > 0);
        }
    }
    kernel_attention_delta(&c->shape, x->o, c->d_o, x->delta);
    for (int i = 0; i < parts; i++) {
        for (int step = 0; step < parts; step++) {
            const KernelAttention s = block_of(parts, i, (i - step + parts) % parts);
            const int64_t q = s.q_first * Q_ROW, k = s.k_first * KV_ROW;
            kernel_attention_backward(&s, c->q + q, c->k + k, c->v + k, c->d_o + q, x->lse + s.q_first,
                                      x->delta + s.q_first, x->dq + q, Q_ROW, x->dk + k, x->dv + k, KV_ROW);
        }
    }
}

static void check_parts(int parts) {
    AttentionCase c = attention_case(whole, 31);
    Outputs one = outputs(&c), cut = outputs(&c);
    in_parts(&c, 1, &one);
    in_parts(&c, parts, &cut);
    cr_assert_lt(check_distance_f(cut.o, one.o, c.o_size), 1e-6);
    cr_assert_lt(check_distance_f(cut.lse, one.lse, c.lse_size), 5e-7);
    cr_assert_lt(check_distance_f(cut.dq, one.dq, c.q_size), 5e-6);
    cr_assert_lt(check_distance_f(cut.dk, one.dk, c.kv_size), 5e-6);
    cr_assert_lt(check_distance_f(cut.dv, one.dv, c.kv_size), 5e-6);
    outputs_free(&one);
    outputs_free(&cut);
    attention_case_free(&c);
}

Test(split_attention, two_merged_blocks_equal_the_whole_forward_and_backward) {
    check_parts(2);
}

Test(split_attention, four_merged_blocks_equal_the_whole_forward_and_backward) {
    check_parts(4);
}

Test(split_attention, six_blocks_of_odd_tiles_equal_the_whole) {
    check_parts(6);
}

enum { ROWS = 19, VOCABULARY = 600 };

typedef struct LossRun {
    float max[ROWS], sum[ROWS], target[ROWS];
    float loss;
    float *logits;
} LossRun;

// The three steps over `parts` ranges, with the all-reduces done here: maximum, then sum of both rows.
static LossRun loss_in_parts(int parts, const int32_t *targets) {
    LossRun r = {.logits = malloc(sizeof(float) * ROWS * VOCABULARY)};
    const int cols = VOCABULARY / parts;
    float *full = check_floats(ROWS * VOCABULARY, 41), *part = check_zeros(ROWS * VOCABULARY);
    for (int row = 0; row < ROWS; row++) {
        r.max[row] = -INFINITY;
        for (int p = 0; p < parts; p++) {
            memcpy(part + (p * ROWS + row) * cols, full + row * VOCABULARY + p * cols, sizeof(float) * (size_t)cols);
        }
    }
    float some[ROWS], other[ROWS];
    for (int p = 0; p < parts; p++) {
        const KernelLoss loss = {.rows = ROWS, .cols = cols, .row_max = some};
        kernel_loss_max(&loss, part + p * ROWS * cols);
        for (int row = 0; row < ROWS; row++) {
            r.max[row] = fmaxf(r.max[row], some[row]);
        }
    }
    for (int p = 0; p < parts; p++) {
        const KernelLoss loss = {ROWS, cols, p * cols, targets, r.max, some, other, 0, 0};
        kernel_loss_sum(&loss, part + p * ROWS * cols);
        for (int row = 0; row < ROWS; row++) {
            r.sum[row] += some[row];
            r.target[row] += other[row];
        }
    }
    for (int p = 0; p < parts; p++) {
        const KernelLoss loss = {ROWS, cols, p * cols, targets, r.max, r.sum, r.target, 0.5f, 0};
        kernel_loss_gradient(&loss, part + p * ROWS * cols, &r.loss, false);
        for (int row = 0; row < ROWS; row++) {
            memcpy(r.logits + row * VOCABULARY + p * cols, part + (p * ROWS + row) * cols,
                   sizeof(float) * (size_t)cols);
        }
    }
    free(full);
    free(part);
    return r;
}

Test(split_loss, vocabulary_ranges_give_the_loss_and_gradient_of_the_whole) {
    int32_t targets[ROWS];
    for (int row = 0; row < ROWS; row++) {
        targets[row] = row * 31 % VOCABULARY;
    }
    const LossRun one = loss_in_parts(1, targets);
    for (int parts = 2; parts <= 8; parts *= 2) {
        const LossRun cut = loss_in_parts(parts, targets);
        cr_assert_float_eq(cut.loss, one.loss, 2e-7f * one.loss, "%d parts", parts);
        cr_assert_lt(check_distance_f(cut.logits, one.logits, ROWS * VOCABULARY), 3e-7);
        free(cut.logits);
    }
    free(one.logits);
}

Test(split_embedding, ranges_sum_to_the_whole_and_their_gradients_are_its_rows) {
    enum { COLS = 24, PARTS = 4, RANGE = VOCABULARY / PARTS };
    int32_t tokens[ROWS];
    for (int row = 0; row < ROWS; row++) {
        tokens[row] = row * 131 % VOCABULARY;
    }
    float *table = check_floats(VOCABULARY * COLS, 1), *dx = check_floats(ROWS * COLS, 2);
    float *x = check_zeros(ROWS * COLS), *sum = check_zeros(ROWS * COLS), *part = check_zeros(ROWS * COLS);
    float *dtable = check_zeros(VOCABULARY * COLS), *dparts = check_zeros(VOCABULARY * COLS);
    const KernelEmbed all = {ROWS, COLS, 0, VOCABULARY, 1.0f};
    kernel_embed(&all, tokens, table, x, false);
    kernel_embed_backward(&all, tokens, dx, dtable, false);
    for (int p = 0; p < PARTS; p++) {
        const KernelEmbed own = {ROWS, COLS, p * RANGE, RANGE, 1.0f};
        kernel_embed(&own, tokens, table + p * RANGE * COLS, part, false);
        kernel_add(ROWS * COLS, sum, part, sum);
        kernel_embed_backward(&own, tokens, dx, dparts + p * RANGE * COLS, false);
    }
    cr_assert_arr_eq(sum, x, sizeof(float) * ROWS * COLS);
    cr_assert_arr_eq(dparts, dtable, sizeof(float) * VOCABULARY * COLS);
    free(table), free(dx), free(x), free(sum), free(part), free(dtable), free(dparts);
}

#include "tests/unit/kernels/attention_reference.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>

// Backward error: the forward's, carried by p and by dp - delta, whose terms cancel.
static const double BACKWARD = 2e-5;

typedef struct Gradients {
    float *o, *lse, *delta, *dq, *dk, *dv;
} Gradients;

static Gradients gradients(const AttentionCase *c) {
    Gradients g = {check_zeros(c->o_size), check_zeros(c->lse_size), check_zeros(c->lse_size),
                   check_zeros(c->q_size), check_zeros(c->kv_size),  check_zeros(c->kv_size)};
    kernel_attention(&c->shape, c->q, c->k, c->v, g.o, g.lse, false);
    kernel_attention_delta(&c->shape, g.o, c->d_o, g.delta);
    kernel_attention_backward(&c->shape, c->q, c->k, c->v, c->d_o, g.lse, g.delta, g.dq, c->shape.q_stride, g.dk, g.dv,
                              c->shape.kv_stride);
    return g;
}

static void gradients_free(Gradients *g) {
    float *all[] = {g->o, g->lse, g->delta, g->dq, g->dk, g->dv};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
}

// Which outputs depend on an entry: by the definition those of its query and head, of a key or value those of every
// query and of the heads that share it.
static AttentionPart part_of_query(const AttentionCase *c, int64_t entry) {
    const KernelAttention *s = &c->shape;
    return (AttentionPart){c, (int)(entry % s->q_stride / s->head_dim), 1, entry / s->q_stride, 1};
}

static AttentionPart part_of_key(const AttentionCase *c, int64_t entry) {
    const KernelAttention *s = &c->shape;
    const int sharing = s->heads / s->kv_heads;
    return (AttentionPart){c, (int)(entry % s->kv_stride / s->head_dim) * sharing, sharing, 0, s->queries};
}

typedef struct Input {
    double *wide;
    int64_t size, row, used;  // entries; of a row, and those that are not between the strides
    AttentionPart (*part)(const AttentionCase *c, int64_t entry);
} Input;

// Compares about forty entries of one gradient, spread over the tensor, with numerical derivatives of the reference.
static double off_by(const AttentionCase *c, const float *gradient, const Input *input) {
    double largest = 0.0, off = 0.0;
    const int64_t step = input->size / 40 + 1;
    for (int64_t i = 0; i < input->size; i++) {
        if (i % input->row >= input->used) {
            continue;
        }
        largest = fmax(largest, fabs((double)gradient[i]));
        if (i % step == 0) {
            const AttentionPart part = input->part(c, i);
            off = fmax(off, fabs(check_slope(reference_attention_value, &part, input->wide + i) - (double)gradient[i]));
        }
    }
    return off / fmax(largest, 0.1);  // a true gradient of 0, as with a single key, leaves rounding only
}

static void equals_central_differences(int window, float cap) {
    for (int i = 0; i < attention_shape_count; i++) {
        if (cap > 0 && attention_shapes[i].alibi_heads > 0) {
            continue;
        }
        AttentionCase c = attention_case(attention_shapes[i], 21);
        c.shape.window = window;
        c.shape.cap = cap;
        const KernelAttention *s = &c.shape;
        Gradients g = gradients(&c);
        const int64_t heads = (int64_t)s->heads * s->head_dim, kv_heads = (int64_t)s->kv_heads * s->head_dim;
        const Input q = {c.wide_q, c.q_size, s->q_stride, heads, part_of_query};
        const Input k = {c.wide_k, c.kv_size, s->kv_stride, kv_heads, part_of_key};
        const Input v = {c.wide_v, c.kv_size, s->kv_stride, kv_heads, part_of_key};
        const double dq = off_by(&c, g.dq, &q), dk = off_by(&c, g.dk, &k), dv = off_by(&c, g.dv, &v);
        cr_assert_lt(dq, BACKWARD, "shape %d, window %d: dq is off by %g of its largest entry", i, window, dq);
        cr_assert_lt(dk, BACKWARD, "shape %d, window %d: dk is off by %g", i, window, dk);
        cr_assert_lt(dv, BACKWARD, "shape %d, window %d: dv is off by %g", i, window, dv);
        gradients_free(&g);
        attention_case_free(&c);
    }
}

Test(kernel_attention_backward, equals_central_differences_of_the_definition_for_every_shape) {
    equals_central_differences(0, 0);
}

Test(kernel_attention_backward, equals_central_differences_where_queries_look_back_a_window) {
    equals_central_differences(attention_windows[1], 0);
    equals_central_differences(attention_windows[4], 0);
}

Test(kernel_attention_backward, equals_central_differences_where_scores_are_capped) {
    equals_central_differences(attention_windows[1], 3);
}

Test(kernel_attention_backward, adds_to_what_is_there_with_its_own_strides) {
    AttentionCase c = attention_case(attention_shapes[2], 22);
    Gradients g = gradients(&c);
    const int64_t queries = c.shape.queries, keys = c.shape.keys, q_wide = 200, kv_wide = 100;
    float *dq = check_zeros(queries * q_wide), *dk = check_zeros(keys * kv_wide), *dv = check_zeros(keys * kv_wide);
    for (int round = 0; round < 2; round++) {
        kernel_attention_backward(&c.shape, c.q, c.k, c.v, c.d_o, g.lse, g.delta, dq, q_wide, dk, dv, kv_wide);
    }
    for (int64_t row = 0; row < queries; row++) {
        for (int64_t i = 0; i < 160; i++) {
            cr_assert_float_eq(dq[row * q_wide + i], 2.0f * g.dq[row * 170 + i], 1e-5f);
        }
        for (int64_t i = 0; i < 80; i++) {
            cr_assert_float_eq(dk[row * kv_wide + i], 2.0f * g.dk[row * 90 + i], 1e-5f);
            cr_assert_float_eq(dv[row * kv_wide + i], 2.0f * g.dv[row * 90 + i], 1e-5f);
        }
        cr_assert_eq(dq[row * q_wide + 160], 0.0f);
        cr_assert_eq(dk[row * kv_wide + 80], 0.0f);
    }
    free(dq);
    free(dk);
    free(dv);
    gradients_free(&g);
    attention_case_free(&c);
}

Test(kernel_attention_delta, is_the_row_sum_of_output_times_its_gradient) {
    AttentionCase c = attention_case(attention_shapes[2], 23);
    Gradients g = gradients(&c);
    const KernelAttention *s = &c.shape;
    for (int head = 0; head < s->heads; head++) {
        for (int64_t query = 0; query < s->queries; query++) {
            double want = 0.0;
            for (int t = 0; t < s->head_dim; t++) {
                const int64_t at = query * s->o_stride + (int64_t)head * s->head_dim + t;
                want += (double)g.o[at] * (double)c.d_o[at];
            }
            cr_assert_float_eq(g.delta[head * s->lse_stride + query], want, 1e-5);
        }
    }
    gradients_free(&g);
    attention_case_free(&c);
}

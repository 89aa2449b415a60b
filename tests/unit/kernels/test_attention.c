#include "tests/unit/kernels/attention_reference.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

// Forward error: scores of size 10 carry 10 * 2^-24 * sqrt(head_dim), which the softmax passes on.
static const double FORWARD = 4e-6;

static void run(const AttentionCase *c, float *o, float *lse) {
    kernel_attention(&c->shape, c->q, c->k, c->v, o, lse, false);
}

static void equals_the_definition(int window, float cap) {
    for (int i = 0; i < attention_shape_count; i++) {
        AttentionCase c = attention_case(attention_shapes[i], 11);
        float *o = check_zeros(c.o_size), *lse = check_zeros(c.lse_size);
        c.shape.window = window;
        c.shape.cap = cap;
        run(&c, o, lse);
        reference_attention(&c);
        const double off = check_distance(o, c.o, c.o_size), off_lse = check_distance(lse, c.lse, c.lse_size);
        cr_assert_lt(off, FORWARD, "shape %d, window %d: o is off by %g of its largest entry", i, window, off);
        cr_assert_lt(off_lse, FORWARD, "shape %d, window %d: lse is off by %g", i, window, off_lse);
        free(o);
        free(lse);
        attention_case_free(&c);
    }
}

Test(kernel_attention, equals_the_definition_in_double_for_every_shape) {
    equals_the_definition(0, 0);
}

Test(kernel_attention, equals_the_definition_where_queries_look_back_a_window) {
    for (const int *window = attention_windows; *window; window++) {
        equals_the_definition(*window, 0);
    }
}

// Below the size of scores and above it.
Test(kernel_attention, equals_the_definition_where_scores_are_capped) {
    equals_the_definition(0, 2);
    equals_the_definition(attention_windows[1], 30);
}

Test(kernel_attention, a_window_of_everything_changes_no_bit) {
    AttentionCase c = attention_case(attention_shapes[8], 16);
    float *o = check_zeros(c.o_size), *all = check_zeros(c.o_size), *lse = check_zeros(c.lse_size);
    run(&c, all, lse);
    c.shape.window = 1000;
    run(&c, o, lse);
    cr_expect_arr_eq(o, all, sizeof(float) * (size_t)c.o_size);
    free(o);
    free(all);
    free(lse);
    attention_case_free(&c);
}

Test(kernel_attention, writes_nothing_between_the_strides) {
    AttentionCase c = attention_case(attention_shapes[2], 12);
    float *o = check_zeros(c.o_size), *lse = check_zeros(c.lse_size);
    for (int64_t i = 0; i < c.o_size; i++) {
        o[i] = 77.0f;
    }
    for (int64_t i = 0; i < c.lse_size; i++) {
        lse[i] = 77.0f;
    }
    c.shape.heads = 2;  // of four: the other two heads' places must stay unchanged
    c.shape.kv_heads = 1;
    run(&c, o, lse);
    for (int64_t row = 0; row < c.shape.queries; row++) {
        for (int64_t i = 2 * 40; i < 160; i++) {
            cr_assert_eq(o[row * 160 + i], 77.0f);
        }
    }
    for (int64_t head = 0; head < 2; head++) {
        for (int64_t i = c.shape.queries; i < c.shape.lse_stride; i++) {
            cr_assert_eq(lse[head * c.shape.lse_stride + i], 77.0f);
        }
    }
    free(o);
    free(lse);
    attention_case_free(&c);
}

Test(kernel_attention, a_query_that_sees_no_key_gets_zero_and_minus_infinity) {
    AttentionCase c = attention_case(attention_shapes[5], 13);
    float *o = check_floats(c.o_size, 1), *lse = check_floats(c.lse_size, 2);
    run(&c, o, lse);
    for (int64_t query = 0; query < c.shape.queries; query++) {
        for (int64_t i = 0; i < 24; i++) {
            cr_assert_eq(o[query * 24 + i], 0.0f);
        }
        for (int head = 0; head < 3; head++) {
            cr_assert_eq(lse[head * c.shape.lse_stride + query], -INFINITY);
        }
    }
    free(o);
    free(lse);
    attention_case_free(&c);
}

Test(kernel_attention, merging_a_block_in_the_future_changes_no_bit) {
    AttentionCase c = attention_case(attention_shapes[1], 14);
    float *o = check_zeros(c.o_size), *lse = check_zeros(c.lse_size);
    run(&c, o, lse);
    float *o2 = malloc(sizeof(float) * (size_t)c.o_size), *lse2 = malloc(sizeof(float) * (size_t)c.lse_size);
    memcpy(o2, o, sizeof(float) * (size_t)c.o_size);
    memcpy(lse2, lse, sizeof(float) * (size_t)c.lse_size);
    c.shape.k_first = 64;
    kernel_attention(&c.shape, c.q, c.k, c.v, o2, lse2, true);
    cr_assert_arr_eq(o, o2, sizeof(float) * (size_t)c.o_size);
    cr_assert_arr_eq(lse, lse2, sizeof(float) * (size_t)c.lse_size);
    free(o);
    free(lse);
    free(o2);
    free(lse2);
    attention_case_free(&c);
}

Test(kernel_attention, survives_scores_beyond_the_range_of_the_exponential) {
    AttentionCase c = attention_case(attention_shapes[1], 15);
    for (int64_t i = 0; i < c.q_size; i++) {
        c.q[i] *= 500.0f;
        c.wide_q[i] = c.q[i];
    }
    float *o = check_zeros(c.o_size), *lse = check_zeros(c.lse_size);
    run(&c, o, lse);
    reference_attention(&c);
    cr_assert_lt(check_distance(lse, c.lse, c.lse_size), 1e-6);
    cr_assert_lt(check_distance(o, c.o, c.o_size), 5e-3);  // scores of 2000 carry 2000 * 2^-24 each
    free(o);
    free(lse);
    attention_case_free(&c);
}

// ---------------------------------------------------------------------------------------------- sinks

enum { SINK_HEADS = 4 };

typedef struct SinkCase {
    AttentionCase *c;
    double sinks[SINK_HEADS];
} SinkCase;

// The effect of one more key whose value is zero: o shrinks by its share.
static double sink_keeps(const SinkCase *s, int head, int64_t row) {
    const double lse = s->c->lse[head * s->c->shape.lse_stride + row];
    return 1 / (1 + exp(s->sinks[head] - lse));
}

static double sink_value(const void *context) {
    const SinkCase *s = context;
    const KernelAttention *shape = &s->c->shape;
    double value = 0;
    for (int64_t row = 0; row < shape->queries; row++) {
        for (int64_t i = 0; i < (int64_t)shape->heads * shape->head_dim; i++) {
            const int64_t at = row * shape->o_stride + i;
            value += s->c->wide_d_o[at] * s->c->o[at] * sink_keeps(s, (int)(i / shape->head_dim), row);
        }
    }
    return value;
}

Test(kernel_attention, a_sink_is_a_key_without_a_value) {
    AttentionCase c = attention_case(attention_shapes[2], 17);
    const float sinks[SINK_HEADS] = {-3, 0, 2.5f, 40};
    SinkCase s = {&c, {-3, 0, 2.5, 40}};
    float *o = check_zeros(c.o_size), *lse = check_zeros(c.lse_size), *delta = check_zeros(c.lse_size);
    float dsinks[SINK_HEADS] = {1, 1, 1, 1};
    run(&c, o, lse);
    reference_attention(&c);
    kernel_attention_sinks(&c.shape, sinks, o, lse);
    kernel_attention_delta(&c.shape, o, c.d_o, delta);
    kernel_attention_sinks_backward(&c.shape, sinks, lse, delta, dsinks);
    for (int64_t row = 0; row < c.shape.queries; row++) {
        for (int head = 0; head < SINK_HEADS; head++) {
            const int64_t at = row * c.shape.o_stride + head * c.shape.head_dim;
            const double keeps = sink_keeps(&s, head, row), was = c.lse[head * c.shape.lse_stride + row];
            cr_assert_float_eq(o[at], c.o[at] * keeps, FORWARD);
            cr_assert_float_eq(lse[head * c.shape.lse_stride + row],
                               fmax(was, s.sinks[head]) + log1p(exp(-fabs(was - s.sinks[head]))), 1e-5);
        }
    }
    for (int head = 0; head < SINK_HEADS; head++) {
        cr_expect_float_eq(dsinks[head] - 1, check_slope(sink_value, &s, s.sinks + head), 2e-5);
    }
    free(o);
    free(lse);
    free(delta);
    attention_case_free(&c);
}

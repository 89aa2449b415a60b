// Every kernel gives the same bits for an equal number of threads; all but the GEMM (OpenBLAS chooses its kernels by
// block shape) give the same bits for any number.

#include "tests/unit/kernels/attention_reference.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

enum { ROWS = 300, COLS = 520, SIZE = ROWS * COLS, OUTPUTS = 4 };

typedef struct Run {
    float *out[OUTPUTS];
    int64_t size[OUTPUTS];
} Run;

static Run run_new(int64_t a, int64_t b, int64_t c, int64_t d) {
    return (Run){{check_zeros(a), check_zeros(b), check_zeros(c), check_zeros(d)}, {a, b, c, d}};
}

static Run rmsnorm(void) {
    Run r = run_new(SIZE, ROWS, SIZE, COLS);
    float *x = check_floats(SIZE, 1), *w = check_floats(COLS, 2), *dy = check_floats(SIZE, 3);
    kernel_rmsnorm(ROWS, COLS, 1e-5f, x, w, r.out[0], r.out[1]);
    kernel_rmsnorm_backward(ROWS, COLS, dy, x, w, r.out[1], NULL, r.out[2], r.out[3], false);
    free(x), free(w), free(dy);
    return r;
}

static Run layernorm(void) {
    Run r = run_new(SIZE, 2 * ROWS, SIZE, COLS);
    float *x = check_floats(SIZE, 1), *w = check_floats(COLS, 2), *dy = check_floats(SIZE, 3);
    kernel_layernorm(ROWS, COLS, 1e-5f, x, w, w, r.out[0], r.out[1], r.out[1] + ROWS);
    kernel_layernorm_backward(ROWS, COLS, dy, x, w, r.out[1], r.out[1] + ROWS, NULL, r.out[2], r.out[3], false);
    free(x), free(w), free(dy);
    return r;
}

static Run stretch_norm(void) {
    Run r = run_new(SIZE, SIZE, 4 * ROWS, COLS);
    const KernelStretches shape = {ROWS, 4, COLS / 4, COLS, COLS, 4};
    float *x = check_floats(SIZE, 1), *w = check_floats(COLS, 2), *dy = check_floats(SIZE, 3);
    memcpy(r.out[0], x, sizeof(float) * SIZE);
    kernel_stretch_norm(&shape, 1e-5f, w, r.out[0], r.out[1], r.out[2]);
    memcpy(r.out[0], dy, sizeof(float) * SIZE);
    kernel_stretch_norm_backward(&shape, w, r.out[1], r.out[2], r.out[0], r.out[3], false);
    free(x), free(w), free(dy);
    return r;
}

static Run biases(void) {
    Run r = run_new(SIZE, COLS, SIZE, SIZE);
    float *x = check_floats(SIZE, 1), *bias = check_floats(COLS, 2);
    kernel_add_bias(ROWS, COLS, x, x, bias, r.out[0]);
    kernel_column_sum(ROWS, COLS, x, r.out[1], false);
    kernel_activation(KERNEL_GELU, SIZE, x, r.out[2]);
    kernel_activation_backward(KERNEL_GELU_TANH, SIZE, x, x, r.out[3]);
    free(x), free(bias);
    return r;
}

static Run embedding(void) {
    Run r = run_new(SIZE, SIZE, 0, 0);
    float *table = check_floats(SIZE, 1), *dx = check_floats(SIZE, 2);
    int32_t tokens[ROWS];
    for (int i = 0; i < ROWS; i++) {
        tokens[i] = i * 17 % 40;
    }
    kernel_embed(&(KernelEmbed){ROWS, COLS, 0, 100, 2.0f}, tokens, table, r.out[0], false);
    kernel_embed_backward(&(KernelEmbed){ROWS, COLS, 0, ROWS, 2.0f}, tokens, dx, r.out[1], false);
    free(table), free(dx);
    return r;
}

static Run loss(void) {
    Run r = run_new(ROWS, 2 * ROWS, SIZE, 1);
    float *logits = check_floats(SIZE, 1);
    int32_t targets[ROWS];
    for (int i = 0; i < ROWS; i++) {
        targets[i] = i;
    }
    const KernelLoss loss = {ROWS, COLS, 0, targets, r.out[0], r.out[1], r.out[1] + ROWS, 0.1f, 0};
    kernel_loss_max(&loss, logits);
    kernel_loss_sum(&loss, logits);
    kernel_loss_gradient(&loss, logits, r.out[3], false);
    memcpy(r.out[2], logits, sizeof(float) * SIZE);
    free(logits);
    return r;
}

static Run streaming(void) {
    Run r = run_new(SIZE, SIZE, SIZE, 1);
    float *gradient = check_floats(SIZE, 1);
    const float scale = 0.5f;
    const KernelAdamw adamw = {1e-2f, 0.9f, 0.95f, 1e-8f, 0.1f, 3};
    kernel_adamw(SIZE, 1000, &adamw, &scale, gradient, r.out[0], r.out[1], r.out[2]);
    kernel_gated(&(KernelGated){KERNEL_SILU, ROWS, COLS, COLS}, gradient, gradient, r.out[1]);
    kernel_add(SIZE, gradient, r.out[1], r.out[2]);
    kernel_square_sum(SIZE, 77, 0.25, gradient, r.out[3], false);
    free(gradient);
    return r;
}

static Run attention_of(int shape) {
    AttentionCase c = attention_case(attention_shapes[shape], 5);
    Run r = run_new(c.o_size, c.q_size, c.kv_size, c.kv_size);
    float *lse = check_zeros(c.lse_size), *delta = check_zeros(c.lse_size);
    kernel_attention(&c.shape, c.q, c.k, c.v, r.out[0], lse, false);
    kernel_attention_delta(&c.shape, r.out[0], c.d_o, delta);
    kernel_attention_backward(&c.shape, c.q, c.k, c.v, c.d_o, lse, delta, r.out[1], c.shape.q_stride, r.out[2],
                              r.out[3], c.shape.kv_stride);
    free(lse), free(delta);
    attention_case_free(&c);
    return r;
}

static Run attention_grouped(void) {
    return attention_of(2);
}

static Run attention_offset(void) {
    return attention_of(8);
}

static Run attention_of_one_kv_head(void) {
    return attention_of(7);
}

static Run gemm(void) {
    Run r = run_new(SIZE, 0, 0, 0);
    float *a = check_floats(SIZE, 1), *b = check_floats(COLS * COLS, 2);
    kernel_gemm(false, true, ROWS, COLS, COLS, a, b, r.out[0], false);
    free(a), free(b);
    return r;
}

static void compare(Run (*kernel)(void), int threads, int other_threads) {
    kernel_set_threads(threads);
    Run first = kernel();
    kernel_set_threads(other_threads);
    Run second = kernel();
    for (int i = 0; i < OUTPUTS; i++) {
        cr_assert_arr_eq(first.out[i], second.out[i], sizeof(float) * (size_t)first.size[i],
                         "output %d differs between %d and %d threads", i, threads, other_threads);
        free(first.out[i]);
        free(second.out[i]);
    }
}

static void compare_all(Run (*kernel)(void)) {
    compare(kernel, 1, 1);
    compare(kernel, 1, 2);
    compare(kernel, 1, 3);
    compare(kernel, 2, 8);
}

Test(threads, rmsnorm_has_the_same_bits_for_any_number) {
    compare_all(rmsnorm);
}

Test(threads, layernorm_has_the_same_bits_for_any_number) {
    compare_all(layernorm);
}

Test(threads, the_norm_of_stretches_has_the_same_bits_for_any_number) {
    compare_all(stretch_norm);
}

Test(threads, biases_and_activations_have_the_same_bits_for_any_number) {
    compare_all(biases);
}

Test(threads, embedding_has_the_same_bits_for_any_number) {
    compare_all(embedding);
}

Test(threads, loss_has_the_same_bits_for_any_number) {
    compare_all(loss);
}

Test(threads, streaming_kernels_have_the_same_bits_for_any_number) {
    compare_all(streaming);
}

Test(threads, attention_has_the_same_bits_for_any_number) {
    compare_all(attention_grouped);
    compare_all(attention_offset);
}

Test(threads, split_attention_backward_has_the_bits_of_the_single_pass) {
    compare(attention_of_one_kv_head, 1, 2);
    compare(attention_of_one_kv_head, 1, 5);
}

Test(threads, gemm_has_the_same_bits_for_the_same_number) {
    compare(gemm, 1, 1);
    compare(gemm, 2, 2);
    compare(gemm, 3, 3);
}

enum { CALLS = 40 };

static void *call_often(void *first_run) {
    const Run *first = first_run;
    ptrdiff_t differing = 0;
    for (int call = 0; call < CALLS; call++) {
        Run again = attention_grouped();
        for (int i = 0; i < OUTPUTS; i++) {
            differing += memcmp(first->out[i], again.out[i], sizeof(float) * (size_t)first->size[i]) != 0;
            free(again.out[i]);
        }
    }
    return (void *)differing;
}

// Lanes of the executor call kernels from threads of their own.
Test(threads, callers_at_the_same_time_get_the_bits_of_one) {
    kernel_set_threads(3);
    Run first = attention_grouped();
    pthread_t callers[3];
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(pthread_create(&callers[i], NULL, call_often, &first), 0);
    }
    for (int i = 0; i < 3; i++) {
        void *differing = NULL;
        pthread_join(callers[i], &differing);
        cr_assert_null(differing);
    }
}

Test(threads, the_number_can_go_down_and_up_again) {
    kernel_set_threads(1);
    Run first = streaming();
    const int numbers[] = {4, 2, 1, 8, 3};
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
        kernel_set_threads(numbers[n]);
        Run again = streaming();
        cr_assert_arr_eq(first.out[2], again.out[2], sizeof(float) * SIZE);
    }
}

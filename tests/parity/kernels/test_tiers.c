// The tiers that this processor runs agree with the one that dispatch chose, on every family, so unit tests of the
// chosen tier are valid for all. Tiers that it cannot run are skipped by name.

#include "tests/unit/kernels/attention_reference.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <string.h>

#define TIERS(name) extern __typeof__(name) name##_base, name##_avx2, name##_avx512
TIERS(kernel_embed_backward);
TIERS(kernel_norm);
TIERS(kernel_norm_backward);
TIERS(kernel_stretch_norm);
TIERS(kernel_stretch_norm_backward);
TIERS(kernel_rope);
TIERS(kernel_attention);
TIERS(kernel_attention_delta);
TIERS(kernel_attention_backward);
TIERS(kernel_activation);
TIERS(kernel_activation_backward);
TIERS(kernel_gated);
TIERS(kernel_gated_backward);
TIERS(kernel_column_sum);
TIERS(kernel_loss_max);
TIERS(kernel_loss);
TIERS(kernel_loss_sum);
TIERS(kernel_loss_gradient);
TIERS(kernel_square_sum);
TIERS(kernel_normal);
TIERS(kernel_adamw);

typedef enum Tier { BASE, AVX2, AVX512, TIER_COUNT } Tier;

static const char *const tier_names[TIER_COUNT] = {"base", "avx2", "avx512"};

static bool tier_runs(Tier tier) {
    if (tier == AVX2) {
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }
    return tier == BASE || (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"));
}

#define OF(tier, name) ((tier) == BASE ? name##_base : (tier) == AVX2 ? name##_avx2 : name##_avx512)

// Calls visit for every tier that runs here and says which do not.
static void each_tier(void (*visit)(Tier)) {
    for (int tier = BASE; tier < TIER_COUNT; tier++) {
        if (tier_runs((Tier)tier)) {
            visit((Tier)tier);
        } else {
            cr_log_warn("tier %s is not checked: this processor does not run it\n", tier_names[tier]);
        }
    }
}

enum { ROWS = 21, COLS = 203, SIZE = ROWS * COLS };

static void agree(Tier tier, const char *what, const float *got, const float *chosen, int64_t count, double bound) {
    const double off = check_distance_f(got, chosen, count);
    cr_assert_lt(off, bound, "%s on tier %s is off by %g", what, tier_names[tier], off);
}

static void attention_on(Tier tier) {
    for (int i = 0; i < attention_shape_count; i++) {
        AttentionCase c = attention_case(attention_shapes[i], 3);
        float *x[2][6];
        for (int side = 0; side < 2; side++) {
            const int64_t sizes[6] = {c.o_size, c.lse_size, c.lse_size, c.q_size, c.kv_size, c.kv_size};
            for (int out = 0; out < 6; out++) {
                x[side][out] = check_zeros(sizes[out]);
            }
            float **y = x[side];
            (side ? kernel_attention : OF(tier, kernel_attention))(&c.shape, c.q, c.k, c.v, y[0], y[1], false);
            (side ? kernel_attention_delta : OF(tier, kernel_attention_delta))(&c.shape, y[0], c.d_o, y[2]);
            (side ? kernel_attention_backward : OF(tier, kernel_attention_backward))(
                &c.shape, c.q, c.k, c.v, c.d_o, y[1], y[2], y[3], c.shape.q_stride, y[4], y[5], c.shape.kv_stride);
        }
        agree(tier, "o", x[0][0], x[1][0], c.o_size, 4e-6);
        agree(tier, "lse", x[0][1], x[1][1], c.lse_size, 1e-6);
        if (c.shape.keys > 1) {  // with one key dq and dk are 0 but for rounding
            agree(tier, "dq", x[0][3], x[1][3], c.q_size, 2e-5);
            agree(tier, "dk", x[0][4], x[1][4], c.kv_size, 2e-5);
        }
        agree(tier, "dv", x[0][5], x[1][5], c.kv_size, 2e-5);
        for (int out = 0; out < 12; out++) {
            free(x[out / 6][out % 6]);
        }
        attention_case_free(&c);
    }
}

Test(tiers, attention_agrees) {
    each_tier(attention_on);
}

static void rows_on(Tier tier) {
    float *x = check_floats(SIZE, 1), *w = check_floats(COLS, 2), *dy = check_floats(SIZE, 3);
    float *y[2], *dx[2], *dw[2], rstd[2][ROWS];
    for (int side = 0; side < 2; side++) {
        y[side] = check_zeros(SIZE), dx[side] = check_zeros(SIZE), dw[side] = check_zeros(COLS);
        const KernelNorm norm = {ROWS, COLS, 1e-5f, x, NULL, w, NULL, NULL, y[side], NULL, rstd[side], 0};
        const KernelNormBackward back = {ROWS, COLS, dy, x, w, NULL, rstd[side], x, dx[side], dw[side], false, 0};
        (side ? kernel_norm : OF(tier, kernel_norm))(&norm);
        (side ? kernel_norm_backward : OF(tier, kernel_norm_backward))(&back);
    }
    agree(tier, "rmsnorm", y[0], y[1], SIZE, 1e-6);
    agree(tier, "rmsnorm dx", dx[0], dx[1], SIZE, 1e-6);
    agree(tier, "rmsnorm dw", dw[0], dw[1], COLS, 1e-6);
    for (int side = 0; side < 2; side++) {
        const KernelGated gated = {KERNEL_SILU, ROWS, COLS, COLS};
        (side ? kernel_gated : OF(tier, kernel_gated))(&gated, x, dy, y[side]);
        (side ? kernel_gated_backward : OF(tier, kernel_gated_backward))(&gated, dy, x, dy, dx[side], y[side]);
    }
    agree(tier, "swiglu dup", y[0], y[1], SIZE, 1e-6);
    agree(tier, "swiglu dgate", dx[0], dx[1], SIZE, 1e-6);
    for (int side = 0; side < 2; side++) {
        free(y[side]), free(dx[side]), free(dw[side]);
    }
    free(x), free(w), free(dy);
}

static void layernorm_on(Tier tier) {
    float *x = check_floats(SIZE, 1), *w = check_floats(COLS, 2), *dy = check_floats(SIZE, 3);
    float *y[2], *dx[2], *dw[2], mean[2][ROWS], rstd[2][ROWS];
    for (int side = 0; side < 2; side++) {
        y[side] = check_zeros(SIZE), dx[side] = check_zeros(SIZE), dw[side] = check_zeros(COLS);
        const KernelNorm norm = {ROWS, COLS, 1e-5f, x, NULL, w, w, NULL, y[side], mean[side], rstd[side], 0};
        const KernelNormBackward back = {ROWS, COLS, dy, x, w, mean[side], rstd[side], x, dx[side], dw[side], false, 0};
        (side ? kernel_norm : OF(tier, kernel_norm))(&norm);
        (side ? kernel_norm_backward : OF(tier, kernel_norm_backward))(&back);
    }
    agree(tier, "layernorm", y[0], y[1], SIZE, 1e-6);
    agree(tier, "layernorm dx", dx[0], dx[1], SIZE, 1e-6);
    agree(tier, "layernorm dw", dw[0], dw[1], COLS, 1e-6);
    for (int side = 0; side < 2; side++) {
        const KernelNorm norm = {ROWS, COLS, 1e-5f, x, dy, w, w, dx[side], y[side], mean[side], rstd[side], 0};
        (side ? kernel_norm : OF(tier, kernel_norm))(&norm);
    }
    agree(tier, "norm of a sum", y[0], y[1], SIZE, 1e-6);
    const KernelStretches shape = {ROWS, 7, COLS / 7, COLS, COLS, 7};
    for (int side = 0; side < 2; side++) {
        float before[SIZE], parts_rstd[7 * ROWS];
        memcpy(y[side], x, sizeof(float) * SIZE);
        memcpy(dx[side], dy, sizeof(float) * SIZE);
        (side ? kernel_stretch_norm : OF(tier, kernel_stretch_norm))(&shape, 1e-5f, w, y[side], before, parts_rstd);
        (side ? kernel_stretch_norm_backward : OF(tier, kernel_stretch_norm_backward))(&shape, w, before, parts_rstd,
                                                                                       dx[side], dw[side], false);
    }
    agree(tier, "norm of stretches", y[0], y[1], SIZE, 1e-6);
    agree(tier, "norm of stretches dx", dx[0], dx[1], SIZE, 1e-6);
    agree(tier, "norm of stretches dw", dw[0], dw[1], COLS / 7, 1e-6);
    for (int side = 0; side < 2; side++) {
        free(y[side]), free(dx[side]), free(dw[side]);
    }
    free(x), free(w), free(dy);
}

Test(tiers, layernorm_and_the_norm_of_stretches_agree) {
    each_tier(layernorm_on);
}

static void activation_on(Tier tier) {
    float *x = check_floats(SIZE, 1), *got[2] = {check_zeros(SIZE), check_zeros(SIZE)}, sums[2][COLS];
    for (KernelActivation kind = KERNEL_SILU; kind <= KERNEL_GELU_TANH; kind++) {
        for (int side = 0; side < 2; side++) {
            (side ? kernel_activation : OF(tier, kernel_activation))(kind, SIZE, x, got[side]);
        }
        agree(tier, "activation", got[0], got[1], SIZE, 1e-6);
        for (int side = 0; side < 2; side++) {
            (side ? kernel_activation_backward : OF(tier, kernel_activation_backward))(kind, SIZE, x, x, got[side]);
            (side ? kernel_column_sum : OF(tier, kernel_column_sum))(ROWS, COLS, got[side], sums[side], false);
        }
        agree(tier, "activation backward", got[0], got[1], SIZE, 1e-6);
        agree(tier, "column sums", sums[0], sums[1], COLS, 1e-6);
    }
    free(x), free(got[0]), free(got[1]);
}

Test(tiers, activations_and_column_sums_agree) {
    each_tier(activation_on);
}

Test(tiers, rmsnorm_and_gated_activations_agree) {
    each_tier(rows_on);
}

static void normal_on(Tier tier) {
    const KernelNormal stream = {UINT64_C(0x123456789abcdef0), 77, UINT64_C(0x1ffffff00), 0.25f};
    float got[2][1000];
    for (int side = 0; side < 2; side++) {
        (side ? kernel_normal : OF(tier, kernel_normal))(&stream, 1000, got[side]);
    }
    cr_assert_arr_eq(got[0], got[1], sizeof got[0], "tier %s", tier_names[tier]);
}

Test(tiers, normal_numbers_have_the_same_bits) {
    each_tier(normal_on);
}

static void loss_on(Tier tier) {
    int32_t targets[ROWS];
    float max[2][ROWS], sum[2][ROWS], target[2][ROWS], loss[2];
    float *logits[2] = {check_floats(SIZE, 1), check_floats(SIZE, 1)};
    for (int row = 0; row < ROWS; row++) {
        targets[row] = row * 9;
    }
    for (int side = 0; side < 2; side++) {
        const KernelLoss shape = {ROWS, COLS, 0, targets, max[side], sum[side], target[side], 1.0f, 0};
        (side ? kernel_loss_max : OF(tier, kernel_loss_max))(&shape, logits[side]);
        (side ? kernel_loss_sum : OF(tier, kernel_loss_sum))(&shape, logits[side]);
        (side ? kernel_loss_gradient : OF(tier, kernel_loss_gradient))(&shape, logits[side], &loss[side], false);
    }
    cr_assert_arr_eq(max[0], max[1], sizeof max[0]);
    agree(tier, "sum of exponentials", sum[0], sum[1], ROWS, 1e-6);
    agree(tier, "loss", &loss[0], &loss[1], 1, 1e-6);
    agree(tier, "loss gradient", logits[0], logits[1], SIZE, 1e-6);
    free(logits[0]), free(logits[1]);
}

Test(tiers, loss_agrees) {
    each_tier(loss_on);
}

static void whole_loss_of(Tier tier, float cap) {
    int32_t targets[ROWS] = {0};
    float rows[3][ROWS], loss[2];
    float *logits[2] = {check_floats(SIZE, 1), check_floats(SIZE, 1)};
    const KernelLoss shape = {ROWS, COLS, 0, targets, rows[0], rows[1], rows[2], 1.0f, cap};
    OF(tier, kernel_loss)(&shape, logits[0], &loss[0], false);
    kernel_loss(&shape, logits[1], &loss[1], false);
    agree(tier, "whole loss", &loss[0], &loss[1], 1, 1e-6);
    agree(tier, "gradient of the whole loss", logits[0], logits[1], SIZE, 1e-6);
    free(logits[0]), free(logits[1]);
}

static void whole_loss_on(Tier tier) {
    whole_loss_of(tier, 0);
    whole_loss_of(tier, 0.5f);
}

Test(tiers, the_whole_loss_agrees) {
    each_tier(whole_loss_on);
}

static void streaming_on(Tier tier) {
    const KernelAdamw adamw = {1e-2f, 0.9f, 0.95f, 1e-8f, 0.1f, 2};
    const float scale = 0.5f;
    int32_t place[ROWS];
    float *gradient = check_floats(SIZE, 1), *master[2], *moment1[2], *moment2[2], *dtable[2], sum[2];
    for (int row = 0; row < ROWS; row++) {
        place[row] = row * 5000 % 97;
    }
    for (int side = 0; side < 2; side++) {
        master[side] = check_floats(SIZE, 2), moment1[side] = check_zeros(SIZE), moment2[side] = check_zeros(SIZE);
        dtable[side] = check_zeros(97 * COLS);
        (side ? kernel_adamw : OF(tier, kernel_adamw))(SIZE, 33, &adamw, &scale, gradient, master[side], moment1[side],
                                                       moment2[side]);
        (side ? kernel_square_sum : OF(tier, kernel_square_sum))(SIZE, 33, 0.25, gradient, &sum[side], false);
        const KernelRope rope = {3, 64, 48, COLS, 1e4, .backward = false};
        const KernelEmbed embed = {ROWS, COLS, 0, 97, 1.5f};
        (side ? kernel_rope : OF(tier, kernel_rope))(ROWS, &rope, place, moment1[side]);
        (side ? kernel_embed_backward : OF(tier, kernel_embed_backward))(&embed, place, gradient, dtable[side], false);
    }
    agree(tier, "adamw", master[0], master[1], SIZE, 1e-6);
    agree(tier, "adamw moments and rope", moment1[0], moment1[1], SIZE, 1e-6);
    agree(tier, "square sum", &sum[0], &sum[1], 1, 1e-7);
    agree(tier, "embedding gradient", dtable[0], dtable[1], 97 * COLS, 1e-7);
    for (int side = 0; side < 2; side++) {
        free(master[side]), free(moment1[side]), free(moment2[side]), free(dtable[side]);
    }
    free(gradient);
}

Test(tiers, streaming_kernels_agree) {
    each_tier(streaming_on);
}

// What latent attention has beside products and attention itself (DeepSeek-V2, section 2.1): norms of the leading
// columns of wider rows, and keys of all heads, of which one part comes from the latent and one is the same in each.

#pragma once

#include <stdbool.h>
#include <stdint.h>

// kernel_rmsnorm and its backward, of rows of x (and of dx) that are x_stride apart; y and dy are packed. No residual.
typedef struct KernelLatentNorm {
    int64_t rows, cols, x_stride;
    const float *x, *w;
} KernelLatentNorm;
void kernel_latent_norm(const KernelLatentNorm *norm, float eps, float *y, float *rstd);
void kernel_latent_norm_backward(const KernelLatentNorm *norm, const float *dy, const float *rstd, float *dx, float *dw,
                                 bool accumulate);

// up[rows][heads][still + value], shared rows shared_stride apart of which `turning` elements are read,
// keys[rows][heads][still + turning].
typedef struct KernelKeys {
    int64_t rows;
    int heads, still, turning, value;
    int64_t shared_stride;
} KernelKeys;
void kernel_join_keys(const KernelKeys *keys, const float *up, const float *shared, float *k);
// dup from dk and dv[rows][heads][value]; dshared: the sum over heads.
void kernel_part_keys(const KernelKeys *keys, const float *dk, const float *dv, float *dup, float *dshared);

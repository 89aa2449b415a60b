// What latent attention needs in addition to products, norms and attention itself (DeepSeek-V2, section 2.1): keys of
// all heads, with one part from the latent and one part shared by all heads.

#pragma once

#include <stdbool.h>
#include <stdint.h>

// up[rows][heads][still + value], rows of shared shared_stride apart of which the first `turning` elements are read,
// keys[rows][heads][still + turning].
typedef struct KernelKeys {
    int64_t rows;
    int heads, still, turning, value;
    int64_t shared_stride;
} KernelKeys;
void kernel_join_keys(const KernelKeys *keys, const float *up, const float *shared, float *k);
// dup from dk and dv[rows][heads][value]; dshared is the sum over heads.
void kernel_part_keys(const KernelKeys *keys, const float *dk, const float *dv, float *dup, float *dshared);

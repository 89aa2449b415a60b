// GEMM C[m,n] = A[m,k] B[k,n]: the cheapest tile shape and split of K under a wave model, joined with operand traffic.
// Formula: sim/SOURCES.md H1; the rates come from the profile, where each carries its source. Sustained rate:
// what a training step sees once the power limit bites. A product that was timed on the chip (profile, "products")
// takes its own time instead, slowed by the power limit as the formula is. Not modelled: layouts (NT, NN and TN differ
// by a few percent), tile swizzles, clock changes inside a step. Grouped products (experts) run at the plain rate of
// one group's shape, with waves counted over the tiles of all groups, which are alike (sim/SOURCES.md E3: the rate
// falls with rows per expert below some 512, not with the number of groups; no run judged that), or as a probe
// measured them.

#include "sim/cost/compute.h"

#include <math.h>

typedef struct Tile {
    int m, n, efficiency_class;
} Tile;

static const Tile tiles[] = {{256, 128, 0}, {128, 256, 0}, {128, 128, 1}, {256, 64, 1},
                             {64, 256, 1},  {128, 64, 2},  {64, 128, 2},  {64, 64, 3}};  // H1

enum {
    TILE_COUNT = sizeof(tiles) / sizeof(tiles[0]),
    MAX_SPLIT = 8,          // H1: s in {1,2,4,8}
    MIN_SPLIT_DEPTH = 256,  // H1: K/s >= 256
    FP8_QUANT_BYTES = 5,    // per element of A, dynamic tensor-wise scaling, at the operand bandwidth: H1,
                            // as its fit reads
    ALIGNED_ELEMENTS = 8,   // tensor cores want rows in memory in multiples of 16 bytes of bf16
};

// Share of the extra traffic of a product that accumulates that arithmetic does not hide. Of fp32 sums 4 of 6 bytes per
// element in 71 pairs of 4096 tokens on B200 (5.4) and 52 on A100 (3.6), 2 to 12 on B200 from 2048 to 65536
// (MooreThreads/SimuMax, configs/system, b200_bf16_ceperm.json and a100_pcie.json: wgrad against forward of the same
// shape). Judged: the same share of the 2 bytes with which a bf16 sum is read; no such pairs are known.
static const double unhidden_sum_share = 0.67;

// sim/SOURCES.md H3: 273 against 398 TFLOP/s on H100, rows of an even number of elements (one measured pair). An odd
// number leaves loads of 2 bytes: the head of a vocabulary of 50257 takes 2.5 to 2.9 times as long on A100 as one split
// (vTrain's traced steps of one rank against two, per sequence, of which its simulator is made): this source's.
static const double unaligned_efficiency = 0.69, odd_efficiency = 0.4;

typedef struct Waves {
    double slots;            // SMs
    double flop_per_s_slot;  // of one SM, class 0
    double quantisation, overhead_s;
} Waves;

// Seconds of `ctas` thread blocks of tile_flops each.
static inline double waves_seconds(const Waves *waves, double ctas, double tile_flops, double efficiency) {
    const double filled = ctas / waves->slots;
    const double count = filled <= 1 ? 1 : waves->quantisation * ceil(filled) + (1 - waves->quantisation) * filled;
    return count * (tile_flops / (waves->flop_per_s_slot * efficiency) + waves->overhead_s);
}

static double group_count(const GemmShape *shape) {
    return shape->groups > 0 ? (double)shape->groups : 1;
}

static double tiles_seconds(const Accelerator *accelerator, const GemmRate *rate, const GemmShape *shape,
                            double flop_per_s) {
    const Waves waves = {.slots = accelerator->sm_count,
                         .flop_per_s_slot = flop_per_s / accelerator->sm_count,
                         .quantisation = rate->wave_quantisation,
                         .overhead_s = rate->tile_overhead_s};
    const double merge_s = 8.0 * (double)shape->m * (double)shape->n / accelerator->memory_bytes_per_s;  // per split
    double best_s = INFINITY;
    for (int i = 0; i < TILE_COUNT; i++) {
        const Tile *tile = &tiles[i];
        const double blocks = group_count(shape) * (double)((shape->m + tile->m - 1) / tile->m) *
                              (double)((shape->n + tile->n - 1) / tile->n);
        const double flops = 2.0 * tile->m * tile->n * (double)shape->k;
        const double efficiency = tile->efficiency_class == 0 ? 1 : rate->class_efficiency[tile->efficiency_class - 1];
        for (int split = 1; split <= MAX_SPLIT; split *= 2) {
            if (split > 1 && (shape->groups > 0 || blocks * split > 2.0 * waves.slots ||
                              shape->k < (int64_t)MIN_SPLIT_DEPTH * split)) {
                break;
            }
            const double seconds =
                waves_seconds(&waves, blocks * split, flops / split, efficiency) + (split > 1 ? split * merge_s : 0);
            best_s = seconds < best_s ? seconds : best_s;
        }
    }
    return best_s;
}

// As measured (ndtune probe): each group is a call, whose rate falls with its rows.
static double ramped_seconds(const Accelerator *accelerator, const GemmRate *rate, const GemmShape *shape,
                             double flop_per_s) {
    const double rows = (double)(shape->trans_a ? shape->k : shape->m), groups = (double)shape->groups;
    const double flops = 2.0 * (double)shape->m * (double)shape->n * (double)shape->k;
    return groups * flops / flop_per_s * (1 + accelerator->grouped_ramp_rows / rows) + (groups - 1) * rate->launch_s;
}

bool cost_supports(const Accelerator *accelerator, Dtype dtype) {
    return accelerator->gemm[dtype].burst_flop_per_s > 0 || accelerator->gemm[dtype].sustained_flop_per_s > 0;
}

// By the rows of A, B and C as they lie in memory. Tokens are never the length of a row: an odd number of them costs
// nothing. TorchInductor pads operands to whole loads, and what makes them writes the zeros (pytorch/pytorch,
// torch/_inductor/fx_passes/pad_mm.py; config.py, shape_padding: "0" in 2.0, "1" since 2.1).
static double alignment_efficiency(const GemmShape *shape) {
    const int64_t a = shape->trans_a ? shape->m : shape->k, b = shape->trans_b ? shape->k : shape->n;
    const int64_t bits = a | b | shape->n;
    return bits % ALIGNED_ELEMENTS == 0 || shape->padded ? 1 : bits % 2 == 0 ? unaligned_efficiency : odd_efficiency;
}

// cuBLASLt's products of mxfp8 beside those of one scale: 7.161 for 6.812 ms, twelve of a layer of width 4096 on a B300
// without casts (NVIDIA/TransformerEngine docs/examples/gemm_profiling/gemm_profiling.rst, pre-quantized).
static const double block_scaled_share = 6.812 / 7.161;

// The launch of fp8's rates has the cast of their harness in it. Fused operations cast by kernels that are priced by
// themselves, and before a product that reads weights put their scales in the order that the kernel wants
// (Transformer Engine v2.16, get_device_pointer_for_data_and_scales with swizzle).
static double fused_launch_s(const Accelerator *accelerator, const GemmShape *shape) {
    const double order_s = accelerator->kernel_floor_s + accelerator->kernel_gap_s;
    return accelerator->gemm[DTYPE_BF16].launch_s + (shape->trans_a ? 0 : order_s);
}

static KernelTime formula_time(const Accelerator *accelerator, Dtype dtype, const GemmShape *shape, double flop_per_s) {
    const GemmRate *rate = &accelerator->gemm[dtype];
    const double element = dtype == DTYPE_NVFP4 ? 0.5 : dtype_bytes(dtype);  // as its fit reads: without scales
    const double m = (double)shape->m, n = (double)shape->n, k = (double)shape->k;
    if (accelerator->device_class == DEVICE_CLASS_GPU && dtype != DTYPE_FP32) {
        flop_per_s *= alignment_efficiency(shape);
    }
    flop_per_s *= shape->fp8_share > 0 ? shape->fp8_share : 1;
    flop_per_s *= shape->block_scales ? block_scaled_share : 1;
    const bool ramped = shape->groups > 0 && accelerator->grouped_ramp_rows > 0;
    const double compute_s = (ramped ? ramped_seconds : tiles_seconds)(accelerator, rate, shape, flop_per_s);
    const double bytes_per_s = accelerator->memory_bytes_per_s * rate->bandwidth_factor;
    const double memory_s =
        group_count(shape) * ((m * k + k * n) * element + m * n * shape->output_bytes) / bytes_per_s;
    const double compute_cube = compute_s * compute_s * compute_s, memory_cube = memory_s * memory_s * memory_s;
    const bool sums = shape->accumulate && accelerator->device_class == DEVICE_CLASS_GPU;
    const double plain = fmax(element, dtype_bytes(DTYPE_BF16));  // what the product writes where it adds to nothing
    const double sum_bytes = sums ? fmax(0, group_count(shape) * m * n * (shape->output_bytes - plain)) : 0;
    const double sum_s = unhidden_sum_share * sum_bytes / accelerator->memory_bytes_per_s;
    const double quant_s = shape->casts_input ? FP8_QUANT_BYTES * m * k / bytes_per_s : 0;
    const double launch_s = shape->fused ? fused_launch_s(accelerator, shape) : rate->launch_s;
    return (KernelTime){.seconds = launch_s + cbrt(compute_cube + memory_cube) + sum_s + quant_s,
                        .memory_s = memory_s,
                        .memory_bound = memory_cube / (compute_cube + memory_cube)};
}

static const TimedGemm *timed_product(const Accelerator *accelerator, Dtype dtype, const GemmShape *shape) {
    const TimedGemm wanted = {.m = shape->m,
                              .n = shape->n,
                              .k = shape->k,
                              .input = dtype,
                              .output = shape->output,
                              .trans_a = shape->trans_a,
                              .trans_b = shape->trans_b,
                              .accumulate = shape->accumulate};
    return accelerator->product_count > 0 ? cluster_product_find(accelerator, &wanted) : NULL;
}

KernelTime gemm_time(const Accelerator *accelerator, Dtype dtype, const GemmShape *shape) {
    const GemmRate *rate = &accelerator->gemm[dtype];
    if (!cost_supports(accelerator, dtype)) {
        return (KernelTime){.seconds = INFINITY};
    }
    const double burst = rate->burst_flop_per_s, sustained = rate->sustained_flop_per_s;
    KernelTime time = formula_time(accelerator, dtype, shape, sustained > 0 ? sustained : burst);
    const TimedGemm *timed = timed_product(accelerator, dtype, shape);
    if (timed && sustained > 0 && burst > sustained) {  // it was timed before the power limit bites
        time.seconds *= timed->seconds / formula_time(accelerator, dtype, shape, burst).seconds;
    } else if (timed) {
        time.seconds = timed->seconds;
    }
    return time;
}

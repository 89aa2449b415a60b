// Flash-type attention: plateau rate, a ramp over the visible key positions, a loss on the causal diagonal and
// occupancy. Formula: sim/SOURCES.md H4, of a sliding window with its tiles counted (judged, not measured).
// Slices of a ring use the same formula with their own queries and keys: short slices pay the ramp, which is the real
// price of a high context-parallel degree. Not modelled: masks other than causal.

#include "sim/cost/compute.h"

#include <math.h>
#include <string.h>

const double attention_diagonal_tile = 128;   // H4: diag = cc * S/(S+128)
const double attention_query_tile = 128;      // H4: w = B H ceil(Sq/128) / SM
const double attention_backward_flops = 2.5;  // five matrix products instead of two (Dao 2023, FlashAttention-2, 4.1)

// Kernels of 2023 written in Triton: FlashAttention 1 class, 1.91 and 1.92 times FA2 in two halves of the runs
// (sim/SOURCES.md A5).
static const double triton_slowdown = 1.9;

// Attention draws what products draw, and the power limit slows both (sim/SOURCES.md H4). In fp8 no figure is known.
static double kept_up(const Accelerator *accelerator, const AttentionShape *shape, double flop_per_s) {
    const double kept =
        shape->backward ? accelerator->attention_backward_flop_per_s : accelerator->attention_forward_flop_per_s;
    return kept > 0 ? fmin(flop_per_s, kept) : flop_per_s;
}

// Attention as separate operations: bytes per element of the square of scores, at streaming speed, and batched products
// below the rate of plain ones (sim/SOURCES.md A5, without its multiplier for the bytes, which stood in for host
// time), where one kernel scales, masks and normalizes. One by one, as transformers' eager_attention_forward: scores 2,
// scaled 4, masked 4, softmax to fp32 6, to half 6, read 2; backward: read 2, gradients of probabilities 2, to fp32 6,
// softmax 10, scaled 4, read 4. Compiled, what is between the products is one kernel that reads and writes halves.
static const double eager_forward_bytes[FUSED_COUNT] = {[FUSED_FUSED] = 13, [FUSED_EAGER] = 24, [FUSED_COMPILED] = 8};
static const double eager_backward_bytes[FUSED_COUNT] = {[FUSED_FUSED] = 18, [FUSED_EAGER] = 28, [FUSED_COMPILED] = 14};
// torch.masked_fill copies what it fills, 4, reads and writes it 4, and the mask 1; its backward is one more.
static const double eager_fill_bytes = 5, eager_fill_backward_bytes = 9;
// Dropout reads and writes halves and a mask of a byte, either way; compiled it is in the same kernel.
static const double eager_dropout_bytes = 5;
static const double eager_product_efficiency = 0.55;

static KernelTime eager_time(const Accelerator *accelerator, Dtype dtype, const AttentionShape *shape) {
    const double scores = shape->sequences * shape->heads * shape->queries * shape->keys;
    const double flops = scores * shape->head_dim * (shape->backward ? 8 : 4);
    const double product_s = flops / (accelerator->gemm[dtype].sustained_flop_per_s * eager_product_efficiency);
    const bool apart = shape->softmax == FUSED_EAGER;
    const double dropped = apart && shape->drops ? eager_dropout_bytes : 0;
    const double filled = !apart || !shape->fills ? 0 : shape->backward ? eager_fill_backward_bytes : eager_fill_bytes;
    const double bytes =
        scores * ((shape->backward ? eager_backward_bytes : eager_forward_bytes)[shape->softmax] + dropped + filled);
    const double memory_s = bytes / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency);
    return (KernelTime){.seconds = accelerator->kernel_floor_s + product_s + memory_s,
                        .memory_s = memory_s,
                        .memory_bound = memory_s / (product_s + memory_s)};
}

// FlexAttention's reference (PyTorch, torch/_higher_order_ops/flex_attention.py, math_attention, sdpa_dense_backward),
// bytes per element of the square of scores. Forward: scores 4, scaled 8, masked 8, logsumexp 24, rows without a key 6,
// maxima 4, softmax and where 22, to bf16 6, read 2. Backward: scores as forward 20, less logsumexp 8, exp 8, where 8,
// to bf16 6, read 2; gradients of probabilities 4, two sums 16, product 12, scaled 8, to bf16 6, masked 4, read 4.
// Masked positions are computed as all others. Scores and the gradients of probabilities are products in fp32.
static const double reference_forward_bytes = 84, reference_backward_bytes = 106;

static KernelTime reference_time(const Accelerator *accelerator, Dtype dtype, const AttentionShape *shape) {
    const double scores = shape->sequences * shape->heads * shape->queries * shape->keys;
    const double product = 2 * scores * shape->head_dim;
    const double fp32_s = product * (shape->backward ? 2 : 1) / accelerator->gemm[DTYPE_FP32].sustained_flop_per_s;
    const double half_s = product * (shape->backward ? 3 : 1) /
                          (accelerator->gemm[dtype].sustained_flop_per_s * eager_product_efficiency);
    const double bytes = scores * (shape->backward ? reference_backward_bytes : reference_forward_bytes);
    const double memory_s = bytes / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency);
    const double seconds = accelerator->kernel_floor_s + fp32_s + half_s + memory_s;
    return (KernelTime){.seconds = seconds, .memory_s = memory_s, .memory_bound = memory_s / seconds};
}

// cuDNN has kernels for 64, 128, 192 and 256 elements of a head, and runs the next larger one: a head of 96 takes the
// tiles of 128, of 160 those of 192 (names of the kernels that cuDNN 9 builds for A100, H200 and B200, forward and
// backward; tests/accuracy/holdout/RESULTS.md).
enum { CUDNN_HEAD_STEP = 64 };

static int head_dim_run(const Accelerator *accelerator, const AttentionShape *shape) {
    if (shape->kernel != ATTENTION_CUDNN || shape->uneven_heads || attention_lacks_cudnn(accelerator)) {
        return shape->head_dim;
    }
    return (shape->head_dim + CUDNN_HEAD_STEP - 1) / CUDNN_HEAD_STEP * CUDNN_HEAD_STEP;
}

static bool slides(const AttentionShape *shape) {
    return shape->window > 0 && shape->window < shape->keys;
}

// Keys that a query sees, in the mean: of a window w in a causal square of S, w - w^2 / 2S.
static double visible_keys(const AttentionShape *shape) {
    return slides(shape) ? shape->window * (1 - shape->window / (2 * shape->keys)) : shape->keys * shape->visible_share;
}

// Of a causal block's tiles what is visible: half empty on the diagonal, and so they are on a window's other edge,
// where the queries beyond its length are.
static double tile_rate(const AttentionRate *rate, const AttentionShape *shape, double visible) {
    if (!slides(shape)) {
        return rate->causal_factor * shape->keys / (shape->keys + attention_diagonal_tile);
    }
    const double half_empty = (2 - shape->window / shape->keys) * attention_diagonal_tile / 2;
    return rate->causal_factor * visible / (visible + half_empty);
}

static double head_dim_distance(int have, int want) {
    return fabs(log2((double)have / (double)want));
}

static bool is_row_of(const AttentionRate *row, const char *kernel) {
    return strcmp(row->kernel, kernel) == 0 || (strcmp(kernel, "cudnn") == 0 && strcmp(row->kernel, "ck") == 0);
}

bool attention_has_row(const Accelerator *accelerator, const char *kernel) {
    bool has = false;
    for (int i = 0; i < accelerator->attention_count; i++) {
        has |= strcmp(accelerator->attention[i].kernel, kernel) == 0;
    }
    return has;
}

bool attention_lacks_cudnn(const Accelerator *accelerator) {
    return attention_has_row(accelerator, "ck");
}

const AttentionRate *attention_rate(const Accelerator *accelerator, const char *kernel, int head_dim) {
    const AttentionRate *best = NULL;
    bool best_named = false;
    for (int i = 0; i < accelerator->attention_count; i++) {
        const AttentionRate *row = &accelerator->attention[i];
        const bool named = is_row_of(row, kernel);
        if (!best || (named && !best_named) ||
            (named == best_named &&
             head_dim_distance(row->head_dim, head_dim) < head_dim_distance(best->head_dim, head_dim))) {
            best = row;
            best_named = named;
        }
    }
    return best;
}

static const AttentionRate *named_rate(const Accelerator *accelerator, const char *kernel, int head_dim) {
    const AttentionRate *rate = attention_rate(accelerator, kernel, head_dim);
    return rate && strcmp(rate->kernel, kernel) == 0 ? rate : NULL;
}

// Rates of attention in fp8 stand beside the kernel's own, of fp8's peak; NULL: the profile has none.
static const AttentionRate *fp8_rate(const Accelerator *accelerator, const AttentionShape *shape) {
    if (!shape->fp8 || shape->kernel != ATTENTION_CUDNN) {
        return NULL;
    }
    const AttentionRate *scaled = shape->block_scales ? named_rate(accelerator, "cudnn-mxfp8", shape->head_dim) : NULL;
    return scaled ? scaled : named_rate(accelerator, "cudnn-fp8", shape->head_dim);
}

// Transformer Engine casts queries, keys and values before the kernel and the output's gradient before that of backward
// (NVIDIA/TransformerEngine@006b3360, pytorch/attention/dot_product_attention/backends.py, FusedAttnFunc): scaled by
// current values, each is read for its maximum, read again and written in fp8. What the kernels write is bf16
// (NVTE_DPA_FP8CS_O_in_F16). With a scale for every 32 elements it is read once, written in both layouts
// (mxfp8_quantize_fast_path).
static const double cast_bytes = 2 + 2 + 1, block_cast_bytes = 2 + 1 + 1;

// Dropout draws its random numbers in the kernel, on the issue slots that softmax waits for too, so that little of it
// is hidden (arXiv 2410.07531): instructions for each score, forward and backward, of the loops of kernels for sm_90
// with it less those without, cuDNN 9's of heads of 64 and 128 and FlashAttention 2's of 64, 96 and 128 in PyTorch 2.7
// (tests/accuracy/holdout/RESULTS.md). Separate operations have it among theirs.
static const double dropout_instructions[][2] = {[ATTENTION_FLASH] = {5.9, 7.9}, [ATTENTION_CUDNN] = {12.1, 12.2}};
enum { DROPPING_KERNELS = sizeof dropout_instructions / sizeof dropout_instructions[0] };
static const double lanes = 4 * 32;  // a multiprocessor issues four instructions of a warp in a clock

// Composable Kernel's on CDNA, 64 lanes of a compute unit in a clock (data sheet of MI355X: 78.6 TFLOP/s of fp64, 256
// units, 2.4 GHz). Seven rounds of Philox (ck_tile/core/utility/philox_rand.hpp), each two wide products, which take
// four clocks (LLVM, SISchedule.td, WriteIntMul 4), and four xors, are 84 and make 16 bytes. Forward takes all of them,
// and compares, selects and scales; backward of heads of 128, whose products are 16 x 16 (codegen/ops/fmha_bwd.py),
// takes four (ops/fmha/block/block_dropout.hpp, get_random_4x8), and compares, negates, and masks and scales twice.
static const double ck_dropout_slots[] = {84.0 / 16 + 3, 84.0 / 4 + 5};
static const double ck_lanes = 64;

static double ck_dropout_s(const Accelerator *accelerator, const AttentionShape *shape, double scores) {
    const double slots = shape->drops ? ck_dropout_slots[shape->backward] : 0;
    return slots * scores / (ck_lanes * accelerator->sm_count * cost_clock_hz(accelerator));
}

static double dropout_s(const Accelerator *accelerator, const AttentionShape *shape, double scores) {
    if (attention_lacks_cudnn(accelerator)) {
        return ck_dropout_s(accelerator, shape, scores);
    }
    const double instructions = shape->drops && (int)shape->kernel < DROPPING_KERNELS
                                    ? dropout_instructions[shape->kernel][shape->backward]
                                    : 0;
    return instructions * scores / (lanes * accelerator->sm_count * cost_clock_hz(accelerator));
}

// cuDNN's backward in fp8 skips nothing of a window: 1.48, 5.19, 19.4 and 74.8 ms at 4,096 to 32,768 keys, 128 of them
// in the window, where bf16 takes 0.44, 0.86, 1.71 and 3.45 (NVIDIA/cudnn-frontend@3929da2, results/gpt_oss/gb300).
static bool skips_window(const AttentionShape *shape, const AttentionRate *in_fp8) {
    return !in_fp8 || !shape->backward;
}

// AMD's asm kernels refuse dropout, so that Composable Kernel's run, which are FlashAttention 2 there
// (ROCm/aiter, csrc/cpp_itfs/mha_fwd.cu: p_drop, mha_bwd.cu: has_dropout).
static AttentionKernel kernel_run(const Accelerator *accelerator, const AttentionShape *asked) {
    const bool refused = asked->drops && asked->kernel == ATTENTION_CUDNN && attention_lacks_cudnn(accelerator);
    return refused ? ATTENTION_FLASH : asked->kernel;
}

KernelTime attention_time(const Accelerator *accelerator, Dtype dtype, const AttentionShape *asked) {
    const AttentionRate *in_fp8 = fp8_rate(accelerator, asked);
    AttentionShape own = *asked;
    own.kernel = kernel_run(accelerator, asked);
    own.window = skips_window(asked, in_fp8) ? asked->window : 0;
    const AttentionShape *shape = &own;
    const bool triton = shape->kernel == ATTENTION_TRITON;
    const char *kernel = attention_names[triton ? ATTENTION_FLASH : shape->kernel];
    const int head_dim = head_dim_run(accelerator, shape);
    const AttentionRate *rate = in_fp8 ? in_fp8 : attention_rate(accelerator, kernel, head_dim);
    if (!rate || !cost_supports(accelerator, dtype)) {
        return (KernelTime){.seconds = INFINITY};
    }
    if (shape->reference) {
        return reference_time(accelerator, dtype, shape);
    }
    if (shape->kernel == ATTENTION_EAGER) {
        return eager_time(accelerator, dtype, shape);
    }
    const double efficiency = shape->backward ? rate->backward_efficiency : rate->forward_efficiency;
    const double ramp_start = shape->backward ? rate->backward_ramp : rate->forward_ramp;
    const double lines = shape->sequences * shape->heads;  // independent (sequence, head) problems
    const double seen = visible_keys(shape);
    const double share = slides(shape) ? seen / shape->keys : shape->visible_share;
    const double scores = lines * shape->queries * shape->keys * share;
    const double flops = 4 * scores * head_dim * (shape->backward ? attention_backward_flops : 1);
    const double query_bytes = 2 * lines * shape->queries * shape->head_dim * dtype_bytes(dtype);  // q o
    const double key_bytes = 2 * shape->sequences * (shape->kv_heads > 0 ? shape->kv_heads : shape->heads) *
                             shape->keys * shape->head_dim * dtype_bytes(dtype);  // k v
    const double bytes = query_bytes + key_bytes;
    const double floor_s = accelerator->kernel_floor_s;
    const double memory_s = bytes / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency);
    if (flops <= 0) {
        return (KernelTime){.seconds = floor_s};
    }
    const double ramp = seen / (seen + ramp_start);
    const double diagonal = shape->diagonal ? tile_rate(rate, shape, seen) : 1;
    const double waves = lines * ceil(shape->queries / attention_query_tile) / accelerator->sm_count;
    const double occupancy = waves < 1 ? waves : waves / (0.5 * ceil(waves) + 0.5 * waves);
    const double peak = accelerator->gemm[in_fp8 ? DTYPE_FP8 : dtype].peak_flop_per_s;
    const double reached = peak * efficiency * ramp * diagonal;
    const double flop_per_s = (in_fp8 ? reached : kept_up(accelerator, shape, reached)) * occupancy;
    const double compute_s = flops / flop_per_s * (triton ? triton_slowdown : 1) +
                             dropout_s(accelerator, shape, scores / (diagonal * occupancy));
    const double cast = query_bytes / 2 + (shape->backward ? 0 : key_bytes);
    const double cast_s =
        in_fp8 ? memory_s * cast * (shape->block_scales ? block_cast_bytes : cast_bytes) / dtype_bytes(dtype) / bytes
               : 0;
    const double busy_s = fmax(compute_s, memory_s) + cast_s;
    return (KernelTime){
        .seconds = floor_s + busy_s, .memory_s = memory_s, .memory_bound = memory_s > compute_s ? 1 : 0};
}

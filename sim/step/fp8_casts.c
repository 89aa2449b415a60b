// The cost of preparing an fp8 GEMM's operands: read in bf16, written in fp8, once per layout that a GEMM needs
// (Hopper's tensor cores want both operands along K). Bytes per element follow torchao's own accounting of its compiled
// kernels (pytorch/ao, torchao/testing/training/roofline_utils.py, get_tensor_memory_traffic_ovhd_s); at 92 % of the
// bandwidth they reproduce its linear layers on H100 (pytorch/ao pull request 2185, 16384 tokens, forward and backward)
// within 5 % on three shapes of four:
//
//   one scale per tensor  the maximum is read first (2), then read and written (2 + 1); a second layout adds 1;
//                         weights are cast again for the other layout
//   one scale per row     no pass beforehand, but the other layout has other scales: transposed in bf16 (2 + 2) and
//                         cast again
//   one scale per 32      separate scales per layout, both made at once from bf16: read once and written twice
//                         (Transformer Engine, MXFP8BlockScaling); saved is the weight gradient's layout. torchao makes
//                         each separately, from bf16
//   one scale per 128     both layouts at once from bf16 (Transformer Engine, Float8BlockQuantizer)
//   one per 16 of 4 bits  the maximum is read first, as the second scale is the tensor's; then both layouts of
//                         9/16 bytes at once (Transformer Engine, NVFP4Quantizer), or each separately (torchao).
//                         Transformer Engine's reach 0.865 of what other streams do: its linear layers on B300 take
//                         2.69 ms more than their products (docs/examples/gemm_profiling, twelve of a layer), 15.1e9
//                         bytes as it reads and writes there (7.125 an element of activations with the Hadamard
//                         transform, 4.5625 of weights), 5.6 TB/s of 6.5. 5.125 / 0.865 stands for both: a little much
//                         for weights, little for activations that are transformed
//   rows, bf16 gradients  x and dy along their rows only, weights twice (torchao's rowwise_with_gw_hp, also by it)
//   delayed scales        known beforehand: read and written, both layouts at once (Transformer Engine, cast_transpose)
//
// What is already in fp8 (gathered so, saved so, copies of weights) was cast by its producer. What Transformer Engine
// saves is written by its norm, but read and cast by the linear if another operation made it; the other layout is made
// from the first, 1 + 1. Under torch.compile GEMMs that read one tensor share its cast. Its fused operations (op_fuser)
// write what the next product reads, an activation both ways, where scales are known beforehand or of blocks (v2.8,
// pytorch/csrc/extensions/activation.cpp, FULLY_FUSED). Not modelled: other casts fused into the preceding kernel.

#include "sim/step/lower_ops.h"

typedef struct CastBytes {
    double a, b, c;  // per element of the GEMM's operands
} CastBytes;

static const CastBytes cast_bytes[FP8_RECIPE_COUNT][GEMM_ROLE_COUNT] = {
    // x, w, y; dy, w, dx; dy, x, dw
    [FP8_TENSORWISE] = {{5, 5, 0}, {6, 3, 0}, {0, 1, 0}},   [FP8_ROWWISE] = {{3, 3, 0}, {3, 7, 4}, {5, 5, 4}},
    [FP8_DELAYED] = {{3, 3, 0}, {4, 1, 0}, {0, 1, 0}},      [FP8_MX] = {{4, 4, 0}, {4, 0, 0}, {0, 0, 0}},
    [FP8_BLOCK] = {{4, 4, 0}, {4, 0, 0}, {0, 0, 0}},        [FP8_NVFP4] = {{5.92, 5.92, 0}, {5.92, 0, 0}, {0, 0, 0}},
    [FP8_ROWWISE_BF16] = {{3, 3, 0}, {3, 3, 0}, {0, 0, 0}},
};
// torchao's numbers for the recipes that both have: each product casts its own operands (mxfp8_cublas in the same
// accounting; the triton kernels of its nvfp4_training, which read the maximum first).
static const CastBytes mx_bytes = {3, 3, 0}, nvfp4_bytes = {4.5625, 4.5625, 0};  // x and w, dy and w, dy and x

// Without a second layout of anything.
static const CastBytes one_layout_bytes[FP8_RECIPE_COUNT][GEMM_ROLE_COUNT] = {
    [FP8_TENSORWISE] = {{5, 5, 0}, {5, 0, 0}, {0, 0, 0}},
    [FP8_DELAYED] = {{3, 3, 0}, {3, 0, 0}, {0, 0, 0}},
};

static const CastBytes *bytes_of(const Lowering *lowering, GemmRole role) {
    const Fp8Recipe recipe = lowering->plan->fp8_recipe;
    const bool apart = lowering->fp8 == FP8_TORCHAO;
    return fp8_has_one_layout(lowering)   ? &one_layout_bytes[recipe][role]
           : apart && recipe == FP8_MX    ? &mx_bytes
           : apart && recipe == FP8_NVFP4 ? &nvfp4_bytes
                                          : &cast_bytes[recipe][role];
}

// What the products of a role read.
Dtype fp8_product_dtype(const Lowering *lowering, GemmRole role) {
    const bool in_bf16 = lowering->plan->fp8_recipe == FP8_ROWWISE_BF16 && role == GEMM_WEIGHT_GRADIENT;
    return in_bf16 ? lowering->dims.dtype : plan_product_dtype(lowering->plan);
}

static int64_t elements(const Lowering *lowering, const OpRef *operand) {
    const Dtype dtype = lowering->tensors[operand->tensor].dtype;
    return dtype == DTYPE_FP8 ? fp8_stored_elements(lowering, operand->bytes) : operand->bytes / dtype_bytes(dtype);
}

static bool is_cast(const Lowering *lowering, const OpRef *operand) {
    return lowering->tensors[operand->tensor].dtype == DTYPE_FP8;
}

bool fp8_fuses_casts(const Lowering *lowering) {
    return has_fused_mlp(lowering) && fp8_saves_inputs(lowering) && plan_fuses_casts(lowering->plan);
}

static bool is_cast_by_reader(const Lowering *lowering, const OpRef *operand) {
    const unsigned read = FP8_CAST_BY_READER | (fp8_fuses_casts(lowering) ? 0 : FP8_OF_ACTIVATION);
    return fp8_saves_inputs(lowering) && (fp8_tensor_uses(lowering->tensors[operand->tensor].name) & read);
}

static bool is_cast_by_writer(const Lowering *lowering, const OpRef *operand) {
    const unsigned written = FP8_OF_GRADIENTS | (adapters_fuse(lowering) ? FP8_OF_NORM : 0);
    return fp8_fuses_casts(lowering) && (fp8_tensor_uses(lowering->tensors[operand->tensor].name) & written);
}

enum { READ_BYTES = 3, TURN_BYTES = 2 };

// The weight gradient's layout is made together with the other one, not from it.
static bool casts_both_at_once(const Lowering *lowering) {
    const Fp8Recipe recipe = lowering->plan->fp8_recipe;
    return recipe == FP8_MX || recipe == FP8_BLOCK || recipe == FP8_NVFP4;
}

static bool makes_turned(const Lowering *lowering) {
    return !casts_both_at_once(lowering) && !fp8_has_one_layout(lowering);
}

// For Transformer Engine's saved inputs: x of GEMM_FORWARD and of GEMM_WEIGHT_GRADIENT.
static double saved_input_bytes(const Lowering *lowering, GemmRole role, const OpRef *x) {
    if (!fp8_saves_inputs(lowering) || !is_cast(lowering, x)) {
        return 0;
    }
    const int turn = makes_turned(lowering) ? TURN_BYTES : 0;
    const double read = casts_both_at_once(lowering) ? bytes_of(lowering, GEMM_FORWARD)->a : READ_BYTES;
    return (role == GEMM_WEIGHT_GRADIENT     ? turn
            : is_cast_by_reader(lowering, x) ? read
                                             : 0) *
           (double)elements(lowering, x);
}

int64_t fp8_cast_bytes(const Lowering *lowering, const Linear *linear, GemmRole role, const OpRef *abc) {
    const OpRef *a = &abc[AT_GEMM_A], *b = &abc[AT_GEMM_B], *c = &abc[AT_GEMM_C];
    const CastBytes *bytes = bytes_of(lowering, role);
    const bool shared = linear->shares_input && lowering->plan->fused == FUSED_COMPILED;
    const bool written = role != GEMM_WEIGHT_GRADIENT && is_cast_by_writer(lowering, a);
    const bool a_known = is_cast(lowering, a) || written || (shared && role == GEMM_FORWARD);
    const bool turns = written && role == GEMM_INPUT_GRADIENT && !lowering_adapts(lowering) && makes_turned(lowering);
    const bool b_known =
        is_cast(lowering, b) || (shared && role == GEMM_WEIGHT_GRADIENT) ||
        (role != GEMM_WEIGHT_GRADIENT && (fp8_gathers_weights(lowering) || linear->unit == lowering->head_unit));
    const OpRef *x = role == GEMM_FORWARD ? a : role == GEMM_WEIGHT_GRADIENT ? b : NULL;
    return (int64_t)((x ? saved_input_bytes(lowering, role, x) : 0) +
                     (a_known ? (turns ? TURN_BYTES : 0) : bytes->a) * (double)elements(lowering, a) +
                     (b_known ? 0 : bytes->b * (double)elements(lowering, b)) +
                     bytes->c * (double)elements(lowering, c));
}

// Operands of a grouped product of torchao: each casts both, and what is saved is bf16 (its
// prototype/moe_training/mxfp8_grouped_mm.py).
double fp8_grouped_cast_bytes(const Lowering *lowering, GemmRole role, double a, double b) {
    const CastBytes *bytes = bytes_of(lowering, role);
    return bytes->a * a + bytes->b * b;
}

// Expert rows: saved in fp8 by the product that reads them (Transformer Engine, GroupedLinear).
double fp8_rows_cast_bytes(const Lowering *lowering, GemmRole role) {
    return role == GEMM_WEIGHT_GRADIENT ? (makes_turned(lowering) ? TURN_BYTES : 0) : bytes_of(lowering, role)->a;
}

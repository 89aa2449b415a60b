// What an fp8 GEMM's operands cost before it: read in bf16, written in fp8, once per layout that a GEMM needs (the
// tensor cores of Hopper want both operands along K). Bytes per element follow torchao's own account of its compiled
// kernels (pytorch/ao, torchao/testing/training/roofline_utils.py, get_tensor_memory_traffic_ovhd_s); with 92 % of the
// bandwidth they reproduce its linear layers on H100 (pytorch/ao pull request 2185, 16384 tokens, forward and backward)
// within 5 % on three shapes of four:
//
//   one scale per tensor  the largest value is read first (2), then read and written (2 + 1), a second layout beside
//                         it 1; weights are cast again for the other layout
//   one scale per row     no pass before, but the other layout has other scales: transposed in bf16 (2 + 2) and cast
//                         again
//   one scale per 32      of each layout its own, both made at once from bf16: read once and written twice (Transformer
//                         Engine, MXFP8BlockScaling); what is saved is the layout of the weights' gradient
//   delayed scales        known before: read and written, both layouts at once (Transformer Engine, cast_transpose)
//
// What is fp8 already (gathered so, saved so, copies of weights) was cast by whoever made it. What Transformer Engine
// saves is written by its norm, but read and cast by the linear where another operation made it; the other layout is
// made from the first, 1 + 1. Under torch.compile GEMMs that read one tensor share its cast. Not modelled: casts that
// melt into the kernel before them.

#include <string.h>

#include "sim/step/lower_ops.h"

typedef struct CastBytes {
    int a, b, c;  // per element of the GEMM's operands
} CastBytes;

static const CastBytes cast_bytes[FP8_RECIPE_COUNT][GEMM_ROLE_COUNT] = {
    // x, w, y; dy, w, dx; dy, x, dw
    [FP8_TENSORWISE] = {{5, 5, 0}, {6, 3, 0}, {0, 1, 0}},
    [FP8_ROWWISE] = {{3, 3, 0}, {3, 7, 4}, {5, 5, 4}},
    [FP8_DELAYED] = {{3, 3, 0}, {4, 1, 0}, {0, 1, 0}},
    [FP8_MX] = {{4, 4, 0}, {4, 0, 0}, {0, 0, 0}},
};

static int64_t elements(const Lowering *lowering, const OpRef *operand) {
    return operand->bytes / dtype_bytes(lowering->tensors[operand->tensor].dtype);
}

static bool is_cast(const Lowering *lowering, const OpRef *operand) {
    return lowering->tensors[operand->tensor].dtype == DTYPE_FP8;
}

// Saved in fp8 by the linear that reads it, not by the operation that makes it.
static bool is_cast_by_reader(const Lowering *lowering, const OpRef *operand) {
    const char *name = lowering->tensors[operand->tensor].name;
    return fp8_saves_inputs(lowering) &&
           (strcmp(name, "attention_out_fp8") == 0 || strcmp(name, "activation_out") == 0);
}

enum { READ_BYTES = 3, TURN_BYTES = 2 };

// Of Transformer Engine's saved inputs, x of GEMM_FORWARD and of GEMM_WEIGHT_GRADIENT.
static int64_t saved_input_bytes(const Lowering *lowering, GemmRole role, const OpRef *x) {
    if (!fp8_saves_inputs(lowering) || !is_cast(lowering, x)) {
        return 0;
    }
    const bool both_at_once = lowering->plan->fp8_recipe == FP8_MX;
    const int turn = both_at_once ? 0 : TURN_BYTES, read = both_at_once ? READ_BYTES + 1 : READ_BYTES;
    return (role == GEMM_WEIGHT_GRADIENT ? turn : is_cast_by_reader(lowering, x) ? read : 0) * elements(lowering, x);
}

int64_t fp8_cast_bytes(const Lowering *lowering, const Linear *linear, GemmRole role, const OpRef *abc) {
    const OpRef *a = &abc[AT_GEMM_A], *b = &abc[AT_GEMM_B], *c = &abc[AT_GEMM_C];
    const CastBytes *bytes = &cast_bytes[lowering->plan->fp8_recipe][role];
    const bool shared = linear->shares_input && lowering->plan->fused == FUSED_COMPILED;
    const bool a_known = is_cast(lowering, a) || (shared && role == GEMM_FORWARD);
    const bool b_known = is_cast(lowering, b) || (shared && role == GEMM_WEIGHT_GRADIENT) ||
                         (role != GEMM_WEIGHT_GRADIENT && fp8_gathers_weights(lowering));
    const OpRef *x = role == GEMM_FORWARD ? a : role == GEMM_WEIGHT_GRADIENT ? b : NULL;
    return (x ? saved_input_bytes(lowering, role, x) : 0) + (a_known ? 0 : bytes->a * elements(lowering, a)) +
           (b_known ? 0 : bytes->b * elements(lowering, b)) + bytes->c * elements(lowering, c);
}

// Experts' rows: saved in fp8 by the product that reads them (Transformer Engine, GroupedLinear).
int64_t fp8_rows_cast_bytes(const Lowering *lowering, GemmRole role) {
    const Fp8Recipe recipe = lowering->plan->fp8_recipe;
    return role == GEMM_WEIGHT_GRADIENT ? (recipe == FP8_MX ? 0 : TURN_BYTES) : cast_bytes[recipe][role].a;
}

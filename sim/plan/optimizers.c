// Left out: memory of per-tensor scalars, the number of kernels where a library updates tensor by tensor.

#include "sim/plan/optimizers.h"

// bitsandbytes 0.50 optim/optimizer.py (blocksize 256, min_8bit_size 4096, absmax in fp32) and torchao 0.18
// optim/adam.py (_new_buffer: block 256, of 4 bits 128; tensors of 4096 elements and more that blocks divide).
enum { BLOCK_8BIT = 256, BLOCK_4BIT = 128, LEAST_QUANTISED = 4096, FP32_BYTES = 4 };
#define SCALED_8BIT (1 + 4.0 / BLOCK_8BIT)
#define SCALED_4BIT (0.5 + 4.0 / BLOCK_4BIT)

// _single_tensor_adamw and _multi_tensor_adamw (torch/optim/adamw.py), of fp32: the parameter decayed 8, the first
// moment 12, the second 20, its root 8, divided 8, plus epsilon 8, the parameter 16: 80 where one kernel moves 28;
// measured too, in bf16 (sim/SOURCES.md H6). Tensor by tensor the root lives while it is divided. So does the list of
// roots while that of torch 2.0 adds epsilon; 2.1 adds it in place.
static const double CHAIN_PASSES = 80.0 / 28.0;

// transformers' Adafactor, operation by operation, of fp32: the square and its sum with epsilon 16, two means 8, the
// outer product 4, times the gradient 12, its norm 4, clipped and scaled 16, weight decay 0, negated 8, added 12, the
// parameter's norm 4: 84 bytes where one pass moves 12 (optimization.py, Adafactor.step).
static const double ADAFACTOR_PASSES = 84.0 / 12.0;

// Muon apart from its products (muon.py of Moonlight, as contribs-mit 0.0.6 has it), of fp32: momentum times mu 8, plus
// the gradient 12, looked ahead 12, to bf16 6, the parameter decayed 8 and updated 10: 56 where one pass moves 20.
// AdamW of non-matrix parameters, operation by operation, moves 80 where one pass moves 28, which is as much.
static const double MUON_PASSES = 56.0 / 20.0;

// Transformer Engine's FusedAdam (pytorch/optimizers/fused_adam.py, step): states that are not fp32, but for two in
// bf16, are cast to fp32 before the update, those of all parameters of a group, and back behind it. Of fp8: read 1,
// written 4, updated 8, the largest sought 4, cast 5; of bf16: 2, 4, 8, and 6 and 4 back; of gradient and master 12.
static const double FP8_PASSES = (12 + 2 * 22) / 16.0, FP8_BF16_PASSES = (12 + 22 + 24) / 18.0;

// bitsandbytes' states are fp32 however narrow the parameters are; transformers keeps those of nn.Embedding so too
// where they are asked for in 8 bits (trainer.py, register_module_override).
const OptimizerRow optimizer_rows[OPTIMIZER_COUNT] = {
    [OPTIMIZER_TARGET] = {UPDATE_ADAMW, .passes = 1},
    [OPTIMIZER_ADAMW_FUSED] = {UPDATE_ADAMW, .passes = 1},
    [OPTIMIZER_ADAMW_FOREACH] = {UPDATE_ADAMW, .passes = CHAIN_PASSES, .temporary_bytes = 4},
    [OPTIMIZER_ADAMW_BF16] = {UPDATE_ADAMW, {2, 2}, .passes = 1, .remainders = true},
    [OPTIMIZER_ADAMW_8BIT] =
        {UPDATE_ADAMW, {SCALED_8BIT, SCALED_8BIT}, BLOCK_8BIT, .wide_embedding = true, .passes = 1},
    [OPTIMIZER_ADAMW_8BIT_PAGED] =
        {UPDATE_ADAMW, {SCALED_8BIT, SCALED_8BIT}, BLOCK_8BIT, .wide_embedding = true, .paged = true, .passes = 1},
    [OPTIMIZER_ADAMW_32BIT_PAGED] = {UPDATE_ADAMW, {FP32_BYTES, FP32_BYTES}, .paged = true, .passes = 1},
    [OPTIMIZER_ADAMW_8BIT_TORCHAO] =
        {UPDATE_ADAMW, {SCALED_8BIT, SCALED_8BIT}, BLOCK_8BIT, .whole_blocks = true, .passes = 1},
    [OPTIMIZER_ADAMW_4BIT_TORCHAO] =
        {UPDATE_ADAMW, {SCALED_4BIT, SCALED_4BIT}, BLOCK_4BIT, .whole_blocks = true, .passes = 1},
    [OPTIMIZER_LION] = {UPDATE_ONE_STATE, {FP32_BYTES}, .passes = 1},
    [OPTIMIZER_LION_8BIT] = {UPDATE_ONE_STATE, {SCALED_8BIT}, BLOCK_8BIT, .wide_embedding = true, .passes = 1},
    [OPTIMIZER_SGD] = {UPDATE_NO_STATE, .passes = 1},
    [OPTIMIZER_SGD_MOMENTUM] = {UPDATE_ONE_STATE, .passes = 1},
    [OPTIMIZER_ADAFACTOR] = {UPDATE_FACTORED, {FP32_BYTES, FP32_BYTES}, .passes = ADAFACTOR_PASSES},
    [OPTIMIZER_MUON] = {UPDATE_MATRICES, .passes = MUON_PASSES},
    [OPTIMIZER_ADAMW_FOREACH_2_0] = {UPDATE_ADAMW, .passes = CHAIN_PASSES, .temporary_bytes = 8},
    [OPTIMIZER_ADAMW_LOOP] = {UPDATE_ADAMW, .passes = CHAIN_PASSES, .temporary_bytes = 8, .by_tensor = true},
    [OPTIMIZER_ADAMW_REMAINDERS] = {UPDATE_ADAMW, .passes = 1, .remainders = true},
    [OPTIMIZER_ADAMW_FP8] = {UPDATE_ADAMW, {1, 1}, .passes = FP8_PASSES, .temporary_bytes = 8, .remainders = true},
    [OPTIMIZER_ADAMW_FP8_BF16] =
        {UPDATE_ADAMW, {1, 2}, .passes = FP8_BF16_PASSES, .temporary_bytes = 8, .remainders = true},
};

static int states_of(const OptimizerRow *row, const OptimizerTensor *tensor) {
    const bool by_adamw = row->rule == UPDATE_MATRICES && !(tensor->is_matrix && tensor->in_layer);
    return row->rule == UPDATE_ADAMW || by_adamw ? 2 : row->rule == UPDATE_NO_STATE ? 0 : 1;
}

// The number of a tensor's elements that this rank holds.
static double held(const OptimizerTensor *tensor) {
    return (double)tensor->rows * (double)tensor->cols / tensor->shards;
}

static double width_of(const OptimizerRow *row, int state, int master_bytes) {
    return row->state_bytes[state] > 0 ? row->state_bytes[state] : master_bytes;
}

static bool stays_wide(const OptimizerRow *row, const OptimizerTensor *tensor) {
    const double elements = held(tensor);
    const bool uneven = row->whole_blocks && (int64_t)elements % row->block != 0;
    return row->block > 0 && (elements < LEAST_QUANTISED || uneven || (row->wide_embedding && tensor->is_embedding));
}

double optimizer_state_bytes(Optimizer optimizer, int state, const OptimizerTensor *tensor) {
    const OptimizerRow *row = &optimizer_rows[optimizer];
    if (state >= states_of(row, tensor)) {
        return 0;
    }
    if (row->rule == UPDATE_FACTORED && tensor->is_matrix) {
        return row->state_bytes[state] * ((double)tensor->rows / tensor->shards + (double)tensor->cols);
    }
    const double each = width_of(row, state, tensor->master_bytes);
    return held(tensor) * (stays_wide(row, tensor) ? FP32_BYTES : each);
}

int optimizer_plain_bytes(Optimizer optimizer, int state, int master_bytes) {
    const OptimizerRow *row = &optimizer_rows[optimizer];
    const bool all_alike = row->rule == UPDATE_ADAMW || row->rule == UPDATE_ONE_STATE;
    if (!all_alike || row->block > 0 || (row->rule == UPDATE_ONE_STATE && state > 0)) {
        return 0;
    }
    return (int)width_of(row, state, master_bytes);
}

double optimizer_pass_bytes(Optimizer optimizer, int master_bytes) {
    const OptimizerRow *row = &optimizer_rows[optimizer];
    const int states = row->rule == UPDATE_ADAMW ? 2 : row->rule == UPDATE_NO_STATE ? 0 : 1;
    double wide = 0;
    for (int state = 0; state < states; state++) {
        wide += width_of(row, state, master_bytes);
    }
    return (3 * master_bytes + 2 * wide) * row->passes;  // gradients are as wide as masters
}

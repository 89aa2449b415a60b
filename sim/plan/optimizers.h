// What an optimizer keeps and moves, a row each: states per parameter, passes over memory, temporaries, and whether it
// needs whole matrices. Who has which: `optimizers` of a target's row; the arithmetic is in sim/step/lower_update.c.

#pragma once

#include <stdbool.h>
#include <stdint.h>

// In the order in which plans are hashed: new ones are appended. TARGET: the target's default AdamW.
typedef enum {
    OPTIMIZER_TARGET,
    OPTIMIZER_ADAMW_FUSED,
    OPTIMIZER_ADAMW_FOREACH,
    OPTIMIZER_ADAMW_BF16,
    OPTIMIZER_ADAMW_8BIT,
    OPTIMIZER_ADAMW_8BIT_PAGED,
    OPTIMIZER_ADAMW_32BIT_PAGED,
    OPTIMIZER_ADAMW_8BIT_TORCHAO,
    OPTIMIZER_ADAMW_4BIT_TORCHAO,
    OPTIMIZER_LION,
    OPTIMIZER_LION_8BIT,
    OPTIMIZER_SGD,
    OPTIMIZER_SGD_MOMENTUM,
    OPTIMIZER_ADAFACTOR,
    OPTIMIZER_MUON,
    OPTIMIZER_ADAMW_FOREACH_2_0,
    OPTIMIZER_ADAMW_LOOP,
    OPTIMIZER_ADAMW_REMAINDERS,
    OPTIMIZER_ADAMW_FP8,
    OPTIMIZER_ADAMW_FP8_BF16,
    OPTIMIZER_COUNT
} Optimizer;

#define OPTIMIZER_BIT(value) (1u << (value))

// ADAMW: m and v of every parameter. FACTORED: of a matrix sums over its rows and over its columns, of a vector v
// (Shazeer and Stern 2018). MATRICES: one momentum of a layer's matrices, which is orthogonalised whole; AdamW of all
// else (Jordan et al. 2024).
typedef enum { UPDATE_ADAMW, UPDATE_ONE_STATE, UPDATE_NO_STATE, UPDATE_FACTORED, UPDATE_MATRICES } UpdateRule;

typedef struct OptimizerRow {
    UpdateRule rule;
    double state_bytes[2];   // of each state, per parameter, scales included; 0 = as wide as the master
    int block;               // quantised: elements of one scale; 0 = not
    bool whole_blocks;       // a tensor that blocks do not divide stays fp32
    bool wide_embedding;     // states of the embedding stay fp32
    double passes;           // traffic over one pass: gradient, parameter and states read, but the gradient written
    double temporary_bytes;  // per parameter with a master of fp32, for all parameters at once
    bool by_tensor;          // or for one tensor at a time
    bool paged;              // states go to the host when the accelerator is full
    bool remainders;         // of a master only what its bf16 weight lacks, where the target keeps those
} OptimizerRow;

extern const OptimizerRow optimizer_rows[OPTIMIZER_COUNT];

// Traffic of an update of every parameter, in bytes per parameter with masters so wide; of ADAMW, or with one state.
double optimizer_pass_bytes(Optimizer optimizer, int master_bytes);

// A parameter, of which a rank holds one part in `shards`. in_layer: not of embedding, final norm or head.
typedef struct OptimizerTensor {
    int64_t rows, cols;
    bool is_matrix, in_layer, is_embedding;
    int32_t shards;
    int master_bytes;
} OptimizerTensor;

// Of its first (0) or second (1) state on a rank, in bytes.
double optimizer_state_bytes(Optimizer optimizer, int state, const OptimizerTensor *tensor);

// Of a state that every parameter has alike, in a plain number format: bytes per parameter; 0 = it is otherwise.
int optimizer_plain_bytes(Optimizer optimizer, int state, int master_bytes);

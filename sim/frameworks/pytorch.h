// What frameworks on PyTorch have in common, to be extended; no framework itself.

#pragma once

// Host time per operation of eager training stacks of 2022 to 2024 whose layers are Python around small operations:
// fitted on launch-bound steps of one sweep (HF Ultra-Scale Playbook). Kernels and gaps of a traced step on one A100,
// of which vTrain's simulator makes its steps on one node, come to the same.
#define PYTHON_2023_HOST_S 39.5e-6

#include "sim/frameworks/framework.h"

// bitsandbytes 0.50: kernels that read plain tensors, no DTensors. torchao 0.18: states that are DTensors as their
// parameters are (optim/adam.py). The names that transformers 5.23 gives them are in hf_optimizers.c.
#define OPTIMIZERS_OF_BITSANDBYTES                                                                                     \
    (OPTIMIZER_BIT(OPTIMIZER_ADAMW_8BIT) | OPTIMIZER_BIT(OPTIMIZER_ADAMW_8BIT_PAGED) |                                 \
     OPTIMIZER_BIT(OPTIMIZER_ADAMW_32BIT_PAGED) | OPTIMIZER_BIT(OPTIMIZER_LION) | OPTIMIZER_BIT(OPTIMIZER_LION_8BIT))
#define OPTIMIZERS_OF_TORCHAO                                                                                          \
    (OPTIMIZER_BIT(OPTIMIZER_ADAMW_8BIT_TORCHAO) | OPTIMIZER_BIT(OPTIMIZER_ADAMW_4BIT_TORCHAO))
#define OPTIMIZERS_OF_TRANSFORMERS                                                                                     \
    (OPTIMIZERS_OF_BITSANDBYTES | OPTIMIZERS_OF_TORCHAO | OPTIMIZER_BIT(OPTIMIZER_ADAMW_FUSED) |                       \
     OPTIMIZER_BIT(OPTIMIZER_ADAMW_FOREACH) | OPTIMIZER_BIT(OPTIMIZER_SGD) | OPTIMIZER_BIT(OPTIMIZER_ADAFACTOR))

extern const TargetVersion pytorch;       // any
extern const TargetVersion pytorch_fsdp;  // those that shard layers by FSDP, of either version, under a Trainer

// Manual sharding in user code. Its MixedPrecisionPolicy(reduce_dtype=None) reduced in param_dtype before torch
// 2.15 (fsdp/_fully_shard); what sets a reduce_dtype itself did not change.
#define FULLY_SHARD_WORDS                                                                                              \
    "FSDP version 2 (a fully_shard of your own reduces in fp32 since torch 2.15: --reduce-dtype fp32)"

// Ranks that share one copy's parameters, gradients and optimizer, with sequences of their own: FSDP, ZeRO.

#include "sim/axes/axes.h"

const AxisRow axis_dp_shard = {
    .number = 1,
    .definition = "ranks that share one copy's parameters, gradients and optimizer (FSDP, ZeRO), own sequences each",
    .words = {{"dp", "data parallelism is dp_shard (parameters sharded, FSDP) or dp_replicate (whole copies, DDP)",
               "ndtune predict --mesh dp_shard=4,tp=2 is one shape; a search tries all"},
              {"fsdp", "the axis that FSDP shards over is dp_shard",
               "ndtune predict --mesh dp_shard=8 is one shape; a search tries all; --zero is the sharding stage"},
              {"shard", "did you mean dp_shard?", NULL},
              {"zero", "the axis that ZeRO shards over is dp_shard; its stage is --zero", NULL},
              {"hsdp", "hybrid sharding is dp_replicate with dp_shard", NULL}},
};

// What frameworks on PyTorch have in common, to be extended; no framework itself.

#pragma once

#include "sim/frameworks/framework.h"

extern const TargetVersion pytorch;       // any
extern const TargetVersion pytorch_fsdp;  // those that shard layers by FSDP, of either version, under a Trainer

// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

extern const ExportFormat export_megatron_flags, export_megatron_bridge;
extern const ImportFormat import_megatron;

// The model in flags (megatron_model.c): why it has none, and its part of the script.
const char *megatron_refuse_model(const ConfigJob *job);
void megatron_write_model(const ConfigJob *job, FILE *out);
bool megatron_averages(const ConfigJob *job);  // gradients as they are reduced, which doubles of the sizes allow
const char *megatron_refuse_kernel(const ConfigJob *job);  // that its layers cannot run attention by

// The words of the modules that recompute=selective recomputes, the first and each further one by its format.
void megatron_modules(const ConfigJob *job, const char *first, const char *next, FILE *out);
// Likewise of the parts of layers that CUDA graphs replay; none where whole layers are.
void megatron_graphed(const TrainPlan *plan, const char *first, const char *next, FILE *out);

// ---- the precision-aware optimizer (megatron_aware.c)

#define MEGATRON_AWARE                                                                                                 \
    (OPTIMIZER_BIT(OPTIMIZER_ADAMW_BF16) | OPTIMIZER_BIT(OPTIMIZER_ADAMW_REMAINDERS) |                                 \
     OPTIMIZER_BIT(OPTIMIZER_ADAMW_FP8) | OPTIMIZER_BIT(OPTIMIZER_ADAMW_FP8_BF16))

typedef struct MegatronStates {
    Optimizer optimizer;
    const char *average, *square;  // formats of the two states, in the words of its flags
} MegatronStates;

// NULL: another optimizer; formats that no plan has.
const MegatronStates *megatron_states(Optimizer optimizer);
const MegatronStates *megatron_states_of(const char *average, const char *square);
// The format of a flag as a configuration says it, of torch.
const char *megatron_state_type(const char *flag);
// Whether one rank of data runs the distributed optimizer, for what only that has.
bool megatron_shards_one(const TrainPlan *plan);

// ---- layers of the stages (megatron_stages.c)

typedef struct MegatronSplit {
    bool embedding, loss;  // counted as a layer
    int first, last;       // layers of these stages; 0 = as many as the others
    bool layout;           // only a layout says it
} MegatronSplit;

// Micro-batches that go through a chunk before the next one; 0: as it does by itself.
int megatron_group(const ConfigJob *job);
bool megatron_waits(const ConfigJob *job);  // for messages between stages, where it would not by itself
MegatronSplit megatron_split(const ConfigJob *job);
const char *megatron_layout(const ConfigJob *job);  // pipeline_model_parallel_layout
void megatron_write_split(const ConfigJob *job, FILE *out);

// Lowered programs for tests, one call each; a test changes only what it tests.

#pragma once

#include "sim/step/step.h"

typedef struct LoweredRequest {
    const char *model;   // preset, default "tiny"
    const char *target;  // default "ndtune"
    const char *mesh;    // "dp_shard=2,tp=2", default one rank
    int seq;             // default 64
    int micro_batch;     // default 1
    int grad_accum;      // default 1
    int zero;            // default: the target's choice; pass -1 for an explicit 0
    Reshard reshard;
    Recompute recompute;
    RecomputeUnit recompute_unit;
    int recompute_modules;
    int recompute_layers, recompute_every, offload_layers;
    Offload offload;
    CpRotate cp_rotate;
    AxisOrder order;
    bool bf16;
    bool fp8;  // over bf16
    Fp8Recipe fp8_recipe;
    bool bf16_master;
    bool eager, fused;  // default: as the target does
    ReduceDtype reduce_dtype;
    GradSync grad_sync;
    ReduceOverlap reduce_overlap;
    LossForm loss;
    GraphUse cuda_graphs;
    SequenceParallel sequence_parallel;
    Finetune finetune;
    LoraTargets lora_targets;
    Optimizer optimizer;
    int pack;
    int imbalance;
    Dispatch dispatch;
    bool ep_overlap;
    int mlp_tiles;
    bool update_in_backward;
    bool fp8_parameters, fp8_activation, op_fuser, qkv_rope;
    int reshard_ranks;
    int reduce_bucket;
    int etp;
    int expert_capacity;
    bool pad_experts;
    int mtp;
    bool tied;
    bool plain;  // no gate in MLPs and experts
    int layers;  // 0 = the model's
    PpSchedule pp_schedule;
    int virtual_stages;
} LoweredRequest;

// The program in the arena; fails the test with the reason when the request is not legal.
StepProgram lowered(Arena *arena, LoweredRequest request);

// Why the request's target refuses it; NULL = it does not.
const char *lowered_refusal(const LoweredRequest *request, Arena *arena);

// Whether the request's target accepts it.
bool lowered_is_legal(const LoweredRequest *request, Arena *arena);

// A random legal request over the mesh shapes of worlds up to max_world; the same seed gives the same sequence.
LoweredRequest lowered_random(Arena *arena, uint64_t *seed, int max_world);

const Task *first_of_kind(const StepProgram *program, TaskKind kind);  // NULL: there is none

// The tasks of that name: how many there are, the first of them (NULL = none), and how many run in a micro-step.
int tasks_named(const StepProgram *program, const char *name);
const Task *first_named(const StepProgram *program, const char *name);
int64_t runs_in_micro_step(const StepProgram *program, const char *name, int micro_step);

const Buffer *buffer_named(const StepProgram *program, const char *name);  // the first; NULL: there is none

// CostModel: for each task, seconds in isolation on a ClusterProfile and what it occupies while it runs. One file per idea:
// compute.c (GEMM tile model, attention, memory-bound kernels), collective_*.c (one algorithm each, a table row each),
// cost.c (dispatch and host time). Sharing among concurrent tasks is the engine's business, counted once.

#pragma once

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/cluster/cluster.h"
#include "sim/step/step.h"

// Where a collective's bytes travel. Sharing happens per resource.
typedef enum { RESOURCE_NODE_LINK, RESOURCE_NIC, RESOURCE_HBM, RESOURCE_COUNT } Resource;

typedef struct TaskCost {
    double seconds;                      // alone on the machine, on the task's own lane
    double host_s;                       // host time to issue it
    float sm_share;                      // of the accelerator's SMs, 0..1 (compute kernels: 1)
    float memory_bound;                  // 1 = limited by memory bandwidth, 0 = by arithmetic
    float use[RESOURCE_COUNT];           // share of each resource that it needs while running alone, 0..1
    const char *algorithm;               // "ring" "tree" "nvls" "tile" ...; static text
} TaskCost;

typedef struct CostModel {
    const ClusterProfile *profile;
    const Target *target;
} CostModel;

// Cost of one task of the program. Deterministic, no allocation.
TaskCost cost_task(const CostModel *model, const StepProgram *program, const Task *task);

// Costs of all tasks, equal keys computed once; the array lives in the arena (program->task_count rows).
TaskCost *cost_program(const CostModel *model, const StepProgram *program, Arena *arena);

// ---- pieces, for the analytic path, tests and reports

double cost_gemm_s(const Accelerator *accelerator, Dtype dtype, int64_t m, int64_t n, int64_t k, int output_bytes);
// Causal or full attention block over b sequences; flash-type kernel of the profile nearest to (kernel, head_dim).
double cost_attention_s(const Accelerator *accelerator, Dtype dtype, int64_t sequences, int heads, int head_dim, double queries,
                        double keys, double visible_share, bool backward);
double cost_memory_bound_s(const Accelerator *accelerator, double bytes);

typedef enum { COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_REDUCE, COLLECTIVE_SEND_RECV } CollectiveKind;

// One algorithm: a file and a row of collective_table. Formulas: collectives.md 6.1 - 6.3.
typedef struct CollectiveAlgorithm {
    const char *name;
    bool (*applicable)(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group);
    double (*seconds)(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group, double payload_bytes);
} CollectiveAlgorithm;

extern const CollectiveAlgorithm *const collective_table[];    // NULL-terminated

// Seconds of the fastest applicable algorithm; group of one rank: 0. *algorithm may be NULL.
double cost_collective_s(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group, double payload_bytes,
                         const char **algorithm);

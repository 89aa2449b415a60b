// What a user says of a request, read from the command line or from a config file. What is 0 or NULL is not said.

#pragma once

#include "autotune/result.h"

// A part of it, for an error to point at: one of these, a field of the plan, or a change of the cluster.
typedef enum {
    ASKED_NOTHING,
    ASKED_WORLD,
    ASKED_MESH,
    ASKED_MODEL,
    ASKED_CLUSTER,
    ASKED_NODE_SIZE,
    ASKED_TARGET,
    ASKED_RANK_ORDER,
    ASKED_EFFORT,
    ASKED_OBJECTIVE,
    ASKED_BASELINE,
    ASKED_CHOICE,                                   // + PlanFieldId
    ASKED_CHANGE = ASKED_CHOICE + PLAN_FIELD_COUNT  // + index into changes
} AskedPart;

typedef struct Asked {
    const char *command;  // the command line, quoted for a shell
    const char *model, *cluster, *target;
    int layers, node_size;       // in place of the model's and the cluster's
    const char *const *changes;  // of the cluster, "KEY=VALUE", and slow ranks, nodes and links (handicap.h)
    int change_count;
    bool on_gpu;                  // the runs are
    bool async_lanes;             // of our executor
    int world, nodes;             // nodes of the cluster's size where there is no world
    const char *mesh, *baseline;  // of the one plan; to compare with
    int seq, micro_batch, grad_accum;
    int64_t global_batch;
    const char *choices[PLAN_FIELD_COUNT];  // words of the plan's fields
    const char *rank_order;
    int max_tp;
    double memory_limit_bytes, memory_limit_share;
    Effort effort;
    Objective objective;
    double tokens;
    // What is known of the chip that a file's profile names: adds to the profile, says how many. NULL = nothing.
    Status (*learn)(void *context, ClusterProfile *cluster, int *count, Error *error);
    void *context;
    int about;  // AskedPart that an error is about
} Asked;

// What holds where nothing is said.
typedef struct RequestDefaults {
    const char *cluster, *gpu_cluster;  // the latter where runs are on GPUs
    const char *target;
    int seq;            // 0 = min(TUNE_DEFAULT_SEQ, the model's)
    bool fp32;          // else bf16 where the profile has it
    bool flash;         // the one attention kernel of the executor, else the target's
    bool small_batch;   // one sequence per rank
    const char *model;  // NULL = it must be said
    bool single_plan;   // what is asked names one plan
} RequestDefaults;

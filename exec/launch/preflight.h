// Quick checks of every rank and every group of a plan before a long run, and messages for what is wrong.

#pragma once

#include "exec/launch/launch.h"

typedef struct PreflightRank {
    const char *host;
    int node, cores;
    double memory_bytes, shared_bytes;               // free; shared_bytes -1 = no /dev/shm
    double locked_limit_bytes, address_limit_bytes;  // -1 = none
    double clock_offset_s;                           // relative to rank 0
    double flop_per_s;                               // GEMM, all ranks at once
} PreflightRank;

// One collective on all groups of a set of axes at once, or the messages of one direction on every link between
// neighbouring stages.
typedef struct PreflightGroups {
    AxisMask axes;
    const char *collective;  // or "send_forward", "send_backward"
    double payload_bytes;
    double *seconds;     // by rank: median
    double *wrong;       // by rank: elements with an incorrect value
    int *from;           // by rank: source of its messages, -1 = none; NULL = a collective
    double predicted_s;  // supplied by the caller; 0 = none
} PreflightGroups;

typedef struct PreflightResult {
    Mesh mesh;
    int world;
    PreflightRank *ranks;
    PreflightGroups *groups;
    int group_count;
    double arena_bytes;  // that each rank of the run will request
} PreflightResult;

// Needs model, plan, target and options of the request. A missing or hung rank is an error that names it.
Status exec_preflight(const RunRequest *request, const ExecOptions *options, Arena *arena, PreflightResult *result,
                      Error *error);

typedef struct PreflightFinding {
    bool bad;  // else a warning
    const char *sentence;
} PreflightFinding;

typedef struct PreflightFindings {
    PreflightFinding *rows;
    int count, bad;
} PreflightFindings;

// What is wrong and which rank is at fault: wrong sums, a slow rank, a slow group or link, clocks, memory and limits.
void preflight_findings(const PreflightResult *result, Arena *arena, PreflightFindings *findings);

// The log that the NCCL stand-in (tests/support/nccl_recording) wrote of a run: the calls of each rank, in order.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/step/step.h"

typedef struct NcclCall {
    char comm[96], lane[32], words[64];  // words: "call all_gather", "split", "abort" ...
    int rank, size;                      // in the communicator
    size_t count;
    int type, op, depth, to, from, color, share;  // -9: the line does not say
} NcclCall;

typedef struct NcclLog {
    NcclCall *calls;
    int count;
} NcclLog;

// Of one rank of the run; fails the test where the rank wrote none.
NcclLog nccl_log_read(const char *directory, int rank, Arena *arena);
bool nccl_log_has(const NcclLog *log, const char *words);

// Every collective instance of a group of several, in issue order, and nothing else: counts, types, groups, neighbours.
void nccl_log_is_the_programs(const NcclLog *log, const StepProgram *program, int rank, int steps);
// Members of a communicator call the same things in the same order.
void nccl_log_has_partners(const NcclLog *log, const NcclLog *other);
// A rank makes no calls after its abort; returns how many ranks aborted.
int nccl_log_aborts(const char *directory, int ranks, Arena *arena);

// Measuring the machine through the workers: the input from which ndtune probe makes a profile.

#pragma once

#include "exec/launch/launch.h"

typedef enum {
    PROBE_GEMM,        // size m, n, k; name grouped: rows of each group, n, k, groups
    PROBE_STREAM,      // size elements of one operand
    PROBE_ATTENTION,   // size queries (= keys), first query - first key, heads, head_dim; name forward | backward, on a
                       // device with several kernels "own forward", "cudnn forward" and so on
    PROBE_SUSTAINED,   // as gemm, for several seconds
    PROBE_SHARED,      // rounds on one rank alone, then on all at once: name gemm | stream
    PROBE_COLLECTIVE,  // size payload bytes as defined by sim/cost; name all_gather ... send_recv barrier
    PROBE_GAP,         // between two tasks of one thread
    PROBE_FAR,         // as stream, operands laid out one after another over size[1] bytes
    PROBE_KIND_COUNT
} ProbeKind;

typedef struct ProbeSample {
    ProbeKind kind;
    const char *name;
    double size[4];
    int nodes, per_node;        // ranks taking part
    double seconds, low, high;  // median and quartiles of one call; shared: mean, fastest and slowest rank. For
        // kernels, the time the thread was computing, at a core's mean speed over the rounds
    int repeats;
} ProbeSample;

typedef struct ProbeHost {
    const char *name, *processor, *core_type;  // core_type: for which OpenBLAS ran its kernels
    const char *boot;                          // hosts with the same one share their cores
    int node, cores;
    double memory_bytes;  // available to new processes
} ProbeHost;

typedef struct ProbeDevice {
    int divisor;  // by which sizes are smaller than those for a full chip
    int processors;
    double memory_bytes, cache_bytes;
} ProbeDevice;

typedef struct ProbeResult {
    ProbeHost *hosts;    // by rank
    const char *chip;    // of a device with its own chip; NULL otherwise
    ProbeDevice device;  // of the chip
    int world, nodes, per_node;
    ProbeSample *samples;
    int sample_count;
} ProbeResult;

// The mesh determines which groups are measured: one kind per set of its axes. Device, transport etc. come from
// the options. Takes about a minute.
Status exec_probe(const Mesh *mesh, const RunOptions *options, const ExecOptions *exec_options, Arena *arena,
                  ProbeResult *result, Error *error);

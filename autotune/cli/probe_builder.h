// A profile in the making: what its parts, for processors and for GPUs, write into.

#pragma once

#include "autotune/cli/probe_profile.h"

typedef struct ProbeBuilder {
    const ProbeProfile *about;
    const ProbeResult *probe;
    Arena *arena;
    json_t *root;
    double gemm_kept, stream_kept;  // share of a lone rank's rate that a core keeps
    double peak_flop_per_s, sustained_flop_per_s, launch_s, floor_s;
    double link_s;  // smallest collective inside a node
} ProbeBuilder;

// A number of the profile at a path such as accelerator.gemm.bf16.launch_s; the words say what it was measured by.
__attribute__((format(printf, 4, 5))) void probe_put(const ProbeBuilder *builder, const char *path, double value,
                                                     const char *format, ...);

double probe_gemm_rate(const ProbeSample *sample, double launch_s);

// The accelerator of a GPU; nodes and network stay those of the profile that is extended.
Status probe_gpu(ProbeBuilder *builder, Error *error);

// A profile under construction, filled in by the CPU and GPU parts.

#pragma once

#include "autotune/probe/probe_profile.h"

typedef struct ProbeBuilder {
    const ProbeProfile *about;
    const ProbeResult *probe;
    Arena *arena;
    json_t *root;
    double gemm_kept, stream_kept;  // share of a lone rank's rate that a core keeps
    double peak_flop_per_s, sustained_flop_per_s, launch_s, floor_s;
    double link_s;             // smallest collective inside a node
    const char *not_measured;  // description of what is inherited from the extended profile; NULL = its sources say it
} ProbeBuilder;

// A number of the profile at a path such as accelerator.gemm.bf16.launch_s; the words say what it was measured by.
__attribute__((format(printf, 4, 5))) void probe_put(const ProbeBuilder *builder, const char *path, double value,
                                                     const char *format, ...);

// The next sample of that kind after `last` (NULL = the first), and of that name unless it is NULL; NULL = none.
const ProbeSample *probe_next(const ProbeResult *probe, const ProbeSample *last, ProbeKind kind, const char *name);

double probe_clamp(double value, double low, double high);

// One row of the profile from the attention samples of one kernel and head_dim.
typedef struct ProbeAttention {
    const char *way;     // of the device, begins the samples' names: "own"; "" where there is only one
    const char *kernel;  // of the profile: "flash"
    const char *by;      // begins the source
    int head_dim;
    int processors;  // that share a call
    double kept;     // share of the rate that stays with all processors busy
    double peak_flop_per_s;
} ProbeAttention;

// False where such samples are missing: nothing is written.
bool probe_attention(const ProbeBuilder *builder, const ProbeAttention *about);

// Latencies and bandwidths inside a machine and between machines.
void probe_links(ProbeBuilder *builder);

// Measured curves of the groups that there were, of each collective.
void probe_curves(ProbeBuilder *builder);

// Bytes that an element of a streaming kernel reads and writes.
typedef struct ProbeBytes {
    double add, norm, swiglu, adamw;
} ProbeBytes;
double probe_stream_bytes(const ProbeBytes *per_element, const ProbeSample *sample);

double probe_gemm_rate(const ProbeSample *sample, double launch_s);

// The accelerator of a processor, its links, and curves of its groups.
Status probe_cpu(ProbeBuilder *builder, Error *error);

// The accelerator of a GPU, and curves of its groups.
Status probe_gpu(ProbeBuilder *builder, Error *error);

// The probe: measures this machine with the executor's own kernels and transport. Rank 0 writes the results (schema
// ndtune.probe-result/1, exec/launch/probe.h).

#pragma once

#include <jansson.h>

#include "exec/worker/hosts.h"
#include "exec/worker/stopwatch.h"

typedef struct Probe {
    Session *session;
    Arena *arena;
    RankHost *hosts;
    int world;
    json_t *samples;     // of rank 0; NULL elsewhere
    double mean_call_s;  // rank 0 alone, of the product that gauges a core's speed: over the rounds
    int divisor;         // by which sizes of a device's own kernels are reduced, a power of two
} Probe;

// What a sample measures, without its timing.
typedef struct ProbeTopic {
    const char *what, *name;
    double size[4];       // meaning by kind: see exec/launch/probe.h
    int nodes, per_node;  // ranks taking part
} ProbeTopic;

void probe_add(Probe *probe, const ProbeTopic *topic, const Timing *timing);

// Synchronizes all ranks; those that wait sleep or yield.
Status probe_meet(Probe *probe, Error *error);

// Two kernels in rounds, on rank 0 alone and on every rank at once; then kernels of rank 0 while the others wait,
// scaled to the mean speed of those rounds.
Status probe_together(Probe *probe, Error *error);
Status probe_kernels(Probe *probe, Error *error);
// Kernels of a device that has its own (device.h, measure), on rank 0.
Status probe_device(Probe *probe, Error *error);
int probe_divisor(const Probe *probe);
// Each collective on every kind of group there is, one group at a time; for a device with its own memory only where the
// transport can access it: staged through the host, it would be the host's timing.
Status probe_collectives(Probe *probe, Error *error);

Status probe_run(Session *session, Arena *arena, Error *error);

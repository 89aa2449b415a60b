// From the samples of a probe to a cluster profile.

#pragma once

#include <jansson.h>

#include "exec/launch/probe.h"
#include "sim/base/error.h"
#include "sim/cluster/cluster.h"

typedef struct ProbeProfile {
    const char *name;     // of the profile
    const char *extends;  // the built-in one that supplies the numbers not measured
    const char *when;     // "2026-11-20"
    const char *program;  // "ndtune 0.1.0+..."
    const char *transport;
    const ClusterProfile *parent;  // the one that it extends, as it is
} ProbeProfile;

// The profile file as JSON; the caller frees *root. ENVIRONMENT where a sample that it needs is missing.
Status probe_profile(const ProbeProfile *about, const ProbeResult *probe, Arena *arena, json_t **root, Error *error);

// Which measured runs support a prediction: of this framework, on this accelerator, at this scale.

#pragma once

#include "autotune/result.h"
#include "sim/frameworks/framework.h"

// The framework that a target is a version of; NULL = none of these.
static inline const Framework *evidence_framework(const Target *target) {
    return target->name ? framework_of(target->name) : NULL;
}

typedef struct Evidence {
    int runs;                  // published ones of the framework, on any accelerator
    const MeasuredChip *here;  // those on this one; NULL = none
    bool beyond;               // the world is larger than any of them
} Evidence;

Evidence evidence_of(const Target *target, const ClusterProfile *cluster, int world);

enum { EVIDENCE_BYTES = 448 };
#define EVIDENCE_BUFFER ((char[EVIDENCE_BYTES]){0})  // room for one text: lives as long as the block around it

// "118 published runs of NAME, 6 of them on B200 (up to 8 ranks), there predicted 29 % too fast".
char *evidence_text(const TuneRequest *request, char out[EVIDENCE_BYTES]);

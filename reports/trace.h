// One step as files for external viewers: Chrome's trace events (Perfetto, chrome://tracing) and PyTorch's memory
// snapshot (pytorch.org/memory_viz).

#pragma once

#include <stdio.h>

#include "autotune/result.h"
#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/step/timeline.h"

// A step, simulated or measured.
typedef struct TraceStep {
    const StepProgram *program;
    const Timeline *timeline;
} TraceStep;

typedef struct TraceFile {
    const TuneRequest *request;
    const char *command;  // the requesting command line, quoted for a shell
    TraceStep steps[2];   // overlaid, both starting at 0
    int step_count;
    Arena *arena;  // of what writing needs
} TraceFile;

extern const char *const trace_origin_names[2];  // by TimelineOrigin: "simulated", "measured"

enum { TRACE_MOST_SPANS = 200000 };  // of a step; beyond, its first two and its last micro-batch stand for all

Status trace_chrome(const void *file, FILE *out, Error *error);

// The same spans, all of them, as CSV.
Status csv_spans(const void *file, FILE *out, Error *error);

// Live bytes of one rank over the step, allocated at the first write of each slot and freed after its last use, as
// memory_breakdown counts. The timeline gives the times where it is complete; NULL = the order alone.
typedef struct MemorySnapshot {
    const StepProgram *program;
    const Timeline *timeline;
    int rank;
    Arena *arena;
} MemorySnapshot;

Status memory_snapshot(const void *snapshot, FILE *out, Error *error);

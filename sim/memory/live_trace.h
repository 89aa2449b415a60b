// Lifetimes in a program with its loops cut: instances in issue order and the lifetimes of slots. Neither says
// anything about bytes, so programs of one structure (same tasks, references and cells; other sizes) share it.

#pragma once

#include "sim/memory/lifetimes.h"
#include "sim/memory/plan_shape.h"
#include "sim/memory/program_cut.h"

typedef struct LiveTrace {
    StepInstance *instances;
    int32_t count;
    Lifetimes lifetimes;
    int32_t *slots;                  // of each lifetime: 1 plus the number of omitted layers that it represents
    int32_t layers, removed_layers;  // of the cut program; omitted from it
    int32_t reach;
} LiveTrace;

// Traces by structure; "LiveTraces t = {0}" is empty. Forgotten once they exceed LIVE_TRACES_BYTES.
enum { LIVE_TRACES_BYTES = 12 << 20 };

typedef struct LiveTraces {
    ByStructure by;
    Arena scratch;
    PlanShapes shapes;  // of our executor's plans
} LiveTraces;

// *trace is the collection's, until the next call.
Status live_traces_find(LiveTraces *traces, const StepProgram *program, const CutOptions *options,
                        const LiveTrace **trace, Error *error);
void live_traces_free(LiveTraces *traces);

// A recorded step of a framework (tests/frameworks/traces) and a lowered program, both as one list of collectives in
// issue order.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/lowered.h"

enum { TRACE_TEXT = 32, TRACE_NAME = 64, TRACE_MAX_EVENTS = 512, TRACE_MAX_STEPS = 4 };

typedef struct TraceEvent {
    int micro_batch;
    char phase[TRACE_TEXT];   // "forward" "recompute" "backward" "optimizer"
    char place[TRACE_TEXT];   // "embedding" "layer 3" "head" "root" ""
    char kind[TRACE_TEXT];    // "all_gather" "reduce_scatter" "all_reduce" "transfer"
    char axes[TRACE_TEXT];    // "dp_shard+cp": the axes that the group spans
    int64_t bytes;            // of the whole tensor
    char dtype[TRACE_TEXT];   // "bf16" "fp32"
    char origin[TRACE_TEXT];  // part of the framework that asked for it; empty in a lowered program
} TraceEvent;

typedef struct EventList {
    TraceEvent events[TRACE_MAX_EVENTS];
    int count;
} EventList;

typedef struct Trace {
    char name[TRACE_NAME];
    LoweredRequest request;     // the same model and plan for lowered()
    char mesh[4 * TRACE_TEXT];  // where request.mesh points
    char target[TRACE_TEXT];    // where request.target points
    Mesh sizes;
    bool loads_bf16;  // from_pretrained(dtype=bfloat16)
    bool syncs_each_batch;
    int layers;
    int most_whole_layers;  // decoder layers whose parameters were whole at the same time; -1 = not recorded
    int64_t parameter_bytes, moment_bytes;  // of rank 0
    char parameter_dtype[TRACE_TEXT];
    int64_t kept_bytes_per_layer;  // what a layer leaves for backward; -1 = not recorded
    int gradient_count;            // micro-steps after which gradients were counted; 0 = not recorded
    int64_t whole_gradient_bytes[TRACE_MAX_STEPS], shard_gradient_bytes[TRACE_MAX_STEPS];
    EventList list;
} Trace;

// Names of the traces in a folder ("accelerate-1.15"), sorted; fails the test when there is none.
int trace_names(const char *framework, char names[][TRACE_NAME], int capacity);

// Fails the test when the file is not a trace of the preset "tiny".
void trace_read(const char *framework, const char *name, Trace *trace);

void trace_of_program(const StepProgram *program, EventList *list);

bool trace_event_equal(const TraceEvent *a, const TraceEvent *b);
void trace_event_print(const char *who, const TraceEvent *event);

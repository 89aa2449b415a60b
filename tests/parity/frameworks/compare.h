// Compares every trace of a framework with the lowering of its target. Where the two differ on purpose, or for want of
// a better lowering, the difference is a row of a table that transforms the framework's list into ours; it must apply
// exactly where it says, so a difference that disappears is detected as well as a new one.

#pragma once

#include "tests/parity/frameworks/trace.h"

typedef struct KnownDifference {
    const char *name;
    int (*edit)(Trace *trace);  // number of events that it changed
    bool (*expected)(const Trace *trace);
} KnownDifference;

typedef struct Comparison {
    const char *framework;
    bool (*compares)(const Trace *trace);  // the others have their own tests
    const KnownDifference *known;
    int known_count;
    int least;  // traces that must have been compared
} Comparison;

// Prints the differences and fails the test.
void traces_compare(const Comparison *comparison);

// ---- for edits

bool trace_is(const char *a, const char *b);
int trace_size(const Trace *trace, Axis axis);
bool trace_is_sharded(const Trace *trace);
void trace_remove(EventList *list, int at);
void trace_insert(EventList *list, int at, const TraceEvent *event);
int64_t trace_bytes(const EventList *list, const char *phase, const char *kind);

typedef struct Held {
    int64_t master_bytes, moment_bytes;
    int64_t gradient_shard_bytes;  // when the last micro-step has ended
    int64_t whole_gradient_bytes;  // between micro-steps
    int64_t kept_bytes_per_layer;  // of activations, for backward
} Held;

Held program_holds(const StepProgram *program);

// ---- differences of several frameworks

// Token counts per expert are sent in int64 (torch.zeros of torch.long); ours in int32.
int counts_are_in_64_bits(Trace *trace);

// The step itself does not sum the loss over ranks; ours does, before the norm.
int loss_is_summed_elsewhere(Trace *trace);

// Training loops average the loss when the step is over; ours do it before the norm.
int loss_is_averaged_last(Trace *trace);

// PyTorch gathers the embedding as layer 0's prefetch, before the collectives of layer 0; ours are issued after them
// (emit_backward_begin in lower_sharding.c): a guard open in one layer only would cost the engine its repetition.
int embedding_is_gathered_after_layer_0(Trace *trace);
bool prefetches_embedding(const Trace *trace);

// clip_grad_norm_ reduces a vector of the norms of all parameter tensors in their dtype, one all-reduce after another
// for each axis of the mesh that they are sharded over; ours is one fp32 scalar over all axes at once (lower_update.c).
int norms_are_reduced_apart(Trace *trace);

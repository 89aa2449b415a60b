// Reads a StepProgram and answers which buffers are live when. Three users of the same lifetimes:
//   memory_plan       offsets for our executor: two buffers share bytes only where happens-before orders all their uses
//   memory_breakdown  live bytes at the peak by role, plus a framework's allocator, context and communicators
//   memory_cached_bytes  what PyTorch's caching allocator reserves, at most, in a step (cached_bytes.h)
// tests/support/hazard_check.h proves a plan.

#pragma once

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/memory/plan_shape.h"
#include "sim/step/step.h"

typedef struct MemoryPlan {
    int64_t *offset_bytes;  // of each buffer in the arena; slots, or places where they take turns, are slot_bytes long
    int32_t **place;        // by buffer: the place of each slot; NULL = slot i is at place i
    int64_t arena_bytes;    // what the executor maps: planned_peak_bytes
    int64_t persistent_bytes;
} MemoryPlan;

// Same program, same plan on every rank (symmetric buffers need equal offsets). Persistent buffers and those that the
// host reads (loss, norm) have bytes of their own, in front. Lifetimes are found on the program with its loops cut to a
// few iterations; slots of one buffer stay together, and take turns where they can. INTERNAL when an operand leaves its
// slot.
Status memory_plan(const StepProgram *program, Arena *arena, MemoryPlan *plan, Error *error);

// The same among programs of which many have one structure. plan->place is the shapes', until the next call.
Status memory_plan_among(const StepProgram *program, PlanShapes *shapes, Arena *arena, MemoryPlan *plan, Error *error);

// Where an access begins in the arena.
int64_t memory_ref_offset(const MemoryPlan *plan, const StepProgram *program, const BufferRef *ref,
                          const StepInstance *instance, const MeshCoordinates *at);

typedef struct MemoryBreakdown {
    double parameters, gradients, optimizer, activations, logits;  // alive at the peak
    double gathered_parameters, communication, runtime;            // likewise
    double peak_bytes;                                             // sum of the terms
    double allocator_bytes;  // what the framework's allocator holds: peak and slack, or replayed; no store has it
    double reserved_bytes;   // that, context and communicator buffers
    const char *peak_phase;  // "forward" "loss" "backward" "optimizer"
    const char *top_name;    // largest buffer at the peak, for reasons ("logits 3.9 GiB")
    double top_bytes;
    double host_bytes;       // of a rank, in the host's memory
    int stage;               // pipeline stage that these values belong to: the one that reserves most
    int stages;              // number of stages; 0 without a pipeline
    const double *by_stage;  // bytes that each of them reserves
} MemoryBreakdown;

// Frameworks allocate at first use and free after last use: live bytes by issue order, per phase, plus the target's
// slack (memory_hold replays its allocator instead), context and one buffer per pair of communicator and group of more
// than one rank. For target ndtune the peak is the planner's arena, and runtime is its remainder beyond the live bytes.
Status memory_breakdown(const StepProgram *program, Arena *arena, MemoryBreakdown *breakdown, Error *error);

// Memory that the accelerator must provide: what is reserved, except states that can be paged out at the peak.
double memory_needed_bytes(const TrainPlan *plan, const MemoryBreakdown *memory);

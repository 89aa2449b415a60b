// The framework part of memory_breakdown with a choice of how far loops are cut, so that a test can compare cut with
// whole; and what is shared among many programs.

#pragma once

#include "sim/memory/live_trace.h"
#include "sim/memory/memory.h"
#include "sim/step/stages.h"

// memory_breakdown of a program that is cut where the options say; traces: of earlier programs, looked up and added to.
Status memory_breakdown_cut(const StepProgram *program, const CutOptions *options, LiveTraces *traces,
                            MemoryBreakdown *breakdown, Error *error);

// memory_breakdown for one of many programs: results of earlier ones are looked up.
Status memory_breakdown_among(const StepProgram *program, LiveTraces *traces, Arena *arena, MemoryBreakdown *breakdown,
                              Error *error);

// Of what a framework reserves, the part that is no tensors: its context, a buffer per communicator, libraries' own.
double memory_outside_bytes(const StepProgram *program, Arena *arena);

// Of persistent buffers, on the accelerator.
int64_t memory_resident_bytes(const StepProgram *program);

// What the framework's allocator holds on an accelerator of this much memory (0 = more than enough): replayed, in place
// of the slack that the target has by itself, where its allocator is known and what lives fits; what a calibration
// found beyond that slack comes on top. More than the limit where not even giving back what is cached helps. Stages of
// a pipeline keep the slack: replayed, interleaved ones came out a third above what their logs say.
Status memory_hold(const StepProgram *program, double limit_bytes, LiveTraces *traces, MemoryBreakdown *breakdown,
                   Error *error);

// Whether what a stage's allocator holds is replayed: where the target wants it, of 1F1B.
bool memory_replays_stage(const Target *target, const TrainPlan *plan);

// What the log of a pipeline's stage says that its allocator holds (allocator_bytes; what it needs stays): replayed,
// where memory_replays_stage. ahead: its host goes on while messages are on their way, and leaves blocks to other
// streams.
Status memory_hold_stage(const StepProgram *program, double limit_bytes, bool ahead, LiveTraces *traces,
                         MemoryBreakdown *breakdown, Error *error);

// Of the stage that reserves most, the first of several: it decides whether a plan fits.
Status memory_breakdown_stages(const StepPrograms *programs, double limit_bytes, LiveTraces *traces, Arena *arena,
                               MemoryBreakdown *breakdown, Error *error);

// Live bytes while each task instance runs, persistent buffers included, in issue order; instances that the cut does
// not look at are left out. What memory_breakdown takes its peak from.
typedef struct LiveMoment {
    int32_t task;
    double bytes;
} LiveMoment;

typedef struct LiveMoments {
    LiveMoment *rows;
    int32_t count;
    int32_t drained;  // from this one on, behind the last forward: of micro-steps only the last one is kept
} LiveMoments;

// `who` is of a program of the same structure, found with memory_breakdown_cut_options.
LiveMoments memory_moments_of(const StepProgram *program, const LiveTrace *who, Arena *arena);

extern const CutOptions memory_breakdown_cut_options;  // what memory_breakdown uses

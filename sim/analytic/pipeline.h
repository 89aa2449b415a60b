// How the stages of a pipeline wait for each other: the work items of all stages are sorted once into an order in which
// each comes after everything it waits for; a run over them is one addition and one comparison each. Work items of one
// chunk take equally long in all micro-steps, messages take equally long everywhere.

#pragma once

#include "sim/analytic/memo.h"
#include "sim/step/schedules/schedule.h"

typedef struct PipelineOrder PipelineOrder;

// Orders by schedule and shape; "PipelineOrders known = {.arena = arena}" has none.
typedef struct PipelineOrders {
    Arena *arena;
    Memo memo;
} PipelineOrders;

typedef struct PipelineShape {
    const Schedule *schedule;
    int32_t stages, chunks;  // of layers on each stage
    int32_t micro_steps;
    int32_t group;  // as of ScheduleShape
} PipelineShape;

// The model's parts, stages x chunks of them, are numbered in forward order.
typedef struct PipelineTimes {
    const double *part_s;  // of each: forward and backward of a micro-step
    double forward_share;  // of that
    double device_share;   // of that, what the device needs where the host has issued ahead; 1 = it never does
    double last_share;     // of that, by which a stage's last backward is longer: gradient reductions overlap it
    const double *first_s, *last_s;  // by which each part's first forward and last backward are longer; NULL: not
    double message_s;                // to another stage
    double held_s;                   // of that, what its sender waits too
    double sleep_s;                  // and, before it comes, its receiver, whose host sleeps
} PipelineTimes;

// From the first forward to the last backward. Of many micro-steps a few are run, the rest extrapolated at their pace.
double pipeline_span_s(PipelineOrders *known, const PipelineShape *shape, const PipelineTimes *times);

// The number of a stage's chunk among all chunks, in the order of their layers.
static inline int32_t pipeline_part(const PipelineShape *shape, int32_t stage, int32_t chunk) {
    const bool back = shape->schedule->folded && chunk % 2 == 1;
    return chunk * shape->stages + (back ? shape->stages - 1 - stage : stage);
}

// Largest number of a stage's forwards whose backward has not run, in chunks.
int32_t pipeline_held(PipelineOrders *known, const PipelineShape *shape, int32_t stage);

// What that stage does, in its order.
const ScheduleAction *pipeline_actions(PipelineOrders *known, const PipelineShape *shape, int32_t stage,
                                       int32_t *count);

// Two orders of fewer micro-steps that show how it goes on; false: there are too few.
bool pipeline_shows(const PipelineShape *shape, PipelineShape *few, PipelineShape *more);

typedef struct PipelineLoad {
    const int32_t *chunk_layers;  // of the stage's chunks
    int32_t layers;               // of all of these
    double carried_bytes;         // of a micro-step through all layers, from forward to backward
    double growing_bytes;  // gradients of all layers, a chunk's from its first backward to the end of its last one
    double first_growing_bytes, last_growing_bytes;  // of the first and of the last chunk, its layers apart
    double early_bytes;                              // until the last forward of the first chunk
} PipelineLoad;

// The most that a stage has of both at a time (pipeline_load.c).
double pipeline_most_bytes(PipelineOrders *known, const PipelineShape *shape, int32_t stage, const PipelineLoad *load);

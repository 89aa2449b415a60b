// How the stages of a pipeline wait for each other: the schedule's works of all stages, put once into an order in which
// whatever a work waits for comes before it; a run over them is one addition and one comparison each. Works of one
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
} PipelineShape;

// Parts of the model, stages x chunks of them, are numbered as forward goes through them.
typedef struct PipelineTimes {
    const double *part_s;  // of each: forward and backward of a micro-step
    double forward_share;  // of that
    double device_share;   // of that, what the device needs where the host has issued ahead; 1 = it never does
    double last_share;     // of that, by which the last backward of a stage is longer: gradients are reduced beside it
    double message_s;      // to another stage
} PipelineTimes;

// From the first forward to the last backward. Of many micro-steps a few are run, the others follow by their pace.
double pipeline_span_s(PipelineOrders *known, const PipelineShape *shape, const PipelineTimes *times);

// Most forwards of a stage whose backward has not come, in chunks.
int32_t pipeline_held(PipelineOrders *known, const PipelineShape *shape, int32_t stage);

// A stretch of compute that runs without a word from the sharding lanes (a layer's forward: GEMMs, attention, tp and
// cp collectives), as one max-plus operator: each end time is the largest of (input + delay) over what the stretch
// waits for.

#pragma once

#include "sim/cost/cost.h"
#include "sim/step/step.h"

typedef enum {
    BLOCK_COMPUTE,    // in: the compute lane is free; out: it is free again
    BLOCK_HOST,       // in: the host begins to issue the stretch
    BLOCK_WEIGHTS,    // in: gathered weights are there; out: they were read for the last time
    BLOCK_GRADIENTS,  // in: the gradient buffer may be overwritten; out: the gradient is complete
    BLOCK_BEFORE,  // in: the stretch before has ended; its transfers may still be under way, or those of this one begin
    BLOCK_PORTS
} BlockPort;

typedef enum { BLOCK_FREE, BLOCK_READ, BLOCK_WRITTEN, BLOCK_OUTPUTS } BlockOutput;  // compute, weights, gradients

// Later than anything waits for: stands for "never".
static const double block_never_s = -1e30;

typedef struct Block {
    double delay_s[BLOCK_OUTPUTS][BLOCK_PORTS];
    double host_s;                 // to issue all of it
    double busy_s;                 // of the compute lane
    double exposed_s[AXIS_COUNT];  // compute lane idle inside, by axis, when it follows the stretch before at once
    double length_s;               // then
} Block;

// Tasks in issue order, of one layer.
typedef struct TaskRun {
    const int32_t *tasks;
    int32_t count, layer;
} TaskRun;

typedef struct BlockTasks {
    const StepProgram *program;
    const TaskCost *costs;
    TaskRun before;  // what the compute lane did just before: its transfers may still be under way
    TaskRun run;
    double *event_s;  // scratch: one per event slot of the program
    const int32_t *first_slot;
    bool joins;  // what follows waits for its last transfers, too
} BlockTasks;

Block block_measure(const BlockTasks *tasks);

int32_t block_event_slot(const BlockTasks *tasks, const EventRef *ref, int32_t layer);
void block_set_events(const BlockTasks *tasks, double value);  // all that the tasks touch

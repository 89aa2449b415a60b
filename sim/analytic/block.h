// A stretch of compute that runs independently of the sharding lanes (a layer's forward: GEMMs, attention, tp and
// cp collectives), as one max-plus operator: each end time is the largest of (input + delay) over what the stretch
// waits for.

#pragma once

#include "sim/cost/cost.h"
#include "sim/cost/interference.h"
#include "sim/step/step.h"

typedef enum {
    BLOCK_COMPUTE,    // in: the compute lane is free; out: it is free again
    BLOCK_HOST,       // in: the host begins to issue the stretch
    BLOCK_WEIGHTS,    // in: gathered weights are there; out: they were read for the last time
    BLOCK_EXPERTS,    // in: those of experts that are a unit of their own
    BLOCK_GRADIENTS,  // in: the gradient buffer may be overwritten; out: the gradient is complete
    BLOCK_BEFORE,  // in: the stretch before has ended; its transfers may still be under way, or those of this one begin
    BLOCK_PORTS
} BlockPort;

typedef enum {
    BLOCK_COMPUTE_FREE,
    BLOCK_READ,
    BLOCK_WRITTEN,
    BLOCK_ISSUED,
    BLOCK_OUTPUTS
} BlockOutput;  // compute, weights, gradients, host

// Later than any wait: stands for "never".
static const double block_never_s = -1e30;

static inline double later(double a, double b) {
    return a > b ? a : b;
}

typedef struct Block {
    double delay_s[BLOCK_OUTPUTS][BLOCK_PORTS];
    double host_s;                 // to issue all of it
    bool stops_host;               // in between it waits for the device
    double busy_s;                 // of the compute lane
    double exposed_s[AXIS_COUNT];  // compute lane idle inside, by axis, when it follows the stretch before at once
    double length_s;               // then
    double device_s;               // and where the host waits for nothing
} Block;

// What sharding has for a block: weights that are read in place, a gradient buffer that is still being reduced.
typedef struct OfSharding {
    double weights_s, experts_s, gradients_s;
} OfSharding;

// When an output happens as far as that has a say.
static inline double block_sharded(const double *delay, const OfSharding *of, double slow) {
    const double layer_s = of->weights_s + delay[BLOCK_WEIGHTS] * slow;
    const double weights_s = later(layer_s, of->experts_s + delay[BLOCK_EXPERTS] * slow);
    return later(weights_s, of->gradients_s + delay[BLOCK_GRADIENTS] * slow);
}

// Tasks in issue order, of one layer.
typedef struct TaskRun {
    const int32_t *tasks;
    int32_t count, layer;
} TaskRun;

typedef struct SlotNumber {
    int32_t stamp;  // of the compilation that assigned it
    int16_t number;
} SlotNumber;

typedef struct BlockTasks {
    const StepProgram *program;
    TaskRun before;  // what the compute lane did just before: its transfers may still be under way
    TaskRun run;
    SlotNumber *numbers;  // scratch: one per event slot of the program
    int32_t stamp;        // another one for each compilation with these numbers, from 1 on
    const int32_t *first_slot;
    bool joins;  // what follows waits for its last transfers, too
} BlockTasks;

enum { STEP_READS_WEIGHTS = 1, STEP_WRITES_GRADIENTS = 2 };

// A task as the measurement sees it: everything else about the program is dropped, so that the same stretch in
// another program is recognised as the same.
typedef struct BlockStep {
    double seconds, host_s;
    int16_t waits, records;  // how many of the references that follow those of the previous step
    int8_t lane;
    int8_t axis;        // charged with the idle time after it; AXIS_COUNT: none
    uint8_t roles;      // STEP_READS_WEIGHTS, STEP_WRITES_GRADIENTS
    uint8_t host_stop;  // HostStop
} BlockStep;

// References below 0: what sharding records.
enum { BLOCK_WEIGHTS_REF = -1, BLOCK_GRADIENTS_REF = -2, BLOCK_EXPERTS_REF = -3 };

typedef struct BlockCode {
    BlockStep *steps;      // of the stretch before, then its own
    ShareDemand *demands;  // of each step
    int32_t before, count;
    int16_t *refs;  // event slots, numbered in the order in which the steps meet them
    int32_t ref_count;
    int8_t *slot_lane;  // of the task that records it
    int32_t slot_count;
    bool joins, awaits_experts;
    uint64_t refs_hash;
} BlockCode;

// A stretch without its costs: the same for every size of a structure.
typedef struct BlockPattern {
    const int32_t *tasks;  // of the steps
    BlockCode code;        // no demands, and steps that take no time
} BlockPattern;

BlockPattern block_compile(const BlockTasks *tasks, Arena *arena);

// References stay the pattern's.
BlockCode block_price(const BlockPattern *pattern, const StepProgram *program, const TaskCost *costs, Arena *arena);
Block block_measure(const BlockCode *code, Arena *scratch);

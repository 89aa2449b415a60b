// Which task instance must end before which other one starts: lane order, events and communicators, as sim/step/step.h
// defines them.

#pragma once

#include "sim/step/step.h"

enum { CLOCK_ALIGN = 8 };  // clocks are padded to this many lanes, so that loops over them vectorise

// Vector clocks: clock[i][lane] counts the instances of that lane that end before instance i starts. Lanes are total
// orders, so this is the whole relation (Mattern 1989; Fidge 1988), not an approximation.
typedef struct HappensBefore {
    const StepProgram *program;
    int32_t count;
    int32_t stride;           // integers per clock
    StepInstance *instances;  // in issue order
    int32_t *position;        // place of the instance in its lane
    int32_t *lane_first;      // of each lane: where its instances begin in in_lane
    int32_t *in_lane;         // instances lane by lane, in order
    int32_t *clock;           // [count][stride]
} HappensBefore;

void happens_before_build(const StepProgram *program, Arena *arena, HappensBefore *order);

static inline const int32_t *happens_before_clock(const HappensBefore *order, int32_t instance) {
    return order->clock + (size_t)instance * (size_t)order->stride;
}

static inline int happens_before_lane(const HappensBefore *order, int32_t instance) {
    return order->program->tasks[order->instances[instance].task].lane;
}

static inline int32_t happens_before_in_lane(const HappensBefore *order, int lane, int32_t position) {
    return order->in_lane[order->lane_first[lane] + position];
}

// Does `earlier` end before `later` starts, whatever the timing?
static inline bool happens_before(const HappensBefore *order, int32_t earlier, int32_t later) {
    return happens_before_clock(order, later)[happens_before_lane(order, earlier)] > order->position[earlier];
}

// Writes the actions of a stage with two chunks, one work item after another; private to the folded schedules. Each
// kind of work of a chunk continues where it left off.

#pragma once

#include "sim/step/schedules/schedule.h"

typedef struct Folded {
    ScheduleAction *next;
    int32_t micro_steps;          // of the step: work for later ones is skipped
    int32_t done[2][WORK_COUNT];  // by chunk
} Folded;

static inline void folded_add(Folded *folded, int32_t chunk, Work work) {
    const int32_t micro_step = folded->done[chunk][work]++;
    if (micro_step < folded->micro_steps) {
        *folded->next++ = (ScheduleAction){.work = work, .chunk = chunk, .micro_step = micro_step};
    }
}

static inline void folded_add_both_gradients(Folded *folded, int32_t chunk) {
    folded_add(folded, chunk, WORK_BACKWARD);
    folded_add(folded, chunk, WORK_WEIGHTS);
}

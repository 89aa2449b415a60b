// Totals of a Timeline.

#include "sim/step/timeline.h"

void timeline_totals(const Timeline *timeline, const StepProgram *program, int rank, TaskTotal *totals) {
    for (int32_t i = 0; i < program->task_count; i++) {
        totals[i] = (TaskTotal){0};
    }
    for (int64_t i = 0; i < timeline->span_count; i++) {
        const Span *span = &timeline->spans[i];
        if (span->rank == rank) {
            totals[span->task].count++;
            totals[span->task].seconds += span->end_s - span->start_s;
        }
    }
}

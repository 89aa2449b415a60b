// Spans of the last few steps and totals of all; nothing is allocated after recorder_begin.

#include "exec/worker/recorder.h"

// Rank 0 gathers every rank's spans of one step and writes them as JSON text: some 40 bytes per span.
static const int64_t MOST_SPANS = 1 << 20;

void recorder_begin(Recorder *recorder, const StepProgram *program, int steps, bool spans, Arena *arena) {
    const int64_t instances = step_instance_count(program);
    const int64_t fit = MOST_SPANS / (instances > 0 ? instances : 1);
    *recorder = (Recorder){.instances = instances, .task_count = program->task_count};
    recorder->totals = ARENA_ARRAY(arena, TaskTotal, program->task_count);
    if (spans) {
        recorder->steps_kept = (int)(fit < 1 ? 1 : fit < steps ? fit : steps);
        recorder->start_s = ARENA_ARRAY(arena, double, recorder->steps_kept *instances);
        recorder->end_s = ARENA_ARRAY(arena, double, recorder->steps_kept *instances);
    }
}

void recorder_span(Recorder *recorder, const RecorderSpan *span) {
    if (recorder->steps_kept > 0) {
        const int64_t at = span->step % recorder->steps_kept * recorder->instances + span->ordinal;
        recorder->start_s[at] = span->start_s;
        recorder->end_s[at] = span->end_s;
    }
    if (recorder->counting) {
        recorder->totals[span->task].count++;
        recorder->totals[span->task].seconds += span->end_s - span->start_s;
    }
}

int recorder_typical_step(const Recorder *recorder, const double *step_time_s, int steps) {
    if (recorder->steps_kept == 0) {
        return -1;
    }
    const int oldest = steps - recorder->steps_kept;
    const int first = oldest == 0 && steps > 1 ? 1 : oldest;
    int typical = first;
    for (int candidate = first; candidate < steps; candidate++) {
        int below = 0;
        for (int other = first; other < steps; other++) {
            below += step_time_s[other] < step_time_s[candidate] ||
                     (step_time_s[other] == step_time_s[candidate] && other < candidate);
        }
        if (below == (steps - first - 1) / 2) {
            typical = candidate;
        }
    }
    return typical;
}

// A collective over stages (of the norm, of the loss) takes next to nothing itself: a stay in it is a wait for the last
// of them, as a receive is. The host's time between two kernels counts as waiting as well; it is microseconds.

#include "autotune/predict/stage_waits.h"

#include <math.h>
#include <stdlib.h>

static int compare_starts(const void *a, const void *b) {
    const StageWait *x = a, *y = b;
    return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

static bool is_own_traffic(const StepProgram *program, const Task *task) {
    if (!task_is_collective(task)) {
        return task->lane != LANE_COMPUTE && task->kind != TASK_RECEIVE;
    }
    return (mesh_real_axes(&program->plan.mesh, program->groups[task->group].axes) & AXES_STAGE) == 0;
}

static int64_t find_traffic(const StepProgram *program, const Span *spans, int64_t count, StageWait *traffic) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        if (is_own_traffic(program, &program->tasks[spans[i].task])) {
            traffic[found++] = (StageWait){spans[i].start_s, spans[i].end_s};
        }
    }
    qsort(traffic, (size_t)found, sizeof *traffic, compare_starts);
    return found;
}

// The compute lane is idle from..to: what no traffic covers is waiting. *next: index into the traffic.
static void add_gap(StageWaits *line, const StageWait *traffic, int64_t count, int64_t *next, double from_s,
                    double to_s) {
    double at_s = from_s;
    while (at_s < to_s) {
        while (*next < count && traffic[*next].end_s <= at_s) {
            ++*next;
        }
        const double begins_s = *next < count ? fmin(traffic[*next].start_s, to_s) : to_s;
        if (begins_s > at_s) {
            line->waits[line->count++] = (StageWait){at_s, begins_s};
            line->waits_s += begins_s - at_s;
        }
        at_s = *next < count ? fmax(begins_s, fmin(traffic[*next].end_s, to_s)) : to_s;
    }
}

StageWaits stage_waits(const StepProgram *program, const Span *spans, int64_t count, double step_s, Arena *arena) {
    StageWait *traffic = ARENA_ARRAY(arena, StageWait, count + 1);
    const int64_t traffic_count = find_traffic(program, spans, count, traffic);
    StageWaits line = {.waits = ARENA_ARRAY(arena, StageWait, count + traffic_count + 2)};
    int64_t next = 0;
    double at_s = 0;
    for (int64_t i = 0; i < count; i++) {
        const Task *task = &program->tasks[spans[i].task];
        if (task->lane == LANE_COMPUTE) {
            add_gap(&line, traffic, traffic_count, &next, at_s, spans[i].start_s);
            *(task->phase == PHASE_OPTIMIZER ? &line.optimizer_s : &line.busy_s) += spans[i].end_s - spans[i].start_s;
            at_s = spans[i].end_s;
        }
    }
    add_gap(&line, traffic, traffic_count, &next, at_s, step_s);
    return line;
}

double stage_bubble_share(const StepProgram *program, const Timeline *timeline, Arena *arena) {
    double waits_s = 0;
    int ranks = 0;
    for (int64_t first = 0, end; first < timeline->span_count; first = end, ranks++) {
        for (end = first; end < timeline->span_count && timeline->spans[end].rank == timeline->spans[first].rank;) {
            end++;
        }
        waits_s += stage_waits(program, &timeline->spans[first], end - first, timeline->step_s, arena).waits_s;
    }
    return ranks > 0 ? waits_s / ranks / timeline->step_s : NAN;
}

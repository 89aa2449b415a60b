// The rule of sim/engine/attribution.c on measured spans: the compute lane busy -> compute or optimizer; idle while a
// collective or message goes on -> its term (step_terms.h); idle otherwise -> overhead. Where several overlap in a gap,
// the time is attributed to the one that began first. Lanes in issue order on one thread are the special case in which
// every one is exposed whole.

#include "autotune/validate/exposure.h"

#include <stdlib.h>

#include "autotune/predict/step_terms.h"

typedef struct Piece {
    double start_s, end_s;
    int term;  // of step_terms.h
} Piece;

static int by_start(const void *a, const void *b) {
    const Piece *left = a, *right = b;
    return (left->start_s > right->start_s) - (left->start_s < right->start_s);
}

typedef struct Sums {
    double seconds[TERM_COUNT];
} Sums;

// Collectives, by start, between two moments at which the compute lane works. *next: the first that may reach in.
static void charge_gap(const Piece *moves, int64_t count, int64_t *next, double from_s, double to_s, Sums *sums) {
    for (int64_t i = *next; i < count && moves[i].start_s < to_s; i++) {
        const double start_s = moves[i].start_s > from_s ? moves[i].start_s : from_s;
        const double end_s = moves[i].end_s < to_s ? moves[i].end_s : to_s;
        if (end_s > start_s) {
            sums->seconds[moves[i].term] += end_s - start_s;
            from_s = end_s;
        }
        if (i == *next && moves[i].end_s <= to_s) {
            (*next)++;
        }
    }
}

static void charge_rank(Piece *work, int64_t work_count, Piece *moves, int64_t move_count, double step_s, Sums *sums) {
    qsort(work, (size_t)work_count, sizeof *work, by_start);
    qsort(moves, (size_t)move_count, sizeof *moves, by_start);
    double idle_since_s = 0;
    int64_t next = 0;
    for (int64_t i = 0; i < work_count; i++) {
        charge_gap(moves, move_count, &next, idle_since_s, work[i].start_s, sums);
        sums->seconds[work[i].term] += work[i].end_s - work[i].start_s;
        idle_since_s = work[i].end_s > idle_since_s ? work[i].end_s : idle_since_s;
    }
    charge_gap(moves, move_count, &next, idle_since_s, step_s, sums);
}

void exposure_of(const StepProgram *program, const Timeline *timeline, Arena *arena, StepParts *parts) {
    *parts = (StepParts){0};
    const int64_t count = timeline->span_count;
    Piece *work = ARENA_ARRAY(arena, Piece, count > 0 ? count : 1), *moves = ARENA_ARRAY(arena, Piece, count + 1);
    Sums sums = {0};
    int ranks = 0;
    for (int64_t i = 0; i < count; ranks++) {
        const int rank = timeline->spans[i].rank;
        int64_t work_count = 0, move_count = 0;
        for (; i < count && timeline->spans[i].rank == rank; i++) {
            const Span *span = &timeline->spans[i];
            const Task *task = &program->tasks[span->task];
            const Piece piece = {span->start_s, span->end_s, step_term(program, task)};
            if (task_is_collective(task) || task_is_message(task)) {
                moves[move_count++] = piece;
            } else {
                work[work_count++] = piece;
            }
        }
        charge_rank(work, work_count, moves, move_count, timeline->step_s, &sums);
    }
    if (ranks == 0) {
        return;
    }
    parts->overhead_s = timeline->step_s;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        parts->exposed_s[axis] = sums.seconds[axis] / ranks;
        parts->overhead_s -= parts->exposed_s[axis];
    }
    parts->compute_s = sums.seconds[TERM_COMPUTE] / ranks;
    parts->optimizer_s = sums.seconds[TERM_OPTIMIZER] / ranks;
    parts->overhead_s -= parts->compute_s + parts->optimizer_s;
}

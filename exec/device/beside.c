// Vector clocks: for each lane, how many tasks of every other lane it knows to be finished. A task learns what the
// records that it waits for knew. What a collective does not know to be finished when it is issued runs beside it.

#include "exec/device/beside.h"

#include "sim/step/slots.h"

#include <string.h>

typedef struct Clocks {
    const StepProgram *program;
    int64_t *known;             // [lane][lane]
    int64_t *at;                // [event slot][lane]: what was known when it was recorded
    int64_t *issued;            // [lane]: tasks issued
    int64_t *last;              // [lane]: number of the latest collective that really moves bytes
    const int32_t *first_slot;  // by event
    int32_t **tasks;            // [lane]: by number, from 1
} Clocks;

static int64_t *event_clock(const Clocks *clocks, const EventRef *ref, const StepInstance *instance) {
    const StepProgram *program = clocks->program;
    return clocks->at + (int64_t)step_event_slot(program, clocks->first_slot, ref, instance) * program->lane_count;
}

static void learn(int64_t *known, const int64_t *from, int lanes) {
    for (int i = 0; i < lanes; i++) {
        known[i] = from[i] > known[i] ? from[i] : known[i];
    }
}

static bool something_moves(const Clocks *clocks, const int64_t *known, int own) {
    for (int lane = 0; lane < clocks->program->lane_count; lane++) {
        if (lane != own && clocks->last[lane] > known[lane]) {
            return true;
        }
    }
    return false;
}

static void mark_unfinished(const Clocks *clocks, const int64_t *known, int own, bool *beside) {
    for (int lane = 0; lane < clocks->program->lane_count; lane++) {
        for (int64_t number = known[lane] + 1; lane != own && number <= clocks->issued[lane]; number++) {
            beside[clocks->tasks[lane][number]] = true;
        }
    }
}

static void visit(Clocks *clocks, const StepInstance *instance, bool *beside) {
    const StepProgram *program = clocks->program;
    const Task *task = &program->tasks[instance->task];
    int64_t *known = clocks->known + (int64_t)task->lane * program->lane_count;
    for (int32_t i = 0; i < task->wait_count; i++) {
        learn(known, event_clock(clocks, &program->event_refs[task->first_wait + i], instance), program->lane_count);
    }
    clocks->tasks[task->lane][++clocks->issued[task->lane]] = instance->task;
    if (!task_is_collective(task)) {
        beside[instance->task] = beside[instance->task] || something_moves(clocks, known, task->lane);
    } else if (program->groups[task->group].size > 1) {
        clocks->last[task->lane] = clocks->issued[task->lane];
        mark_unfinished(clocks, known, task->lane, beside);
    }
    known[task->lane] = clocks->issued[task->lane];
    for (int32_t i = 0; i < task->record_count; i++) {
        memcpy(event_clock(clocks, &program->event_refs[task->first_record + i], instance), known,
               (size_t)program->lane_count * sizeof *known);
    }
}

void beside_collectives(const StepProgram *program, Arena *arena, bool *beside) {
    Clocks clocks = {.program = program,
                     .known = ARENA_ARRAY(arena, int64_t, program->lane_count * program->lane_count),
                     .issued = ARENA_ARRAY(arena, int64_t, program->lane_count),
                     .last = ARENA_ARRAY(arena, int64_t, program->lane_count),
                     .first_slot = step_event_slots(program, arena),
                     .tasks = ARENA_ARRAY(arena, int32_t *, program->lane_count)};
    const int64_t instances = step_instance_count(program);
    for (int lane = 0; lane < program->lane_count; lane++) {
        clocks.tasks[lane] = ARENA_ARRAY(arena, int32_t, instances + 1);
    }
    const int64_t slots = clocks.first_slot[program->event_count];
    clocks.at = ARENA_ARRAY(arena, int64_t, slots * program->lane_count + 1);
    memset(beside, 0, (size_t)program->task_count * sizeof *beside);
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        visit(&clocks, &instance, beside);
    }
}

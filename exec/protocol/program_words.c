// Steps are counted from one, layers and micro-steps as in the program.

#include "exec/protocol/program_words.h"

static const StepProgram *program_of(const StepPrograms *programs, int rank) {
    return step_program_of(programs, &programs->of[0].plan.mesh, rank);
}

static bool in_task(const StepProgram *program, const TransportPlace *place) {
    return place->task >= 0 && place->task < program->task_count;
}

static const char *describe(const void *context, int rank, const TransportPlace *place, char *out, size_t out_bytes) {
    const StepProgram *program = program_of(context, rank);
    if (in_task(program, place)) {
        snprintf(out, out_bytes, "step %d, task '%s', layer %d, micro-step %d", place->step + 1,
                 program->tasks[place->task].name, place->layer, place->micro_step);
    } else if (place->step < 0) {
        snprintf(out, out_bytes, "preparation");
    } else {
        snprintf(out, out_bytes, "step %d, between tasks", place->step + 1);
    }
    return out;
}

static int64_t expected_bytes(const void *context, int rank, const TransportPlace *place) {
    const StepProgram *program = program_of(context, rank);
    const Task *task = in_task(program, place) ? &program->tasks[place->task] : NULL;
    const bool known = task && task_is_transfer(task);
    return known ? program_collective_bytes(program, task) : -1;
}

TransportWords program_words(const StepPrograms *programs) {
    return (TransportWords){.describe = describe, .expected_bytes = expected_bytes, .context = programs};
}

int64_t program_collective_bytes(const StepProgram *program, const Task *task) {
    const int part = task->kind == TASK_REDUCE_SCATTER ? AT_COLLECTIVE_TO : AT_COLLECTIVE_FROM;
    const int64_t bytes = task_operand(program, task, part)->ref.bytes;
    return task->kind == TASK_ALL_TO_ALL ? bytes / program->groups[task->group].size : bytes;
}

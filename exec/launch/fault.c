// Tasks are given by name: their numbers change with every program.

#include "exec/launch/fault.h"

#include <string.h>

#include "sim/base/text.h"

enum { PARTS_MOST = 5, PARTS_ROOM, PACE_MOST_S = 1 };

static const char VARIABLE[] = "NDTUNE_FAULT";

static Status refuse(const char *words, const char *why, Error *error) {
    return error_set(error, STATUS_USAGE, "%s=%s: %s; it takes ACTION:RANK:TASK[:STEP[:SECONDS]] or pace:SECONDS",
                     VARIABLE, words, why);
}

static int split(char *words, char *parts[PARTS_ROOM]) {
    int count = 0;
    for (char *at = words; at && count < PARTS_ROOM; count++) {
        parts[count] = at;
        at = strchr(at, ':');
        if (at) {
            *at++ = '\0';
        }
    }
    return count;
}

static FaultAction action_named(const char *name) {
    int action = FAULT_NONE + 1;
    while (action < FAULT_COUNT && strcmp(fault_action_names[action], name) != 0) {
        action++;
    }
    return (FaultAction)action;
}

static int task_named(const StepProgram *program, const char *name) {
    int task = 0;
    while (task < program->task_count && strcmp(program->tasks[task].name, name) != 0) {
        task++;
    }
    return task;
}

static Status read_pace(const char *words, const char *seconds, RunFault *fault, Error *error) {
    *fault = (RunFault){.action = FAULT_PACE, .rank = -1, .task = -1};
    FAIL_WITH(!text_parse_double(seconds, &fault->delay_s) || !(fault->delay_s > 0 && fault->delay_s <= PACE_MOST_S),
              refuse(words, "the pace is in seconds, above 0 and at most 1", error));
    return STATUS_OK;
}

Status fault_from_environment(const StepPrograms *programs, RunFault *fault, Error *error) {
    const Mesh *mesh = &programs->of[0].plan.mesh;
    const char *words = getenv(VARIABLE);
    char copy[256], *parts[PARTS_ROOM];
    int64_t rank, step = 1;
    if (!words) {
        return STATUS_OK;
    }
    snprintf(copy, sizeof copy, "%s", words);
    const int count = split(copy, parts);
    *fault = (RunFault){.delay_s = 0};
    if (count == 2 && action_named(parts[0]) == FAULT_PACE) {
        return read_pace(words, parts[1], fault, error);
    }
    if (count < 3 || (fault->action = action_named(parts[0])) >= FAULT_PACE) {
        return refuse(words, "the action is hang, exit, skip, size or delay", error);
    }
    FAIL_WITH(count > PARTS_MOST || strlen(words) >= sizeof copy, refuse(words, "there is more than it takes", error));
    if (!text_parse_int(parts[1], &rank) || rank < 0 || rank >= mesh_world(mesh)) {
        return refuse(words, "there is no such rank", error);
    }
    const StepProgram *program = step_program_of(programs, mesh, (int)rank);
    FAIL_WITH((fault->task = task_named(program, parts[2])) == program->task_count,
              refuse(words, "the program has no task of this name", error));
    if (count > 3 && (!text_parse_int(parts[3], &step) || step < 1 || step > INT32_MAX)) {
        return refuse(words, "steps count from 1", error);
    }
    FAIL_WITH(count > 4 && (!text_parse_double(parts[4], &fault->delay_s) || fault->delay_s < 0),
              refuse(words, "the delay is in seconds", error));
    fault->rank = (int)rank;
    fault->step = (int)step - 1;
    return STATUS_OK;
}

// Written without the product's clocks on purpose: predecessors by searching back, closure by Floyd and Warshall.

#include "tests/property/sim/memory/oracle.h"

#include <string.h>

static bool records(const Oracle *oracle, int index, int32_t event, int slot) {
    const StepProgram *program = oracle->program;
    const StepInstance *at = &oracle->instances[index];
    const Task *task = &program->tasks[at->task];
    for (int i = 0; i < task->record_count; i++) {
        const EventRef *ref = &program->event_refs[task->first_record + i];
        if (ref->event == event &&
            step_slot(program, program->events[event].buffer, ref->layer_scale, ref->layer_offset, at->layer) == slot) {
            return true;
        }
    }
    return false;
}

static void add_edges(Oracle *oracle, int index) {
    const StepProgram *program = oracle->program;
    const StepInstance *at = &oracle->instances[index];
    const Task *task = &program->tasks[at->task];
    for (int i = 0; i < task->wait_count; i++) {
        const EventRef *ref = &program->event_refs[task->first_wait + i];
        const int slot =
            step_slot(program, program->events[ref->event].buffer, ref->layer_scale, ref->layer_offset, at->layer);
        for (int other = index - 1; other >= 0; other--) {
            if (records(oracle, other, ref->event, slot)) {
                oracle->before[other][index] = true;
                break;
            }
        }
    }
    for (int other = 0; other < index; other++) {
        const Task *earlier = &program->tasks[oracle->instances[other].task];
        const bool same_wire = task_is_collective(task) && task_is_collective(earlier) &&
                               program->lanes[task->lane].communicator == program->lanes[earlier->lane].communicator;
        oracle->before[other][index] |= earlier->lane == task->lane || same_wire;
    }
}

bool oracle_build(Oracle *oracle, const StepProgram *program) {
    memset(oracle, 0, sizeof *oracle);
    oracle->program = program;
    StepCursor cursor = step_cursor_begin(program);
    while (oracle->count < ORACLE_MAX_INSTANCES && step_cursor_next(&cursor, &oracle->instances[oracle->count])) {
        oracle->count++;
    }
    if (oracle->count == ORACLE_MAX_INSTANCES) {
        return false;
    }
    for (int i = 0; i < oracle->count; i++) {
        add_edges(oracle, i);
    }
    for (int k = 0; k < oracle->count; k++) {
        for (int i = 0; i < k; i++) {
            for (int j = k + 1; oracle->before[i][k] && j < oracle->count; j++) {
                oracle->before[i][j] |= oracle->before[k][j];
            }
        }
    }
    return true;
}

static bool conflict(const Oracle *oracle, int a, int b, const MeshCoordinates *at) {
    const StepProgram *program = oracle->program;
    const Task *left = &program->tasks[oracle->instances[a].task];
    const Task *right = &program->tasks[oracle->instances[b].task];
    for (int i = 0; i < left->operand_count; i++) {
        for (int j = 0; j < right->operand_count; j++) {
            const Operand *x = task_operand(program, left, i);
            const Operand *y = task_operand(program, right, j);
            if (x->ref.buffer != y->ref.buffer || (x->access == ACCESS_READ && y->access == ACCESS_READ)) {
                continue;
            }
            const int64_t p = step_ref_offset(program, &x->ref, oracle->instances[a].layer, at);
            const int64_t q = step_ref_offset(program, &y->ref, oracle->instances[b].layer, at);
            if (p < q + y->ref.bytes && q < p + x->ref.bytes) {
                return true;
            }
        }
    }
    return false;
}

bool oracle_finds_race(const Oracle *oracle) {
    const Mesh *mesh = &oracle->program->plan.mesh;
    const MeshCoordinates first = mesh_coordinates(mesh, 0);
    const MeshCoordinates last = mesh_coordinates(mesh, mesh_world(mesh) - 1);
    for (int a = 0; a < oracle->count; a++) {
        for (int b = a + 1; b < oracle->count; b++) {
            if (!oracle->before[a][b] && (conflict(oracle, a, b, &first) || conflict(oracle, a, b, &last))) {
                return true;
            }
        }
    }
    return false;
}

// Deliberately written without the product's clocks: predecessors by backward search, closure by Floyd and Warshall.

#include "tests/property/sim/memory/oracle.h"

#include "sim/step/slots.h"

#include <stdlib.h>
#include <string.h>

static bool records(const Oracle *oracle, int index, int32_t event, int slot) {
    const StepProgram *program = oracle->program;
    const StepInstance *at = &oracle->instances[index];
    const Task *task = &program->tasks[at->task];
    for (int i = 0; i < task->record_count; i++) {
        const EventRef *ref = &program->event_refs[task->first_record + i];
        if (ref->event == event &&
            step_slot(&program->buffers[program->events[event].buffer], ref->index, at) == slot) {
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
        const int slot = step_slot(&program->buffers[program->events[ref->event].buffer], ref->index, at);
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
        const bool *behind = oracle->before[k];
        for (int i = 0; i < k; i++) {
            bool *before = oracle->before[i];
            const int end = before[k] ? oracle->count : 0;
            for (int j = k + 1; j < end; j++) {
                before[j] |= behind[j];
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
            const int64_t p = step_ref_offset(program, &x->ref, &oracle->instances[a], at);
            const int64_t q = step_ref_offset(program, &y->ref, &oracle->instances[b], at);
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

enum { SLOTS_MOST = 1 << 12 };

typedef struct Extent {
    int32_t buffer, slot;  // slot: numbered over all buffers
    Access access;
    int64_t begin, end;
} Extent;

static Extent extent_of(const Oracle *oracle, int index, int operand, const MemoryPlan *plan) {
    const StepInstance *at = &oracle->instances[index];
    const Operand *used = task_operand(oracle->program, &oracle->program->tasks[at->task], operand);
    const MeshCoordinates first = {0};
    const int64_t begin = memory_ref_offset(plan, oracle->program, &used->ref, at, &first);
    const int32_t slot = step_slot(&oracle->program->buffers[used->ref.buffer], used->ref.index, at);
    return (Extent){used->ref.buffer, used->ref.buffer * SLOTS_MOST + slot, used->access, begin,
                    begin + used->ref.bytes};
}

static int operands_of(const Oracle *oracle, int index) {
    return oracle->program->tasks[oracle->instances[index].task].operand_count;
}

// Two accesses that must not meet, or not unordered.
static bool clash(const Oracle *oracle, int a, int b, const MemoryPlan *plan) {
    for (int i = 0; i < operands_of(oracle, a); i++) {
        for (int j = 0; j < operands_of(oracle, b); j++) {
            const Extent x = extent_of(oracle, a, i, plan);
            const Extent y = extent_of(oracle, b, j, plan);
            const bool same_task = a == b && x.buffer == y.buffer;
            if (!same_task && (x.access | y.access) != ACCESS_READ && x.begin < y.end && y.begin < x.end) {
                return true;
            }
        }
    }
    return false;
}

// Runs the program in issue order over an arena that remembers through which slot each 256 bytes were last written.
static bool content_lost(const Oracle *oracle, const MemoryPlan *plan, int32_t *owner) {
    for (int index = 0; index < oracle->count; index++) {
        for (int pass = 0; pass < 2; pass++) {
            for (int i = 0; i < operands_of(oracle, index); i++) {
                const Extent extent = extent_of(oracle, index, i, plan);
                const bool wanted = pass == 0 ? extent.access != ACCESS_WRITE : extent.access != ACCESS_READ;
                for (int64_t at = extent.begin; wanted && at < extent.end; at += STEP_ALIGN_BYTES) {
                    if (pass == 0 && owner[at / STEP_ALIGN_BYTES] != extent.slot) {
                        return true;
                    }
                    owner[at / STEP_ALIGN_BYTES] = extent.slot;
                }
            }
        }
    }
    return false;
}

bool oracle_finds_fault(const Oracle *oracle, const MemoryPlan *plan) {
    for (int a = 0; a < oracle->count; a++) {
        for (int b = a; b < oracle->count; b++) {
            if (!oracle->before[a][b] && clash(oracle, a, b, plan)) {
                return true;
            }
        }
    }
    int32_t *owner = malloc((size_t)(plan->arena_bytes / STEP_ALIGN_BYTES) * sizeof *owner);
    memset(owner, 0xff, (size_t)(plan->arena_bytes / STEP_ALIGN_BYTES) * sizeof *owner);
    const bool lost = content_lost(oracle, plan, owner);
    free(owner);
    return lost;
}

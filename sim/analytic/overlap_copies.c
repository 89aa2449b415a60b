// What layers save on its way to the host's memory and back, on a lane of its own. Of N first layers of L the tensors
// of layer i leave before those of layer i + K, K = L - N, are written into their slots; backward is the same from the
// other end. So a pass takes as long as its layers, or as what it copies with the wait for the first and the work after
// the last one; with one slot a layer waits for the copies of the one before, in turns. Their host, which issues them
// between the layers' kernels, may be what a pass waits for.

#include <math.h>
#include <stdlib.h>

#include "sim/analytic/overlap_clocks.h"

bool overlap_is_host_copy(const Task *task) {
    return task->lane == LANE_HOST && task->kind == TASK_COPY;
}

// Of the accelerator's memory.
static int32_t copied_buffer(const StepProgram *program, const Task *task) {
    for (int i = 0; i < task->operand_count; i++) {
        const int32_t buffer = task_operand(program, task, i)->ref.buffer;
        if (!program->buffers[buffer].host) {
            return buffer;
        }
    }
    return -1;
}

// In forward a slot is taken by what writes it, and copied once that is all there.
static bool uses(const StepProgram *program, const Task *task, int32_t buffer, int pass) {
    for (int i = 0; i < task->operand_count; i++) {
        const Operand *operand = task_operand(program, task, i);
        if (operand->ref.buffer == buffer && (pass == LAYERS_BACKWARD || (operand->access & ACCESS_WRITE))) {
            return true;
        }
    }
    return false;
}

// In use from the first task that uses it to the last one.
static void place_copy(const StepProgram *program, const TaskCost *costs, const Segment *tasks, int32_t buffer,
                       int pass, HostCopy *copy) {
    double passed_s = 0, begins_s = -1, ends_s = 0;
    for (int32_t t = tasks->first_task; t < tasks->first_task + tasks->task_count; t++) {
        const Task *task = &program->tasks[t];
        if (overlap_is_host_copy(task) || shard_kind(program, task) != SHARD_KINDS) {
            continue;
        }
        const bool used = uses(program, task, buffer, pass);
        begins_s = used && begins_s < 0 ? passed_s : begins_s;
        passed_s += costs[t].seconds;
        ends_s = used ? passed_s : ends_s;
    }
    copy->begins = fmax(0, begins_s) / passed_s;
    copy->ends = ends_s / passed_s;
}

void overlap_add_copies(Overlap *overlap, int pass, const StepProgram *program, const TaskCost *costs, int32_t loop,
                        Arena *arena) {
    const Segment *tasks = &program->segments[loop + 1];
    LayerCopies *layer = &overlap->copied[pass];
    size_t capacity = 0;
    *layer = (LayerCopies){0};
    for (int32_t t = tasks->first_task; t < tasks->first_task + tasks->task_count; t++) {
        const Task *task = &program->tasks[t];
        if (overlap_is_host_copy(task)) {
            HostCopy copy = {.before_s = layer->seconds, .seconds = costs[t].seconds};
            place_copy(program, costs, tasks, copied_buffer(program, task), pass, &copy);
            ARENA_PUSH(arena, layer->copies, layer->count, &capacity) = copy;
            layer->seconds += copy.seconds;
            layer->host_s += costs[t].host_s;
            layer->moved = program->layers - abs(task->layer_guard);
        }
    }
}

// From a layer to the one that has its slots: from what it copies until that may write what is copied next or later.
static double turn_s(const LayerCopies *layer, double layer_s) {
    double turn = 0;
    for (int32_t i = 0; i < layer->count; i++) {
        const HostCopy *from = &layer->copies[i];
        for (int32_t k = i; k < layer->count; k++) {
            const HostCopy *to = &layer->copies[k];
            turn = fmax(turn, (from->ends - to->begins) * layer_s + to->before_s + to->seconds - from->before_s);
        }
    }
    return turn;
}

// The longest of the ways through a pass: its layers; with a turn, or where there is one slot with all; along the
// copies from a first layer's to a last one's.
static double pass_s(const LayerCopies *layer, int32_t layers, double layer_s) {
    const int32_t slots = layers - layer->moved, turns = slots == 1 ? layer->moved : 1;
    double longest_s = fmax(layers * layer_s, (layers - turns * slots) * layer_s + turns * turn_s(layer, layer_s));
    if (layer->moved > 1) {
        double wait_s = 0, rest_s = 0;
        for (int32_t i = 0; i < layer->count; i++) {
            const HostCopy *copy = &layer->copies[i];
            wait_s = fmax(wait_s, copy->ends * layer_s - copy->before_s);
            rest_s = fmax(rest_s, (1 - copy->begins) * layer_s - (layer->seconds - copy->before_s - copy->seconds));
        }
        longest_s = fmax(longest_s, wait_s + layer->moved * layer->seconds + rest_s);
    }
    return longest_s;
}

bool overlap_wait_copies(const Overlap *overlap, int pass, double from_s, Clocks *clocks) {
    const LayerCopies *layer = &overlap->copied[pass];
    if (layer->count == 0) {
        return false;
    }
    clocks->host += layer->moved * layer->host_s;
    const double computed_s = clocks->compute - from_s;
    const double copied_s = pass_s(layer, overlap->layers, computed_s / overlap->layers) - computed_s;
    const double late_s = fmax(copied_s, clocks->host - clocks->compute);
    if (late_s <= 0) {
        return false;
    }
    clocks->compute += late_s;
    clocks->block_end += late_s;
    for (int unit = 0; unit < UNIT_COUNT; unit++) {
        clocks->released[unit] += late_s;
        clocks->gradient[unit] += late_s;
        clocks->reduce_input[unit] += late_s;
    }
    return true;
}

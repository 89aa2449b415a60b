// Offsets come from the memory plan.

#include "exec/device/placement.h"

Status placement_open(Device *device, const DeviceSetup *setup, Arena *arena, Placement *placement, Error *error) {
    *placement = (Placement){.program = setup->program,
                             .memory = setup->memory,
                             .at = setup->at,
                             .device = device,
                             .numbers = &setup->numbers,
                             .sequence = ARENA_ARRAY(arena, int32_t, setup->program->plan.seq + 1)};
    return data_open(&setup->data, &placement->data, error);
}

void placement_close(Placement *placement) {
    data_close(&placement->data);
}

char *placement_at(Placement *placement, const BufferRef *ref, const StepInstance *instance) {
    const int64_t offset = memory_ref_offset(placement->memory, placement->program, ref, instance, &placement->at);
    const long long end = offset + ref->bytes;
    long long peak = atomic_load_explicit(&placement->peak_bytes, memory_order_relaxed);
    while (end > peak && !atomic_compare_exchange_weak(&placement->peak_bytes, &peak, end)) {
    }
    return placement->arena + offset;
}

char *placement_slot(const Placement *placement, int32_t buffer, int slot) {
    int32_t *const *place = placement->memory->place;
    // Callers fill slots that outlive the step, and all of them in one piece: those are never given places.
    ASSERT(!place || !place[buffer]);
    return placement->arena + placement->memory->offset_bytes[buffer] +
           slot * placement->program->buffers[buffer].slot_bytes;
}

int64_t placement_peak_bytes(const Placement *placement) {
    const int64_t peak = atomic_load(&placement->peak_bytes);
    return step_slot_bytes(peak);
}

TaskCall placement_call(Placement *placement, const StepInstance *instance) {
    const StepProgram *program = placement->program;
    const Task *task = &program->tasks[instance->task];
    TaskCall call = {.device = placement->device,
                     .program = program,
                     .task = task,
                     .instance = instance,
                     .at = &placement->at,
                     .numbers = placement->numbers,
                     .step = placement->step,
                     .data = &placement->data,
                     .sequence = placement->sequence,
                     .positions = placement->positions};
    for (int i = 0; i < task->operand_count; i++) {
        const BufferRef *ref = &task_operand(program, task, i)->ref;
        call.operand[i] = ref->buffer < 0 ? NULL : placement_at(placement, ref, instance);
    }
    return call;
}

const BufferRef *transfer_to(const StepProgram *program, const Task *task) {
    return &task_operand(program, task, task_is_message(task) ? AT_MESSAGE : collective_to(task->kind))->ref;
}

void placement_transfer(Placement *placement, const StepInstance *instance, DeviceTransfer *transfer) {
    const StepProgram *program = placement->program;
    const Task *task = &program->tasks[instance->task];
    *transfer =
        (DeviceTransfer){.in = placement_at(placement, &task_operand(program, task, AT_COLLECTIVE_FROM)->ref, instance),
                         .out = placement_at(placement, transfer_to(program, task), instance)};
    if (task->kind == TASK_ALL_TO_ALL && task->operand_count > AT_EXCHANGE_CAME) {
        const BufferRef *came = &task_operand(program, task, AT_EXCHANGE_CAME)->ref,
                        *leave = &task_operand(program, task, AT_EXCHANGE_LEAVES)->ref;
        transfer->came = (const int32_t *)(void *)placement_at(placement, came, instance);
        transfer->leave = (const int32_t *)(void *)placement_at(placement, leave, instance);
    }
}

void placement_positions(const Placement *placement, int32_t *positions) {
    const SequenceChunks chunks = step_token_chunks(placement->program, &placement->at);
    for (int s = 0; s < placement->program->plan.micro_batch; s++) {
        for (int c = 0; c < chunks.count; c++) {
            for (int i = 0; i < chunks.length; i++) {
                *positions++ = chunks.start[c] + i;
            }
        }
    }
}

// One buffer of a unit: its shard of the flat parameter if a slot is shard-sized, else all of it.
static void take_buffer(const Placement *placement, const Unit *unit, int32_t buffer, PlacementTake *take,
                        void *context) {
    const StepProgram *program = placement->program;
    if (buffer < 0 || !program->buffers[buffer].persistent) {
        return;
    }
    int64_t first = 0, shard = 0;
    const int64_t elements = program->buffers[buffer].slot_bytes / dtype_bytes(program->buffers[buffer].dtype);
    if (elements < unit->padded_elements) {
        step_shard_range(program, unit, &placement->at, &first, &shard);
    }
    const int ep_index = mesh_group_index(&program->plan.mesh, AXIS_BIT(AXIS_EP), &placement->at);
    for (int32_t i = 0; i < unit->instances; i++) {
        take(context, buffer, &(InitialStretch){unit, i, placement->at.at[AXIS_TP], ep_index, first, elements});
    }
}

void placement_parameters(const Placement *placement, PlacementTake *take, void *context) {
    for (int32_t u = 0; u < placement->program->unit_count; u++) {
        const Unit *unit = &placement->program->units[u];
        take_buffer(placement, unit, unit->master, take, context);
        if (unit->working != unit->master) {
            take_buffer(placement, unit, unit->working, take, context);
        }
    }
}

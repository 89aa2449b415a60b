// Event slots laid out consecutively, and instances that touch the same ones.

#include "sim/step/slots.h"

static bool same_slot(const Buffer *buffer, SlotIndex index, const StepInstance *a, const StepInstance *b) {
    return index.micro_scale == 0 || step_slot(buffer, index, a) == step_slot(buffer, index, b);
}

bool step_instances_alike(const StepProgram *program, const StepInstance *a, const StepInstance *b) {
    const Task *task = &program->tasks[a->task];
    bool alike = a->task == b->task && a->layer == b->layer;
    for (int32_t i = 0; alike && a->micro_step != b->micro_step && i < task->operand_count; i++) {
        const BufferRef *ref = &task_operand(program, task, i)->ref;
        alike = ref->buffer < 0 || same_slot(&program->buffers[ref->buffer], ref->index, a, b);
    }
    const int32_t refs[2][2] = {{task->first_wait, task->wait_count}, {task->first_record, task->record_count}};
    for (int which = 0; which < 2; which++) {
        for (int32_t i = 0; alike && a->micro_step != b->micro_step && i < refs[which][1]; i++) {
            const EventRef *ref = &program->event_refs[refs[which][0] + i];
            alike = same_slot(&program->buffers[program->events[ref->event].buffer], ref->index, a, b);
        }
    }
    return alike;
}

int32_t *step_event_slots(const StepProgram *program, Arena *arena) {
    int32_t *first = ARENA_ARRAY(arena, int32_t, program->event_count + 1);
    for (int32_t event = 0; event < program->event_count; event++) {
        first[event + 1] = first[event] + program->buffers[program->events[event].buffer].slots;
    }
    return first;
}

int32_t step_event_slot(const StepProgram *program, const int32_t *first, const EventRef *ref, const StepInstance *at) {
    return first[ref->event] + step_slot(&program->buffers[program->events[ref->event].buffer], ref->index, at);
}

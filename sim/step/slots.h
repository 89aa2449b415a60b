// What a reference to a slot of a buffer, or of an event, means in a task instance.

#pragma once

#include "sim/step/step.h"

static inline bool slot_index_equal(SlotIndex a, SlotIndex b) {
    return a.layer_scale == b.layer_scale && a.layer_offset == b.layer_offset && a.micro_scale == b.micro_scale &&
           a.micro_offset == b.micro_offset;
}

static inline int32_t slot_modulo(int32_t index, int32_t slots) {
    const int32_t rest = index % slots;
    return rest < 0 ? rest + slots : rest;
}

// Slots of one micro-step: all of them where the micro-steps share.
static inline int32_t buffer_layer_slots(const Buffer *buffer) {
    return buffer->micro_steps > 0 ? buffer->slots / buffer->micro_steps : buffer->slots;
}

// The slot that an index means in this instance.
static inline int32_t step_slot(const Buffer *buffer, SlotIndex index, const StepInstance *at) {
    const int32_t layer = index.layer_scale * at->layer + index.layer_offset;
    if (index.micro_scale == 0) {
        return slot_modulo(layer, buffer->slots);
    }
    const int32_t layers = buffer_layer_slots(buffer);
    return layers * slot_modulo(at->micro_step + index.micro_offset, buffer->micro_steps) + slot_modulo(layer, layers);
}

// Slots of all events side by side: first[event] is where an event's begin, first[event_count] how many there are.
int32_t *step_event_slots(const StepProgram *program, Arena *arena);
// The one of these that the reference means.
int32_t step_event_slot(const StepProgram *program, const int32_t *first, const EventRef *ref, const StepInstance *at);

// Do two instances of a task in one layer touch the same slots and events, so that what was captured of the one can be
// run for the other?
bool step_instances_alike(const StepProgram *program, const StepInstance *a, const StepInstance *b);

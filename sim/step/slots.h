// How a reference to a buffer slot, or to an event slot, resolves in a task instance.

#pragma once

#include "sim/step/step.h"

static inline bool slot_index_equal(SlotIndex a, SlotIndex b) {
    return a.layer_scale == b.layer_scale && a.layer_offset == b.layer_offset && a.micro_scale == b.micro_scale &&
           a.micro_offset == b.micro_offset;
}

static inline int32_t slot_modulo(int32_t index, int32_t slots) {
    if ((uint32_t)index < (uint32_t)slots) {  // mostly: a division is slow
        return index;
    }
    const int32_t rest = index % slots;
    return rest < 0 ? rest + slots : rest;
}

// Slots per micro-step; all slots where micro-steps share them.
static inline int32_t buffer_layer_slots(const Buffer *buffer) {
    return buffer->micro_steps > 0 ? buffer->slots / buffer->micro_steps : buffer->slots;
}

// The most slots of a buffer that take turns at places of memory (sim/memory/slot_places.h).
enum { PLACED_SLOTS = 256 };

// The slot that an index resolves to in this instance.
static inline int32_t step_slot(const Buffer *buffer, SlotIndex index, const StepInstance *at) {
    const int32_t layer = index.layer_scale * at->layer + index.layer_offset;
    if (index.micro_scale == 0) {
        return slot_modulo(layer, buffer->slots);
    }
    const int32_t layers = buffer_layer_slots(buffer);
    return layers * slot_modulo(at->micro_step + index.micro_offset, buffer->micro_steps) + slot_modulo(layer, layers);
}

// Slots of all events, concatenated: first[event] is where an event's begin, first[event_count] the total.
int32_t *step_event_slots(const StepProgram *program, Arena *arena);
// The one of these that the reference resolves to.
int32_t step_event_slot(const StepProgram *program, const int32_t *first, const EventRef *ref, const StepInstance *at);

// Whether two instances of a task in one layer touch the same slots and events, so that what was captured for one can
// be replayed for the other.
bool step_instances_alike(const StepProgram *program, const StepInstance *a, const StepInstance *b);

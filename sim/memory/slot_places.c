// Slots in the order in which their first uses begin, each at the first place whose slots it does not meet: where every
// slot is used once that is the fewest places there can be, the most slots alive at a time.
// Not modelled: buffers with more than PLACED_SLOTS slots keep them; comparing all pairs of them would take long.

#include "sim/memory/slot_places.h"

#include "sim/step/slots.h"

typedef struct Finder {
    const PartSpans *spans;
    int32_t first_part, slots;
    int32_t *place;     // of each slot so far, -1 = none
    int32_t *in_order;  // slots by their first use
} Finder;

// Buffers of which a slot is never used: where layers of several chunks keep something, the others have numbers too.
static const bool *find_gaps(const ProgramCut *cut, const Lifetimes *lifetimes, Arena *arena) {
    const StepProgram *program = &cut->program;
    bool *gaps = ARENA_ARRAY(arena, bool, program->buffer_count);
    bool **used = ARENA_ARRAY(arena, bool *, program->buffer_count);
    for (int32_t i = 0; i < lifetimes->count; i++) {
        const SlotLifetime *row = &lifetimes->rows[i];
        if (!used[row->buffer]) {
            used[row->buffer] = ARENA_ARRAY(arena, bool, program->buffers[row->buffer].slots);
        }
        used[row->buffer][row->slot] = true;
    }
    for (int32_t b = 0; b < program->buffer_count; b++) {
        for (int32_t slot = 0; used[b] && slot < program->buffers[b].slots; slot++) {
            gaps[b] |= !used[b][slot];
        }
    }
    return gaps;
}

static bool is_placed(const ProgramCut *cut, const bool *gaps, int32_t buffer) {
    const Buffer *of = &cut->program.buffers[buffer];
    return !of->persistent && (of->micro_steps > 1 || gaps[buffer]) && of->slots <= PLACED_SLOTS;
}

// Each slot of those buffers is a part.
static Parts parts_of_placed(const ProgramCut *cut, const Lifetimes *lifetimes, Arena *arena) {
    const StepProgram *program = &cut->program;
    const bool *gaps = find_gaps(cut, lifetimes, arena);
    Parts parts = {.first = ARENA_ARRAY(arena, int32_t, program->buffer_count + 1)};
    for (int32_t b = 0; b < program->buffer_count; b++) {
        parts.count += is_placed(cut, gaps, b) ? program->buffers[b].slots : 1;
        parts.first[b + 1] = parts.count;
    }
    return parts;
}

static int32_t birth_of(const Finder *finder, int32_t slot) {
    const int32_t part = finder->first_part + slot, row = finder->spans->begin[part];
    return row < finder->spans->begin[part + 1] ? finder->spans->spans[row].first : INT32_MAX;
}

static void order_slots(Finder *finder) {
    for (int32_t slot = 0; slot < finder->slots; slot++) {
        int32_t at = slot;
        for (; at > 0 && birth_of(finder, finder->in_order[at - 1]) > birth_of(finder, slot); at--) {
            finder->in_order[at] = finder->in_order[at - 1];
        }
        finder->in_order[at] = slot;
    }
}

static bool meets(const Finder *finder, int32_t slot, int32_t place, int32_t placed) {
    for (int32_t i = 0; i < placed; i++) {
        const int32_t other = finder->in_order[i];
        if (finder->place[other] == place &&
            !part_spans_disjoint(finder->spans, finder->first_part + slot, finder->first_part + other)) {
            return true;
        }
    }
    return false;
}

static int32_t place_slots(Finder *finder) {
    int32_t count = 0;
    order_slots(finder);
    for (int32_t i = 0; i < finder->slots; i++) {
        const int32_t slot = finder->in_order[i];
        int32_t place = 0;
        while (place < count && meets(finder, slot, place, i)) {
            place++;
        }
        finder->place[slot] = place;
        count = place < count ? count : place + 1;
    }
    return count;
}

SlotPlaces slot_places_find(const ProgramCut *cut, const HappensBefore *order, const Lifetimes *lifetimes, Arena *arena,
                            Arena *scratch) {
    const StepProgram *program = &cut->program;
    SlotPlaces places = {.of = ARENA_ARRAY(arena, int32_t *, program->buffer_count),
                         .count = ARENA_ARRAY(arena, int32_t, program->buffer_count)};
    if (cut->removed_layers > 0) {
        return places;  // not all slots are there
    }
    const Parts parts = parts_of_placed(cut, lifetimes, scratch);
    if (parts.count == program->buffer_count) {
        return places;
    }
    PartSpans spans;
    part_spans_build(order, lifetimes, parts, scratch, &spans);
    for (int32_t b = 0; b < program->buffer_count; b++) {
        const int32_t slots = parts.first[b + 1] - parts.first[b];
        Finder finder = {.spans = &spans,
                         .first_part = parts.first[b],
                         .slots = slots,
                         .place = ARENA_ARRAY(arena, int32_t, slots),
                         .in_order = ARENA_ARRAY(scratch, int32_t, slots)};
        const int32_t count = slots > 1 ? place_slots(&finder) : slots;
        if (count < slots) {
            places.of[b] = finder.place;
            places.count[b] = count;
        }
    }
    return places;
}

StepProgram slot_places_placed(const StepProgram *program, const SlotPlaces *places, Arena *arena) {
    StepProgram placed = *program;
    placed.buffers = ARENA_ARRAY(arena, Buffer, program->buffer_count);
    for (int32_t b = 0; b < program->buffer_count; b++) {
        placed.buffers[b] = program->buffers[b];
        if (places->of[b]) {
            placed.buffers[b].slots = places->count[b];
            placed.buffers[b].micro_steps = 0;
        }
    }
    return placed;
}

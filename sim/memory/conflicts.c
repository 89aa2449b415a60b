// Two whole buffers first: if happens-before keeps their uses apart they never conflict. Otherwise slot by slot: slot i
// of a at offset_a + i * size_a and slot j of b at offset_b + j * size_b overlap when offset_b - offset_a lies strictly
// between i*size_a - (j+1)*size_b and (i+1)*size_a - j*size_b. So a gradient shard that appears while backward frees
// activations may lie where the activations of later layers were.
// Slots of the whole program are looked up in the cut one. Whether two layers' slots conflict depends on the layers'
// distance (up to 2*reach + 1, what lies further apart behaves alike) and on being near an end (reach + 1 layers): the
// class of the pair, with the micro-steps of slots that have one. A class is in conflict when any pair of it in the cut
// program is, or when the cut program has none.

#include "sim/memory/conflicts.h"

#include <string.h>

// Both ends' zones and a middle as wide as the farthest distance that counts: 2(r+1) + 2r + 2.
const CutOptions conflict_cut = {.reach_factor = 4, .base_layers = 4, .max_micro_steps = 2};

typedef struct PairFinder {
    const ConflictInput *input;
    Arena *arena;
    ConflictShape *shape;
    size_t capacity[2];      // of pairs and runs
    int32_t zone, distance;  // layers that count as near an end; distance beyond which pairs behave alike
    int32_t micro_steps;     // that have slots of their own in some buffer, at least 1
    bool *matrix;            // [slots_a][slots_b] of the cut program
    bool *classes;           // [micro_steps][micro_steps][zones][zones][distances]
    bool *known;
} PairFinder;

// One buffer of a pair.
typedef struct Side {
    const Buffer *buffer;  // of the whole program
    int32_t first_part, parts;
    int32_t micro_steps;  // that its parts are of, at least 1
    bool per_layer;       // its slots are more than its parts
} Side;

static Side side_of(const PairFinder *finder, int32_t buffer) {
    const ConflictInput *input = finder->input;
    const Parts *parts = &input->split->parts;
    const int32_t count = parts->first[buffer + 1] - parts->first[buffer];
    const int32_t micro_steps = input->program->buffers[buffer].micro_steps;
    return (Side){.buffer = &input->program->buffers[buffer],
                  .first_part = parts->first[buffer],
                  .parts = count,
                  .micro_steps = count > 1 && micro_steps > 0 ? micro_steps : 1,
                  .per_layer = input->cut->removed_layers > 0 && input->cut->per_layer[buffer]};
}

static void emit(PairFinder *finder, int32_t slot, int32_t first, int32_t last) {
    ConflictShape *shape = finder->shape;
    ARENA_PUSH(finder->arena, shape->runs, shape->run_count, &finder->capacity[1]) =
        (ConflictRun){.slot = slot, .first = first, .last = last};
}

// Fills the matrix of the cut program; returns how many slot pairs conflict.
static int32_t fill_matrix(PairFinder *finder, const Side *a, const Side *b) {
    int32_t conflicts = 0;
    for (int32_t i = 0; i < a->parts; i++) {
        for (int32_t j = 0; j < b->parts; j++) {
            const bool conflict = !part_spans_disjoint(finder->input->split, a->first_part + i, b->first_part + j);
            finder->matrix[i * b->parts + j] = conflict;
            conflicts += conflict;
        }
    }
    return conflicts;
}

// 0 .. zone-1 near the low end, zone in the middle, zone+1 .. 2*zone near the high end. Slots beyond layers count as
// high.
static int32_t zone_of(const PairFinder *finder, int32_t slot, int32_t slots) {
    if (slot < finder->zone) {
        return slot;
    }
    const int32_t from_end = slots - 1 - slot;
    return from_end < finder->zone ? 2 * finder->zone - from_end : finder->zone;
}

static int32_t clamp_distance(const PairFinder *finder, int32_t distance) {
    const int32_t most = finder->distance;
    return (distance > most ? most : distance < -most ? -most : distance) + most;
}

static size_t class_of(const PairFinder *finder, int32_t zone_a, int32_t zone_b, int32_t distance) {
    const size_t zones = (size_t)(2 * finder->zone + 1);
    const size_t distances = (size_t)(2 * finder->distance + 1);
    return ((size_t)zone_a * zones + (size_t)zone_b) * distances + (size_t)distance;
}

static size_t layer_classes(const PairFinder *finder) {
    return class_of(finder, 2 * finder->zone + 1, 0, 0);
}

static size_t class_count(const PairFinder *finder) {
    return (size_t)finder->micro_steps * (size_t)finder->micro_steps * layer_classes(finder);
}

// A slot of a side that is per layer, as layer and micro-step.
typedef struct SlotPlace {
    int32_t layer, layers, micro_step;
} SlotPlace;

static SlotPlace slot_place(const Side *side, int32_t slot, int32_t slots) {
    const int32_t layers = slots / side->micro_steps;
    return (SlotPlace){.layer = slot % layers, .layers = layers, .micro_step = slot / layers};
}

// The class of a pair of slots. All slots of a side that is not per layer count as one.
static size_t pair_class(const PairFinder *finder, const Side *a, const Side *b, const int32_t slot[2],
                         const int32_t slots[2]) {
    SlotPlace place_a = {0}, place_b = {0};
    int32_t zone_a = 0, zone_b = 0;
    if (a->per_layer) {
        place_a = slot_place(a, slot[0], slots[0]);
        zone_a = zone_of(finder, place_a.layer, place_a.layers);
    }
    if (b->per_layer) {
        place_b = slot_place(b, slot[1], slots[1]);
        zone_b = zone_of(finder, place_b.layer, place_b.layers);
    }
    const bool both = a->per_layer && b->per_layer;
    const size_t micro_class = (size_t)(place_a.micro_step * finder->micro_steps + place_b.micro_step);
    return micro_class * layer_classes(finder) +
           class_of(finder, zone_a, zone_b, both ? clamp_distance(finder, place_a.layer - place_b.layer) : 0);
}

static void fill_classes(PairFinder *finder, const Side *a, const Side *b) {
    const size_t classes = class_count(finder);
    memset(finder->classes, 0, classes * sizeof(bool));
    memset(finder->known, 0, classes * sizeof(bool));
    for (int32_t i = 0; i < a->parts; i++) {
        for (int32_t j = 0; j < b->parts; j++) {
            const size_t class = pair_class(finder, a, b, (int32_t[]){i, j}, (int32_t[]){a->parts, b->parts});
            finder->known[class] = true;
            finder->classes[class] |= finder->matrix[i * b->parts + j];
        }
    }
}

static bool slots_conflict(const PairFinder *finder, const Side *a, const Side *b, int32_t i, int32_t j) {
    if (!a->per_layer && !b->per_layer) {
        return finder->matrix[i * b->parts + j];
    }
    const size_t class = pair_class(finder, a, b, (int32_t[]){i, j}, (int32_t[]){a->buffer->slots, b->buffer->slots});
    return finder->classes[class] || !finder->known[class];
}

// For each slot of a, the runs of slots of b that conflict with it.
static void emit_slot_pairs(PairFinder *finder, const Side *a, const Side *b) {
    const int32_t slots_a = a->parts > 1 ? a->buffer->slots : 1;
    const int32_t slots_b = b->parts > 1 ? b->buffer->slots : 1;
    for (int32_t i = 0; i < slots_a; i++) {
        for (int32_t j = 0; j < slots_b; j++) {
            if (!slots_conflict(finder, a, b, i, j)) {
                continue;
            }
            int32_t last = j;
            while (last + 1 < slots_b && slots_conflict(finder, a, b, i, last + 1)) {
                last++;
            }
            emit(finder, i, j, last);
            j = last;
        }
    }
}

static void find_pair(PairFinder *finder, int32_t i, int32_t j) {
    ConflictShape *shape = finder->shape;
    const int32_t buffer_a = finder->input->buffers[i], buffer_b = finder->input->buffers[j];
    const Parts *whole = &finder->input->whole->parts;
    if (part_spans_disjoint(finder->input->whole, whole->first[buffer_a], whole->first[buffer_b])) {
        return;
    }
    const Side a = side_of(finder, buffer_a);
    const Side b = side_of(finder, buffer_b);
    const bool single = a.parts == 1 && b.parts == 1;
    const bool all = single || fill_matrix(finder, &a, &b) == a.parts * b.parts;
    ConflictPair pair = {.a = i, .b = j, .begin = (int32_t)shape->run_count};
    if (all) {
        emit(finder, 0, 0, 0);
    } else {
        pair.split_a = a.parts > 1;
        pair.split_b = b.parts > 1;
        fill_classes(finder, &a, &b);
        emit_slot_pairs(finder, &a, &b);
    }
    pair.end = (int32_t)shape->run_count;
    if (pair.end > pair.begin) {
        ARENA_PUSH(finder->arena, shape->pairs, shape->pair_count, &finder->capacity[0]) = pair;
    }
}

void conflicts_find(const ConflictInput *input, Arena *arena, ConflictShape *shape) {
    *shape = (ConflictShape){0};
    PairFinder finder = {.input = input, .arena = arena, .shape = shape};
    finder.zone = input->cut->reach + 1;
    finder.distance = 2 * input->cut->reach + 1;
    finder.matrix = ARENA_ARRAY(arena, bool, MAX_SPLIT_SLOTS *MAX_SPLIT_SLOTS);
    finder.micro_steps = 1;
    for (int32_t i = 0; i < input->count; i++) {
        const int32_t micro_steps = input->program->buffers[input->buffers[i]].micro_steps;
        finder.micro_steps = micro_steps > finder.micro_steps ? micro_steps : finder.micro_steps;
    }
    const size_t classes = class_count(&finder);
    finder.classes = ARENA_ARRAY(arena, bool, classes);
    finder.known = ARENA_ARRAY(arena, bool, classes);
    for (int32_t i = 0; i < input->count; i++) {
        for (int32_t j = 0; j < i; j++) {
            find_pair(&finder, i, j);
        }
    }
}

// Sorts the rows of one pair and joins those that overlap.
static void join_rows(ForbiddenOffsets *rows, PairConflict *pair) {
    for (int32_t i = pair->begin + 1; i < pair->end; i++) {
        const ForbiddenOffsets row = rows[i];
        int32_t at = i;
        for (; at > pair->begin && rows[at - 1].low > row.low; at--) {
            rows[at] = rows[at - 1];
        }
        rows[at] = row;
    }
    int32_t kept = pair->begin;
    for (int32_t i = pair->begin; i < pair->end; i++) {
        if (kept > pair->begin && rows[i].low < rows[kept - 1].high) {
            rows[kept - 1].high = rows[i].high > rows[kept - 1].high ? rows[i].high : rows[kept - 1].high;
        } else {
            rows[kept++] = rows[i];
        }
    }
    pair->end = kept;
}

// Slots of a part, or all of them.
static int64_t step_of(const Buffer *buffer, bool split) {
    return split ? buffer->slot_bytes : buffer->slots * buffer->slot_bytes;
}

static PairConflict place_pair(const ConflictShape *shape, const ConflictPair *pair, const Buffer *a, const Buffer *b,
                               Conflicts *conflicts) {
    const int64_t step_a = step_of(a, pair->split_a), step_b = step_of(b, pair->split_b);
    PairConflict rows = {.begin = (int32_t)conflicts->forbidden_count};
    for (int32_t i = pair->begin; i < pair->end; i++) {
        const ConflictRun *run = &shape->runs[i];
        conflicts->forbidden[conflicts->forbidden_count++] =
            (ForbiddenOffsets){.low = run->slot * step_a - (run->last + 1) * step_b,
                               .high = (run->slot + 1) * step_a - run->first * step_b};
    }
    rows.end = (int32_t)conflicts->forbidden_count;
    join_rows(conflicts->forbidden, &rows);
    conflicts->forbidden_count = (size_t)rows.end;
    return rows;
}

// (b, a) forbids the mirrored offsets.
static PairConflict mirror_pair(PairConflict pair, Conflicts *conflicts) {
    const int32_t begin = (int32_t)conflicts->forbidden_count;
    for (int32_t i = pair.end - 1; i >= pair.begin; i--) {
        const ForbiddenOffsets row = conflicts->forbidden[i];
        conflicts->forbidden[conflicts->forbidden_count++] = (ForbiddenOffsets){.low = -row.high, .high = -row.low};
    }
    return (PairConflict){.begin = begin, .end = (int32_t)conflicts->forbidden_count};
}

void conflicts_place(const ConflictShape *shape, const StepProgram *program, const int32_t *buffers, int32_t count,
                     Arena *arena, Conflicts *conflicts) {
    *conflicts = (Conflicts){.pairs = ARENA_ARRAY(arena, PairConflict, (size_t)count * (size_t)count),
                             .forbidden = ARENA_UNCLEARED(arena, ForbiddenOffsets, 2 * shape->run_count)};
    for (size_t i = 0; i < shape->pair_count; i++) {
        const ConflictPair *pair = &shape->pairs[i];
        const PairConflict rows = place_pair(shape, pair, &program->buffers[buffers[pair->a]],
                                             &program->buffers[buffers[pair->b]], conflicts);
        conflicts->pairs[(size_t)pair->a * (size_t)count + (size_t)pair->b] = rows;
        conflicts->pairs[(size_t)pair->b * (size_t)count + (size_t)pair->a] = mirror_pair(rows, conflicts);
    }
}

// See the header.

#include "sim/memory/structure.h"

#include <string.h>

#include "sim/base/hash.h"

static void add_word(Structure *structure, uint64_t word) {
    structure->words[structure->count++] = word;
}

static uint64_t pair_of(int32_t high, int32_t low) {
    return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

enum { INDEX_BITS = 34 };

// Scales are 0 or 1.
static uint64_t index_of(SlotIndex index) {
    return (uint64_t)index.micro_scale << 33 | (uint64_t)(uint16_t)index.micro_offset << 17 |
           (uint64_t)index.layer_scale << 16 | (uint16_t)index.layer_offset;
}

static bool keeps_micro_steps_apart(const StepProgram *program) {
    bool apart = false;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        apart |= program->buffers[i].micro_steps > 0;
    }
    return apart;
}

// Where all micro-steps use the same slots, which one it is and how many more than the cut leaves do not matter.
static void add_loops(Structure *structure, const StepProgram *program, const CutOptions *options) {
    const bool apart = keeps_micro_steps_apart(program);
    int32_t left_out = 0;  // micro-steps of steady loops
    for (int32_t i = 0; i < program->segment_count; i++) {
        const Segment *segment = &program->segments[i];
        int32_t first = segment->first, count = segment->count;
        if (segment->kind == SEGMENT_MICRO_STEPS && apart) {
            first -= left_out;
            count = cut_steady_loop(segment, options);
            left_out += (segment->count - count) * segment->step;
        } else if (segment->kind == SEGMENT_MICRO_STEPS) {
            first = 0;
            count = count < options->max_micro_steps ? count : options->max_micro_steps;
        }
        add_word(structure, pair_of((int32_t)segment->kind, segment->end));
        add_word(structure, pair_of(segment->first_task, segment->task_count));
        add_word(structure, pair_of(first, segment->step));
        add_word(structure, pair_of(count, segment->micro_offset));
    }
    for (int32_t i = 0; i < program->task_count; i++) {
        add_word(structure, pair_of(program->tasks[i].layer_guard, program->tasks[i].operand_count));
    }
}

static void add_references(Structure *structure, const StepProgram *program, const OperandCells *cells) {
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        add_word(structure, pair_of(buffer->slots, 4 * buffer->micro_steps + 2 * buffer->held + buffer->persistent));
    }
    for (int32_t i = 0; i < program->operand_count; i++) {
        const BufferRef *ref = &program->operands[i].ref;
        add_word(structure, (uint64_t)(uint32_t)ref->buffer << (INDEX_BITS + 2) |
                                (uint64_t)program->operands[i].access << INDEX_BITS | index_of(ref->index));
        add_word(structure, cells[i].touched);
        add_word(structure, cells[i].covered);
    }
    for (int32_t i = 0; i < program->event_ref_count; i++) {  // a loop is cut by them, too
        const EventRef *ref = &program->event_refs[i];
        add_word(structure,
                 (uint64_t)(uint32_t)program->events[ref->event].buffer << INDEX_BITS | index_of(ref->index));
    }
}

// What happens-before and the planner look at beyond that.
static void add_order(Structure *structure, const StepProgram *program) {
    add_word(structure, pair_of(program->loss_buffer, program->norm_buffer));
    for (int32_t i = 0; i < program->lane_count; i++) {
        add_word(structure, pair_of(program->lane_count, program->lanes[i].communicator));
    }
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        add_word(structure, pair_of(2 * task->lane + task_is_collective(task), (int32_t)task->phase));
        add_word(structure, pair_of(task->first_wait, task->wait_count));
        add_word(structure, pair_of(task->first_record, task->record_count));
    }
    for (int32_t i = 0; i < program->event_ref_count; i++) {
        const int32_t event = program->event_refs[i].event;
        add_word(structure, pair_of(event, program->events[event].lane));
    }
}

Structure structure_of(const StepProgram *program, const CutOptions *options, const OperandCells *cells, bool ordered,
                       Arena *arena) {
    enum { EDGES = 5, PER_SEGMENT = 4, PER_OPERAND = 3, PER_TASK = 4, PER_EVENT = 2 };
    const size_t most = EDGES + (size_t)program->segment_count * PER_SEGMENT + (size_t)program->task_count * PER_TASK +
                        (size_t)(program->buffer_count + program->lane_count) +
                        (size_t)program->operand_count * PER_OPERAND + (size_t)program->event_ref_count * PER_EVENT;
    Structure structure = {.words = ARENA_UNCLEARED(arena, uint64_t, most)};
    add_word(&structure, pair_of(options->reach_factor, options->base_layers));
    add_word(&structure, pair_of(2 * options->max_micro_steps + options->any_slots, program->layers));
    add_word(&structure, pair_of(program->segment_count, program->task_count));
    add_word(&structure, pair_of(program->buffer_count, program->operand_count));
    add_loops(&structure, program, options);
    add_references(&structure, program, cells);
    if (ordered) {
        add_order(&structure, program);
    }
    Hash hash = hash_begin();
    for (size_t i = 0; i < structure.count; i++) {
        hash_int(&hash, (int64_t)structure.words[i]);
    }
    structure.hash = hash_end(&hash);
    return structure;
}

// ---------------------------------------------------------------------------------------------- by structure

typedef struct KnownStructure {
    Structure structure;
    const void *found;
} KnownStructure;

static bool is_equal(const Structure *a, const Structure *b) {
    return a->hash == b->hash && a->count == b->count && memcmp(a->words, b->words, a->count * sizeof *a->words) == 0;
}

const void *by_structure_find(const ByStructure *by, const Structure *structure) {
    for (size_t i = 0; i < by->count; i++) {
        if (is_equal(&by->known[i].structure, structure)) {
            return by->known[i].found;
        }
    }
    return NULL;
}

void by_structure_make_room(ByStructure *by, size_t most_bytes) {
    if (by->arena.used_bytes > most_bytes) {
        arena_free(&by->arena);
        *by = (ByStructure){.arena = by->arena};
    }
}

void by_structure_keep(ByStructure *by, const Structure *structure, const void *found) {
    Structure copy = *structure;
    copy.words = memcpy(ARENA_UNCLEARED(&by->arena, uint64_t, copy.count), copy.words, copy.count * sizeof *copy.words);
    ARENA_PUSH(&by->arena, by->known, by->count, &by->capacity) = (KnownStructure){copy, found};
}

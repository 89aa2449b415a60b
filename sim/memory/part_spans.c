// Spans of a buffer: slot lifetimes joined where they overlap in issue order, each with the hull of its uses per lane.
// Since lanes are ordered, "every use in x ends before any use in y starts" is one comparison per lane.

#include "sim/memory/part_spans.h"

#include "sim/step/slots.h"

#include <string.h>

// Sorts by falling `first`, nearly sorted already: lifetimes are found walking backwards.
static void sort_spans(PartSpan *spans, int32_t count) {
    for (int32_t i = 1; i < count; i++) {
        const PartSpan span = spans[i];
        int32_t at = i;
        for (; at > 0 && spans[at - 1].first < span.first; at--) {
            spans[at] = spans[at - 1];
        }
        spans[at] = span;
    }
}

// Falling and overlapping in, rising and disjoint out; returns how many are left.
static int32_t join_spans(PartSpan *spans, int32_t count) {
    for (int32_t i = 0; i < count / 2; i++) {
        const PartSpan swap = spans[i];
        spans[i] = spans[count - 1 - i];
        spans[count - 1 - i] = swap;
    }
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        if (kept > 0 && spans[i].first <= spans[kept - 1].last) {
            spans[kept - 1].last = spans[i].last > spans[kept - 1].last ? spans[i].last : spans[kept - 1].last;
        } else {
            spans[kept++] = spans[i];
        }
    }
    return kept;
}

Parts parts_of_buffers(const StepProgram *program, int32_t max_slots, Arena *arena) {
    Parts parts = {.first = ARENA_ARRAY(arena, int32_t, program->buffer_count + 1)};
    for (int32_t b = 0; b < program->buffer_count; b++) {
        parts.count += program->buffers[b].slots <= max_slots ? program->buffers[b].slots : 1;
        parts.first[b + 1] = parts.count;
    }
    return parts;
}

static int32_t part_of_slot(const Parts *parts, int32_t buffer, int32_t slot) {
    const int32_t divided = parts->first[buffer + 1] - parts->first[buffer] > 1;
    const int32_t *const place = parts->place ? parts->place[buffer] : NULL;
    return parts->first[buffer] + (!divided ? 0 : place ? place[slot] : slot);
}

static void collect_spans(const Lifetimes *lifetimes, Arena *arena, PartSpans *spans) {
    const int32_t parts = spans->parts.count;
    int32_t *start = ARENA_ARRAY(arena, int32_t, parts + 1);
    int32_t *filled = ARENA_ARRAY(arena, int32_t, parts);
    PartSpan *sorted = ARENA_ARRAY(arena, PartSpan, lifetimes->count);
    for (int32_t i = 0; i < lifetimes->count; i++) {
        start[part_of_slot(&spans->parts, lifetimes->rows[i].buffer, lifetimes->rows[i].slot) + 1]++;
    }
    for (int32_t p = 0; p < parts; p++) {
        start[p + 1] += start[p];
    }
    for (int32_t i = 0; i < lifetimes->count; i++) {
        const SlotLifetime *row = &lifetimes->rows[i];
        const int32_t part = part_of_slot(&spans->parts, row->buffer, row->slot);
        sorted[start[part] + filled[part]++] = (PartSpan){.first = row->first, .last = row->last};
    }
    spans->begin = ARENA_ARRAY(arena, int32_t, parts + 1);
    spans->spans = sorted;
    for (int32_t p = 0; p < parts; p++) {
        sort_spans(sorted + start[p], filled[p]);
        const int32_t kept = join_spans(sorted + start[p], filled[p]);
        memmove(sorted + spans->begin[p], sorted + start[p], (size_t)kept * sizeof(PartSpan));
        spans->begin[p + 1] = spans->begin[p] + kept;
    }
}

// Clocks rise along a lane: of a span's uses in a lane the first bounds its start, the last its end.
static void span_add_use(const HappensBefore *order, int32_t instance, int32_t *ended_before, int32_t *used_until) {
    const int lane = happens_before_lane(order, instance);
    if (used_until[lane] < 0) {
        const int32_t *clock = happens_before_clock(order, instance);
        for (int32_t k = 0; k < order->stride; k++) {
            ended_before[k] = ended_before[k] < clock[k] ? ended_before[k] : clock[k];
        }
    }
    used_until[lane] = order->position[instance];
}

static void clock_spans(const HappensBefore *order, Arena *arena, PartSpans *spans) {
    const StepProgram *program = order->program;
    int32_t *current = ARENA_ARRAY(arena, int32_t, spans->parts.count);
    memcpy(current, spans->begin, (size_t)spans->parts.count * sizeof(int32_t));
    for (int32_t i = 0; i < order->count; i++) {
        const Task *task = &program->tasks[order->instances[i].task];
        for (int32_t k = task->first_operand; k < task->first_operand + task->operand_count; k++) {
            const BufferRef *ref = &program->operands[k].ref;
            if (ref->buffer < 0 || program->buffers[ref->buffer].persistent) {
                continue;
            }
            const int32_t slot = step_slot(&program->buffers[ref->buffer], ref->index, &order->instances[i]);
            const int32_t part = part_of_slot(&spans->parts, ref->buffer, slot);
            while (spans->spans[current[part]].last < i) {
                current[part]++;
            }
            const int32_t at = current[part] * spans->stride;
            span_add_use(order, i, spans->ended_before + at, spans->used_until + at);
        }
    }
}

// used_until also covers the earlier spans of the same part, ended_before the later ones.
static void accumulate_clocks(PartSpans *spans) {
    const int32_t stride = spans->stride;
    for (int32_t p = 0; p < spans->parts.count; p++) {
        const int32_t begin = spans->begin[p], end = spans->begin[p + 1];
        for (int32_t i = (begin + 1) * stride; i < end * stride; i++) {
            const int32_t earlier = spans->used_until[i - stride];
            spans->used_until[i] = spans->used_until[i] > earlier ? spans->used_until[i] : earlier;
        }
        for (int32_t i = (end - 1) * stride - 1; i >= begin * stride; i--) {
            const int32_t later = spans->ended_before[i + stride];
            spans->ended_before[i] = spans->ended_before[i] < later ? spans->ended_before[i] : later;
        }
    }
}

void part_spans_build(const HappensBefore *order, const Lifetimes *lifetimes, Parts parts, Arena *arena,
                      PartSpans *spans) {
    *spans = (PartSpans){.parts = parts, .stride = order->stride};
    collect_spans(lifetimes, arena, spans);
    const int32_t values = spans->begin[parts.count] * spans->stride;
    spans->ended_before = ARENA_ARRAY(arena, int32_t, values);
    spans->used_until = ARENA_ARRAY(arena, int32_t, values);
    for (int32_t i = 0; i < values; i++) {
        spans->ended_before[i] = INT32_MAX;
        spans->used_until[i] = -1;
    }
    clock_spans(order, arena, spans);
    accumulate_clocks(spans);
}

static bool ends_before(const int32_t *used_until, const int32_t *ended_before, int32_t stride) {
    int32_t late = 0;
    for (int32_t k = 0; k < stride; k++) {
        late |= used_until[k] >= ended_before[k];
    }
    return late == 0;
}

// Clocks are compared where the earlier span changes from one part to the other: they cover the rows between.
bool part_spans_disjoint(const PartSpans *spans, int32_t a, int32_t b) {
    int32_t next[2] = {spans->begin[a], spans->begin[b]};
    const int32_t end[2] = {spans->begin[a + 1], spans->begin[b + 1]};
    while (next[0] < end[0] && next[1] < end[1]) {
        const int earlier = spans->spans[next[1]].first < spans->spans[next[0]].first;
        const int32_t later_row = next[!earlier], later_first = spans->spans[later_row].first;
        int32_t row = next[earlier];
        while (row + 1 < end[earlier] && spans->spans[row + 1].first < later_first) {
            row++;
        }
        if (spans->spans[row].last >= later_first ||
            !ends_before(spans->used_until + row * spans->stride, spans->ended_before + later_row * spans->stride,
                         spans->stride)) {
            return false;
        }
        next[earlier] = row + 1;
    }
    return true;
}

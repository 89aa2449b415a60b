// Spans of a buffer: slot lifetimes joined where they overlap in issue order, each with the hull of its uses per lane.
// Since lanes are ordered, "every use in x ends before any use in y starts" is one comparison per lane.

#include "sim/memory/buffer_spans.h"

#include <limits.h>
#include <string.h>

// Sorts by falling `first`, nearly sorted already: lifetimes are found walking backwards.
static void sort_spans(BufferSpan *spans, int32_t count) {
    for (int32_t i = 1; i < count; i++) {
        const BufferSpan span = spans[i];
        int32_t at = i;
        for (; at > 0 && spans[at - 1].first < span.first; at--) {
            spans[at] = spans[at - 1];
        }
        spans[at] = span;
    }
}

// Falling and overlapping in, rising and disjoint out; returns how many are left.
static int32_t join_spans(BufferSpan *spans, int32_t count) {
    for (int32_t i = 0; i < count / 2; i++) {
        const BufferSpan swap = spans[i];
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

static void collect_spans(const StepProgram *program, const Lifetimes *lifetimes, Arena *arena, BufferSpans *spans) {
    const int32_t buffers = program->buffer_count;
    int32_t *start = ARENA_ARRAY(arena, int32_t, buffers + 1);
    int32_t *filled = ARENA_ARRAY(arena, int32_t, buffers);
    BufferSpan *sorted = ARENA_ARRAY(arena, BufferSpan, lifetimes->count);
    for (int32_t i = 0; i < lifetimes->count; i++) {
        start[lifetimes->rows[i].buffer + 1]++;
    }
    for (int32_t b = 0; b < buffers; b++) {
        start[b + 1] += start[b];
    }
    for (int32_t i = 0; i < lifetimes->count; i++) {
        const SlotLifetime *row = &lifetimes->rows[i];
        sorted[start[row->buffer] + filled[row->buffer]++] = (BufferSpan){.first = row->first, .last = row->last};
    }
    spans->begin = ARENA_ARRAY(arena, int32_t, buffers + 1);
    spans->spans = sorted;
    for (int32_t b = 0; b < buffers; b++) {
        sort_spans(sorted + start[b], filled[b]);
        const int32_t kept = join_spans(sorted + start[b], filled[b]);
        memmove(sorted + spans->begin[b], sorted + start[b], (size_t)kept * sizeof(BufferSpan));
        spans->begin[b + 1] = spans->begin[b] + kept;
    }
}

static void span_add_use(const HappensBefore *order, int32_t instance, int32_t *ended_before, int32_t *used_until) {
    const int32_t *clock = happens_before_clock(order, instance);
    for (int32_t k = 0; k < order->stride; k++) {
        ended_before[k] = ended_before[k] < clock[k] ? ended_before[k] : clock[k];
    }
    const int lane = happens_before_lane(order, instance);
    used_until[lane] = used_until[lane] > order->position[instance] ? used_until[lane] : order->position[instance];
}

static void clock_spans(const HappensBefore *order, Arena *arena, BufferSpans *spans) {
    const StepProgram *program = order->program;
    int32_t *current = ARENA_ARRAY(arena, int32_t, program->buffer_count);
    memcpy(current, spans->begin, (size_t)program->buffer_count * sizeof(int32_t));
    for (int32_t i = 0; i < order->count; i++) {
        const Task *task = &program->tasks[order->instances[i].task];
        for (int32_t k = task->first_operand; k < task->first_operand + task->operand_count; k++) {
            const int32_t buffer = program->operands[k].ref.buffer;
            if (buffer < 0 || program->buffers[buffer].persistent) {
                continue;
            }
            while (spans->spans[current[buffer]].last < i) {
                current[buffer]++;
            }
            const int32_t at = current[buffer] * spans->stride;
            span_add_use(order, i, spans->ended_before + at, spans->used_until + at);
        }
    }
}

// used_until also covers the earlier spans of the same buffer.
static void accumulate_used_until(const StepProgram *program, BufferSpans *spans) {
    for (int32_t b = 0; b < program->buffer_count; b++) {
        for (int32_t i = spans->begin[b] + 1; i < spans->begin[b + 1]; i++) {
            int32_t *row = spans->used_until + i * spans->stride;
            for (int32_t k = 0; k < spans->stride; k++) {
                row[k] = row[k] > row[k - spans->stride] ? row[k] : row[k - spans->stride];
            }
        }
    }
}

void buffer_spans_build(const HappensBefore *order, const Lifetimes *lifetimes, Arena *arena, BufferSpans *spans) {
    *spans = (BufferSpans){.stride = order->stride};
    collect_spans(order->program, lifetimes, arena, spans);
    const int32_t values = spans->begin[order->program->buffer_count] * spans->stride;
    spans->ended_before = ARENA_ARRAY(arena, int32_t, values);
    spans->used_until = ARENA_ARRAY(arena, int32_t, values);
    for (int32_t i = 0; i < values; i++) {
        spans->ended_before[i] = INT32_MAX;
        spans->used_until[i] = -1;
    }
    clock_spans(order, arena, spans);
    accumulate_used_until(order->program, spans);
}

static bool ends_before(const int32_t *used_until, const int32_t *ended_before, int32_t stride) {
    int32_t late = 0;
    for (int32_t k = 0; k < stride; k++) {
        late |= used_until[k] >= ended_before[k];
    }
    return late == 0;
}

bool buffer_spans_disjoint(const BufferSpans *spans, int32_t a, int32_t b) {
    int32_t next[2] = {spans->begin[a], spans->begin[b]};
    const int32_t begin[2] = {spans->begin[a], spans->begin[b]};
    const int32_t end[2] = {spans->begin[a + 1], spans->begin[b + 1]};
    while (next[0] < end[0] || next[1] < end[1]) {
        const BufferSpan *heads[2] = {&spans->spans[next[0]], &spans->spans[next[1]]};
        const int turn = next[0] == end[0] || (next[1] < end[1] && heads[1]->first < heads[0]->first);
        const int32_t row = next[turn];
        const int32_t before = next[!turn] - 1;  // the other buffer's latest span that began earlier
        if (before >= begin[!turn]) {
            if (spans->spans[before].last >= heads[turn]->first ||
                !ends_before(spans->used_until + before * spans->stride, spans->ended_before + row * spans->stride,
                             spans->stride)) {
                return false;
            }
        }
        next[turn]++;
    }
    return true;
}

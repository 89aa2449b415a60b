// What torch.cuda.memory._dump_snapshot writes (PyTorch 2.11: torch/cuda/_memory_viz.py and
// torch/utils/viz/MemoryViz.js read it): one segment with a place of its own for every slot of every buffer, and a
// trace of allocations and frees. Slots keep their places, so the segment is larger than an allocator would need; live
// bytes are what the trace is for. The viewer wants a category "unknown" where there are any.

#include <stdlib.h>

#include "reports/memory_terms.h"
#include "reports/pickle.h"
#include "reports/trace.h"
#include "sim/memory/lifetimes.h"

static const int64_t BASE_ADDRESS = 0x7f0000000000;  // where CUDA puts its segments on Linux

typedef struct Layout {
    const MemorySnapshot *snapshot;
    StepInstance *instances;
    int32_t count;
    Lifetimes lifetimes;
    int64_t *address;         // of slot 0 of each buffer
    int64_t workspace_bytes;  // of libraries, behind the persistent buffers and counted with them
    int64_t persistent_bytes, total_bytes;
    int64_t *time_us;  // when each instance begins, never falling
} Layout;

// Persistent buffers first, so that what is left at the end of the step lies together.
static void place_buffers(Layout *layout) {
    const StepProgram *program = layout->snapshot->program;
    layout->address = ARENA_ARRAY(layout->snapshot->arena, int64_t, program->buffer_count);
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < program->buffer_count; i++) {
            const Buffer *buffer = &program->buffers[i];
            if (buffer->persistent == (pass == 0)) {
                layout->address[i] = BASE_ADDRESS + layout->total_bytes;
                layout->total_bytes += buffer->slots * buffer->slot_bytes;
            }
        }
        if (pass == 0) {
            layout->workspace_bytes = (int64_t)runtime_workspace_bytes(&program->target->runtime);
            layout->persistent_bytes = layout->total_bytes += layout->workspace_bytes;
        }
    }
}

static int64_t workspace_address(const Layout *layout) {
    return BASE_ADDRESS + layout->persistent_bytes - layout->workspace_bytes;
}

static bool gives_times(const Layout *layout) {
    const Timeline *timeline = layout->snapshot->timeline;
    int64_t spans = 0;
    for (int64_t i = 0; timeline && timeline->complete && i < timeline->span_count; i++) {
        spans += timeline->spans[i].rank == layout->snapshot->rank;
    }
    return spans == layout->count;
}

static void set_times(Layout *layout) {
    const bool known = gives_times(layout);
    int64_t place = 0, latest = 0;
    layout->time_us = ARENA_ARRAY(layout->snapshot->arena, int64_t, layout->count);
    for (int32_t i = 0; i < layout->count; i++) {
        int64_t now = i;
        if (known) {
            while (layout->snapshot->timeline->spans[place].rank != layout->snapshot->rank) {
                place++;
            }
            now = (int64_t)(1e6 * layout->snapshot->timeline->spans[place++].start_s);
        }
        latest = now > latest ? now : latest;
        layout->time_us[i] = latest;
    }
}

static Status lay_out(Layout *layout, Error *error) {
    const StepProgram *program = layout->snapshot->program;
    Arena *arena = layout->snapshot->arena;
    layout->count = (int32_t)step_instance_count(program);
    layout->instances = ARENA_ARRAY(arena, StepInstance, layout->count);
    StepCursor cursor = step_cursor_begin(program);
    for (int32_t i = 0; i < layout->count; i++) {
        step_cursor_next(&cursor, &layout->instances[i]);
    }
    place_buffers(layout);
    set_times(layout);
    return lifetimes_find(program, layout->instances, layout->count, arena, &layout->lifetimes, error);
}

static void put_frame(Pickle *pickle, const char *file, const char *name) {
    pickle_dict_begin(pickle);
    pickle_word(pickle, "filename");
    pickle_text(pickle, file);
    pickle_word(pickle, "line");
    pickle_integer(pickle, 0);
    pickle_word(pickle, "name");
    pickle_text(pickle, name);
    pickle_dict_end(pickle);
}

// What the viewer shows as the stack: the buffer, and the task that first writes it; -1 = from before the step.
static void put_frames(Pickle *pickle, const Layout *layout, int32_t buffer, int32_t slot, int32_t instance) {
    const StepProgram *program = layout->snapshot->program;
    char where[64], place[64];
    snprintf(where, sizeof where, "slot %d of %d", (int)slot, (int)program->buffers[buffer].slots);
    pickle_word(pickle, "frames");
    pickle_list_begin(pickle);
    put_frame(pickle, where, program->buffers[buffer].name);
    if (instance >= 0) {
        const StepInstance *at = &layout->instances[instance];
        snprintf(place, sizeof place, "layer %d, micro-batch %d", (int)at->layer, (int)at->micro_step);
        put_frame(pickle, place, program->tasks[at->task].name);
    } else {
        put_frame(pickle, "kept from step to step", "ndtune");
    }
    pickle_list_end(pickle);
}

// The allocation or free of one slot.
typedef struct SlotEvent {
    int32_t instance;  // -1 = before the step
    int32_t buffer, slot;
    int32_t first;  // of the lifetime: whose task the frames name
    bool frees;
} SlotEvent;

typedef struct TraceEvent {
    const char *action, *category;
    int64_t address, bytes, time_us;
} TraceEvent;

// Its dictionary stays open, for the frames.
static void begin_event(Pickle *pickle, const TraceEvent *event) {
    pickle_dict_begin(pickle);
    pickle_word(pickle, "action");
    pickle_word(pickle, event->action);
    pickle_word(pickle, "addr");
    pickle_integer(pickle, event->address);
    pickle_word(pickle, "size");
    pickle_integer(pickle, event->bytes);
    pickle_word(pickle, "stream");
    pickle_integer(pickle, 0);
    pickle_word(pickle, "time_us");
    pickle_integer(pickle, event->time_us);
    pickle_word(pickle, "category");
    pickle_word(pickle, event->category);
}

static void put_event(Pickle *pickle, const Layout *layout, const SlotEvent *event, const char *action) {
    const Buffer *buffer = &layout->snapshot->program->buffers[event->buffer];
    begin_event(pickle, &(TraceEvent){.action = action,
                                      .category = memory_role_words[buffer->role],
                                      .address = layout->address[event->buffer] + event->slot * buffer->slot_bytes,
                                      .bytes = buffer->slot_bytes,
                                      .time_us = event->instance >= 0 ? layout->time_us[event->instance] : 0});
    put_frames(pickle, layout, event->buffer, event->slot, event->first);
    pickle_dict_end(pickle);
}

static void put_workspaces(Pickle *pickle, const Layout *layout) {
    if (layout->workspace_bytes > 0) {
        begin_event(pickle, &(TraceEvent){.action = "alloc",
                                          .category = memory_role_words[ROLE_RUNTIME],
                                          .address = workspace_address(layout),
                                          .bytes = layout->workspace_bytes});
        pickle_word(pickle, "frames");
        pickle_list_begin(pickle);
        put_frame(pickle, "kept from step to step", "workspaces of libraries");
        pickle_list_end(pickle);
        pickle_dict_end(pickle);
    }
}

// By instance; what an instance writes is allocated before what it uses last is freed.
static int compare_events(const void *a, const void *b) {
    const SlotEvent *x = a, *y = b;
    if (x->instance != y->instance) {
        return x->instance < y->instance ? -1 : 1;
    }
    if (x->frees != y->frees) {
        return x->frees ? 1 : -1;
    }
    return x->buffer != y->buffer ? (x->buffer < y->buffer ? -1 : 1) : (x->slot > y->slot) - (x->slot < y->slot);
}

static SlotEvent *collect_events(const Layout *layout, int64_t *count) {
    const StepProgram *program = layout->snapshot->program;
    int64_t slots = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        slots += program->buffers[i].slots;
    }
    SlotEvent *events = ARENA_ARRAY(layout->snapshot->arena, SlotEvent, slots + 2 * (int64_t)layout->lifetimes.count);
    *count = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        for (int32_t slot = 0; program->buffers[i].persistent && slot < program->buffers[i].slots; slot++) {
            events[(*count)++] = (SlotEvent){.instance = -1, .buffer = i, .slot = slot, .first = -1};
        }
    }
    for (int32_t i = 0; i < layout->lifetimes.count; i++) {
        const SlotLifetime *row = &layout->lifetimes.rows[i];
        const SlotEvent begin = {.instance = row->first, .buffer = row->buffer, .slot = row->slot, .first = row->first};
        SlotEvent end = begin;
        end.instance = row->last;
        end.frees = true;
        events[(*count)++] = begin;
        events[(*count)++] = end;
    }
    qsort(events, (size_t)*count, sizeof *events, compare_events);
    return events;
}

static void put_trace(Pickle *pickle, const Layout *layout) {
    enum { PIECE = 500 };
    int64_t count = 0;
    const SlotEvent *events = collect_events(layout, &count);
    pickle_list_begin(pickle);
    pickle_dict_begin(pickle);  // so that the viewer knows the category that it looks for
    pickle_word(pickle, "action");
    pickle_word(pickle, "snapshot");
    pickle_word(pickle, "addr");
    pickle_integer(pickle, 0);
    pickle_word(pickle, "size");
    pickle_integer(pickle, 0);
    pickle_word(pickle, "stream");
    pickle_integer(pickle, 0);
    pickle_word(pickle, "category");
    pickle_word(pickle, "unknown");
    pickle_dict_end(pickle);
    put_workspaces(pickle, layout);
    for (int64_t i = 0; i < count; i++) {
        if (i % PIECE == PIECE - 1) {
            pickle_list_more(pickle);
        }
        put_event(pickle, layout, &events[i], events[i].frees ? "free_requested" : "alloc");
        if (events[i].frees) {
            put_event(pickle, layout, &events[i], "free_completed");
        }
    }
    pickle_list_end(pickle);
}

static void put_block(Pickle *pickle, int64_t address, int64_t bytes, bool active) {
    pickle_dict_begin(pickle);
    pickle_word(pickle, "address");
    pickle_integer(pickle, address);
    pickle_word(pickle, "size");
    pickle_integer(pickle, bytes);
    pickle_word(pickle, "requested_size");
    pickle_integer(pickle, bytes);
    pickle_word(pickle, "state");
    pickle_word(pickle, active ? "active_allocated" : "inactive");
    pickle_word(pickle, "frames");
    pickle_list_begin(pickle);
    pickle_list_end(pickle);
    pickle_dict_end(pickle);
}

// Blocks follow each other without gaps: the viewer adds their sizes up to find where each lies.
static void put_blocks(Pickle *pickle, const Layout *layout) {
    const StepProgram *program = layout->snapshot->program;
    pickle_list_begin(pickle);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        for (int32_t slot = 0; buffer->persistent && slot < buffer->slots; slot++) {
            put_block(pickle, layout->address[i] + slot * buffer->slot_bytes, buffer->slot_bytes, true);
        }
    }
    if (layout->workspace_bytes > 0) {
        put_block(pickle, workspace_address(layout), layout->workspace_bytes, true);
    }
    const int64_t rest = layout->total_bytes - layout->persistent_bytes;
    if (rest > 0) {
        put_block(pickle, BASE_ADDRESS + layout->persistent_bytes, rest, false);
    }
    pickle_list_end(pickle);
}

static void put_segment(Pickle *pickle, const Layout *layout) {
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"device", 0},
                   {"address", BASE_ADDRESS},
                   {"total_size", layout->total_bytes},
                   {"allocated_size", layout->persistent_bytes},
                   {"active_size", layout->persistent_bytes},
                   {"requested_size", layout->persistent_bytes},
                   {"stream", 0}};
    pickle_dict_begin(pickle);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        pickle_word(pickle, numbers[i].key);
        pickle_integer(pickle, numbers[i].value);
    }
    pickle_word(pickle, "segment_type");
    pickle_word(pickle, "large");
    pickle_word(pickle, "frames");
    pickle_list_begin(pickle);
    pickle_list_end(pickle);
    pickle_word(pickle, "blocks");
    put_blocks(pickle, layout);
    pickle_dict_end(pickle);
}

Status memory_snapshot(const void *what, FILE *out, Error *error) {
    const MemorySnapshot *snapshot = what;
    Layout layout = {.snapshot = snapshot};
    TRY(lay_out(&layout, error));
    Pickle pickle = pickle_begin(out);
    pickle_dict_begin(&pickle);
    pickle_word(&pickle, "segments");
    pickle_list_begin(&pickle);
    put_segment(&pickle, &layout);
    pickle_list_end(&pickle);
    pickle_word(&pickle, "device_traces");
    pickle_list_begin(&pickle);
    put_trace(&pickle, &layout);
    pickle_list_end(&pickle);
    pickle_dict_end(&pickle);
    pickle_end(&pickle);
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the snapshot could not be written") : STATUS_OK;
}

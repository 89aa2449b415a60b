// The comparison, and the edits shared by several frameworks.

#include "tests/parity/frameworks/compare.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TRACES = 64, MOST_SHOWN = 8 };

bool trace_is(const char *a, const char *b) {
    return strcmp(a, b) == 0;
}

int trace_size(const Trace *trace, Axis axis) {
    return trace->sizes.size[axis];
}

bool trace_is_sharded(const Trace *trace) {
    return trace_size(trace, AXIS_DP_SHARD) * trace_size(trace, AXIS_CP) > 1;
}

void trace_remove(EventList *list, int at) {
    memmove(&list->events[at], &list->events[at + 1], (size_t)(list->count - at - 1) * sizeof list->events[0]);
    list->count--;
}

void trace_insert(EventList *list, int at, const TraceEvent *event) {
    cr_assert_lt(list->count, TRACE_MAX_EVENTS);
    memmove(&list->events[at + 1], &list->events[at], (size_t)(list->count - at) * sizeof list->events[0]);
    list->events[at] = *event;
    list->count++;
}

int64_t trace_bytes(const EventList *list, const char *phase, const char *kind) {
    int64_t bytes = 0;
    for (int i = 0; i < list->count; i++) {
        const TraceEvent *event = &list->events[i];
        bytes += trace_is(event->phase, phase) && trace_is(event->kind, kind) ? event->bytes : 0;
    }
    return bytes;
}

// ---- shared differences

// Where backward of that micro-step has come to the embedding's own operations, or ends.
static int end_of_layers(const EventList *list, int from) {
    const TraceEvent *first = &list->events[from];
    int at = from + 1;
    while (at < list->count && list->events[at].micro_batch == first->micro_batch &&
           !trace_is(list->events[at].phase, "optimizer") && !trace_is(list->events[at].place, "embedding")) {
        at++;
    }
    return at;
}

int embedding_is_gathered_after_layer_0(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 0; i < list->count; i++) {
        const TraceEvent event = list->events[i];
        if (trace_is(event.phase, "backward") && trace_is(event.place, "embedding") &&
            trace_is(event.kind, "all_gather") && trace_is(event.origin, "fsdp gather")) {
            const int end = end_of_layers(list, i);
            trace_remove(list, i);
            trace_insert(list, end - 1, &event);
            i = end - 1;
            changed++;
        }
    }
    return changed;
}

bool prefetches_embedding(const Trace *trace) {
    return trace_is_sharded(trace) && trace->request.reshard == RESHARD_ALWAYS;
}

int norms_are_reduced_apart(Trace *trace) {
    EventList *list = &trace->list;
    const int element = trace_is(trace->parameter_dtype, "bf16") ? 2 : 4;
    const int tensors = 9 * trace->layers + 3;  // two norms and seven matrices; embedding, final norm, head
    int changed = 0;
    for (int i = 0; i < list->count; i++) {
        TraceEvent *event = &list->events[i];
        if (!trace_is(event->origin, "clip")) {
            continue;
        }
        cr_assert_eq(event->bytes, tensors * element, "%s: %lld bytes", trace->name, (long long)event->bytes);
        cr_assert(trace_is(event->dtype, trace->parameter_dtype), "%s", trace->name);
        event->bytes = 4;
        snprintf(event->dtype, sizeof event->dtype, "fp32");
        if (i > 0 && trace_is(list->events[i - 1].origin, "clip")) {
            const TraceEvent further = *event;
            char *axes = list->events[i - 1].axes;
            snprintf(axes + strlen(axes), TRACE_TEXT - strlen(axes), "+%s", further.axes);
            trace_remove(list, i--);
        }
        changed++;
    }
    return changed;
}

int counts_are_in_64_bits(Trace *trace) {
    int changed = 0;
    for (int i = 0; i < trace->list.count; i++) {
        TraceEvent *event = &trace->list.events[i];
        if (trace_is(event->axes, "ep") && trace_is(event->dtype, "int64")) {
            event->bytes /= 2;
            snprintf(event->dtype, sizeof event->dtype, "%s", dtype_name(DTYPE_INT32));
            changed++;
        }
    }
    return changed;
}

int loss_is_summed_elsewhere(Trace *trace) {
    TraceEvent loss = {.phase = "optimizer", .kind = "all_reduce", .bytes = 4, .dtype = "fp32"};
    for (int axis = AXIS_DP_REPLICATE; axis <= AXIS_CP; axis++) {
        if (trace_size(trace, axis) > 1) {
            snprintf(loss.axes + strlen(loss.axes), TRACE_TEXT - strlen(loss.axes), "%s%s", loss.axes[0] ? "+" : "",
                     axis_names[axis]);
        }
    }
    if (!loss.axes[0]) {
        return 0;
    }
    int at = 0;
    while (at < trace->list.count && !trace_is(trace->list.events[at].origin, "clip")) {
        at++;
    }
    trace_insert(&trace->list, at, &loss);
    return 1;
}

// ---- what a rank holds

static int64_t buffer_bytes(const StepProgram *program, int32_t buffer) {
    return buffer < 0 ? 0 : program->buffers[buffer].slots * program->buffers[buffer].slot_bytes;
}

Held program_holds(const StepProgram *program) {
    Held held = {0};
    for (int32_t u = 0; u < program->unit_count; u++) {
        const Unit *unit = &program->units[u];
        held.master_bytes += buffer_bytes(program, unit->master);
        held.moment_bytes += buffer_bytes(program, unit->moment1) + buffer_bytes(program, unit->moment2);
        held.gradient_shard_bytes += buffer_bytes(program, unit->gradient_shard);
        const int32_t full = unit->gradient_full;
        held.whole_gradient_bytes +=
            full >= 0 && program->buffers[full].slots == unit->instances ? buffer_bytes(program, full) : 0;
    }
    for (int32_t b = 0; b < program->buffer_count; b++) {
        const Buffer *buffer = &program->buffers[b];
        held.kept_bytes_per_layer +=
            buffer->role == ROLE_ACTIVATION && buffer->slots >= program->layers ? buffer->slot_bytes : 0;
    }
    return held;
}

// ---- the comparison

static bool apply_known(const Comparison *comparison, Trace *trace) {
    bool good = true;
    for (int i = 0; i < comparison->known_count; i++) {
        const KnownDifference *known = &comparison->known[i];
        const bool applied = known->edit(trace) > 0;
        if (applied != known->expected(trace)) {
            fprintf(stderr, "%s: \"%s\" %s\n", trace->name, known->name,
                    applied ? "applies and should not" : "is gone");
            good = false;
        }
    }
    return good;
}

static bool same_lists(const Trace *trace, const EventList *ours) {
    const EventList *theirs = &trace->list;
    int differing = 0;
    for (int i = 0; i < theirs->count || i < ours->count; i++) {
        const TraceEvent *a = i < theirs->count ? &theirs->events[i] : NULL;
        const TraceEvent *b = i < ours->count ? &ours->events[i] : NULL;
        if (a && b && trace_event_equal(a, b)) {
            continue;
        }
        if (differing++ < MOST_SHOWN) {
            fprintf(stderr, "%s, collective %d:\n", trace->name, i);
            trace_event_print("framework", a);
            trace_event_print("ndtune", b);
        }
    }
    return differing == 0;
}

void traces_compare(const Comparison *comparison) {
    static char names[MAX_TRACES][TRACE_NAME];
    static Trace trace;
    static EventList ours;
    const int count = trace_names(comparison->framework, names, MAX_TRACES);
    int compared = 0, failed = 0;
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        trace_read(comparison->framework, names[i], &trace);
        if (comparison->compares(&trace)) {
            const StepProgram program = lowered(&arena, trace.request);
            trace_of_program(&program, &ours);
            const bool known = apply_known(comparison, &trace);
            failed += !(same_lists(&trace, &ours) && known);
            compared++;
        }
        arena_free(&arena);
    }
    cr_assert_geq(compared, comparison->least);
    cr_assert_eq(failed, 0, "%d of %d traces differ from the lowering", failed, compared);
}

int loss_is_averaged_last(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 1; i < list->count; i++) {
        if (trace_is(list->events[i].origin, "user loss") && trace_is(list->events[i - 1].origin, "clip")) {
            const TraceEvent loss = list->events[i];
            trace_remove(list, i);
            trace_insert(list, i - 1, &loss);
            changed++;
        }
    }
    return changed;
}

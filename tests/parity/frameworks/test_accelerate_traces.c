// The lowering of target accelerate against recorded steps of accelerate itself: every collective, in issue order, with kind,
// axes, bytes, dtype, phase and layer. Where the two differ on purpose or for want of a better lowering, the difference is a
// row of a table that turns the framework's list into ours: it must apply exactly where it says, so a difference that goes
// away is noticed as well as a new one.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/parity/frameworks/trace.h"

enum { MAX_TRACES = 64, MOST_SHOWN = 8 };

static bool is(const char *a, const char *b) {
    return strcmp(a, b) == 0;
}

static int size_of(const Trace *trace, Axis axis) {
    return trace->sizes.size[axis];
}

static bool is_sharded(const Trace *trace) {
    return size_of(trace, AXIS_DP_SHARD) * size_of(trace, AXIS_CP) > 1;
}

static bool is_compared(const Trace *trace) {
    return !trace->request.tied && (is_sharded(trace) || size_of(trace, AXIS_TP) > 1);
}

// ---- editing the framework's list

static void remove_event(EventList *list, int at) {
    memmove(&list->events[at], &list->events[at + 1], (size_t)(list->count - at - 1) * sizeof list->events[0]);
    list->count--;
}

static void insert_event(EventList *list, int at, const TraceEvent *event) {
    cr_assert_lt(list->count, TRACE_MAX_EVENTS);
    memmove(&list->events[at + 1], &list->events[at], (size_t)(list->count - at) * sizeof list->events[0]);
    list->events[at] = *event;
    list->count++;
}

// Where backward of that micro-step has come to the embedding's own operations, or ends.
static int end_of_layers(const EventList *list, int from) {
    int at = from;
    while (at < list->count && list->events[at].micro_batch == list->events[from].micro_batch &&
           is(list->events[at].phase, list->events[from].phase) | is(list->events[at].phase, "recompute") &&
           (at == from || !is(list->events[at].place, "embedding"))) {
        at++;
    }
    return at;
}

// ---- the known differences: each answers how many events it changed

// PyTorch gathers the embedding as layer 0's prefetch, before the collectives of layer 0; ours are issued after them
// (emit_backward_begin in lower_sharding.c): a guard that is open in one layer only would cost the engine its repetition.
static int embedding_is_gathered_after_layer_0(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 0; i < list->count; i++) {
        const TraceEvent event = list->events[i];
        if (is(event.phase, "backward") && is(event.place, "embedding") && is(event.kind, "all_gather")) {
            const int end = end_of_layers(list, i);
            remove_event(list, i);
            insert_event(list, end - 1, &event);
            i = end - 1;
            changed++;
        }
    }
    return changed;
}

static bool prefetches_embedding(const Trace *trace) {
    return is_sharded(trace) && trace->request.reshard == RESHARD_ALWAYS;
}

// clip_grad_norm_ reduces a vector of the norms of all parameter tensors in their dtype, one all-reduce after another for each
// axis of the mesh that they are sharded over; ours reduce one fp32 scalar over all of them at once (lower_update.c). Latency only.
static int norms_are_reduced_apart(Trace *trace) {
    EventList *list = &trace->list;
    const int element = is(trace->parameter_dtype, "bf16") ? 2 : 4;
    const int tensors = 9 * trace->layers + 3;  // two norms and seven matrices; embedding, final norm, head
    int changed = 0;
    for (int i = 0; i < list->count; i++) {
        TraceEvent *event = &list->events[i];
        if (!is(event->origin, "clip")) {
            continue;
        }
        cr_assert_eq(event->bytes, tensors * element, "%s: %lld bytes", trace->name, (long long)event->bytes);
        cr_assert(is(event->dtype, trace->parameter_dtype), "%s", trace->name);
        event->bytes = 4;
        snprintf(event->dtype, sizeof event->dtype, "fp32");
        if (i > 0 && is(list->events[i - 1].origin, "clip")) {
            const TraceEvent further = *event;
            char *axes = list->events[i - 1].axes;
            snprintf(axes + strlen(axes), TRACE_TEXT - strlen(axes), "+%s", further.axes);
            remove_event(list, i--);
        }
        changed++;
    }
    return changed;
}

// Training loops average the loss when the step is over; ours do it before the norm.
static int loss_is_averaged_last(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 1; i < list->count; i++) {
        if (is(list->events[i].origin, "user loss") && is(list->events[i - 1].origin, "clip")) {
            const TraceEvent loss = list->events[i];
            remove_event(list, i);
            insert_event(list, i - 1, &loss);
            changed++;
        }
    }
    return changed;
}

// Tensor parallelism without sharding leaves norms, embedding and head plain tensors beside DTensors: torch 2.11 refuses to
// clip them together, so the recorded step does not clip.
static int tensor_parallelism_alone_is_not_clipped(Trace *trace) {
    const TraceEvent norm = {.phase = "optimizer", .kind = "all_reduce", .axes = "tp", .bytes = 4, .dtype = "fp32"};
    if (is_sharded(trace)) {
        return 0;
    }
    for (int i = 0; i < trace->list.count; i++) {
        cr_assert(!is(trace->list.events[i].phase, "optimizer"), "%s clips", trace->name);
    }
    insert_event(&trace->list, trace->list.count, &norm);
    return 1;
}

static bool is_tp_alone(const Trace *trace) {
    return !is_sharded(trace);
}

// Under autocast (tensor parallelism alone, fp32 weights) the gradient that a projection's input hook reduces is fp32; ours is bf16.
static int autocast_reduces_input_gradients_in_fp32(Trace *trace) {
    int changed = 0;
    for (int i = 0; i < trace->list.count; i++) {
        TraceEvent *event = &trace->list.events[i];
        if (trace->request.bf16 && is(event->axes, "tp") && is(event->phase, "backward") && is(event->dtype, "fp32")) {
            event->bytes /= 2;
            snprintf(event->dtype, sizeof event->dtype, "bf16");
            changed++;
        }
    }
    return changed;
}

static bool is_autocast(const Trace *trace) {
    return !is_sharded(trace) && trace->request.bf16 && !trace->loads_bf16;
}

typedef struct KnownDifference {
    const char *name;
    int (*edit)(Trace *trace);
    bool (*expected)(const Trace *trace);
} KnownDifference;

static const KnownDifference known_differences[] = {
    {"the embedding is gathered after layer 0", embedding_is_gathered_after_layer_0, prefetches_embedding},
    {"norms are reduced apart", norms_are_reduced_apart, is_sharded},
    {"the loss is averaged last", loss_is_averaged_last, is_sharded},
    {"tensor parallelism alone is not clipped", tensor_parallelism_alone_is_not_clipped, is_tp_alone},
    {"autocast reduces input gradients in fp32", autocast_reduces_input_gradients_in_fp32, is_autocast},
};

// ---- the comparison

static bool apply_known_differences(Trace *trace) {
    bool good = true;
    for (size_t i = 0; i < sizeof known_differences / sizeof known_differences[0]; i++) {
        const KnownDifference *known = &known_differences[i];
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

static char names[MAX_TRACES][2 * TRACE_TEXT];
static Trace trace;
static EventList ours;

static void lower_trace(Arena *arena) {
    const StepProgram program = lowered(arena, trace.request);
    trace_of_program(&program, &ours);
}

Test(accelerate_traces, a_step_issues_the_same_collectives_in_the_same_order) {
    const int count = trace_names("accelerate", names, MAX_TRACES);
    int compared = 0, failed = 0;
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        trace_read("accelerate", names[i], &trace);
        if (is_compared(&trace)) {
            lower_trace(&arena);
            const bool known = apply_known_differences(&trace);
            failed += !(same_lists(&trace, &ours) && known);
            compared++;
        }
        arena_free(&arena);
    }
    cr_assert_geq(compared, 20);
    cr_assert_eq(failed, 0, "%d of %d traces differ from the lowering", failed, compared);
}

static int64_t bytes_of(const EventList *list, const char *phase, const char *kind) {
    int64_t bytes = 0;
    for (int i = 0; i < list->count; i++) {
        bytes += is(list->events[i].phase, phase) && is(list->events[i].kind, kind) ? list->events[i].bytes : 0;
    }
    return bytes;
}

// accelerate 1.14 puts [final norm, embedding] into a unit of their own and forgets that the head is the same tensor: the root
// shards it once more. Both are gathered as the step begins and kept, so nothing is gathered again. Ours gathers the embedding
// twice (forward, backward) and the norm once: the same gathers in bytes, half the reduction.
Test(accelerate_traces, a_tied_head_is_sharded_twice_by_accelerate_and_once_by_us) {
    const int64_t table = 1024 * 256 * 2, norm = 256 * 2;  // bf16
    const char *const tied[] = {"shard4_tied", "shard4_tied_ram_efficient"};
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        trace_read("accelerate", tied[i], &trace);
        lower_trace(&arena);
        const int64_t layers = 4 * (int64_t)1573888;
        cr_assert_eq(bytes_of(&trace.list, "forward", "all_gather") - layers, 2 * table + norm);
        cr_assert_eq(bytes_of(&trace.list, "backward", "all_gather") - layers, 0);
        cr_assert_eq(bytes_of(&trace.list, "backward", "reduce_scatter") - layers, 2 * table + norm);
        cr_assert_eq(bytes_of(&ours, "forward", "all_gather") - layers, table + norm);
        cr_assert_eq(bytes_of(&ours, "backward", "all_gather") - layers, table);
        cr_assert_eq(bytes_of(&ours, "backward", "reduce_scatter") - layers, table + norm);
        arena_free(&arena);
    }
}

// Replicas without shards are DDP: gradients in fp32 as the weights, in buckets of 1 and then 25 MB, once per step; and the
// buffers of the model (two rotary tables and their lengths) are broadcast before each forward. Ours reduces unit by unit.
Test(accelerate_traces, replicas_alone_reduce_the_same_gradient_bytes_in_fp32) {
    const char *const replicas[] = {"replicate4", "replicate4_accumulate"};
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        trace_read("accelerate", replicas[i], &trace);
        lower_trace(&arena);
        cr_assert_eq(bytes_of(&trace.list, "backward", "all_reduce"), trace.parameter_bytes);
        cr_assert_eq(bytes_of(&ours, "backward", "all_reduce"), trace.parameter_bytes);
        cr_assert_lt(bytes_of(&trace.list, "forward", "broadcast"), 1024);
        arena_free(&arena);
    }
}

// ---- what a rank holds

static int64_t buffer_bytes(const StepProgram *program, int32_t buffer) {
    return buffer < 0 ? 0 : program->buffers[buffer].slots * program->buffers[buffer].slot_bytes;
}

// Except where tensor parallelism met weights that were loaded in bf16: accelerate's upcast assigns .data, which a DTensor's local
// part does not follow. Those runs have neither fp32 master nor fp32 moments, whatever mixed_precision says.
Test(accelerate_traces, parameters_and_moments_of_a_rank_have_the_bytes_of_the_program) {
    const int count = trace_names("accelerate", names, MAX_TRACES);
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        trace_read("accelerate", names[i], &trace);
        const StepProgram program = lowered(&arena, trace.request);
        int64_t masters = 0, moments = 0;
        for (int32_t u = 0; u < program.unit_count; u++) {
            masters += buffer_bytes(&program, program.units[u].master);
            moments +=
                buffer_bytes(&program, program.units[u].moment1) + buffer_bytes(&program, program.units[u].moment2);
        }
        // The root's copy of a tied head is nobody's in the optimizer: it has no moments.
        const int64_t twice_tied = is(names[i], "shard4_tied") ? 1024 * 256 * 4 / 4 : 0;
        const int halves = size_of(&trace, AXIS_TP) > 1 && trace.loads_bf16 ? 2 : 1;
        cr_assert_eq(halves * trace.parameter_bytes, masters + twice_tied, "%s: %lld and %lld", names[i],
                     (long long)trace.parameter_bytes, (long long)masters);
        cr_assert_eq(halves * trace.moment_bytes, moments, "%s: %lld and %lld", names[i], (long long)trace.moment_bytes,
                     (long long)moments);
        cr_assert(is(trace.parameter_dtype, halves == 2 ? "bf16" : "fp32"), "%s", names[i]);
        arena_free(&arena);
    }
}

Test(accelerate_traces, as_many_layers_are_whole_at_once_as_the_program_has_room_for) {
    const int count = trace_names("accelerate", names, MAX_TRACES);
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        trace_read("accelerate", names[i], &trace);
        const StepProgram program = lowered(&arena, trace.request);
        if (is_sharded(&trace)) {
            cr_assert_eq(trace.most_whole_layers, program.buffers[program.units[1].gathered].slots, "%s", names[i]);
        }
        arena_free(&arena);
    }
}

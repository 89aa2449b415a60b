// The lowering of target accelerate against recorded steps of accelerate itself, version by version: every collective
// in issue order, with kind, axes, bytes, dtype, phase and layer; and what a rank holds.

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/parity/frameworks/compare.h"

enum { MAX_TRACES = 64 };

static const char *const folders[] = {"accelerate-1.14", "accelerate-1.15"};
enum { FOLDERS = sizeof folders / sizeof folders[0] };

static bool is_compared(const Trace *trace) {
    return !trace->request.tied && (trace_is_sharded(trace) || trace_size(trace, AXIS_TP) > 1);
}

// Tensor parallelism without sharding mixes plain tensors (norms, embedding and head) with DTensors: torch 2.11 refuses
// to clip them together, so the recorded step does not clip.
static int tensor_parallelism_alone_is_not_clipped(Trace *trace) {
    const TraceEvent norm = {.phase = "optimizer", .kind = "all_reduce", .axes = "tp", .bytes = 4, .dtype = "fp32"};
    if (trace_is_sharded(trace)) {
        return 0;
    }
    for (int i = 0; i < trace->list.count; i++) {
        cr_assert(!trace_is(trace->list.events[i].phase, "optimizer"), "%s clips", trace->name);
    }
    trace_insert(&trace->list, trace->list.count, &norm);
    return 1;
}

static bool is_tp_alone(const Trace *trace) {
    return !trace_is_sharded(trace);
}

// Under autocast (tensor parallelism alone, fp32 weights) the gradient that a projection's input hook reduces is fp32;
// ours is bf16.
static int autocast_reduces_input_gradients_in_fp32(Trace *trace) {
    int changed = 0;
    for (int i = 0; i < trace->list.count; i++) {
        TraceEvent *event = &trace->list.events[i];
        if (trace->request.bf16 && trace_is(event->axes, "tp") && trace_is(event->phase, "backward") &&
            trace_is(event->dtype, "fp32")) {
            event->bytes /= 2;
            snprintf(event->dtype, sizeof event->dtype, "bf16");
            changed++;
        }
    }
    return changed;
}

static bool is_autocast(const Trace *trace) {
    return !trace_is_sharded(trace) && trace->request.bf16 && !trace->loads_bf16;
}

Test(accelerate_traces, a_step_issues_the_same_collectives_in_the_same_order) {
    static const KnownDifference known[] = {
        {"the embedding is gathered after layer 0", embedding_is_gathered_after_layer_0, prefetches_embedding},
        {"norms are reduced apart", norms_are_reduced_apart, trace_is_sharded},
        {"the loss is averaged last", loss_is_averaged_last, trace_is_sharded},
        {"tensor parallelism alone is not clipped", tensor_parallelism_alone_is_not_clipped, is_tp_alone},
        {"autocast reduces input gradients in fp32", autocast_reduces_input_gradients_in_fp32, is_autocast},
    };
    for (int f = 0; f < FOLDERS; f++) {
        traces_compare(&(Comparison){folders[f], is_compared, known, sizeof known / sizeof known[0], 20});
    }
}

static char names[MAX_TRACES][TRACE_NAME];
static Trace trace;
static EventList ours;

static void lower_trace(const char *folder, const char *name, Arena *arena) {
    trace_read(folder, name, &trace);
    const StepProgram program = lowered(arena, trace.request);
    trace_of_program(&program, &ours);
}

// accelerate 1.14 puts [final norm, embedding] into a unit of their own and forgets that the head is the same tensor:
// the root shards it once more. Both are gathered as the step begins and kept. Ours gathers the embedding twice
// (forward, backward) and the norm once: the same gathers in bytes, half the reduction.
Test(accelerate_traces, a_tied_head_is_sharded_twice_by_accelerate_and_once_by_us) {
    const int64_t table = 1024 * 256 * 2, norm = 256 * 2;  // bf16
    const int64_t layers = 4 * (int64_t)1573888;
    const char *const tied[] = {"shard4_tied", "shard4_tied_ram_efficient"};
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        lower_trace("accelerate-1.14", tied[i], &arena);
        cr_assert_eq(trace_bytes(&trace.list, "forward", "all_gather") - layers, 2 * table + norm);
        cr_assert_eq(trace_bytes(&trace.list, "backward", "all_gather") - layers, 0);
        cr_assert_eq(trace_bytes(&trace.list, "backward", "reduce_scatter") - layers, 2 * table + norm);
        cr_assert_eq(trace_bytes(&ours, "forward", "all_gather") - layers, table + norm);
        cr_assert_eq(trace_bytes(&ours, "backward", "all_gather") - layers, table);
        cr_assert_eq(trace_bytes(&ours, "backward", "reduce_scatter") - layers, table + norm);
        arena_free(&arena);
    }
}

// Replicas without shards are DDP: gradients in fp32 as the weights, in buckets of 1 and then 25 MB, once per step; and
// the buffers of the model (rotary tables) are broadcast before each forward. Ours reduces unit by unit.
Test(accelerate_traces, replicas_alone_reduce_the_same_gradient_bytes_in_fp32) {
    const char *const replicas[] = {"replicate4", "replicate4_accumulate"};
    for (int i = 0; i < 2 * FOLDERS; i++) {
        Arena arena = {0};
        lower_trace(folders[i / 2], replicas[i % 2], &arena);
        cr_assert_eq(trace_bytes(&trace.list, "backward", "all_reduce"), trace.parameter_bytes);
        cr_assert_eq(trace_bytes(&ours, "backward", "all_reduce"), trace.parameter_bytes);
        cr_assert_lt(trace_bytes(&trace.list, "forward", "broadcast"), 1024);
        arena_free(&arena);
    }
}

// ---- what a rank holds

// Except where tensor parallelism met weights that were loaded in bf16: accelerate's upcast assigns .data, which a
// DTensor's local part does not follow. Those runs have neither fp32 master nor fp32 moments, whatever mixed_precision
// says.
static int halves_of(const Trace *given) {
    return trace_size(given, AXIS_TP) > 1 && given->loads_bf16 ? 2 : 1;
}

static void check_held(const char *name) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, trace.request);
    const Held held = program_holds(&program);
    // The root's copy of a tied head belongs to no optimizer: it has no moments.
    const bool older = trace_is(trace.target, "accelerate@1.14");
    const int64_t twice_tied = older && trace_is(name, "shard4_tied") ? 1024 * 256 * 4 / 4 : 0;
    const int halves = halves_of(&trace);
    cr_expect_eq(halves * trace.parameter_bytes, held.master_bytes + twice_tied, "%s %s: %lld and %lld", trace.target,
                 name, (long long)trace.parameter_bytes, (long long)held.master_bytes);
    cr_expect_eq(halves * trace.moment_bytes, held.moment_bytes, "%s %s: %lld and %lld", trace.target, name,
                 (long long)trace.moment_bytes, (long long)held.moment_bytes);
    cr_expect(trace_is(trace.parameter_dtype, halves == 2 ? "bf16" : "fp32"), "%s %s", trace.target, name);
    arena_free(&arena);
}

static void for_every_trace(void (*check)(const char *name)) {
    for (int f = 0; f < FOLDERS; f++) {
        const int count = trace_names(folders[f], names, MAX_TRACES);
        for (int i = 0; i < count; i++) {
            trace_read(folders[f], names[i], &trace);
            check(names[i]);
        }
    }
}

Test(accelerate_traces, parameters_and_moments_of_a_rank_have_the_bytes_of_the_program) {
    for_every_trace(check_held);
}

static void check_whole_layers(const char *name) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, trace.request);
    if (trace_is_sharded(&trace)) {
        const int32_t gathered = program.units[1].gathered;
        cr_assert_eq(trace.most_whole_layers, program.buffers[gathered].slots, "%s", name);
    }
    arena_free(&arena);
}

Test(accelerate_traces, as_many_layers_are_whole_at_once_as_the_program_has_room_for) {
    for_every_trace(check_whole_layers);
}

// ---- what lives from one part of the step to the next

static void check_kept(const char *name) {
    Arena arena = {0};
    const bool checked = trace.kept_bytes_per_layer >= 0 && trace.request.recompute == RECOMPUTE_FULL;
    if (checked) {
        const StepProgram program = lowered(&arena, trace.request);
        cr_expect_eq(trace.kept_bytes_per_layer, program_holds(&program).kept_bytes_per_layer, "%s %s: %lld and %lld",
                     trace.target, name, (long long)trace.kept_bytes_per_layer,
                     (long long)program_holds(&program).kept_bytes_per_layer);
    }
    arena_free(&arena);
}

Test(accelerate_traces, a_recomputed_layer_keeps_the_bytes_of_the_program) {
    for_every_trace(check_kept);
}

static void check_gradients(const char *name) {
    Arena arena = {0};
    const int last = trace.gradient_count - 1;
    if (last >= 0 && trace_is_sharded(&trace) && !trace.request.tied) {
        const StepProgram program = lowered(&arena, trace.request);
        const Held held = program_holds(&program);
        cr_expect_eq(halves_of(&trace) * trace.shard_gradient_bytes[last], held.gradient_shard_bytes,
                     "%s %s: shards of %lld and %lld", trace.target, name, (long long)trace.shard_gradient_bytes[last],
                     (long long)held.gradient_shard_bytes);
        if (last > 0 && !trace.syncs_each_batch) {
            cr_expect_eq(trace.whole_gradient_bytes[0], held.whole_gradient_bytes, "%s %s: whole ones of %lld and %lld",
                         trace.target, name, (long long)trace.whole_gradient_bytes[0],
                         (long long)held.whole_gradient_bytes);
        }
        if (trace.syncs_each_batch) {
            cr_expect_eq(trace.whole_gradient_bytes[0], 0, "%s %s", trace.target, name);
        }
    }
    arena_free(&arena);
}

Test(accelerate_traces, gradients_between_micro_steps_have_the_bytes_of_the_program) {
    for_every_trace(check_gradients);
}

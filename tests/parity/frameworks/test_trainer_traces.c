// The lowering of targets trainer and trl against recorded steps of Trainer.train() and SFTTrainer.train(): every
// collective in issue order, and what a rank holds.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/parity/frameworks/compare.h"

enum { MAX_TRACES = 64 };

static const char *const folders[] = {"trainer-5.23", "trl-1.16"};
enum { FOLDERS = sizeof folders / sizeof folders[0] };

// TRL's loss gathers the head's weights over tp, where the Trainer gathers logits: its target refuses tp.
static bool is_refused(const Trace *trace) {
    return strncmp(trace->target, "trl", strlen("trl")) == 0 && trace_size(trace, AXIS_TP) > 1;
}

static bool is_compared(const Trace *trace) {
    return !is_refused(trace) && (trace_is_sharded(trace) || trace_size(trace, AXIS_TP) > 1);
}

// A step begins by gathering how many tokens count on each rank; TRL gathers its metrics with every loss.
static int tokens_are_counted(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 0; i < list->count; i++) {
        if (trace_is(list->events[i].origin, "token count") || trace_is(list->events[i].origin, "metrics")) {
            trace_remove(list, i--);
            changed++;
        }
    }
    return changed;
}

static bool has_tp(const Trace *trace) {
    return trace_size(trace, AXIS_TP) > 1;
}

static bool spreads_experts(const Trace *trace) {
    return trace_size(trace, AXIS_EP) > 1;
}

static bool on_several_meshes(const Trace *trace) {
    return has_tp(trace) || spreads_experts(trace);
}

// With tensor parallelism parameters are on several meshes (matrices on shards x tp, norms on shards), with expert
// parallelism too (these on efsdp x ep), and the norm of each mesh is reduced axis by axis; ours is one scalar over all
// axes at once.
static int norms_of_each_mesh_are_reduced_apart(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 0; i < list->count && on_several_meshes(trace); i++) {
        if (!trace_is(list->events[i].origin, "clip")) {
            continue;
        }
        if (changed > 0) {
            trace_remove(list, i--);
            continue;
        }
        TraceEvent *event = &list->events[i];
        snprintf(event->axes, sizeof event->axes, "%s",
                 !has_tp(trace)            ? "dp_shard"
                 : trace_is_sharded(trace) ? "dp_shard+tp"
                                           : "tp");
        event->bytes = 4;
        snprintf(event->dtype, sizeof event->dtype, "fp32");
        changed++;
    }
    return changed;
}

static bool is_on_one_mesh(const Trace *trace) {
    return !on_several_meshes(trace);
}

static bool is_tp_alone(const Trace *trace) {
    return has_tp(trace) && !trace_is_sharded(trace);
}

// Without sharding every tp rank holds the norms whole, as plain tensors: their equal gradients are averaged over all
// ranks. Ours takes them as they are.
static int gradients_of_norms_are_averaged(Trace *trace) {
    EventList *list = &trace->list;
    const int element = trace_is(trace->parameter_dtype, "bf16") ? 2 : 4;
    int changed = 0;
    for (int i = 0; i < list->count; i++) {
        if (trace_is(list->events[i].origin, "whole parameter")) {
            cr_assert_eq(list->events[i].bytes, 256 * element, "%s", trace->name);
            trace_remove(list, i--);
            changed++;
        }
    }
    return changed;
}

// Under autocast (fp32 weights, no sharding) the embedding and the gradients that projections take in are fp32; ours
// are bf16.
static int autocast_reduces_in_fp32(Trace *trace) {
    int changed = 0;
    for (int i = 0; i < trace->list.count && is_tp_alone(trace) && trace->request.bf16; i++) {
        TraceEvent *event = &trace->list.events[i];
        if (trace_is(event->axes, "tp") && trace_is(event->dtype, "fp32") && !trace_is(event->phase, "optimizer")) {
            event->bytes /= 2;
            snprintf(event->dtype, sizeof event->dtype, "bf16");
            changed++;
        }
    }
    return changed;
}

static bool is_autocast(const Trace *trace) {
    return is_tp_alone(trace) && trace->request.bf16 && !trace->loads_bf16;
}

static int one_vector_of_norms(Trace *trace) {
    return on_several_meshes(trace) ? 0 : norms_are_reduced_apart(trace);
}

static bool always(const Trace *trace) {
    (void)trace;
    return true;
}

static bool has_data_ranks(const Trace *trace) {
    return trace_size(trace, AXIS_DP_REPLICATE) * trace_size(trace, AXIS_DP_SHARD) * trace_size(trace, AXIS_CP) > 1;
}

Test(trainer_traces, a_step_issues_the_same_collectives_in_the_same_order) {
    static const KnownDifference known[] = {
        {"tokens are counted", tokens_are_counted, always},
        {"the embedding is gathered after layer 0", embedding_is_gathered_after_layer_0, prefetches_embedding},
        {"norms are reduced apart", one_vector_of_norms, is_on_one_mesh},
        {"norms of each mesh are reduced apart", norms_of_each_mesh_are_reduced_apart, on_several_meshes},
        {"counts are in 64 bits", counts_are_in_64_bits, spreads_experts},
        {"gradients of norms are averaged", gradients_of_norms_are_averaged, is_tp_alone},
        {"autocast reduces in fp32", autocast_reduces_in_fp32, is_autocast},
        {"the loss is not summed", loss_is_summed_elsewhere, has_data_ranks},
    };
    for (int f = 0; f < FOLDERS; f++) {
        traces_compare(&(Comparison){folders[f], is_compared, known, sizeof known / sizeof known[0], 4});
    }
}

// ---- what a rank holds

static char names[MAX_TRACES][TRACE_NAME];
static Trace trace;

static void for_traces_of(const char *folder, void (*check)(const Held *held)) {
    const int count = trace_names(folder, names, MAX_TRACES);
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        trace_read(folder, names[i], &trace);
        if (is_refused(&trace)) {
            continue;
        }
        const StepProgram program = lowered(&arena, trace.request);
        const Held held = program_holds(&program);
        check(&held);
        arena_free(&arena);
    }
}

static void for_every_trace(void (*check)(const Held *held)) {
    for (int f = 0; f < FOLDERS; f++) {
        for_traces_of(folders[f], check);
    }
}

// A model loaded in bf16 and split by tp alone is trained as it is: no fp32 masters are created.
static int halves_of(const Trace *given) {
    return is_tp_alone(given) && given->loads_bf16 ? 2 : 1;
}

static void check_states(const Held *held) {
    const int halves = halves_of(&trace);
    cr_expect_eq(halves * trace.parameter_bytes, held->master_bytes, "%s: weights of %lld and %lld", trace.name,
                 (long long)trace.parameter_bytes, (long long)held->master_bytes);
    cr_expect_eq(halves * trace.moment_bytes, held->moment_bytes, "%s: moments of %lld and %lld", trace.name,
                 (long long)trace.moment_bytes, (long long)held->moment_bytes);
}

Test(trainer_traces, parameters_and_moments_of_a_rank_have_the_bytes_of_the_program) {
    for_every_trace(check_states);
}

// DTensor's gradient of a split embedding is that of the whole table, on every rank, until it is reduced; ours has the
// rank's own rows.
static int64_t other_rows_of_the_embedding(void) {
    const int64_t table = (int64_t)1024 * 256 * 4;
    return table - table / trace_size(&trace, AXIS_TP);
}

static void check_gradients(const Held *held) {
    const int last = trace.gradient_count - 1;
    if (!trace_is_sharded(&trace)) {
        return;
    }
    cr_expect_eq(trace.shard_gradient_bytes[last], held->gradient_shard_bytes, "%s: shards of %lld and %lld",
                 trace.name, (long long)trace.shard_gradient_bytes[last], (long long)held->gradient_shard_bytes);
    const bool shards_first = has_tp(&trace) && trace_size(&trace, AXIS_DP_REPLICATE) > 1;
    const int64_t whole = held->whole_gradient_bytes + other_rows_of_the_embedding();
    const int64_t expected = trace.syncs_each_batch || shards_first ? 0 : whole;
    cr_expect_eq(last > 0 ? trace.whole_gradient_bytes[0] : expected, expected, "%s: whole ones of %lld and %lld",
                 trace.name, (long long)trace.whole_gradient_bytes[0], (long long)expected);
}

Test(trainer_traces, gradients_between_micro_steps_have_the_bytes_of_the_program) {
    for_every_trace(check_gradients);
}

static void check_kept(const Held *held) {
    if (trace.request.recompute == RECOMPUTE_FULL) {
        cr_expect_eq(trace.kept_bytes_per_layer, held->kept_bytes_per_layer, "%s: %lld and %lld", trace.name,
                     (long long)trace.kept_bytes_per_layer, (long long)held->kept_bytes_per_layer);
    }
}

Test(trainer_traces, a_recomputed_layer_keeps_the_bytes_of_the_program) {
    for_every_trace(check_kept);
}

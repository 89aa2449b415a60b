// The lowering of target automodel against recorded steps of Automodel's own sharding and recipe (trace_automodel.py):
// every collective in issue order, and what a rank holds.

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/parity/frameworks/compare.h"

enum { MAX_TRACES = 64 };

static const char folder[] = "automodel-0.7";

static bool always(const Trace *trace) {
    (void)trace;
    return true;
}

static bool has_tp(const Trace *trace) {
    return trace_size(trace, AXIS_TP) > 1;
}

// A step begins by counting its tokens, with and without padding, and ends by summing its loss.
static int tokens_are_counted(Trace *trace) {
    int changed = 0;
    for (int i = 0; i < trace->list.count; i++) {
        if (trace_is(trace->list.events[i].origin, "token count")) {
            trace_remove(&trace->list, i--);
            changed++;
        }
    }
    return changed;
}

// The final norm is all that is left to the root unit; ours is one with the head.
static int final_norm_is_a_unit(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 0; i < list->count; i++) {
        const TraceEvent norm = list->events[i];
        if (!trace_is(norm.place, "root")) {
            continue;
        }
        for (int k = 0; k < list->count; k++) {
            TraceEvent *head = &list->events[k];
            head->bytes += trace_is(head->place, "head") && trace_is(head->kind, norm.kind) &&
                                   trace_is(head->phase, norm.phase) && trace_is(head->axes, norm.axes) &&
                                   head->micro_batch == norm.micro_batch
                               ? norm.bytes
                               : 0;
        }
        trace_remove(list, i--);
        changed++;
    }
    return changed;
}

// The squares of the gradients of each group of parameters are summed in fp64, axis by axis; ours are one fp32 number.
static int norms_of_groups_are_reduced_apart(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 0; i < list->count; i++) {
        TraceEvent *event = &list->events[i];
        if (!trace_is(event->origin, "clip")) {
            continue;
        }
        if (changed++ > 0) {
            trace_remove(list, i--);
            continue;
        }
        snprintf(event->axes, sizeof event->axes, "%s", has_tp(trace) ? "dp_shard+tp" : "dp_shard");
        snprintf(event->dtype, sizeof event->dtype, "fp32");
        event->bytes = 4;
    }
    return changed;
}

// The loss upcasts logits before it asks for all of them; ours are gathered in bf16.
static int logits_are_gathered_in_fp32(Trace *trace) {
    int changed = 0;
    for (int i = 0; i < trace->list.count; i++) {
        TraceEvent *event = &trace->list.events[i];
        if (trace_is(event->axes, "tp") && trace_is(event->kind, "all_gather") && trace_is(event->dtype, "fp32")) {
            event->bytes /= 2;
            snprintf(event->dtype, sizeof event->dtype, "bf16");
            snprintf(event->place, sizeof event->place, "head");
            changed++;
        }
    }
    return changed;
}

// Behind backward the gradients of norms, equal on all tp ranks, are averaged over them, and which of them are there.
static int gradients_of_norms_are_averaged(Trace *trace) {
    int changed = 0;
    for (int i = 0; i < trace->list.count; i++) {
        const TraceEvent *event = &trace->list.events[i];
        if (trace_is(event->phase, "optimizer") && trace_is(event->axes, "tp") &&
            trace_is(event->origin, "tensor parallel")) {
            trace_remove(&trace->list, i--);
            changed++;
        }
    }
    return changed;
}

Test(automodel_traces, a_step_issues_the_same_collectives_in_the_same_order) {
    static const KnownDifference known[] = {
        {"tokens are counted", tokens_are_counted, always},
        {"the final norm is a unit", final_norm_is_a_unit, always},
        {"the embedding is gathered after layer 0", embedding_is_gathered_after_layer_0, prefetches_embedding},
        {"logits are gathered in fp32", logits_are_gathered_in_fp32, has_tp},
        {"gradients of norms are averaged", gradients_of_norms_are_averaged, has_tp},
        {"norms of groups are reduced apart", norms_of_groups_are_reduced_apart, always},
        {"the loss is summed elsewhere", loss_is_summed_elsewhere, always},
    };
    traces_compare(&(Comparison){folder, always, known, sizeof known / sizeof known[0], 10});
}

static char names[MAX_TRACES][TRACE_NAME];
static Trace trace;

static void for_every_trace(void (*check)(const Held *held)) {
    const int count = trace_names(folder, names, MAX_TRACES);
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        trace_read(folder, names[i], &trace);
        const StepProgram program = lowered(&arena, trace.request);
        const Held held = program_holds(&program);
        check(&held);
        arena_free(&arena);
    }
}

// A shard of a unit begins at a multiple of STEP_ALIGN_BYTES: ours may be that much longer for each of the three units.
static bool holds(int64_t ours, int64_t theirs, int states) {
    return ours >= theirs && ours - theirs < (int64_t)3 * states * STEP_ALIGN_BYTES;
}

static void check_states(const Held *held) {
    cr_expect(holds(held->master_bytes, trace.parameter_bytes, 1), "%s: weights of %lld and %lld", trace.name,
              (long long)trace.parameter_bytes, (long long)held->master_bytes);
    cr_expect(holds(held->moment_bytes, trace.moment_bytes, 2), "%s: moments of %lld and %lld", trace.name,
              (long long)trace.moment_bytes, (long long)held->moment_bytes);
    cr_expect_str_eq(trace.parameter_dtype, "fp32");
}

Test(automodel_traces, parameters_and_moments_of_a_rank_have_the_bytes_of_the_program) {
    for_every_trace(check_states);
}

static void check_gradients(const Held *held) {
    const int last = trace.gradient_count - 1;
    cr_expect(holds(held->gradient_shard_bytes, trace.shard_gradient_bytes[last], 1), "%s: shards of %lld and %lld",
              trace.name, (long long)trace.shard_gradient_bytes[last], (long long)held->gradient_shard_bytes);
    const int64_t whole = trace.syncs_each_batch || last == 0 ? 0 : held->whole_gradient_bytes;
    cr_expect(holds(whole, last > 0 ? trace.whole_gradient_bytes[0] : 0, 4), "%s: whole ones of %lld and %lld",
              trace.name, (long long)trace.whole_gradient_bytes[0], (long long)whole);
}

Test(automodel_traces, gradients_between_micro_steps_have_the_bytes_of_the_program) {
    for_every_trace(check_gradients);
}

static void check_kept(const Held *held) {
    cr_expect(trace.request.recompute != RECOMPUTE_FULL || trace.kept_bytes_per_layer == held->kept_bytes_per_layer,
              "%s: %lld and %lld", trace.name, (long long)trace.kept_bytes_per_layer,
              (long long)held->kept_bytes_per_layer);
}

Test(automodel_traces, a_recomputed_layer_keeps_the_bytes_of_the_program) {
    for_every_trace(check_kept);
}

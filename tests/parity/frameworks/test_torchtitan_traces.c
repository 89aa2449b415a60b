// The lowering of targets torchtitan@0.2 and @0.3 against recorded steps of torchtitan 0.2.2 and 0.3.0.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/parity/frameworks/compare.h"

static bool has_tp(const Trace *trace) {
    return trace_size(trace, AXIS_TP) > 1;
}

static bool is_compared(const Trace *trace) {
    return trace_is_sharded(trace) || has_tp(trace);
}

static bool always(const Trace *trace) {
    (void)trace;
    return true;
}

static bool has_data_ranks(const Trace *trace) {
    return trace_size(trace, AXIS_DP_REPLICATE) * trace_size(trace, AXIS_DP_SHARD) > 1;
}

// A step begins by summing the number of tokens that count.
static int tokens_are_counted(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 0; i < list->count; i++) {
        if (trace_is(list->events[i].origin, "token count")) {
            trace_remove(list, i--);
            changed++;
        }
    }
    return changed;
}

static bool is_tp_sum(const TraceEvent *event, const char *phase, const char *dtype) {
    return trace_is(event->axes, "tp") && trace_is(event->kind, "all_reduce") && trace_is(event->phase, phase) &&
           trace_is(event->dtype, dtype);
}

// Loss parallelism sums the exponentials and then the targets' logits; ours sums both at once (lower_tensor.c).
static int loss_sums_are_reduced_apart(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 2; i < list->count; i++) {
        const TraceEvent *event = &list->events[i];
        if (is_tp_sum(event, "forward", "fp32") && is_tp_sum(event - 1, "forward", "fp32") &&
            is_tp_sum(event - 2, "forward", "fp32")) {
            list->events[i - 1].bytes *= 2;
            trace_remove(list, i--);
            changed++;
        }
    }
    return changed;
}

// FSDP redistributes the partial gradient of each norm by itself, before the cast to the reduction's dtype; ours sums
// the norms of a unit at once in that dtype (emit_norm_gradient_sum in lower_sharding.c). Latency only.
static int norm_gradients_are_summed_apart_in_bf16(Trace *trace) {
    EventList *list = &trace->list;
    const int64_t norm = 256 * 2;
    int changed = 0;
    for (int i = 0; i < list->count; i++) {
        TraceEvent *event = &list->events[i];
        if (!is_tp_sum(event, "backward", "bf16") || event->bytes != norm) {
            continue;
        }
        event->bytes *= 2;
        snprintf(event->dtype, sizeof event->dtype, "fp32");
        if (is_tp_sum(event - 1, "backward", "fp32")) {
            list->events[i - 1].bytes += event->bytes;
            trace_remove(list, i--);
        }
        changed++;
    }
    return changed;
}

Test(torchtitan_traces, a_step_issues_the_same_collectives_in_the_same_order) {
    static const KnownDifference known[] = {
        {"the embedding is gathered after layer 0", embedding_is_gathered_after_layer_0, prefetches_embedding},
        {"norms are reduced apart", norms_are_reduced_apart, always},
        {"loss sums are reduced apart", loss_sums_are_reduced_apart, has_tp},
        {"norm gradients are summed apart in bf16", norm_gradients_are_summed_apart_in_bf16, has_tp},
        {"tokens are counted", tokens_are_counted, has_data_ranks},
        // every tenth step
        {"the loss is summed when it is logged", loss_is_summed_elsewhere, trace_is_sharded},
    };
    traces_compare(&(Comparison){"torchtitan-0.2", is_compared, known, sizeof known / sizeof known[0], 15});
}

static int64_t gradient_bytes(const EventList *list, int micro_batch) {
    int64_t bytes = 0;
    for (int i = 0; i < list->count; i++) {
        const TraceEvent *event = &list->events[i];
        const bool sum = trace_is(event->kind, "all_reduce") && trace_is(event->phase, "backward");
        bytes += sum && event->micro_batch == micro_batch ? event->bytes : 0;
    }
    return bytes;
}

// torchtitan's DDP never enters no_sync: each micro-step reduces every fp32 gradient.
Test(torchtitan_traces, replicas_alone_reduce_all_gradients_on_every_micro_step) {
    static Trace trace;
    static EventList ours;
    Arena arena = {0};
    trace_read("torchtitan-0.2", "replicate4_accumulate", &trace);
    const StepProgram program = lowered(&arena, trace.request);
    trace_of_program(&program, &ours);
    for (int micro_batch = 0; micro_batch < 2; micro_batch++) {
        cr_assert_eq(gradient_bytes(&trace.list, micro_batch), trace.parameter_bytes, "micro-step %d", micro_batch);
        cr_assert_eq(gradient_bytes(&ours, micro_batch), trace.parameter_bytes, "micro-step %d", micro_batch);
    }
    arena_free(&arena);
}

// ---- 0.3

static bool trains_a_chunked_head(const Trace *trace) {
    return trace->request.loss == LOSS_CHUNKED && trace->request.finetune == FINETUNE_FULL;
}

static bool is_head(const TraceEvent *event, const char *kind) {
    return trace_is(event->place, "head") && trace_is(event->kind, kind) && !trace_is(event->axes, "tp");
}

// The head's gradient is reduced after the last part, the norm's when backward reaches it; ours are one unit.
static int head_is_reduced_before_the_norm(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int kind = 0; kind < 2; kind++) {
        const char *name = kind ? "all_reduce" : "reduce_scatter";
        for (int i = 0; i < list->count; i++) {
            const TraceEvent head = list->events[i];
            int norm = i + 1;
            while (norm < list->count && !is_head(&list->events[norm], name)) {
                norm++;
            }
            if (is_head(&head, name) && trace_is(head.origin, "fsdp reduce") && norm < list->count &&
                list->events[norm].micro_batch == head.micro_batch && list->events[norm].bytes < head.bytes) {
                list->events[norm].bytes += head.bytes;
                trace_remove(list, i--);
                changed++;
            }
        }
    }
    return changed;
}

// As above, of each part of the loss.
static int sums_of_every_part_are_reduced_apart(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 0; i + 2 < list->count; i++) {
        const TraceEvent *event = &list->events[i];
        if (is_tp_sum(event, "forward", "fp32") && is_tp_sum(event + 1, "forward", "fp32") &&
            is_tp_sum(event + 2, "forward", "fp32")) {
            list->events[i + 1].bytes *= 2;
            trace_remove(list, i + 2);
            i++;
            changed++;
        }
    }
    return changed;
}

// The two norms of a layer, in the reduction's dtype; ours are summed at once.
static int norm_gradients_are_summed_apart(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 1; i < list->count; i++) {
        const TraceEvent *event = &list->events[i];
        if (is_tp_sum(event, "backward", "fp32") && is_tp_sum(event - 1, "backward", "fp32")) {
            list->events[i - 1].bytes += event->bytes;
            trace_remove(list, i--);
            changed++;
        }
    }
    return changed;
}

static bool has_cp(const Trace *trace) {
    return trace_size(trace, AXIS_CP) > 1;
}

// K and V are gathered one after the other, and their gradients are reduced so; ours are one message.
static int keys_and_values_move_apart(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 1; i < list->count; i++) {
        TraceEvent *event = &list->events[i - 1];
        const TraceEvent *next = &list->events[i];
        if (trace_is(event->axes, "cp") && trace_is(event->origin, "tensor parallel") &&
            trace_is(next->origin, event->origin) && trace_is(next->kind, event->kind)) {
            event->bytes += next->bytes;
            trace_remove(list, i);
            changed++;
        }
    }
    return changed;
}

// Two matrices less in a layer than the other traces have: q, k and v are one. Of adapters: two for each of the five.
static int norms_of_fused_layers_are_reduced_apart(Trace *trace) {
    if (trace_size(trace, AXIS_EP) > 1) {
        return 0;
    }
    const int trained = trace->request.finetune == FINETUNE_LORA ? 10 * trace->layers : 7 * trace->layers + 3;
    for (int i = 0; i < trace->list.count; i++) {
        TraceEvent *event = &trace->list.events[i];
        if (trace_is(event->origin, "clip")) {
            cr_assert_eq(event->bytes, trained * 4, "%s", trace->name);
            event->bytes = (9 * trace->layers + 3) * 4;
        }
    }
    return norms_are_reduced_apart(trace);
}

// ---- ranks of experts

static bool spreads_experts(const Trace *trace) {
    return trace_size(trace, AXIS_EP) > 1;
}

static bool shards_experts(const Trace *trace) {
    return spreads_experts(trace) && trace_size(trace, AXIS_EP) < trace_size(trace, AXIS_DP_SHARD);
}

static bool has_no_ranks_of_experts(const Trace *trace) {
    return is_compared(trace) && !spreads_experts(trace);
}

static void swap_with_next(EventList *list, int at) {
    const TraceEvent event = list->events[at];
    list->events[at] = list->events[at + 1];
    list->events[at + 1] = event;
}

// set_modules_to_forward_prefetch: the next layer is gathered as this one begins; ours as it ends, on its own lane.
static int next_layer_is_gathered_before_tokens_go(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = list->count - 2; i >= 0; i--) {
        for (int k = i; k + 1 < list->count; k++) {
            const TraceEvent *event = &list->events[k], *next = event + 1;
            if (!trace_is(event->phase, "forward") || !trace_is(event->origin, "fsdp gather") ||
                !trace_is(next->phase, "forward") || !trace_is(next->axes, "ep") ||
                trace_is(event->place, next->place)) {
                break;
            }
            swap_with_next(list, k);
            changed++;
        }
    }
    return changed;
}

// Of a block's two groups of parameters backward takes the experts' first; ours are in one order always.
static int experts_come_before_the_rest(Trace *trace) {
    EventList *list = &trace->list;
    int changed = 0;
    for (int i = 0; i + 1 < list->count; i++) {
        const TraceEvent *event = &list->events[i], *next = event + 1;
        if (trace_is(event->phase, "backward") && trace_is(event->axes, "efsdp") && trace_is(next->axes, "dp_shard") &&
            trace_is(event->kind, next->kind) && trace_is(event->place, next->place)) {
            swap_with_next(list, i);
            changed++;
        }
    }
    return changed;
}

// Those of the experts' three matrices, then the others: norms, q, k and v as one, out, router of a layer.
static int norms_of_experts_are_reduced_apart(Trace *trace) {
    EventList *list = &trace->list;
    const int64_t bytes[] = {3 * trace->layers * 4, (5 * trace->layers + 3) * 4};
    int changed = 0;
    for (int i = 0; spreads_experts(trace) && i < list->count; i++) {
        TraceEvent *event = &list->events[i];
        if (!trace_is(event->origin, "clip")) {
            continue;
        }
        cr_assert_lt(changed, 2);
        cr_assert_eq(event->bytes, bytes[changed], "%s: %lld bytes", trace->name, (long long)event->bytes);
        event->bytes = 4;
        if (changed++ > 0) {
            trace_remove(list, i--);
        }
    }
    return changed;
}

static bool has_adapters_and_tp(const Trace *trace) {
    return has_tp(trace) && trace->request.finetune == FINETUNE_LORA;
}

// A frozen embedding needs no gradient, so layer 0 sends none back; our layers are one loop (lower_frozen.c).
static int layer_0_has_no_input_gradient(Trace *trace) {
    EventList *list = &trace->list;
    for (int i = 0; has_adapters_and_tp(trace) && i < list->count; i++) {
        const TraceEvent *event = &list->events[i];
        if (is_tp_sum(event, "backward", "fp32") && trace_is(event->place, "layer 0")) {
            TraceEvent gradient = *event;
            gradient.bytes = (int64_t)trace->request.micro_batch * trace->request.seq * 256 * 2;
            snprintf(gradient.kind, sizeof gradient.kind, "reduce_scatter");
            snprintf(gradient.dtype, sizeof gradient.dtype, "bf16");
            trace_insert(list, i, &gradient);
            return 1;
        }
    }
    return 0;
}

Test(torchtitan_traces, a_step_of_the_release_issues_the_same_collectives_in_the_same_order) {
    static const KnownDifference known[] = {
        {"head is reduced before the norm", head_is_reduced_before_the_norm, trains_a_chunked_head},
        {"the embedding is gathered after layer 0", embedding_is_gathered_after_layer_0, prefetches_embedding},
        {"norms are reduced apart", norms_of_fused_layers_are_reduced_apart, has_no_ranks_of_experts},
        {"norms of experts are reduced apart", norms_of_experts_are_reduced_apart, spreads_experts},
        {"counts are in 64 bits", counts_are_in_64_bits, spreads_experts},
        {"the next layer is gathered before tokens go", next_layer_is_gathered_before_tokens_go, spreads_experts},
        {"experts come before the rest", experts_come_before_the_rest, shards_experts},
        {"loss sums are reduced apart", sums_of_every_part_are_reduced_apart, has_tp},
        {"norm gradients are summed apart", norm_gradients_are_summed_apart, has_tp},
        {"layer 0 has no input gradient", layer_0_has_no_input_gradient, has_adapters_and_tp},
        {"keys and values move apart", keys_and_values_move_apart, has_cp},
        {"tokens are counted", tokens_are_counted, has_data_ranks},
        {"the loss is summed when it is logged", loss_is_summed_elsewhere, always},
    };
    traces_compare(&(Comparison){"torchtitan-0.3", is_compared, known, sizeof known / sizeof known[0], 20});
}

Test(torchtitan_traces, a_layer_of_the_release_that_is_recomputed_keeps_its_input) {
    static const char *const names[] = {"shard4_recompute", "shard2_tp2_recompute", "shard4_lora_recompute"};
    static Trace trace;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        Arena arena = {0};
        trace_read("torchtitan-0.3", names[i], &trace);
        const StepProgram program = lowered(&arena, trace.request);
        cr_expect_eq(program_holds(&program).kept_bytes_per_layer, trace.kept_bytes_per_layer, "%s: %lld and %lld",
                     names[i], (long long)program_holds(&program).kept_bytes_per_layer,
                     (long long)trace.kept_bytes_per_layer);
        cr_expect_eq(program_holds(&program).moment_bytes, trace.moment_bytes, "%s", names[i]);
        arena_free(&arena);
    }
}

// The lowering of target fsdp1, and of accelerate@1.0 where micro-steps are in no_sync, against recorded steps of
// PyTorch's FSDP version 1.

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/parity/frameworks/compare.h"

enum { MAX_TRACES = 64 };

static bool always(const Trace *trace) {
    (void)trace;
    return true;
}

static bool is_replicas_alone(const Trace *trace) {
    return !trace_is_sharded(trace);
}

// NO_SHARD reduces in the dtype of its mixed precision; ours takes replicas without shards for DDP, in the dtype of the
// masters (tensor_parallel_dims in lower_tensor.c).
static int replicas_alone_are_reduced_in_bf16(Trace *trace) {
    int changed = 0;
    for (int i = 0; is_replicas_alone(trace) && i < trace->list.count; i++) {
        TraceEvent *event = &trace->list.events[i];
        if (trace_is(event->kind, "all_reduce") && trace_is(event->dtype, "bf16")) {
            event->bytes *= 2;
            snprintf(event->dtype, sizeof event->dtype, "fp32");
            changed++;
        }
    }
    return changed;
}

Test(fsdp1_traces, a_step_issues_the_same_collectives_in_the_same_order) {
    static const KnownDifference known[] = {
        {"the loss is summed by the caller", loss_is_summed_elsewhere, always},
        {"replicas alone are reduced in bf16", replicas_alone_are_reduced_in_bf16, is_replicas_alone},
    };
    traces_compare(&(Comparison){"fsdp1-2.0", always, known, sizeof known / sizeof known[0], 11});
}

Test(fsdp1_traces, parameters_and_moments_of_a_rank_have_the_bytes_of_the_program) {
    static char names[MAX_TRACES][TRACE_NAME];
    static Trace trace;
    const int count = trace_names("fsdp1-2.0", names, MAX_TRACES);
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        trace_read("fsdp1-2.0", names[i], &trace);
        const StepProgram program = lowered(&arena, trace.request);
        const Held held = program_holds(&program);
        cr_assert_eq(trace.parameter_bytes, held.master_bytes, "%s", names[i]);
        cr_assert_eq(trace.moment_bytes, held.moment_bytes, "%s", names[i]);
        arena_free(&arena);
    }
}

// The lowering of target axolotl against recorded steps of its own preparation of FSDP2 (trace_axolotl.py): everything
// is bf16, embedding and head sit in the root unit, and a recomputed layer keeps its input.

#include <criterion/criterion.h>

#include "tests/parity/frameworks/compare.h"

enum { MAX_TRACES = 64 };

static const char folder[] = "axolotl-0.19";

static bool always(const Trace *trace) {
    return trace_is_sharded(trace);
}

Test(axolotl_traces, a_step_issues_the_same_collectives_in_the_same_order) {
    static const KnownDifference known[] = {
        {"norms are reduced apart", norms_are_reduced_apart, always},
        {"the loss is averaged last", loss_is_averaged_last, always},
    };
    traces_compare(&(Comparison){folder, always, known, sizeof known / sizeof known[0], 5});
}

static char names[MAX_TRACES][TRACE_NAME];
static Trace trace;

// A shard of a unit begins at a multiple of STEP_ALIGN_BYTES: ours may be that much longer for each of the two kinds of
// units.
static void check_bytes(const char *what, int64_t theirs, int64_t ours, int states) {
    cr_expect(ours >= theirs && ours - theirs < (int64_t)2 * states * STEP_ALIGN_BYTES, "%s %s: %lld and %lld",
              trace.name, what, (long long)theirs, (long long)ours);
}

Test(axolotl_traces, weights_moments_and_gradients_are_bf16_and_of_the_bytes_of_the_program) {
    const int count = trace_names(folder, names, MAX_TRACES);
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        trace_read(folder, names[i], &trace);
        const StepProgram program = lowered(&arena, trace.request);
        const Held held = program_holds(&program);
        const int last = trace.gradient_count - 1;
        cr_expect_str_eq(trace.parameter_dtype, "bf16");
        check_bytes("weights", trace.parameter_bytes, held.master_bytes, 1);
        check_bytes("moments", trace.moment_bytes, held.moment_bytes, 2);
        check_bytes("gradients", trace.shard_gradient_bytes[last], held.gradient_shard_bytes, 1);
        if (last > 0) {
            check_bytes("whole gradients", trace.whole_gradient_bytes[0], held.whole_gradient_bytes, 4);
        }
        arena_free(&arena);
    }
}

Test(axolotl_traces, a_recomputed_layer_keeps_the_bytes_of_the_program) {
    const int count = trace_names(folder, names, MAX_TRACES);
    int checked = 0;
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        trace_read(folder, names[i], &trace);
        if (trace.request.recompute == RECOMPUTE_FULL) {
            const StepProgram program = lowered(&arena, trace.request);
            cr_expect_eq(trace.kept_bytes_per_layer, program_holds(&program).kept_bytes_per_layer, "%s", names[i]);
            checked++;
        }
        arena_free(&arena);
    }
    cr_assert_gt(checked, 0);
}

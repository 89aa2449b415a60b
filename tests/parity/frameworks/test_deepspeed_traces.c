// The lowering of target deepspeed against recorded steps of its engine: what is reduced and gathered, in bytes, dtype
// and on which micro-steps, and what a rank holds. Its reductions travel in buckets of 5e8 parameters and its stage 3
// gathers one parameter after another, ours go by units: bytes are compared, not events.

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/parity/frameworks/compare.h"

enum { MAX_TRACES = 32 };

static const char folder[] = "deepspeed-0.19.8";
static char names[MAX_TRACES][TRACE_NAME];
static Trace trace;
static EventList ours;

typedef void Check(const StepProgram *program);

static void for_every_trace(Check *check, int least) {
    const int count = trace_names(folder, names, MAX_TRACES);
    cr_assert_geq(count, least);
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        trace_read(folder, names[i], &trace);
        const StepProgram program = lowered(&arena, trace.request);
        trace_of_program(&program, &ours);
        check(&program);
        arena_free(&arena);
    }
}

static int stage(void) {
    return trace.request.zero < 0 ? 0 : trace.request.zero;
}

static bool is_reduction(const TraceEvent *event) {
    return trace_is(event->phase, "backward") &&
           (trace_is(event->kind, "all_reduce") || trace_is(event->kind, "reduce_scatter"));
}

// Stage 0 reduces in bf16 too, where ours reduces in fp32, as DDP does with fp32 masters: twice the bytes.
static int64_t reduced_bytes(const EventList *list, int micro_batch) {
    const char *dtype = stage() == 0 && list == &ours ? "fp32" : "bf16";
    int64_t bytes = 0;
    for (int i = 0; i < list->count; i++) {
        const TraceEvent *event = &list->events[i];
        const bool counts = is_reduction(event) && event->micro_batch == micro_batch;
        cr_expect(!counts || trace_is(event->dtype, dtype), "%s: %s", trace.name, event->dtype);
        bytes += counts ? event->bytes : 0;
    }
    return trace_is(dtype, "fp32") ? bytes / 2 : bytes;
}

// Below stage 2 once a step, after the last micro-step: ours is not part of a micro-step there.
static void check_reductions(const StepProgram *program) {
    const int count = program->plan.grad_accum;
    int64_t theirs = 0, own = 0;
    for (int micro = 0; micro < count; micro++) {
        const int64_t reduced = reduced_bytes(&trace.list, micro);
        theirs += reduced;
        own += reduced_bytes(&ours, micro);
        cr_expect_eq(reduced > 0, stage() >= 2 || micro == count - 1, "%s, micro-step %d", trace.name, micro);
        cr_expect(stage() < 2 || theirs == own, "%s, micro-step %d: %lld and %lld", trace.name, micro,
                  (long long)theirs, (long long)own);
    }
    cr_expect_eq(theirs, own, "%s: %lld and %lld", trace.name, (long long)theirs, (long long)own);
}

Test(deepspeed_traces, gradients_are_reduced_in_bf16_on_the_same_micro_steps) {
    for_every_trace(check_reductions, 12);
}

// use_multi_rank_bucket_allreduce (zero/config.py) is on: stages 1 and 2 reduce a bucket whole, and each rank takes its
// part. Ours scatters, and is priced as what they do.
static void check_kind(const StepProgram *program) {
    const bool partly = stage() == 1 || stage() == 2;
    for (int i = 0; i < trace.list.count; i++) {
        if (is_reduction(&trace.list.events[i])) {
            cr_expect_str_eq(trace.list.events[i].kind, stage() == 3 ? "reduce_scatter" : "all_reduce", "%s",
                             trace.name);
        }
    }
    cr_expect(!partly || program->target->runtime.scatters_by_all_reduce, "%s", trace.name);
}

Test(deepspeed_traces, stages_1_and_2_reduce_to_shards_by_all_reduces) {
    for_every_trace(check_kind, 12);
}

static int64_t gathered_bytes(const EventList *list) {
    static const char *const phases[] = {"forward", "recompute", "backward", "optimizer"};
    int64_t bytes = 0;
    for (int p = 0; p < 4; p++) {
        bytes += trace_bytes(list, phases[p], "all_gather");
    }
    return bytes;
}

// Stage 3 gathers a layer for forward and for backward. Of what is gathered already it keeps the parameters that come
// again within its reuse distance (here a layer: at most its largest matrix, where backward begins), and it does not
// gather the embedding for backward, as ours does.
static void check_gathers(const StepProgram *program) {
    const int64_t embedding = (int64_t)1024 * 256 * 2, matrix = (int64_t)768 * 256 * 2;
    const int64_t less = stage() == 3 ? program->plan.grad_accum * (embedding + matrix) : 0;
    const int64_t theirs = gathered_bytes(&trace.list), more = gathered_bytes(&ours) - theirs;
    cr_expect(more >= 0 && more <= less, "%s: %lld and %lld more", trace.name, (long long)theirs, (long long)more);
}

Test(deepspeed_traces, weights_are_gathered_twice_at_stage_3_and_once_after_the_update_below) {
    for_every_trace(check_gathers, 12);
}

static void check_states(const StepProgram *program) {
    const Held held = program_holds(program);
    cr_expect_eq(trace.parameter_bytes, held.master_bytes, "%s: masters of %lld and %lld", trace.name,
                 (long long)trace.parameter_bytes, (long long)held.master_bytes);
    cr_expect_eq(trace.moment_bytes, held.moment_bytes, "%s: moments of %lld and %lld", trace.name,
                 (long long)trace.moment_bytes, (long long)held.moment_bytes);
    cr_expect_str_eq(trace.parameter_dtype, "fp32");
}

Test(deepspeed_traces, masters_and_moments_of_a_rank_have_the_bytes_of_the_program) {
    for_every_trace(check_states, 12);
}

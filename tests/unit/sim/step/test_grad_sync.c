// When gradients are reduced while micro-steps accumulate, and which stay unsharded until then.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"

// Of R2 S2 over 3 micro-steps, layers and two edge units each: what moves in a micro-step. GradientAccumulationPlugin
// (sync_each_batch=True) leaves the reductions to every backward, over both groups (accelerate 1.14 accelerator.py,
// accumulate); FSDPModule.set_requires_all_reduce(False) lets the replicas wait (torch 2.11 _fully_shard.py).
Test(grad_sync, gradients_are_reduced_when_the_plan_says) {
    static const struct {
        const char *target;
        GradSync sync;
        bool scatters[3], sums[3];
    } cases[] = {
        {"accelerate", GRAD_SYNC_TARGET, {0, 0, 1}, {0, 0, 1}}, {"accelerate", GRAD_SYNC_EACH, {1, 1, 1}, {1, 1, 1}},
        {"torchtitan", GRAD_SYNC_TARGET, {1, 1, 1}, {1, 1, 1}}, {"ndtune", GRAD_SYNC_TARGET, {1, 1, 1}, {0, 0, 1}},
        {"ndtune", GRAD_SYNC_EACH, {1, 1, 1}, {1, 1, 1}},       {"ndtune", GRAD_SYNC_SHARDS, {1, 1, 1}, {0, 0, 1}},
        {"ndtune", GRAD_SYNC_LAST, {0, 0, 1}, {0, 0, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const StepProgram program = lowered(&arena, (LoweredRequest){.target = cases[i].target,
                                                                     .mesh = "dp_replicate=2,dp_shard=2",
                                                                     .grad_accum = 3,
                                                                     .grad_sync = cases[i].sync});
        const int units = program.model.layers + 2;
        for (int micro_step = 0; micro_step < 3; micro_step++) {
            cr_expect_eq(runs_in_micro_step(&program, "reduce gradients", micro_step),
                         cases[i].scatters[micro_step] * units, "%s %s, micro-step %d", cases[i].target,
                         grad_sync_names[cases[i].sync], micro_step);
            cr_expect_eq(runs_in_micro_step(&program, "replica gradient sum", micro_step),
                         cases[i].sums[micro_step] * units, "%s %s, micro-step %d", cases[i].target,
                         grad_sync_names[cases[i].sync], micro_step);
        }
        arena_free(&arena);
    }
}

// 6.74 G bf16 gradients: whole ones on every rank, or those of one unit of each kind at a time.
Test(grad_sync, only_gradients_that_wait_for_the_last_micro_step_are_kept_whole) {
    for (GradSync sync = GRAD_SYNC_EACH; sync <= GRAD_SYNC_LAST; sync += 2) {
        Arena arena = {0};
        const StepProgram program = lowered(&arena, (LoweredRequest){.model = "llama-2-7b",
                                                                     .target = "accelerate@1.14",
                                                                     .mesh = "dp_shard=8",
                                                                     .seq = 4096,
                                                                     .grad_accum = 8,
                                                                     .bf16 = true,
                                                                     .grad_sync = sync});
        double held = 0, one_each = 0;
        for (int u = 0; u < program.unit_count; u++) {
            const Buffer *gradients = &program.buffers[program.units[u].gradient_full];
            held += (double)gradients->slots * (double)gradients->slot_bytes;
            one_each += (double)gradients->slot_bytes;
        }
        cr_expect_float_eq(held / (sync == GRAD_SYNC_LAST ? 2 * 6.738e9 : one_each), 1, 0.001, "%s: %g bytes",
                           grad_sync_names[sync], held);
        arena_free(&arena);
    }
}

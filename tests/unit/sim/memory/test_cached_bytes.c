// What the caching allocator holds of whole programs: pools of a CUDA graph, and a device that is short of memory.

#include <criterion/criterion.h>

#include "sim/memory/cached_bytes.h"
#include "sim/memory/memory.h"
#include "tests/support/lowered.h"

static Arena arena;

static void begin(void) {
    arena = (Arena){0};
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(cached_bytes, .init = begin, .fini = end);

static StepProgram program_of(GraphUse graphs, Optimizer optimizer) {
    return lowered(&arena, (LoweredRequest){.model = "llama-3-8b",
                                            .target = "torchtitan@0.3",
                                            .mesh = "dp_shard=8",
                                            .seq = 4096,
                                            .bf16 = true,
                                            .recompute = RECOMPUTE_NONE,
                                            .grad_accum = 2,
                                            .cuda_graphs = graphs,
                                            .optimizer = optimizer});
}

static double cached(const StepProgram *program, double limit_bytes) {
    LiveTraces traces = {0};
    Error error = {0};
    double bytes = 0;
    cr_assert_eq(memory_cached_bytes(program, limit_bytes, &traces, &bytes, &error), STATUS_OK, "%s", error.message);
    live_traces_free(&traces);
    return bytes;
}

static double peak_of(const StepProgram *program) {
    MemoryBreakdown memory;
    Error error = {0};
    cr_assert_eq(memory_breakdown(program, &arena, &memory, &error), STATUS_OK, "%s", error.message);
    return memory.peak_bytes;
}

static double of_temporaries(GraphUse graphs) {
    const StepProgram without = program_of(graphs, OPTIMIZER_TARGET),
                      with = program_of(graphs, OPTIMIZER_ADAMW_FOREACH);
    return cached(&with, 0) - cached(&without, 0);
}

// 4 bytes of each of 8.03e9 parameters on 8 ranks; without graphs they are where activations were.
Test(cached_bytes, the_update_has_no_room_in_the_pools_of_a_cuda_graph) {
    cr_expect_lt(of_temporaries(CUDA_GRAPHS_OFF), 0.1 * 4 * 8.03e9 / 8);
    cr_expect_gt(of_temporaries(CUDA_GRAPHS_TARGET), 0.9 * 4 * 8.03e9 / 8);
}

Test(cached_bytes, a_device_short_of_memory_gets_back_what_is_free) {
    const StepProgram program = program_of(CUDA_GRAPHS_OFF, OPTIMIZER_TARGET);
    const double peak = peak_of(&program), most = cached(&program, 0), limit = (peak + most) / 2;
    cr_assert_gt(most, 1.03 * peak);
    cr_expect_eq(cached(&program, 2 * most), most);
    cr_expect_leq(cached(&program, limit), limit);
    cr_expect_geq(cached(&program, limit), peak);
    cr_expect_gt(cached(&program, 0.9 * peak), peak);
}

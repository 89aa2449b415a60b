// Gathers of tp whose parts are multiplied as they come from a neighbour.

#include <criterion/criterion.h>

#include "sim/cost/products.h"
#include "tests/support/lowered.h"
#include "tests/unit/sim/cost/machines.h"

enum { RANKS = 4 };

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(peer_exchange, .fini = clean);

typedef struct Bench {
    ClusterProfile profile;
    StepProgram program;
    CostModel model;
} Bench;

static void bench_begin(Bench *bench, double pair_bytes_per_s) {
    bench->profile = machine_round();
    bench->profile.node.p2p_latency_s = 0;
    bench->profile.node.p2p = (LinkCurve){pair_bytes_per_s, 0, 0};
    bench->program = lowered(&arena, (LoweredRequest){.target = "megatron", .mesh = "tp=4", .bf16 = true});
    bench->program.plan.tp_overlap = true;
    bench->model = (CostModel){.profile = &bench->profile, .target = bench->program.target, .chip_factor = 1};
}

static const Task *first(const StepProgram *program, TaskKind kind, const Task *from) {
    const Task *end = program->tasks + program->task_count;
    for (const Task *task = from; task < end; task++) {
        if (task->kind == kind && task->phase == PHASE_FORWARD && (kind == TASK_GEMM || task->lane == LANE_TP)) {
            return task;
        }
    }
    cr_assert_fail("no such task");
    return NULL;
}

static double seconds(const Bench *bench, const Task *task) {
    return cost_task(&bench->model, &bench->program, task).seconds;
}

Test(peer_exchange, shows_by_how_much_one_pairs_links_are_slower_than_the_product) {
    const double pair_bytes_per_s = 1e6;  // far slower
    Bench bench;
    bench_begin(&bench, pair_bytes_per_s);
    const Task *gather = first(&bench.program, TASK_ALL_GATHER, bench.program.tasks);
    const Task *product = first(&bench.program, TASK_GEMM, gather);
    const double product_s = cost_gemm_time(&bench.profile.accelerator, &bench.program, product).seconds;
    const double step_s = (double)gather->payload_bytes / RANKS / pair_bytes_per_s;
    const double open_s = (RANKS - 1) * (step_s - product_s / RANKS);
    cr_assert_float_eq(seconds(&bench, gather), open_s * (1 + bench.program.target->runtime.collective_share),
                       1e-9 * open_s);
}

Test(peer_exchange, leaves_the_targets_share_where_the_product_hides_it) {
    Bench bench;
    bench_begin(&bench, 1e15);
    const Task *gather = first(&bench.program, TASK_ALL_GATHER, bench.program.tasks);
    const double shown_s = seconds(&bench, gather);
    bench.program.plan.tp_overlap = false;
    cr_assert_float_eq(shown_s, seconds(&bench, gather) * bench.program.target->tp_overlap_exposed, 1e-12);
}

Test(peer_exchange, is_of_gathers_alone) {
    Bench slow, fast;
    bench_begin(&slow, 1e6);
    bench_begin(&fast, 1e15);
    cr_assert_eq(seconds(&slow, first(&slow.program, TASK_REDUCE_SCATTER, slow.program.tasks)),
                 seconds(&fast, first(&fast.program, TASK_REDUCE_SCATTER, fast.program.tasks)));
}

Test(peer_exchange, has_all_links_of_a_switch_by_copy_engines) {
    Bench bench;
    bench_begin(&bench, 1e15);
    const Task *gather = first(&bench.program, TASK_ALL_GATHER, bench.program.tasks);
    const double shown_s = seconds(&bench, gather);
    bench.profile.node.p2p_latency_s = 1;
    cr_assert_eq(seconds(&bench, gather), shown_s);
}

Test(peer_exchange, is_nowhere_much_faster_on_little_faster_links) {
    enum { RATES = 100 };
    const double ring_bytes_per_s = 1e6;  // far slower than the product
    double first_s = 0, before_s = 0;
    for (int i = 0; i <= RATES; i++) {
        Bench bench;
        bench_begin(&bench, ring_bytes_per_s * (0.3 + 0.6 * i / RATES));
        bench.profile.node.ring = (LinkCurve){ring_bytes_per_s, 0, 0};
        bench.profile.node.p2p_latency_s = 0.1;
        const double shown_s = seconds(&bench, first(&bench.program, TASK_ALL_GATHER, bench.program.tasks));
        first_s = i == 0 ? shown_s : first_s;
        cr_expect(i == 0 || (shown_s <= before_s && before_s - shown_s < 0.03 * first_s), "%d: %g s after %g", i,
                  shown_s, before_s);
        before_s = shown_s;
    }
}

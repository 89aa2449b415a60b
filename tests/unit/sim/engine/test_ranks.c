// One actor per class of ranks stands for all of them.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/sizes.h"
#include "tests/unit/sim/engine/small_program.h"

// Two layers of kernel + tp collective, then gradients over the shard group and over replicas.
static void add_step(Small *small, Mesh mesh) {
    small_begin(small, 1, false, AXES_SHARD_GROUP);
    StepProgram *program = &small->builder.program;
    program->plan.mesh = mesh;
    program->groups[0].size = mesh_group_size(&mesh, AXES_SHARD_GROUP);
    const int16_t tp = builder_group(&small->builder, "tp", AXIS_BIT(AXIS_TP), mesh.size[AXIS_TP]);
    const int16_t rep =
        builder_group(&small->builder, "rep", AXIS_BIT(AXIS_DP_REPLICATE), mesh.size[AXIS_DP_REPLICATE]);
    const int16_t all = builder_group(&small->builder, "all", AXIS_ALL, mesh_world(&mesh));
    const int32_t x =
        builder_event(&small->builder, builder_buffer(&small->builder, "x", ROLE_ACTIVATION, 1, 256), 0, true);
    const int32_t y =
        builder_event(&small->builder, builder_buffer(&small->builder, "y", ROLE_ACTIVATION, 1, 256), LANE_TP, true);
    const int32_t g =
        builder_event(&small->builder, builder_buffer(&small->builder, "g", ROLE_GRADIENT, 1, 256), small->rs, true);
    builder_loop(&small->builder, SEGMENT_MICRO_STEPS, "micro-batches", 0, 6, 1);
    for (int i = 0; i < 2; i++) {
        small_kernel(small, "layer", 10 + i);
        builder_wait(&small->builder, y, 0, 0);
        builder_record(&small->builder, x, 0, 0);
        small_collective(small, "sum", LANE_TP, 3, 0.5)->group = tp;
        builder_wait(&small->builder, x, 0, 0);
        builder_record(&small->builder, y, 0, 0);
    }
    small_collective(small, "scatter", small->rs, 9, 0.8);
    builder_wait(&small->builder, x, 0, 0);
    builder_record(&small->builder, g, 0, 0);
    small_collective(small, "reduce", LANE_REP, 5, 0.8)->group = rep;
    builder_wait(&small->builder, g, 0, 0);
    builder_end(&small->builder);
    small_collective(small, "norm", small->ctl, 1, 0)->group = all;
    builder_wait(&small->builder, g, 0, 0);
    small->interference = (Interference){.hbm_factor = 1, .collective_slowdown = 1.2, .residue = 1.05};
}

static void same_result(const EngineResult *a, const EngineResult *b, int tasks) {
    cr_assert_eq(a->step_s, b->step_s, "%.17g and %.17g", a->step_s, b->step_s);
    cr_assert_eq(a->compute_s, b->compute_s);
    cr_assert_eq(a->overhead_s, b->overhead_s);
    cr_assert_eq(memcmp(a->exposed_s, b->exposed_s, sizeof a->exposed_s), 0);
    cr_assert_eq(a->representative, b->representative);
    for (int i = 0; i < tasks; i++) {
        cr_assert_eq(a->totals[i].count, b->totals[i].count);
        cr_assert_eq(a->totals[i].seconds, b->totals[i].seconds);
    }
}

Test(ranks, equal_ranks_are_one_class_and_equal_all_ranks) {
    Small small;
    add_step(&small, (Mesh){.size = SIZES(2, 2, 2, 2)});
    const EngineResult one = small_run(&small, (EngineOptions){0});
    const EngineResult all = small_run(&small, (EngineOptions){.all_ranks = true});
    cr_assert_eq(one.classes, 1);
    cr_assert_eq(all.classes, 16);
    cr_assert_eq(all.timeline.spans[all.timeline.span_count - 1].rank, 15);
    same_result(&one, &all, small.tasks);
    small_end(&small);
}

// Mesh 2x2x1x2, rank 5 slow. Its classes: itself; its tp mate; its shard mate; ... all distinct patterns of 8 ranks:
// seen from the slow rank every rank differs in which of three groups it shares, so 2 x 2 x 2 = 8 classes.
Test(ranks, a_straggler_makes_classes_that_reproduce_all_ranks) {
    const Mesh mesh = {.size = SIZES(2, 2, 1, 2)};
    float slowdown[8] = {1, 1, 1, 1, 1, 1.37f, 1, 1};
    Small small;
    add_step(&small, mesh);
    const EngineResult classes = small_run(&small, (EngineOptions){.rank_slowdown = slowdown});
    const EngineResult all = small_run(&small, (EngineOptions){.rank_slowdown = slowdown, .all_ranks = true});
    const EngineResult healthy = small_run(&small, (EngineOptions){0});
    cr_assert_eq(classes.classes, 8);
    cr_assert_eq(classes.representative, 5);
    cr_assert_gt(classes.step_s, healthy.step_s);
    same_result(&classes, &all, small.tasks);
    small_end(&small);
}

// With 4 x 4 replicas and shards every other rank of the slow one's groups is alike: {self, shard mates, replica
// mates, rest}.
Test(ranks, ranks_that_see_the_same_straggler_share_a_class) {
    const Mesh mesh = {.size = SIZES(4, 4, 1, 1)};
    float slowdown[16];
    for (int i = 0; i < 16; i++) {
        slowdown[i] = i == 6 ? 2 : 1;
    }
    Small small;
    add_step(&small, mesh);
    const EngineResult classes = small_run(&small, (EngineOptions){.rank_slowdown = slowdown});
    const EngineResult all = small_run(&small, (EngineOptions){.rank_slowdown = slowdown, .all_ranks = true});
    cr_assert_eq(classes.classes, 4);
    same_result(&classes, &all, small.tasks);
    small_end(&small);
}

// One kernel of 10 us on two ranks, the second 1.5 times slower, then a collective of 4 us: 15 + 4; exactly what rank
// 1 sees.
Test(ranks, a_collective_waits_for_the_slowest_member) {
    float slowdown[2] = {1, 1.5f};
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    small.builder.program.plan.mesh = (Mesh){.size = SIZES(1, 2, 1, 1)};
    const int32_t x =
        builder_event(&small.builder, builder_buffer(&small.builder, "x", ROLE_ACTIVATION, 1, 256), 0, true);
    small_kernel(&small, "layer", 10);
    builder_record(&small.builder, x, 0, 0);
    small_collective(&small, "scatter", small.rs, 4, 1);
    builder_wait(&small.builder, x, 0, 0);
    const EngineResult result = small_run(&small, (EngineOptions){.rank_slowdown = slowdown});
    cr_assert_float_eq(result.step_s, 19e-6, 1e-12);
    cr_assert_float_eq(result.timeline.spans[0].end_s, 10e-6, 1e-12);
    cr_assert_float_eq(result.timeline.spans[1].start_s, 15e-6, 1e-12);
    small_end(&small);
}

Test(ranks, a_slowdown_below_one_is_refused) {
    float slowdown[1] = {0.5f};
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    small_kernel(&small, "layer", 10);
    const EngineCosts costs = {.tasks = small.costs};
    EngineResult result;
    Error error = {0};
    cr_assert_eq(engine_run_costs(builder_program(&small.builder), &costs, &(EngineOptions){.rank_slowdown = slowdown},
                                  &small.arena, &result, &error),
                 STATUS_USAGE);
    cr_assert_eq(engine_run_costs(builder_program(&small.builder), &costs, &(EngineOptions){.link_slowdown = slowdown},
                                  &small.arena, &result, &error),
                 STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "link slowdown of rank 0"), "%s", error.message);
    small_end(&small);
}

// Two tp pairs of one shard group each; a kernel of 10 us, then a tp collective of 4 us. Rank 2 has links of a third:
// its pair ends at 10 + 3 x 4 = 22 us, the other at 14; the shard collective of 2 us joins ranks 0 and 2 and starts
// with the later of them, at 22, and takes 3 x 2 = 6 more; that of ranks 1 and 3 is whole and ends at 22 + 2 = 24.
Test(ranks, a_slow_link_slows_every_collective_of_its_rank_and_no_other) {
    float links[4] = {1, 1, 3, 1};
    Small small;
    small_begin(&small, 1, false, AXES_SHARD_GROUP);
    small.builder.program.plan.mesh = (Mesh){.size = SIZES(1, 2, 1, 2)};
    small.builder.program.groups[0].size = 2;
    const int16_t tp = builder_group(&small.builder, "tp", AXIS_BIT(AXIS_TP), 2);
    const int32_t x =
        builder_event(&small.builder, builder_buffer(&small.builder, "x", ROLE_ACTIVATION, 1, 256), 0, true);
    const int32_t y =
        builder_event(&small.builder, builder_buffer(&small.builder, "y", ROLE_ACTIVATION, 1, 256), LANE_TP, true);
    small_kernel(&small, "layer", 10);
    builder_record(&small.builder, x, 0, 0);
    small_collective(&small, "sum", LANE_TP, 4, 0)->group = tp;
    builder_wait(&small.builder, x, 0, 0);
    builder_record(&small.builder, y, 0, 0);
    small_collective(&small, "scatter", small.rs, 2, 0);
    builder_wait(&small.builder, y, 0, 0);
    const EngineResult result = small_run(&small, (EngineOptions){.link_slowdown = links, .all_ranks = true});
    static const double sum_us[4] = {14, 14, 22, 22}, scatter_us[4] = {28, 24, 28, 24};
    for (int rank = 0; rank < 4; rank++) {
        const Span *spans = &result.timeline.spans[3 * rank];
        cr_assert_float_eq(spans[0].end_s, 10e-6, 2e-12, "rank %d", rank);
        cr_assert_float_eq(spans[1].end_s, sum_us[rank] * 1e-6, 2e-12, "rank %d: %g", rank, spans[1].end_s);
        cr_assert_float_eq(spans[2].end_s, scatter_us[rank] * 1e-6, 2e-12, "rank %d: %g", rank, spans[2].end_s);
    }
    cr_assert_eq(result.representative, 2);
    cr_assert_float_eq(result.step_s, 28e-6, 2e-12);
    const EngineResult classes = small_run(&small, (EngineOptions){.link_slowdown = links});
    same_result(&classes, &result, small.tasks);
    small_end(&small);
}

// Two collectives that each want the whole network run at once; rank 1 has half of it. Both ranks share alike, so the
// step is twice that of sound links, sharing included.
Test(ranks, slow_links_and_shared_links_multiply) {
    float even[2] = {1, 1}, links[2] = {1, 2};
    Small small;
    small_begin(&small, 1, false, AXES_SHARD_GROUP);
    small.builder.program.plan.mesh = (Mesh){.size = SIZES(1, 2, 1, 1)};
    small_collective(&small, "gather", small.ag, 10, 1);
    small_collective(&small, "scatter", small.rs, 10, 1);
    const EngineResult sound = small_run(&small, (EngineOptions){.link_slowdown = even});
    const EngineResult slow = small_run(&small, (EngineOptions){.link_slowdown = links});
    cr_assert_gt(sound.step_s, 19e-6);
    cr_assert_float_eq(slow.step_s, 2 * sound.step_s, 4e-12);
    small_end(&small);
}

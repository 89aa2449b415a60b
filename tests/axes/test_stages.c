// Ranks, programs and classes of ranks where an axis has stages: idle is such an axis.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/engine/rank_classes.h"
#include "sim/step/stages.h"
#include "tests/support/program_builder.h"

static Mesh mesh_from(const char *text) {
    Mesh mesh = mesh_of_one();
    Error error = {0};
    cr_assert_eq(mesh_parse(text, &mesh, &error), STATUS_OK, "%s", error.message);
    return mesh;
}

Test(stages, a_rank_is_in_the_stage_of_its_coordinate) {
    const Mesh mesh = mesh_from("idle=3,dp_shard=2,tp=2");
    cr_assert_eq(mesh_stages(&mesh), 3);
    for (int rank = 0; rank < mesh_world(&mesh); rank++) {
        cr_assert_eq(mesh_stage_of(&mesh, rank), rank / 4);
    }
}

Test(stages, stages_lie_where_their_axis_does) {
    Mesh mesh = mesh_from("idle=2,dp_shard=2,tp=2");
    Error error = {0};
    cr_assert_eq(axis_order_parse("dp_shard,tp,idle", &mesh.order, &error), STATUS_OK, "%s", error.message);
    for (int rank = 0; rank < mesh_world(&mesh); rank++) {
        cr_assert_eq(mesh_stage_of(&mesh, rank), rank % 2);
    }
}

Test(stages, a_mesh_without_stages_has_one) {
    const Mesh mesh = mesh_from("dp_replicate=2,dp_shard=2,cp=2,lent=2,tp=2");
    cr_assert_eq(mesh_stages(&mesh), 1);
    for (int rank = 0; rank < mesh_world(&mesh); rank++) {
        cr_assert_eq(mesh_stage_of(&mesh, rank), 0);
    }
}

static StepProgram *stage_program(ProgramBuilder *builder, const Mesh *mesh, int stage) {
    const int16_t compute = builder_lane(builder, "compute", -1);
    const int16_t lane = builder_lane(builder, "rs", 0);
    const int16_t group = builder_group(builder, "dp_shard", AXES_SHARD_GROUP, mesh->size[AXIS_DP_SHARD]);
    const int32_t buffer = builder_buffer(builder, "x", ROLE_ACTIVATION, 1, 1024);
    builder_task(builder, stage == 0 ? "embed" : "head", TASK_COPY, compute, PHASE_FORWARD);
    builder_touch(builder, ACCESS_WRITE, buffer);
    builder_task(builder, "sum", TASK_ALL_REDUCE, lane, PHASE_REDUCE)->group = group;
    StepProgram *program = builder_program(builder);
    program->plan.mesh = *mesh;
    program->stage = stage;
    return program;
}

Test(stages, a_rank_runs_the_program_of_its_stage) {
    Arena arena = {0};
    const Mesh mesh = mesh_from("idle=2,dp_shard=4");
    ProgramBuilder builders[2] = {builder_begin(&arena, 1), builder_begin(&arena, 1)};
    StepProgram of[2] = {*stage_program(&builders[0], &mesh, 0), *stage_program(&builders[1], &mesh, 1)};
    const StepPrograms programs = {.of = of, .count = 2};
    for (int rank = 0; rank < 8; rank++) {
        const StepProgram *program = step_program_of(&programs, &mesh, rank);
        cr_assert_eq(program->stage, rank / 4);
        cr_assert_str_eq(program->tasks[0].name, rank < 4 ? "embed" : "head");
    }
    arena_free(&arena);
}

Test(stages, classes_are_of_the_ranks_of_a_stage) {
    Arena arena = {0};
    Error error = {0};
    const Mesh mesh = mesh_from("idle=2,dp_shard=4");
    const float slowdown[8] = {1, 1, 1, 1, 1, 1, 2, 1};
    for (int stage = 0; stage < 2; stage++) {
        ProgramBuilder builder = builder_begin(&arena, 1);
        const StepProgram *program = stage_program(&builder, &mesh, stage);
        RankClasses one, all, slow;
        cr_assert_eq(rank_classes_find(program, &(EngineOptions){0}, &arena, &one, &error), STATUS_OK);
        cr_assert_eq(one.actors, 1);
        cr_assert_eq(one.rank[0], 4 * stage);
        cr_assert_eq(rank_classes_find(program, &(EngineOptions){.all_ranks = true}, &arena, &all, &error), STATUS_OK);
        cr_assert_eq(all.actors, 4);
        for (int i = 0; i < 4; i++) {
            cr_assert_eq(all.rank[i], 4 * stage + i);
            cr_assert_eq(all.count[i], 4);  // of its group
        }
        cr_assert_eq(rank_classes_find(program, &(EngineOptions){.rank_slowdown = slowdown}, &arena, &slow, &error),
                     STATUS_OK);
        cr_assert_eq(slow.actors, 4);  // ranks of stages meet one by one
        for (int i = 0; i < 4; i++) {
            cr_assert_eq(slow.slowdown[i], (double)slowdown[4 * stage + i]);
            cr_assert_eq(slow.count[i], 4);
        }
    }
    arena_free(&arena);
}

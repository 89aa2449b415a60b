// Recorded collectives get the names of their tasks in the step: dumps are made from a lowered program, so the right
// names are known.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/blame/places.h"
#include "tests/support/lowered.h"

enum { RANKS = 4, MOST_GROUPS = 8, MOST = 2000 };

static Arena arena;
static StepProgram program;
static Dump dumps[RANKS];
static Job job;
static Verdict verdict;
static Places places;

static void end(void) {
    arena_free(&arena);
}

TestSuite(places, .fini = end);

static int group_of(Dump *dump, AxisMask axes) {
    const Mesh *mesh = &program.plan.mesh;
    const MeshCoordinates at = mesh_coordinates(mesh, dump->rank);
    const int count = mesh_group_size(mesh, axes);
    int *ranks = ARENA_ARRAY(&arena, int, count);
    for (int i = 0; i < count; i++) {
        ranks[i] = mesh_group_member(mesh, axes, &at, i);
    }
    const char *name = arena_format(&arena, "axes %u of %d", (unsigned)axes, ranks[0]);
    for (int g = 0; g < dump->group_count; g++) {
        if (strcmp(dump->groups[g].name, name) == 0) {
            return g;
        }
    }
    dump->groups[dump->group_count] = (DumpGroup){name, "", ranks, count};
    return dump->group_count++;
}

static const DumpOp ops[] = {[TASK_ALL_GATHER] = DUMP_ALL_GATHER,
                             [TASK_REDUCE_SCATTER] = DUMP_REDUCE_SCATTER,
                             [TASK_ALL_REDUCE] = DUMP_ALL_REDUCE};

// This many steps, then `more` further collectives; size_of_all: what frameworks pad by.
static void record(int rank, int steps, int more, double size_of_all) {
    Dump *dump = &dumps[rank];
    int64_t seqs[MOST_GROUPS] = {0};
    *dump = (Dump){.rank = rank,
                   .path = "x",
                   .groups = ARENA_ARRAY(&arena, DumpGroup, MOST_GROUPS),
                   .entries = ARENA_ARRAY(&arena, DumpEntry, MOST),
                   .says_complete = true};
    for (int step = 0; step <= steps; step++) {
        StepCursor cursor = step_cursor_begin(&program);
        StepInstance instance;
        for (int left = step < steps ? MOST : more; left > 0 && step_cursor_next(&cursor, &instance);) {
            const Task *task = &program.tasks[instance.task];
            if (!task_is_collective(task) || program.groups[task->group].size == 1) {
                continue;
            }
            const int group = group_of(dump, program.groups[task->group].axes);
            left--;
            cr_assert_lt(dump->entry_count, MOST);
            dump->entries[dump->entry_count++] =
                (DumpEntry){.group = group,
                            .seq = ++seqs[group],
                            .op = ops[task->kind],
                            .name = "nccl:x",
                            .bytes = (int64_t)((double)task->payload_bytes * size_of_all),
                            .dtype = "Float",
                            .completed = true,
                            .created_ns = 1000000000 + dump->entry_count,
                            .timeout_ms = 1000};
        }
    }
}

static void place(void) {
    Error error = {0};
    const StepPrograms programs = {.of = &program, .count = 1};
    job = (Job){0};
    cr_assert_eq(job_of_dumps(dumps, RANKS, 0, &arena, &job, &error), STATUS_OK);
    verdict_find(&job, 0, &arena, &verdict);
    places_name(&job, &program.plan.mesh, &programs, &arena, &verdict, &places);
}

// The task of the n-th collective of a step.
static const char *name_of(int n) {
    StepCursor cursor = step_cursor_begin(&program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program.tasks[instance.task];
        if (task_is_collective(task) && program.groups[task->group].size > 1 && --n == 0) {
            return arena_format(&arena, "task '%s', layer %d, %s", task->name, instance.layer, phase_name(task->phase));
        }
    }
    return "";
}

Test(places, where_a_rank_stands_is_the_task_and_layer_of_the_step) {
    program = lowered(&arena, (LoweredRequest){.mesh = "dp_shard=2,tp=2", .target = "torchtitan", .seq = 64});
    for (int more = 3; more < 24; more += 5) {
        for (int rank = 0; rank < RANKS; rank++) {
            record(rank, 3, more, 1);
        }
        place();
        cr_expect_eq(places.matched, places.compared);
        for (int rank = 0; rank < RANKS; rank++) {
            cr_assert_not_null(verdict.stands[rank].layer);
            cr_expect_str_eq(verdict.stands[rank].layer, name_of(more), "collective %d", more);
        }
    }
}

Test(places, padded_sizes_are_the_same_collectives) {
    program = lowered(&arena, (LoweredRequest){.mesh = "dp_shard=2,tp=2", .target = "torchtitan", .seq = 64});
    for (int rank = 0; rank < RANKS; rank++) {
        record(rank, 2, 9, 1.04);
    }
    place();
    cr_expect_str_eq(verdict.stands[2].layer, name_of(9));
}

Test(places, collectives_of_another_model_have_no_names) {
    program = lowered(&arena, (LoweredRequest){.mesh = "dp_shard=2,tp=2", .target = "torchtitan", .seq = 64});
    for (int rank = 0; rank < RANKS; rank++) {
        record(rank, 2, 9, 3.7);
    }
    place();
    cr_expect_lt(places.matched, places.compared / 2);
    for (int rank = 0; rank < RANKS; rank++) {
        cr_expect_null(verdict.stands[rank].layer);
    }
}

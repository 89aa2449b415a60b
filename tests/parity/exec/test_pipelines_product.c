// Orders, choices and worlds of pipelines beyond test_pipelines.c: a pairwise covering of all that is legal.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/parity/exec/pipeline_case.h"
#include "tests/support/covering.h"

enum { SHAPES = 128, PLANS = 8192, FACTORS = AXIS_COUNT + 5, VALUES_MOST = 31 };

typedef struct Pool {
    RunRequest requests[PLANS];
    uint8_t rows[PLANS][FACTORS];
    int count;
} Pool;

static void add(Pool *pool, const Mesh *mesh, const PipelineChoice *choice) {
    RunRequest *request = &pool->requests[pool->count];
    uint8_t *row = pool->rows[pool->count];
    if (!pipeline_request(mesh, choice, request)) {
        return;
    }
    const TrainPlan *plan = &request->plan;
    const int choices[] = {(int)plan->pp_schedule, plan_chunks(plan), plan->zero, (int)plan->reshard,
                           (int)plan->recompute};
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        row[axis] = (uint8_t)(mesh->size[axis] < VALUES_MOST ? mesh->size[axis] : VALUES_MOST);
    }
    for (int i = 0; i < FACTORS - AXIS_COUNT; i++) {
        row[AXIS_COUNT + i] = (uint8_t)choices[i];
    }
    cr_assert_lt(++pool->count, PLANS);
}

static void add_world(Pool *pool, int world, const PpSchedule *schedules, int schedule_count) {
    Mesh meshes[SHAPES];
    const int count = pipeline_shapes(world, meshes, SHAPES);
    for (int i = 0; i < count * schedule_count * 16; i++) {
        const PipelineChoice choice = {.schedule = schedules[i / 16 % schedule_count],
                                       .virtual_stages = 2 + i / 5 % 2,
                                       .zero = i & 3,
                                       .reshard = i >> 2 & 1 ? RESHARD_NEVER : RESHARD_ALWAYS,
                                       .recompute = i >> 3 & 1 ? RECOMPUTE_FULL : RECOMPUTE_NONE};
        add(pool, &meshes[i / 16 / schedule_count], &choice);
    }
}

static void pairs_train(const int *worlds, const PpSchedule *schedules, int schedule_count) {
    Pool *pool = calloc(1, sizeof *pool);
    for (; *worlds; worlds++) {
        add_world(pool, *worlds, schedules, schedule_count);
    }
    int *chosen = calloc((size_t)pool->count, sizeof *chosen);
    const int count = covering_choose(pool->rows[0], pool->count, FACTORS, chosen);
    Deviation worst = {0};
    for (int i = 0; i < count; i++) {
        pipeline_trains(&pool->requests[chosen[i]], &worst);
    }
    cr_log_warn("%d of %d plans: step 1 loss %.1e norm %.1e, last step loss %.1e norm %.1e", count, pool->count,
                worst.loss_first, worst.norm_first, worst.loss_last, worst.norm_last);
    free(chosen);
    free(pool);
}

static const PpSchedule all[] = {PP_1F1B, PP_GPIPE, PP_INTERLEAVED, PP_ZERO_BUBBLE, PP_ZBV};

Test(pipelines_product, every_pair_of_choices_of_worlds_up_to_8_trains_as_one_rank) {
    pairs_train((const int[]){2, 4, 6, 8, 0}, all, sizeof all / sizeof *all);
}

Test(pipelines_product, every_pair_of_choices_of_world_16_trains_as_one_rank) {
    pairs_train((const int[]){16, 0}, all, sizeof all / sizeof *all);
}

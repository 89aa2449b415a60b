#include "tests/parity/exec/mesh_case.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/covering.h"
#include "tests/support/rounds.h"

enum { CHOICES = 32, MOST_SHAPES = 512, MOST_PLANS = 128 * CHOICES, FACTORS = AXIS_COUNT + 4 };

#define EVEN_SIZES .heads = 16, .kv_heads = 8, .ffn = 160, .vocab = 256, .batch = CASE_BATCH

const MeshFamily mesh_twos = {EVEN_SIZES, .seq = CASE_SEQ, .steps = CASE_STEPS};
const MeshFamily mesh_twos_short = {EVEN_SIZES, .seq = PAIRS_SEQ, .steps = PAIRS_STEPS};
const MeshFamily mesh_twos_adapters = {EVEN_SIZES, .seq = PAIRS_SEQ, .steps = PAIRS_STEPS, .finetune = FINETUNE_LORA};
const MeshFamily mesh_twos_experts = {EVEN_SIZES, .seq = PAIRS_SEQ, .steps = EXPERTS_STEPS,
                                      .experts = {.count = 8, .active = 2, .ffn = 96}};
// 72: 3 tokens a zigzag chunk of cp=12; 24: one token
const MeshFamily mesh_threes = {
    .heads = 24, .kv_heads = 12, .ffn = 168, .vocab = 264, .seq = 72, .batch = 12, .steps = CASE_STEPS};
const MeshFamily mesh_threes_short = {
    .heads = 12, .kv_heads = 12, .ffn = 168, .vocab = 264, .seq = 24, .batch = 12, .steps = PAIRS_STEPS};

RunRequest mesh_request(const MeshFamily *family, const TrainPlan *plan) {
    RunOptions options = case_options();
    options.steps = family->steps;
    RunRequest request = case_request(plan, &options);
    request.model.heads = family->heads;
    request.model.kv_heads = family->kv_heads;
    request.model.ffn = family->ffn;
    request.model.vocab = family->vocab;
    if (family->experts.count > 0) {
        cr_assert(model_set_family(&request.model, "mixtral"));
        request.model.experts = family->experts;
    }
    return request;
}

bool mesh_plan(const MeshFamily *family, const Mesh *mesh, int grad_accum, TrainPlan *plan) {
    const int parts = mesh->size[AXIS_DP_REPLICATE] * mesh->size[AXIS_DP_SHARD] * grad_accum;
    *plan = (TrainPlan){.mesh = *mesh,
                        .seq = family->seq,
                        .micro_batch = family->batch / parts,
                        .grad_accum = grad_accum,
                        .precision = DTYPE_FP32,
                        .finetune = family->finetune,
                        .lora_rank = family->finetune != FINETUNE_FULL ? 4 : 0,
                        .capacity = 100 * mesh->size[AXIS_EP]};
    return family->batch % parts == 0;
}

TrainPlan mesh_spread_plan(const MeshFamily *family, const Mesh *mesh, int index) {
    TrainPlan plan;
    if (!mesh_plan(family, mesh, index % 2 + 1, &plan)) {
        cr_assert(mesh_plan(family, mesh, 1, &plan));
    }
    plan.zero = index % 4;
    plan.reshard = index % 3 ? RESHARD_ALWAYS : RESHARD_NEVER;
    plan.recompute = index / 2 % 2 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    plan_canonical(&plan);
    return plan;
}

RunResult mesh_one_rank(const MeshFamily *family, Arena *arena) {
    TrainPlan plan;
    const Mesh mesh = mesh_of_one();
    mesh_plan(family, &mesh, 1, &plan);
    const RunRequest request = mesh_request(family, &plan);
    return case_run_request(&request, arena);
}

typedef struct Pool {
    TrainPlan plans[MOST_PLANS];
    uint8_t rows[MOST_PLANS][FACTORS];
    int count;
} Pool;

static void row_of(const TrainPlan *plan, uint8_t row[FACTORS]) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        row[axis] = (uint8_t)plan->mesh.size[axis];
    }
    const int choices[] = {plan->grad_accum, plan->zero, (int)plan->reshard, (int)plan->recompute};
    for (int i = 0; i < FACTORS - AXIS_COUNT; i++) {
        row[AXIS_COUNT + i] = (uint8_t)choices[i];
    }
}

// Not every axis goes with every other one.
static bool is_legal(const MeshFamily *family, const TrainPlan *plan) {
    Arena arena = {0};
    const RunRequest request = mesh_request(family, plan);
    const bool legal = exec_check(&request.model, plan, request.target, "cpu", &arena) == NULL;
    arena_free(&arena);
    return legal;
}

// Choice bits: 0-1 stage, 2 reshard, 3 recompute, 4 accumulation.
static void add_shape(Pool *pool, const MeshFamily *family, const Mesh *mesh) {
    const int first = pool->count;
    for (int choice = 0; choice < CHOICES; choice++) {
        TrainPlan *plan = &pool->plans[pool->count];
        if (!mesh_plan(family, mesh, 1 + (choice >> 4), plan)) {
            continue;
        }
        plan->zero = choice & 3;
        plan->reshard = choice >> 2 & 1 ? RESHARD_NEVER : RESHARD_ALWAYS;
        plan->recompute = choice >> 3 & 1 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
        plan_canonical(plan);
        row_of(plan, pool->rows[pool->count]);
        bool known = !is_legal(family, plan);
        for (int i = first; i < pool->count && !known; i++) {
            known = memcmp(pool->rows[i], pool->rows[pool->count], FACTORS) == 0;
        }
        pool->count += !known;
    }
}

// Of shapes that the batch and the model can be cut into.
static void add_one_choice(Pool *pool, const MeshFamily *family, const Mesh *mesh, int index) {
    TrainPlan whole;
    if (!mesh_plan(family, mesh, 1, &whole)) {
        return;
    }
    pool->plans[pool->count] = mesh_spread_plan(family, mesh, index + 3);
    if (!is_legal(family, &pool->plans[pool->count])) {
        return;
    }
    row_of(&pool->plans[pool->count], pool->rows[pool->count]);
    pool->count++;
}

// Of shapes in which the axis is cut; AXIS_COUNT: of all.
typedef struct Shapes {
    AxisMask axes;
    Axis cut;
} Shapes;

static void add_world(Pool *pool, const MeshFamily *family, int world, bool every_choice, Shapes of) {
    Mesh meshes[MOST_SHAPES];
    const int count = mesh_enumerate(world, of.axes, meshes, MOST_SHAPES);
    cr_assert_leq(count, MOST_SHAPES);
    for (int i = 0; i < count; i++) {
        cr_assert_leq(pool->count + CHOICES, MOST_PLANS);
        if (of.cut < AXIS_COUNT && meshes[i].size[of.cut] == 1) {
            continue;
        }
        if (every_choice) {
            add_shape(pool, family, &meshes[i]);
        } else {
            add_one_choice(pool, family, &meshes[i], i);
        }
    }
}

// The chosen plans, or all where chosen is NULL.
static void plans_train(const MeshFamily *family, const Pool *pool, const int *chosen, int count) {
    Arena arena = {0};
    const RunResult reference = mesh_one_rank(family, &arena);
    Deviation worst = {0};
    for (int i = 0; i < count; i += PLAN_STRIDE) {
        Arena own = {0};
        const RunRequest request = mesh_request(family, &pool->plans[chosen ? chosen[i] : i]);
        const RunResult run = case_run_request(&request, &own);
        case_expect_same(&request, &run, &reference, &worst);
        arena_free(&own);
    }
    cr_log_warn("%d of %d plans: step 1 loss %.1e norm %.1e, last step loss %.1e norm %.1e",
                (count + PLAN_STRIDE - 1) / PLAN_STRIDE, pool->count, worst.loss_first, worst.norm_first,
                worst.loss_last, worst.norm_last);
    arena_free(&arena);
}

void mesh_plans_train(const MeshFamily *family, int world) {
    mesh_plans_train_with(family, world, AXES_FIRST, AXIS_COUNT);
}

void mesh_plans_train_with(const MeshFamily *family, int world, AxisMask axes, Axis cut) {
    Pool *pool = calloc(1, sizeof *pool);
    add_world(pool, family, world, true, (Shapes){axes, cut});
    plans_train(family, pool, NULL, pool->count);
    free(pool);
}

void mesh_pairs_train(const MeshFamily *family, const int *worlds) {
    mesh_pairs_train_with(family, worlds, AXES_FIRST, AXIS_COUNT);
}

void mesh_pairs_train_with(const MeshFamily *family, const int *worlds, AxisMask axes, Axis cut) {
    Pool *pool = calloc(1, sizeof *pool);
    for (; *worlds; worlds++) {
        add_world(pool, family, *worlds, *worlds <= 8, (Shapes){axes, cut});
    }
    int *chosen = calloc((size_t)pool->count, sizeof *chosen);
    plans_train(family, pool, chosen, covering_choose(pool->rows[0], pool->count, FACTORS, chosen));
    free(chosen);
    free(pool);
}

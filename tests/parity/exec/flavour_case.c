#include "tests/parity/exec/flavour_case.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/covering.h"

enum { PADDED_VOCAB = 128 * 8 };  // a multiple of 128 x tp up to 8
enum { MOST_SHAPES = 32 };

RunRequest flavour_request(const Target *target, const TrainPlan *plan) {
    const RunOptions options = case_options();
    RunRequest request = case_request(plan, &options);
    request.target = target;
    if (target->vocab_multiple > 0) {
        request.model.vocab = PADDED_VOCAB;
    }
    return request;
}

// One rank of our own program with the vocabulary of the target: two runs serve all targets.
typedef struct References {
    int seq, steps;
    RunResult runs[2];
    bool made[2];
    Arena arena;
} References;

static RunRequest sized_request(const References *references, const Target *target, const TrainPlan *plan) {
    RunRequest request = flavour_request(target, plan);
    request.plan.seq = references->seq;
    request.options.steps = references->steps;
    return request;
}

static const RunResult *one_rank(References *references, const Target *target) {
    const int padded = target->vocab_multiple > 0;
    if (!references->made[padded]) {
        TrainPlan plan;
        const Mesh single = mesh_of_one();
        case_plan(&single, 1, &plan);
        RunRequest request = sized_request(references, target, &plan);
        Error error = {0};
        cr_assert(target_find("ndtune", &request.target, &error) == STATUS_OK, "%s", error.message);
        references->runs[padded] = case_run_request(&request, &references->arena);
        references->made[padded] = true;
    }
    return &references->runs[padded];
}

static void plan_trains(References *references, const Target *target, const TrainPlan *plan, Deviation *worst) {
    const RunResult *reference = one_rank(references, target);
    Arena arena = {0};
    const RunRequest request = sized_request(references, target, plan);
    const RunResult run = case_run_request(&request, &arena);
    case_expect_same(&request, &run, reference, worst);
    arena_free(&arena);
}

// Choice bits: 0-1 recompute, 2 rotation, 3 accumulation, 4 reshard, 5-6 stage, 7-8 kernels. False where the target
// has no such plan.
static bool flavour_plan(const Target *target, const Mesh *mesh, int choice, TrainPlan *plan) {
    if (!case_plan(mesh, 1 + (choice >> 3 & 1), plan)) {
        return false;
    }
    plan->recompute = (Recompute)((choice & 3) % RECOMPUTE_COUNT);
    plan->cp_rotate = choice >> 2 & 1 ? CP_ROTATE_ALLGATHER : CP_ROTATE_RING;
    plan->reshard = choice >> 4 & 1 ? RESHARD_NEVER : RESHARD_ALWAYS;
    plan->zero = choice >> 5 & 3;
    plan->fused = (Fused)((choice >> 7 & 3) % FUSED_COUNT);
    plan_canonical(plan);
    Arena words = {0};
    const RunRequest request = flavour_request(target, plan);
    const bool runs = exec_check(&request.model, plan, target, "cpu", &words) == NULL;
    arena_free(&words);
    return runs;
}

enum { CHOICES = 1 << 9, FACTORS = AXIS_COUNT + 7 };

typedef struct Pool {
    uint8_t *rows;  // FACTORS values each: the axes' sizes, the choices, the target
    int count, capacity;
} Pool;

static void row_of(int target, const TrainPlan *plan, uint8_t row[FACTORS]) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        row[axis] = (uint8_t)plan->mesh.size[axis];
    }
    const int choices[] = {(int)plan->recompute,
                           (int)plan->cp_rotate,
                           plan->grad_accum,
                           (int)plan->reshard,
                           plan->zero,
                           (int)plan->fused,
                           target};
    for (int i = 0; i < FACTORS - AXIS_COUNT; i++) {
        row[AXIS_COUNT + i] = (uint8_t)choices[i];
    }
}

static TrainPlan plan_of(const uint8_t row[FACTORS]) {
    TrainPlan plan;
    Mesh mesh = mesh_of_one();
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        mesh.size[axis] = row[axis];
    }
    const uint8_t *choices = row + AXIS_COUNT;
    case_plan(&mesh, choices[2], &plan);
    plan.recompute = (Recompute)choices[0];
    plan.cp_rotate = (CpRotate)choices[1];
    plan.reshard = (Reshard)choices[3];
    plan.zero = choices[4];
    plan.fused = (Fused)choices[5];
    plan_canonical(&plan);
    return plan;
}

// All plans of a shape that the target runs, once each.
static void add_plans(Pool *pool, int index, const Target *target, const Mesh *mesh) {
    const int first = pool->count;
    for (int choice = 0; choice < CHOICES; choice++) {
        TrainPlan plan;
        uint8_t *row = pool->rows + pool->count * FACTORS;
        if (!flavour_plan(target, mesh, choice, &plan)) {
            continue;
        }
        cr_assert_lt(pool->count, pool->capacity);
        row_of(index, &plan, row);
        bool known = false;
        for (int i = first; i < pool->count && !known; i++) {
            known = memcmp(pool->rows + i * FACTORS, row, FACTORS) == 0;
        }
        pool->count += !known;
    }
}

static Pool pool_make(void) {
    enum { CAPACITY = 1 << 15 };
    return (Pool){.rows = calloc(CAPACITY, FACTORS), .capacity = CAPACITY};
}

static void add_world(Pool *pool, int world) {
    Mesh meshes[MOST_SHAPES];
    int target_count;
    const Target *targets = target_table(&target_count);
    const int count = mesh_enumerate(world, AXES_FIRST, meshes, MOST_SHAPES);
    for (int i = 0; i < target_count; i++) {
        const int before = pool->count;
        const bool ours = strcmp(targets[i].name, "ndtune") == 0;
        for (int k = 0; k < count && !ours; k++) {
            add_plans(pool, i, &targets[i], &meshes[k]);
        }
        cr_expect(ours || pool->count > before, "%s@%s runs no shape of world %d", targets[i].name, targets[i].version,
                  world);
    }
}

// The chosen rows, or all where chosen is NULL.
static void rows_train(References references, const Pool *pool, const int *chosen, int count, int stride) {
    Deviation worst = {0};
    int target_count, runs = 0;
    const Target *targets = target_table(&target_count);
    for (int i = 0; i < count; i += stride, runs++) {
        const uint8_t *row = pool->rows + (chosen ? chosen[i] : i) * FACTORS;
        const TrainPlan plan = plan_of(row);
        plan_trains(&references, &targets[row[FACTORS - 1]], &plan, &worst);
    }
    cr_log_warn("%d of %d plans: step 1 loss %.1e norm %.1e, last step loss %.1e norm %.1e", runs, pool->count,
                worst.loss_first, worst.norm_first, worst.loss_last, worst.norm_last);
    arena_free(&references.arena);
}

void flavour_plans_train(int world, int stride) {
    Pool pool = pool_make();
    add_world(&pool, world);
    rows_train((References){.seq = CASE_SEQ, .steps = CASE_STEPS}, &pool, NULL, pool.count, stride);
    free(pool.rows);
}

void flavour_pairs_train(void) {
    Pool pool = pool_make();
    add_world(&pool, 2);
    add_world(&pool, 4);
    int *chosen = calloc((size_t)pool.count, sizeof *chosen);
    const int count = covering_choose(pool.rows, pool.count, FACTORS, chosen);
    rows_train((References){.seq = PAIRS_SEQ, .steps = PAIRS_STEPS}, &pool, chosen, count, 1);
    free(chosen);
    free(pool.rows);
}

// Compares the best plan that a search finds with the best of all plans that can be expressed: every value of every
// choice that keeps the numerics of a training (no dtype, optimizer, or loss function), including those that the search
// skips because of what it knows about a target, on worlds small enough to simulate all of them. Left out: offload,
// which is for what does not fit; sharding stages that the target's own file cannot express.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autotune/search/best.h"
#include "autotune/search/prune.h"
#include "autotune/search/rank_orders.h"
#include "autotune/search/space.h"
#include "sim/frameworks/target_choices.h"
#include "tests/support/hash_of.h"
#include "tests/support/search_all.h"
#include "tests/unit/autotune/requests.h"

static const double WITHIN = 0.03;
// Plans that the closed form finds this much slower, or over memory, are not simulated: it would have to be
// wrong by as much and WITHIN more.
static const double BEHIND = 0.05, OVER = 0.10;

// Slowest first. A field's possible values are its row's words, or this many numbers.
static const PlanFieldId searched[] = {PLAN_ZERO,
                                       PLAN_RECOMPUTE,
                                       PLAN_RECOMPUTE_UNIT,
                                       PLAN_RECOMPUTE_LAYERS,
                                       PLAN_RECOMPUTE_EVERY,
                                       PLAN_RECOMPUTE_MODULES,
                                       PLAN_RESHARD,
                                       PLAN_RESHARD_RANKS,
                                       PLAN_REDUCE_BUCKET,
                                       PLAN_CP_ROTATE,
                                       PLAN_FUSED,
                                       PLAN_TP_OVERLAP,
                                       PLAN_GRAD_SYNC,
                                       PLAN_REDUCE_OVERLAP,
                                       PLAN_LOSS,
                                       PLAN_CUDA_GRAPHS,
                                       PLAN_PP_SCHEDULE,
                                       PLAN_VIRTUAL_STAGES};
enum { SEARCHED = sizeof searched / sizeof *searched };

typedef struct Every {
    const TuneRequest *request;
    Predictor predictor;
    Analytic *analytic;
    Arena arena;
    double found_tokens_per_s;  // by the search
    uint64_t *known;            // plans of the shape
    size_t count, capacity;
    int plans, simulated;         // legal ones
    double best_tokens_per_s[2];  // without room to spare, with it
    TrainPlan best[2];
} Every;

static void take(Every *every, const TrainPlan *plan) {
    Error error = {0};
    Estimate estimate;
    Prediction prediction;
    every->plans++;
    cr_assert_eq(analytic_estimate(every->analytic, plan, &estimate, &error), STATUS_OK, "%s", error.message);
    if ((double)plan_tokens_per_step(plan) / estimate.step_s < (1 - BEHIND) * every->found_tokens_per_s ||
        estimate.reserved_bytes > (1 + OVER) * every->request->memory_limit_bytes) {
        return;
    }
    every->simulated++;
    cr_assert_eq(predict_plan(&every->predictor, plan, true, &every->arena, &prediction, &error), STATUS_OK, "%s",
                 error.message);
    const bool room = best_leaves_room(every->request, prediction.memory.reserved_bytes);
    if (prediction.fits && prediction.tokens_per_s > every->best_tokens_per_s[room]) {
        every->best_tokens_per_s[room] = prediction.tokens_per_s;
        every->best[room] = *plan;
    }
}

static bool is_known(const uint64_t *known, size_t count, uint64_t identity) {
    for (size_t i = 0; i < count; i++) {
        if (known[i] == identity) {
            return true;
        }
    }
    return false;
}

static void take_new(Every *every, const TrainPlan *plan) {
    const uint64_t identity = hash_of_plan(plan);
    if (!is_known(every->known, every->count, identity)) {
        every->known = arena_grow(&every->arena, every->known, every->count, &every->capacity, sizeof *every->known);
        every->known[every->count++] = identity;
        take(every, plan);
    }
}

static int highest(const Every *every, PlanFieldId id) {
    if (id == PLAN_REDUCE_BUCKET) {
        return every->request->asked[id] == TUNE_ANY;  // none, or a smaller one
    }
    const int most = id == PLAN_RESHARD_RANKS ? every->request->world : every->request->model.layers;
    return plan_fields[id].high < most || plan_fields[id].words ? plan_fields[id].high : most;
}

// Kernels, stages and tp collectives over products that nobody refuses are some target's, or some links', or not.
static bool can_be_had(Every *every, const TrainPlan *plan, PlanFieldId id, int value) {
    const char *reason = NULL;
    const int stage = every->request->asked[PLAN_ZERO];
    if (id == PLAN_LOSS && (every->request->target->losses_by_call & LOSS_BIT(value))) {
        return false;  // custom user code
    }
    if (id == PLAN_TP_OVERLAP && value && !space_tries(every->request, plan, id, value)) {
        return false;
    }
    return (id != PLAN_ZERO || stage == TUNE_ANY || stage == value) &&
           ((id != PLAN_FUSED && id != PLAN_ZERO) || target_offers(every->request->target, plan, id, value)) &&
           !prune(every->request, plan, NULL, &every->arena, &reason);
}

// The fields after it are left at the target's defaults: with them the value is legal, or it is legal with none.
static void take_all(Every *every, const TrainPlan *plan, int place) {
    enum { MOST = 128 };
    if (place == SEARCHED) {
        take_new(every, plan);
        return;
    }
    const PlanFieldId id = searched[place];
    uint64_t taken[MOST];
    size_t count = 0;
    for (int value = plan_fields[id].low; value <= highest(every, id); value++) {
        TrainPlan chosen = *plan;
        plan_set(&chosen, id, id == PLAN_REDUCE_BUCKET ? value * TARGET_SMALL_BUCKET : value);
        if (id == PLAN_PP_SCHEDULE) {
            chosen.virtual_stages = target_usual(every->request->target, &chosen, PLAN_VIRTUAL_STAGES);
        }
        target_canonical(every->request->target, &chosen);
        const uint64_t identity = hash_of_plan(&chosen);
        if (!is_known(taken, count, identity)) {
            cr_assert_lt(count, MOST);
            taken[count++] = identity;
            if (can_be_had(every, &chosen, id, value)) {
                take_all(every, &chosen, place + 1);
            }
        }
    }
}

static void take_shape(Every *every, const Mesh *mesh) {
    TrainPlan plan;
    int orders;
    space_plain_plan(every->request, mesh, &plan);
    const AxisOrder *order = rank_orders_find(every->request, mesh, &every->arena, &orders);
    const int64_t data_ranks = mesh_group_size(mesh, AXES_BATCH);
    every->count = 0;
    for (plan.micro_batch = 1; plan.micro_batch * data_ranks <= every->request->global_batch; plan.micro_batch++) {
        plan.grad_accum = (int)(every->request->global_batch / (plan.micro_batch * data_ranks));
        for (int i = 0; i < orders && plan_global_batch(&plan) == every->request->global_batch; i++) {
            plan.mesh.order = order[i];
            take_all(every, &plan, 0);
        }
    }
}

static void take_shapes(Every *every) {
    Space space;
    predictor_init(&every->predictor, every->request, NULL);
    every->analytic = analytic_new(&every->request->model, &every->predictor.cost, &every->arena);
    space_meshes(every->request, &every->arena, &space);
    for (int i = 0; i < space.mesh_count; i++) {
        take_shape(every, &space.meshes[i]);
    }
    analytic_free(every->analytic);
    predictor_free(&every->predictor);
}

// By how much the best of all plans is faster than the best that the search found.
static double lost_of(const TuneRequest *request) {
    Arena arena = {0};
    TuneResult found;
    Error error = {0};
    cr_assert_eq(search_run(request, NULL, NULL, &arena, &found, &error), STATUS_OK, "%s", error.message);
    const Prediction *chosen = found.entry_count > 0 ? &found.entries[0] : NULL;
    Every every = {.request = request, .found_tokens_per_s = chosen ? chosen->tokens_per_s : 0};
    take_shapes(&every);
    const bool room = every.best_tokens_per_s[true] > 0;
    const double best = every.best_tokens_per_s[room];
    const double lost = chosen ? fmax(0, best / chosen->tokens_per_s - 1) : best > 0 ? INFINITY : 0;
    char of_all[PLAN_TEXT_BYTES] = "none", of_search[PLAN_TEXT_BYTES] = "none";
    fprintf(stderr, "%s@%s, %s of %d layers, %d of %s, %.3g GB: %d plans, %d simulated, the best %.2f %% faster\n",
            request->target->name, request->target->version, request->model.name, request->model.layers, request->world,
            request->cluster.name, 1e-9 * request->memory_limit_bytes, every.plans, every.simulated, 100 * lost);
    if (lost > 0.005) {
        fprintf(stderr, "  %s\n  %s\n", plan_text(&every.best[room], of_all),
                chosen ? plan_text(&chosen->plan, of_search) : of_search);
    }
    arena_free(&every.arena);
    arena_free(&arena);
    return lost;
}

// Models cut to a few layers, and memory to what makes them choose.
typedef struct Job {
    const char *model, *cluster;
    int world, layers;
    double memory;
} Job;
static const Job jobs[] = {{"llama-3-8b", "dgx-h100", 2, 4, 1},
                           {"llama-3-8b", "dgx-h100", 4, 4, 0.35},
                           {"llama-3-8b", "dgx-h100", 2, 4, 0.25},
                           {"1b", "pcie-4090-8x", 4, 4, 0.5},
                           {"7b", "dgx-a100-80g", 2, 4, 0.3}};
enum { JOBS = sizeof jobs / sizeof *jobs };

static TuneRequest small_request(Arena *arena, const char *target, const Job *job) {
    TuneRequest request = request_for(arena, job->world, job->model, job->cluster, target);
    request.model.layers = job->layers;
    request.seq = 4096;
    request.global_batch = 4 * job->world;
    request.threads = 1;
    request.memory_limit_bytes *= job->memory;
    return request;
}

static double lost_of_job(const char *target, const Job *job) {
    Arena arena = {0};
    const TuneRequest request = small_request(&arena, target, job);
    const double lost = lost_of(&request);
    arena_free(&arena);
    return lost;
}

#ifndef EVERY_TARGET
Test(every_plan, none_is_faster_than_the_found_one_by_more_than_the_margin) {
    cr_expect_leq(lost_of_job("torchtitan", &jobs[4]), WITHIN);
    cr_expect_leq(lost_of_job("accelerate", &jobs[4]), WITHIN);
    cr_expect_leq(lost_of_job("megatron", &jobs[4]), WITHIN);
    cr_expect_leq(lost_of_job("deepspeed", &jobs[4]), WITHIN);
}

// Its head is as dear as these layers: the rule by cost leaves the last stage without any.
Test(every_plan, a_pipeline_whose_last_stage_has_the_head_alone_is_priced) {
    cr_assert_leq(lost_of_job("nanotron", &jobs[0]), WITHIN);
}

// Of what is gathered over links between nodes only the first forward is left.
Test(every_plan, a_second_copy_within_the_nodes_is_found_where_links_between_them_are_slow) {
    Arena arena = {0};
    TuneResult found;
    Error error = {0};
    TuneRequest request = small_request(&arena, "deepspeed", &(Job){"llama-3-8b", "pcie-a100-8x", 16, 4, 0.29});
    request.asked[PLAN_ZERO] = 3;
    cr_assert_leq(lost_of(&request), WITHIN);
    request.asked[PLAN_REDUCE_BUCKET] = 0;  // smaller ones leave room for another plan
    cr_assert_leq(lost_of(&request), WITHIN);
    cr_assert_eq(search_run(&request, NULL, NULL, &arena, &found, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(found.entries[0].plan.reshard_ranks, 8);
    arena_free(&arena);
}
#else
Test(every_plan, none_is_faster_than_the_found_one_by_more_than_the_margin_for_any_target) {
    static const char *const targets[] = {"accelerate",      "accelerate@1.14", "axolotl",  "torchtitan",
                                          "torchtitan@head", "deepspeed",       "megatron", "megatron@0.19",
                                          "nanotron",        "automodel",       "trainer",  "trl",
                                          "fsdp1",           "ndtune"};
    double worst = 0;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        for (int k = 0; k < JOBS; k++) {
            worst = fmax(worst, lost_of_job(targets[i], &jobs[k]));
        }
    }
    fprintf(stderr, "the worst: %.2f %%\n", 100 * worst);
    cr_assert_leq(worst, WITHIN);
}
#endif

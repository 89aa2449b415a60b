// Laws of the search over random requests. The seed is printed; NDTUNE_SEED repeats a failure.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/search/batch.h"
#include "autotune/search/space.h"
#include "reports/export/export.h"
#include "sim/analytic/analytic.h"
#include "tests/support/orders.h"
#include "tests/support/rounds.h"
#include "tests/support/search_all.h"
#include "tests/support/seed.h"
#include "tests/support/splitmix.h"
#include "tests/unit/autotune/requests.h"

enum { ROUNDS = SEARCH_ROUNDS(6) };

static uint64_t seed_begin(void) {
    return seed_of_run("search", 20240607);
}

// Rounds of the cheap laws; NDTUNE_ROUNDS asks for more.
static int rounds_of(int usual) {
    const char *text = getenv("NDTUNE_ROUNDS");
    return text ? atoi(text) : usual;
}

static uint64_t pick(uint64_t *seed, uint64_t count) {
    return splitmix_next(seed) % count;
}

// Anything that the command line could ask, the awkward included.
static TuneRequest any_request(Arena *arena, uint64_t *seed) {
    static const int worlds[] = {1, 2, 4, 6, 7, 8, 12, 16, 24, 32, 96, 1000, 16384};
    static const char *const models[] = {"tiny",       "125m",     "7b",  "llama-3-8b",
                                         "mistral-7b", "qwen3-8b", "70b", "gpt3-175b"};
    static const char *const clusters[] = {"dgx-h100", "dgx-a100-80g", "pcie-4090-8x", "gb200-nvl72"};
    static const int seqs[] = {512, 1000, 2048, 4096, 8192};
    int target_count = 0;
    const Target *targets = target_table(&target_count);
    TuneRequest request =
        request_for(arena, worlds[pick(seed, 13)], models[pick(seed, 8)], clusters[pick(seed, 4)], "ndtune");
    request.target = &targets[pick(seed, (uint64_t)target_count)];
    request.seq = seqs[pick(seed, 5)];
    request.threads = (int)(1 + pick(seed, 3));
    request.effort = pick(seed, 8) == 0 && request.world <= 32 ? EFFORT_SIMULATE : EFFORT_ESTIMATE;
    request.objective = (Objective)pick(seed, OBJECTIVE_COUNT);
    request.global_batch = pick(seed, 2) ? (int64_t)(1 + pick(seed, 600)) : 0;
    request.micro_batch = pick(seed, 4) ? 0 : (int)(1 + pick(seed, 6));
    request.asked[PLAN_RECOMPUTE] = pick(seed, 3) ? TUNE_ANY : (int)pick(seed, RECOMPUTE_COUNT);
    request.asked[PLAN_RESHARD] = pick(seed, 4) ? TUNE_ANY : (int)pick(seed, RESHARD_COUNT);
    request.asked[PLAN_ZERO] = pick(seed, 4) ? TUNE_ANY : (int)pick(seed, 4);
    request.asked[PLAN_ATTENTION] = pick(seed, 3) ? TUNE_ANY : (int)pick(seed, ATTENTION_COUNT);
    request.asked[PLAN_FUSED] = pick(seed, 3) ? TUNE_ANY : (int)pick(seed, FUSED_COUNT);
    request.asked[PLAN_TP_OVERLAP] = pick(seed, 4) == 0;
    request.max_tp = pick(seed, 4) ? 0 : 4;
    AxisOrder orders[FIRST_ORDERS];
    first_orders(orders);
    request.any_order = pick(seed, 3) > 0;
    request.order = request.any_order ? orders[0] : orders[pick(seed, FIRST_ORDERS)];
    request.memory_limit_bytes *= pick(seed, 4) ? 1 : 0.5;
    return request;
}

static char *request_text(const TuneRequest *request, char out[256]) {
    snprintf(out, 256,
             "world %d model %s cluster %s target %s@%s seq %d batch %lld micro %d effort %d objective %d threads %d",
             request->world, request->model.name, request->cluster.name, request->target->name,
             request->target->version, request->seq, (long long)request->global_batch, request->micro_batch,
             (int)request->effort, (int)request->objective, request->threads);
    return out;
}

static void check_sums(const Prediction *entry, const char *what) {
    double time_s = entry->compute_s + entry->optimizer_s + entry->bubble_s + entry->overhead_s;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        cr_assert_geq(entry->exposed_s[axis], -1e-12 * entry->step_s, "%s", what);
        time_s += entry->exposed_s[axis];
    }
    cr_assert_float_eq(time_s, entry->step_s, 1e-9 * entry->step_s, "%s: %.17g is not %.17g", what, time_s,
                       entry->step_s);
    const MemoryBreakdown *memory = &entry->memory;
    const double bytes = memory->parameters + memory->gradients + memory->optimizer + memory->activations +
                         memory->logits + memory->gathered_parameters + memory->communication + memory->runtime;
    cr_assert_float_eq(bytes, memory->peak_bytes, 1, "%s", what);
    cr_assert_geq(memory->reserved_bytes, memory->peak_bytes, "%s", what);
}

static void check_entry(const TuneRequest *request, const Prediction *entry, const char *what) {
    check_sums(entry, what);
    cr_assert(isfinite(entry->step_s) && entry->step_s > 0, "%s", what);
    cr_assert(entry->step_low_s < entry->step_s && entry->step_s < entry->step_high_s, "%s", what);
    cr_assert(entry->fits && entry->memory.reserved_bytes <= request->memory_limit_bytes, "%s", what);
    cr_assert_eq(mesh_world(&entry->plan.mesh), request->world, "%s", what);
    cr_assert(request->global_batch == 0 || plan_global_batch(&entry->plan) == request->global_batch, "%s", what);
    cr_assert(request->micro_batch == 0 || entry->plan.micro_batch == request->micro_batch, "%s", what);
    cr_assert(request->max_tp == 0 || entry->plan.mesh.size[AXIS_TP] <= request->max_tp, "%s", what);
    cr_assert(entry->mfu > 0 && entry->mfu < 1 && entry->hfu >= entry->mfu, "%s: mfu %g hfu %g", what, entry->mfu,
              entry->hfu);
    Arena arena = {0};
    const char *reason = NULL;
    target_check(request->target, &request->model, &entry->plan, &arena, &reason);
    cr_assert_null(reason, "%s: %s", what, reason);
    arena_free(&arena);
}

static int compare_hashes(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void check_candidates(const TuneResult *result, Arena *arena, const char *what) {
    uint64_t *hashes = ARENA_ARRAY(arena, uint64_t, result->candidate_count);
    int rejected = 0;
    for (int i = 0; i < result->candidate_count; i++) {
        const Candidate *candidate = &result->candidates[i];
        hashes[i] = candidate->content_hash;
        rejected += candidate->state == CANDIDATE_REJECTED;
        cr_assert_eq(candidate->state == CANDIDATE_REJECTED, candidate->reason != NULL, "%s", what);
    }
    cr_assert_eq(rejected, result->search.pruned, "%s", what);
    qsort(hashes, (size_t)result->candidate_count, sizeof *hashes, compare_hashes);
    for (int i = 1; i < result->candidate_count; i++) {
        cr_assert_neq(hashes[i - 1], hashes[i], "%s: a plan comes twice", what);
    }
}

static int shape_compare(const void *a, const void *b) {
    return memcmp(((const Mesh *)a)->size, ((const Mesh *)b)->size, sizeof((const Mesh *)a)->size);
}

static void check_shapes(const TuneRequest *request, const TuneResult *result, Arena *arena, const char *what) {
    const AxisMask none = request->model.experts.count == 0 ? AXIS_BIT(AXIS_EP) : 0;  // nothing to spread
    const AxisMask axes = (AXES_FIRST | request->target->axes) & ~none;
    const int shapes = mesh_enumerate(request->world, axes, NULL, 0);
    cr_assert_eq(result->entry_count + result->rejected_count, shapes, "%s", what);
    Mesh *expected = ARENA_ARRAY(arena, Mesh, shapes), *found = ARENA_ARRAY(arena, Mesh, shapes);
    mesh_enumerate(request->world, axes, expected, shapes);
    for (int i = 0; i < result->entry_count; i++) {
        found[i] = result->entries[i].plan.mesh;
    }
    for (int i = 0; i < result->rejected_count; i++) {
        found[result->entry_count + i] = result->rejected[i].plan.mesh;
    }
    qsort(expected, (size_t)shapes, sizeof *expected, shape_compare);
    qsort(found, (size_t)shapes, sizeof *found, shape_compare);
    for (int i = 0; i < shapes; i++) {
        cr_assert(mesh_same_shape(&expected[i], &found[i]), "%s", what);
    }
}

Test(search_property, every_answer_keeps_the_promises_of_the_contract) {
    uint64_t seed = seed_begin() + 3;
    const int rounds = rounds_of(SEARCH_ROUNDS(24));
    for (int round = 0; round < rounds; round++) {
        Arena arena = {0};
        Error error = {0};
        TuneResult result;
        const TuneRequest request = any_request(&arena, &seed);
        char what[256];
        request_text(&request, what);
        cr_log_info("%d: %s", round, what);
        cr_assert_eq(search_run(&request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s: %s", what,
                     error.message);
        check_shapes(&request, &result, &arena, what);
        check_candidates(&result, &arena, what);
        for (int i = 0; i < result.entry_count; i++) {
            check_entry(&request, &result.entries[i], what);
            cr_assert_eq(plan_global_batch(&result.entries[i].plan), result.request->global_batch, "%s", what);
            const int first = request.objective == OBJECTIVE_MEMORY ? 0 : 1;  // after the best, ordered by speed
            const Prediction *before = i > first ? &result.entries[i - 1] : NULL;
            cr_assert(!before || request.objective == OBJECTIVE_MEMORY
                          ? !before || before->memory.reserved_bytes <= result.entries[i].memory.reserved_bytes
                          : before->tokens_per_s >= result.entries[i].tokens_per_s,
                      "%s: place %d", what, i + 1);
        }
        arena_free(&arena);
    }
}

static TuneRequest random_request(Arena *arena, uint64_t *seed) {
    static const int worlds[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
    static const char *const models[] = {"tiny", "7b", "llama-3-8b"};
    static const char *const targets[] = {"accelerate", "ndtune"};
    TuneRequest request = request_for(arena, worlds[splitmix_next(seed) % 10], models[splitmix_next(seed) % 3],
                                      "dgx-h100", targets[splitmix_next(seed) % 2]);
    if (splitmix_next(seed) % 2) {
        request.global_batch = (int64_t)(1 + splitmix_next(seed) % 200);
    }
    if (splitmix_next(seed) % 4 == 0) {
        request.micro_batch = (int)(1 + splitmix_next(seed) % 6);
    }
    if (splitmix_next(seed) % 3 == 0) {
        request.asked[PLAN_RECOMPUTE] = (int)(splitmix_next(seed) % RECOMPUTE_COUNT);
    }
    return request;
}

Test(space_property, candidates_multiply_to_the_world_and_meet_the_batch_or_are_told_why) {
    uint64_t seed = seed_begin();
    for (int round = 0; round < 200; round++) {
        Arena arena = {0};
        const TuneRequest request = random_request(&arena, &seed);
        Space space;
        space_enumerate(batch_settle(&request, &arena), &arena, &space);
        for (int i = 0; i < space.candidate_count; i++) {
            const TrainPlan *plan = &space.candidates[i].plan;
            cr_assert_eq(mesh_world(&plan->mesh), request.world, "round %d", round);
            cr_assert_geq(plan->grad_accum, 1);
            cr_assert(request.micro_batch == 0 || plan->micro_batch == request.micro_batch);
        }
        arena_free(&arena);
    }
}

Test(search_property, more_memory_never_loses_a_shape) {
    uint64_t seed = seed_begin() + 1;
    for (int round = 0; round < ROUNDS; round++) {
        Arena arena = {0};
        Error error = {0};
        TuneResult tight, roomy;
        TuneRequest request = random_request(&arena, &seed);
        request.memory_limit_bytes = 20e9;
        cr_assert_eq(search_run(&request, NULL, NULL, &arena, &tight, &error), STATUS_OK, "%s", error.message);
        request.memory_limit_bytes = 60e9;
        cr_assert_eq(search_run(&request, NULL, NULL, &arena, &roomy, &error), STATUS_OK, "%s", error.message);
        cr_assert_geq(roomy.entry_count, tight.entry_count, "round %d", round);
        if (tight.entry_count > 0) {
            cr_assert_geq(roomy.entries[0].tokens_per_s, 0.99 * tight.entries[0].tokens_per_s, "round %d", round);
        }
        arena_free(&arena);
    }
}

// Every stride-th candidate of a search compared with an estimate that knows nothing of the others. For layers kept in
// part the search interpolates between none and all.
static int check_cold(const TuneResult *result, int stride) {
    int checked = 0;
    for (int i = 0; i < result->candidate_count; i += stride) {
        const Candidate *candidate = &result->candidates[i];
        if (candidate->step_s <= 0 || plan_keeps_layers(&candidate->plan)) {
            continue;
        }
        Arena arena = {0};
        Error error = {0};
        Estimate estimate;
        char text[PLAN_TEXT_BYTES];
        const CostModel cost = {.profile = &result->request->cluster, .target = result->request->target};
        Analytic *cold = analytic_new(&result->request->model, &cost, &arena);
        cr_assert_eq(analytic_estimate(cold, &candidate->plan, &estimate, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(candidate->step_s, estimate.step_s, "%s: %.9g s among others, %.9g s alone",
                     plan_text(&candidate->plan, text), candidate->step_s, estimate.step_s);
        analytic_free(cold);
        arena_free(&arena);
        checked++;
    }
    return checked;
}

Test(search_property, an_estimate_does_not_depend_on_what_was_estimated_before) {
    enum { LOOKED_AT = 120 };
    static const char *const cases[][2] = {{"llama-3-8b", "megatron"}, {"llama-3-8b", "torchtitan"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena arena = {0};
        Error error = {0};
        TuneResult result;
        TuneRequest request = request_for(&arena, 16, cases[i][0], "dgx-h100", cases[i][1]);
        request.effort = EFFORT_ESTIMATE;
        request.threads = 1;
        cr_assert_eq(search_run(&request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
        cr_assert_gt(check_cold(&result, 1 + result.candidate_count / LOOKED_AT), 10, "hardly any is estimated");
        arena_free(&arena);
    }
}

// The best of a small job, as the usual file of its target.
static void check_file(const char *target, const char *model, const char *cluster, int world) {
    Arena arena = {0};
    TuneRequest request = request_for(&arena, world, model, cluster, target);
    const ExportFormat *format = NULL;
    TuneResult result;
    Error error = {0};
    request.seq = 2048;
    request.effort = EFFORT_ESTIMATE;
    cr_assert_eq(export_usual(request.target, &format, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(search_run(&request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
    if (result.entry_count > 0) {
        const ExportJob job = {
            .request = &request, .prediction = &result.entries[0], .command = "ndtune", .arena = &arena};
        char plan[PLAN_TEXT_BYTES];
        cr_expect_eq(export_check(format, &job, &error), STATUS_OK, "%s on %s, %s: %s", target, cluster,
                     plan_text(&result.entries[0].plan, plan), error.message);
    }
    arena_free(&arena);
}

Test(search_property, what_is_recommended_can_be_exported) {
    static const char *const targets[] = {"accelerate", "axolotl", "torchtitan", "torchtitan@0.3", "deepspeed",
                                          "megatron",   "trainer", "trl",        "automodel",      "nanotron"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        check_file(targets[i], "1b", "dgx-h100", 4);
    }
    check_file("deepspeed", "llama-3-8b", "pcie-a100-8x", 16);  // replicas with shards would be faster
}

// A search compared with the same search with one of its shortcuts switched off: the best plan of every shape is the
// same to the digit. What depends on how well the estimate orders plans is measured, not proven: its worst violation is
// printed and bounded. Rules that bound the answer cannot be switched off: the plans that they discard are shown not to
// be best. The seed is printed; NDTUNE_SEED repeats a failure.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/search/best.h"
#include "autotune/search/search.h"
#include "sim/memory/memory_breakdown.h"
#include "sim/step/stages.h"
#include "tests/support/rounds.h"
#include "tests/support/search_all.h"
#include "tests/support/seed.h"
#include "tests/support/splitmix.h"
#include "tests/unit/autotune/requests.h"

#ifndef ROUNDS
#define ROUNDS SEARCH_ROUNDS(20)  // the long test: 200
#endif

static uint64_t pick(uint64_t *state, uint64_t count) {
    return splitmix_next(state) % count;
}

static uint64_t seed_begin(void) {
    return seed_of_run("shortcuts", 20261122);
}

static TuneRequest any_request(Arena *arena, uint64_t *seed) {
    static const int worlds[] = {1, 2, 4, 6, 8};
    static const char *const models[] = {"125m", "1b", "7b", "llama-3-8b", "mistral-7b"};
    static const char *const clusters[] = {"dgx-h100", "dgx-a100-80g", "pcie-4090-8x", "gb200-nvl72"};
    static const int seqs[] = {1024, 2048, 4096, 8192};
    // The usual seed's cases are not drawn anew when a target is added behind these; other seeds draw from all.
    enum { USUAL_TARGETS = 28 };
    int target_count = 0;
    const Target *targets = target_table(&target_count);
    TuneRequest request =
        request_for(arena, worlds[pick(seed, 5)], models[pick(seed, 5)], clusters[pick(seed, 4)], "ndtune");
    request.target = &targets[pick(seed, getenv("NDTUNE_SEED") ? (uint64_t)target_count : USUAL_TARGETS)];
    request.seq = seqs[pick(seed, 4)];
    request.global_batch = pick(seed, 2) ? (int64_t)8 << pick(seed, 4) : 0;
    request.memory_limit_bytes *= pick(seed, 3) ? 1 : 0.4;
    request.threads = 1;
    return request;
}

static char *request_text(const TuneRequest *request, char out[256]) {
    snprintf(out, 256, "world %d model %s cluster %s target %s@%s seq %d batch %lld memory %.3g, without %x",
             request->world, request->model.name, request->cluster.name, request->target->name,
             request->target->version, request->seq, (long long)request->global_batch, request->memory_limit_bytes,
             request->without);
    return out;
}

static TuneResult answer(const TuneRequest *request, Arena *arena) {
    TuneResult result;
    Error error = {0};
    cr_assert_eq(search_run(request, NULL, NULL, arena, &result, &error), STATUS_OK, "%s", error.message);
    return result;
}

static void check_same(const TuneResult *with, const TuneResult *without, const char *what) {
    cr_assert_eq(with->entry_count, without->entry_count, "%s: %d and %d entries", what, with->entry_count,
                 without->entry_count);
    for (int i = 0; i < with->entry_count; i++) {
        const Prediction *a = &with->entries[i], *b = &without->entries[i];
        cr_assert(plans_equal(&a->plan, &b->plan), "%s: place %d is another plan", what, i + 1);
        cr_assert(a->step_s == b->step_s && a->memory.reserved_bytes == b->memory.reserved_bytes,
                  "%s: place %d has other digits", what, i + 1);
    }
}

static void check_without(const TuneRequest *request, const TuneResult *with, unsigned shortcuts, Arena *arena) {
    char text[256];
    TuneRequest other = *request;
    other.without = shortcuts;
    const TuneResult without = answer(&other, arena);
    check_same(with, &without, request_text(&other, text));
}

// Without all three, as the answer is then found with none of them; NDTUNE_EACH=1 says which one is to blame.
Test(search_shortcuts, what_is_too_large_for_memory_is_found_without_looking_at_it) {
    static const SearchShortcut proven[] = {SHORTCUT_SMALLER, SHORTCUT_THRIFTIEST, SHORTCUT_NEAREST};
    uint64_t seed = seed_begin();
    int64_t entries = 0;
    for (int round = 0; round < ROUNDS; round++) {
        Arena arena = {0};
        const TuneRequest request = any_request(&arena, &seed);
        const TuneResult with = answer(&request, &arena);
        unsigned all = 0;
        entries += with.entry_count;
        for (size_t i = 0; i < sizeof proven / sizeof *proven; i++) {
            all |= 1u << proven[i];
            if (getenv("NDTUNE_EACH")) {
                check_without(&request, &with, 1u << proven[i], &arena);
            }
        }
        check_without(&request, &with, all, &arena);
        arena_free(&arena);
    }
    cr_assert_gt(entries, ROUNDS, "hardly anything fits: nothing was compared");
}

// Why a candidate that a rule threw out is no answer, found without that rule; NULL where it would be one.
static const char *no_answer(const TuneRequest *request, const Candidate *candidate, Arena *arena) {
    const TrainPlan *plan = &candidate->plan;
    StepPrograms programs;
    LiveTraces traces = {0};
    Error error = {0};
    if (request->max_tp > 0 && plan->mesh.size[AXIS_TP] > request->max_tp) {
        return "max-tp";
    }
    if (step_lower_stages(&request->model, plan, request->target, arena, &programs, &error) == STATUS_INFEASIBLE) {
        return "legality";
    }
    if (request->global_batch > 0 && plan_global_batch(plan) != request->global_batch) {
        return "batch";
    }
    MemoryBreakdown memory;
    cr_assert_eq(memory_breakdown_stages(&programs, request->memory_limit_bytes, &traces, arena, &memory, &error),
                 STATUS_OK, "%s", error.message);
    live_traces_free(&traces);
    return memory.reserved_bytes > request->memory_limit_bytes ? "memory" : NULL;
}

// All rules but those of shortcuts, which throw out what is slower.
static bool is_bound(const char *rule) {
    static const char *const shortcuts[] = {"slice", "stages", "chunks", RULE_BEHIND,  "rings",  SEARCH_NOT_HAD,
                                            "sync",  "loss",   "graphs", "tp overlap", "bucket", "recompute"};
    bool bound = true;
    for (size_t i = 0; i < sizeof shortcuts / sizeof shortcuts[0]; i++) {
        bound = bound && strcmp(rule, shortcuts[i]) != 0;
    }
    return bound;
}

// Of what was thrown out for its memory before it was looked at, every tenth: a breakdown each.
Test(search_shortcuts, what_a_bound_throws_out_is_no_answer) {
    enum { ONE_IN = 10 };
    uint64_t seed = seed_begin() + 2;
    int64_t thrown_out = 0;
    for (int round = 0; round < ROUNDS; round++) {
        Arena arena = {0};
        TuneRequest request = any_request(&arena, &seed);
        request.max_tp = pick(&seed, 2) ? 2 : 0;
        const TuneResult result = answer(&request, &arena);
        for (int i = 0; i < result.candidate_count; i++) {
            const Candidate *candidate = &result.candidates[i];
            const char *rule = candidate->rule;
            const bool by_memory = rule && strcmp(rule, "memory") == 0;
            if (rule && is_bound(rule) && (!by_memory || pick(&seed, ONE_IN) == 0)) {
                char text[256];
                const char *why = no_answer(&request, candidate, &arena);
                char plan[PLAN_TEXT_BYTES];
                cr_assert(why && strcmp(why, rule) == 0, "%s, %s: %s, thrown out by %s: %s",
                          request_text(&request, text), plan_text(&candidate->plan, plan), why ? why : "an answer",
                          rule, candidate->reason);
                thrown_out++;
            }
        }
        arena_free(&arena);
    }
    cr_assert_gt(thrown_out, ROUNDS);
}

// ---- measured

// Of the plans that leave room, where there are any: which of those that are level with it is the best is no matter of
// the search.
static double fastest(const TuneResult *result) {
    double found[2] = {0, 0};
    for (int i = 0; i < result->candidate_count; i++) {
        const Candidate *candidate = &result->candidates[i];
        if (candidate->state == CANDIDATE_SIMULATED) {
            double *speed = &found[best_leaves_room(result->request, candidate->reserved_bytes)];
            *speed = fmax(*speed, candidate->tokens_per_s);
        }
    }
    return found[1] > 0 ? found[1] : found[0] > 0 ? found[0] : result->entries[0].tokens_per_s;
}

// How much faster the best plan is with a shortcut switched off, at most; and how many shapes more have a plan then.
typedef struct Worst {
    double lost;
    int64_t more_entries;
    int rounds;
} Worst;

static Worst worst_of(SearchShortcut shortcut, TuneRequest (*draw)(Arena *arena, uint64_t *seed), int rounds,
                      uint64_t *seed) {
    Worst worst = {.rounds = rounds};
    for (int round = 0; round < rounds; round++) {
        Arena arena = {0};
        TuneRequest request = draw(&arena, seed);
        const TuneResult with = answer(&request, &arena);
        request.without = 1u << shortcut;
        const TuneResult without = answer(&request, &arena);
        worst.more_entries += without.entry_count - with.entry_count;
        if (with.entry_count > 0) {
            worst.lost = fmax(worst.lost, fastest(&without) / fastest(&with) - 1);
        }
        arena_free(&arena);
    }
    return worst;
}

static void check_worst(const Worst *worst, const char *shortcut, double allowed) {
    fprintf(stderr, "%s: the best plan is at most %.4f %% slower, %d requests\n", shortcut, 100 * worst->lost,
            worst->rounds);
    cr_assert_leq(worst->lost, allowed);
}

// Long rings over short sequences.
static TuneRequest short_request(Arena *arena, uint64_t *seed) {
    TuneRequest request = any_request(arena, seed);
    request.world = pick(seed, 2) ? 16 : 32;
    request.seq = 256 << pick(seed, 2);
    return request;
}

static TuneRequest large_request(Arena *arena, uint64_t *seed) {
    TuneRequest request = any_request(arena, seed);
    request.world = 1024 << pick(seed, 2);  // above 200 shapes
    request.model = request_for(arena, 8, "70b", "dgx-h100", "ndtune").model;
    request.target = request_for(arena, 8, "70b", "dgx-h100", "torchtitan").target;
    request.seq = 8192;
    request.global_batch = 0;
    return request;
}

// Several micro-steps over several ranks, of a target that can reduce in each or once, in memory that often lacks.
static TuneRequest accumulating_request(Arena *arena, uint64_t *seed) {
    static const char *const targets[] = {"accelerate@1.15", "accelerate@1.14", "axolotl", "ndtune"};
    TuneRequest request = any_request(arena, seed);
    request.world = pick(seed, 2) ? 4 : 8;
    request.target = request_for(arena, 8, "7b", "dgx-h100", targets[pick(seed, 4)]).target;
    request.global_batch = (int64_t)64 << pick(seed, 2);
    return request;
}

static const double BELOW_NOISE = 0.01;  // judged: below what a run repeats itself to

Test(search_shortcuts, plans_that_the_estimate_ranks_lower_are_no_faster_than_the_margin_lets_pass) {
    uint64_t seed = seed_begin() + 3;
    const Worst worst = worst_of(SHORTCUT_BEHIND, any_request, MEASURED_ROUNDS(ROUNDS / 4), &seed);
    check_worst(&worst, "enough plans of a shape", BELOW_NOISE);
}

// Of 24 GB cards: estimates leave room where breakdowns do not. The first choice that fits is not the last one looked
// at.
static TuneRequest tight_request(Arena *arena, uint64_t *seed) {
    (void)seed;
    TuneRequest request = request_for(arena, 8, "7b", "aws-g5", "ndtune");
    request.seq = 1024;
    request.global_batch = 32;
    request.micro_batch = 1;
    request.threads = 1;
    return request;
}

Test(search_shortcuts, a_pipeline_that_leaves_no_room_does_not_hide_one_that_does) {
    const Worst worst = worst_of(SHORTCUT_BEHIND, tight_request, 1, NULL);
    check_worst(&worst, "a pipeline without room", BELOW_NOISE);
}

Test(search_shortcuts, memory_that_is_there_is_not_saved) {
    uint64_t seed = seed_begin() + 6;
    const Worst worst = worst_of(SHORTCUT_ROOM, accumulating_request, MEASURED_ROUNDS(ROUNDS / 2), &seed);
    check_worst(&worst, "gradients or logits whole with room to spare", BELOW_NOISE);
}

// Of a target with a switch for the compiler.
static TuneRequest compiling_request(Arena *arena, uint64_t *seed) {
    static const char *const targets[] = {"accelerate@1.15", "accelerate@1.13", "axolotl"};
    TuneRequest request = any_request(arena, seed);
    request.target = request_for(arena, 8, "7b", "dgx-h100", targets[pick(seed, 3)]).target;
    return request;
}

Test(search_shortcuts, what_another_value_of_a_choice_outdoes_is_no_faster) {
    uint64_t seed = seed_begin() + 7;
    const Worst worst = worst_of(SHORTCUT_OUTDONE, compiling_request, MEASURED_ROUNDS(ROUNDS / 4), &seed);
    check_worst(&worst, "outdone by another value", 0);
    cr_expect_eq(worst.more_entries, 0, "what was left out needs less memory");
}

// Of a target with pipelines, on slow links and in little memory, where they are worth it.
static TuneRequest pipeline_request(Arena *arena, uint64_t *seed) {
    static const char *const targets[] = {"torchtitan", "megatron", "nanotron", "deepspeed"};
    static const char *const models[] = {"1b", "7b", "llama-3-8b"};
    static const char *const clusters[] = {"pcie-4090-8x", "dgx-a100-80g", "pcie-a100-8x"};
    TuneRequest request = request_for(arena, pick(seed, 2) ? 4 : 8, models[pick(seed, 3)], clusters[pick(seed, 3)],
                                      targets[pick(seed, 4)]);
    request.seq = 2048;
    request.global_batch = (int64_t)16 << pick(seed, 2);
    request.micro_batch = 1;
    request.threads = 1;
    return request;
}

static const double WITHIN = 0.03;  // the estimates of two pipelines err against each other

Test(search_shortcuts, the_best_plan_is_that_of_pricing_all_pipelines_with_the_engine) {
    uint64_t seed = seed_begin() + 10;
    int pipelines = 0;
    for (int round = 0; round < ROUNDS / 3; round++) {
        Arena arena = {0};
        TuneRequest request = pipeline_request(&arena, &seed);
        const TuneResult with = answer(&request, &arena);
        request.without = 1u << SHORTCUT_BEHIND | 1u << SHORTCUT_STAGES;
        const TuneResult all = answer(&request, &arena);
        char text[256];
        if (with.entry_count > 0) {
            cr_expect_leq(fastest(&all) / fastest(&with) - 1, WITHIN, "%s: %g %%", request_text(&request, text),
                          100 * (fastest(&all) / fastest(&with) - 1));
            pipelines += mesh_stages(&all.entries[0].plan.mesh) > 1;
        }
        arena_free(&arena);
    }
    cr_assert_gt(pipelines, 0, "no pipeline was the best: nothing was compared");
}

// How much faster the best plan of a pipeline's shape is in `without`, at most; *compared: shapes of both.
static double lost_of_pipelines(const TuneResult *with, const TuneResult *without, int *compared) {
    double lost = 0;
    for (int i = 0; i < without->entry_count; i++) {
        for (int k = 0; k < with->entry_count; k++) {
            const Prediction *a = &with->entries[k], *b = &without->entries[i];
            if (mesh_stages(&b->plan.mesh) > 1 && mesh_same_shape(&a->plan.mesh, &b->plan.mesh)) {
                lost = fmax(lost, b->tokens_per_s / a->tokens_per_s - 1);
                (*compared)++;
            }
        }
    }
    return lost;
}

Test(search_shortcuts, no_pipeline_is_faster_for_recomputing_what_there_is_room_for) {
    uint64_t seed = seed_begin() + 9;
    int compared = 0;
    int64_t spared = 0;
    for (int round = 0; round < ROUNDS / 2; round++) {
        Arena arena = {0};
        TuneRequest request = pipeline_request(&arena, &seed);
        request.effort = EFFORT_ESTIMATE;
        const TuneResult with = answer(&request, &arena);
        request.without = 1u << SHORTCUT_ROOM;
        const TuneResult without = answer(&request, &arena);
        char text[256];
        cr_expect_eq(with.entry_count, without.entry_count, "%s", request_text(&request, text));
        const double lost = lost_of_pipelines(&with, &without, &compared);
        cr_expect_leq(lost, BELOW_NOISE, "%s: %g %%", request_text(&request, text), 100 * lost);
        spared += without.search.estimated - with.search.estimated;
        arena_free(&arena);
    }
    cr_assert_gt(compared, ROUNDS);
    cr_assert_gt(spared, ROUNDS, "hardly anything fits with room: nothing was left out");
}

Test(search_shortcuts, shapes_that_the_estimate_ranks_far_lower_are_no_faster_than_the_margin_lets_pass) {
    enum { LARGE = ROUNDS / 100 };
    if (LARGE == 0) {
        cr_skip_test("worlds of more than 200 shapes: in the long test");
    }
    uint64_t seed = seed_begin() + 5;
    const Worst worst = worst_of(SHORTCUT_FAR_SHAPES, large_request, LARGE, &seed);
    check_worst(&worst, "enough shapes", BELOW_NOISE);
}

Test(search_shortcuts, no_ring_that_is_cut_finer_than_an_attention_tile_is_the_best) {
    uint64_t seed = seed_begin() + 4;
    const Worst worst = worst_of(SHORTCUT_SLICE, short_request, ROUNDS / 4, &seed);
    check_worst(&worst, "cut finer than an attention tile", 0);
    cr_assert_gt(worst.more_entries, 0, "no shape was cut so fine: nothing was compared");
}

// Long sequences over many ranks, of which pipelines need fewer.
static TuneRequest ring_request(Arena *arena, uint64_t *seed) {
    TuneRequest request = request_for(arena, 64, pick(seed, 2) ? "llama-3-8b" : "7b", "dgx-h100", "megatron");
    request.seq = 8192 << pick(seed, 2);
    request.global_batch = (int64_t)32 << pick(seed, 2);
    request.micro_batch = 1;
    request.effort = EFFORT_ESTIMATE;
    request.threads = 1;
    return request;
}

Test(search_shortcuts, no_ring_longer_than_one_that_is_far_slower_is_the_best) {
    uint64_t seed = seed_begin() + 10;
    const Worst worst = worst_of(SHORTCUT_RINGS, ring_request, ROUNDS / 10, &seed);
    check_worst(&worst, "longer than a ring far behind", 0);
    cr_assert_gt(worst.more_entries, 0, "no ring was left out: nothing was compared");
}

// More than 256 shapes.
static TuneRequest many_request(Arena *arena, uint64_t *seed) {
    static const char *const targets[] = {"torchtitan", "megatron"};
    TuneRequest request = request_for(arena, 128, "llama-3-8b", "dgx-h100", targets[pick(seed, 2)]);
    request.seq = 4096 << pick(seed, 2);
    request.global_batch = (int64_t)128 << pick(seed, 2);
    request.micro_batch = 1;
    request.max_tp = 2;
    request.memory_limit_bytes *= pick(seed, 2) ? 1 : 0.5;
    request.effort = EFFORT_ESTIMATE;
    request.threads = 1;
    return request;
}

static const Prediction *entry_of(const TuneResult *result, const Mesh *mesh) {
    for (int i = 0; i < result->entry_count; i++) {
        if (mesh_same_shape(&result->entries[i].plan.mesh, mesh)) {
            return &result->entries[i];
        }
    }
    return NULL;
}

// Shapes that were not priced come last; for the others the choice that leaves room is that of a full search.
static int check_unpriced(const TuneResult *with, const TuneResult *all, const char *what) {
    int behind = 0;
    for (int i = 0; i < with->rejected_count; i++) {
        const Prediction *priced = entry_of(all, &with->rejected[i].plan.mesh);
        const bool unpriced = strcmp(with->rejected[i].rule, RULE_BEHIND) == 0;
        cr_assert(!priced || unpriced, "%s: %s", what, with->rejected[i].reason);
        cr_assert(!priced || priced->tokens_per_s < 0.91 * all->entries[0].tokens_per_s ||
                      !best_leaves_room(all->request, priced->memory.reserved_bytes),
                  "%s: %s", what, with->rejected[i].reason);
        behind += unpriced;
    }
    for (int i = 0; i < with->entry_count; i++) {
        const Prediction *entry = &with->entries[i], *same = entry_of(all, &entry->plan.mesh);
        cr_assert(!best_leaves_room(with->request, entry->memory.reserved_bytes) ||
                      (same && plans_equal(&same->plan, &entry->plan) && same->step_s == entry->step_s),
                  "%s: place %d is another plan", what, i + 1);
    }
    return behind;
}

Test(search_shortcuts, what_is_not_priced_is_slower_and_the_best_is_that_of_all) {
    uint64_t seed = seed_begin() + 11;
    int behind = 0;
    for (int round = 0; round < (ROUNDS + 19) / 20; round++) {
        Arena arena = {0};
        char text[256];
        TuneRequest request = many_request(&arena, &seed);
        const TuneResult with = answer(&request, &arena);
        TuneRequest of_all = request;
        of_all.without = 1u << SHORTCUT_UNPRICED;
        const TuneResult all = answer(&of_all, &arena);
        request_text(&request, text);
        cr_assert_eq(with.entry_count > 0, all.entry_count > 0, "%s", text);
        if (all.entry_count > 0) {
            cr_assert(plans_equal(&with.entries[0].plan, &all.entries[0].plan), "%s: another best", text);
            cr_assert_eq(with.entries[0].step_s, all.entries[0].step_s, "%s", text);
        }
        behind += check_unpriced(&with, &all, text);
        arena_free(&arena);
    }
    cr_assert_gt(behind, 0, "everything was priced: nothing was compared");
}

// How much faster the best plan of any shape is where all plans of all shapes are simulated.
Test(search_shortcuts, an_exhaustive_search_finds_no_plan_that_is_faster_than_the_margin_lets_pass) {
    uint64_t seed = seed_begin() + 1;
    const int rounds = MEASURED_ROUNDS(ROUNDS / 4);
    double worst = 0;
    for (int round = 0; round < rounds; round++) {
        Arena arena = {0};
        TuneRequest request = any_request(&arena, &seed);
        const TuneResult with = answer(&request, &arena);
        request.effort = EFFORT_EXHAUSTIVE;
        const TuneResult all = answer(&request, &arena);
        cr_assert_eq(with.entry_count, all.entry_count);
        if (all.entry_count > 0) {
            char text[256];
            const double lost = fastest(&all) / fastest(&with) - 1;
            worst = fmax(worst, lost);
            cr_assert_leq(lost, BELOW_NOISE, "%s: loses %.3f %%", request_text(&request, text), 100 * lost);
        }
        arena_free(&arena);
    }
    fprintf(stderr, "the best plan is at most %.4f %% slower than that of an exhaustive search, %d requests\n",
            100 * worst, rounds);
}

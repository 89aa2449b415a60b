// Every framework's program trains as one rank does: the targets differ in tensor parallelism (sequence-parallel,
// all-reduce, Hugging Face's), context parallelism (ring or gather, zigzag or contiguous), recompute (block, child,
// chosen operations, attention's core), gradient reduction (each micro-step or once, replicas too or later), units
// (root), copies around collectives and the loss (in place, fp32 copy, kept exponentials). Bounds as in test_meshes.c.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/parity/exec/exec_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(flavours, .fini = clean);

enum { PADDED_VOCAB = 128 * 8 };  // a multiple of 128 x tp up to 8: Megatron's padding leaves it as it is

static RunRequest flavour_request(const char *target, const TrainPlan *plan) {
    const RunOptions options = case_options();
    RunRequest request = case_request(plan, &options);
    Error error = {0};
    cr_assert(target_find(target, &request.target, &error) == STATUS_OK, "%s", error.message);
    if (request.target->vocab_multiple > 0) {
        request.model.vocab = PADDED_VOCAB;
    }
    return request;
}

typedef struct Tally {
    const char *target;
    RunResult reference;
    Deviation worst;
    int runs;
} Tally;

static Tally tally_begin(const char *target) {
    Tally tally = {.target = target};
    TrainPlan plan;
    const Mesh single = {{1, 1, 1, 1}};
    case_plan(&single, 1, &plan);
    RunRequest request = flavour_request(target, &plan);
    Error error = {0};
    cr_assert(target_find("ndtune", &request.target, &error) == STATUS_OK, "%s", error.message);
    tally.reference = case_run_request(&request, &arena);
    return tally;
}

static void tally_run(Tally *tally, const TrainPlan *plan) {
    Arena own = {0};
    const RunRequest request = flavour_request(tally->target, plan);
    const RunResult run = case_run_request(&request, &own);
    const Deviation deviation = case_deviation(&run, &tally->reference);
    char text[PLAN_TEXT_BYTES];
    plan_text(plan, text);
    deviation_widen(&tally->worst, &deviation);
    tally->runs++;
    cr_expect(strcmp(run.state, "ok") == 0, "%s %s: %s", tally->target, text, run.state);
    cr_expect(deviation.loss_first <= 2e-6 && deviation.norm_first <= 2e-6, "%s %s: step 1 loss %.2e norm %.2e",
              tally->target, text, deviation.loss_first, deviation.norm_first);
    cr_expect(deviation.loss_last <= 1e-4 && deviation.norm_last <= 1e-4, "%s %s: step 20 loss %.2e norm %.2e",
              tally->target, text, deviation.loss_last, deviation.norm_last);
    cr_expect(run.peak_bytes == run.planned_peak_bytes, "%s %s: peak %lld of %lld planned", tally->target, text,
              (long long)run.peak_bytes, (long long)run.planned_peak_bytes);
    arena_free(&own);
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
    const RunRequest request = flavour_request("ndtune", plan);
    ModelSpec model = request.model;
    model.vocab = target->vocab_multiple > 0 ? PADDED_VOCAB : model.vocab;
    return exec_check(&model, plan, target, &arena) == NULL;
}

enum { CHOICES = 1 << 9 };

static bool same_plan(const TrainPlan *a, const TrainPlan *b) {
    char text_a[PLAN_TEXT_BYTES], text_b[PLAN_TEXT_BYTES];
    return strcmp(plan_text(a, text_a), plan_text(b, text_b)) == 0;
}

// Up to `most` different plans of a shape, far apart in the list of choices; `first` turns with the shape.
static int spread_plans(const Target *target, const Mesh *mesh, int first, int most, TrainPlan *plans) {
    enum { STRIDE = 197 };  // odd, so every choice is met once; its bits are mixed, so neighbours differ in many
    int count = 0;
    for (int i = 0; i < CHOICES && count < most; i++) {
        TrainPlan plan;
        if (!flavour_plan(target, mesh, (first + i) * STRIDE % CHOICES, &plan)) {
            continue;
        }
        bool known = false;
        for (int k = 0; k < count; k++) {
            known = known || same_plan(&plan, &plans[k]);
        }
        if (!known) {
            plans[count++] = plan;
        }
    }
    return count;
}

enum { MOST_PLANS = 64 };

static void target_trains(const char *name, int world, int plans_per_shape) {
    Tally tally = tally_begin(name);
    const Target *target = NULL;
    Error error = {0};
    cr_assert(target_find(name, &target, &error) == STATUS_OK, "%s", error.message);
    Mesh meshes[32];
    const int count = mesh_enumerate(world, meshes, 32);
    for (int i = 0; i < count; i++) {
        TrainPlan plans[MOST_PLANS];
        const int found = spread_plans(target, &meshes[i], 7 * i, plans_per_shape, plans);
        for (int k = 0; k < found; k++) {
            tally_run(&tally, &plans[k]);
        }
    }
    cr_log_warn("%s, world %d: %d plans, step 1 loss %.1e norm %.1e, step 20 loss %.1e norm %.1e", name, world,
                tally.runs, tally.worst.loss_first, tally.worst.norm_first, tally.worst.loss_last,
                tally.worst.norm_last);
}

static const char *const targets[] = {"accelerate", "accelerate@1.13", "axolotl",  "torchtitan", "torchtitan@head",
                                      "megatron",   "megatron@2022",   "nanotron", "deepspeed",  "fsdp1"};

static void all_targets_train(int world, int plans_per_shape) {
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        target_trains(targets[i], world, plans_per_shape);
    }
}

Test(flavours, every_target_trains_as_one_rank_on_world_2) {
    all_targets_train(2, 3);
}

Test(flavours, every_target_trains_as_one_rank_on_world_4) {
    all_targets_train(4, 1);
}

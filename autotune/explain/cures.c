// One search by estimate per change. What a change costs is relative to the best plan of the request as it stands if
// memory had no limit, per accelerator: the price of the lack of memory alone.

#include "autotune/explain/cures.h"

#include <stdio.h>

#include "autotune/search/batch.h"
#include "autotune/search/search.h"
#include "autotune/search/space.h"
#include "sim/base/text.h"
#include "sim/frameworks/target_choices.h"

enum { MOST_TIMES = 64, LEAST_PART = 8, SEQ_LEAST = 512 };
static const double NO_LIMIT_BYTES = 1e18;
static const double LEVEL = 0.01;  // less is no cost

typedef struct Cures {
    const TuneRequest *asked;
    Arena *arena;
    Cure *list;
    int count;
    double free_tokens_per_s;  // of an accelerator whose memory has no limit
} Cures;

static double per_accelerator(const TuneRequest *request, const SearchBest *best) {
    return best->best.tokens_per_s / request->world;
}

static Status speed_without_limit(Cures *cures, Error *error) {
    TuneRequest request = *cures->asked;
    SearchBest best;
    request.memory_limit_bytes = NO_LIMIT_BYTES;
    TRY(search_best_alone(&request, cures->arena, &best, error));
    cures->free_tokens_per_s = best.feasible ? per_accelerator(&request, &best) : 0;
    return STATUS_OK;
}

// Adds the change when something fits under the request; *fits says so.
static Status try_cure(Cures *cures, const TuneRequest *request, CureKind kind, const char *option, bool *fits,
                       Error *error) {
    SearchBest best;
    TRY(search_best_alone(request, cures->arena, &best, error));
    *fits = best.feasible;
    if (best.feasible && cures->count < CURES_MOST) {
        const double speed = per_accelerator(request, &best);
        cures->list[cures->count++] =
            (Cure){.kind = kind,
                   .option = option,
                   .world = request->world,
                   .mesh = best.best.plan.mesh,
                   .step_s = best.best.step_s,
                   .tokens_per_s = best.best.tokens_per_s,
                   .reserved_bytes = best.best.memory.reserved_bytes,
                   .slower = cures->free_tokens_per_s > 0 ? 1 - speed / cures->free_tokens_per_s : 0};
    }
    return STATUS_OK;
}

// What the user fixed and the search would choose.
static Status free_choices(Cures *cures, Error *error) {
    static const PlanFieldId fixed[] = {PLAN_ZERO, PLAN_RESHARD, PLAN_RECOMPUTE, PLAN_GRAD_SYNC};
    const TuneRequest *asked = cures->asked;
    TuneRequest request = *asked;
    const char *options = asked->micro_batch ? " --micro-batch" : "";
    bool fits;
    request.micro_batch = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        const bool offered = fixed[i] != PLAN_GRAD_SYNC || target_has_choice(asked->target, PLAN_GRAD_SYNC);
        if (asked->asked[fixed[i]] != TUNE_ANY && offered) {
            request.asked[fixed[i]] = TUNE_ANY;
            options = arena_format(cures->arena, "%s --%s", options, plan_fields[fixed[i]].option.name);
        }
    }
    return *options
               ? try_cure(cures, &request, CURE_PLAN, arena_format(cures->arena, "%s auto", options + 1), &fits, error)
               : STATUS_OK;
}

static bool may_offload(const TuneRequest *request, int offload) {
    return request->asked[PLAN_OFFLOAD] <= OFFLOAD_NONE && (request->target->offloads >> offload & 1);
}

static Status offload(Cures *cures, Error *error) {
    bool fits;
    for (int to = OFFLOAD_NONE + 1; to < OFFLOAD_COUNT; to++) {
        TuneRequest request = *cures->asked;
        request.asked[PLAN_OFFLOAD] = to;
        if (may_offload(cures->asked, to)) {
            TRY(try_cure(cures, &request, CURE_PLAN, arena_format(cures->arena, "--offload %s", offload_names[to]),
                         &fits, error));
        }
    }
    return STATUS_OK;
}

static Status add_accelerators(Cures *cures, Error *error) {
    const TuneRequest *asked = cures->asked;
    const bool one_node = asked->cluster.fabric.nics == 0;
    bool fits = false;
    for (int times = 2; times <= MOST_TIMES && !fits; times *= 2) {
        TuneRequest request = *asked;
        const int world = asked->world * times;
        if (world > MESH_MAX_WORLD || (one_node && world > request.cluster.node.accelerators)) {
            break;
        }
        request_set_world(&request, world, cures->arena);
        TRY(try_cure(cures, &request, CURE_WORLD, arena_format(cures->arena, "--world %d", world), &fits, error));
    }
    return STATUS_OK;
}

// One sequence per rank or less: nothing accumulates, so no gradients are kept between micro-steps.
static bool smaller_batch(const TuneRequest *asked, TuneRequest *request) {
    const int64_t sequences = asked->global_batch > 0 ? asked->global_batch : batch_default(asked->seq);
    *request = *asked;
    request->batch_assumed = false;
    request->global_batch = asked->world;
    return sequences > asked->world;
}

// The nearest batch of as many sequences on every rank, where the one asked for is none.
static Status even_batch(Cures *cures, bool *fits, Error *error) {
    TuneRequest request = *cures->asked;
    int64_t around[BATCHES_AROUND];
    *fits = false;
    if (request.global_batch < request.world || request.global_batch % request.world == 0) {
        return STATUS_OK;
    }
    batches_around(request.global_batch, request.world, around);
    request.global_batch = around[0];
    return try_cure(cures, &request, CURE_TRAINING,
                    arena_format(cures->arena, "--global-batch %lld", (long long)request.global_batch), fits, error);
}

static Status shrink_batch(Cures *cures, Error *error) {
    TuneRequest request;
    bool fits;
    TRY(even_batch(cures, &fits, error));
    return !fits && smaller_batch(cures->asked, &request)
               ? try_cure(cures, &request, CURE_TRAINING,
                          arena_format(cures->arena, "--global-batch %d", cures->asked->world), &fits, error)
               : STATUS_OK;
}

static Status narrow_states(Cures *cures, Error *error) {
    const TuneRequest *asked = cures->asked;
    const int masters = asked->asked[PLAN_MASTER_WEIGHTS];
    const bool fp32 = masters == false || (masters == TUNE_ANY && !space_usual_master(asked->target, asked));
    TuneRequest request = *asked;
    bool fits;
    request.asked[PLAN_MASTER_WEIGHTS] = true;
    return fp32 && asked->asked[PLAN_PRECISION] != DTYPE_FP32
               ? try_cure(cures, &request, CURE_TRAINING, "--master-weights bf16", &fits, error)
               : STATUS_OK;
}

static Status shorten_sequences(Cures *cures, Error *error) {
    bool fits = false;
    for (int part = 2; part <= LEAST_PART && cures->asked->seq / part >= SEQ_LEAST && !fits; part *= 2) {
        TuneRequest request = *cures->asked;
        request.seq /= part;
        TRY(try_cure(cures, &request, CURE_TRAINING, arena_format(cures->arena, "--seq %d", request.seq), &fits,
                     error));
    }
    return STATUS_OK;
}

// All of the state on the host and the smallest batch: where neither alone is enough.
static Status offload_and_shrink(Cures *cures, Error *error) {
    TuneRequest request;
    bool fits;
    if (!may_offload(cures->asked, OFFLOAD_PARAMETERS) || !smaller_batch(cures->asked, &request)) {
        return STATUS_OK;
    }
    request.asked[PLAN_OFFLOAD] = OFFLOAD_PARAMETERS;
    return try_cure(cures, &request, CURE_TRAINING,
                    arena_format(cures->arena, "--offload %s --global-batch %d", offload_names[OFFLOAD_PARAMETERS],
                                 cures->asked->world),
                    &fits, error);
}

// Of all parameters only adapters; beside 4 bits where those of bf16 do not fit.
static Status train_adapters(Cures *cures, Error *error) {
    static const Finetune less[] = {FINETUNE_LORA, FINETUNE_QLORA};
    const int asked = cures->asked->asked[PLAN_FINETUNE];
    bool fits = false;
    for (int i = 0; i < 2 && !fits; i++) {
        TuneRequest request = *cures->asked;
        request.asked[PLAN_FINETUNE] = (int)less[i];
        if (asked < (int)less[i] && cures->asked->target->finetunes >> less[i] & 1) {
            TRY(try_cure(cures, &request, CURE_ADAPTERS,
                         arena_format(cures->arena, "--finetune %s", finetune_names[less[i]]), &fits, error));
        }
    }
    return STATUS_OK;
}

static bool nearer(const Cure *a, const Cure *b) {
    return a->kind != b->kind ? a->kind < b->kind : a->slower < b->slower;
}

static void sort_by_nearness(Cures *cures) {
    for (int i = 1; i < cures->count; i++) {
        const Cure cure = cures->list[i];
        int at = i;
        for (; at > 0 && nearer(&cure, &cures->list[at - 1]); at--) {
            cures->list[at] = cures->list[at - 1];
        }
        cures->list[at] = cure;
    }
}

Status cures_find(const TuneRequest *asked, Arena *arena, const Cure **list, int *count, Error *error) {
    Cures cures = {.asked = asked, .arena = arena, .list = ARENA_ARRAY(arena, Cure, CURES_MOST)};
    TRY(speed_without_limit(&cures, error));
    TRY(free_choices(&cures, error));
    TRY(offload(&cures, error));
    TRY(narrow_states(&cures, error));
    TRY(shrink_batch(&cures, error));
    TRY(shorten_sequences(&cures, error));
    if (cures.count == 0) {
        TRY(offload_and_shrink(&cures, error));
    }
    TRY(add_accelerators(&cures, error));
    TRY(train_adapters(&cures, error));
    sort_by_nearness(&cures);
    *list = cures.list;
    *count = cures.count;
    return STATUS_OK;
}

char *cure_text(const Cure *cure, char out[CURE_BYTES]) {
    char mesh[MESH_TEXT_BYTES], tokens[TEXT_UNIT_BYTES], slower[TEXT_UNIT_BYTES] = "";
    if (cure->slower >= LEVEL) {
        snprintf(slower, sizeof slower, ", %.0f %% slower", 100 * cure->slower);
    }
    snprintf(out, CURE_BYTES, "%s (%s, %s tokens/s%s)", cure->option, mesh_short_text(&cure->mesh, mesh),
             text_count(tokens, cure->tokens_per_s), slower);
    return out;
}

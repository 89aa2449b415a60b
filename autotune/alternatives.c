// One search by estimate per question (search_best), each with a closed form of its own: what changes is what the form
// remembers by. A batch near the one asked is one of the two multiples of the world around it, which every shape can
// make with some micro-batch; where a rank or link is slow none is named, because the form takes all to be as fast.

#include "autotune/alternatives.h"

#include <string.h>

#include "autotune/batch.h"
#include "autotune/predict.h"
#include "autotune/prune.h"
#include "autotune/search.h"
#include "autotune/space.h"
#include "sim/analytic/analytic.h"
#include "sim/base/text.h"
#include "sim/frameworks/target_choices.h"

enum { LARGEST_TIMES = 8, SEQ_LEAST = 512 };
static const double WORTH_SAYING = 0.02;  // of the tokens per second

static Status best_of(const TuneRequest *request, Arena *arena, SearchBest *best, Error *error) {
    const CostModel cost = {.profile = &request->cluster, .target = request->target};
    Mesh any = mesh_of_one();
    any.size[AXIS_DP_REPLICATE] = request->world;
    Analytic *analytic = analytic_new(&request->model, &cost, arena);
    const Status status = search_best(request, analytic, &any, arena, best, error);
    analytic_free(analytic);
    return status;
}

typedef struct Ways {
    Arena *arena;
    const char **texts;
    int *count;
} Ways;

// Adds "option (shape, what it comes to)" when something fits under the request; *fits says so.
static Status try_way(const Ways *ways, const TuneRequest *request, const char *option, bool *fits, Error *error) {
    SearchBest best;
    *fits = false;
    TRY(best_of(request, ways->arena, &best, error));
    if (best.feasible && *ways->count < ALTERNATIVES_MOST) {
        char mesh[MESH_TEXT_BYTES], tokens[TEXT_UNIT_BYTES];
        *fits = true;
        mesh_short_text(&best.best.plan.mesh, mesh);
        ways->texts[(*ways->count)++] =
            arena_format(ways->arena, "%s (%s, %s tokens/s)", option, mesh, text_count(tokens, best.best.tokens_per_s));
    }
    return STATUS_OK;
}

static Status larger_world(const Ways *ways, const TuneRequest *asked, Error *error) {
    const bool one_node = asked->cluster.fabric.nics == 0;
    bool fits = false;
    for (int times = 2; times <= LARGEST_TIMES && !fits; times *= 2) {
        TuneRequest request = *asked;
        request.world *= times;
        if (request.world > MESH_MAX_WORLD || (one_node && request.world > request.cluster.node.accelerators)) {
            break;
        }
        TRY(try_way(ways, &request, arena_format(ways->arena, "--world %d", request.world), &fits, error));
    }
    return STATUS_OK;
}

static Status shorter_sequences(const Ways *ways, const TuneRequest *asked, Error *error) {
    bool fits = false;
    for (int times = 2; times <= LARGEST_TIMES && asked->seq / times >= SEQ_LEAST && !fits; times *= 2) {
        TuneRequest request = *asked;
        request.seq /= times;
        TRY(try_way(ways, &request, arena_format(ways->arena, "--seq %d", request.seq), &fits, error));
    }
    return STATUS_OK;
}

static Status freed_choices(const Ways *ways, const TuneRequest *asked, Error *error) {
    TuneRequest request = *asked;
    bool fits;
    request.micro_batch = 0;
    request.asked[PLAN_ZERO] = request.asked[PLAN_RESHARD] = request.asked[PLAN_RECOMPUTE] =
        request.asked[PLAN_GRAD_SYNC] = TUNE_ANY;
    if (request.micro_batch == asked->micro_batch && request.asked[PLAN_ZERO] == asked->asked[PLAN_ZERO] &&
        request.asked[PLAN_RESHARD] == asked->asked[PLAN_RESHARD] &&
        request.asked[PLAN_RECOMPUTE] == asked->asked[PLAN_RECOMPUTE] &&
        (request.asked[PLAN_GRAD_SYNC] == asked->asked[PLAN_GRAD_SYNC] ||
         !target_has_choice(asked->target, PLAN_GRAD_SYNC))) {
        return STATUS_OK;
    }
    return try_way(ways, &request,
                   asked->asked[PLAN_GRAD_SYNC] == TUNE_ANY
                       ? "--micro-batch, --zero, --reshard and --recompute auto"
                       : "--micro-batch, --zero, --reshard, --recompute and --grad-sync auto",
                   &fits, error);
}

// What is kept on the host costs the least change of the job, and the most time: the little first.
static Status onto_the_host(const Ways *ways, const TuneRequest *asked, Error *error) {
    bool fits = false;
    for (int offload = asked->asked[PLAN_OFFLOAD] + 1; offload < OFFLOAD_COUNT && !fits; offload++) {
        TuneRequest request = *asked;
        request.asked[PLAN_OFFLOAD] = offload;
        if (asked->target->offloads >> offload & 1) {
            TRY(try_way(ways, &request, arena_format(ways->arena, "--offload %s", offload_names[offload]), &fits,
                        error));
        }
    }
    return STATUS_OK;
}

Status alternatives_that_fit(const TuneRequest *asked, Arena *arena, const char **texts, int *count, Error *error) {
    const Ways ways = {arena, texts, count};
    TuneRequest request = *asked;
    bool fits;
    *count = 0;
    TRY(freed_choices(&ways, asked, error));
    TRY(onto_the_host(&ways, asked, error));
    TRY(larger_world(&ways, asked, error));
    const int masters = asked->asked[PLAN_MASTER_WEIGHTS];
    const bool fp32 = masters == false || (masters == TUNE_ANY && !space_usual_master(asked->target, asked));
    if (fp32 && asked->asked[PLAN_PRECISION] != DTYPE_FP32) {
        request.asked[PLAN_MASTER_WEIGHTS] = true;
        TRY(try_way(&ways, &request, "--master-weights bf16", &fits, error));
        request.asked[PLAN_MASTER_WEIGHTS] = masters;
    }
    const int64_t sequences = asked->global_batch > 0 ? asked->global_batch : batch_default(asked->seq);
    if (sequences > asked->world) {
        request.batch_assumed = false;
        request.global_batch = asked->world;  // no accumulation, so no gradients kept between micro-batches
        TRY(try_way(&ways, &request, arena_format(arena, "--global-batch %d", asked->world), &fits, error));
    }
    return shorter_sequences(&ways, asked, error);
}

// The best plan with another number format, where that is legal and another plan.
static Status try_format(const TuneResult *result, PlanFieldId id, int value, Arena *arena, FormatAlternative *format,
                         bool *found, Error *error) {
    const Prediction *best = &result->entries[0];
    TuneRequest request = *result->request;
    TrainPlan plan = best->plan;
    Prediction prediction;
    const char *reason = NULL;
    *found = false;
    request.asked[id] = value;
    plan_set(&plan, id, value);
    plan.fp8_recipe = target_default_fp8(request.target);
    target_canonical(request.target, &plan);
    const bool runs = plan.precision != DTYPE_FP8 || cost_supports(&request.cluster.accelerator, DTYPE_FP8);
    if (plan_get(&best->plan, id) == value || !runs || prune(&request, &plan, NULL, arena, &reason)) {
        return STATUS_OK;
    }
    TRY(predict_once(&request, NULL, &plan, arena, &prediction, error));
    format->step = prediction.step_s / best->step_s - 1;
    format->saved_bytes = best->memory.reserved_bytes - prediction.memory.reserved_bytes;
    *found = true;
    return STATUS_OK;
}

Status alternative_formats(const TuneResult *result, Arena *arena, FormatAlternative formats[ALTERNATIVE_FORMATS],
                           int *count, Error *error) {
    static const struct {
        PlanFieldId id;
        int value;
        const char *words, *option;
    } tried[ALTERNATIVE_FORMATS] = {
        {PLAN_MASTER_WEIGHTS, true, "bf16 weights and states", "--master-weights bf16"},
        {PLAN_PRECISION, DTYPE_FP8, "fp8", "--precision fp8"},
    };
    *count = 0;
    if (result->entry_count == 0 || result->entries[0].plan.precision != DTYPE_BF16) {
        return STATUS_OK;
    }
    for (int i = 0; i < ALTERNATIVE_FORMATS; i++) {
        bool found;
        FormatAlternative *format = &formats[*count];
        *format = (FormatAlternative){.words = tried[i].words, .option = tried[i].option};
        TRY(try_format(result, tried[i].id, tried[i].value, arena, format, &found, error));
        *count += found;
    }
    return STATUS_OK;
}

static bool batch_was_in_the_way(const TuneResult *result) {
    for (int i = 0; i < result->rejected_count; i++) {
        if (strcmp(result->rejected[i].rule, "batch") == 0) {
            return true;
        }
    }
    return false;
}

Status alternative_batch(const TuneResult *result, Arena *arena, BatchAlternative *alternative, Error *error) {
    const TuneRequest *asked = result->request;
    *alternative = (BatchAlternative){0};
    if (asked->batch_assumed || asked->global_batch == 0 || asked->handicap_count > 0 ||
        !batch_was_in_the_way(result)) {
        return STATUS_OK;
    }
    SearchBest as_asked;
    TRY(best_of(asked, arena, &as_asked, error));
    double fastest = as_asked.feasible ? (1 + WORTH_SAYING) * as_asked.best.tokens_per_s : 0;
    for (int more = 0; more < 2; more++) {
        TuneRequest request = *asked;
        SearchBest best;
        request.global_batch = (asked->global_batch / asked->world + more) * asked->world;
        if (request.global_batch == 0 || request.global_batch == asked->global_batch) {
            continue;
        }
        TRY(best_of(&request, arena, &best, error));
        if (best.feasible && best.best.tokens_per_s > fastest) {
            fastest = best.best.tokens_per_s;
            *alternative = (BatchAlternative){
                .global_batch = request.global_batch,
                .mesh = best.best.plan.mesh,
                .gain = as_asked.feasible ? best.best.tokens_per_s / as_asked.best.tokens_per_s - 1 : 0};
        }
    }
    return STATUS_OK;
}

Status alternative_idle(const TuneResult *result, Arena *arena, IdleAlternative *alternative, Error *error) {
    const TuneRequest *asked = result->request;
    const int idle = asked->world % asked->cluster.node.accelerators;
    *alternative = (IdleAlternative){0};
    if (idle == 0 || idle == asked->world || asked->handicap_count > 0 || asked->objective == OBJECTIVE_MEMORY) {
        return STATUS_OK;
    }
    TuneRequest request = *asked;
    SearchBest best;
    request.world -= idle;
    TRY(best_of(&request, arena, &best, error));
    const double now = result->entry_count > 0 ? result->entries[0].tokens_per_s : 0;
    if (best.feasible && best.best.tokens_per_s > (1 + WORTH_SAYING) * now) {
        *alternative = (IdleAlternative){
            .idle = idle, .mesh = best.best.plan.mesh, .gain = now > 0 ? best.best.tokens_per_s / now - 1 : 0};
    }
    return STATUS_OK;
}

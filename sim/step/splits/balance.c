// The most even of the splits that two numbers can express. A stage's weight is its compute: matrices and attention of
// its layers, of experts those a token visits, head and loss on the last one, and again with each layer that predicts a
// further token there; the embedding is a lookup, not compute.
// Not weighed: messages, the individual chunks of a stage.

#include <math.h>
#include <string.h>

#include "sim/model/layer_kinds.h"
#include "sim/step/splits/split.h"

enum { MOST_PARTS = SPLIT_MOST_STAGES, MOST_LAYERS = 256 };
static const double WORTH_IT = 0.97;  // ours: of the slowest stage's time; a search has enough to try

typedef struct Balance {
    const ModelSpec *model;
    const Target *target;
    double head;                 // in units of the model's mean layer
    double weight[MOST_LAYERS];  // of each layer, in the same unit
    double all;                  // of all layers
    bool folded;
} Balance;

// Parameters of a layer that a token uses, plus its attention: counted as seq x heads x head_dim more parameters, two
// products over half of the sequence.
static double layer_weight(const ModelSpec *model, const TrainPlan *plan, LayerKind kind) {
    const LayerKindRow *row = &layer_kinds[kind];
    const int64_t read = model->experts.count > 0 ? model_layer_parameters(model, kind) - row->idle_matrices(model)
                                                  : row->matrix_parameters(model);
    return (double)read + (double)plan->seq * model->heads * model->head_dim;
}

// In the unit of layer_weight: a recomputed layer takes as long as four thirds of it.
static double head_weight(const ModelSpec *model, const TrainPlan *plan) {
    const double again = plan->recompute == RECOMPUTE_FULL ? 4.0 / 3 : 1;
    return (1 + plan->mtp) * ((double)model->vocab * model->hidden / again);
}

static void weigh(const ModelSpec *model, const TrainPlan *plan, Balance *balance) {
    double sum = 0, kinds[LAYER_KIND_COUNT];
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        kinds[run.kind] = layer_weight(model, plan, run.kind);
        sum += run.count * kinds[run.kind];
    }
    const bool alike = model_run_count(model) == 1;
    const double mean = alike ? kinds[model_run(model, 0).kind] : sum / model->layers;
    const int last_run = model_run_count(model) - 1;
    for (int i = 0, layer = 0; i <= last_run; i++) {
        const LayerRun run = model_run(model, i);
        for (int end = layer + run.count + (i == last_run ? plan->mtp : 0); layer < end; layer++) {
            balance->weight[layer] = kinds[run.kind] / mean;
            balance->all += balance->weight[layer];
        }
    }
    balance->head = head_weight(model, plan) / mean;
}

static void load(const Balance *balance, const TrainPlan *plan, double *of_stage) {
    const int32_t stages = mesh_stages(&plan->mesh), parts = plan_all_chunks(plan);
    int32_t counts[MOST_PARTS], layer = 0;
    memset(of_stage, 0, (size_t)stages * sizeof *of_stage);
    split_layers(balance->model, balance->target, plan, counts);
    for (int32_t part = 0; part < parts; part++) {
        const bool back = balance->folded && part / stages % 2 == 1;
        const int32_t stage = back ? stages - 1 - part % stages : part % stages;
        for (const int32_t end = layer + counts[part]; layer < end; layer++) {
            of_stage[stage] += balance->weight[layer];
        }
        of_stage[stage] += part == parts - 1 ? balance->head : 0;
    }
}

static double slowest(const Balance *balance, const TrainPlan *plan) {
    double of_stage[MOST_PARTS], most = 0;
    load(balance, plan, of_stage);
    for (int32_t stage = 0; stage < mesh_stages(&plan->mesh); stage++) {
        most = fmax(most, of_stage[stage]);
    }
    return most;
}

bool split_loads(const ModelSpec *model, const Target *target, const TrainPlan *plan, double *of_stage) {
    if (plan_all_chunks(plan) > MOST_PARTS || model->layers + plan->mtp > MOST_LAYERS) {
        return false;
    }
    Balance balance = {.model = model, .target = target, .folded = plan_is_folded(plan)};
    weigh(model, plan, &balance);
    load(&balance, plan, of_stage);
    return true;
}

double split_load(const ModelSpec *held, const TrainPlan *plan, bool head) {
    double sum = head ? head_weight(held, plan) : 0;
    for (int i = 0; i < model_run_count(held); i++) {
        const LayerRun run = model_run(held, i);
        sum += run.count * layer_weight(held, plan, run.kind);
    }
    return sum;
}

static bool is_legal(const Balance *balance, const TrainPlan *plan) {
    Arena arena = {0};
    const char *reason = target_refuse_split(balance->target, balance->model, plan, &arena);
    arena_free(&arena);
    return reason == NULL;
}

bool split_balance(const ModelSpec *model, const Target *target, TrainPlan *plan) {
    const int32_t parts = plan_all_chunks(plan), layers = model->layers, stages = mesh_stages(&plan->mesh);
    Balance balance = {.model = model, .target = target, .folded = plan_is_folded(plan)};
    if (parts > MOST_PARTS || layers + plan->mtp > MOST_LAYERS || plan->pp_split < SPLIT_WEIGHTED) {
        return false;
    }
    weigh(model, plan, &balance);
    TrainPlan tried = *plan, own = *plan;
    own.pp_split = SPLIT_TARGET;
    double best = slowest(&balance, &own) * WORTH_IT;
    const double least = (balance.all + balance.head) / stages;
    const int32_t units = plan->pp_split == SPLIT_ENDS ? stages : parts;
    const int32_t most = plan->pp_split == SPLIT_WEIGHTED ? layers / units : 2 * (layers / units) + 1;
    bool found = false;
    for (tried.pp_first = 0; least <= best && tried.pp_first <= most; tried.pp_first++) {
        for (tried.pp_last = 0; tried.pp_last <= most; tried.pp_last++) {
            double time;
            if (is_legal(&balance, &tried) && (time = slowest(&balance, &tried)) < best) {
                *plan = tried;
                best = time;
                found = true;
            }
        }
    }
    return found;
}

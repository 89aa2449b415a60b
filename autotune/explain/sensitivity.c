// One plan, one changed quantity, one simulation. Quantities of the machine are rows of the table that calibration has
// factors for (autotune/calibrate/parameters.c), so measured curves of a profile change with them; sequence and
// accumulation are the plan's own, in the nearest whole numbers. Everything else is fixed: how another plan would
// respond to the change is the question of explain.c.

#include "autotune/explain/sensitivity.h"

#include <math.h>
#include <string.h>

#include "autotune/calibrate/calibrate.h"
#include "autotune/parallel.h"
#include "autotune/predict/predict.h"

enum { PARAMETERS_MOST = 2, SEQUENCE_GRAIN = 64, LEAST_ACCUM = 3 };  // of fewer, one more is far from a fifth
enum { SIDE_LESS, SIDE_MORE, SIDE_COUNT };
static const double side_factor[SIDE_COUNT] = {0.8, 1.2};

typedef struct Quantity {
    const char *name, *sentence;
    const char *parameters[PARAMETERS_MOST];           // rows that it scales together; none: of the plan
    double (*change)(double factor, TrainPlan *plan);  // the factor that was reached
} Quantity;

// Slices of context parallelism and tiles of attention stay whole.
static double change_sequence(double factor, TrainPlan *plan) {
    const int grain = plan->seq % SEQUENCE_GRAIN == 0 ? SEQUENCE_GRAIN : 1, was = plan->seq;
    plan->seq = (int)round(factor * was / grain) * grain;
    return (double)plan->seq / was;
}

static double change_accumulation(double factor, TrainPlan *plan) {
    const int was = plan_round_steps(plan), by = (int)fmax(1, round(fabs(factor - 1) * was));
    if (was < LEAST_ACCUM) {
        return 1;
    }
    plan->grad_accum += (factor < 1 ? -by : by) * plan_rounds(plan);
    return (double)plan_round_steps(plan) / was;
}

static const Quantity quantities[] = {
    {"gemm_rate", "rate of matrix products", {"gemm_rate"}, NULL},
    {"attention_rate", "rate of attention", {"attention_rate"}, NULL},
    {"memory_bandwidth", "memory bandwidth", {"memory_rate"}, NULL},
    {"node_bandwidth", "links inside a node", {"node_bandwidth"}, NULL},
    {"fabric_bandwidth", "network between nodes", {"fabric_bandwidth"}, NULL},
    {"latency", "latency of links and network", {"node_latency", "fabric_latency"}, NULL},
    {"host_cost", "host time per operation", {"host_launch"}, NULL},
    {"sequence", "sequence length", {NULL}, change_sequence},
    {"accumulation", "micro-batches per step", {NULL}, change_accumulation},
};
enum { QUANTITY_COUNT = sizeof quantities / sizeof quantities[0] };
_Static_assert((int)QUANTITY_COUNT <= (int)SENSITIVITY_MOST, "a row each");

typedef struct Asking {
    const TuneRequest *request;
    const TrainPlan *plan;
    double seconds_per_token;  // of the plan as it is
    Sensitivity rows[QUANTITY_COUNT];
} Asking;

bool sensitivity_scale(const char *name, double factor, ClusterProfile *cluster, TargetRuntime *runtime, Arena *arena) {
    int count = 0;
    const CalibrationParameter *parameters = calibration_parameters(&count);
    for (int i = 0; name && i < count; i++) {
        const CalibrationParameter *parameter = &parameters[i];
        if (strcmp(parameter->name, name) == 0 && parameter->applies(cluster, runtime)) {
            parameter->scale(factor, &(CalibrationScaled){cluster, runtime, arena});
            return true;
        }
    }
    return false;
}

static double seconds_per_token(const Prediction *prediction) {
    return prediction->step_s / (double)plan_tokens_per_step(&prediction->plan);
}

// The factor that the quantity has after it; 0 = it cannot be changed so.
static double apply(const Quantity *quantity, double factor, TuneRequest *request, Target *target, TrainPlan *plan,
                    Arena *arena) {
    if (quantity->change) {
        const double reached = quantity->change(factor, plan);
        const char *reason = NULL;
        target_check(target, &request->model, plan, arena, &reason);
        return reached == 1 || reason ? 0 : reached;
    }
    bool any = false;
    for (int i = 0; i < PARAMETERS_MOST; i++) {
        any |= sensitivity_scale(quantity->parameters[i], factor, &request->cluster, &target->runtime, arena);
    }
    return any ? factor : 0;
}

static Status ask_end(const Asking *asking, const Quantity *quantity, double factor, Arena *arena, SensitivityEnd *end,
                      Error *error) {
    TuneRequest request = *asking->request;
    Target target = *request.target;
    TrainPlan plan = *asking->plan;
    Prediction prediction;
    request.target = &target;
    const double reached = apply(quantity, factor, &request, &target, &plan, arena);
    if (reached == 0) {
        return STATUS_OK;
    }
    TRY(predict_once(&request, NULL, &plan, arena, &prediction, error));
    *end = (SensitivityEnd){reached, seconds_per_token(&prediction) / asking->seconds_per_token - 1, prediction.fits};
    return STATUS_OK;
}

static Status ask_piece(void *context, int worker, int index, Error *error) {
    Asking *asking = context;
    (void)worker;
    Arena arena = {0};
    const int side = index % SIDE_COUNT;
    Sensitivity *row = &asking->rows[index / SIDE_COUNT];
    const Status status = ask_end(asking, &quantities[index / SIDE_COUNT], side_factor[side], &arena,
                                  side == SIDE_LESS ? &row->less : &row->more, error);
    arena_free(&arena);
    return status;
}

static double widest(const Sensitivity *row) {
    return fmax(fabs(row->less.change), fabs(row->more.change));
}

// What was asked, what moves most first; of equals in the order of the table.
static void rank(const Asking *asking, Sensitivities *sensitivities) {
    sensitivities->count = 0;
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        const Sensitivity *row = &asking->rows[i];
        if (row->less.factor == 0 && row->more.factor == 0) {
            continue;
        }
        int at = sensitivities->count++;
        for (; at > 0 && widest(&sensitivities->rows[at - 1]) < widest(row); at--) {
            sensitivities->rows[at] = sensitivities->rows[at - 1];
        }
        sensitivities->rows[at] = *row;
    }
}

Status sensitivity_run(const TuneRequest *request, const TrainPlan *plan, const Progress *progress,
                       Sensitivities *sensitivities, Error *error) {
    Asking asking = {.request = request, .plan = plan};
    Arena arena = {0};
    Prediction as_it_is;
    Status status = predict_once(request, NULL, plan, &arena, &as_it_is, error);
    if (status == STATUS_OK) {
        asking.seconds_per_token = seconds_per_token(&as_it_is);
        for (int i = 0; i < QUANTITY_COUNT; i++) {
            asking.rows[i] = (Sensitivity){.name = quantities[i].name, .sentence = quantities[i].sentence};
        }
        const ParallelWork work = {
            parallel_workers(request->threads), QUANTITY_COUNT * SIDE_COUNT, ask_piece, &asking, progress,
            "changing one thing at a time"};
        status = parallel_run(&work, error);
        rank(&asking, sensitivities);
    }
    arena_free(&arena);
    return status;
}

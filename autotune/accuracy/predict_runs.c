// Calls the same functions as `predict` and the search. Working memory is kept from row to row; the memos of the closed
// form are kept while consecutive rows share a model, cluster and target.

#include "autotune/accuracy/predict_runs.h"

#include <math.h>

#include "autotune/accuracy/accuracy.h"
#include "autotune/predict/host_interval.h"
#include "autotune/predict/predict.h"
#include "sim/frameworks/framework.h"

struct RunPredictor {
    Effort effort;
    Arena *arena;
    Arena scratch, memos;
    LiveTraces traces;
    Analytic *analytic;
    uint64_t analytic_key;
};

RunPredictor *run_predictor_new(Effort effort, Arena *arena) {
    RunPredictor *predictor = ARENA_NEW(arena, RunPredictor);
    predictor->effort = effort;
    predictor->arena = arena;
    return predictor;
}

static void forget_memos(RunPredictor *predictor) {
    if (predictor->analytic) {
        analytic_free(predictor->analytic);
        predictor->analytic = NULL;
    }
    arena_reset(&predictor->memos);
}

void run_predictor_free(RunPredictor *predictor) {
    forget_memos(predictor);
    arena_free(&predictor->memos);
    arena_free(&predictor->scratch);
    live_traces_free(&predictor->traces);
}

static Status estimate(RunPredictor *runs, const Predictor *predictor, const RunCase *run, Estimate *found,
                       Error *error) {
    const Target *target = run->request.target;
    Hash identity = predictor->identity;
    target_hash_all(target, &identity);  // a row's label may add to what it refuses
    const uint64_t key = hash_end(&identity);
    if (!runs->analytic || runs->analytic_key != key) {
        forget_memos(runs);
        // The row outlives the memos, which point to its request.
        const CostModel cost = {.profile = &run->request.cluster, .target = target};
        runs->analytic = analytic_new(&run->request.model, &cost, &runs->memos);
        runs->analytic_key = key;
    }
    return analytic_estimate(runs->analytic, &run->plan, found, error);
}

static Status predict(RunPredictor *runs, Predictor *predictor, RunCase *run, bool memory_only, Error *error) {
    if (!memory_only && runs->effort != EFFORT_ESTIMATE) {
        return predict_plan(predictor, &run->plan, false, runs->arena, &run->prediction, error);
    }
    Estimate found = {0};
    if (!memory_only || plan_has_stages(&run->plan)) {  // the estimate says which stage decides whether it fits
        TRY(estimate(runs, predictor, run, &found, error));
    }
    return predict_from_estimate(predictor, &run->plan, &found, runs->arena, &run->prediction, error);
}

// Rows do not say in which format gradients are reduced, or weights of experts kept: a plan counts as out of memory
// only where it is in all. Both are less in recipes with published figures, whose steps are too short already with
// experts (tests/accuracy/runs/RESULTS.md).
static Status predict_unsaid(RunPredictor *runs, Predictor *predictor, RunCase *run, bool memory_only, Error *error) {
    TRY(predict(runs, predictor, run, memory_only, error));
    const bool may_be_less = run->request.target->reduces_often_bf16 && run->plan.zero > 0 &&
                             plan_activation_dtype(&run->plan) == DTYPE_BF16 &&
                             run->plan.reduce_dtype == REDUCE_DTYPE_TARGET;
    if (!may_be_less || run->prediction.fits) {
        return STATUS_OK;
    }
    run->plan.reduce_dtype = REDUCE_DTYPE_BF16;
    TRY(predict(runs, predictor, run, memory_only, error));
    if (!run->prediction.fits && run->may_keep_fp8) {
        run->plan.fp8_parameters = true;
        TRY(predict(runs, predictor, run, memory_only, error));
        run->plan.fp8_parameters = run->prediction.fits;
    }
    if (run->prediction.fits) {
        return STATUS_OK;
    }
    run->plan.reduce_dtype = REDUCE_DTYPE_TARGET;
    return predict(runs, predictor, run, memory_only, error);
}

// The stage whose memory the row has; -1: the fullest. What a device holds is of no log, and what nobody named is from
// one only where the framework logs what it reserves, the figure that it is held against.
static int logged_stage(const RunCase *run, const Framework *framework) {
    const MemoryKind kind = accuracy_memory_kind(run->row);
    const bool of_log = kind == MEMORY_KIND_UNKNOWN ? framework->logs_reserved : kind != MEMORY_KIND_DEVICE;
    if (!plan_has_stages(&run->plan) || !of_log || run->row->mem_fullest) {
        return -1;
    }
    return framework->logged_stage == LOGS_FIRST  ? 0
           : framework->logged_stage == LOGS_LAST ? mesh_stages(&run->plan.mesh) - 1
                                                  : -1;
}

// What the framework's own log would report as memory.
static Status predict_logged(RunPredictor *runs, Predictor *predictor, RunCase *run, Error *error) {
    const Framework *framework = framework_of(run->request.target->name);
    run->logs_reserved = framework && framework->logs_reserved;
    const int stage = framework ? logged_stage(run, framework) : -1;
    return stage >= 0 ? predict_memory_of_stage(predictor, &run->plan, stage, runs->arena, &run->logged, error)
                      : STATUS_OK;
}

void run_predict(RunPredictor *runs, RunCase *run, bool memory_only) {
    Predictor predictor;
    predictor_init(&predictor, &run->request, NULL);
    predictor.scratch = runs->scratch;  // lent for one row
    predictor.traces = runs->traces;
    Error error = {0};
    if (predict_unsaid(runs, &predictor, run, memory_only, &error) != STATUS_OK ||
        (run->row->peak_mem_gb > 0 && predict_logged(runs, &predictor, run, &error) != STATUS_OK) ||
        (!memory_only && host_intervals(&run->request, &run->prediction, 1, &error) != STATUS_OK)) {
        run->skipped = arena_text(runs->arena, error.message);
    } else if (!memory_only && !isfinite(run->prediction.step_s)) {
        run->skipped = "the profile has no rate for what the plan needs";
    }
    runs->scratch = predictor.scratch;
    runs->traces = predictor.traces;
    arena_free(&predictor.lasting);
}

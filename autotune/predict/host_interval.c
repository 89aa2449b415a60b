// Two machines of a kind run Python at paces of their own, as do two containers on one: a step that waits for its host
// is as uncertain as that is, however well its device is known. Not modelled: that a machine's hosts may all be slow.

#include "autotune/predict/host_interval.h"

#include <math.h>

#include "autotune/predict/interval.h"
#include "sim/analytic/analytic.h"

// One sigma of the logarithm: 51 pairs of Megatron-LM's BERT and T5 tests, which wait for the host and which no file
// scores, the same test on a DGX A100 and a DGX H100: quartiles of the ratio 1.35 and 1.60 (host_pace of dgx-a100-80g).
static const double HOST_SPREAD = 0.126;

static const double SLOWER = 1.1;

// Estimates of a request's plans on hosts of one pace: what these have in common is timed once.
typedef struct HostPace {
    Target target;
    Arena arena;
    Analytic *analytic;
} HostPace;

static void pace_begin(HostPace *pace, const TuneRequest *request, double factor) {
    *pace = (HostPace){.target = *request->target};
    pace->target.runtime.host_pace = factor * runtime_host_pace(&pace->target.runtime);
    const CostModel cost = {.profile = &request->cluster, .target = &pace->target};
    pace->analytic = analytic_new(&request->model, &cost, &pace->arena);
}

static void pace_end(HostPace *pace) {
    analytic_free(pace->analytic);
    arena_free(&pace->arena);
}

static Status step_at(const HostPace *pace, const TrainPlan *plan, double *step_s, Error *error) {
    const EstimateLimits limits = {.no_bytes = true};
    Estimate estimate = {0};
    TRY(analytic_estimate_within(pace->analytic, plan, &limits, &estimate, error));
    *step_s = estimate.step_s;
    return STATUS_OK;
}

// Of the step's relative change over the host's: no step grows by more than its host does. A step that was estimated is
// not again.
static Status host_share(const HostPace *usual, const HostPace *slower, const Prediction *prediction, double *share,
                         Error *error) {
    double usual_s = prediction->step_s, slow_s = 0;
    if (prediction->origin != ORIGIN_ESTIMATE) {
        TRY(step_at(usual, &prediction->plan, &usual_s, error));
    }
    TRY(step_at(slower, &prediction->plan, &slow_s, error));
    *share = usual_s > 0 ? fmin(1, fmax(0, (slow_s / usual_s - 1) / (SLOWER - 1))) : 0;
    return STATUS_OK;
}

static Status widen(const HostPace *usual, const HostPace *slower, Prediction *prediction, Error *error) {
    double share = 0;
    if (prediction->step_s > 0 && isfinite(prediction->step_s)) {
        TRY(host_share(usual, slower, prediction, &share, error));
        interval_widen(prediction->step_s, HOST_SPREAD * share, &prediction->step_low_s, &prediction->step_high_s);
    }
    return STATUS_OK;
}

Status host_intervals(const TuneRequest *request, Prediction *predictions, int count, Error *error) {
    HostPace usual, slower;
    Status status = STATUS_OK;
    if (request->target->runtime.module_operations == 0 || request->cluster.calibration) {
        return STATUS_OK;
    }
    pace_begin(&usual, request, 1);
    pace_begin(&slower, request, SLOWER);
    analytic_share_programs(slower.analytic, usual.analytic);
    for (int i = 0; i < count && status == STATUS_OK; i++) {
        status = widen(&usual, &slower, &predictions[i], error);
    }
    pace_end(&slower);
    pace_end(&usual);
    return status;
}

// Two machines of a kind run Python at paces of their own, as do two containers on one: a step that waits for its host
// is as uncertain as that is, however well its device is known. Not modelled: that a machine's hosts may all be slow.

#include "autotune/predict/host_interval.h"

#include <math.h>

#include "autotune/predict/interval.h"
#include "sim/analytic/analytic.h"

enum { FIRST = 16 };

// One sigma of the logarithm: 51 pairs of Megatron-LM's BERT and T5 tests, which wait for the host and which no file
// scores, the same test on a DGX A100 and a DGX H100: quartiles of the ratio 1.35 and 1.60 (host_pace of dgx-a100-80g).
static const double HOST_SPREAD = 0.126;

static const double SLOWER = 1.1;

static Status estimated_s(const TuneRequest *request, const TrainPlan *plan, double pace, double *step_s,
                          Error *error) {
    Target target = *request->target;
    target.runtime.host_pace = pace * runtime_host_pace(&target.runtime);
    const CostModel cost = {.profile = &request->cluster, .target = &target};
    Arena arena = {0};
    Analytic *analytic = analytic_new(&request->model, &cost, &arena);
    Estimate estimate = {0};
    const Status status = analytic_estimate(analytic, plan, &estimate, error);
    *step_s = estimate.step_s;
    analytic_free(analytic);
    arena_free(&arena);
    return status;
}

// Of the step's relative change over the host's: no step grows by more than its host does.
static Status host_share(const TuneRequest *request, const TrainPlan *plan, double *share, Error *error) {
    double usual_s = 0, slow_s = 0;
    TRY(estimated_s(request, plan, 1, &usual_s, error));
    TRY(estimated_s(request, plan, SLOWER, &slow_s, error));
    *share = usual_s > 0 ? fmin(1, fmax(0, (slow_s / usual_s - 1) / (SLOWER - 1))) : 0;
    return STATUS_OK;
}

Status host_intervals(const TuneRequest *request, Prediction *predictions, int count, Error *error) {
    if (request->target->runtime.module_operations == 0 || request->cluster.calibration) {
        return STATUS_OK;
    }
    for (int i = 0; i < count && i < FIRST; i++) {
        Prediction *prediction = &predictions[i];
        double share = 0;
        if (prediction->step_s > 0) {
            TRY(host_share(request, &prediction->plan, &share, error));
            interval_widen(prediction->step_s, HOST_SPREAD * share, &prediction->step_low_s, &prediction->step_high_s);
        }
    }
    return STATUS_OK;
}

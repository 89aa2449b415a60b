// One cause at a time is made worse until the simulated step takes the measured time: by doubling, then by bisection.
// Quantities of the machine are rows of calibration's table, as in sensitivity.c; a slow rank and slow links of a node
// are handicaps. Two causes at once are not asked: a measurement of one step time could not tell them apart.

#include "autotune/explain/diagnose.h"

#include <math.h>
#include <stdio.h>

#include "autotune/explain/sensitivity.h"
#include "autotune/parallel.h"
#include "autotune/predict/predict.h"

enum { PARAMETERS_MOST = 2, HANDICAP_WORLD_MOST = 1024 };
static const double CLOSE_ENOUGH = 1.03;    // bisection ends when the slowness is known within 3 %
static const double WORTH_ASKING = 1.03;    // a run that is slower by less is not slow
static const double MOVES_NOTHING = 0.002;  // of the step at the largest slowness: the plan does not depend on it
static const double ALIKE = 0.07;           // of the measured time, for choices and micro-steps

typedef enum { OF_PROFILE, OF_RANK, OF_NODE_LINKS } CauseKind;

typedef struct CauseRow {
    const char *name;
    CauseKind kind;
    const char *parameters[PARAMETERS_MOST];
    bool of_rate;
    double largest;
    const char *look;
} CauseRow;

static const CauseRow rows[DIAGNOSE_CAUSES] = {
    {"matrix products",
     OF_PROFILE,
     {"gemm_rate"},
     true,
     16,
     "clocks and power limits (nvidia-smi -q -d CLOCK,PERFORMANCE); the GEMM column of ndtune preflight"},
    {"attention", OF_PROFILE, {"attention_rate"}, true, 64, "the kernel that really runs: flash, or an eager one"},
    {"memory bandwidth", OF_PROFILE, {"memory_rate"}, true, 16, "kernels that are neither fused nor compiled"},
    {"links inside a node",
     OF_PROFILE,
     {"node_bandwidth"},
     true,
     64,
     "nvidia-smi topo -m, NCCL_P2P_DISABLE; ndtune preflight"},
    {"network between nodes",
     OF_PROFILE,
     {"fabric_bandwidth"},
     true,
     64,
     "NCCL_DEBUG=INFO: all cards, GPUDirect, on EFA chunks of 524288 for P2P (NVIDIA's images before 26.06: 131072)? "
     "ndtune preflight --hosts"},
    {"latency of links and network",
     OF_PROFILE,
     {"node_latency", "fabric_latency"},
     false,
     256,
     "ACS, IOMMU, interrupts; ndtune preflight --hosts"},
    {"host time per operation",
     OF_PROFILE,
     {"host_launch"},
     false,
     256,
     "the CPU is the limit: its clock, other processes, Python between kernels"},
    {"one slow rank", OF_RANK, {NULL}, false, 64, "the GEMM column of ndtune preflight names it"},
    {"links of one slow node", OF_NODE_LINKS, {NULL}, false, 64, "ndtune preflight --hosts names it"},
};

typedef struct Asking {
    const TuneRequest *request;
    const TrainPlan *plan;
    double measured_s, predicted_s;
    Cause *causes;
} Asking;

// The step with the cause that many times worse; 0 = the profile has no such quantity.
static Status step_at(const Asking *asking, const CauseRow *row, double slowness, double *step_s, Error *error) {
    TuneRequest request = *asking->request;
    Target target = *request.target;
    Handicap handicap;
    Prediction prediction;
    Arena arena = {0};
    bool any = row->kind != OF_PROFILE;
    *step_s = 0;
    request.target = &target;
    for (int i = 0; i < PARAMETERS_MOST; i++) {
        any |= sensitivity_scale(row->parameters[i], row->of_rate ? 1 / slowness : slowness, &request.cluster,
                                 &target.runtime, &arena);
    }
    if (row->kind != OF_PROFILE) {
        handicap = (Handicap){
            .of_node = row->kind == OF_NODE_LINKS, .of_links = row->kind == OF_NODE_LINKS, .factor = slowness};
        request.handicaps = &handicap;
        request.handicap_count = 1;
        any = request.world > 1 && request.world <= HANDICAP_WORLD_MOST && asking->request->handicap_count == 0;
    }
    const Status status = any ? predict_once(&request, NULL, asking->plan, &arena, &prediction, error) : STATUS_OK;
    if (any && status == STATUS_OK) {
        *step_s = prediction.step_s;
    }
    arena_free(&arena);
    return status;
}

static Status bisect(const Asking *asking, const CauseRow *row, double low, double high, Cause *cause, Error *error) {
    while (high / low > CLOSE_ENOUGH) {
        const double middle = sqrt(low * high);
        double step_s;
        TRY(step_at(asking, row, middle, &step_s, error));
        *(step_s < asking->measured_s ? &low : &high) = middle;
    }
    cause->slowness = sqrt(low * high);
    cause->step_s = asking->measured_s;
    return STATUS_OK;
}

static Status ask_piece(void *context, int worker, int index, Error *error) {
    Asking *asking = context;
    (void)worker;
    const CauseRow *row = &rows[index];
    Cause *cause = &asking->causes[index];
    *cause = (Cause){.name = row->name, .of_rate = row->of_rate, .look = row->look, .largest = row->largest};
    for (double slowness = 2; slowness <= row->largest; slowness *= 2) {
        TRY(step_at(asking, row, slowness, &cause->step_s, error));
        if (cause->step_s == 0) {
            return STATUS_OK;
        }
        if (cause->step_s >= asking->measured_s) {
            cause->applies = true;
            return bisect(asking, row, slowness / 2, slowness, cause, error);
        }
    }
    cause->applies = cause->step_s > (1 + MOVES_NOTHING) * asking->predicted_s;
    return STATUS_OK;
}

// Whatever explains first, the least slowness first; then what does not, the most it can do first.
static bool comes_before(const Cause *a, const Cause *b) {
    if ((a->slowness > 0) != (b->slowness > 0)) {
        return a->slowness > 0;
    }
    return a->slowness > 0 ? a->slowness < b->slowness : a->step_s > b->step_s;
}

static void order(Diagnosis *diagnosis, const Cause *causes) {
    diagnosis->cause_count = 0;
    for (int i = 0; i < DIAGNOSE_CAUSES; i++) {
        if (!causes[i].applies) {
            continue;
        }
        int at = diagnosis->cause_count++;
        for (; at > 0 && comes_before(&causes[i], &diagnosis->causes[at - 1]); at--) {
            diagnosis->causes[at] = diagnosis->causes[at - 1];
        }
        diagnosis->causes[at] = causes[i];
    }
}

static Status suspect(const TuneRequest *request, const TrainPlan *plan, const char *kind, const char *choice,
                      Diagnosis *diagnosis, Error *error) {
    Arena arena = {0};
    const char *reason = NULL;
    Prediction prediction = {0};
    TrainPlan changed = *plan;
    plan_canonical(&changed);
    target_check(request->target, &request->model, &changed, &arena, &reason);
    const Status status = reason ? STATUS_OK : predict_once(request, NULL, &changed, &arena, &prediction, error);
    arena_free(&arena);
    const double ratio = prediction.step_s / diagnosis->measured_s;
    if (status == STATUS_OK && fabs(ratio - 1) < ALIKE && diagnosis->suspect_count < DIAGNOSE_SWITCHES) {
        Suspect *found = &diagnosis->suspects[diagnosis->suspect_count++];
        snprintf(found->choice, sizeof found->choice, "%s %s", kind, choice);
        found->step_s = prediction.step_s;
    }
    return status;
}

// Choices that people take for granted: does a config that says less than they think explain the time?
static Status suspects(const TuneRequest *request, const TrainPlan *plan, Diagnosis *diagnosis, Error *error) {
    static const PlanFieldId ids[] = {PLAN_RECOMPUTE, PLAN_FUSED, PLAN_ATTENTION};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        const PlanField *field = &plan_fields[ids[i]];
        for (int value = 0; value <= field->high; value++) {
            TrainPlan changed = *plan;
            plan_set(&changed, ids[i], value);
            if (ids[i] == PLAN_RECOMPUTE) {
                plan_all_layers_alike(&changed);
            }
            const bool other = ids[i] != PLAN_ATTENTION || value == ATTENTION_EAGER;
            if (other && value != plan_get(plan, ids[i])) {
                TRY(suspect(request, &changed, field->label, field->words[value], diagnosis, error));
            }
        }
    }
    return STATUS_OK;
}

// A plan without accumulation that takes a whole number of times as long: the run may have accumulated.
static int likely_accumulation(const TrainPlan *plan, double ratio) {
    const double times = round(ratio);
    return plan->grad_accum == 1 && times >= 2 && times <= 1024 && fabs(ratio / times - 1) < ALIKE ? (int)times : 0;
}

Status diagnose(const TuneRequest *request, const Prediction *prediction, double measured_s, const Progress *progress,
                Diagnosis *diagnosis, Error *error) {
    const TrainPlan *plan = &prediction->plan;
    Cause causes[DIAGNOSE_CAUSES] = {{0}};
    Asking asking = {request, plan, measured_s, prediction->step_s, causes};
    *diagnosis = (Diagnosis){.measured_s = measured_s,
                             .prediction = prediction,
                             .within = measured_s >= prediction->step_low_s && measured_s <= prediction->step_high_s,
                             .micro_step = plan->grad_accum > 1 &&
                                           fabs(measured_s * plan->grad_accum / prediction->step_s - 1) < 3 * ALIKE};
    diagnosis->micro_batches = likely_accumulation(plan, measured_s / prediction->step_s);
    if (measured_s <= WORTH_ASKING * prediction->step_s) {
        return STATUS_OK;
    }
    const ParallelWork work = {
        parallel_workers(request->threads), DIAGNOSE_CAUSES, ask_piece, &asking, progress, "one cause at a time"};
    TRY(parallel_run(&work, error));
    order(diagnosis, causes);
    return suspects(request, plan, diagnosis, error);
}

// Mesh, batch and ZeRO stage are kept; kernels become those the other framework runs, and parameters are resharded
// where its file has no other setting, unless the request names them. Where such a plan is not legal or does not fit,
// it carries the reason in place of a prediction.

#include "autotune/cli/other_frameworks.h"

#include <string.h>

#include "autotune/predict/target_on_cluster.h"
#include "autotune/search/space.h"
#include "reports/export/export.h"
#include "sim/frameworks/target_choices.h"

static bool is_known(const HtmlOther *others, int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (strcmp(others[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static Status predict_other(Cli *cli, TuneRequest *request, const TrainPlan *best, HtmlOther *other, Error *error) {
    TrainPlan plan = *best;
    space_job(request, &plan);
    if (request->asked[PLAN_RESHARD] != TUNE_ANY) {
        plan.reshard = (Reshard)request->asked[PLAN_RESHARD];
    }
    if (!target_offers(request->target, &plan, PLAN_FUSED, (int)plan.fused)) {
        space_take(request, &plan, PLAN_FUSED);
    }
    if (request->asked[PLAN_TP_OVERLAP] == TUNE_ANY) {
        plan.tp_overlap = space_tries(request, &plan, PLAN_TP_OVERLAP, true);
    } else {
        space_take(request, &plan, PLAN_TP_OVERLAP);
    }
    if (!(request->target->grad_syncs & GRAD_SYNC_BIT(plan.grad_sync))) {
        plan.grad_sync = GRAD_SYNC_TARGET;
    }
    if (!(request->target->overlap_stages >> plan.zero & 1)) {
        plan.reduce_overlap = REDUCE_OVERLAP_TARGET;
    }
    static const PlanFieldId offered[] = {PLAN_LOSS, PLAN_CUDA_GRAPHS, PLAN_SEQUENCE_PARALLEL};
    for (size_t i = 0; i < sizeof offered / sizeof offered[0]; i++) {
        if (!target_offers(request->target, &plan, offered[i], plan_get(&plan, offered[i]))) {
            plan_set(&plan, offered[i], 0);  // the target's own
        }
    }
    if (request->asked[PLAN_REDUCE_BUCKET] == TUNE_ANY) {
        plan.reduce_bucket = 0;
    }
    target_canonical(request->target, &plan);
    OnePlan one;
    TRY(cli_predict(cli, request, &plan, false, &one, error));
    *other = (HtmlOther){other->name, request, one.prediction, one.reason};
    return STATUS_OK;
}

Status other_frameworks(Cli *cli, const TuneResult *result, HtmlOther **others, int *count, Error *error) {
    const ExportFormat *format;
    *others = ARENA_ARRAY(&cli->arena, HtmlOther, export_format_count());
    *count = 0;
    for (int i = 0; result->entry_count > 0 && (format = export_format_at(i)); i++) {
        if (export_is_of(format, result->request->target) || is_known(*others, *count, format->target)) {
            continue;
        }
        TuneRequest *request = ARENA_NEW(&cli->arena, TuneRequest);
        *request = *result->request;
        request->serial_lanes = false;  // which is our executor's way
        request->runner = NULL;
        export_narrow(format, request);
        TRY(target_find(format->target, &request->target, error));
        request->target = target_on_cluster(request->target, &request->cluster, &cli->arena);
        request->asked[PLAN_MASTER_WEIGHTS] = space_master_of_other(result->request, request->target);
        HtmlOther *other = &(*others)[(*count)++];
        *other = (HtmlOther){.name = format->target};
        TRY(predict_other(cli, request, &result->entries[0].plan, other, error));
    }
    return STATUS_OK;
}

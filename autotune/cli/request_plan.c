// The single plan named by --mesh and the accompanying options.

#include <string.h>

#include "autotune/cli/request.h"
#include "autotune/search/space.h"
#include "sim/frameworks/target_choices.h"

Status request_mesh(Cli *cli, Mesh *mesh, Error *error) {
    FAIL_IF(!cli_given(cli, OPTION_MESH), error, STATUS_USAGE, "--mesh is needed, such as --mesh dp_shard=8,tp=4");
    return cli_blame(cli, OPTION_MESH, mesh_parse(cli_value(cli, OPTION_MESH)->text, mesh, error));
}

// The accumulation that makes --global-batch; where none does, the batch rule says so.
static void hold_batch(const Cli *cli, const TuneRequest *request, TrainPlan *plan) {
    const int64_t each = plan_global_batch(plan) / plan->grad_accum;
    if (request->global_batch >= each && !cli_given(cli, OPTION_GRAD_ACCUM)) {
        plan->grad_accum = (int)(request->global_batch / each);
    }
}

void request_plan(const Cli *cli, const TuneRequest *request, const Mesh *mesh, TrainPlan *plan) {
    memset(plan, 0, sizeof *plan);
    plan->mesh = *mesh;
    plan->mesh.order = request->order;
    plan->pp_order = request->pp_order;
    plan->seq = request->seq;
    plan->micro_batch = request->micro_batch > 0 ? request->micro_batch : 1;
    plan->grad_accum = cli_integer_or(cli, OPTION_GRAD_ACCUM, 1);
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].scope != PLAN_OF_BATCH) {
            space_take(request, plan, (PlanFieldId)id);
        }
    }
    hold_batch(cli, request, plan);
    target_canonical(request->target, plan);
}

Status request_one_plan(Cli *cli, const TuneRequest *request, TrainPlan *plan, Error *error) {
    Mesh mesh;
    TRY(request_mesh(cli, &mesh, error));
    request_plan(cli, request, &mesh, plan);
    return STATUS_OK;
}

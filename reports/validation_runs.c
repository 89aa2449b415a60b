// Measured runs with the columns of a run file (tests/accuracy/runs/README.md), a line each: what accuracy and
// calibration read. Runs that failed have no line: a run file holds what was measured.

#include <stdio.h>

#include "reports/csv_lines.h"
#include "reports/validation.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

static const char *const columns =
    "id,source,model,params_b,layers,hidden,heads,kv_heads,ffn,vocab,head_dim,mlp,cluster,overrides,gpu_mem_gb,"
    "target" AXES_COLUMNS ",pp,world,seq_len,micro_batch,grad_accum,global_batch_seqs,zero,reshard,recompute,"
    "attention,fused,dtype,cp_algo,sp,step_time_s,tokens_per_s_per_gpu,peak_mem_gb,mem_kind,usable,lanes,host,"
    "transport";

static void put_id(Csv *csv, const TuneRequest *request, const TrainPlan *plan, int number) {
    const AxisMask named = mesh_named_axes(&plan->mesh);
    char id[160];
    int used = snprintf(id, sizeof id, "%.80s", request->model.name);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (named & AXIS_BIT(axis)) {
            used += snprintf(id + used, sizeof id - (size_t)used, "%s%d", axes_slowest(named) == (Axis)axis ? "-" : "x",
                             plan->mesh.size[axis]);
        }
    }
    snprintf(id + used, sizeof id - (size_t)used, "-%d", number);
    csv_text(csv, id);
}

static void put_model(Csv *csv, const ModelSpec *model) {
    csv_text(csv, model->name);
    csv_number(csv, true, (double)model_parameters(model) / 1e9);
    const int sizes[] = {model->layers, model->hidden, model->heads,   model->kv_heads,
                         model->ffn,    model->vocab,  model->head_dim};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        csv_integer(csv, sizes[i]);
    }
    csv_text(csv, model->mlp == MLP_GATED ? "swiglu" : "gelu");
}

static void put_plan(Csv *csv, const TrainPlan *plan, const Target *target) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        csv_integer(csv, plan->mesh.size[axis]);
    }
    csv_integer(csv, 1);  // pipeline stages
    csv_integer(csv, mesh_world(&plan->mesh));
    csv_integer(csv, plan->seq);
    csv_integer(csv, plan->micro_batch);
    csv_integer(csv, plan->grad_accum);
    csv_integer(csv, plan_global_batch(plan));
    csv_integer(csv, plan->zero);
    csv_text(csv, reshard_names[plan->reshard]);
    csv_text(csv, recompute_names[plan->recompute]);
    csv_text(csv, attention_names[plan->attention]);
    csv_text(csv, fused_names[plan->fused]);
    csv_text(csv, dtype_name(plan->precision));
    csv_text(csv, cp_rotate_names[plan->cp_rotate]);
    csv_integer(csv, target->tp_flavour == TP_SP);
}

static void put_run(Csv *csv, const ValidationRuns *runs, const ValidateRow *row, int number) {
    const TuneRequest *request = runs->validation->request;
    const TrainPlan *plan = &row->prediction->plan;
    const RunRecord *run = &row->runs[number];
    char target[64];
    snprintf(target, sizeof target, "%s@%s", request->target->name, request->target->version);
    put_id(csv, request, plan, number + 1);
    csv_text(csv, runs->validation->source);
    put_model(csv, &request->model);
    csv_text(csv, runs->cluster);
    csv_text(csv, runs->overrides);
    csv_number(csv, true, request->cluster.accelerator.memory_bytes / GIB);
    csv_text(csv, target);
    put_plan(csv, plan, request->target);
    csv_number(csv, true, run->measured_step_s);
    csv_number(csv, true, (double)plan_tokens_per_step(plan) / run->measured_step_s / mesh_world(&plan->mesh));
    csv_number(csv, run->peak_bytes > 0, (double)run->peak_bytes / GIB);
    csv_text(csv, run->peak_bytes > 0 ? "allocated" : NULL);
    csv_integer(csv, 1);
    csv_text(csv, run->lanes);
    csv_text(csv, run->host);
    csv_text(csv, run->transport);
    csv_end_line(csv);
}

Status csv_validation_runs(const ValidationRuns *runs, FILE *out, Error *error) {
    Csv csv = {.out = out};
    csv_header(&csv, columns);
    for (int i = 0; i < runs->validation->row_count; i++) {
        const ValidateRow *row = &runs->validation->rows[i];
        for (int number = 0; number < row->run_count; number++) {
            put_run(&csv, runs, row, number);
        }
    }
    return csv_finish(&csv, error);
}

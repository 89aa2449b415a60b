// Measured runs with the columns of a run file (tests/accuracy/runs/README.md), a line each: what accuracy and
// calibration read. Runs that failed have no line: a run file holds what was measured.

#include <stdio.h>

#include "reports/csv_lines.h"
#include "reports/validation.h"
#include "sim/frameworks/target_choices.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

// As the columns stood before the fields of a plan had a table; those of other fields end the line.
static const PlanFieldId first_fields[] = {PLAN_ZERO,  PLAN_RESHARD,   PLAN_RECOMPUTE, PLAN_ATTENTION,
                                           PLAN_FUSED, PLAN_PRECISION, PLAN_CP_ROTATE};
enum { FIRST_FIELDS = sizeof first_fields / sizeof first_fields[0] };

static bool has_column(PlanFieldId id) {
    return plan_fields[id].column && plan_fields[id].scope != PLAN_OF_BATCH;
}

static void put_header(Csv *csv) {
    PlanFieldId fields[PLAN_FIELD_COUNT];
    plan_fields_from(first_fields, FIRST_FIELDS, fields);
    fputs("id,source,model,params_b,layers,hidden,heads,kv_heads,ffn,vocab,head_dim,mlp,cluster,overrides,gpu_mem_gb,"
          "target",
          csv->out);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        fprintf(csv->out, ",%s", axis_run_column((Axis)axis));
    }
    fputs(",world,seq_len,micro_batch,grad_accum,global_batch_seqs", csv->out);
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        if (i == FIRST_FIELDS) {
            fputs(",sp,step_time_s,tokens_per_s_per_gpu,peak_mem_gb,mem_kind,usable,lanes,host,transport", csv->out);
        }
        if (has_column(fields[i])) {
            fprintf(csv->out, ",%s", plan_fields[fields[i]].column);
        }
    }
    csv_end_line(csv);
}

// The plan's fields from..end of the order.
static void put_fields(Csv *csv, const TrainPlan *plan, const Target *target, int from, int end) {
    PlanFieldId fields[PLAN_FIELD_COUNT];
    plan_fields_from(first_fields, FIRST_FIELDS, fields);
    for (int i = from; i < end; i++) {
        const int told = target_told(target, plan, fields[i]);
        if (has_column(fields[i]) && plan_fields[fields[i]].column_is_number) {
            csv_integer(csv, told);
        } else if (has_column(fields[i])) {
            csv_text(csv, told != PLAN_ANY ? plan_value_text(fields[i], told, VALUE_BUFFER) : NULL);
        }
    }
}

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
    csv_row(csv, "ddddI", mesh_world(&plan->mesh), plan->seq, plan->micro_batch, plan->grad_accum,
            (int64_t)plan_global_batch(plan));
    put_fields(csv, plan, target, 0, FIRST_FIELDS);
    csv_integer(csv, target_tp_flavour(target, plan) == TP_SP);
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
    csv_row(csv, "ssns", runs->cluster, runs->overrides, request->cluster.accelerator.memory_bytes / GIB, target);
    put_plan(csv, plan, request->target);
    csv_row(csv, "nnnsdsss", run->measured_step_s,
            (double)plan_tokens_per_step(plan) / run->measured_step_s / mesh_world(&plan->mesh),
            csv_known(run->peak_bytes > 0, (double)run->peak_bytes / GIB), run->peak_bytes > 0 ? "allocated" : NULL, 1,
            run->lanes, run->host, run->transport);
    put_fields(csv, plan, request->target, FIRST_FIELDS, PLAN_FIELD_COUNT);
    csv_end_line(csv);
}

Status csv_validation_runs(const void *answer, FILE *out, Error *error) {
    const ValidationRuns *runs = answer;
    Csv csv = {.out = out};
    put_header(&csv);
    for (int i = 0; i < runs->validation->row_count; i++) {
        const ValidateRow *row = &runs->validation->rows[i];
        for (int number = 0; number < row->run_count; number++) {
            put_run(&csv, runs, row, number);
        }
    }
    return csv_finish(&csv, error);
}

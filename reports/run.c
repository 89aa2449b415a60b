// What `ndtune run` answers: the loss curve, measured against predicted per task and per stage, and the memory plan
// against what was touched.

#include <math.h>
#include <string.h>

#include "reports/format.h"
#include "reports/json_objects.h"
#include "reports/reports.h"
#include "reports/run_tables.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

MADE_IN(number, double, RunRecord, record_of_whole(of - in->losses + 1))
MADE_IN(grad_norm, double, RunRecord, record_of_real(true, in->grad_norms[of - in->losses]))
MADE_IN(time, double, RunRecord, record_of_real(true, in->step_times_s[of - in->losses]))
MADE(loss, double, record_of_real(true, of[0]))
// An external framework reports step times only.
MADE(loss_told, double, record_of_real(!isnan(of[0]), of[0]))
MADE_IN(grad_norm_told, double, RunRecord,
        record_of_real(!isnan(in->grad_norms[of - in->losses]), in->grad_norms[of - in->losses]))

// Steps, by their losses.
static const RecordField steps[] = {
    {.key = "step", BY(number), COLUMN(1, "step"), .right = true},
    {.key = "loss", BY(loss)},
    {.key = "grad_norm", BY(grad_norm)},
    {.key = "step_time_s", BY(time), COLUMN(4, "time"), .unit = AS_SECONDS},
    {BY(loss_told), COLUMN(2, "loss"), .right = true, .digits = 6},
    {BY(grad_norm_told), COLUMN(3, "grad norm"), .right = true, .digits = 6},
};
static SCHEMA(steps, double);

static const RecordField stages[] = {
    {FIELD("stage", INT, RunStage, stage), COLUMN(1, "stage")},
    {FIELD("layers", INT, RunStage, layers), COLUMN(2, "layers")},
    {FIELD("bubble_share", REAL, RunStage, bubble_share), COLUMN(3, "bubble measured"), .unit = AS_PERCENT},
    {FIELD("predicted_bubble_share", REAL, RunStage, predicted_bubble_share), COLUMN(4, "simulated"),
     .unit = AS_PERCENT},
    {FIELD("peak_bytes", LONG, RunStage, peak_bytes), COLUMN(5, "bytes touched")},
    {FIELD("planned_peak_bytes", LONG, RunStage, planned_peak_bytes), COLUMN(6, "planned")},
};
SCHEMA(stages, RunStage);

Status table_run_stages(const RunRecord *run, FILE *out, Error *error) {
    if (run->stage_count == 0) {
        return STATUS_OK;
    }
    fputc('\n', out);
    TRY(record_table(&schema_stages, run->stages, run->stage_count, out, error));
    fputs("bubble is the share of the step in which a stage's compute is idle and nothing of its own in flight, mean\n"
          "over its ranks\n",
          out);
    return STATUS_OK;
}

Status table_run_steps(const RunRecord *run, FILE *out, Error *error) {
    const RecordSchema schema = record_about(&schema_steps, run);
    return record_table(&schema, run->losses, run->steps, out, error);
}

void table_waiting(FILE *out) {
    fputs("measured on another lane than compute is a rank's stay in the collective, the wait for the slowest rank\n"
          "included; predicted is what the bytes take\n",
          out);
}

Status table_run_tasks(const RunRecord *run, FILE *out, Error *error) {
    bool collectives = false;
    for (int i = 0; i < run->task_count; i++) {
        collectives = collectives || strcmp(run->tasks[i].lane, "compute") != 0;
    }
    TRY(record_table(&schema_tasks, run->tasks, run->task_count, out, error));
    if (collectives) {
        table_waiting(out);
    }
    return STATUS_OK;
}

static void print_summary(const RunRecord *run, FILE *out) {
    fprintf(out, "\nstep time: measured %s (median after the first), predicted %s on profile %s\n",
            text_seconds(UNIT_BUFFER, run->measured_step_s), format_interval(&run->prediction, FORMAT_BUFFER),
            run->request->cluster.name);
    format_far_off(run->measured_step_s, run->prediction.step_s, run->request->cluster.name, &run->core_use, out);
    fprintf(out, "memory: %s touched of %s planned (%lld and %lld bytes per rank)\n",
            text_bytes(UNIT_BUFFER, (double)run->peak_bytes), text_bytes(UNIT_BUFFER, (double)run->planned_peak_bytes),
            (long long)run->peak_bytes, (long long)run->planned_peak_bytes);
    if (run->expert_load.measured) {
        const int capacity = run->prediction.plan.capacity;
        fprintf(out,
                "experts: the busiest rank got %.0f %% more tokens than the mean (%.0f %% in one layer; room is for "
                "%d %%); predicted with %d %%: --imbalance\n",
                run->expert_load.over, run->expert_load.most, (capacity > 0 ? capacity : PLAN_USUAL_CAPACITY) - 100,
                run->prediction.plan.imbalance);
    }
    fprintf(out, "state: %s%s%s\n", run->state, run->failure ? ": " : "", run->failure ? run->failure : "");
}

static Status table_run(const void *answer, FILE *out, Error *error) {
    const RunRecord *run = answer;
    fprintf(out, "%s, %d ranks on %s%s%s over %s, lanes %s, seed %lld\n%s\n\n", run->request->model.name,
            run->request->world, run->device, run->core_type ? " with OpenBLAS' kernels for " : "",
            run->core_type ? run->core_type : "", run->transport, run->lanes, (long long)run->seed,
            plan_text(&run->prediction.plan, PLAN_BUFFER));
    TRY(table_run_steps(run, out, error));
    fputc('\n', out);
    TRY(table_run_tasks(run, out, error));
    TRY(table_run_stages(run, out, error));
    print_summary(run, out);
    fprintf(out, "\nBatch\n");
    format_batch(run->request->target, &run->prediction.plan, out);
    format_assumptions(run->request, out);
    return STATUS_OK;
}

static Status json_run(const void *answer, FILE *out, Error *error) {
    const RunRecord *run = answer;
    json_t *object =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:s, s:s?, s:s, s:s, s:s, s:s, s:I, s:f, s:o, s:o}",
                  "schema", "ndtune.run/1", "mesh", json_mesh(&run->prediction.plan.mesh), "plan",
                  json_train_plan(run->request->target, &run->prediction.plan), "loss",
                  json_numbers(run->losses, run->steps), "grad_norm", json_numbers(run->grad_norms, run->steps),
                  "step_time_s", json_numbers(run->step_times_s, run->steps), "peak_bytes", (json_int_t)run->peak_bytes,
                  "planned_peak_bytes", (json_int_t)run->planned_peak_bytes, "state", run->state, "failure",
                  run->failure, "host", run->host, "device", run->device, "transport", run->transport, "lanes",
                  run->lanes, "seed", (json_int_t)run->seed, "predicted_step_time_s", run->prediction.step_s, "model",
                  json_model(&run->request->model), "tasks", record_array(&schema_tasks, run->tasks, run->task_count));
    if (object) {
        if (run->core_type) {
            json_object_set_new(object, "core_type", json_string(run->core_type));
        }
        if (run->chip) {
            json_object_set_new(object, "chip", json_string(run->chip));
            json_object_set_new(object, "device_bytes", json_integer((json_int_t)run->device_bytes));
        }
        if (run->expert_load.measured) {
            json_object_set_new(object, "expert_load",
                                json_pack("{s:f, s:f}", "over", run->expert_load.over, "most", run->expert_load.most));
        }
        if (run->stage_count > 0) {
            json_object_set_new(object, "stages", record_array(&schema_stages, run->stages, run->stage_count));
        }
        json_object_set_new(object, "cluster", json_profile(&run->request->cluster, 0));
        json_object_set_new(object, "target", json_string(run->request->target->name));
        json_object_set_new(object, "target_version", json_string(run->request->target->version));
    }
    return json_print(object, out, error);
}

static Status csv_run(const void *answer, FILE *out, Error *error) {
    const RunRecord *run = answer;
    const RecordSchema schema = record_about(&schema_steps, run);
    return record_csv(&schema, run->losses, run->steps, out, error);
}

const Answer answer_run = {.table = table_run, .json = json_run, .csv = csv_run};

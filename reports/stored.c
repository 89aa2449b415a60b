// What the store remembers, newest first, and a run of it in full.

#include "reports/csv_lines.h"
#include "reports/format.h"
#include "reports/json_objects.h"
#include "reports/reports.h"
#include "reports/run_tables.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

static Status table_stored(const void *answer, FILE *out, Error *error) {
    const StoredList *list = answer;
    if (list->request_count == 0 && list->run_count == 0 && list->preflight_count == 0) {
        fprintf(out, "The store is empty.\n");
        return STATUS_OK;
    }
    if (list->request_count > 0) {
        fputs("Asked\n", out);
        TRY(record_table(&schema_requests, list->requests, list->request_count, out, error));
    }
    if (list->run_count > 0) {
        fputs("\nRun\n", out);
        TRY(record_table(&schema_runs, list->runs, list->run_count, out, error));
    }
    if (list->preflight_count > 0) {
        fputs("\nPreflights\n", out);
        TRY(record_table(&schema_preflights, list->preflights, list->preflight_count, out, error));
    }
    return STATUS_OK;
}

static void print_parts(const StepParts *parts, FILE *out) {
    fprintf(out, "where it went: compute %s", text_seconds(UNIT_BUFFER, parts->compute_s));
    format_exposed(parts->exposed_s, out);
    fprintf(out, ", optimizer %s", text_seconds(UNIT_BUFFER, parts->optimizer_s));
    fprintf(out, ", overhead %s\n", text_seconds(UNIT_BUFFER, parts->overhead_s));
}

static Status table_stored_run(const void *answer, FILE *out, Error *error) {
    const StoredRunReport *report = answer;
    const StoredRun *about = report->about;
    const RunRecord *run = report->run;
    fprintf(out, "run %lld of %s on %s, by the %s%s%s%s%s\n%s\n%s for %s, predicted on profile %s\n%s\n\n",
            (long long)about->id, about->started_at, about->host, about->source, run->device[0] == '-' ? "" : ": ",
            run->device[0] == '-' ? "" : run->device, run->device[0] == '-' ? "" : " over ",
            run->device[0] == '-' ? "" : run->transport, about->command, about->model, about->target, about->cluster,
            about->plan);
    if (run->steps > 0) {
        TRY(table_run_steps(run, out, error));
    }
    if (run->task_count > 0) {
        fputc('\n', out);
        TRY(table_run_tasks(run, out, error));
    }
    TRY(table_run_stages(run, out, error));
    fputc('\n', out);
    if (run->measured_step_s > 0) {
        fprintf(out, "step time: measured %s (median after %d to warm up), predicted %s\n",
                text_seconds(UNIT_BUFFER, run->measured_step_s), run->warm_up,
                text_seconds(UNIT_BUFFER, about->predicted_step_s));
    }
    if (run->task_count > 0) {
        print_parts(&run->parts, out);
        fprintf(out, "memory: %s touched\n", text_bytes(UNIT_BUFFER, (double)run->peak_bytes));
    }
    fprintf(out, "state: %s%s%s\n", run->state, run->failure ? ": " : "", run->failure ? run->failure : "");
    return STATUS_OK;
}

static Status json_stored(const void *answer, FILE *out, Error *error) {
    const StoredList *list = answer;
    return json_print(json_pack("{s:s, s:o, s:o, s:o}", "schema", "ndtune.runs/1", "requests",
                                record_array(&schema_requests, list->requests, list->request_count), "runs",
                                record_array(&schema_runs, list->runs, list->run_count), "preflights",
                                record_array(&schema_preflights, list->preflights, list->preflight_count)),
                      out, error);
}

static Status csv_stored(const void *answer, FILE *out, Error *error) {
    const StoredList *list = answer;
    Csv csv = {.out = out};
    csv_header(&csv, "kind,id,at,model,where,plan,state,measured_step_s,predicted_step_s,command");
    for (int i = 0; i < list->request_count; i++) {
        const StoredRequest *request = &list->requests[i];
        csv_row(&csv, "sIsssssnns.", "request", request->id, request->asked_at, request->model, request->cluster,
                request->best_plan, request->best_plan ? "feasible" : "nothing simulated", NAN,
                csv_known(request->best_step_s > 0, request->best_step_s), request->command);
    }
    for (int i = 0; i < list->run_count; i++) {
        const StoredRun *run = &list->runs[i];
        csv_row(&csv, "sIsssssnns.", "run", run->id, run->started_at, run->model, run->host, run->plan, run->state,
                csv_known(run->measured_step_s > 0, run->measured_step_s),
                csv_known(run->predicted_step_s > 0, run->predicted_step_s), NULL);
    }
    for (int i = 0; i < list->preflight_count; i++) {
        const StoredPreflight *preflight = &list->preflights[i];
        csv_row(&csv, "sIsssssnns.", "preflight", preflight->id, preflight->checked_at, NULL, preflight->hosts,
                preflight->mesh, preflight->ready ? "ready" : "not ready", NAN, NAN, preflight->command);
    }
    return csv_finish(&csv, error);
}

static Status json_stored_run(const void *answer, FILE *out, Error *error) {
    const StoredRunReport *report = answer;
    const StoredRun *about = report->about;
    const RunRecord *run = report->run;
    json_t *object = json_pack(
        "{s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s?, s:i, s:o, s:o, s:o}", "schema",
        "ndtune.stored-run/1", "id", (json_int_t)about->id, "started_at", about->started_at, "source", about->source,
        "host", about->host, "command", about->command, "model", about->model, "cluster", about->cluster, "target",
        about->target, "plan", about->plan, "state", about->state, "failure", about->failure, "warm_up", run->warm_up,
        "loss", json_numbers(run->losses, run->steps), "step_time_s", json_numbers(run->step_times_s, run->steps),
        "tasks", record_array(&schema_tasks, run->tasks, run->task_count));
    if (object) {
        const bool measured = run->measured_step_s > 0;
        json_object_set_new(object, "measured_step_s", measured ? json_real(run->measured_step_s) : json_null());
        json_object_set_new(object, "predicted_step_s", json_real(about->predicted_step_s));
        if (run->core_type) {
            json_object_set_new(object, "core_type", json_string(run->core_type));
        }
        json_object_set_new(object, "peak_bytes", json_integer((json_int_t)run->peak_bytes));
        if (run->stage_count > 0) {
            json_object_set_new(object, "stages", record_array(&schema_stages, run->stages, run->stage_count));
        }
    }
    return json_print(object, out, error);
}

const Answer answer_stored = {.table = table_stored, .json = json_stored, .csv = csv_stored};

static Status csv_stored_run(const void *answer, FILE *out, Error *error) {
    return answer_run.csv(((const StoredRunReport *)answer)->run, out, error);
}

const Answer answer_stored_run = {.table = table_stored_run, .json = json_stored_run, .csv = csv_stored_run};

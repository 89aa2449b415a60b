// What the store remembers, newest first.

#include "reports/reports.h"
#include "reports/run_tables.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

Status table_stored(const StoredList *list, FILE *out, Error *error) {
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
    char text[TEXT_UNIT_BYTES];
    fprintf(out, "where it went: compute %s", text_seconds(text, parts->compute_s));
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (parts->exposed_s[axis] > 0) {
            fprintf(out, ", exposed %s %s", axis_names[axis], text_seconds(text, parts->exposed_s[axis]));
        }
    }
    fprintf(out, ", optimizer %s", text_seconds(text, parts->optimizer_s));
    fprintf(out, ", overhead %s\n", text_seconds(text, parts->overhead_s));
}

Status table_stored_run(const StoredRun *about, const RunRecord *run, FILE *out, Error *error) {
    char measured[TEXT_UNIT_BYTES], predicted[TEXT_UNIT_BYTES], peak[TEXT_UNIT_BYTES];
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
    fputc('\n', out);
    if (run->measured_step_s > 0) {
        fprintf(out, "step time: measured %s (median after %d to warm up), predicted %s\n",
                text_seconds(measured, run->measured_step_s), run->warm_up,
                text_seconds(predicted, about->predicted_step_s));
    }
    if (run->task_count > 0) {
        print_parts(&run->parts, out);
        fprintf(out, "memory: %s touched\n", text_bytes(peak, (double)run->peak_bytes));
    }
    fprintf(out, "state: %s%s%s\n", run->state, run->failure ? ": " : "", run->failure ? run->failure : "");
    return STATUS_OK;
}

// CSV of explain, of a list of worlds, and of what the store remembers.

#include "reports/csv_lines.h"
#include "reports/explain_terms.h"
#include "reports/reports.h"
#include "reports/schemas.h"

static void term_line(Csv *csv, const char *kind, const char *unit, ExplainTerm term, bool has_next) {
    csv_row(csv, "sssnnn.", kind, term.name, unit, term.best, csv_known(has_next, term.next),
            csv_known(has_next, term.next - term.best));
}

static void sensitivity_line(Csv *csv, const Sensitivity *row, const SensitivityEnd *end) {
    if (end->factor > 0) {
        char term[WORDS_BYTES];
        snprintf(term, sizeof term, "%s, %.2f times", row->sentence, end->factor);
        term_line(csv, "sensitivity", "time per token over that of the best", (ExplainTerm){term, 1, 1 + end->change},
                  true);
    }
}

Status csv_explanation(const Explanation *explanation, FILE *out, Error *error) {
    Csv csv = {.out = out};
    const bool has_next = explanation->runner_up;
    csv_header(&csv, "kind,term,unit,best,next,difference");
    for (int i = 0; i < EXPLAIN_TIME_TERMS; i++) {
        term_line(&csv, "time", "s per million tokens", explain_time_term(explanation, i), has_next);
    }
    for (int i = 0; i < EXPLAIN_MEMORY_TERMS; i++) {
        term_line(&csv, "memory", "bytes", explain_memory_term(explanation, i), has_next);
    }
    for (int i = 0; i < WHAT_IF_COUNT; i++) {
        const WhatIf *question = &explanation->questions[i];
        csv_row(&csv, "sssnss.", "break-even", question->sentence, "factor",
                csv_known(question->break_even > 0, question->break_even), NULL, NULL);
    }
    for (int i = 0; i < explanation->sensitivities.count; i++) {
        const Sensitivity *row = &explanation->sensitivities.rows[i];
        sensitivity_line(&csv, row, &row->less);
        sensitivity_line(&csv, row, &row->more);
    }
    return csv_finish(&csv, error);
}

Status csv_scaling(const ScalingCurve *curve, FILE *out, Error *error) {
    return record_csv(&schema_scaling, curve->points, curve->count, out, error);
}

Status csv_stored(const StoredList *list, FILE *out, Error *error) {
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

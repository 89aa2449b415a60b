// CSV of explain, of a list of worlds, and of what the store remembers.

#include "reports/csv_lines.h"
#include "reports/explain_terms.h"
#include "reports/reports.h"

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
    Csv csv = {.out = out};
    csv_header(&csv, "world,feasible" AXES_COLUMNS ",micro_batch,grad_accum,global_batch,step_time_s,"
                     "tokens_per_s,mfu,efficiency,reserved_bytes,training_s,training_usd,reason");
    for (int i = 0; i < curve->count; i++) {
        const ScalingPoint *point = &curve->points[i];
        const TuneRequest *request = point->request;
        const Prediction *best = &point->best;
        const bool known = point->feasible;
        csv_integer(&csv, request->world);
        csv_integer(&csv, known);
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            csv_number(&csv, known, best->plan.mesh.size[axis]);
        }
        const double usd = scaling_usd(request, best, request->tokens);
        const double seconds = scaling_seconds(best, request->tokens);
        const double numbers[] = {best->plan.micro_batch,
                                  best->plan.grad_accum,
                                  known ? (double)plan_global_batch(&best->plan) : 0,
                                  best->step_s,
                                  best->tokens_per_s,
                                  best->mfu,
                                  point->efficiency,
                                  best->memory.reserved_bytes,
                                  seconds,
                                  usd};
        for (size_t j = 0; j < sizeof numbers / sizeof numbers[0]; j++) {
            csv_number(&csv, known && numbers[j] > 0, numbers[j]);
        }
        csv_text(&csv, point->reason);
        csv_end_line(&csv);
    }
    return csv_finish(&csv, error);
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

// JSON and CSV of explain --from.

#include "reports/csv_lines.h"
#include "reports/explain_terms.h"
#include "reports/import_report.h"
#include "reports/json_objects.h"

static json_t *finding_object(const ImportFinding *finding) {
    return json_pack("{s:s, s:s?, s:o, s:s}", "kind", finding_names[finding->kind], "key", finding->key, "line",
                     finding->line > 0 ? json_integer(finding->line) : json_null(), "sentence", finding->sentence);
}

static json_t *known_gain(const ImportReport *report, double gain) {
    return report->advice->own.tokens_per_s > 0 ? json_real(gain) : json_null();
}

static json_t *change_object(const ImportReport *report, const Advice *change) {
    static const char *const kinds[ADVICE_KIND_COUNT] = {"mesh",           "micro_batch", "reshard",   "recompute",
                                                         "cp_rotate",      "zero",        "grad_sync", "fused",
                                                         "reduce_overlap", "loss_form"};
    const Prediction *prediction = &change->prediction;
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:b, s:s?, s:f, s:f, s:o, s:f}", "kind", kinds[change->kind], "change",
        change->change, "key", import_key_of(report->import, change->kind), "mesh", json_mesh(&prediction->plan.mesh),
        "plan", json_train_plan(report->request->target, &prediction->plan), "feasible", prediction->fits, "reason",
        change->reason, "step_time_s", prediction->step_s, "tokens_per_s", prediction->tokens_per_s, "gain",
        known_gain(report, change->gain), "reserved_bytes", prediction->memory.reserved_bytes);
}

typedef ExplainTerm (*TermOf)(const Explanation *explanation, int index);

static json_t *term_list(const ImportReport *report, int count, TermOf term_of) {
    const AdviceReport *advice = report->advice;
    const Explanation pair = {.best = advice->best, .runner_up = &advice->own};
    json_t *list = json_array();
    for (int i = 0; advice->best && advice->own.step_s > 0 && i < count; i++) {
        const ExplainTerm term = term_of(&pair, i);
        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f}", "name", term.name, "best", term.best, "own",
                                              term.next, "difference", term.next - term.best));
    }
    return list;
}

static json_t *own_object(const ImportReport *report) {
    const AdviceReport *advice = report->advice;
    return report->import->refusal
               ? json_null()
               : json_prediction_object(report->request, &advice->own, advice->legal, advice->reason);
}

Status json_import(const ImportReport *report, FILE *out, Error *error) {
    const Import *import = report->import;
    const AdviceReport *advice = report->advice;
    json_t *changes = json_array(), *findings = json_array();
    for (int i = 0; i < advice->change_count; i++) {
        json_array_append_new(changes, change_object(report, &advice->changes[i]));
    }
    for (int i = 0; i < import->finding_count; i++) {
        json_array_append_new(findings, finding_object(&import->findings[i]));
    }
    const bool newer = report->successor && advice->own.tokens_per_s > 0;
    return json_print(
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:b, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o, s:s?, s:o}", "schema",
                  "ndtune.explain-from/1", "file", import->path, "format", import->format->name, "flavour",
                  import->flavour, "request", json_request(report->request), "refusal", import->refusal,
                  "refusal_is_ours", import->refusal_is_ours, "own", own_object(report), "best",
                  advice->best ? json_prediction_object(report->request, advice->best, true, NULL) : json_null(),
                  "no_best", report->no_best, "gain", advice->best ? known_gain(report, advice->gain) : json_null(),
                  "seconds_per_million_tokens", term_list(report, EXPLAIN_TIME_TERMS, explain_time_term),
                  "memory_bytes", term_list(report, EXPLAIN_MEMORY_TERMS, explain_memory_term), "changes", changes,
                  "findings", findings, "successor", newer ? import->successor : NULL, "successor_gain",
                  newer ? json_real(report->successor->tokens_per_s / advice->own.tokens_per_s - 1) : json_null()),
        out, error);
}

static void prediction_line(Csv *csv, const char *kind, const char *change, const Prediction *prediction, double gain,
                            bool gains) {
    char plan[PLAN_TEXT_BYTES];
    const bool known = prediction->step_s > 0;
    csv_row(csv, "sssssnnnnn.", kind, NULL, change, NULL, plan_text(&prediction->plan, plan),
            csv_known(known, prediction->step_s), csv_known(known, prediction->tokens_per_s),
            csv_known(known && gains, gain), csv_known(known, prediction->memory.reserved_bytes),
            csv_known(known, prediction->fits));
}

Status csv_import(const ImportReport *report, FILE *out, Error *error) {
    const AdviceReport *advice = report->advice;
    const Import *import = report->import;
    Csv csv = {.out = out};
    const bool gains = advice->own.tokens_per_s > 0;
    csv_header(&csv, "kind,key,what,line,plan,step_time_s,tokens_per_s,gain,reserved_bytes,feasible");
    if (!import->refusal) {
        prediction_line(&csv, "own", import->flavour, &advice->own, 0, false);
    }
    if (advice->best) {
        prediction_line(&csv, "best", NULL, advice->best, advice->gain, gains);
    }
    for (int i = 0; i < advice->change_count; i++) {
        const Advice *change = &advice->changes[i];
        prediction_line(&csv, "change", change->change, &change->prediction, change->gain, gains);
    }
    for (int i = 0; i < import->finding_count; i++) {
        const ImportFinding *finding = &import->findings[i];
        csv_row(&csv, "sssnnnnnnn.", finding_names[finding->kind], finding->key, finding->sentence,
                csv_known(finding->line > 0, finding->line), NAN, NAN, NAN, NAN, NAN, NAN);
    }
    return csv_finish(&csv, error);
}

// The findings and changes of explain --from, and its JSON and CSV.

#include "reports/csv_lines.h"
#include "reports/explain_terms.h"
#include "reports/import_report.h"
#include "reports/json_objects.h"
#include "reports/record.h"
#include "sim/base/text.h"

MADE(finding_kind, ImportFinding, record_of_text(finding_names[of->kind]))

static const RecordField findings[] = {
    {.key = "kind", BY(finding_kind)},
    {FIELD("key", TEXT, ImportFinding, key)},
    {FIELD("line", PLACE, ImportFinding, line)},
    {FIELD("sentence", TEXT, ImportFinding, sentence)},
};
static SCHEMA(findings, ImportFinding);

static json_t *known_gain(const ImportReport *report, double gain) {
    return report->advice->own.tokens_per_s > 0 ? json_real(gain) : json_null();
}

static const char *kind_of(const Advice *change) {
    static const char *const kinds[ADVICE_KIND_COUNT] = {"mesh",           "micro_batch", "reshard",   "recompute",
                                                         "cp_rotate",      "zero",        "grad_sync", "fused",
                                                         "reduce_overlap", "loss_form"};
    return kinds[change->kind];
}

// Over a plan that does not fit there is no gain, only a rate.
static RecordValue rate_of(const ImportReport *report, const Advice *change, char text[RECORD_BYTES]) {
    if (!report->advice->own.fits) {
        return record_of_text(text_count(text, change->prediction.tokens_per_s));
    }
    snprintf(text, RECORD_BYTES, "%+.1f %%", 100 * change->gain);
    return record_of_text(text);
}

static RecordValue memory_of(const Advice *change, char text[RECORD_BYTES]) {
    char memory[TEXT_UNIT_BYTES];
    snprintf(text, RECORD_BYTES, "%s%s", text_bytes(memory, change->prediction.memory.reserved_bytes),
             change->reason ? ", does not fit" : "");
    return record_of_text(text);
}

MADE(kind, Advice, record_of_text(kind_of(of)))
MADE_IN(key, Advice, ImportReport, record_of_text(import_key_of(in->import, of->kind)))
MADE_IN(gain, Advice, ImportReport, record_of_real(in->advice->own.tokens_per_s > 0, of->gain))
MADE_IN(rate, Advice, ImportReport, rate_of(in, of, text))
MADE(memory, Advice, memory_of(of, text))
NESTED_IN(plan, Advice, ImportReport, json_train_plan(in->request->target, &of->prediction.plan))

static const RecordField changes[] = {
    {.key = "kind", BY(kind)},
    {FIELD("change", TEXT, Advice, change), COLUMN(1, "one change")},
    {.key = "key", BY(key), COLUMN(5, "in the file")},
    {FIELD("mesh", MESH, Advice, prediction.plan.mesh)},
    {.key = "plan", .nested = plan},
    {FIELD("feasible", FLAG, Advice, prediction.fits)},
    {FIELD("reason", TEXT, Advice, reason)},
    {FIELD("step_time_s", REAL, Advice, prediction.step_s), COLUMN(3, "step"), .unit = AS_SECONDS},
    {FIELD("tokens_per_s", REAL, Advice, prediction.tokens_per_s)},
    {.key = "gain", BY(gain)},
    {FIELD("reserved_bytes", REAL, Advice, prediction.memory.reserved_bytes)},
    {BY(rate), COLUMN(2, "tokens/s"), .right = true},
    {BY(memory), COLUMN(4, "memory"), .right = true},
};
SCHEMA(changes, Advice);

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
    const RecordSchema of_report = record_about(&schema_changes, report);
    const bool newer = report->successor && advice->own.tokens_per_s > 0;
    return json_print(
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:b, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o, s:s?, s:o}", "schema",
                  "ndtune.explain-from/1", "file", import->path, "format", import->format->name, "flavour",
                  import->flavour, "request", json_request(report->request), "refusal", import->refusal,
                  "refusal_is_ours", import->refusal_is_ours, "own", own_object(report), "best",
                  advice->best ? json_prediction_object(report->request, advice->best, true, NULL) : json_null(),
                  "no_best", report->no_best, "gain", advice->best ? known_gain(report, advice->gain) : json_null(),
                  "seconds_per_million_tokens", term_list(report, EXPLAIN_TIME_TERMS, explain_time_term),
                  "memory_bytes", term_list(report, EXPLAIN_MEMORY_TERMS, explain_memory_term), "changes",
                  record_array(&of_report, advice->changes, advice->change_count), "findings",
                  record_array(&schema_findings, import->findings, import->finding_count), "successor",
                  newer ? import->successor : NULL, "successor_gain",
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

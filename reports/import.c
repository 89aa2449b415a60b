// explain --from for people and programs: yours and the best side by side, single changes with what each gains, and
// what was found in the file.

#include "reports/import_report.h"

#include <string.h>

#include "reports/colour.h"
#include "reports/csv_lines.h"
#include "reports/explain_terms.h"
#include "reports/export/export.h"
#include "reports/format.h"
#include "reports/json_objects.h"
#include "reports/record.h"
#include "reports/reports.h"
#include "sim/base/text.h"
#include "sim/frameworks/target_choices.h"

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

// Relative to a plan that does not fit there is no gain, only a rate.
static RecordValue rate_of(const ImportReport *report, const Advice *change, char text[RECORD_BYTES]) {
    if (!report->advice->own.fits) {
        return record_of_text(text_count(text, change->prediction.tokens_per_s));
    }
    snprintf(text, RECORD_BYTES, "%+.1f %%", 100 * change->gain);
    return record_of_text(text);
}

static RecordValue memory_of(const Advice *change, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "%s%s", text_bytes(UNIT_BUFFER, change->prediction.memory.reserved_bytes),
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

static json_t *own_object(const ImportReport *report) {
    const AdviceReport *advice = report->advice;
    return report->import->refusal
               ? json_null()
               : json_prediction_object(report->request, &advice->own, advice->legal, advice->reason);
}

static Status json_import(const void *answer, FILE *out, Error *error) {
    const ImportReport *report = answer;
    const Import *import = report->import;
    const AdviceReport *advice = report->advice;
    const RecordSchema of_report = record_about(&schema_changes, report);
    const Explanation pair = {.best = advice->best, .runner_up = &advice->own};
    const bool both = advice->best && advice->own.step_s > 0;
    const bool newer = advice->successor && advice->own.tokens_per_s > 0;
    return json_print(
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:b, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o, s:s?, s:o}", "schema",
                  "ndtune.explain-from/1", "file", import->path, "format", import->format->name, "flavour",
                  import->flavour, "request", json_request(report->request), "refusal", import->refusal,
                  "refusal_is_ours", import->refusal_is_ours, "own", own_object(report), "best",
                  advice->best ? json_prediction_object(report->request, advice->best, true, NULL) : json_null(),
                  "no_best", report->advice->no_best, "gain",
                  advice->best ? known_gain(report, advice->gain) : json_null(), "seconds_per_million_tokens",
                  explain_terms_json(&pair, both ? EXPLAIN_TIME_TERMS : 0, explain_time_term, "own"), "memory_bytes",
                  explain_terms_json(&pair, both ? EXPLAIN_MEMORY_TERMS : 0, explain_memory_term, "own"), "changes",
                  record_array(&of_report, advice->changes, advice->change_count), "findings",
                  record_array(&schema_findings, import->findings, import->finding_count), "successor",
                  newer ? import->successor : NULL, "successor_gain",
                  newer ? json_real(advice->successor->tokens_per_s / advice->own.tokens_per_s - 1) : json_null()),
        out, error);
}

static void prediction_line(Csv *csv, const char *kind, const char *change, const Prediction *prediction, double gain,
                            bool gains) {
    const bool known = prediction->step_s > 0;
    csv_row(csv, "sssssnnnnn.", kind, NULL, change, NULL, plan_text(&prediction->plan, PLAN_BUFFER),
            csv_known(known, prediction->step_s), csv_known(known, prediction->tokens_per_s),
            csv_known(known && gains, gain), csv_known(known, prediction->memory.reserved_bytes),
            csv_known(known, prediction->fits));
}

static Status csv_import(const void *answer, FILE *out, Error *error) {
    const ImportReport *report = answer;
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

static void print_plan(const char *name, const Prediction *prediction, const TuneRequest *request, FILE *out) {
    fprintf(out, "%-6s%s\n", name, plan_text(&prediction->plan, PLAN_BUFFER));
    if (prediction->step_s > 0) {
        fprintf(out, "      step %s, %s tokens/s, %s of %s per accelerator\n",
                format_interval(prediction, FORMAT_BUFFER), text_count(UNIT_BUFFER, prediction->tokens_per_s),
                text_bytes(UNIT_BUFFER, prediction->memory.reserved_bytes),
                text_bytes(UNIT_BUFFER, request->memory_limit_bytes));
    }
}

static void print_verdict(const ImportReport *report, const Explanation *pair, FILE *out) {
    const AdviceReport *advice = report->advice;
    if (report->import->refusal || advice->reason) {
        const bool fits_not = !report->import->refusal && advice->legal;
        fprintf(out, "\n%sYours%s%s %s\n", colour(out, COLOUR_BAD),
                fits_not                          ? ""
                : report->import->refusal_is_ours ? " is not predicted:"
                                                  : " cannot run:",
                colour(out, COLOUR_END), report->import->refusal ? report->import->refusal : advice->reason);
        return;
    }
    if (!advice->best) {
        return;
    }
    if (advice->gain < 0.005) {
        fprintf(out, "\nYours is as fast as the best that was found.\n");
        return;
    }
    fprintf(out, "\nThe best makes %.1f %% more tokens per second than yours", 100 * advice->gain);
    const ExplainTerm most = explain_most_saved(pair);
    if (most.name) {
        fprintf(out, ", most of all by less %s", most.name);
    }
    fputs(".\n", out);
}

static Status print_changes(const ImportReport *report, FILE *out, Error *error) {
    const AdviceReport *advice = report->advice;
    const RecordSchema schema = record_about(&schema_changes, report);
    if (advice->change_count == 0) {
        return STATUS_OK;
    }
    fputs("\nSingle changes, with the same global batch\n", out);
    return record_table(&schema, advice->changes, advice->change_count, out, error);
}

static void print_findings(const Import *import, FILE *out) {
    static const char *const headings[FINDING_KIND_COUNT] = {"Refused by the framework", "Traps",
                                                             "Keys that are dropped, or not known here",
                                                             "Not in the prediction", "Taken for granted"};
    for (int kind = 0; kind < FINDING_KIND_COUNT; kind++) {
        bool first = true;
        for (int i = 0; i < import->finding_count; i++) {
            const ImportFinding *finding = &import->findings[i];
            if ((int)finding->kind != kind) {
                continue;
            }
            if (first) {
                fprintf(out, "\n%s\n", headings[kind]);
                first = false;
            }
            fputs("  ", out);
            if (finding->line > 0) {
                fprintf(out, "line %d, ", finding->line);
            }
            fprintf(out, "%s%s%s\n", finding->key ? finding->key : "", finding->key ? ": " : "", finding->sentence);
        }
    }
}

// Options where a plan differs from the target's defaults. What the search decided is included.
static void print_unusual(const TrainPlan *plan, const Target *target, FILE *out) {
    static const PlanFieldId first[] = {PLAN_PRECISION,    PLAN_RECOMPUTE,      PLAN_ZERO,      PLAN_RESHARD,
                                        PLAN_CP_ROTATE,    PLAN_ATTENTION,      PLAN_FUSED,     PLAN_FP8_RECIPE,
                                        PLAN_REDUCE_DTYPE, PLAN_MASTER_WEIGHTS, PLAN_TP_OVERLAP};
    PlanFieldId order[PLAN_FIELD_COUNT];
    plan_fields_from(first, sizeof first / sizeof first[0], order);
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = order[i];
        const PlanField *field = &plan_fields[id];
        const bool own =
            id == PLAN_PRECISION || field->printed == PLAN_PRINTED_WHERE_IT_MATTERS ||
            (field->searched && field->printed != PLAN_PRINTED_UNLESS_USUAL && target_has_choice(target, id));
        if (field->scope != PLAN_OF_BATCH && plan_field_matters(plan, id) &&
            (own || plan_get(plan, id) != target_usual(target, plan, id))) {
            fprintf(out, " --%s %s", field->option.name, plan_value_text(id, plan_get(plan, id), VALUE_BUFFER));
        }
    }
}

// The target, where a file of this kind is for another one unless told.
static void print_target(const Target *target, const ExportFormat *format, FILE *out) {
    const Target *usual = NULL;
    Error none = {0};
    const bool own = format->target && target_find(format->target, &usual, &none) == STATUS_OK &&
                     strcmp(usual->name, target->name) == 0 && strcmp(usual->version, target->version) == 0;
    if (!own) {
        fprintf(out, " --target %s@%s", target->name, target->version);
    }
}

static void print_next(const ImportReport *report, FILE *out) {
    const TuneRequest *request = report->request;
    const AdviceReport *advice = report->advice;
    if (advice->successor && advice->own.tokens_per_s > 0) {
        fprintf(out, "\nThe same plan under %s@%s: %+.1f %% tokens per second; --target %s searches its shapes.\n",
                advice->newer->name, advice->newer->version,
                100 * (advice->successor->tokens_per_s / advice->own.tokens_per_s - 1), report->import->successor);
    }
    const ExportFormat *format = export_like(report->import->writes, request->target);
    if (advice->best && format) {
        const TrainPlan *plan = &advice->best->plan;
        fprintf(out, "\nThe best as a file: ndtune export --as %s", format->name);
        print_target(request->target, format, out);
        fprintf(out, " %s %s --seq %d --micro-batch %d --grad-accum %d",
                format_mesh_options(&plan->mesh, FORMAT_BUFFER), report->asked_words, plan->seq, plan->micro_batch,
                plan->grad_accum);
        print_unusual(plan, request->target, out);
        fputc('\n', out);
    }
}

static Status table_import(const void *answer, FILE *out, Error *error) {
    const ImportReport *report = answer;
    const TuneRequest *request = report->request;
    const AdviceReport *advice = report->advice;
    const Explanation pair = {.best = advice->best, .runner_up = &advice->own};
    fprintf(out, "%s: %s%s\n", report->import->path,
            report->import->flavour ? report->import->flavour : request->target->name,
            report->import->recognised ? ", by its keys (--from-format says otherwise)" : "");
    format_case(request, out);
    fputs("\n\n", out);
    if (!report->import->refusal) {
        print_plan("yours", &advice->own, request, out);
    }
    if (advice->best) {
        print_plan("best", advice->best, request, out);
    }
    if (report->advice->no_best) {
        fprintf(out, "best  there is none: %s\n", report->advice->no_best);
    }
    print_verdict(report, &pair, out);
    if (advice->best && advice->own.step_s > 0) {
        fputc('\n', out);
        TRY(table_comparison(&pair, (const char *const[]){"best", "yours"}, out, error));
    }
    TRY(print_changes(report, out, error));
    print_findings(report->import, out);
    print_next(report, out);
    format_assumptions(request, out);
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}

const Answer answer_import = {.table = table_import, .json = json_import, .csv = csv_import};

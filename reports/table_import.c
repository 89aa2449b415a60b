// The table of explain --from: yours and the best beside each other, single changes with what each gains, and what was
// found in the file.

#include <string.h>

#include "reports/colour.h"
#include "reports/explain_terms.h"
#include "reports/export/export.h"
#include "reports/import_report.h"
#include "reports/reports.h"
#include "reports/words.h"
#include "sim/base/text.h"
#include "sim/frameworks/target_choices.h"

static void print_plan(const char *name, const Prediction *prediction, const TuneRequest *request, FILE *out) {
    char plan[PLAN_TEXT_BYTES], interval[WORDS_BYTES], rate[TEXT_UNIT_BYTES], memory[TEXT_UNIT_BYTES],
        limit[TEXT_UNIT_BYTES];
    fprintf(out, "%-6s%s\n", name, plan_text(&prediction->plan, plan));
    if (prediction->step_s > 0) {
        fprintf(out, "      step %s, %s tokens/s, %s of %s per accelerator\n", words_interval(prediction, interval),
                text_count(rate, prediction->tokens_per_s), text_bytes(memory, prediction->memory.reserved_bytes),
                text_bytes(limit, request->memory_limit_bytes));
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
                fprintf(out, "line %d, %s: ", finding->line, finding->key);
            }
            fprintf(out, "%s\n", finding->sentence);
        }
    }
}

// Options for what a plan has otherwise than the target by itself. What the search decided is said.
static void print_unusual(const TrainPlan *plan, const Target *target, FILE *out) {
    static const PlanFieldId first[] = {PLAN_PRECISION,    PLAN_RECOMPUTE,      PLAN_ZERO,      PLAN_RESHARD,
                                        PLAN_CP_ROTATE,    PLAN_ATTENTION,      PLAN_FUSED,     PLAN_FP8_RECIPE,
                                        PLAN_REDUCE_DTYPE, PLAN_MASTER_WEIGHTS, PLAN_TP_OVERLAP};
    PlanFieldId order[PLAN_FIELD_COUNT];
    char value[PLAN_VALUE_BYTES];
    plan_fields_from(first, sizeof first / sizeof first[0], order);
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = order[i];
        const PlanField *field = &plan_fields[id];
        const bool own =
            id == PLAN_PRECISION || field->printed == PLAN_PRINTED_WHERE_IT_MATTERS ||
            (field->searched && field->printed != PLAN_PRINTED_UNLESS_USUAL && target_has_choice(target, id));
        if (field->scope != PLAN_OF_BATCH && plan_field_matters(plan, id) &&
            (own || plan_get(plan, id) != target_usual(target, plan, id))) {
            fprintf(out, " --%s %s", field->option.name, plan_value_text(id, plan_get(plan, id), value));
        }
    }
}

static void print_next(const ImportReport *report, FILE *out) {
    const TuneRequest *request = report->request;
    const AdviceReport *advice = report->advice;
    if (report->successor && advice->own.tokens_per_s > 0) {
        fprintf(out, "\nThe same plan under %s@%s: %+.1f %% tokens per second; --target %s searches its shapes.\n",
                report->successor_target->name, report->successor_target->version,
                100 * (report->successor->tokens_per_s / advice->own.tokens_per_s - 1), report->import->successor);
    }
    const ExportFormat *format = NULL;
    Error none = {0};
    if (advice->best && export_usual(request->target, &format, &none) == STATUS_OK) {
        char mesh[WORDS_BYTES];
        const TrainPlan *plan = &advice->best->plan;
        fprintf(out, "\nThe best as a file: ndtune export --as %s %s %s --seq %d --micro-batch %d --grad-accum %d",
                format->name, words_mesh_options(&plan->mesh, mesh), report->asked_words, plan->seq, plan->micro_batch,
                plan->grad_accum);
        print_unusual(plan, request->target, out);
        fputc('\n', out);
    }
}

Status table_import(const ImportReport *report, FILE *out, Error *error) {
    const TuneRequest *request = report->request;
    const AdviceReport *advice = report->advice;
    const Explanation pair = {.best = advice->best, .runner_up = &advice->own};
    fprintf(out, "%s: %s%s\n", report->import->path, report->import->flavour,
            report->import->recognised ? ", by its keys (--from-format says otherwise)" : "");
    fprintf(out, "%s on %d x %s (%s), for %s %s\n\n", request->model.name, request->world,
            request->cluster.accelerator.name, request->cluster.name, request->target->name, request->target->version);
    if (!report->import->refusal) {
        print_plan("yours", &advice->own, request, out);
    }
    if (advice->best) {
        print_plan("best", advice->best, request, out);
    }
    if (report->no_best) {
        fprintf(out, "best  there is none: %s\n", report->no_best);
    }
    print_verdict(report, &pair, out);
    if (advice->best && advice->own.step_s > 0) {
        fputc('\n', out);
        TRY(table_comparison(&pair, (const char *const[]){"best", "yours"}, out, error));
    }
    TRY(print_changes(report, out, error));
    print_findings(report->import, out);
    print_next(report, out);
    words_assumptions(request, out);
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}

// Why the best shape wins, term by term, and what would change the answer.

#include <math.h>

#include "reports/colour.h"
#include "reports/csv_lines.h"
#include "reports/explain_terms.h"
#include "reports/format.h"
#include "reports/grid.h"
#include "reports/json_objects.h"
#include "reports/reports.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

// One comparison of two plans, term by term.
typedef struct Terms {
    const char *what, *unit;
    int count, digits;
    double scale;
    ExplainTerm (*of)(const Explanation *explanation, int index);
} Terms;

static Status print_terms(const Explanation *explanation, const char *const names[2], const Terms *terms, FILE *out,
                          Error *error) {
    char headings[3][FORMAT_BYTES];
    for (int i = 0; i < 3; i++) {
        snprintf(headings[i], FORMAT_BYTES, "%s, %s", i < 2 ? names[i] : "difference", terms->unit);
    }
    const GridColumn columns[] = {{terms->what, false}, {headings[0], true}, {headings[1], true}, {headings[2], true}};
    Grid *grid = grid_new(columns, 4);
    for (int i = 0; i < terms->count; i++) {
        const ExplainTerm term = terms->of(explanation, i);
        if (term.best != 0 || term.next != 0) {
            grid_row(grid);
            grid_cell(grid, "%s", term.name);
            grid_cell(grid, "%.*f", terms->digits, term.best * terms->scale);
            grid_cell(grid, "%.*f", terms->digits, term.next * terms->scale);
            grid_cell(grid, "%+.*f", terms->digits, (term.next - term.best) * terms->scale);
        }
    }
    return grid_print(grid, out, error);
}

Status table_comparison(const Explanation *explanation, const char *const names[2], FILE *out, Error *error) {
    static const Terms times = {"time per million tokens", "ms", EXPLAIN_TIME_TERMS, 1, 1e3, explain_time_term};
    static const Terms memory = {"memory per accelerator", "GiB", EXPLAIN_MEMORY_TERMS, 2, 1 / (1024.0 * 1024 * 1024),
                                 explain_memory_term};
    TRY(print_terms(explanation, names, &times, out, error));
    fputc('\n', out);
    return print_terms(explanation, names, &memory, out, error);
}

// "+12.3 % at 0.80 times"; if unknown, the reason.
static RecordValue end_words(const SensitivityEnd *end, char text[RECORD_BYTES]) {
    if (end->factor == 0) {
        snprintf(text, RECORD_BYTES, "no such plan");
    } else {
        const double percent = 100 * end->change, shown = fabs(percent) < 0.05 ? 0 : percent;  // no "-0.0"
        snprintf(text, RECORD_BYTES, "%+.1f %% at %.2f times%s", shown, end->factor, end->fits ? "" : ", does not fit");
    }
    return record_of_text(text);
}

static json_t *end_object(const SensitivityEnd *end) {
    return end->factor > 0
               ? json_pack("{s:f, s:f, s:b}", "factor", end->factor, "change", end->change, "feasible", end->fits)
               : json_null();
}

MADE(less_words, Sensitivity, end_words(&of->less, text))
MADE(more_words, Sensitivity, end_words(&of->more, text))
NESTED_IN(less, Sensitivity, void, end_object(&of->less))
NESTED_IN(more, Sensitivity, void, end_object(&of->more))

static const RecordField sensitivities[] = {
    {FIELD("quantity", TEXT, Sensitivity, name)},
    {FIELD("sentence", TEXT, Sensitivity, sentence), COLUMN(1, "quantity")},
    {.key = "less", .nested = less},
    {.key = "more", .nested = more},
    {BY(less_words), COLUMN(2, "a fifth less"), .right = true},
    {BY(more_words), COLUMN(3, "a fifth more"), .right = true},
};
SCHEMA(sensitivities, Sensitivity);

// Why the best is it although another shape makes more tokens per second.
static const char *in_spite(const Explanation *explanation, const Prediction *other) {
    const TuneRequest *request = explanation->result->request;
    return request->objective == OBJECTIVE_MEMORY ? "the least memory was asked for"
           : explain_leaves_room(request, other)  ? "that is level, and the best is simpler or needs less memory"
                                                  : "that one leaves less than 8 % of the memory free";
}

static void print_heads(const Explanation *explanation, FILE *out) {
    const Prediction *best = explanation->best, *next = explanation->runner_up;
    fprintf(out, "%sbest%s  %s\n      step %s\n", colour(out, COLOUR_GOOD), colour(out, COLOUR_END),
            plan_text(&best->plan, PLAN_BUFFER), format_interval(best, FORMAT_BUFFER));
    if (!next) {
        fprintf(out, "\nNo other shape fits.\n");
        return;
    }
    fprintf(out, "next  %s\n      step %s\n", plan_text(&next->plan, PLAN_BUFFER),
            format_interval(next, FORMAT_BUFFER));
    const double lead = explain_lead(explanation);
    fprintf(out, "\nThe best makes %.2f %% %s tokens per second than the next", 100 * fabs(lead),
            lead < 0 ? "fewer" : "more");
    const ExplainTerm most = explain_most_saved(explanation);
    if (lead < 0) {
        fprintf(out, ": %s", in_spite(explanation, next));
    } else if (most.name) {
        fprintf(out, ", most of all by less %s", most.name);
    }
    fprintf(out, ".\n");
    if (explanation->best->data_wait) {
        fprintf(out, "Of the best, %s.\n", explanation->best->data_wait);
    }
    fprintf(out, "\n");
}

static void print_question(const Explanation *explanation, const WhatIf *question, FILE *out) {
    fprintf(out, "  %s: ", question->sentence);
    if (question->searched_to == 0) {
        fprintf(out, "not asked, there is too little to change\n");
        return;
    }
    if (!question->feasible) {
        fprintf(out, "no shape can run\n");
    } else if (question->same_shape) {
        fprintf(out, "the same shape, %s tokens/s\n", text_count(UNIT_BUFFER, question->best.tokens_per_s));
    } else {
        fprintf(out, "%s instead", format_mesh(&question->best.plan.mesh, FORMAT_BUFFER));
        if (question->gain > 0 && question->gain < 0.0005) {
            fprintf(out, ", level there with %s", format_mesh(&explanation->estimated_best, FORMAT_BUFFER));
        } else if (question->gain > 0) {
            fprintf(out, ", %.1f %% faster there than %s", 100 * question->gain,
                    format_mesh(&explanation->estimated_best, FORMAT_BUFFER));
        }
        fputc('\n', out);
    }
    if (question->break_even > 0) {
        fprintf(out, "    break-even at %.2f times: from there on %s\n", question->break_even,
                format_mesh(&question->break_even_mesh, FORMAT_BUFFER));
    } else {
        fprintf(out, "    no other shape wins up to %.0f times\n", question->searched_to);
    }
}

// Against the best of the other kind: with pipeline stages where the best has none, without where it has some.
static void print_other_kind(const Explanation *explanation, const char *kind, FILE *out) {
    const Explanation beside = explain_beside_stages(explanation);
    const Prediction *other = beside.runner_up;
    const double lead = explain_lead(&beside);
    const ExplainTerm most = explain_most_saved(&beside);
    fprintf(out, "  %s, the best %s stages: %.1f %% %s tokens per second\n",
            format_mesh(&other->plan.mesh, FORMAT_BUFFER), kind, 100 * fabs(1 - 1 / (1 + lead)),
            lead >= 0 ? "fewer" : "more");
    if (lead < 0) {
        fprintf(out, "  %s\n", in_spite(explanation, other));
    } else if (most.name) {
        fprintf(out, "  most of it: more %s\n", most.name);
    }
    const Prediction *staged = explanation->stages.used ? explanation->best : other;
    fprintf(out, "  memory %s instead of %s; bubble of the pipeline: %.1f %% of its step\n",
            text_bytes(UNIT_BUFFER, other->memory.reserved_bytes),
            text_bytes(UNIT_BUFFER, explanation->best->memory.reserved_bytes), 100 * staged->bubble_s / staged->step_s);
}

static void print_stages(const Explanation *explanation, FILE *out) {
    const WhyStages *stages = &explanation->stages;
    const char *kind = stages->used ? "without" : "with";
    if (explanation->result->request->world == 1) {
        return;
    }
    fprintf(out, "\nWhy %spp\n", stages->used ? "" : "not ");
    if (!stages->offered) {
        fprintf(out, "  %s has no pipelines here\n", explanation->result->request->target->name);
    } else if (stages->other) {
        print_other_kind(explanation, kind, out);
    } else if (stages->rejected) {
        fprintf(out, "  none of the %d shapes %s stages can run, as %s:\n  %s\n", stages->shapes, kind,
                format_mesh(&stages->rejected->plan.mesh, FORMAT_BUFFER), stages->rejected->reason);
    } else {
        fprintf(out, "  no shape %s stages was looked at\n", kind);
    }
}

static void print_cuts(const WhyCuts *cuts, FILE *out) {
    if (!cuts->offered) {
        return;
    }
    fprintf(out, "\nWhy etp=%d (ranks that cut each expert)%s\n", cuts->used, cuts->asked ? ": it was said" : "");
    for (int i = 0; i < cuts->count; i++) {
        fprintf(out, "  %s\n", explain_cut(&cuts->others[i], FORMAT_BUFFER));
    }
    if (cuts->count == 0) {
        fprintf(out, "  no other can run: %s\n", cuts->reason);
    }
}

static Status table_explanation(const void *answer, FILE *out, Error *error) {
    const Explanation *explanation = answer;
    const TuneRequest *request = explanation->result->request;
    format_case(request, out);
    fputs("\n\n", out);
    print_heads(explanation, out);
    if (explanation->runner_up) {
        TRY(table_comparison(explanation, (const char *const[]){"best", "next"}, out, error));
    }
    print_stages(explanation, out);
    print_cuts(&explanation->cuts, out);
    fprintf(out,
            request->handicap_count > 0
                ? "\nWhat would change the answer (one simulated choice per shape; by that the best is %s)\n"
                : "\nWhat would change the answer (estimated; by estimate alone the best is %s)\n",
            format_mesh(&explanation->estimated_best, FORMAT_BUFFER));
    for (int i = 0; i < WHAT_IF_COUNT; i++) {
        print_question(explanation, &explanation->questions[i], out);
    }
    const Sensitivities *all = &explanation->sensitivities;
    if (all->count > 0) {
        fputs("\nWhat the best plan's time per token hangs on (this plan simulated again, one quantity at a time)\n",
              out);
        TRY(record_table(&schema_sensitivities, all->rows, all->count, out, error));
    }
    format_assumptions(request, out);
    return STATUS_OK;
}

static json_t *question_object(const WhatIf *question) {
    static const char *const names[WHAT_IF_COUNT] = {"network", "memory", "sequence"};
    const bool asked = question->searched_to > 0;
    const bool known = asked && question->feasible;
    return json_pack("{s:s, s:s, s:f, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:f}", "change", names[question->kind],
                     "sentence", question->sentence, "factor", question->factor, "feasible", known, "mesh",
                     known ? json_mesh(&question->best.plan.mesh) : json_null(), "same_shape",
                     known ? json_boolean(question->same_shape) : json_null(), "tokens_per_s",
                     known ? json_real(question->best.tokens_per_s) : json_null(), "gain",
                     known && question->gain > 0 ? json_real(question->gain) : json_null(), "break_even_factor",
                     question->break_even > 0 ? json_real(question->break_even) : json_null(), "break_even_mesh",
                     question->break_even > 0 && mesh_world(&question->break_even_mesh) > 0
                         ? json_mesh(&question->break_even_mesh)
                         : json_null(),
                     "searched_to_factor", question->searched_to);
}

static json_t *stages_object(const Explanation *explanation) {
    const WhyStages *stages = &explanation->stages;
    const Explanation beside = explain_beside_stages(explanation);
    const Prediction *other = stages->other, *staged = stages->used ? explanation->best : other;
    const ExplainTerm most = other ? explain_most_saved(&beside) : (ExplainTerm){0};
    return json_pack("{s:b, s:b, s:i, s:o, s:o, s:s?, s:o, s:s?}", "offered", stages->offered, "used", stages->used,
                     "other_shapes", stages->shapes, "other",
                     other ? json_prediction_object(explanation->result->request, other, true, NULL) : json_null(),
                     "lead", other ? json_real(explain_lead(&beside)) : json_null(), "most_saved", most.name,
                     "bubble_share", staged ? json_real(staged->bubble_s / staged->step_s) : json_null(), "reason",
                     !other && stages->rejected ? stages->rejected->reason : NULL);
}

static json_t *cuts_object(const WhyCuts *cuts) {
    json_t *others = json_array();
    for (int i = 0; i < cuts->count; i++) {
        const struct OtherCut *other = &cuts->others[i];
        json_array_append_new(others, json_pack("{s:i, s:b, s:f, s:f}", "etp", other->cut, "feasible", other->fits,
                                                "slower", other->step, "reserved_bytes", other->reserved_bytes));
    }
    return json_pack("{s:b, s:b, s:i, s:o, s:s?}", "offered", cuts->offered, "asked", cuts->asked, "used", cuts->used,
                     "others", others, "reason", cuts->reason[0] ? cuts->reason : NULL);
}

static Status json_explanation(const void *answer, FILE *out, Error *error) {
    const Explanation *explanation = answer;
    const TuneRequest *request = explanation->result->request;
    const bool has_next = explanation->runner_up;
    json_t *questions = json_array();
    for (int i = 0; i < WHAT_IF_COUNT; i++) {
        json_array_append_new(questions, question_object(&explanation->questions[i]));
    }
    return json_print(
        json_pack(
            "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", "ndtune.explain/1", "request",
            json_request(request), "best", json_prediction_object(request, explanation->best, true, NULL), "next",
            has_next ? json_prediction_object(request, explanation->runner_up, true, NULL) : json_null(), "lead",
            has_next ? json_real(explain_lead(explanation)) : json_null(), "seconds_per_million_tokens",
            explain_terms_json(explanation, EXPLAIN_TIME_TERMS, explain_time_term, "next"), "memory_bytes",
            explain_terms_json(explanation, EXPLAIN_MEMORY_TERMS, explain_memory_term, "next"), "estimated_best",
            json_mesh(&explanation->estimated_best), "what_if", questions, "sensitivities",
            record_array(&schema_sensitivities, explanation->sensitivities.rows, explanation->sensitivities.count),
            "stages", stages_object(explanation), "etp", cuts_object(&explanation->cuts)),
        out, error);
}

static void term_line(Csv *csv, const char *kind, const char *unit, ExplainTerm term, bool has_next) {
    csv_row(csv, "sssnnn.", kind, term.name, unit, term.best, csv_known(has_next, term.next),
            csv_known(has_next, term.next - term.best));
}

static void sensitivity_line(Csv *csv, const Sensitivity *row, const SensitivityEnd *end) {
    if (end->factor > 0) {
        char term[FORMAT_BYTES];
        snprintf(term, sizeof term, "%s, %.2f times", row->sentence, end->factor);
        term_line(csv, "sensitivity", "time per token over that of the best", (ExplainTerm){term, 1, 1 + end->change},
                  true);
    }
}

static Status csv_explanation(const void *answer, FILE *out, Error *error) {
    const Explanation *explanation = answer;
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

const Answer answer_explanation = {.table = table_explanation, .json = json_explanation, .csv = csv_explanation};

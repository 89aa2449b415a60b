// Why the best shape wins, term by term, and what would change the answer.

#include <math.h>

#include "reports/colour.h"
#include "reports/explain_terms.h"
#include "reports/grid.h"
#include "reports/reports.h"
#include "reports/words.h"
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
    char headings[3][WORDS_BYTES];
    for (int i = 0; i < 3; i++) {
        snprintf(headings[i], WORDS_BYTES, "%s, %s", i < 2 ? names[i] : "difference", terms->unit);
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

static void print_heads(const Explanation *explanation, FILE *out) {
    char text[WORDS_BYTES], plan[PLAN_TEXT_BYTES];
    const Prediction *best = explanation->best, *next = explanation->runner_up;
    fprintf(out, "%sbest%s  %s\n      step %s\n", colour(out, COLOUR_GOOD), colour(out, COLOUR_END),
            plan_text(&best->plan, plan), words_interval(best, text));
    if (!next) {
        fprintf(out, "\nNo other shape fits.\n");
        return;
    }
    fprintf(out, "next  %s\n      step %s\n", plan_text(&next->plan, plan), words_interval(next, text));
    fprintf(out, "\nThe best makes %.2f %% more tokens per second than the next", 100 * explain_lead(explanation));
    const ExplainTerm most = explain_most_saved(explanation);
    if (most.name) {
        fprintf(out, ", most of all by less %s", most.name);
    }
    fprintf(out, ".\n\n");
}

static void print_question(const Explanation *explanation, const WhatIf *question, FILE *out) {
    char mesh[WORDS_BYTES];
    fprintf(out, "  %s: ", question->sentence);
    if (question->searched_to == 0) {
        fprintf(out, "not asked, there is too little to change\n");
        return;
    }
    if (!question->feasible) {
        fprintf(out, "no shape can run\n");
    } else if (question->same_shape) {
        fprintf(out, "the same shape, %s tokens/s\n", text_count(mesh, question->best.tokens_per_s));
    } else {
        fprintf(out, "%s instead", words_mesh(&question->best.plan.mesh, mesh));
        if (question->gain > 0 && question->gain < 0.0005) {
            fprintf(out, ", level there with %s", words_mesh(&explanation->estimated_best, mesh));
        } else if (question->gain > 0) {
            fprintf(out, ", %.1f %% faster there than %s", 100 * question->gain,
                    words_mesh(&explanation->estimated_best, mesh));
        }
        fputc('\n', out);
    }
    if (question->break_even > 0) {
        fprintf(out, "    break-even at %.2f times: from there on %s\n", question->break_even,
                words_mesh(&question->break_even_mesh, mesh));
    } else {
        fprintf(out, "    no other shape wins up to %.0f times\n", question->searched_to);
    }
}

static Status print_sensitivities(const Explanation *explanation, FILE *out, Error *error) {
    static const GridColumn columns[] = {{"quantity", false}, {"a fifth less", true}, {"a fifth more", true}};
    const Sensitivities *all = &explanation->sensitivities;
    if (all->count == 0) {
        return STATUS_OK;
    }
    fputs("\nWhat the best plan's time per token hangs on (this plan simulated again, one quantity at a time)\n", out);
    Grid *grid = grid_new(columns, 3);
    for (int i = 0; i < all->count; i++) {
        char text[WORDS_BYTES];
        grid_row(grid);
        grid_cell(grid, "%s", all->rows[i].sentence);
        grid_cell(grid, "%s", explain_sensitivity(&all->rows[i].less, text));
        grid_cell(grid, "%s", explain_sensitivity(&all->rows[i].more, text));
    }
    return grid_print(grid, out, error);
}

// Against the best of the other kind: with stages where the best has none, without where it has some.
static void print_other_kind(const Explanation *explanation, const char *kind, FILE *out) {
    char mesh[WORDS_BYTES], own[TEXT_UNIT_BYTES], others[TEXT_UNIT_BYTES];
    const Explanation beside = explain_beside_stages(explanation);
    const Prediction *other = beside.runner_up;
    const double lead = explain_lead(&beside);
    const ExplainTerm most = explain_most_saved(&beside);
    fprintf(out, "  %s, the best %s stages: %.1f %% %s tokens per second\n", words_mesh(&other->plan.mesh, mesh), kind,
            100 * fabs(1 - 1 / (1 + lead)), lead >= 0 ? "fewer" : "more");
    if (lead < 0) {
        fputs("  that is level, and the best is simpler or needs less memory\n", out);
    } else if (most.name) {
        fprintf(out, "  most of it: more %s\n", most.name);
    }
    const Prediction *staged = explanation->stages.used ? explanation->best : other;
    fprintf(out, "  memory %s instead of %s; bubble of the pipeline: %.1f %% of its step\n",
            text_bytes(others, other->memory.reserved_bytes), text_bytes(own, explanation->best->memory.reserved_bytes),
            100 * staged->bubble_s / staged->step_s);
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
        char mesh[WORDS_BYTES];
        fprintf(out, "  none of the %d shapes %s stages can run, as %s:\n  %s\n", stages->shapes, kind,
                words_mesh(&stages->rejected->plan.mesh, mesh), stages->rejected->reason);
    } else {
        fprintf(out, "  no shape %s stages was looked at\n", kind);
    }
}

static void print_cuts(const WhyCuts *cuts, FILE *out) {
    char text[WORDS_BYTES];
    if (!cuts->offered) {
        return;
    }
    fprintf(out, "\nWhy etp=%d (ranks that cut each expert)%s\n", cuts->used, cuts->asked ? ": it was said" : "");
    for (int i = 0; i < cuts->count; i++) {
        fprintf(out, "  %s\n", explain_cut(&cuts->others[i], text));
    }
    if (cuts->count == 0) {
        fprintf(out, "  no other can run: %s\n", cuts->reason);
    }
}

Status table_explanation(const Explanation *explanation, FILE *out, Error *error) {
    const TuneRequest *request = explanation->result->request;
    fprintf(out, "%s on %d x %s (%s), for %s %s\n\n", request->model.name, request->world,
            request->cluster.accelerator.name, request->cluster.name, request->target->name, request->target->version);
    print_heads(explanation, out);
    if (explanation->runner_up) {
        TRY(table_comparison(explanation, (const char *const[]){"best", "next"}, out, error));
    }
    print_stages(explanation, out);
    print_cuts(&explanation->cuts, out);
    char mesh[WORDS_BYTES];
    fprintf(out,
            request->handicap_count > 0
                ? "\nWhat would change the answer (one simulated choice per shape; by that the best is %s)\n"
                : "\nWhat would change the answer (estimated; by estimate alone the best is %s)\n",
            words_mesh(&explanation->estimated_best, mesh));
    for (int i = 0; i < WHAT_IF_COUNT; i++) {
        print_question(explanation, &explanation->questions[i], out);
    }
    TRY(print_sensitivities(explanation, out, error));
    words_assumptions(request, out);
    return STATUS_OK;
}

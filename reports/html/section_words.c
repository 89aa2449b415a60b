// Sections that are sentences: the batch arithmetic, what would change the answer, cost, assumptions.

#include "reports/explain_terms.h"
#include "reports/format.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

static void write_batch(const void *what, FILE *out) {
    const HtmlReport *report = what;
    const Prediction *best = report_best(report);
    format_batch(report->result->request->target, &best->plan, out);
    format_network(&best->plan, report->result->request->cluster.node.accelerators, out);
}

void section_batch(const HtmlReport *report, FILE *out) {
    if (!report_best(report)) {
        fputs("<p>There is no plan whose batch could be told.</p>\n", out);
        return;
    }
    markup_lines(write_batch, report, out);
}

static void write_question(MarkupTable *table, const Explanation *explanation, const WhatIf *question) {
    table_row(table, NULL);
    table_cell(table, "%s", question->sentence);
    if (question->searched_to == 0) {
        table_cell(table, "not asked, there is too little to change");
        table_cell(table, "–");
        return;
    }
    if (!question->feasible) {
        table_cell(table, "no shape can run");
    } else if (question->same_shape) {
        table_cell(table, "the same shape, %s tokens/s", text_count(UNIT_BUFFER, question->best.tokens_per_s));
    } else if (question->gain > 0) {
        table_cell(table, "%s, %.1f %% faster there than %s", format_mesh(&question->best.plan.mesh, FORMAT_BUFFER),
                   100 * question->gain, format_mesh(&explanation->estimated_best, FORMAT_BUFFER));
    } else {
        table_cell(table, "%s", format_mesh(&question->best.plan.mesh, FORMAT_BUFFER));
    }
    if (question->break_even > 0) {
        table_cell(table, "%.2f times: from there on %s", question->break_even,
                   format_mesh(&question->break_even_mesh, FORMAT_BUFFER));
    } else {
        table_cell(table, "none up to %.0f times", question->searched_to);
    }
}

static void write_cuts(const WhyCuts *cuts, FILE *out) {
    if (!cuts->offered) {
        return;
    }
    MarkupTable table =
        table_begin("table-cuts", "Other numbers of ranks that cut each expert", "the best plan with", out);
    for (int i = 0; i < cuts->count; i++) {
        table_row(&table, NULL);
        table_cell(&table, "%s", explain_cut(&cuts->others[i], FORMAT_BUFFER));
    }
    if (cuts->count == 0) {
        table_row(&table, NULL);
        table_cell(&table, "none: %s", cuts->reason);
    }
    table_end(&table);
}

void section_sensitivity(const HtmlReport *report, FILE *out) {
    const Explanation *explanation = report->explanation;
    if (!explanation) {
        markup_element(out, "p", "%s",
                       report->explanation_missing ? report->explanation_missing : "This was not asked.");
        return;
    }
    markup_element(out, "p", "These searches only estimate; by estimate alone the best is %s.",
                   format_mesh(&explanation->estimated_best, FORMAT_BUFFER));
    MarkupTable table = table_begin("table-sensitivity", "Changes of the request, and their winners",
                                    "what if|best then|break-even", out);
    for (int i = 0; i < WHAT_IF_COUNT; i++) {
        write_question(&table, explanation, &explanation->questions[i]);
    }
    table_end(&table);
    write_cuts(&explanation->cuts, out);
}

// Each quantity on its own; only the best plan is simulated again, not the search.
void section_tornado(const HtmlReport *report, FILE *out) {
    const Sensitivities *all = report->explanation ? &report->explanation->sensitivities : NULL;
    if (!all || all->count == 0) {
        return;
    }
    table_records("table-tornado", "What the best plan’s time per token hangs on, simulated again",
                  &schema_sensitivities, all->rows, all->count, out);
}

static void write_training(const void *what, FILE *out) {
    const HtmlReport *report = what;
    format_training(report->result->request, report_best(report), out);
}

void section_cost(const HtmlReport *report, FILE *out) {
    const TuneRequest *request = report->result->request;
    const Prediction *best = report_best(report);
    const double price = request->cluster.price_usd_per_accelerator_hour, hour = 3600;
    if (!best) {
        fputs("<p>Nothing runs, so there is no cost to tell.</p>\n", out);
        return;
    }
    fputs("<p>", out);
    const double hours = request->world * 1e9 / best->tokens_per_s / hour;
    markup_format(out, "A billion tokens take %.3g accelerator-hours", hours);
    if (price > 0) {
        markup_format(out, ", $%.2f at $%.2f per accelerator and hour (change it with --set price=).", hours * price,
                      price);
    } else {
        fputs("; the profile has no price, <code>--set price=USD_PER_ACCELERATOR_HOUR</code> gives one.", out);
    }
    fputs("</p>\n", out);
    if (request->tokens > 0) {
        markup_lines(write_training, report, out);
    } else {
        fputs("<p><code>--tokens N</code> adds the days and the cost to that many tokens.</p>\n", out);
    }
}

void section_assumptions(const HtmlReport *report, FILE *out) {
    const TuneRequest *request = report->result->request;
    fputs("<ul id=\"assumptions-list\">\n", out);
    for (int i = 0; i < request->assumption_count; i++) {
        markup_element(out, "li", "%s", request->assumptions[i]);
    }
    fputs("</ul>\n", out);
}

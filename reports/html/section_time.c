// Where the time goes: the terms of a step of the best shapes, which sum to it.

#include "reports/format.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"

static void write_words(const void *what, FILE *out) {
    fputs("Of the best:", out);
    format_time(what, out);
}

static RecordValue kind_of(const HtmlReport *report, const Prediction *entry, ComputeKind kind) {
    const int place = (int)(entry - report->result->entries);
    const bool split = place < report->split_count;
    return record_of_real(report->split_count > 0, split ? report->splits[place].seconds[kind] : 0);
}

#define KIND(name, kind) MADE_IN(name, Prediction, HtmlReport, kind_of(in, of, kind))
KIND(gemm, COMPUTE_GEMM)
KIND(attention, COMPUTE_ATTENTION)
KIND(memory_bound, COMPUTE_MEMORY_BOUND)
KIND(head, COMPUTE_HEAD)

// Axes and the bubble get a column if nonzero in some row.
#define SECONDS(place, name, what, member) FIELD(NULL, what, Prediction, member), COLUMN(place, name), .digits = 3
#define OPTIONAL .optional = true, .missing = "0.000"
#define EXPOSED(symbol, name, role, lenders) {SECONDS(8, #name, ABOVE, exposed_s[AXIS_##symbol]), OPTIONAL},
static const RecordField times[] = {
    {FIELD(NULL, MESH, Prediction, plan.mesh), COLUMN(1, "mesh")},
    {SECONDS(2, "step, s", REAL, step_s)},
    {SECONDS(3, "compute", REAL, compute_s)},
    {BY(gemm), COLUMN(4, "gemm"), .optional = true, .right = true, .digits = 3},
    {BY(attention), COLUMN(5, "attention"), .optional = true, .right = true, .digits = 3},
    {BY(memory_bound), COLUMN(6, "memory-bound"), .optional = true, .right = true, .digits = 3},
    {BY(head), COLUMN(7, "head"), .optional = true, .right = true, .digits = 3},
    AXIS_LIST(EXPOSED){SECONDS(9, "optimizer", REAL, optimizer_s)},
    {SECONDS(10, "bubble", ABOVE, bubble_s), OPTIONAL},
    {SECONDS(11, "overhead", REAL, overhead_s)},
};
static SCHEMA(times, Prediction);

void section_time(const HtmlReport *report, FILE *out) {
    const Prediction *best = report_best(report);
    if (!best) {
        fputs("<p>Nothing runs, so there is no step to divide.</p>\n", out);
        return;
    }
    markup_lines(write_words, best, out);
    fputs("<details><summary>Table behind the chart</summary>\n", out);
    const RecordSchema schema = record_about(&schema_times, report);
    const int count = report->result->entry_count;
    table_records("table-time", "Seconds of a step; compute by kind of kernel, communication as far as it is exposed",
                  &schema, report->result->entries, count < HTML_SPLIT ? count : HTML_SPLIT, out);
    fputs("</details>\n", out);
}

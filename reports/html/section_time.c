// Where the time goes: the terms of a step of the best shapes, which sum to it.

#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/words.h"

enum { ROWS = 12 };

static void write_words(const void *what, FILE *out) {
    fputs("Of the best:", out);
    words_time(what, out);
}

void section_time(const HtmlReport *report, FILE *out) {
    const TuneResult *result = report->result;
    const Prediction *best = report_best(report);
    if (!best) {
        fputs("<p>Nothing runs, so there is no step to divide.</p>\n", out);
        return;
    }
    markup_lines(write_words, best, out);
    fputs("<details><summary>Table behind the chart</summary>\n", out);
#define TIME_COLUMN(symbol, name, role, lenders) {#name, true},
    static const MarkupColumn columns[] = {{"mesh", false},
                                           {"step, s", true},
                                           {"compute", true},
                                           AXIS_LIST(TIME_COLUMN){"optimizer", true},
                                           {"overhead", true}};
    MarkupTable table = table_begin("table-time", "Seconds of a step; communication as far as it is exposed", columns,
                                    (int)(sizeof columns / sizeof columns[0]), out);
    for (int i = 0; i < result->entry_count && i < ROWS; i++) {
        const Prediction *entry = &result->entries[i];
        char mesh[WORDS_BYTES];
        table_row(&table, NULL);
        table_cell(&table, "%s", words_layout(&entry->plan.mesh, mesh));
        table_cell(&table, "%.3f", entry->step_s);
        table_cell(&table, "%.3f", entry->compute_s);
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            table_cell(&table, "%.3f", entry->exposed_s[axis]);
        }
        table_cell(&table, "%.3f", entry->optimizer_s);
        table_cell(&table, "%.3f", entry->overhead_s);
    }
    table_end(&table);
    fputs("</details>\n", out);
}

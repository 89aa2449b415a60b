// Where the time goes: the terms of a step of the best shapes, which sum to it.

#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/words.h"

static void write_words(const void *what, FILE *out) {
    fputs("Of the best:", out);
    words_time(what, out);
}

typedef struct TimeTable {
    const HtmlReport *report;
    int rows;
    bool axis[AXIS_COUNT], waits;  // columns that are something in some row
    MarkupColumn columns[COMPUTE_KINDS + AXIS_COUNT + 6];
    int count;
} TimeTable;

static void add_column(TimeTable *table, const char *name, bool number) {
    table->columns[table->count++] = (MarkupColumn){name, number};
}

static TimeTable time_table(const HtmlReport *report) {
    const TuneResult *result = report->result;
    TimeTable table = {.report = report, .rows = result->entry_count < HTML_SPLIT ? result->entry_count : HTML_SPLIT};
    for (int i = 0; i < table.rows; i++) {
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            table.axis[axis] |= result->entries[i].exposed_s[axis] > 0;
        }
        table.waits |= result->entries[i].bubble_s > 0;
    }
    add_column(&table, "mesh", false);
    add_column(&table, "step, s", true);
    add_column(&table, "compute", true);
    for (int kind = 0; kind < COMPUTE_KINDS && report->split_count > 0; kind++) {
        add_column(&table, compute_kind_names[kind], true);
    }
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (table.axis[axis]) {
            add_column(&table, axis_names[axis], true);
        }
    }
    add_column(&table, "optimizer", true);
    if (table.waits) {
        add_column(&table, "bubble", true);
    }
    add_column(&table, "overhead", true);
    return table;
}

static void write_row(const TimeTable *table, int place, MarkupTable *out) {
    const Prediction *entry = &table->report->result->entries[place];
    char mesh[WORDS_BYTES];
    table_row(out, NULL);
    table_cell(out, "%s", words_layout(&entry->plan.mesh, mesh));
    table_cell(out, "%.3f", entry->step_s);
    table_cell(out, "%.3f", entry->compute_s);
    for (int kind = 0; kind < COMPUTE_KINDS && table->report->split_count > 0; kind++) {
        table_cell(out, "%.3f", place < table->report->split_count ? table->report->splits[place].seconds[kind] : 0);
    }
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (table->axis[axis]) {
            table_cell(out, "%.3f", entry->exposed_s[axis]);
        }
    }
    table_cell(out, "%.3f", entry->optimizer_s);
    if (table->waits) {
        table_cell(out, "%.3f", entry->bubble_s);
    }
    table_cell(out, "%.3f", entry->overhead_s);
}

void section_time(const HtmlReport *report, FILE *out) {
    const Prediction *best = report_best(report);
    if (!best) {
        fputs("<p>Nothing runs, so there is no step to divide.</p>\n", out);
        return;
    }
    markup_lines(write_words, best, out);
    fputs("<details><summary>Table behind the chart</summary>\n", out);
    const TimeTable shown = time_table(report);
    MarkupTable table =
        table_begin("table-time", "Seconds of a step; compute by kind of kernel, communication as far as it is exposed",
                    shown.columns, shown.count, out);
    for (int i = 0; i < shown.rows; i++) {
        write_row(&shown, i, &table);
    }
    table_end(&table);
    fputs("</details>\n", out);
}

// A step of the best plan in words: how busy each lane is. The chart behind it draws timeline_data.c.

#include <string.h>

#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "sim/base/text.h"

static void lane_seconds(const HtmlTimeline *shown, double *seconds) {
    for (int64_t i = 0; i < shown->timeline->span_count; i++) {
        const Span *span = &shown->timeline->spans[i];
        if (span->rank == shown->rank) {
            seconds[shown->program->tasks[span->task].lane] += span->end_s - span->start_s;
        }
    }
}

static void write_lanes(const HtmlReport *report, const HtmlTimeline *shown, const char *id, const char *caption,
                        FILE *out) {
    const StepProgram *program = shown->program;
    double *seconds = ARENA_ARRAY(report->arena, double, program->lane_count);
    lane_seconds(shown, seconds);
    static const MarkupColumn columns[] = {{"lane", false}, {"busy, s", true}, {"share of the step", true}};
    MarkupTable table = table_begin(id, caption, columns, 3, out);
    for (int32_t lane = 0; lane < program->lane_count; lane++) {
        if (seconds[lane] > 0) {
            table_row(&table, NULL);
            table_cell(&table, "%s", program->lanes[lane].name);
            table_cell(&table, "%.4g", seconds[lane]);
            table_cell(&table, "%.1f %%", 100 * seconds[lane] / shown->timeline->step_s);
        }
    }
    table_end(&table);
}

void section_timeline(const HtmlReport *report, FILE *out) {
    if (!report->simulated.program) {
        fputs("<p>There is no step to show: ", out);
        fputs(report_best(report) ? "this plan was only estimated.</p>\n" : "nothing runs.</p>\n", out);
        return;
    }
    char seconds[TEXT_UNIT_BYTES];
    fputs("<p>", out);
    markup_format(out, "Rank %d of the best plan, one lane per stream; a simulated step takes %s",
                  report->simulated.rank, text_seconds(seconds, report->simulated.timeline->step_s));
    if (report->measured.program) {
        markup_format(out, ", the measured one below it took %s",
                      text_seconds(seconds, report->measured.timeline->step_s));
    }
    fputs(".</p>\n", out);
    if (!report->measured.program) {
        fputs("<p>No step of this plan has been measured; <code>ndtune validate</code> runs it with ndtune's own "
              "executor and lays the measured step under the simulated one.</p>\n",
              out);
    }
    fputs("<details><summary>Table behind the chart</summary>\n", out);
    write_lanes(report, &report->simulated, "table-lanes", "Simulated: how busy each lane is", out);
    if (report->measured.program) {
        write_lanes(report, &report->measured, "table-lanes-measured", "Measured: how busy each lane is", out);
    }
    fputs("</details>\n", out);
}

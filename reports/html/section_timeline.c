// A step of the best plan as text: how busy each lane is. The chart after it is drawn from timeline_data.c.

#include <math.h>

#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/open_time.h"
#include "sim/base/text.h"

typedef struct LaneTime {
    double busy_s, open_s;  // open: while the compute lane is idle
} LaneTime;

static void lane_times(const HtmlTimeline *shown, Arena *arena, LaneTime *lanes) {
    const Span *spans = shown->timeline->spans;
    int64_t begin = 0;
    while (begin < shown->timeline->span_count && spans[begin].rank != shown->rank) {
        begin++;
    }
    const int64_t end = span_rank_end(shown->timeline, begin);
    OpenTime open = open_time_new(end - begin, arena);
    open_time_begin(&open, shown->program, &spans[begin], end - begin);
    for (int64_t i = begin; i < end; i++) {
        LaneTime *lane = &lanes[shown->program->tasks[spans[i].task].lane];
        lane->busy_s += spans[i].end_s - spans[i].start_s;
        lane->open_s += 1e-9 * (double)open_time_ns(&open, &spans[i]);
    }
}

static void write_lanes(const HtmlReport *report, const HtmlTimeline *shown, const char *id, const char *caption,
                        FILE *out) {
    const StepProgram *program = shown->program;
    LaneTime *lanes = ARENA_ARRAY(report->arena, LaneTime, program->lane_count);
    lane_times(shown, report->arena, lanes);
    MarkupTable table =
        table_begin(id, caption, "lane|#busy|#share of the step|#hidden behind compute|#in the open", out);
    for (int32_t i = 0; i < program->lane_count; i++) {
        if (lanes[i].busy_s <= 0) {
            continue;
        }
        table_row(&table, NULL);
        table_cells(&table, "st%", program->lanes[i].name, lanes[i].busy_s, lanes[i].busy_s / shown->timeline->step_s);
        if (i == LANE_COMPUTE) {
            table_rest(&table, "it is what the others hide behind");
        } else {
            table_cells(&table, "tt", fmax(0, lanes[i].busy_s - lanes[i].open_s), lanes[i].open_s);
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
    fputs("<p>", out);
    markup_format(out, "Rank %d of the best plan, one lane per stream; a simulated step takes %s",
                  report->simulated.rank, text_seconds(UNIT_BUFFER, report->simulated.timeline->step_s));
    if (report->measured.program) {
        markup_format(out, ", the measured one below it took %s",
                      text_seconds(UNIT_BUFFER, report->measured.timeline->step_s));
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

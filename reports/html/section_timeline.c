// A step of the best plan in words: how busy each lane is. The chart behind it draws timeline_data.c.

#include <math.h>

#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "sim/base/text.h"

typedef struct LaneTime {
    double busy_s, hidden_s;  // hidden: while the compute lane works
} LaneTime;

// The compute lane's spans, which follow each other.
static Span *compute_spans(const HtmlTimeline *shown, Arena *arena, int64_t *count) {
    Span *spans = ARENA_ARRAY(arena, Span, shown->timeline->span_count);
    *count = 0;
    for (int64_t i = 0; i < shown->timeline->span_count; i++) {
        const Span *span = &shown->timeline->spans[i];
        if (span->rank == shown->rank && shown->program->tasks[span->task].lane == LANE_COMPUTE) {
            spans[(*count)++] = *span;
        }
    }
    return spans;
}

static void lane_times(const HtmlTimeline *shown, Arena *arena, LaneTime *lanes) {
    int64_t count = 0;
    const Span *compute = compute_spans(shown, arena, &count);
    int64_t *at =
        ARENA_ARRAY(arena, int64_t, shown->program->lane_count);  // the spans of a lane do not turn back either
    for (int64_t i = 0; i < shown->timeline->span_count; i++) {
        const Span *span = &shown->timeline->spans[i];
        if (span->rank != shown->rank) {
            continue;
        }
        const int lane = shown->program->tasks[span->task].lane;
        lanes[lane].busy_s += span->end_s - span->start_s;
        while (at[lane] < count && compute[at[lane]].end_s <= span->start_s) {
            at[lane]++;
        }
        for (int64_t k = at[lane]; k < count && compute[k].start_s < span->end_s; k++) {
            lanes[lane].hidden_s += fmin(span->end_s, compute[k].end_s) - fmax(span->start_s, compute[k].start_s);
        }
    }
}

static void write_lanes(const HtmlReport *report, const HtmlTimeline *shown, const char *id, const char *caption,
                        FILE *out) {
    const StepProgram *program = shown->program;
    LaneTime *lanes = ARENA_ARRAY(report->arena, LaneTime, program->lane_count);
    lane_times(shown, report->arena, lanes);
    static const MarkupColumn columns[] = {{"lane", false},
                                           {"busy", true},
                                           {"share of the step", true},
                                           {"hidden behind compute", true},
                                           {"in the open", true}};
    MarkupTable table = table_begin(id, caption, columns, 5, out);
    for (int32_t i = 0; i < program->lane_count; i++) {
        char text[TEXT_UNIT_BYTES];
        if (lanes[i].busy_s <= 0) {
            continue;
        }
        table_row(&table, NULL);
        table_cell(&table, "%s", program->lanes[i].name);
        table_cell(&table, "%s", text_seconds(text, lanes[i].busy_s));
        table_cell(&table, "%.1f %%", 100 * lanes[i].busy_s / shown->timeline->step_s);
        if (i == LANE_COMPUTE) {
            table_rest(&table, "it is what the others hide behind");
        } else {
            table_cell(&table, "%s", text_seconds(text, lanes[i].hidden_s));
            table_cell(&table, "%s", text_seconds(text, fmax(0, lanes[i].busy_s - lanes[i].hidden_s)));
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

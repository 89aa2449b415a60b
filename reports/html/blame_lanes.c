// The last collectives of each rank as bars over time, and as a table. Pauses are shortened, so that the milliseconds
// before a hang and the minutes of it fit into one drawing; each bar's title tells its true times. Plain SVG: it
// prints, and needs no script.

#include <math.h>
#include <stdlib.h>

#include "reports/html/blame_page.h"
#include "reports/html/markup.h"
#include "sim/base/text.h"

enum {
    MOST_LANES = 48,
    LAST = 24,  // collectives of each
    ROWS = 3,   // of a lane, for those that overlap
    COLOURS = 7,
    LEFT = 92,
    WIDTH = 1080,
    OPEN = 90,  // at the right, for what never ended
    LANE = 30,
    EDGE = 3,     // above and below its bars
    PAUSES = 10,  // no pause is wider than so many to the drawing
    HALVINGS = 64,
    LISTED = 8,  // collectives of each in the table
};

static const double NS = 1e9;

typedef struct Bar {
    int rank, lane, row;
    const DumpEntry *entry;
    int64_t begin_ns, end_ns;  // 0 = it did not end
} Bar;

typedef struct Lanes {
    const BlamePage *page;
    Bar *bars;
    int count;
    size_t capacity;
    int *ranks;  // by lane
    int lane_count;
    int64_t *moments;  // ascending
    double *at;        // of each, from the left
    size_t moment_count;
    int rows;        // that any lane needs
    double pause_s;  // longer ones are drawn as so long
} Lanes;

// ---------------------------------------------------------------------------------------------- which

static bool is_listed(const int *ranks, int count, int rank) {
    for (int i = 0; i < count; i++) {
        if (ranks[i] == rank) {
            return true;
        }
    }
    return false;
}

// The blamed, those that wait for them, then the others, as many as there is room for; in ascending order.
static void choose_lanes(Lanes *lanes) {
    const BlameReport *report = lanes->page->report;
    const Verdict *verdict = report->verdict;
    bool *chosen = ARENA_ARRAY(lanes->page->arena, bool, report->job->world);
    int count = 0;
    for (int round = 0; round < 3; round++) {
        for (int rank = 0; rank < report->job->world && count < MOST_LANES; rank++) {
            const bool now = round == 0   ? blame_is_blamed(report, rank)
                             : round == 1 ? is_listed(verdict->waiting, verdict->waiting_count, rank)
                                          : true;
            count += now && !chosen[rank];
            chosen[rank] |= now;
        }
    }
    lanes->ranks = ARENA_ARRAY(lanes->page->arena, int, count);
    for (int rank = 0; rank < report->job->world; rank++) {
        if (chosen[rank]) {
            lanes->ranks[lanes->lane_count++] = rank;
        }
    }
}

// An end that was not recorded is at the latest where the rank's next collective begins. A recorder without completions
// calls one over that failed: where the verdict has the rank wait in it, it is not.
static int64_t end_of(const BlameReport *report, int rank, int e) {
    const JobRank *row = &report->job->ranks[rank];
    const Dump *dump = row->dump;
    const DumpEntry *entry = &dump->entries[e];
    if (!dump_is_over(dump, entry) || blame_is_inside(report, rank, row->group_of[entry->group], entry->seq)) {
        return 0;
    }
    const int64_t next = e + 1 < dump->entry_count ? dump->entries[e + 1].created_ns : entry->created_ns + 1;
    return entry->completed_ns > entry->created_ns ? entry->completed_ns
           : next > entry->created_ns              ? next
                                                   : entry->created_ns + 1;
}

static void add_bars(Lanes *lanes, int lane) {
    const int rank = lanes->ranks[lane];
    const Dump *dump = lanes->page->report->job->ranks[rank].dump;
    int64_t busy_until[ROWS] = {0};
    for (int e = dump && dump->entry_count > LAST ? dump->entry_count - LAST : 0; dump && e < dump->entry_count; e++) {
        const DumpEntry *entry = &dump->entries[e];
        if (entry->created_ns <= 0 || entry->op == DUMP_COALESCED) {
            continue;
        }
        Bar bar = {.rank = rank,
                   .lane = lane,
                   .entry = entry,
                   .begin_ns = entry->created_ns,
                   .end_ns = end_of(lanes->page->report, rank, e)};
        while (bar.row + 1 < ROWS && busy_until[bar.row] > bar.begin_ns) {
            bar.row++;
        }
        lanes->rows = bar.row >= lanes->rows ? bar.row + 1 : lanes->rows;
        busy_until[bar.row] = bar.end_ns > 0 ? bar.end_ns : INT64_MAX;
        ARENA_PUSH(lanes->page->arena, lanes->bars, lanes->count, &lanes->capacity) = bar;
    }
}

// ---------------------------------------------------------------------------------------------- time to the right

static int compare_moments(const void *a, const void *b) {
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

static double gap(const Lanes *lanes, size_t i) {
    return (double)(lanes->moments[i] - lanes->moments[i - 1]) / NS;
}

// The longest pause that is a PAUSES-th of the drawing once longer ones are cut to it.
static void find_pause(Lanes *lanes) {
    double whole = 0;
    for (size_t i = 1; i < lanes->moment_count; i++) {
        lanes->pause_s = fmax(lanes->pause_s, gap(lanes, i));
    }
    for (int halving = 0; halving < HALVINGS; halving++) {
        whole = 0;
        for (size_t i = 1; i < lanes->moment_count; i++) {
            whole += fmin(gap(lanes, i), lanes->pause_s);
        }
        if (lanes->pause_s * PAUSES <= whole * (1 + 1e-6)) {
            return;
        }
        lanes->pause_s = fmax(whole / PAUSES, lanes->pause_s / 2);
    }
}

static void lay_out(Lanes *lanes) {
    Arena *arena = lanes->page->arena;
    lanes->moments = ARENA_ARRAY(arena, int64_t, 2 * (size_t)lanes->count + 1);
    for (int i = 0; i < lanes->count; i++) {
        lanes->moments[lanes->moment_count++] = lanes->bars[i].begin_ns;
        if (lanes->bars[i].end_ns > 0) {
            lanes->moments[lanes->moment_count++] = lanes->bars[i].end_ns;
        }
    }
    qsort(lanes->moments, lanes->moment_count, sizeof *lanes->moments, compare_moments);
    find_pause(lanes);
    lanes->at = ARENA_ARRAY(arena, double, lanes->moment_count);
    for (size_t i = 1; i < lanes->moment_count; i++) {
        lanes->at[i] = lanes->at[i - 1] + fmin(gap(lanes, i), lanes->pause_s);
    }
}

static double x_of(const Lanes *lanes, int64_t moment) {
    const int64_t *found =
        bsearch(&moment, lanes->moments, lanes->moment_count, sizeof *lanes->moments, compare_moments);
    const double whole = lanes->at[lanes->moment_count - 1], here = found ? lanes->at[found - lanes->moments] : whole;
    return LEFT + (whole > 0 ? here / whole : 0) * (WIDTH - LEFT - OPEN);
}

// ---------------------------------------------------------------------------------------------- drawing

static const JobGroup *group_of(const Lanes *lanes, const Bar *bar) {
    const Job *job = lanes->page->report->job;
    return &job->groups[job->ranks[bar->rank].group_of[bar->entry->group]];
}

// "number 3 of mesh_tp of ranks 0, 1"; of a message, whose number the entry does not have, between which ranks.
static const char *number_words(const Lanes *lanes, const Bar *bar) {
    Arena *arena = lanes->page->arena;
    const Job *job = lanes->page->report->job;
    const int channel = bar->entry->p2p ? channel_of(job, bar->rank, bar->entry) : -1;
    return channel >= 0 ? blame_group(&job->groups[channel], arena)
                        : arena_format(arena, "number %lld of %s", (long long)bar->entry->seq,
                                       blame_group(group_of(lanes, bar), arena));
}

static const char *bar_words(const Lanes *lanes, const Bar *bar) {
    Arena *arena = lanes->page->arena;
    const DumpEntry *entry = bar->entry;
    const char *bytes =
        entry->bytes > 0 ? arena_format(arena, " of %s", text_bytes(UNIT_BUFFER, (double)entry->bytes)) : "";
    const char *ended = bar->end_ns == 0
                            ? "did not end"
                            : arena_format(arena, "over after %s at the latest",
                                           text_seconds(UNIT_BUFFER, (double)(bar->end_ns - bar->begin_ns) / NS));
    const double before_s = (double)(lanes->moments[lanes->moment_count - 1] - bar->begin_ns) / NS;
    return arena_format(arena, "rank %d: %s%s, %s; issued %s before the last of all, %s%s%s", bar->rank,
                        dump_op_rows[entry->op].words, bytes, number_words(lanes, bar),
                        text_seconds(UNIT_BUFFER, before_s), ended, entry->caller ? "; " : "",
                        entry->caller ? entry->caller : "");
}

static void draw_bar(const Lanes *lanes, const Bar *bar, FILE *out) {
    const bool open = bar->end_ns == 0;
    const int height = (LANE - 2 * EDGE) / lanes->rows;
    const double left = x_of(lanes, bar->begin_ns), right = open ? WIDTH - 4 : x_of(lanes, bar->end_ns);
    fprintf(out, "<rect class=\"k%d%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>",
            group_of(lanes, bar)->kind % COLOURS, open ? " open" : "", left,
            bar->lane * LANE + EDGE + bar->row * height, fmax(right - left - 0.5, 1.5), height - 1);
    markup_text(bar_words(lanes, bar), out);
    fputs("</title></rect>\n", out);
}

static void draw(const Lanes *lanes, FILE *out) {
    const int height = lanes->lane_count * LANE;
    fprintf(
        out,
        "<figure class=\"chart\"><figcaption id=\"lanes-caption\">Time goes to the right, by the hosts’ clocks; pauses "
        "of more than %s are drawn as long as that. What reaches the right edge did not end. The table below says "
        "the same.</figcaption>\n<div class=\"drawing\" tabindex=\"0\">\n"
        "<svg class=\"lanes\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
        "aria-labelledby=\"lanes-caption\">\n",
        text_seconds((char[TEXT_UNIT_BYTES]){0}, lanes->pause_s), WIDTH, height, WIDTH, height);
    for (int lane = 0; lane < lanes->lane_count; lane++) {
        const bool blamed = blame_is_blamed(lanes->page->report, lanes->ranks[lane]);
        fprintf(out,
                "<rect class=\"lane%s\" x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\"/><text x=\"6\" y=\"%d\">rank "
                "%d%s</text>\n",
                blamed ? " blamed" : "", lane * LANE, WIDTH, LANE - 1, lane * LANE + LANE / 2 + 4, lanes->ranks[lane],
                blamed ? " ◀" : "");
    }
    for (int i = 0; i < lanes->count; i++) {
        draw_bar(lanes, &lanes->bars[i], out);
    }
    fputs("</svg></div>\n", out);
}

// What each colour stands for.
static void write_legend(const Lanes *lanes, FILE *out) {
    const Job *job = lanes->page->report->job;
    bool *told = ARENA_ARRAY(lanes->page->arena, bool, job->kind_count);
    fputs("<ul class=\"legend\">\n", out);
    for (int i = 0; i < lanes->count; i++) {
        const JobGroup *group = group_of(lanes, &lanes->bars[i]);
        if (!told[group->kind]) {
            told[group->kind] = true;
            fprintf(out,
                    "<li><svg class=\"lanes\" width=\"14\" height=\"14\"><rect class=\"k%d\" width=\"14\" "
                    "height=\"14\"/></svg> ",
                    group->kind % COLOURS);
            markup_format(out, "%s, %d ranks", blame_group_name(group), group->count);
            fputs("</li>\n", out);
        }
    }
    fputs("</ul></figure>\n", out);
}

static void write_table(const Lanes *lanes, FILE *out) {
    fputs("<details><summary>The same as a table</summary>\n", out);
    MarkupTable table = table_begin("table-lanes", "The last collectives of each rank that is drawn",
                                    "#rank|collective|#size|which|#issued before the last of all|state", out);
    for (int i = 0; i < lanes->count; i++) {
        const Bar *bar = &lanes->bars[i];
        const int ahead = i + LISTED < lanes->count ? lanes->bars[i + LISTED].rank : -1;
        if (ahead == bar->rank) {  // that many more of this rank follow
            continue;
        }
        table_row(&table, blame_is_blamed(lanes->page->report, bar->rank) ? "class=\"blamed\"" : NULL);
        table_cells(&table, "dsbsts", bar->rank, dump_op_rows[bar->entry->op].words, (double)bar->entry->bytes,
                    number_words(lanes, bar), (double)(lanes->moments[lanes->moment_count - 1] - bar->begin_ns) / NS,
                    bar->end_ns == 0 ? "in it" : "over");
    }
    table_end(&table);
    fputs("</details>\n", out);
}

void blame_page_lanes(const BlamePage *page, FILE *out) {
    Lanes lanes = {.page = page};
    choose_lanes(&lanes);
    for (int lane = 0; lane < lanes.lane_count; lane++) {
        add_bars(&lanes, lane);
    }
    if (lanes.count == 0) {
        fputs("<p>The dumps hold no collective with a time.</p>\n", out);
        return;
    }
    lay_out(&lanes);
    draw(&lanes, out);
    write_legend(&lanes, out);
    if (lanes.lane_count < page->report->job->world) {
        fprintf(out, "<p>%d more ranks are not drawn.</p>\n", page->report->job->world - lanes.lane_count);
    }
    write_table(&lanes, out);
}

// Tables of the blame page: what the blamed rank and its group did, and where every rank is. Ranks at the same place
// share one row, so that a job of thousands stays readable.

#include <string.h>

#include "reports/html/blame_page.h"
#include "reports/html/markup.h"
#include "sim/base/text.h"

enum { MOST_ROWS = 512 };

static const char *size_words(int64_t bytes, char text[TEXT_UNIT_BYTES]) {
    return bytes > 0 ? text_bytes(text, (double)bytes) : "–";
}

static const char *seconds_words(double seconds, char text[TEXT_UNIT_BYTES]) {
    return seconds >= 0 ? text_seconds(text, seconds) : "–";
}

static const char *or_dash(const char *text) {
    return text && text[0] ? text : "–";
}

// ---------------------------------------------------------------------------------------------- did and due

static void write_elements(MarkupTable *table, const VerdictPlace *place) {
    table_cell(table, "%lld in, %lld out", (long long)place->in, (long long)place->out);
    table_cell(table, "%s", or_dash(place->dtype));
}

static void write_place(const BlamePage *page, MarkupTable *table, const char *who, const VerdictPlace *place) {
    char size[TEXT_UNIT_BYTES];
    table_row(table, NULL);
    table_cell(table, "%s", who);
    table_cell(table, "%s", dump_op_rows[place->op].words);
    table_cell(table, "%s", size_words(place->bytes, size));
    write_elements(table, place);
    table_cell(table, "%lld of %s", (long long)place->seq,
               blame_group(&page->report->job->groups[place->group], page->arena));
    table_cell(table, "%s", or_dash(place->layer));
    table_cell(table, "%s", or_dash(place->caller));
}

static void write_difference(const BlamePage *page, FILE *out) {
    static const MarkupColumn columns[] = {
        {"", false},       {"collective", false},        {"size", true},      {"elements", false}, {"type", false},
        {"number", false}, {"where in the step", false}, {"called by", false}};
    const Verdict *verdict = page->report->verdict;
    if (verdict->due.group < 0) {
        return;
    }
    MarkupTable table = table_begin("table-difference", "What was due, and what the blamed rank did", columns, 8, out);
    write_place(page, &table, "due", &verdict->due);
    if (verdict->did.group >= 0) {
        write_place(page, &table, verdict->kind == VERDICT_MISSING ? "its last" : "it did", &verdict->did);
    }
    table_end(&table);
}

// ---------------------------------------------------------------------------------------------- the group

static void write_member(const BlamePage *page, MarkupTable *table, const Member *member) {
    const Job *job = page->report->job;
    const int64_t seq = page->report->verdict->due.seq;
    const Dump *dump = job->ranks[member->rank].dump;
    const Turn *turn = member_turn(member, seq), *last = member->count > 0 ? &member->turns[member->count - 1] : NULL;
    char size[TEXT_UNIT_BYTES];
    table_row(table, blame_is_blamed(page->report, member->rank) ? "class=\"blamed\"" : NULL);
    table_cell(table, "%d", member->rank);
    table_cell(table, "%s", or_dash(dump ? dump->host : NULL));
    table_cell(table, "%s",
               !dump                     ? "no dump"
               : turn                    ? dump_op_rows[turn->op].words
               : last && last->seq > seq ? "lost by its ring"
                                         : "did not come");
    table_cell(table, "%s", turn ? size_words(turn->bytes, size) : "–");
    table_cell(table, "%s",
               !turn ? "–"
               : turn->done && !blame_is_inside(page->report, member->rank, page->report->verdict->due.group, seq)
                   ? "over"
                   : "in it");
    last ? table_cell(table, "%lld", (long long)last->seq) : table_cell(table, "–");
    table_cell(table, "%s", or_dash(turn ? turn_entry(job, member, turn)->caller : NULL));
}

void blame_page_group(const BlamePage *page, FILE *out) {
    static const MarkupColumn columns[] = {{"rank", true},      {"host", false},  {"at that number", false},
                                           {"size", true},      {"state", false}, {"last number", true},
                                           {"called by", false}};
    const Verdict *verdict = page->report->verdict;
    if (verdict->due.group < 0) {
        fputs("<p>No collective of a group is held up.</p>\n", out);
        return;
    }
    const JobGroup *group = &page->report->job->groups[verdict->due.group];
    write_difference(page, out);
    MarkupTable table = table_begin(
        "table-group",
        arena_format(page->arena, "Number %lld of %s", (long long)verdict->due.seq, blame_group(group, page->arena)),
        columns, 7, out);
    for (int m = 0; m < group->count && m < MOST_ROWS; m++) {
        write_member(page, &table, &group->members[m]);
    }
    table_end(&table);
    if (group->count > MOST_ROWS) {
        fprintf(out, "<p>%d more members are not listed.</p>\n", group->count - MOST_ROWS);
    }
}

// ---------------------------------------------------------------------------------------------- who stands where

static bool same_stand(const BlamePage *page, int a, int b) {
    const VerdictPlace *one = &page->report->verdict->stands[a], *other = &page->report->verdict->stands[b];
    return strcmp(blame_state(page->report, a), blame_state(page->report, b)) == 0 && one->group == other->group &&
           (one->group < 0 || (one->seq == other->seq && one->op == other->op && one->bytes == other->bytes)) &&
           blame_is_blamed(page->report, a) == blame_is_blamed(page->report, b);
}

static void write_stand(const BlamePage *page, MarkupTable *table, const int *ranks, int count) {
    const VerdictPlace *place = &page->report->verdict->stands[ranks[0]];
    const bool at = place->group >= 0;
    char size[TEXT_UNIT_BYTES];
    double longest_s = -1;
    for (int i = 0; i < count; i++) {
        const double waited_s = page->report->verdict->stands[ranks[i]].waited_s;
        longest_s = waited_s > longest_s ? waited_s : longest_s;
    }
    table_row(table, blame_is_blamed(page->report, ranks[0]) ? "class=\"blamed\"" : NULL);
    table_cell(table, "%s", blame_ranks(page->report->job, ranks, count, page->arena));
    table_cell(table, "%s%s%s", blame_state(page->report, ranks[0]), at ? " " : "",
               at ? dump_op_rows[place->op].words : "");
    table_cell(table, "%s", at ? size_words(place->bytes, size) : "–");
    table_cell(table, "%s", at ? blame_group(&page->report->job->groups[place->group], page->arena) : "–");
    at ? table_cell(table, "%lld", (long long)place->seq) : table_cell(table, "–");
    table_cell(table, "%s", seconds_words(longest_s, size));
    table_cell(table, "%s", or_dash(place->layer));
    table_cell(table, "%s", or_dash(place->caller));
}

void blame_page_stands(const BlamePage *page, FILE *out) {
    static const MarkupColumn columns[] = {{"ranks", false},
                                           {"stand", false},
                                           {"size", true},
                                           {"group", false},
                                           {"number", true},
                                           {"wait", true},
                                           {"where in the step", false},
                                           {"called by", false}};
    const int world = page->report->job->world;
    bool *told = ARENA_ARRAY(page->arena, bool, world);
    int *together = ARENA_ARRAY(page->arena, int, world);
    int rows = 0, left = 0;
    MarkupTable table =
        table_begin("table-stands", "Ranks in the same place are one row; the blamed first", columns, 8, out);
    for (int blamed = 1; blamed >= 0; blamed--) {
        for (int rank = 0; rank < world; rank++) {
            int count = 0;
            if (told[rank] || blame_is_blamed(page->report, rank) != (blamed != 0)) {
                continue;
            }
            for (int other = rank; other < world && rows < MOST_ROWS; other++) {
                if (!told[other] && same_stand(page, rank, other)) {
                    told[other] = true;
                    together[count++] = other;
                }
            }
            left += rows >= MOST_ROWS;
            if (count > 0) {
                write_stand(page, &table, together, count);
                rows++;
            }
        }
    }
    table_end(&table);
    if (left > 0) {
        fprintf(out, "<p>%d more ranks stand elsewhere; <code>--format csv</code> has a line for each.</p>\n", left);
    }
}

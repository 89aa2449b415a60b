// Tables of the blame page: what the blamed rank and its group did, and where every rank is. Ranks at the same place
// share one row, so that a job of thousands stays readable.

#include <string.h>

#include "reports/html/blame_page.h"
#include "reports/html/markup.h"

enum { MOST_ROWS = 512 };

// ---------------------------------------------------------------------------------------------- did and due

static void write_place(const BlamePage *page, MarkupTable *table, const char *who, const VerdictPlace *place) {
    table_row(table, NULL);
    table_cells(table, "ssb", who, dump_op_rows[place->op].words, (double)place->bytes);
    table_cell(table, "%lld in, %lld out", (long long)place->in, (long long)place->out);
    table_cells(table, "s", place->dtype);
    table_cell(table, "%lld of %s", (long long)place->seq,
               blame_group(&page->report->job->groups[place->group], page->arena));
    table_cells(table, "ss", place->layer, place->caller);
}

static void write_difference(const BlamePage *page, FILE *out) {
    const Verdict *verdict = page->report->verdict;
    if (verdict->due.group < 0) {
        return;
    }
    MarkupTable table = table_begin("table-difference", "What was due, and what the blamed rank did",
                                    "|collective|#size|elements|type|number|where in the step|called by", out);
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
    const bool inside = blame_is_inside(page->report, member->rank, page->report->verdict->due.group, seq);
    const char *did = !dump                     ? "no dump"
                      : turn                    ? dump_op_rows[turn->op].words
                      : last && last->seq > seq ? "lost by its ring"
                                                : "did not come";
    table_row(table, blame_is_blamed(page->report, member->rank) ? "class=\"blamed\"" : NULL);
    table_cells(table, "dssbsIs", member->rank, dump ? dump->host : NULL, did, turn ? (double)turn->bytes : 0,
                !turn                   ? NULL
                : turn->done && !inside ? "over"
                                        : "in it",
                last ? last->seq : -1, turn ? turn_entry(job, member, turn)->caller : NULL);
}

void blame_page_group(const BlamePage *page, FILE *out) {
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
        "#rank|host|at that number|#size|state|#last number|called by", out);
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
    double longest_s = -1;
    for (int i = 0; i < count; i++) {
        const double waited_s = page->report->verdict->stands[ranks[i]].waited_s;
        longest_s = waited_s > longest_s ? waited_s : longest_s;
    }
    table_row(table, blame_is_blamed(page->report, ranks[0]) ? "class=\"blamed\"" : NULL);
    table_cells(table, "s", blame_ranks(page->report->job, ranks, count, page->arena));
    table_cell(table, "%s%s%s", blame_state(page->report, ranks[0]), at ? " " : "",
               at ? dump_op_rows[place->op].words : "");
    table_cells(table, "bsItss", at ? (double)place->bytes : 0,
                at ? blame_group(&page->report->job->groups[place->group], page->arena) : NULL, at ? place->seq : -1,
                longest_s, place->layer, place->caller);
}

void blame_page_stands(const BlamePage *page, FILE *out) {
    const int world = page->report->job->world;
    bool *told = ARENA_ARRAY(page->arena, bool, world);
    int *together = ARENA_ARRAY(page->arena, int, world);
    int rows = 0, left = 0;
    MarkupTable table = table_begin("table-stands", "Ranks in the same place are one row; the blamed first",
                                    "ranks|stand|#size|group|#number|#wait|where in the step|called by", out);
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

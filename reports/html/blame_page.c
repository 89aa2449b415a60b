// The page of ndtune blame: template/blame.html with its placeholders filled. It has no script, so its content security
// policy names only the hash of the style; tooltips are the drawing's own titles.

#include "reports/html/blame_page.h"

#include "reports/html/html_assets.h"
#include "reports/html/markup.h"
#include "sim/base/text.h"

typedef struct Place {
    const char *name;  // {{name}} in the template
    void (*write)(const BlamePage *page, FILE *out);
    const char *text;  // where nothing writes
} Place;

static void write_title(const BlamePage *page, FILE *out) {
    markup_text(blame_heading(page->report, page->arena), out);
}

// ---------------------------------------------------------------------------------------------- the answer

static void write_collective_card(const BlamePage *page, FILE *out) {
    const VerdictPlace *due = &page->report->verdict->due;
    if (due->group < 0) {
        return;
    }
    const char *bytes =
        due->bytes > 0 ? arena_format(page->arena, " of %s", text_bytes(UNIT_BUFFER, (double)due->bytes)) : "";
    markup_card("the group is in", arena_format(page->arena, "%s%s", dump_op_rows[due->op].words, bytes),
                arena_format(page->arena, "number %lld of %s", (long long)due->seq,
                             blame_group(&page->report->job->groups[due->group], page->arena)),
                out);
}

static void write_waiting_card(const BlamePage *page, FILE *out) {
    const Verdict *verdict = page->report->verdict;
    if (verdict->waiting_count + verdict->held_count == 0) {
        return;
    }
    const char *since = verdict->longest_wait_s > 0 ? arena_format(page->arena, "the longest for %s",
                                                                   text_seconds(UNIT_BUFFER, verdict->longest_wait_s))
                                                    : "";
    const char *held = verdict->held_count > 0 ? arena_format(page->arena, "%s%d more held up by them",
                                                              since[0] ? ", " : "", verdict->held_count)
                                               : "";
    markup_card("wait there",
                verdict->waiting_count == 0
                    ? "nobody"
                    : blame_ranks(page->report->job, verdict->waiting, verdict->waiting_count, page->arena),
                arena_format(page->arena, "%s%s", since, held), out);
}

static void write_answer(const BlamePage *page, FILE *out) {
    const BlameReport *report = page->report;
    const Verdict *verdict = report->verdict;
    const VerdictPlace *layer = verdict->due.layer ? &verdict->due : &verdict->did;
    fputs("<p class=\"sentence\" id=\"sentence\">", out);
    markup_text(blame_sentence(report, page->arena), out);
    fputs("</p>\n<dl class=\"cards\">\n", out);
    if (verdict->rank_count > 0) {
        markup_card("blamed", blame_ranks(report->job, verdict->ranks, verdict->rank_count, page->arena),
                    verdict->guilty_unknown ? "which of them is wrong the dumps do not tell"
                                            : verdict_kinds[verdict->kind].words,
                    out);
    }
    write_collective_card(page, out);
    if (layer->layer) {
        markup_card("where in the step", layer->layer, report->program, out);
    }
    write_waiting_card(page, out);
    markup_card("dumps", arena_format(page->arena, "%d of %d", report->job->dump_count, report->job->world),
                arena_format(page->arena, "ranks, %d process groups", report->job->process_groups), out);
    fputs("</dl>\n", out);
}

// ---------------------------------------------------------------------------------------------- what is not known

static void write_list(const char *const *sentences, int count, FILE *out) {
    fputs("<ul>\n", out);
    for (int i = 0; i < count; i++) {
        markup_element(out, "li", "%s", sentences[i]);
    }
    fputs("</ul>\n", out);
}

static void write_unknown(const BlamePage *page, FILE *out) {
    const BlameReport *report = page->report;
    if (report->verdict->unknown_count == 0) {
        fputs("<p>Nothing that the answer needed is missing.</p>\n", out);
    } else {
        write_list(report->verdict->unknown, report->verdict->unknown_count, out);
    }
    if (report->job->note_count > 0) {
        fputs("<p>Left out:</p>\n", out);
        write_list(report->job->notes, report->job->note_count, out);
    }
}

// ---------------------------------------------------------------------------------------------- how it was made

static void write_dumps(const BlamePage *page, FILE *out) {
    enum { MOST_ROWS = 512 };
    const Job *job = page->report->job;
    MarkupTable table = table_begin("table-dumps", "The dumps", "#rank|host|file|format|#entries|the first are", out);
    int rows = 0;
    for (int rank = 0; rank < job->world && rows < MOST_ROWS; rank++) {
        const Dump *dump = job->ranks[rank].dump;
        if (dump) {
            table_row(&table, NULL);
            table_cells(&table, "dsssds", rank, dump->host, dump->path, dump->version, dump->entry_count,
                        dump->wrapped ? "lost: the recorder’s ring was full" : "there");
            rows++;
        }
    }
    table_end(&table);
    if (job->dump_count > rows) {
        fprintf(out, "<p>%d more were read.</p>\n", job->dump_count - rows);
    }
}

static void write_provenance(const BlamePage *page, FILE *out) {
    const BlameReport *report = page->report;
    fputs("<dl class=\"facts\">\n<dt>command</dt><dd><code>", out);
    markup_text(page->again, out);
    fputs("</code></dd>\n<dt>folder</dt><dd>", out);
    markup_text(report->job->folder, out);
    fputs("</dd>\n<dt>held against</dt><dd>", out);
    if (report->program) {
        markup_format(out, "the step of %s: %d of %d collectives are as it says", report->program, report->matched,
                      report->compared);
    } else {
        fputs("nothing: <code>--mesh</code>, <code>--model</code> and <code>--target</code> of the job name its layers "
              "and tasks",
              out);
    }
    fputs("</dd>\n</dl>\n", out);
    write_dumps(page, out);
}

static const Place places[] = {
    {"title", .write = write_title},
    {"style", .text = asset_style},
    {"style-hash", .text = asset_style_sha256},
    {"answer", .write = write_answer},
    {"group", .write = blame_page_group},
    {"lanes", .write = blame_page_lanes},
    {"stands", .write = blame_page_stands},
    {"unknown", .write = write_unknown},
    {"provenance", .write = write_provenance},
};

static Status write_place(const void *what, const char *name, FILE *out, Error *error) {
    const Place *place = TEXT_FIND(places, sizeof places / sizeof places[0], name, name);
    FAIL_WITH(!place, markup_no_place(name, error));
    place->write ? place->write(what, out) : (void)fputs(place->text, out);
    return STATUS_OK;
}

Status html_blame(const void *what, FILE *out, Error *error) {
    const BlamePage *page = what;
    return markup_page(asset_page, write_place, page, out, error);
}

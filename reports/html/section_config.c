// The config to copy: every format of the request's target, written or refused with a reason; where the best plan
// cannot be written, the best one that can. Then, collapsed, the best plan as files of other frameworks.

#include <stdlib.h>

#include "reports/export/export.h"
#include "reports/format.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "sim/base/text.h"

typedef struct Written {
    const ExportFormat *format;
    int place;           // of the entry, from 0
    char *text;          // malloc; NULL = refused
    const char *reason;  // why the best plan was refused; arena
} Written;

// The first entry that the format can express.
static void write_format(const HtmlReport *report, Written *written) {
    const TuneResult *result = report->result;
    for (written->place = 0; written->place < result->entry_count; written->place++) {
        Error why = {0};
        const ExportJob job = {.request = result->request,
                               .prediction = &result->entries[written->place],
                               .command = result->request->command,
                               .arena = report->arena};
        if (export_text(written->format, &job, &written->text, &why) == STATUS_OK) {
            return;
        }
        if (written->place == 0) {
            written->reason = arena_text(report->arena, why.message);
        }
    }
}

// of: the report that the entry belongs to, for the lines that matter; NULL = the whole file.
static void show_file(const HtmlReport *of, const Written *written, bool open, const char *note, FILE *out) {
    const char *name = written->format->name;
    fprintf(out, "<details class=\"file\" id=\"config-%s\" data-format=\"%s\"%s>\n<summary><strong>%s</strong> <span>",
            name, name, open ? " open" : "", name);
    markup_format(out, "%s, for %s", written->format->file_name, written->format->versions);
    fputs("</span></summary>\n", out);
    if (note) {
        markup_element(out, "p class=\"note\"", "%s", note);
    }
    fprintf(out, "<button type=\"button\" class=\"copy\" data-copy=\"file-%s\" hidden>Copy</button>\n", name);
    const bool folds = of && config_lines(of, written->format, written->place, written->text, out);
    fputs(folds ? "<details><summary>The whole file</summary>\n" : "", out);
    fprintf(out, "<pre tabindex=\"0\" id=\"file-%s\"><code>", name);
    markup_text(written->text, out);
    fputs("</code></pre>\n</details>\n", out);
    fputs(folds ? "</details>\n" : "", out);
}

// Where another entry replaces the best; NULL where none does.
static const char *substitute(const HtmlReport *report, const Written *written) {
    const Prediction *entry = &report->result->entries[written->place];
    if (written->place == 0) {
        return NULL;
    }
    return arena_format(report->arena,
                        "The best plan cannot be written: %s. This is place %d, %s, with %.1f %% of its tokens per "
                        "second.",
                        written->reason, written->place + 1, format_layout(&entry->plan.mesh, FORMAT_BUFFER),
                        100 * entry->tokens_per_s / report->result->entries[0].tokens_per_s);
}

static void say_refused(const char *format, const char *reason, FILE *out) {
    fputs("<p class=\"note\">Not written: ", out);
    markup_format(out, "%s: %s.", format, reason);
    fputs("</p>\n", out);
}

static const HtmlOther *other_of(const HtmlReport *report, const ExportFormat *format) {
    return format->target ? TEXT_FIND(report->others, report->other_count, name, format->target) : NULL;
}

static void write_other(const HtmlReport *report, const HtmlOther *other, Written *written, FILE *out) {
    const ExportJob job = {.request = other->request,
                           .prediction = &other->prediction,
                           .command = report->result->request->command,
                           .arena = report->arena};
    Error why = {0};
    if (other->reason || export_text(written->format, &job, &written->text, &why) != STATUS_OK) {
        say_refused(written->format->name, other->reason ? other->reason : why.message, out);
        return;
    }
    show_file(
        NULL, written, false,
        arena_format(report->arena, "Predicted step there%s: %s.",
                     other->prediction.plan.reshard != report_best(report)->plan.reshard ? ", with reshard always" : "",
                     format_interval(&other->prediction, FORMAT_BUFFER)),
        out);
    free(written->text);
}

static void write_others(const HtmlReport *report, FILE *out) {
    const TuneRequest *request = report->result->request;
    const ExportFormat *format;
    if (report->other_count > 0) {
        fputs("<details id=\"other-frameworks\"><summary>The same plan for other frameworks</summary>\n", out);
        for (int i = 0; (format = export_format_at(i)); i++) {
            Written written = {.format = format};
            const HtmlOther *other = other_of(report, format);
            if (other) {
                write_other(report, other, &written, out);
            }
        }
        fputs("</details>\n", out);
    }
    fputs("<p>Another framework runs other programs, so its best plan may be another one: <code>ndtune --world ", out);
    markup_format(out, "%d --model %s --target …", request->world, request->model_asked);
    fputs("</code>, then <code>ndtune export</code>.</p>\n", out);
}

void section_config(const HtmlReport *report, FILE *out) {
    const TuneRequest *request = report->result->request;
    if (!report_best(report)) {
        fputs("<p>There is no plan to write.</p>\n", out);
        return;
    }
    const ExportFormat *format;
    int shown = 0;
    for (int i = 0; (format = export_format_at(i)); i++) {
        Written written = {.format = format};
        if (!export_is_of(written.format, request->target)) {
            continue;
        }
        write_format(report, &written);
        if (written.text) {
            show_file(report, &written, shown++ == 0, substitute(report, &written), out);
        } else {
            say_refused(format->name, written.reason, out);
        }
        free(written.text);
    }
    if (shown == 0) {
        markup_format(out, "No config file of %s@%s can be written.", request->target->name, request->target->version);
    }
    write_others(report, out);
}

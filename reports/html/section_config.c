// The config to copy: every format of the request's target, written or refused in words. Where the best plan cannot be
// written as a file of the usual format, the best one that can is.

#include <stdlib.h>
#include <string.h>

#include "reports/export/export.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/words.h"

typedef struct Written {
    const ExportFormat *format;
    int place;           // of the entry, from 0
    char *text;          // malloc; NULL = refused
    const char *reason;  // of the best plan, where that is refused; arena
} Written;

static char *write_to_text(const ExportFormat *format, const ExportJob *job, Error *error) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (!file) {
        error_set(error, STATUS_ENVIRONMENT, "no memory for the file");
        return NULL;
    }
    const Status status = export_write(format, job, file, error);
    fclose(file);
    if (status != STATUS_OK) {
        free(text);
        return NULL;
    }
    return text;
}

// The first entry that the format can hold.
static void write_format(const HtmlReport *report, Written *written) {
    const TuneResult *result = report->result;
    for (written->place = 0; written->place < result->entry_count; written->place++) {
        Error why = {0};
        const ExportJob job = {.request = result->request,
                               .prediction = &result->entries[written->place],
                               .command = result->request->command,
                               .arena = report->arena};
        written->text = write_to_text(written->format, &job, &why);
        if (written->text) {
            return;
        }
        if (written->place == 0) {
            written->reason = arena_text(report->arena, why.message);
        }
    }
}

static void show_file(const HtmlReport *report, const Written *written, bool open, FILE *out) {
    const char *name = written->format->name;
    char mesh[WORDS_BYTES];
    fprintf(out, "<details class=\"file\" id=\"config-%s\" data-format=\"%s\"%s>\n<summary><strong>%s</strong> <span>",
            name, name, open ? " open" : "", name);
    markup_format(out, "%s, for %s", written->format->file_name, written->format->versions);
    fputs("</span></summary>\n", out);
    if (written->place > 0) {
        const Prediction *entry = &report->result->entries[written->place];
        fputs("<p class=\"note\">The best plan cannot be written: ", out);
        markup_text(written->reason, out);
        markup_format(out, ". This is place %d, %s, with %.1f %% of its tokens per second.", written->place + 1,
                      words_layout(&entry->plan.mesh, mesh),
                      100 * entry->tokens_per_s / report->result->entries[0].tokens_per_s);
        fputs("</p>\n", out);
    }
    fprintf(out,
            "<button type=\"button\" class=\"copy\" data-copy=\"file-%s\" hidden>Copy</button>\n"
            "<pre tabindex=\"0\" id=\"file-%s\"><code>",
            name, name);
    markup_text(written->text, out);
    fputs("</code></pre>\n</details>\n", out);
}

static bool of_target(const ExportFormat *format, const Target *target) {
    const size_t length = strlen(target->name);
    return !format->target || (strncmp(format->target, target->name, length) == 0 &&
                               (format->target[length] == '\0' || format->target[length] == '@'));
}

void section_config(const HtmlReport *report, FILE *out) {
    const TuneRequest *request = report->result->request;
    if (!report_best(report)) {
        fputs("<p>There is no plan to write.</p>\n", out);
        return;
    }
    int count = 0, shown = 0;
    const ExportFormat *formats = export_formats(&count);
    const char *refused = "";
    for (int i = 0; i < count; i++) {
        Written written = {.format = &formats[i]};
        if (!of_target(written.format, request->target)) {
            continue;
        }
        write_format(report, &written);
        if (written.text) {
            show_file(report, &written, shown++ == 0, out);
        } else {
            refused = arena_format(report->arena, "%s%s: %s\n", refused, formats[i].name, written.reason);
        }
        free(written.text);
    }
    if (shown == 0) {
        markup_format(out, "No config file of %s@%s can be written.", request->target->name, request->target->version);
    }
    for (const char *line = refused; *line; line += strcspn(line, "\n") + 1) {
        fputs("<p class=\"note\">Not written: ", out);
        markup_format(out, "%.*s.", (int)strcspn(line, "\n"), line);
        fputs("</p>\n", out);
    }
    fputs("<p>Another framework runs other programs and is a question of its own: <code>ndtune --world ", out);
    markup_format(out, "%d --model %s --target …", request->world, request->model_asked);
    fputs("</code>, then <code>ndtune export</code>.</p>\n", out);
}

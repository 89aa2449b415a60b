// The lines of a config file that matter: those absent from the file of some other plan of the ranking, or where there
// is no other, from that of plain FSDP. So no format needs a list of its keys.

#include <stdlib.h>
#include <string.h>

#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "sim/frameworks/target_choices.h"

enum { MOST_OTHERS = 24 };  // files of other plans

typedef struct Line {
    const char *text;
    int length, indent;  // without the line end
} Line;

static int next_line(const char **at, Line *line) {
    if (!**at) {
        return 0;
    }
    *line = (Line){*at, (int)strcspn(*at, "\n"), (int)strspn(*at, " ")};
    *at += line->length + ((*at)[line->length] == '\n');
    return 1;
}

static bool has_line(const char *text, const Line *wanted) {
    Line line;
    while (next_line(&text, &line)) {
        if (line.length == wanted->length && memcmp(line.text, wanted->text, (size_t)line.length) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_blank(const Line *line) {
    return line->indent == line->length || strncmp(line->text, "# ", 2) == 0;
}

typedef struct Others {
    char *texts[MOST_OTHERS];
    int count;
    const char *what;
} Others;

// The same batch and kernels with every rank on dp_shard; whether that divides the batch does not matter here.
static Prediction plain_fsdp(const HtmlReport *report) {
    Prediction plain = *report_best(report);
    TrainPlan *plan = &plain.plan;
    const int64_t batch = plan_global_batch(plan);
    const int world = mesh_world(&plan->mesh);
    plan->mesh = mesh_of_one();
    plan->mesh.size[AXIS_DP_SHARD] = world;
    plan->micro_batch = 1;
    plan->grad_accum = batch > world ? (int)(batch / world) : 1;
    plan->recompute = RECOMPUTE_NONE;
    target_canonical(report->result->request->target, plan);
    return plain;
}

static void write_other(const HtmlReport *report, const ExportFormat *format, const Prediction *other, Others *others) {
    Error why = {0};
    const ExportJob job = {.request = report->result->request,
                           .prediction = other,
                           .command = report->result->request->command,
                           .arena = report->arena};
    others->count += export_text(format, &job, &others->texts[others->count], &why) == STATUS_OK;
}

static Others write_others(const HtmlReport *report, const ExportFormat *format, int place) {
    const TuneResult *result = report->result;
    Others others = {.what = "the others of the ranking"};
    for (int i = 0; i < result->entry_count && others.count < MOST_OTHERS; i++) {
        if (i != place) {
            write_other(report, format, &result->entries[i], &others);
        }
    }
    if (others.count == 0) {
        const Prediction plain = plain_fsdp(report);
        write_other(report, format, &plain, &others);
        others.what = "plain FSDP";
    }
    return others;
}

static bool differs(const Others *others, const Line *line) {
    for (int i = 0; i < others->count && !is_blank(line); i++) {
        if (!has_line(others->texts[i], line)) {
            return true;
        }
    }
    return false;
}

// A line that matters is shown under the line that opens its section of the file.
static int choose_lines(const char *text, const Others *others, Line *lines, bool *chosen, int most) {
    int count = 0;
    while (count < most && next_line(&text, &lines[count])) {
        chosen[count] = differs(others, &lines[count]);
        for (int i = count - 1, indent = lines[count].indent; chosen[count] && indent > 0 && i >= 0; i--) {
            if (!is_blank(&lines[i]) && lines[i].indent < indent) {
                chosen[i] = true;
                indent = lines[i].indent;
            }
        }
        count++;
    }
    return count;
}

static bool print_lines(const char *text, const Others *others, FILE *out) {
    enum { MOST_LINES = 400 };
    Line lines[MOST_LINES];
    bool chosen[MOST_LINES], any = false;
    const int count = choose_lines(text, others, lines, chosen, MOST_LINES);
    int last = -1;
    for (int i = 0; i < count; i++) {
        if (!chosen[i]) {
            continue;
        }
        if (!any) {
            fprintf(out, "<p>What tells this plan from %s:</p>\n<pre class=\"lines\"><code>", others->what);
        }
        fputs(any && i > last + 1 ? "…\n" : "", out);
        markup_format(out, "%.*s\n", lines[i].length, lines[i].text);
        any = true;
        last = i;
    }
    fputs(any ? "</code></pre>\n" : "", out);
    return any;
}

static void print_notes(const HtmlReport *report, const ExportFormat *format, int place, FILE *out) {
    const ExportJob job = {.request = report->result->request,
                           .prediction = &report->result->entries[place],
                           .command = report->result->request->command,
                           .arena = report->arena};
    char *notes = NULL;
    Error why = {0};
    if (export_notes(format, &job, &notes, &why) == STATUS_OK && notes[0]) {
        markup_element(out, "p class=\"note\"", "%s", notes);
    }
    free(notes);
}

bool config_lines(const HtmlReport *report, const ExportFormat *format, int place, const char *text, FILE *out) {
    Others others = write_others(report, format, place);
    const bool any = print_lines(text, &others, out);
    for (int i = 0; i < others.count; i++) {
        free(others.texts[i]);
    }
    if (any) {
        print_notes(report, format, place, out);
    }
    return any;
}

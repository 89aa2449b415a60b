// What ndtune check prints for people, and as annotations for GitHub.

#include <math.h>

#include "reports/check_report.h"
#include "reports/colour.h"
#include "reports/words.h"
#include "reports/wrap.h"
#include "sim/base/escape.h"
#include "sim/base/text.h"

static void print_case(const TuneRequest *request, FILE *out) {
    fprintf(out, "%s on %d x %s (%s), for %s %s\n", request->model.name, request->world,
            request->cluster.accelerator.name, request->cluster.name, request->target->name, request->target->version);
}

static void print_line(FILE *out, bool good, const char *what, const char *detail) {
    fprintf(out, "%s%-4s%s %-8s %s\n", colour(out, good ? COLOUR_GOOD : COLOUR_BAD), good ? "ok" : "no",
            colour(out, COLOUR_END), what, detail);
}

// ---- one file

static void print_questions(const CheckReport *report, FILE *out) {
    const Prediction *own = &report->question->advice->own;
    char text[WORDS_BYTES], step[WORDS_BYTES], memory[TEXT_UNIT_BYTES], limit[TEXT_UNIT_BYTES];
    print_line(out, report->runs, "runs", report->runs ? "" : report->verdict);
    if (!report->runs) {
        return;
    }
    snprintf(text, sizeof text, "%s of %s per accelerator", text_bytes(memory, own->memory.reserved_bytes),
             text_bytes(limit, report->question->request->memory_limit_bytes));
    print_line(out, report->fits, "fits", text);
    if (report->fits) {
        snprintf(text, sizeof text, "step %s, %.1f %% slower than the best with the same batch (tolerance %.3g %%)",
                 words_interval(own, step), 100 * report->slower, 100 * report->question->tolerance);
        print_line(out, report->near_best, "is fast", text);
    }
}

static void print_notes(const CheckReport *report, FILE *out) {
    for (int i = 0; i < report->note_count; i++) {
        const CheckNote *note = &report->notes[i];
        char place[WORDS_BYTES] = "";
        if (note->sentence == report->verdict) {
            continue;  // stands above
        }
        if (note->first > 0 && note->last > note->first) {
            snprintf(place, sizeof place, "lines %d to %d, ", note->first, note->last);
        } else if (note->first > 0) {
            snprintf(place, sizeof place, "line %d, ", note->first);
        }
        wrap_line(out, 2, "%s: %s%s%s%s", check_level_names[note->level], place, note->key ? note->key : "",
                  note->key ? ": " : "", note->sentence);
    }
}

Status table_check(const CheckReport *report, FILE *out, Error *error) {
    const Import *import = report->question->import;
    fprintf(out, "%s: %s\n", import->path, import->flavour);
    print_case(report->question->request, out);
    fputc('\n', out);
    print_questions(report, out);
    if (report->note_count > 0) {
        fputc('\n', out);
        print_notes(report, out);
    }
    if (report->question->no_best) {
        wrap_line(out, 2, "There is no best plan: %s", report->question->no_best);
    }
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}

// ---- two files

static void print_side(const char *name, const CheckSide *side, FILE *out) {
    char mesh[MESH_TEXT_BYTES], step[WORDS_BYTES], rate[TEXT_UNIT_BYTES], memory[TEXT_UNIT_BYTES];
    fprintf(out, "%-7s%s: ", name, side->import->path);
    if (side->own.tokens_per_s > 0) {
        fprintf(out, "%s, micro-batch %d x accumulation %d\n       step %s, %s tokens/s, %s per accelerator\n",
                mesh_short_text(&side->own.plan.mesh, mesh), side->own.plan.micro_batch, side->own.plan.grad_accum,
                words_interval(&side->own, step), text_count(rate, side->own.tokens_per_s),
                text_bytes(memory, side->own.memory.reserved_bytes));
    }
    if (side->reason) {
        fprintf(out, "%s%s%s%s\n", side->own.tokens_per_s > 0 ? "       " : "", colour(out, COLOUR_BAD), side->reason,
                colour(out, COLOUR_END));
    }
}

static Status print_changes(const CheckPair *pair, FILE *out, Error *error) {
    Arena arena = {0};
    const CheckLine *lines = check_pair_lines(pair, &arena);
    const Status status = record_table(&schema_check_lines, lines, pair->change_count, out, error);
    arena_free(&arena);
    for (int i = 0; i < pair->change_count; i++) {
        if (pair->changes[i].priced && !pair->changes[i].alone) {
            fputs("* together: no plan follows from one of them\n", out);
            break;
        }
    }
    return status;
}

Status table_check_pair(const CheckPair *pair, FILE *out, Error *error) {
    print_case(pair->after.request, out);
    fputc('\n', out);
    print_side("before", &pair->before, out);
    print_side("after", &pair->after, out);
    fprintf(out, "\n%s%s%s\n", colour(out, pair->passed ? COLOUR_GOOD : COLOUR_BAD), pair->verdict,
            colour(out, COLOUR_END));
    if (pair->change_count > 0) {
        fputs("\nEach line that differs, alone\n", out);
        TRY(print_changes(pair, out, error));
    }
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}

// ---- annotations: docs.github.com, "Workflow commands for GitHub Actions"; how values are escaped is in
// actions/toolkit, packages/core/src/command.ts

static void command_value(const char *text, bool is_property, FILE *out) {
    for (const char *at = text; *at; at++) {
        const bool escaped = *at == '%' || *at == '\r' || *at == '\n' || (is_property && (*at == ':' || *at == ','));
        fprintf(out, escaped ? "%%%02X" : "%c", (unsigned char)*at);
    }
}

static void annotate(const char *path, const CheckNote *note, FILE *out) {
    fprintf(out, "::%s file=", check_level_names[note->level]);
    command_value(path, true, out);
    if (note->first > 0) {
        fprintf(out, ",line=%d,endLine=%d", note->first, note->last);
    }
    fputs(",title=ndtune::", out);
    if (note->key) {
        command_value(note->key, false, out);
        fputs(": ", out);
    }
    command_value(note->sentence, false, out);
    fputc('\n', out);
}

Status github_check(const CheckReport *report, FILE *out, Error *error) {
    for (int i = 0; i < report->note_count; i++) {
        annotate(report->question->import->path, &report->notes[i], out);
    }
    if (report->near_best) {
        fprintf(out, "%s %s\n", report->question->import->path, report->verdict);
    }
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}

Status github_check_pair(const CheckPair *pair, FILE *out, Error *error) {
    const char *path = pair->after.import->path;
    const CheckNote whole = {.level = pair->passed ? CHECK_NOTICE : CHECK_ERROR, .sentence = pair->verdict};
    annotate(path, &whole, out);
    for (int i = 0; i < pair->change_count; i++) {
        const CheckChange *change = &pair->changes[i];
        char sentence[WORDS_BYTES], memory[TEXT_UNIT_BYTES];
        if (change->priced && change->change.after && (change->slower != 0 || change->more_bytes != 0)) {
            snprintf(sentence, sizeof sentence, "%s %+.1f %% tokens per second, %s%s memory per accelerator",
                     change->alone ? "alone" : "with the other sizes", 100 * -change->slower,
                     change->more_bytes < 0 ? "-" : "+", text_bytes(memory, fabs(change->more_bytes)));
            annotate(path,
                     &(CheckNote){change->slower > pair->tolerance ? CHECK_WARNING : CHECK_NOTICE, change->change.path,
                                  change->change.after->line, change->change.after->line, sentence},
                     out);
        }
    }
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}

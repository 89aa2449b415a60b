// Results of ndtune check, for people, programs and GitHub annotations.

#include "reports/check_report.h"

#include <math.h>

#include "reports/colour.h"
#include "reports/format.h"
#include "reports/json_objects.h"
#include "reports/wrap.h"
#include "sim/base/text.h"

MADE(level, CheckNote, record_of_text(check_level_names[of->level]))
MADE_IN(file, CheckNote, char, record_of_text(in))

static const RecordField notes[] = {
    {.key = "file", BY(file), .no_json = true},  {FIELD("line", PLACE, CheckNote, first)},
    {FIELD("end_line", PLACE, CheckNote, last)}, {.key = "level", BY(level)},
    {FIELD("key", TEXT, CheckNote, key)},        {FIELD("sentence", TEXT, CheckNote, sentence)},
};
static SCHEMA(notes, CheckNote);

static json_t *own_object(const TuneRequest *request, const Import *import, const Prediction *own, bool legal,
                          const char *reason) {
    return import->refusal ? json_null() : json_prediction_object(request, own, legal, reason);
}

static Status json_check(const void *answer, FILE *out, Error *error) {
    const CheckReport *report = answer;
    const CheckQuestion *question = report->question;
    const AdviceReport *advice = question->advice;
    return json_print(
        json_pack("{s:s, s:s, s:s, s:o, s:b, s:b, s:b, s:b, s:o, s:f, s:s, s:o, s:o, s:s?, s:o}", "schema",
                  "ndtune.check/1", "file", question->import->path, "format", question->import->format->name, "request",
                  json_request(question->request), "passed", report->near_best, "runs", report->runs, "fits",
                  report->fits, "near_best", report->near_best, "slower",
                  json_known(report->fits && advice->best, report->slower), "tolerance", question->tolerance, "verdict",
                  report->verdict, "own",
                  own_object(question->request, question->import, &advice->own, advice->legal, advice->reason), "best",
                  advice->best ? json_prediction_object(question->request, advice->best, true, NULL) : json_null(),
                  "no_best", advice->no_best, "notes", record_array(&schema_notes, report->notes, report->note_count)),
        out, error);
}

static Status csv_check(const void *answer, FILE *out, Error *error) {
    const CheckReport *report = answer;
    const RecordSchema of = record_about(&schema_notes, report->question->import->path);
    const CheckNote passed = {.level = CHECK_NOTICE, .sentence = report->verdict};
    Csv csv = {.out = out};
    record_csv_header(&of, &csv);
    record_csv_lines(&of, &passed, report->near_best, &csv);
    record_csv_lines(&of, report->notes, report->note_count, &csv);
    return csv_finish(&csv, error);
}

static json_t *side_object(const CheckSide *side) {
    return json_pack("{s:s, s:s, s:s?, s:o}", "file", side->import->path, "format", side->import->format->name,
                     "reason", side->reason, "own",
                     own_object(side->request, side->import, &side->own, side->legal, side->reason));
}

// Table columns give the reason as text where a change is not priced, or say that nothing changes.
static RecordValue rate_of(const CheckLine *line, char text[RECORD_BYTES]) {
    static const double SEEN_SHARE = 0.0005;  // smaller changes are printed as none
    const char *with = line->alone ? "" : " *";
    if (fabs(line->slower) < SEEN_SHARE) {
        snprintf(text, RECORD_BYTES, "as before%s", with);
    } else {
        snprintf(text, RECORD_BYTES, "%+.1f %%%s", 100 * -line->slower, with);
    }
    return record_of_text(text);
}

static RecordValue memory_of(const CheckLine *line, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "%s%s", line->more_bytes < 0 ? "-" : "+",
             text_bytes(UNIT_BUFFER, fabs(line->more_bytes)));
    return record_of_text(text);
}

KNOWN(priced, CheckLine, of->priced)
MADE(at_line, CheckLine, record_of_whole(of->line > 0 ? of->line : of->line_before))
MADE(before, CheckLine, record_of_text(of->before ? of->before : "absent"))
MADE(after, CheckLine, record_of_text(of->after ? of->after : "absent"))
MADE(rate, CheckLine, rate_of(of, text))
MADE(memory, CheckLine, memory_of(of, text))

static const RecordField check_lines[] = {
    {FIELD("key", TEXT, CheckLine, key), COLUMN(2, "key")},
    {FIELD("line_before", PLACE, CheckLine, line_before)},
    {FIELD("line", PLACE, CheckLine, line)},
    {FIELD("before", TEXT, CheckLine, before)},
    {FIELD("after", TEXT, CheckLine, after)},
    {FIELD("alone", FLAG, CheckLine, alone), .no_csv = true},
    {FIELD("slower", REAL, CheckLine, slower), .known = priced},
    {FIELD("more_bytes", REAL, CheckLine, more_bytes), .known = priced},
    {BY(at_line), COLUMN(1, "line"), .right = true},
    {BY(before), COLUMN(3, "before")},
    {BY(after), COLUMN(4, "after")},
    {BY(rate), COLUMN(5, "tokens/s"), .known = priced, .missing = "not priced", .right = true},
    {BY(memory), COLUMN(6, "memory"), .known = priced, .missing = "", .right = true},
};
SCHEMA(check_lines, CheckLine);

static CheckLine *check_pair_lines(const CheckPair *pair, Arena *arena) {
    CheckLine *lines = ARENA_ARRAY(arena, CheckLine, pair->change_count + 1);
    for (int i = 0; i < pair->change_count; i++) {
        const CheckChange *change = &pair->changes[i];
        const ConfigNode *before = change->change.before, *after = change->change.after;
        lines[i] = (CheckLine){.key = change->change.path,
                               .line_before = before ? before->line : 0,
                               .line = after ? after->line : 0,
                               .before = before ? config_text(before, arena) : NULL,
                               .after = after ? config_text(after, arena) : NULL,
                               .alone = change->alone,
                               .priced = change->priced,
                               .slower = change->slower,
                               .more_bytes = change->more_bytes};
    }
    return lines;
}

static Status json_check_pair(const void *answer, FILE *out, Error *error) {
    const CheckPair *pair = answer;
    Arena arena = {0};
    const Status status = json_print(
        json_pack("{s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:f, s:s, s:o}", "schema", "ndtune.check-pair/1", "request",
                  json_request(pair->after.request), "before", side_object(&pair->before), "after",
                  side_object(&pair->after), "passed", pair->passed, "slower", json_known(pair->timed, pair->slower),
                  "more_bytes", json_known(pair->timed, pair->more_bytes), "tolerance", pair->tolerance, "verdict",
                  pair->verdict, "changes",
                  record_array(&schema_check_lines, check_pair_lines(pair, &arena), pair->change_count)),
        out, error);
    arena_free(&arena);
    return status;
}

// The files as wholes, then line by line.
static Status csv_check_pair(const void *answer, FILE *out, Error *error) {
    const CheckPair *pair = answer;
    Arena arena = {0};
    Csv csv = {.out = out};
    const CheckLine whole = {.before = pair->before.import->path,
                             .after = pair->after.import->path,
                             .priced = pair->timed,
                             .slower = pair->slower,
                             .more_bytes = pair->more_bytes};
    record_csv_header(&schema_check_lines, &csv);
    record_csv_lines(&schema_check_lines, &whole, 1, &csv);
    record_csv_lines(&schema_check_lines, check_pair_lines(pair, &arena), pair->change_count, &csv);
    arena_free(&arena);
    return csv_finish(&csv, error);
}

static void print_line(FILE *out, bool good, const char *what, const char *detail) {
    fprintf(out, "%s%-4s%s %-*s%s%s\n", colour(out, good ? COLOUR_GOOD : COLOUR_BAD), good ? "ok" : "no",
            colour(out, COLOUR_END), detail[0] ? 8 : 0, what, detail[0] ? " " : "", detail);
}

// ---- one file

static void print_questions(const CheckReport *report, FILE *out) {
    const Prediction *own = &report->question->advice->own;
    char text[FORMAT_BYTES];
    print_line(out, report->runs, "runs", report->runs ? "" : report->verdict);
    if (!report->runs) {
        return;
    }
    snprintf(text, sizeof text, "%s of %s per accelerator", text_bytes(UNIT_BUFFER, own->memory.reserved_bytes),
             text_bytes(UNIT_BUFFER, report->question->request->memory_limit_bytes));
    print_line(out, report->fits, "fits", text);
    if (report->fits) {
        snprintf(text, sizeof text, "step %s", format_interval(own, FORMAT_BUFFER));
        if (report->question->advice->best) {
            const size_t length = strlen(text);
            snprintf(text + length, sizeof text - length,
                     ", %.1f %% slower than the best with the same batch (tolerance %.3g %%)", 100 * report->slower,
                     100 * report->question->tolerance);
        }
        print_line(out, report->near_best, "is fast", text);
    }
}

static void print_notes(const CheckReport *report, FILE *out) {
    for (int i = 0; i < report->note_count; i++) {
        const CheckNote *note = &report->notes[i];
        char place[FORMAT_BYTES] = "";
        if (note->sentence == report->verdict) {
            continue;  // already shown above
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

static Status table_check(const void *answer, FILE *out, Error *error) {
    const CheckReport *report = answer;
    const Import *import = report->question->import;
    fprintf(out, "%s: %s\n", import->path, import->flavour);
    format_case(report->question->request, out);
    fputc('\n', out);
    fputc('\n', out);
    print_questions(report, out);
    if (report->note_count > 0) {
        fputc('\n', out);
        print_notes(report, out);
    }
    if (report->question->advice->no_best) {
        wrap_line(out, 2, "There is no best plan: %s", report->question->advice->no_best);
    }
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}

// ---- two files

static void print_side(const char *name, const CheckSide *side, FILE *out) {
    fprintf(out, "%-7s%s: ", name, side->import->path);
    if (side->own.tokens_per_s > 0) {
        fprintf(out, "%s, micro-batch %d x accumulation %d\n       step %s, %s tokens/s, %s per accelerator\n",
                mesh_short_text(&side->own.plan.mesh, MESH_BUFFER), side->own.plan.micro_batch,
                side->own.plan.grad_accum, format_interval(&side->own, FORMAT_BUFFER),
                text_count(UNIT_BUFFER, side->own.tokens_per_s),
                text_bytes(UNIT_BUFFER, side->own.memory.reserved_bytes));
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

static Status table_check_pair(const void *answer, FILE *out, Error *error) {
    const CheckPair *pair = answer;
    format_case(pair->after.request, out);
    fputc('\n', out);
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

static Status github_check(const void *answer, FILE *out, Error *error) {
    const CheckReport *report = answer;
    for (int i = 0; i < report->note_count; i++) {
        annotate(report->question->import->path, &report->notes[i], out);
    }
    if (report->near_best) {
        fprintf(out, "%s %s\n", report->question->import->path, report->verdict);
    }
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}

static Status github_check_pair(const void *answer, FILE *out, Error *error) {
    const CheckPair *pair = answer;
    const char *path = pair->after.import->path;
    const CheckNote whole = {.level = pair->passed ? CHECK_NOTICE : CHECK_ERROR, .sentence = pair->verdict};
    annotate(path, &whole, out);
    for (int i = 0; i < pair->change_count; i++) {
        const CheckChange *change = &pair->changes[i];
        char sentence[FORMAT_BYTES];
        if (change->priced && change->change.after && (change->slower != 0 || change->more_bytes != 0)) {
            snprintf(sentence, sizeof sentence, "%s %+.1f %% tokens per second, %s%s memory per accelerator",
                     change->alone ? "alone" : "with the other sizes", 100 * -change->slower,
                     change->more_bytes < 0 ? "-" : "+", text_bytes(UNIT_BUFFER, fabs(change->more_bytes)));
            annotate(path,
                     &(CheckNote){change->slower > pair->tolerance ? CHECK_WARNING : CHECK_NOTICE, change->change.path,
                                  change->change.after->line, change->change.after->line, sentence},
                     out);
        }
    }
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}

const Answer answer_check = {table_check, json_check, csv_check, github_check};

const Answer answer_check_pair = {table_check_pair, json_check_pair, csv_check_pair, github_check_pair};

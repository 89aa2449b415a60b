// The notes and changed lines of ndtune check, and its JSON and CSV.

#include "reports/check_report.h"
#include "reports/json_objects.h"
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

Status json_check(const CheckReport *report, FILE *out, Error *error) {
    const CheckQuestion *question = report->question;
    const AdviceReport *advice = question->advice;
    return json_print(
        json_pack(
            "{s:s, s:s, s:s, s:o, s:b, s:b, s:b, s:b, s:o, s:f, s:s, s:o, s:o, s:s?, s:o}", "schema", "ndtune.check/1",
            "file", question->import->path, "format", question->import->format->name, "request",
            json_request(question->request), "passed", report->near_best, "runs", report->runs, "fits", report->fits,
            "near_best", report->near_best, "slower", json_known(report->fits && advice->best, report->slower),
            "tolerance", question->tolerance, "verdict", report->verdict, "own",
            own_object(question->request, question->import, &advice->own, advice->legal, advice->reason), "best",
            advice->best ? json_prediction_object(question->request, advice->best, true, NULL) : json_null(), "no_best",
            question->no_best, "notes", record_array(&schema_notes, report->notes, report->note_count)),
        out, error);
}

Status csv_check(const CheckReport *report, FILE *out, Error *error) {
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

// Columns of the table say in words what is not priced, or no change.
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
    char memory[TEXT_UNIT_BYTES];
    snprintf(text, RECORD_BYTES, "%s%s", line->more_bytes < 0 ? "-" : "+", text_bytes(memory, fabs(line->more_bytes)));
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

CheckLine *check_pair_lines(const CheckPair *pair, Arena *arena) {
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

Status json_check_pair(const CheckPair *pair, FILE *out, Error *error) {
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
Status csv_check_pair(const CheckPair *pair, FILE *out, Error *error) {
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

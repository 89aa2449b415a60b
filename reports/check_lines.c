// JSON and CSV of ndtune check.

#include "reports/check_report.h"
#include "reports/csv_lines.h"
#include "reports/json_objects.h"

static json_t *note_object(const CheckNote *note) {
    const bool placed = note->first > 0;
    return json_pack("{s:s, s:s?, s:o, s:o, s:s}", "level", check_level_names[note->level], "key", note->key, "line",
                     placed ? json_integer(note->first) : json_null(), "end_line",
                     placed ? json_integer(note->last) : json_null(), "sentence", note->sentence);
}

static json_t *own_object(const TuneRequest *request, const Import *import, const Prediction *own, bool legal,
                          const char *reason) {
    return import->refusal ? json_null() : json_prediction_object(request, own, legal, reason);
}

Status json_check(const CheckReport *report, FILE *out, Error *error) {
    const CheckQuestion *question = report->question;
    const AdviceReport *advice = question->advice;
    json_t *notes = json_array();
    for (int i = 0; i < report->note_count; i++) {
        json_array_append_new(notes, note_object(&report->notes[i]));
    }
    return json_print(
        json_pack("{s:s, s:s, s:s, s:o, s:b, s:b, s:b, s:b, s:o, s:f, s:s, s:o, s:o, s:s?, s:o}", "schema",
                  "ndtune.check/1", "file", question->import->path, "format", question->import->format->name, "request",
                  json_request(question->request), "passed", report->near_best, "runs", report->runs, "fits",
                  report->fits, "near_best", report->near_best, "slower",
                  json_known(report->fits && advice->best, report->slower), "tolerance", question->tolerance, "verdict",
                  report->verdict, "own",
                  own_object(question->request, question->import, &advice->own, advice->legal, advice->reason), "best",
                  advice->best ? json_prediction_object(question->request, advice->best, true, NULL) : json_null(),
                  "no_best", question->no_best, "notes", notes),
        out, error);
}

static void note_line(Csv *csv, const char *path, const CheckNote *note) {
    csv_row(csv, "snnsss.", path, csv_known(note->first > 0, note->first), csv_known(note->first > 0, note->last),
            check_level_names[note->level], note->key, note->sentence);
}

Status csv_check(const CheckReport *report, FILE *out, Error *error) {
    const char *path = report->question->import->path;
    Csv csv = {.out = out};
    csv_header(&csv, "file,line,end_line,level,key,sentence");
    if (report->near_best) {
        note_line(&csv, path, &(CheckNote){.level = CHECK_NOTICE, .sentence = report->verdict});
    }
    for (int i = 0; i < report->note_count; i++) {
        note_line(&csv, path, &report->notes[i]);
    }
    return csv_finish(&csv, error);
}

static json_t *side_object(const CheckSide *side) {
    return json_pack("{s:s, s:s, s:s?, s:o}", "file", side->import->path, "format", side->import->format->name,
                     "reason", side->reason, "own",
                     own_object(side->request, side->import, &side->own, side->legal, side->reason));
}

static json_t *line_of(const ConfigNode *node) {
    return node ? json_integer(node->line) : json_null();
}

static json_t *change_object(const CheckChange *change, Arena *arena) {
    const ConfigChange *what = &change->change;
    return json_pack(
        "{s:s, s:o, s:o, s:s?, s:s?, s:b, s:o, s:o}", "key", what->path, "line_before", line_of(what->before), "line",
        line_of(what->after), "before", what->before ? config_text(what->before, arena) : NULL, "after",
        what->after ? config_text(what->after, arena) : NULL, "alone", change->alone, "slower",
        json_known(change->priced, change->slower), "more_bytes", json_known(change->priced, change->more_bytes));
}

Status json_check_pair(const CheckPair *pair, FILE *out, Error *error) {
    Arena arena = {0};
    json_t *changes = json_array();
    for (int i = 0; i < pair->change_count; i++) {
        json_array_append_new(changes, change_object(&pair->changes[i], &arena));
    }
    const Status status = json_print(json_pack("{s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:f, s:s, s:o}", "schema",
                                               "ndtune.check-pair/1", "request", json_request(pair->after.request),
                                               "before", side_object(&pair->before), "after", side_object(&pair->after),
                                               "passed", pair->passed, "slower", json_known(pair->timed, pair->slower),
                                               "more_bytes", json_known(pair->timed, pair->more_bytes), "tolerance",
                                               pair->tolerance, "verdict", pair->verdict, "changes", changes),
                                     out, error);
    arena_free(&arena);
    return status;
}

Status csv_check_pair(const CheckPair *pair, FILE *out, Error *error) {
    Arena arena = {0};
    Csv csv = {.out = out};
    csv_header(&csv, "key,line_before,line,before,after,slower,more_bytes");
    csv_row(&csv, "sssssnn.", NULL, NULL, NULL, pair->before.import->path, pair->after.import->path,
            csv_known(pair->timed, pair->slower), csv_known(pair->timed, pair->more_bytes));
    for (int i = 0; i < pair->change_count; i++) {
        const CheckChange *change = &pair->changes[i];
        const ConfigChange *what = &change->change;
        csv_row(&csv, "snnssnn.", what->path, what->before ? (double)what->before->line : NAN,
                what->after ? (double)what->after->line : NAN, what->before ? config_text(what->before, &arena) : NULL,
                what->after ? config_text(what->after, &arena) : NULL, csv_known(change->priced, change->slower),
                csv_known(change->priced, change->more_bytes));
    }
    arena_free(&arena);
    return csv_finish(&csv, error);
}

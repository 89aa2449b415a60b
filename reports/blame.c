// ndtune blame for people and programs: the verdict, where every rank is, what the dumps do not tell.

#include "reports/blame.h"

#include "reports/colour.h"
#include "reports/json_objects.h"
#include "reports/record.h"

static json_t *ranks_array(const int *ranks, int count) {
    json_t *array = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(array, json_integer(ranks[i]));
    }
    return array;
}

static json_t *text_or_null(const char *text) {
    return text ? json_string(text) : json_null();
}

static json_t *place_object(const Job *job, const VerdictPlace *place) {
    if (place->group < 0) {
        return json_null();
    }
    const JobGroup *group = &job->groups[place->group];
    const bool message = group->parent >= 0;
    return json_pack("{s:s, s:o, s:I, s:I, s:o, s:s, s:o, s:o, s:I, s:b, s:o, s:o, s:o}", "collective",
                     dump_op_rows[place->op].words, "bytes", json_known(place->bytes >= 0, (double)place->bytes),
                     "elements_in", (json_int_t)place->in, "elements_out", (json_int_t)place->out, "dtype",
                     place->dtype[0] ? json_string(place->dtype) : json_null(), "group", group->name, "from",
                     message ? json_integer(group->from) : json_null(), "to",
                     message ? json_integer(group->to) : json_null(), "number", (json_int_t)place->seq, "inside",
                     place->inside, "waited_s", json_known(place->waited_s >= 0, place->waited_s), "layer",
                     text_or_null(place->layer), "caller", text_or_null(place->caller));
}

static json_t *awaited_array(const BlameReport *report) {
    json_t *array = json_array();
    for (int i = 0; i < report->verdict->awaited_count; i++) {
        json_array_append_new(array, place_object(report->job, &report->verdict->awaited[i]));
    }
    return array;
}

static json_t *groups_array(const Job *job) {
    json_t *array = json_array();
    for (int g = 0; g < job->process_groups; g++) {
        const JobGroup *group = &job->groups[g];
        json_t *ranks = json_array();
        for (int m = 0; m < group->count; m++) {
            json_array_append_new(ranks, json_integer(group->members[m].rank));
        }
        json_array_append_new(array, json_pack("{s:s, s:s, s:o, s:b}", "name", group->name, "description", group->desc,
                                               "ranks", ranks, "listed", group->whole));
    }
    return array;
}

// ---- where the ranks are

static const Dump *dump_of(const BlameReport *report, const VerdictPlace *place) {
    return report->job->ranks[place->rank].dump;
}

static const JobGroup *group_of(const BlameReport *report, const VerdictPlace *place) {
    return place->group >= 0 ? &report->job->groups[place->group] : NULL;
}

static RecordValue marked(const BlameReport *report, int rank, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "%s%d", blame_is_blamed(report, rank) ? "* " : "  ", rank);
    return record_of_text(text);
}

static RecordValue state_words(const BlameReport *report, const VerdictPlace *place, char text[RECORD_BYTES]) {
    const bool at = place->group >= 0;
    snprintf(text, RECORD_BYTES, "%s%s%s", blame_state(report, place->rank), at ? " " : "",
             at ? dump_op_rows[place->op].words : "");
    return record_of_text(text);
}

static RecordValue group_words(const JobGroup *group, char text[RECORD_BYTES]) {
    if (group && group->parent >= 0) {
        snprintf(text, RECORD_BYTES, "%s %d to %d", blame_group_name(group), group->from, group->to);
        return record_of_text(text);
    }
    return record_of_text(group ? blame_group_name(group) : NULL);
}

KNOWN(stands, VerdictPlace, of->group >= 0)
KNOWN(has_bytes, VerdictPlace, of->group >= 0 && of->bytes >= 0)
KNOWN(has_size, VerdictPlace, of->group >= 0 && of->bytes > 0)
KNOWN(waits, VerdictPlace, of->waited_s >= 0)
MADE_IN(rank_words, VerdictPlace, BlameReport, marked(in, of->rank, text))
MADE_IN(host, VerdictPlace, BlameReport, record_of_text(dump_of(in, of) ? dump_of(in, of)->host : NULL))
MADE_IN(blamed, VerdictPlace, BlameReport, record_of_text(blame_is_blamed(in, of->rank) ? "yes" : "no"))
MADE_IN(state, VerdictPlace, BlameReport, record_of_text(blame_state(in, of->rank)))
MADE_IN(stands_words, VerdictPlace, BlameReport, state_words(in, of, text))
MADE(operation, VerdictPlace, record_of_text(of->group >= 0 ? dump_op_rows[of->op].words : NULL))
MADE_IN(group, VerdictPlace, BlameReport, record_of_text(group_of(in, of) ? group_of(in, of)->name : NULL))
MADE_IN(group_told, VerdictPlace, BlameReport, group_words(group_of(in, of), text))
NESTED_IN(has_dump, VerdictPlace, BlameReport, json_boolean(dump_of(in, of) != NULL))
NESTED_IN(at, VerdictPlace, BlameReport, place_object(in->job, of))

static const RecordField places[] = {
    {FIELD("rank", INT, VerdictPlace, rank)},
    {BY(rank_words), COLUMN(1, "  rank")},
    {.key = "host", BY(host)},
    {BY(host), COLUMN(2, "host"), .missing = "", .optional = true},
    {.key = "dump", .nested = has_dump},
    {.key = "at", .nested = at},
    {.key = "blamed", BY(blamed), .no_json = true},
    {.key = "stands", BY(state), .no_json = true},
    {BY(stands_words), COLUMN(3, "stands")},
    {.key = "collective", BY(operation), .no_json = true},
    {FIELD("bytes", LONG, VerdictPlace, bytes), .known = has_bytes, .no_json = true},
    {FIELD(NULL, LONG, VerdictPlace, bytes), COLUMN(4, "size"), .unit = AS_BYTES, .known = has_size, .missing = ""},
    {.key = "group", BY(group), .no_json = true},
    {BY(group_told), COLUMN(5, "group"), .missing = ""},
    {FIELD("number", LONG, VerdictPlace, seq), COLUMN(6, "number"), .known = stands, .missing = "", .no_json = true},
    {FIELD("waited_s", REAL, VerdictPlace, waited_s), COLUMN(7, "waits"), .unit = AS_SECONDS, .known = waits,
     .missing = "", .no_json = true},
    {FIELD("layer", TEXT, VerdictPlace, layer), .no_json = true},
    {FIELD(NULL, TEXT, VerdictPlace, layer), COLUMN(8, "where in the step"), .missing = "", .optional = true},
    {FIELD("caller", TEXT, VerdictPlace, caller), .no_json = true},
};
static SCHEMA(places, VerdictPlace);

static Status csv_blame(const void *answer, FILE *out, Error *error) {
    const BlameReport *report = answer;
    const RecordSchema schema = record_about(&schema_places, report);
    return record_csv(&schema, report->verdict->stands, report->job->world, out, error);
}

static Status json_blame(const void *answer, FILE *out, Error *error) {
    const BlameReport *report = answer;
    const Verdict *verdict = report->verdict;
    const Job *job = report->job;
    const RecordSchema schema = record_about(&schema_places, report);
    Arena arena = {0};
    json_t *program = report->program ? json_pack("{s:s, s:i, s:i}", "step", report->program, "matched",
                                                  report->matched, "compared", report->compared)
                                      : json_null();
    json_t *root = json_pack(
        "{s:s, s:s, s:i, s:i, s:s, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
        "ndtune.blame/1", "folder", job->folder, "world", job->world, "dumps", job->dump_count, "verdict",
        verdict_kinds[verdict->kind].name, "sentence", blame_sentence(report, &arena), "ranks",
        ranks_array(verdict->ranks, verdict->rank_count), "certain", !verdict->guilty_unknown, "did",
        place_object(job, &verdict->did), "due", place_object(job, &verdict->due), "waiting",
        ranks_array(verdict->waiting, verdict->waiting_count), "held_up",
        ranks_array(verdict->held, verdict->held_count), "awaited_in", awaited_array(report), "excess",
        json_known(verdict->kind == VERDICT_SLOW, verdict->excess), "program", program, "stands",
        record_array(&schema, verdict->stands, job->world), "groups", groups_array(job), "unknown",
        json_strings(verdict->unknown, verdict->unknown_count), "left_out", json_strings(job->notes, job->note_count));
    arena_free(&arena);
    return json_print(root, out, error);
}

static void print_list(const char *heading, const char *const *sentences, int count, FILE *out) {
    if (count > 0) {
        fprintf(out, "\n%s\n", heading);
    }
    for (int i = 0; i < count; i++) {
        fprintf(out, "  %s\n", sentences[i]);
    }
}

// Ranks without a dump are one line, but for the blamed.
static Status table_stands(const BlameReport *report, FILE *out, Error *error) {
    const int world = report->job->world;
    const RecordSchema schema = record_about(&schema_places, report);
    Arena arena = {0};
    VerdictPlace *shown = ARENA_ARRAY(&arena, VerdictPlace, world);
    int *missing = ARENA_ARRAY(&arena, int, world);
    int count = 0, without = 0;
    for (int rank = 0; rank < world; rank++) {
        if (report->job->ranks[rank].dump || blame_is_blamed(report, rank)) {
            shown[count++] = report->verdict->stands[rank];
        } else {
            missing[without++] = rank;
        }
    }
    const Status status = record_table(&schema, shown, count, out, error);
    if (without > 0) {
        fprintf(out, "  no dump of %s %s\n", without == 1 ? "rank" : "ranks", job_rank_list(missing, without, &arena));
    }
    arena_free(&arena);
    return status;
}

static Status table_blame(const void *answer, FILE *out, Error *error) {
    const BlameReport *report = answer;
    const Verdict *verdict = report->verdict;
    const Job *job = report->job;
    Arena arena = {0};
    const bool bad = verdict->kind != VERDICT_HEALTHY;
    fprintf(out, "%d of %d ranks left a dump in %s, %d process groups\n", job->dump_count, job->world, job->folder,
            job->process_groups);
    if (report->program) {
        fprintf(out, "%d of %d collectives are as in the step of %s\n", report->matched, report->compared,
                report->program);
    }
    fprintf(out, "\n%s%s%s%s\n\n", colour(out, bad ? COLOUR_BAD : COLOUR_GOOD), bad ? "Blamed: " : "",
            blame_sentence(report, &arena), colour(out, COLOUR_END));
    arena_free(&arena);
    TRY(table_stands(report, out, error));
    print_list("What these dumps do not tell", verdict->unknown, verdict->unknown_count, out);
    print_list("Left out", job->notes, job->note_count, out);
    if (bad && !report->program) {
        fputs("\nWith --mesh, --model and --target of the job its layers and tasks are named.\n", out);
    } else if (report->program && report->matched * 2 < report->compared) {
        fputs("\nThe recorded collectives are not those of that step: are shape, model and target the job's?\n", out);
    }
    return STATUS_OK;
}

const Answer answer_blame = {.table = table_blame, .json = json_blame, .csv = csv_blame};

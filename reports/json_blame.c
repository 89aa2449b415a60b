// ndtune.blame/1.

#include "reports/blame.h"
#include "reports/json_objects.h"

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

static json_t *stands_array(const BlameReport *report) {
    json_t *array = json_array();
    for (int rank = 0; rank < report->job->world; rank++) {
        const Dump *dump = report->job->ranks[rank].dump;
        json_array_append_new(array, json_pack("{s:i, s:o, s:b, s:o}", "rank", rank, "host",
                                               text_or_null(dump ? dump->host : NULL), "dump", dump != NULL, "at",
                                               place_object(report->job, &report->verdict->stands[rank])));
    }
    return array;
}

static json_t *sentences(const char *const *lines, int count) {
    json_t *array = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(array, json_string(lines[i]));
    }
    return array;
}

Status json_blame(const BlameReport *report, FILE *out, Error *error) {
    const Verdict *verdict = report->verdict;
    const Job *job = report->job;
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
        json_known(verdict->kind == VERDICT_SLOW, verdict->excess), "program", program, "stands", stands_array(report),
        "groups", groups_array(job), "unknown", sentences(verdict->unknown, verdict->unknown_count), "left_out",
        sentences(job->notes, job->note_count));
    arena_free(&arena);
    return json_print(root, out, error);
}

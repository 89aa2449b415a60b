// Data for the charts and the candidate table, as columns: thousands of candidates stay within a few hundred KB. The
// best HTML_DETAILED carry their whole prediction, in the form of --format json.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/format.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/json_objects.h"
#include "reports/schemas.h"

enum { MOST_REASON_BYTES = 300000 };

// Texts shared by many rows, stored once.
typedef struct Dictionary {
    json_t *texts, *places;
    size_t bytes;
} Dictionary;

static Dictionary dictionary(void) {
    return (Dictionary){.texts = json_array(), .places = json_object()};
}

// Index of the text; -1 for none, -2 where there is no room for more.
static int place_of(Dictionary *words, const char *text) {
    if (!text) {
        return -1;
    }
    const json_t *known = json_object_get(words->places, text);
    if (known) {
        return (int)json_integer_value(known);
    }
    const size_t length = strlen(text);
    if (words->bytes + length > MOST_REASON_BYTES) {
        return -2;
    }
    words->bytes += length;
    const int place = (int)json_array_size(words->texts);
    json_array_append_new(words->texts, json_string(text));
    json_object_set_new(words->places, text, json_integer(place));
    return place;
}

static json_t *close_dictionary(Dictionary *words) {
    json_decref(words->places);
    return words->texts;
}

void columns_append(json_t *columns, const char *name, json_t *value) {
    json_t *column = json_object_get(columns, name);
    if (!column) {
        column = json_array();
        json_object_set_new(columns, name, column);
    }
    json_array_append_new(column, value);
}

static void append_mesh(json_t *columns, const Mesh *mesh) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        columns_append(columns, axis_names[axis], json_integer(mesh->size[axis]));
    }
}

// ---- predictions in full

typedef struct Details {
    const Prediction *of[HTML_DETAILED];
    int count;
} Details;

static int detail_of(const Details *details, uint64_t content_hash) {
    for (int i = 0; i < details->count; i++) {
        if (details->of[i]->content_hash == content_hash) {
            return i;
        }
    }
    return -1;
}

// The ranked shapes first, then other choices that were simulated.
static void choose_details(const TuneResult *result, const Candidate *const *ranked, int count, Details *details) {
    details->count = 0;
    for (int i = 0; i < result->entry_count && details->count < HTML_DETAILED; i++) {
        details->of[details->count++] = &result->entries[i];
    }
    for (int i = 0; i < count && details->count < HTML_DETAILED; i++) {
        if (ranked[i]->prediction && detail_of(details, ranked[i]->content_hash) < 0) {
            details->of[details->count++] = ranked[i]->prediction;
        }
    }
}

static json_t *split_object(const ComputeSplit *split) {
    json_t *object = json_object();
    for (int kind = 0; kind < COMPUTE_KINDS; kind++) {
        json_object_set_new(object, compute_kind_names[kind], json_real(split->seconds[kind]));
    }
    return object;
}

static json_t *detail_object(const HtmlReport *report, const Prediction *prediction, int place) {
    const TuneResult *result = report->result;
    json_t *object = json_prediction_object(result->request, prediction, true, NULL);
    static const char *const same_for_all[] = {"schema",   "model", "cluster",  "target",  "target_version",
                                               "evidence", "legal", "feasible", "reasons", "engine_version"};
    for (size_t i = 0; i < sizeof same_for_all / sizeof same_for_all[0]; i++) {
        json_object_del(object, same_for_all[i]);
    }
    json_object_set_new(object, "name", json_string(format_layout(&prediction->plan.mesh, FORMAT_BUFFER)));
    json_object_set_new(object, "pareto", json_boolean(prediction->pareto));
    if (place > 0) {
        json_object_set_new(object, "place", json_integer(place));
    }
    if (place > 0 && place <= report->split_count) {
        json_object_set_new(object, "compute_by", split_object(&report->splits[place - 1]));
    }
    return object;
}

static json_t *details_array(const HtmlReport *report, const Details *details) {
    json_t *array = json_array();
    for (int i = 0; i < details->count; i++) {
        json_array_append_new(array,
                              detail_object(report, details->of[i], i < report->result->entry_count ? i + 1 : 0));
    }
    return array;
}

// ---- candidates

// Fastest first, then by least memory, then in search order; rejected ones last.
static int compare_candidates(const void *left, const void *right) {
    const Candidate *a = *(const Candidate *const *)left, *b = *(const Candidate *const *)right;
    const bool a_out = a->state == CANDIDATE_REJECTED, b_out = b->state == CANDIDATE_REJECTED;
    if (a_out != b_out) {
        return a_out ? 1 : -1;
    }
    if (a->tokens_per_s != b->tokens_per_s) {
        return a->tokens_per_s > b->tokens_per_s ? -1 : 1;
    }
    if (a->reserved_bytes != b->reserved_bytes) {
        return a->reserved_bytes < b->reserved_bytes ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

static const Candidate **rank_candidates(const HtmlReport *report) {
    const TuneResult *result = report->result;
    const Candidate **ranked = ARENA_ARRAY(report->arena, const Candidate *, result->candidate_count);
    for (int i = 0; i < result->candidate_count; i++) {
        ranked[i] = &result->candidates[i];
    }
    qsort(ranked, (size_t)result->candidate_count, sizeof *ranked, compare_candidates);
    return ranked;
}

static json_t *candidate_columns(const Target *target, const Candidate *const *ranked, int count,
                                 const Details *details, Dictionary *rules, Dictionary *reasons) {
    json_t *columns = json_object();
    for (int i = 0; i < count; i++) {
        const Candidate *candidate = ranked[i];
        const TrainPlan *plan = &candidate->plan;
        append_mesh(columns, &plan->mesh);
        columns_append(columns, "micro_batch", json_integer(plan->micro_batch));
        columns_append(columns, "grad_accum", json_integer(plan->grad_accum));
        columns_append(columns, "recompute", json_integer(plan->recompute));
        columns_append(columns, "reshard", json_integer(plan->zero == 3 ? (int)plan->reshard : -1));
        columns_append(columns, "rotate", json_integer(plan->mesh.size[AXIS_CP] > 1 ? (int)plan->cp_rotate : -1));
        char more[FORMAT_BYTES];
        format_page_choices(target, plan, more);
        columns_append(columns, "more", more[0] ? json_string(more + 1) : json_null());
        columns_append(columns, "state", json_integer(candidate->state));
        columns_append(columns, "step_s", json_known(candidate->step_s > 0, candidate->step_s));
        columns_append(columns, "tokens_per_s", json_known(candidate->tokens_per_s > 0, candidate->tokens_per_s));
        columns_append(columns, "reserved_bytes", json_integer((json_int_t)llround(candidate->reserved_bytes)));
        columns_append(columns, "rule", json_integer(place_of(rules, candidate->rule)));
        columns_append(columns, "reason", json_integer(place_of(reasons, candidate->reason)));
        columns_append(columns, "detail", json_integer(detail_of(details, candidate->content_hash)));
        columns_append(columns, "order",
                       mesh_has_default_order(&plan->mesh) ? json_null()
                                                           : json_string(mesh_order_text(&plan->mesh, MESH_BUFFER)));
    }
    return columns;
}

static json_t *shape_columns(const TuneResult *result, Dictionary *rules, Dictionary *reasons) {
    json_t *columns = json_object();
    for (int i = 0; i < result->rejected_count; i++) {
        const Rejection *rejection = &result->rejected[i];
        append_mesh(columns, &rejection->plan.mesh);
        columns_append(columns, "rule", json_integer(place_of(rules, rejection->rule)));
        columns_append(columns, "reason", json_integer(place_of(reasons, rejection->reason)));
    }
    return columns;
}

static json_t *validation_array(const Validation *validation) {
    json_t *array = json_array();
    for (int i = 0; validation && i < validation->row_count; i++) {
        const ValidateRow *row = &validation->rows[i];
        json_array_append_new(array,
                              json_pack("{s:i, s:s, s:f, s:f, s:f, s:o, s:o, s:o, s:i}", "place", row->place, "name",
                                        format_layout(&row->prediction->plan.mesh, FORMAT_BUFFER), "predicted_s",
                                        row->prediction->step_s, "predicted_low_s", row->prediction->step_low_s,
                                        "predicted_high_s", row->prediction->step_high_s, "measured_s",
                                        json_known(row->measured_s > 0, row->measured_s), "measured_low_s",
                                        json_known(row->low_s > 0, row->low_s), "measured_high_s",
                                        json_known(row->high_s > 0, row->high_s), "runs", row->run_count));
    }
    return array;
}

// Options of the request that hold for each of its candidates.
static json_t *kept_options(void) {
    json_t *options = json_pack("[ss]", "--memory-limit", "--set");
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        json_array_append_new(options, json_sprintf("--%s", plan_fields[id].option.name));
    }
    return options;
}

Status report_data(const HtmlReport *report, FILE *out, Error *error) {
    const TuneResult *result = report->result;
    const Candidate **ranked = rank_candidates(report);
    const int count = result->candidate_count < HTML_MOST_CANDIDATES ? result->candidate_count : HTML_MOST_CANDIDATES;
    Details details;
    choose_details(result, ranked, count, &details);
    Dictionary rules = dictionary(), reasons = dictionary();
    json_t *shapes = shape_columns(result, &rules, &reasons);
    json_t *candidates = candidate_columns(result->request->target, ranked, count, &details, &rules, &reasons);
    json_t *root = json_pack(
        "{s:s, s:o, s:o, s:i, s:i, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o}",
        "schema", "ndtune.report-data/1", "axes", json_strings(axis_names, AXIS_COUNT), "request",
        json_request(result->request), "entry_count", result->entry_count, "candidate_count", result->candidate_count,
        "tie_share", result->entry_count > 0 ? tie_share(result) : 0.0, "noise",
        report->validation ? json_known(true, report->validation->noise) : json_null(), "details",
        details_array(report, &details), "candidates", candidates, "shapes", shapes, "rules", close_dictionary(&rules),
        "reasons", close_dictionary(&reasons), "validation", validation_array(report->validation), "timeline",
        timeline_data(report), "stages", stages_data(report), "memory_curve", memory_curve(report), "tuning",
        tuning_data(report), "sensitivities",
        report->explanation ? record_array(&schema_sensitivities, report->explanation->sensitivities.rows,
                                           report->explanation->sensitivities.count)
                            : json_array(),
        "recompute_names", json_strings(recompute_names, RECOMPUTE_COUNT), "reshard_names",
        json_strings(reshard_names, RESHARD_COUNT), "kept", kept_options(), "rotate_names",
        json_strings(cp_rotate_names, CP_ROTATE_COUNT));
    return markup_json(root, out, error);
}

// The JSON documents of explain, of a list of worlds, and of what the store remembers.

#include "reports/explain_terms.h"
#include "reports/json_objects.h"
#include "reports/schemas.h"

static json_t *term_object(ExplainTerm term, bool has_next) {
    return json_pack("{s:s, s:f, s:o, s:o}", "name", term.name, "best", term.best, "next",
                     has_next ? json_real(term.next) : json_null(), "difference",
                     has_next ? json_real(term.next - term.best) : json_null());
}

static json_t *question_object(const WhatIf *question) {
    static const char *const names[WHAT_IF_COUNT] = {"network", "memory", "sequence"};
    const bool asked = question->searched_to > 0;
    const bool known = asked && question->feasible;
    return json_pack("{s:s, s:s, s:f, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:f}", "change", names[question->kind],
                     "sentence", question->sentence, "factor", question->factor, "feasible", known, "mesh",
                     known ? json_mesh(&question->best.plan.mesh) : json_null(), "same_shape",
                     known ? json_boolean(question->same_shape) : json_null(), "tokens_per_s",
                     known ? json_real(question->best.tokens_per_s) : json_null(), "gain",
                     known && question->gain > 0 ? json_real(question->gain) : json_null(), "break_even_factor",
                     question->break_even > 0 ? json_real(question->break_even) : json_null(), "break_even_mesh",
                     question->break_even > 0 && mesh_world(&question->break_even_mesh) > 0
                         ? json_mesh(&question->break_even_mesh)
                         : json_null(),
                     "searched_to_factor", question->searched_to);
}

static json_t *stages_object(const Explanation *explanation) {
    const WhyStages *stages = &explanation->stages;
    const Explanation beside = explain_beside_stages(explanation);
    const Prediction *other = stages->other, *staged = stages->used ? explanation->best : other;
    const ExplainTerm most = other ? explain_most_saved(&beside) : (ExplainTerm){0};
    return json_pack("{s:b, s:b, s:i, s:o, s:o, s:s?, s:o, s:s?}", "offered", stages->offered, "used", stages->used,
                     "other_shapes", stages->shapes, "other",
                     other ? json_prediction_object(explanation->result->request, other, true, NULL) : json_null(),
                     "lead", other ? json_real(explain_lead(&beside)) : json_null(), "most_saved", most.name,
                     "bubble_share", staged ? json_real(staged->bubble_s / staged->step_s) : json_null(), "reason",
                     !other && stages->rejected ? stages->rejected->reason : NULL);
}

static json_t *cuts_object(const WhyCuts *cuts) {
    json_t *others = json_array();
    for (int i = 0; i < cuts->count; i++) {
        const struct OtherCut *other = &cuts->others[i];
        json_array_append_new(others, json_pack("{s:i, s:b, s:f, s:f}", "etp", other->cut, "feasible", other->fits,
                                                "slower", other->step, "reserved_bytes", other->reserved_bytes));
    }
    return json_pack("{s:b, s:b, s:i, s:o, s:s?}", "offered", cuts->offered, "asked", cuts->asked, "used", cuts->used,
                     "others", others, "reason", cuts->reason[0] ? cuts->reason : NULL);
}

Status json_explanation(const Explanation *explanation, FILE *out, Error *error) {
    const TuneRequest *request = explanation->result->request;
    const bool has_next = explanation->runner_up;
    json_t *times = json_array(), *memory = json_array(), *questions = json_array();
    for (int i = 0; i < EXPLAIN_TIME_TERMS; i++) {
        json_array_append_new(times, term_object(explain_time_term(explanation, i), has_next));
    }
    for (int i = 0; i < EXPLAIN_MEMORY_TERMS; i++) {
        json_array_append_new(memory, term_object(explain_memory_term(explanation, i), has_next));
    }
    for (int i = 0; i < WHAT_IF_COUNT; i++) {
        json_array_append_new(questions, question_object(&explanation->questions[i]));
    }
    return json_print(
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", "ndtune.explain/1",
                  "request", json_request(request), "best",
                  json_prediction_object(request, explanation->best, true, NULL), "next",
                  has_next ? json_prediction_object(request, explanation->runner_up, true, NULL) : json_null(), "lead",
                  has_next ? json_real(explain_lead(explanation)) : json_null(), "seconds_per_million_tokens", times,
                  "memory_bytes", memory, "estimated_best", json_mesh(&explanation->estimated_best), "what_if",
                  questions, "sensitivities", json_sensitivities(explanation), "stages", stages_object(explanation),
                  "etp", cuts_object(&explanation->cuts)),
        out, error);
}

Status json_scaling(const ScalingCurve *curve, FILE *out, Error *error) {
    const bool any = curve->best >= 0;
    return json_print(json_pack("{s:s, s:o, s:o, s:o}", "schema", "ndtune.scaling/1", "request",
                                json_request(curve->points[0].request), "best_world",
                                any ? json_integer(curve->points[curve->best].request->world) : json_null(), "worlds",
                                record_array(&schema_scaling, curve->points, curve->count)),
                      out, error);
}

Status json_stored(const StoredList *list, FILE *out, Error *error) {
    return json_print(json_pack("{s:s, s:o, s:o, s:o}", "schema", "ndtune.runs/1", "requests",
                                record_array(&schema_requests, list->requests, list->request_count), "runs",
                                record_array(&schema_runs, list->runs, list->run_count), "preflights",
                                record_array(&schema_preflights, list->preflights, list->preflight_count)),
                      out, error);
}

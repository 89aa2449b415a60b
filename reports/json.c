// The JSON documents: plan, prediction, run, and the lists of models and clusters.

#include <math.h>

#include "reports/json_objects.h"
#include "reports/schemas.h"
#include "reports/words.h"

static json_t *int_or_null(bool known, int64_t value) {
    return known ? json_integer((json_int_t)value) : json_null();
}

// Fields of the plan as they were asked for, from..end of the order.
static void set_asked(json_t *object, const TuneRequest *request, const PlanFieldId *order, int from, int end) {
    for (int i = from; i < end; i++) {
        if (plan_fields[order[i]].scope != PLAN_OF_BATCH) {
            json_object_set_new(object, plan_fields[order[i]].name,
                                json_plan_value(order[i], request->asked[order[i]]));
        }
    }
}

// What was asked; null = left to the search.
json_t *json_request(const TuneRequest *request) {
    static const char *const efforts[EFFORT_COUNT] = {"simulate", "estimate", "exhaustive"};
    static const PlanFieldId first[] = {PLAN_ZERO,       PLAN_RESHARD,        PLAN_RECOMPUTE,   PLAN_CP_ROTATE,
                                        PLAN_PRECISION,  PLAN_ATTENTION,      PLAN_FUSED,       PLAN_TP_OVERLAP,
                                        PLAN_FP8_RECIPE, PLAN_MASTER_WEIGHTS, PLAN_REDUCE_DTYPE};
    enum { BEFORE_LIMITS = 5 };
    PlanFieldId fields[PLAN_FIELD_COUNT];
    plan_fields_from(first, sizeof first / sizeof first[0], fields);
    json_t *assumptions = json_array();
    for (int i = 0; i < request->assumption_count; i++) {
        json_array_append_new(assumptions, json_string(request->assumptions[i]));
    }
    json_t *object = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:o, s:o}", "command", request->command,
                               "world", request->world, "model", request->model.name, "model_asked",
                               request->model_asked, "cluster", request->cluster.name, "target", request->target->name,
                               "target_version", request->target->version, "seq", request->seq, "global_batch",
                               int_or_null(request->global_batch > 0 && !request->batch_assumed, request->global_batch),
                               "micro_batch", int_or_null(request->micro_batch > 0, request->micro_batch));
    if (!object) {
        json_decref(assumptions);
        return NULL;
    }
    set_asked(object, request, fields, 0, BEFORE_LIMITS);
    json_object_set_new(object, "max_tp", int_or_null(request->max_tp > 0, request->max_tp));
    json_object_set_new(object, "memory_limit_bytes", json_integer((json_int_t)llround(request->memory_limit_bytes)));
    json_object_set_new(object, "effort", json_string(efforts[request->effort]));
    json_object_set_new(object, "assumptions", assumptions);
    set_asked(object, request, fields, BEFORE_LIMITS, PLAN_FIELD_COUNT);
    char order[MESH_TEXT_BYTES];
    Mesh asked = {.order = request->order};
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        asked.size[axis] = AXES_FIRST & AXIS_BIT(axis) ? 2 : 1;  // an axis of size 1 would not be named
    }
    json_object_set_new(object, "rank_order",
                        request->any_order ? json_null() : json_string(mesh_order_text(&asked, order)));
    json_object_set_new(object, "objective", json_string(objective_names[request->objective]));
    json_object_set_new(object, "tokens", request->tokens > 0 ? json_real(request->tokens) : json_null());
    return object;
}

// Where the shape that the user compares with came out.
static json_t *baseline_object(const TuneResult *result) {
    const TuneRequest *request = result->request;
    if (mesh_world(&request->baseline) == 0) {
        return json_null();
    }
    const Baseline baseline = words_baseline(result);
    const Prediction *entry = baseline.entry;
    return json_pack("{s:o, s:b, s:s?, s:o, s:o, s:o, s:o}", "mesh", json_mesh(&request->baseline), "feasible",
                     entry != NULL, "reason", baseline.reason, "place", int_or_null(entry, baseline.place),
                     "step_time_s", entry ? json_real(entry->step_s) : json_null(), "tokens_per_s",
                     entry ? json_real(entry->tokens_per_s) : json_null(), "gain_of_best_percent",
                     entry ? json_real(100 * baseline.gain) : json_null());
}

// A plan that is faster than the best and leaves too little memory free.
static json_t *fastest_object(const TuneResult *result) {
    const Prediction *fastest = result->fastest_if_it_fits;
    return fastest ? json_prediction_object(result->request, fastest, true, NULL) : json_null();
}

static json_t *cures_array(const TuneResult *result) {
    static const char *const kinds[] = {[CURE_PLAN] = "plan", [CURE_WORLD] = "world", [CURE_TRAINING] = "training"};
    json_t *cures = json_array();
    for (int i = 0; i < result->cure_count; i++) {
        const Cure *cure = &result->cures[i];
        json_array_append_new(
            cures, json_pack("{s:s, s:s, s:i, s:o, s:f, s:f, s:I, s:f}", "option", cure->option, "changes",
                             kinds[cure->kind], "world", cure->world, "mesh", json_mesh(&cure->mesh), "step_time_s",
                             cure->step_s, "tokens_per_s", cure->tokens_per_s, "reserved_bytes",
                             (json_int_t)llround(cure->reserved_bytes), "slower_percent", 100 * cure->slower));
    }
    return cures;
}

static json_t *search_object(const SearchCounts *search) {
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:f}", "shapes", search->shapes, "candidates", search->candidates,
                     "pruned", search->pruned, "estimated", search->estimated, "simulated", search->simulated, "cached",
                     search->cached, "elapsed_s", search->elapsed_s);
}

Status json_plan(const TuneResult *result, FILE *out, Error *error) {
    json_t *entries = json_array(), *rejected = json_array();
    for (int i = 0; i < result->entry_count; i++) {
        json_t *entry = json_prediction_object(result->request, &result->entries[i], true, NULL);
        json_object_set_new(entry, "pareto", json_boolean(result->entries[i].pareto));
        json_array_append_new(entries, entry);
    }
    for (int i = 0; i < result->rejected_count; i++) {
        const Rejection *rejection = &result->rejected[i];
        json_array_append_new(rejected, json_pack("{s:o, s:o, s:s, s:s}", "mesh", json_mesh(&rejection->plan.mesh),
                                                  "plan", json_train_plan(result->request->target, &rejection->plan),
                                                  "rule", rejection->rule, "reason", rejection->reason));
    }
    return json_print(json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:s?, s:o, s:s?, s:o}", "schema", "ndtune.plan/1",
                                "request", json_request(result->request), "entries", entries, "rejected", rejected,
                                "baseline", baseline_object(result), "search", search_object(&result->search),
                                "global_batch", (json_int_t)result->request->global_batch, "best_reason",
                                result->best_reason, "fastest_if_it_fits", fastest_object(result), "if_allowed",
                                result->if_allowed, "cures", cures_array(result)),
                      out, error);
}

Status json_prediction(const PredictionReport *report, FILE *out, Error *error) {
    json_t *object = json_prediction_object(report->request, report->prediction, report->legal, report->reason);
    if (object) {
        json_object_set_new(object, "request", json_request(report->request));
    }
    if (object && report->diagnosis) {
        json_object_set_new(object, "measured", json_diagnosis(report->diagnosis));
    }
    return json_print(object, out, error);
}

// JSON has no NaN: a diverged step is null.
static json_t *numbers(const double *values, int count) {
    json_t *array = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(array, isfinite(values[i]) ? json_real(values[i]) : json_null());
    }
    return array;
}

static json_t *run_tasks(const RunRecord *run) {
    return record_array(&schema_tasks, run->tasks, run->task_count);
}

Status json_run(const RunRecord *run, FILE *out, Error *error) {
    json_t *object = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:s, s:s?, s:s, s:s, s:s, s:s, s:I, s:f, s:o, s:o}", "schema",
        "ndtune.run/1", "mesh", json_mesh(&run->prediction.plan.mesh), "plan",
        json_train_plan(run->request->target, &run->prediction.plan), "loss", numbers(run->losses, run->steps),
        "grad_norm", numbers(run->grad_norms, run->steps), "step_time_s", numbers(run->step_times_s, run->steps),
        "peak_bytes", (json_int_t)run->peak_bytes, "planned_peak_bytes", (json_int_t)run->planned_peak_bytes, "state",
        run->state, "failure", run->failure, "host", run->host, "device", run->device, "transport", run->transport,
        "lanes", run->lanes, "seed", (json_int_t)run->seed, "predicted_step_time_s", run->prediction.step_s, "model",
        json_model(&run->request->model), "tasks", run_tasks(run));
    if (object) {
        if (run->core_type) {
            json_object_set_new(object, "core_type", json_string(run->core_type));
        }
        if (run->chip) {
            json_object_set_new(object, "chip", json_string(run->chip));
            json_object_set_new(object, "device_bytes", json_integer((json_int_t)run->device_bytes));
        }
        if (run->expert_load.measured) {
            json_object_set_new(object, "expert_load",
                                json_pack("{s:f, s:f}", "over", run->expert_load.over, "most", run->expert_load.most));
        }
        json_object_set_new(object, "cluster", json_profile(&run->request->cluster, 0));
        json_object_set_new(object, "target", json_string(run->request->target->name));
        json_object_set_new(object, "target_version", json_string(run->request->target->version));
    }
    return json_print(object, out, error);
}

Status json_stored_run(const StoredRun *about, const RunRecord *run, FILE *out, Error *error) {
    json_t *object =
        json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s?, s:i, s:o, s:o, s:o}", "schema",
                  "ndtune.stored-run/1", "id", (json_int_t)about->id, "started_at", about->started_at, "source",
                  about->source, "host", about->host, "command", about->command, "model", about->model, "cluster",
                  about->cluster, "target", about->target, "plan", about->plan, "state", about->state, "failure",
                  about->failure, "warm_up", run->warm_up, "loss", numbers(run->losses, run->steps), "step_time_s",
                  numbers(run->step_times_s, run->steps), "tasks", run_tasks(run));
    if (object) {
        const bool measured = run->measured_step_s > 0;
        json_object_set_new(object, "measured_step_s", measured ? json_real(run->measured_step_s) : json_null());
        json_object_set_new(object, "predicted_step_s", json_real(about->predicted_step_s));
        if (run->core_type) {
            json_object_set_new(object, "core_type", json_string(run->core_type));
        }
        json_object_set_new(object, "peak_bytes", json_integer((json_int_t)run->peak_bytes));
    }
    return json_print(object, out, error);
}

Status json_models(const ModelPreset *presets, int count, FILE *out, Error *error) {
    json_t *models = json_array();
    for (int i = 0; i < count; i++) {
        json_t *model = json_model(&presets[i].spec);
        json_object_set_new(model, "alias", presets[i].alias ? json_string(presets[i].alias) : json_null());
        json_array_append_new(models, model);
    }
    return json_print(json_pack("{s:s, s:o}", "schema", "ndtune.models/1", "models", models), out, error);
}

Status json_clusters(const ClusterProfile *profiles, int count, FILE *out, Error *error) {
    json_t *clusters = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(clusters, json_profile(&profiles[i], 0));
    }
    return json_print(json_pack("{s:s, s:o}", "schema", "ndtune.clusters/1", "clusters", clusters), out, error);
}

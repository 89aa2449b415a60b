// The parts of the JSON contract. Bytes are whole numbers and the memory terms sum to peak_bytes exactly; time terms
// sum to step_time_s up to rounding of the last digits. What is unknown is null, never 0.

#include "reports/json_objects.h"
#include "autotune/predict/evidence.h"

#include <math.h>

#include "reports/memory_terms.h"
#include "reports/schemas.h"
#include "sim/frameworks/target_choices.h"
#include "sim/step/schedules/order_json.h"

static const double SECONDS_PER_HOUR = 3600;

static json_t *bytes(double value) {
    return json_integer((json_int_t)llround(value));
}

json_t *json_mesh(const Mesh *mesh) {
    json_t *object = json_object();
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        json_object_set_new(object, axis_names[axis], json_integer(mesh->size[axis]));
    }
    json_object_set_new(object, "world", json_integer(mesh_world(mesh)));
    return object;
}

// The axes from slow to fast.
static json_t *axis_list(const Mesh *mesh) {
    json_t *list = json_array();
    const AxisMask named = mesh_named_axes(mesh) & AXES_OWN;
    for (int place = 0; place < AXIS_COUNT; place++) {
        const Axis axis = mesh_axis_at(mesh, place);
        if (named & AXIS_BIT(axis)) {
            json_array_append_new(list, json_string(axis_names[axis]));
        }
    }
    return list;
}

json_t *json_plan_value(PlanFieldId id, int value) {
    const PlanField *field = &plan_fields[id];
    return value == PLAN_ANY  ? json_null()
           : field->json_bool ? json_boolean(value)
           : field->words     ? json_string(field->words[value])
                              : json_integer(value);
}

json_t *json_train_plan(const Target *target, const TrainPlan *plan) {
    static const PlanFieldId first[] = {PLAN_SEQ,       PLAN_MICRO_BATCH, PLAN_GRAD_ACCUM, PLAN_ZERO,
                                        PLAN_RECOMPUTE, PLAN_RESHARD,     PLAN_CP_ROTATE,  PLAN_PRECISION,
                                        PLAN_ATTENTION, PLAN_FUSED,       PLAN_TP_OVERLAP, PLAN_MASTER_WEIGHTS,
                                        PLAN_FP8_RECIPE};
    PlanFieldId order[PLAN_FIELD_COUNT];
    plan_fields_from(first, sizeof first / sizeof first[0], order);
    json_t *object = json_object();
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = order[i];
        json_object_set_new(object, plan_fields[id].name, json_plan_value(id, target_told(target, plan, id)));
        if (id == PLAN_GRAD_ACCUM) {
            json_object_set_new(object, "global_batch", json_integer((json_int_t)plan_global_batch(plan)));
            json_object_set_new(object, "tokens_per_step", json_integer((json_int_t)plan_tokens_per_step(plan)));
        } else if (id == PLAN_FP8_RECIPE) {
            json_object_set_new(object, "order", axis_list(&plan->mesh));
        } else if (id == PLAN_PP_SCHEDULE && plan->pp_schedule == PP_FILE) {
            json_object_set_new(object, "pp_order", order_json(plan));
        }
    }
    return object;
}

json_t *json_model(const ModelSpec *model) {
    return record_object(&schema_models, model);
}

json_t *json_profile(const ClusterProfile *profile, int world) {
    Hash hash = hash_begin();
    cluster_hash(profile, &hash);
    json_t *object =
        json_pack("{s:s, s:s?, s:s, s:i, s:s, s:s?}", "name", profile->name, "description", profile->description,
                  "accelerator", profile->accelerator.name, "accelerators_per_node", profile->node.accelerators, "hash",
                  hash_hex(hash_end(&hash), HASH_BUFFER), "date", profile->date);
    if (world > 0) {
        const int per_node = profile->node.accelerators;
        json_object_set_new(object, "nodes", json_integer((world + per_node - 1) / per_node));
    }
    return object;
}

// What each of this many stages reserves; null where only the worst was estimated.
static json_t *by_stage(const MemoryBreakdown *memory, int stages) {
    if (stages > 1 && memory->stages != stages) {
        return json_null();
    }
    json_t *list = json_array();
    for (int stage = 0; stage < memory->stages; stage++) {
        json_array_append_new(list, bytes(memory->by_stage[stage]));
    }
    if (memory->stages == 0) {
        json_array_append_new(list, bytes(memory->reserved_bytes));
    }
    return list;
}

static json_t *memory_object(const MemoryBreakdown *memory, int stages, double limit_bytes, bool known) {
    json_t *object = json_object();
    MemoryTerm terms[MEMORY_TERMS];
    memory_terms(memory, terms);
    json_int_t peak = 0;
    for (int i = 0; i < MEMORY_TERMS; i++) {
        peak += (json_int_t)llround(terms[i].bytes);
    }
    json_object_set_new(object, "peak_bytes", known ? json_integer(peak) : json_null());
    json_object_set_new(object, "reserved_bytes", known ? bytes(memory->reserved_bytes) : json_null());
    json_object_set_new(object, "host_bytes", known ? bytes(memory->host_bytes) : json_null());
    json_object_set_new(object, "limit_bytes", bytes(limit_bytes));
    json_object_set_new(object, "stage", known ? json_integer(memory->stage) : json_null());
    json_object_set_new(object, "by_stage", known ? by_stage(memory, stages) : json_null());
    for (int i = 0; i < MEMORY_TERMS; i++) {
        json_object_set_new(object, terms[i].key, known ? bytes(terms[i].bytes) : json_null());
    }
    return object;
}

json_t *json_memory(const MemoryBreakdown *memory, double limit_bytes) {
    return memory_object(memory, 1, limit_bytes, true);
}

json_t *json_exposed(bool known, const double exposed_s[AXIS_COUNT]) {
    json_t *exposed = json_object();
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        json_object_set_new(exposed, axis_names[axis], json_known(known, exposed_s[axis]));
    }
    return exposed;
}

static json_t *time_object(const Prediction *prediction, bool known) {
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "compute_s", json_known(known, prediction->compute_s),
                     "exposed_communication_s", json_exposed(known, prediction->exposed_s), "optimizer_s",
                     json_known(known, prediction->optimizer_s), "bubble_s", json_known(known, prediction->bubble_s),
                     "overhead_s", json_known(known, prediction->overhead_s));
}

static json_t *cost_object(const TuneRequest *request, const Prediction *prediction, bool known) {
    const double price = request->cluster.price_usd_per_accelerator_hour;
    const double per_hour = price * mesh_world(&prediction->plan.mesh);
    const bool priced = price > 0 && known;
    const double per_billion = priced ? per_hour / SECONDS_PER_HOUR / prediction->tokens_per_s * 1e9 : 0;
    json_t *object = json_pack("{s:o, s:o}", "usd_per_hour", json_known(price > 0, per_hour), "usd_per_billion_tokens",
                               json_known(priced, per_billion));
    if (request->tokens > 0) {
        json_object_set_new(object, "tokens", json_real(request->tokens));
        json_object_set_new(object, "training_s", json_known(known, scaling_seconds(prediction, request->tokens)));
        json_object_set_new(object, "training_usd",
                            json_known(priced, scaling_usd(request, prediction, request->tokens)));
    }
    return object;
}

static void set_speed(json_t *object, const Prediction *prediction, bool known) {
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"step_time_s", prediction->step_s},
                   {"step_time_low_s", prediction->step_low_s},
                   {"step_time_high_s", prediction->step_high_s},
                   {"tokens_per_s", prediction->tokens_per_s},
                   {"tokens_per_s_per_gpu", prediction->tokens_per_s / mesh_world(&prediction->plan.mesh)},
                   {"mfu", prediction->mfu},
                   {"hfu", prediction->hfu},
                   {"model_flops_per_s_per_gpu", prediction->model_flop_per_s_per_gpu}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        json_object_set_new(object, numbers[i].name, json_known(known, numbers[i].value));
    }
}

// Of this framework on this accelerator.
static json_t *evidence_object(const TuneRequest *request, int world) {
    const Evidence evidence = evidence_of(request->target, &request->cluster, world);
    const MeasuredChip *here = evidence.here;
    return json_pack("{s:s, s:i, s:i, s:o, s:o, s:o, s:b}", "accelerator", request->cluster.accelerator.name,
                     "framework_runs", evidence.runs, "runs", here ? here->runs : 0, "largest_world",
                     here ? json_integer(here->largest_world) : json_null(), "median_abs_error",
                     here ? json_real(here->error) : json_null(), "median_bias",
                     here ? json_real(here->bias) : json_null(), "beyond", evidence.beyond);
}

json_t *json_prediction_object(const TuneRequest *request, const Prediction *prediction, bool legal,
                               const char *reason) {
    static const char *const origins[ORIGIN_COUNT] = {"estimate", "engine"};
    const bool known = legal && prediction->step_s > 0;
    const Target *target = request->target;
    json_t *object = json_pack(
        "{s:s, s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:b, s:b, s:o, s:o}", "schema", "ndtune.prediction/1", "model",
        json_model(&request->model), "cluster", json_profile(&request->cluster, mesh_world(&prediction->plan.mesh)),
        "target", target->name, "target_version", target->version, "evidence", target->evidence, "mesh",
        json_mesh(&prediction->plan.mesh), "plan", json_train_plan(target, &prediction->plan), "legal", legal,
        "feasible", legal && prediction->fits, "reasons", json_strings(&reason, reason != NULL), "warnings",
        json_strings(prediction->warnings, prediction->warning_count));
    if (!object) {
        return NULL;
    }
    json_object_set_new(object, "evidence_here", evidence_object(request, mesh_world(&prediction->plan.mesh)));
    set_speed(object, prediction, known);
    json_object_set_new(
        object, "memory",
        memory_object(&prediction->memory, mesh_stages(&prediction->plan.mesh), request->memory_limit_bytes, legal));
    json_object_set_new(object, "time", time_object(prediction, known));
    json_object_set_new(object, "cost", cost_object(request, prediction, known));
    json_object_set_new(object, "origin", known ? json_string(origins[prediction->origin]) : json_null());
    json_object_set_new(object, "engine_version", json_string(tune_engine_version()));
    if (legal) {
        json_object_set_new(object, "peak_phase", json_string(prediction->memory.peak_phase));
        json_object_set_new(
            object, "largest_buffer",
            json_pack("{s:s, s:o}", "name", prediction->memory.top_name, "bytes", bytes(prediction->memory.top_bytes)));
    }
    return object;
}

json_t *json_known(bool known, double value) {
    return known && isfinite(value) ? json_real(value) : json_null();
}

Status json_print(json_t *root, FILE *out, Error *error) {
    FAIL_IF(!root, error, STATUS_INTERNAL,
            "the JSON result could not be built: out of memory, or text that is not UTF-8");
    const int failed = json_dumpf(root, out, JSON_INDENT(1));
    json_decref(root);
    FAIL_IF(failed != 0 || fputc('\n', out) == EOF, error, STATUS_ENVIRONMENT, "the result could not be written");
    return STATUS_OK;
}

json_t *json_strings(const char *const *texts, int count) {
    json_t *array = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(array, json_string(texts[i]));
    }
    return array;
}

// JSON has no NaN: a diverged step is null.
json_t *json_numbers(const double *values, int count) {
    json_t *array = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(array, json_known(true, values[i]));
    }
    return array;
}

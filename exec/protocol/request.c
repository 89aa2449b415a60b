// The request as JSON, field by field; every field is required, so that two versions of the programs cannot misread
// each other.

#include "exec/protocol/request.h"

#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "exec/protocol/chip_prices.h"
#include "sim/base/json.h"
#include "sim/model/layer_kinds.h"
#include "sim/plan/plan_fields.h"
#include "sim/step/schedules/order_json.h"

static const char SCHEMA[] = "ndtune.run-request/1";

const char *const lane_mode_names[LANES_COUNT] = {"serial", "async"};
const char *const fault_action_names[FAULT_COUNT] = {"none", "hang", "exit", "skip", "size", "delay", "pace"};

RunOptions run_options_default(void) {
    return (RunOptions){
        .steps = 10,
        .seed = 1,
        .lr = 5e-4,  // tiny at batch 1 x 128 loses 1.8 nats in 10 steps; at 1e-3 rounding errors grow 10 times faster
        .beta1 = 0.9,
        .beta2 = 0.95,  // Touvron et al. 2023, section 2.2
        .eps = 1e-8,
        .clip = 1.0,
        .device = "cpu",
        .transport = "shm",
        .timeout_s = 120,
        .fault = {.rank = -1, .task = -1}};
}

// ---------------------------------------------------------------------------------------------- writing

// Integers, enumerations and flags of a struct, by name: one table serves writing and reading.
typedef struct Field {
    const char *key;
    size_t offset;
    bool flag;
    int low, high;
} Field;

#define COUNT(type, name)                                                                                              \
    { #name, offsetof(type, name), false, 1, INT_MAX }
#define COUNT_OR_NONE(type, name)                                                                                      \
    { #name, offsetof(type, name), false, 0, INT_MAX }
#define CHOICE(type, name, count)                                                                                      \
    { #name, offsetof(type, name), false, 0, (int)(count)-1 }
#define FLAG(type, name)                                                                                               \
    { #name, offsetof(type, name), true, 0, 1 }

static const Field model_fields[] = {
    COUNT(ModelSpec, layers),
    COUNT(ModelSpec, hidden),
    COUNT(ModelSpec, heads),
    COUNT(ModelSpec, kv_heads),
    COUNT(ModelSpec, head_dim),
    COUNT(ModelSpec, ffn),
    COUNT(ModelSpec, vocab),
    COUNT(ModelSpec, max_seq),
    FLAG(ModelSpec, tied_embeddings),
    CHOICE(ModelSpec, norm, NORM_COUNT),
    FLAG(ModelSpec, norm_bias),
    CHOICE(ModelSpec, mlp, MLP_COUNT),
    CHOICE(ModelSpec, activation, ACTIVATION_COUNT),
    CHOICE(ModelSpec, position, POSITION_COUNT),
    COUNT_OR_NONE(ModelSpec, rotary_dims),
    CHOICE(ModelSpec, qk_norm, QK_NORM_COUNT),
    CHOICE(ModelSpec, residual, RESIDUAL_COUNT),
    FLAG(ModelSpec, qkv_bias),
    FLAG(ModelSpec, out_bias),
    FLAG(ModelSpec, mlp_bias),
    FLAG(ModelSpec, fused_qkv),
    FLAG(ModelSpec, fused_gate_up),
    FLAG(ModelSpec, scaled_embeddings),
    COUNT_OR_NONE(ModelSpec, window),
    COUNT_OR_NONE(ModelSpec, window_first),
    COUNT_OR_NONE(ModelSpec, window_every),
    COUNT_OR_NONE(ModelSpec, score_scalar),
    COUNT_OR_NONE(ModelSpec, experts.count),
    COUNT_OR_NONE(ModelSpec, experts.active),
    COUNT_OR_NONE(ModelSpec, experts.ffn),
    COUNT_OR_NONE(ModelSpec, experts.shared_ffn),
    FLAG(ModelSpec, experts.unscaled),
    FLAG(ModelSpec, experts.shared_gate),
    FLAG(ModelSpec, experts.router_bias),
    FLAG(ModelSpec, experts.bias),
    COUNT_OR_NONE(ModelSpec, experts.sigmoid.groups),
    COUNT_OR_NONE(ModelSpec, experts.sigmoid.active_groups),
    COUNT_OR_NONE(ModelSpec, latent.q_rank),
    COUNT_OR_NONE(ModelSpec, latent.kv_rank),
    COUNT_OR_NONE(ModelSpec, latent.rope),
    COUNT_OR_NONE(ModelSpec, latent.value),
    FLAG(ModelSpec, sinks),
};

#define FIELDS(table) table, sizeof table / sizeof *table

static void fields_write(json_t *object, const Field *fields, size_t count, const void *values) {
    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)values + fields[i].offset;
        json_t *value = fields[i].flag ? json_boolean(*(const bool *)at) : json_integer(*(const int *)at);
        json_object_set_new(object, fields[i].key, value);
    }
}

static json_t *model_json(const ModelSpec *model) {
    const RopeScaling *scaling = &model->rope_scaling;
    json_t *object =
        json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "name", model->name, "rope_theta",
                  model->rope_theta, "rope_factor", scaling->factor, "rope_low", scaling->low, "rope_high",
                  scaling->high, "rope_original", scaling->original, "norm_eps", model->norm_eps, "experts_factor",
                  model->experts.sigmoid.factor, "experts_balance", model->experts.balance, "rope_local",
                  model->rope_local, "attention_cap", model->attention_cap, "logit_cap", model->logit_cap);
    fields_write(object, FIELDS(model_fields), model);
    json_t *runs = json_array();
    for (int i = 0; i < model->run_count; i++) {
        json_array_append_new(runs, json_pack("{s:s, s:i}", "kind", layer_kinds[model->runs[i].kind].name, "count",
                                              model->runs[i].count));
    }
    json_object_set_new(object, "runs", runs);
    return object;
}

static json_t *plan_json(const TrainPlan *plan) {
    json_t *object = json_pack("{s:s, s:s, s:o}", "mesh", mesh_text(&plan->mesh, MESH_BUFFER), "order",
                               mesh_order_text(&plan->mesh, MESH_BUFFER), "pp_order", order_json(plan));
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        json_object_set_new(object, plan_fields[id].name, json_integer(plan_get(plan, (PlanFieldId)id)));
    }
    return object;
}

static const char *text_or_empty(const char *text) {
    return text ? text : "";
}

// 64-bit seeds do not fit a JSON number: they are sent as text.
static json_t *options_json(const RunOptions *options) {
    char seed[24], jitter[24];
    snprintf(seed, sizeof seed, "%" PRIu64, options->seed);
    snprintf(jitter, sizeof jitter, "%" PRIu64, options->jitter_seed);
    return json_pack(
        "{s:i, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:I, s:s, s:s, s:i, s:s, s:f, s:i, s:b, s:b, s:b, s:b, "
        "s:s, s:s, s:i, s:i, s:i, s:i, s:f}",
        "steps", options->steps, "seed", seed, "lr", options->lr, "beta1", options->beta1, "beta2", options->beta2,
        "eps", options->eps, "weight_decay", options->weight_decay, "clip", options->clip, "data_path",
        text_or_empty(options->data_path), "data_tokens", (json_int_t)options->data_tokens, "device", options->device,
        "transport", options->transport, "lanes", (int)options->lanes, "jitter_seed", jitter, "timeout_s",
        options->timeout_s, "threads", options->threads, "spans", options->spans, "bitwise", options->bitwise,
        "deterministic", options->deterministic, "poison", options->poison, "moments_path",
        text_or_empty(options->moments_path), "weights_path", text_or_empty(options->weights_path), "fault_action",
        (int)options->fault.action, "fault_rank", options->fault.rank, "fault_task", options->fault.task, "fault_step",
        options->fault.step, "fault_delay_s", options->fault.delay_s);
}

static json_t *request_json(const RunRequest *request) {
    char hash[24], target[128];
    snprintf(hash, sizeof hash, "%016" PRIx64, request->template_hash);
    snprintf(target, sizeof target, "%s@%s", request->target->name, request->target->version);
    return json_pack("{s:s, s:i, s:o, s:o, s:o, s:s, s:s, s:i, s:i, s:s, s:s, s:o}", "schema", SCHEMA, "job",
                     (int)request->job, "model", model_json(&request->model), "plan", plan_json(&request->plan),
                     "options", options_json(&request->options), "target", target, "template_hash", hash, "segment_fd",
                     request->segment_fd, "launcher_pid", request->launcher_pid, "result_path", request->result_path,
                     "failure_path", request->failure_path, "prices",
                     chip_prices_json(request->options.prices, request->options.price_count));
}

static Status unwritable(Error *error) {
    return error_set(error, STATUS_USAGE,
                     "the run cannot be handed to its workers: a path or a name in it is not UTF-8");
}

Status run_request_save(const RunRequest *request, const char *path, Error *error) {
    json_t *root = request_json(request);
    if (!root) {
        return unwritable(error);
    }
    const Status status = json_file_save(path, root, error);
    json_decref(root);
    return status;
}

Status run_request_text(const RunRequest *request, Arena *arena, const char **text, Error *error) {
    json_t *root = request_json(request);
    char *words = root ? json_dumps(root, JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    if (!words) {
        return unwritable(error);
    }
    *text = arena_text(arena, words);
    free(words);
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- reading

static Status read_int(const JsonReader *reader, const char *key, int low, int high, int *value, Error *error) {
    int64_t wide;
    TRY(json_get_int(reader, key, low, high, &wide, error));
    *value = (int)wide;
    return STATUS_OK;
}

static Status read_object(const JsonReader *reader, const char *key, JsonReader *inner, Error *error) {
    json_t *object = json_object_get(reader->object, key);
    FAIL_IF(!json_is_object(object), error, STATUS_USAGE, "%s: %s: must be an object", reader->origin, key);
    *inner = (JsonReader){.origin = reader->origin, .path = key, .object = object};
    return STATUS_OK;
}

static Status read_u64(const JsonReader *reader, const char *key, int base, uint64_t *value, Error *error) {
    const char *text = json_string_value(json_object_get(reader->object, key));
    char *end = NULL;
    *value = text ? strtoull(text, &end, base) : 0;
    FAIL_IF(!text || *text == '\0' || *end != '\0', error, STATUS_USAGE, "%s: %s: must be a number as text",
            reader->origin, key);
    return STATUS_OK;
}

static Status fields_read(const JsonReader *reader, const Field *fields, size_t count, void *values, Error *error) {
    for (size_t i = 0; i < count; i++) {
        void *at = (char *)values + fields[i].offset;
        if (!fields[i].flag) {
            TRY(read_int(reader, fields[i].key, fields[i].low, fields[i].high, at, error));
        } else if (!json_is_boolean(json_object_get(reader->object, fields[i].key))) {
            return error_set(error, STATUS_USAGE, "%s: %s.%s: must be true or false", reader->origin, reader->path,
                             fields[i].key);
        } else {
            *(bool *)at = json_is_true(json_object_get(reader->object, fields[i].key));
        }
    }
    return STATUS_OK;
}

static Status read_runs(const JsonReader *reader, Arena *arena, ModelSpec *model, Error *error) {
    const json_t *array = json_object_get(reader->object, "runs");
    const size_t count = json_array_size(array);
    FAIL_IF(!json_is_array(array), error, STATUS_USAGE, "%s: model.runs is missing", reader->origin);
    LayerRun *runs = ARENA_ARRAY(arena, LayerRun, count);
    for (size_t i = 0; i < count; i++) {
        const char *kind = json_string_value(json_object_get(json_array_get(array, i), "kind"));
        LayerKind known = 0;
        while (kind && known < LAYER_KIND_COUNT && strcmp(layer_kinds[known].name, kind) != 0) {
            known++;
        }
        const json_int_t layers = json_integer_value(json_object_get(json_array_get(array, i), "count"));
        FAIL_IF(!kind || known == LAYER_KIND_COUNT || layers < 1 || layers > model->layers, error, STATUS_USAGE,
                "%s: run %zu of the model's layers is none", reader->origin, i);
        runs[i] = (LayerRun){known, i > 0 ? runs[i - 1].first + runs[i - 1].count : 0, (int)layers};
    }
    model->runs = runs;
    model->run_count = (int)count;
    return STATUS_OK;
}

static Status read_model(const JsonReader *root, Arena *arena, ModelSpec *model, Error *error) {
    JsonReader reader;
    const char *name;
    TRY(read_object(root, "model", &reader, error));
    TRY(json_get_text(&reader, "name", arena, &name, error));
    snprintf(model->name, sizeof model->name, "%s", name);
    TRY(fields_read(&reader, FIELDS(model_fields), model, error));
    TRY(json_get_double(&reader, "rope_theta", 0, 1e12, &model->rope_theta, error));
    TRY(json_get_double(&reader, "rope_factor", 0, 1e12, &model->rope_scaling.factor, error));
    TRY(json_get_double(&reader, "rope_low", 0, 1e12, &model->rope_scaling.low, error));
    TRY(json_get_double(&reader, "rope_high", 0, 1e12, &model->rope_scaling.high, error));
    TRY(json_get_double(&reader, "rope_original", 0, 1e12, &model->rope_scaling.original, error));
    TRY(json_get_double(&reader, "norm_eps", 0, 1, &model->norm_eps, error));
    TRY(json_get_double(&reader, "experts_factor", 0, 1e6, &model->experts.sigmoid.factor, error));
    TRY(json_get_double(&reader, "experts_balance", 0, 1e6, &model->experts.balance, error));
    TRY(json_get_double(&reader, "rope_local", 0, 1e12, &model->rope_local, error));
    TRY(json_get_double(&reader, "attention_cap", 0, 1e12, &model->attention_cap, error));
    TRY(json_get_double(&reader, "logit_cap", 0, 1e12, &model->logit_cap, error));
    TRY(read_runs(&reader, arena, model, error));
    model->source = "run request";
    return model_check(model, error);
}

static Status read_order(const JsonReader *reader, Arena *arena, TrainPlan *plan, Error *error) {
    const json_t *lines = json_object_get(reader->object, "pp_order");
    FAIL_IF(!lines, error, STATUS_USAGE, "%s: plan.pp_order is missing", reader->origin);
    return order_json_read(lines, arena, plan, error);
}

static Status read_plan(const JsonReader *root, Arena *arena, TrainPlan *plan, Error *error) {
    JsonReader reader;
    const char *mesh, *order;
    TRY(read_object(root, "plan", &reader, error));
    TRY(json_get_text(&reader, "mesh", arena, &mesh, error));
    TRY(json_get_text(&reader, "order", arena, &order, error));
    TRY(mesh_parse(mesh, &plan->mesh, error));
    TRY(axis_order_parse(order, &plan->mesh.order, error));
    mesh_canonical_order(&plan->mesh);
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        const PlanField *field = &plan_fields[id];
        int value;
        TRY(read_int(&reader, field->name, field->low, field->high, &value, error));
        plan_set(plan, (PlanFieldId)id, value);
    }
    return read_order(&reader, arena, plan, error);
}

static Status read_text_or_null(const JsonReader *reader, const char *key, Arena *arena, const char **text,
                                Error *error) {
    TRY(json_get_text(reader, key, arena, text, error));
    *text = (*text)[0] ? *text : NULL;
    return STATUS_OK;
}

static Status read_numbers(const JsonReader *reader, RunOptions *options, Error *error) {
    TRY(read_u64(reader, "seed", 10, &options->seed, error));
    TRY(json_get_double(reader, "lr", 0, 1e6, &options->lr, error));
    TRY(json_get_double(reader, "beta1", 0, 1, &options->beta1, error));
    TRY(json_get_double(reader, "beta2", 0, 1, &options->beta2, error));
    TRY(json_get_double(reader, "eps", 0, 1, &options->eps, error));
    TRY(json_get_double(reader, "weight_decay", 0, 1e6, &options->weight_decay, error));
    return json_get_double(reader, "clip", 0, 1e30, &options->clip, error);
}

static Status read_options(const JsonReader *root, Arena *arena, RunOptions *options, Error *error) {
    JsonReader reader;
    int lanes, action;
    TRY(read_object(root, "options", &reader, error));
    TRY(read_int(&reader, "steps", 1, INT_MAX, &options->steps, error));
    TRY(read_numbers(&reader, options, error));
    TRY(read_text_or_null(&reader, "data_path", arena, &options->data_path, error));
    TRY(json_get_int(&reader, "data_tokens", 0, INT64_MAX, &options->data_tokens, error));
    TRY(json_get_text(&reader, "device", arena, &options->device, error));
    TRY(json_get_text(&reader, "transport", arena, &options->transport, error));
    TRY(read_int(&reader, "lanes", 0, LANES_COUNT - 1, &lanes, error));
    TRY(read_u64(&reader, "jitter_seed", 10, &options->jitter_seed, error));
    TRY(json_get_double(&reader, "timeout_s", 0, 1e9, &options->timeout_s, error));
    TRY(read_int(&reader, "threads", 0, 4096, &options->threads, error));
    TRY(json_get_bool_or(&reader, "spans", false, &options->spans, error));
    TRY(json_get_bool_or(&reader, "bitwise", false, &options->bitwise, error));
    TRY(json_get_bool_or(&reader, "deterministic", false, &options->deterministic, error));
    TRY(json_get_bool_or(&reader, "poison", false, &options->poison, error));
    TRY(read_text_or_null(&reader, "moments_path", arena, &options->moments_path, error));
    TRY(read_text_or_null(&reader, "weights_path", arena, &options->weights_path, error));
    TRY(read_int(&reader, "fault_action", 0, FAULT_COUNT - 1, &action, error));
    TRY(read_int(&reader, "fault_rank", -1, INT_MAX, &options->fault.rank, error));
    TRY(read_int(&reader, "fault_task", -1, INT_MAX, &options->fault.task, error));
    options->lanes = (LaneMode)lanes;
    TRY(read_int(&reader, "fault_step", 0, INT_MAX, &options->fault.step, error));
    TRY(json_get_double(&reader, "fault_delay_s", 0, 1e9, &options->fault.delay_s, error));
    options->fault.action = (FaultAction)action;
    return STATUS_OK;
}

static Status read_request(const JsonReader *reader, Arena *arena, RunRequest *request, Error *error) {
    const char *schema, *target;
    TRY(json_get_text(reader, "schema", arena, &schema, error));
    FAIL_IF(strcmp(schema, SCHEMA) != 0, error, STATUS_USAGE, "%s: schema is '%s', this worker reads %s",
            reader->origin, schema, SCHEMA);
    int job;
    TRY(read_model(reader, arena, &request->model, error));
    TRY(read_plan(reader, arena, &request->plan, error));
    TRY(read_options(reader, arena, &request->options, error));
    TRY(chip_prices_take(json_object_get(reader->object, "prices"), arena, &request->options.prices,
                         &request->options.price_count, error));
    TRY(json_get_text(reader, "target", arena, &target, error));
    TRY(target_find(target, &request->target, error));
    request->target = target_executed(request->target, arena);
    TRY(read_int(reader, "job", 0, JOB_COUNT - 1, &job, error));
    request->job = (WorkerJob)job;
    TRY(read_u64(reader, "template_hash", 16, &request->template_hash, error));
    TRY(read_int(reader, "segment_fd", -1, INT_MAX, &request->segment_fd, error));
    TRY(read_int(reader, "launcher_pid", 0, INT_MAX, &request->launcher_pid, error));
    TRY(json_get_text(reader, "result_path", arena, &request->result_path, error));
    return json_get_text(reader, "failure_path", arena, &request->failure_path, error);
}

static Status request_take(json_t *root, const char *origin, Arena *arena, RunRequest *request, Error *error) {
    *request = (RunRequest){0};
    const JsonReader reader = {.origin = origin, .path = "", .object = root};
    const Status status = read_request(&reader, arena, request, error);
    json_decref(root);
    return status;
}

Status run_request_load(const char *path, Arena *arena, RunRequest *request, Error *error) {
    json_t *root = NULL;
    TRY(json_file_load(path, &root, error));
    return request_take(root, path, arena, request, error);
}

Status run_request_parse(const char *text, Arena *arena, RunRequest *request, Error *error) {
    json_t *root = NULL;
    TRY(json_text_load(text, "run request", &root, error));
    return request_take(root, "run request", arena, request, error);
}

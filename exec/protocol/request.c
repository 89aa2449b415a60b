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

static const char SCHEMA[] = "ndtune.run-request/2";

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

typedef enum {
    FIELD_INT,
    FIELD_LONG,
    FIELD_FLAG,
    FIELD_REAL,
    FIELD_WORD,  // 64 bits do not fit a JSON number: they are sent as text
    FIELD_TEXT,
    FIELD_PATH  // "" is sent for NULL
} FieldKind;

// Numbers, flags and texts of a struct, by name: one table serves writing and reading.
typedef struct Field {
    const char *key;
    size_t offset;
    FieldKind kind;
    double low, high;
} Field;

#define FIELD(type, name, kind, low, high)                                                                             \
    { #name, offsetof(type, name), kind, low, high }
#define COUNT(type, name) FIELD(type, name, FIELD_INT, 1, INT_MAX)
#define COUNT_OR_NONE(type, name) FIELD(type, name, FIELD_INT, 0, INT_MAX)
#define INDEX_OR_NONE(type, name) FIELD(type, name, FIELD_INT, -1, INT_MAX)
#define CHOICE(type, name, count) FIELD(type, name, FIELD_INT, 0, (int)(count)-1)
#define FLAG(type, name) FIELD(type, name, FIELD_FLAG, 0, 1)
#define REAL(type, name, most) FIELD(type, name, FIELD_REAL, 0, most)
#define OTHER(type, name, kind) FIELD(type, name, kind, 0, 0)

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
    REAL(ModelSpec, rope_theta, 1e12),
    REAL(ModelSpec, rope_scaling.factor, 1e12),
    REAL(ModelSpec, rope_scaling.low, 1e12),
    REAL(ModelSpec, rope_scaling.high, 1e12),
    REAL(ModelSpec, rope_scaling.original, 1e12),
    REAL(ModelSpec, rope_local, 1e12),
    REAL(ModelSpec, norm_eps, 1),
    REAL(ModelSpec, experts.sigmoid.factor, 1e6),
    REAL(ModelSpec, experts.balance, 1e6),
    REAL(ModelSpec, attention_cap, 1e12),
    REAL(ModelSpec, logit_cap, 1e12),
};

static const Field option_fields[] = {
    COUNT(RunOptions, steps),
    OTHER(RunOptions, seed, FIELD_WORD),
    REAL(RunOptions, lr, 1e6),
    REAL(RunOptions, beta1, 1),
    REAL(RunOptions, beta2, 1),
    REAL(RunOptions, eps, 1),
    REAL(RunOptions, weight_decay, 1e6),
    REAL(RunOptions, clip, 1e30),
    OTHER(RunOptions, data_path, FIELD_PATH),
    OTHER(RunOptions, data_tokens, FIELD_LONG),
    OTHER(RunOptions, device, FIELD_TEXT),
    OTHER(RunOptions, transport, FIELD_TEXT),
    CHOICE(RunOptions, lanes, LANES_COUNT),
    OTHER(RunOptions, jitter_seed, FIELD_WORD),
    REAL(RunOptions, timeout_s, 1e9),
    FIELD(RunOptions, threads, FIELD_INT, 0, 4096),
    FLAG(RunOptions, spans),
    FLAG(RunOptions, bitwise),
    FLAG(RunOptions, deterministic),
    FLAG(RunOptions, poison),
    OTHER(RunOptions, moments_path, FIELD_PATH),
    OTHER(RunOptions, weights_path, FIELD_PATH),
    CHOICE(RunOptions, fault.action, FAULT_COUNT),
    INDEX_OR_NONE(RunOptions, fault.rank),
    INDEX_OR_NONE(RunOptions, fault.task),
    COUNT_OR_NONE(RunOptions, fault.step),
    REAL(RunOptions, fault.delay_s, 1e9),
};

static const Field request_fields[] = {
    CHOICE(RunRequest, job, JOB_COUNT),         OTHER(RunRequest, template_hash, FIELD_WORD),
    INDEX_OR_NONE(RunRequest, segment_fd),      COUNT_OR_NONE(RunRequest, launcher_pid),
    OTHER(RunRequest, result_path, FIELD_TEXT), OTHER(RunRequest, failure_path, FIELD_TEXT),
};

#define FIELDS(table) table, sizeof table / sizeof *table

static json_t *field_json(const Field *field, const void *at) {
    char word[24];
    switch (field->kind) {
    case FIELD_INT:
        return json_integer(*(const int *)at);
    case FIELD_LONG:
        return json_integer(*(const int64_t *)at);
    case FIELD_FLAG:
        return json_boolean(*(const bool *)at);
    case FIELD_REAL:
        return json_real(*(const double *)at);
    case FIELD_WORD:
        snprintf(word, sizeof word, "%" PRIu64, *(const uint64_t *)at);
        return json_string(word);
    case FIELD_TEXT:
    case FIELD_PATH:
        break;
    }
    const char *text = *(const char *const *)at;
    return json_string(text ? text : "");
}

// Adds them to the object. NULL: a text is not UTF-8.
static json_t *fields_json(json_t *object, const Field *fields, size_t count, const void *values) {
    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)values + fields[i].offset;
        if (json_object_set_new(object, fields[i].key, field_json(&fields[i], at)) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *model_json(const ModelSpec *model) {
    json_t *runs = json_array();
    for (int i = 0; i < model->run_count; i++) {
        json_array_append_new(runs, json_pack("{s:s, s:i}", "kind", layer_kinds[model->runs[i].kind].name, "count",
                                              model->runs[i].count));
    }
    return fields_json(json_pack("{s:s, s:o}", "name", model->name, "runs", runs), FIELDS(model_fields), model);
}

static json_t *plan_json(const TrainPlan *plan) {
    json_t *object = json_pack("{s:s, s:s, s:o}", "mesh", mesh_text(&plan->mesh, MESH_BUFFER), "order",
                               mesh_order_text(&plan->mesh, MESH_BUFFER), "pp_order", order_json(plan));
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        json_object_set_new(object, plan_fields[id].name, json_integer(plan_get(plan, (PlanFieldId)id)));
    }
    return object;
}

static json_t *request_json(const RunRequest *request) {
    char target[128];
    snprintf(target, sizeof target, "%s@%s", request->target->name, request->target->version);
    json_t *options = fields_json(json_object(), FIELDS(option_fields), &request->options);
    json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:s, s:o}", "schema", SCHEMA, "model", model_json(&request->model),
                               "plan", plan_json(&request->plan), "options", options, "target", target, "prices",
                               chip_prices_json(request->options.prices, request->options.price_count));
    return fields_json(object, FIELDS(request_fields), request);
}

static Status unwritable(Error *error) {
    return error_set(error, STATUS_USAGE,
                     "the run cannot be handed to its workers: a path or a name in it is not UTF-8");
}

Status run_request_save(const RunRequest *request, const char *path, Error *error) {
    json_t *root = request_json(request);
    FAIL_WITH(!root, unwritable(error));
    const Status status = json_file_save(path, root, error);
    json_decref(root);
    return status;
}

Status run_request_text(const RunRequest *request, Arena *arena, const char **text, Error *error) {
    json_t *root = request_json(request);
    char *words = root ? json_dumps(root, JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    FAIL_WITH(!words, unwritable(error));
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

static Status read_word(const JsonReader *reader, const char *key, uint64_t *value, Error *error) {
    const char *text = json_string_value(json_object_get(reader->object, key));
    char *end = NULL;
    *value = text ? strtoull(text, &end, 10) : 0;
    FAIL_IF(!text || *text == '\0' || *end != '\0', error, STATUS_USAGE, "%s: %s: must be a number as text",
            reader->origin, key);
    return STATUS_OK;
}

static Status read_path(const JsonReader *reader, const char *key, Arena *arena, const char **path, Error *error) {
    TRY(json_get_text(reader, key, arena, path, error));
    *path = (*path)[0] ? *path : NULL;
    return STATUS_OK;
}

static Status field_read(const JsonReader *reader, const Field *field, Arena *arena, void *at, Error *error) {
    switch (field->kind) {
    case FIELD_INT:
        return read_int(reader, field->key, (int)field->low, (int)field->high, at, error);
    case FIELD_LONG:
        return json_get_int(reader, field->key, 0, INT64_MAX, at, error);
    case FIELD_FLAG:
        return json_get_bool(reader, field->key, at, error);
    case FIELD_REAL:
        return json_get_double(reader, field->key, field->low, field->high, at, error);
    case FIELD_WORD:
        return read_word(reader, field->key, at, error);
    case FIELD_TEXT:
        return json_get_text(reader, field->key, arena, at, error);
    case FIELD_PATH:
        break;
    }
    return read_path(reader, field->key, arena, at, error);
}

static Status fields_read(const JsonReader *reader, const Field *fields, size_t count, Arena *arena, void *values,
                          Error *error) {
    for (size_t i = 0; i < count; i++) {
        TRY(field_read(reader, &fields[i], arena, (char *)values + fields[i].offset, error));
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
    TRY(json_get_object(root, "model", arena, &reader, error));
    TRY(json_get_text(&reader, "name", arena, &name, error));
    snprintf(model->name, sizeof model->name, "%s", name);
    TRY(fields_read(&reader, FIELDS(model_fields), arena, model, error));
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
    TRY(json_get_object(root, "plan", arena, &reader, error));
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

static Status read_request(const JsonReader *reader, Arena *arena, RunRequest *request, Error *error) {
    const char *schema, *target;
    JsonReader options;
    TRY(json_get_text(reader, "schema", arena, &schema, error));
    FAIL_IF(strcmp(schema, SCHEMA) != 0, error, STATUS_USAGE, "%s: schema is '%s', this worker reads %s",
            reader->origin, schema, SCHEMA);
    TRY(read_model(reader, arena, &request->model, error));
    TRY(read_plan(reader, arena, &request->plan, error));
    TRY(json_get_object(reader, "options", arena, &options, error));
    TRY(fields_read(&options, FIELDS(option_fields), arena, &request->options, error));
    TRY(chip_prices_take(json_object_get(reader->object, "prices"), arena, &request->options.prices,
                         &request->options.price_count, error));
    TRY(json_get_text(reader, "target", arena, &target, error));
    TRY(target_find(target, &request->target, error));
    request->target = target_executed(request->target, arena);
    return fields_read(reader, FIELDS(request_fields), arena, request, error);
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

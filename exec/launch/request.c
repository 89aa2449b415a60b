// The request as JSON, field by field; every field is required, so that two versions of the programs cannot misread
// each other.

#include "exec/launch/request.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "sim/base/json.h"

static const char SCHEMA[] = "ndtune.run-request/1";

const char *const lane_mode_names[LANES_COUNT] = {"serial", "async"};
const char *const fault_action_names[FAULT_COUNT] = {"none", "hang", "exit"};

RunOptions run_options_default(void) {
    return (RunOptions){
        .steps = 10,
        .seed = 1,
        .lr = 5e-4,  // tiny at batch 1 x 128 loses 1.8 nats in 10 steps; at 1e-3 rounding grows 10 times faster
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

static json_t *model_json(const ModelSpec *model) {
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:b}", "name", model->name, "layers",
                     model->layers, "hidden", model->hidden, "heads", model->heads, "kv_heads", model->kv_heads,
                     "head_dim", model->head_dim, "ffn", model->ffn, "vocab", model->vocab, "max_seq", model->max_seq,
                     "rope_theta", model->rope_theta, "norm_eps", model->norm_eps, "tied_embeddings",
                     model->tied_embeddings);
}

static json_t *plan_json(const TrainPlan *plan) {
    char mesh[MESH_TEXT_BYTES];
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "mesh", mesh_text(&plan->mesh, mesh), "seq",
                     plan->seq, "micro_batch", plan->micro_batch, "grad_accum", plan->grad_accum, "zero", plan->zero,
                     "reshard", (int)plan->reshard, "recompute", (int)plan->recompute, "cp_rotate",
                     (int)plan->cp_rotate, "precision", (int)plan->precision);
}

// 64-bit seeds do not fit a JSON number: they travel as text.
static json_t *options_json(const RunOptions *options) {
    char seed[24], jitter[24];
    snprintf(seed, sizeof seed, "%" PRIu64, options->seed);
    snprintf(jitter, sizeof jitter, "%" PRIu64, options->jitter_seed);
    return json_pack("{s:i, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:s, s:i, s:s, s:f, s:i, s:b, s:b, s:i, s:i, s:i}",
                     "steps", options->steps, "seed", seed, "lr", options->lr, "beta1", options->beta1, "beta2",
                     options->beta2, "eps", options->eps, "weight_decay", options->weight_decay, "clip", options->clip,
                     "device", options->device, "transport", options->transport, "lanes", (int)options->lanes,
                     "jitter_seed", jitter, "timeout_s", options->timeout_s, "threads", options->threads, "spans",
                     options->spans, "poison", options->poison, "fault_action", (int)options->fault.action,
                     "fault_rank", options->fault.rank, "fault_task", options->fault.task);
}

Status run_request_save(const RunRequest *request, const char *path, Error *error) {
    char hash[24], target[128];
    snprintf(hash, sizeof hash, "%016" PRIx64, request->template_hash);
    snprintf(target, sizeof target, "%s@%s", request->target->name, request->target->version);
    json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:s, s:s, s:i, s:i, s:s, s:s}", "schema", SCHEMA, "model",
                             model_json(&request->model), "plan", plan_json(&request->plan), "options",
                             options_json(&request->options), "target", target, "template_hash", hash, "segment_fd",
                             request->segment_fd, "launcher_pid", request->launcher_pid, "result_path",
                             request->result_path, "failure_path", request->failure_path);
    if (!root) {
        return error_set(error, STATUS_INTERNAL, "run request: cannot be written as JSON");
    }
    const Status status = json_file_save(path, root, error);
    json_decref(root);
    return status;
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
    if (!json_is_object(object)) {
        return error_set(error, STATUS_USAGE, "%s: %s: must be an object", reader->origin, key);
    }
    *inner = (JsonReader){.origin = reader->origin, .path = key, .object = object};
    return STATUS_OK;
}

static Status read_u64(const JsonReader *reader, const char *key, int base, uint64_t *value, Error *error) {
    const char *text = json_string_value(json_object_get(reader->object, key));
    char *end = NULL;
    *value = text ? strtoull(text, &end, base) : 0;
    if (!text || *text == '\0' || *end != '\0') {
        return error_set(error, STATUS_USAGE, "%s: %s: must be a number as text", reader->origin, key);
    }
    return STATUS_OK;
}

static Status read_model(const JsonReader *root, Arena *arena, ModelSpec *model, Error *error) {
    JsonReader reader;
    const char *name;
    TRY(read_object(root, "model", &reader, error));
    TRY(json_get_text(&reader, "name", arena, &name, error));
    snprintf(model->name, sizeof model->name, "%s", name);
    int *const counts[] = {&model->layers,   &model->hidden, &model->heads, &model->kv_heads,
                           &model->head_dim, &model->ffn,    &model->vocab, &model->max_seq};
    static const char *const keys[] = {"layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "max_seq"};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        TRY(read_int(&reader, keys[i], 1, INT_MAX, counts[i], error));
    }
    TRY(json_get_double(&reader, "rope_theta", 1, 1e12, &model->rope_theta, error));
    TRY(json_get_double(&reader, "norm_eps", 0, 1, &model->norm_eps, error));
    TRY(json_get_bool_or(&reader, "tied_embeddings", false, &model->tied_embeddings, error));
    model->source = "run request";
    return model_check(model, error);
}

static Status read_plan(const JsonReader *root, Arena *arena, TrainPlan *plan, Error *error) {
    JsonReader reader;
    const char *mesh;
    int reshard, recompute, rotate, precision;
    TRY(read_object(root, "plan", &reader, error));
    TRY(json_get_text(&reader, "mesh", arena, &mesh, error));
    TRY(mesh_parse(mesh, &plan->mesh, error));
    TRY(read_int(&reader, "seq", 1, INT_MAX, &plan->seq, error));
    TRY(read_int(&reader, "micro_batch", 1, INT_MAX, &plan->micro_batch, error));
    TRY(read_int(&reader, "grad_accum", 1, INT_MAX, &plan->grad_accum, error));
    TRY(read_int(&reader, "zero", 0, 3, &plan->zero, error));
    TRY(read_int(&reader, "reshard", 0, RESHARD_COUNT - 1, &reshard, error));
    TRY(read_int(&reader, "recompute", 0, RECOMPUTE_COUNT - 1, &recompute, error));
    TRY(read_int(&reader, "cp_rotate", 0, CP_ROTATE_COUNT - 1, &rotate, error));
    TRY(read_int(&reader, "precision", 0, DTYPE_COUNT - 1, &precision, error));
    plan->reshard = (Reshard)reshard;
    plan->recompute = (Recompute)recompute;
    plan->cp_rotate = (CpRotate)rotate;
    plan->precision = (Dtype)precision;
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
    TRY(json_get_text(&reader, "device", arena, &options->device, error));
    TRY(json_get_text(&reader, "transport", arena, &options->transport, error));
    TRY(read_int(&reader, "lanes", 0, LANES_COUNT - 1, &lanes, error));
    TRY(read_u64(&reader, "jitter_seed", 10, &options->jitter_seed, error));
    TRY(json_get_double(&reader, "timeout_s", 0, 1e9, &options->timeout_s, error));
    TRY(read_int(&reader, "threads", 0, 4096, &options->threads, error));
    TRY(json_get_bool_or(&reader, "spans", false, &options->spans, error));
    TRY(json_get_bool_or(&reader, "poison", false, &options->poison, error));
    TRY(read_int(&reader, "fault_action", 0, FAULT_COUNT - 1, &action, error));
    TRY(read_int(&reader, "fault_rank", -1, INT_MAX, &options->fault.rank, error));
    TRY(read_int(&reader, "fault_task", -1, INT_MAX, &options->fault.task, error));
    options->lanes = (LaneMode)lanes;
    options->fault.action = (FaultAction)action;
    return STATUS_OK;
}

static Status read_request(const JsonReader *reader, Arena *arena, RunRequest *request, Error *error) {
    const char *schema, *target;
    TRY(json_get_text(reader, "schema", arena, &schema, error));
    if (strcmp(schema, SCHEMA) != 0) {
        return error_set(error, STATUS_USAGE, "%s: schema is '%s', this worker reads %s", reader->origin, schema,
                         SCHEMA);
    }
    TRY(read_model(reader, arena, &request->model, error));
    TRY(read_plan(reader, arena, &request->plan, error));
    TRY(read_options(reader, arena, &request->options, error));
    TRY(json_get_text(reader, "target", arena, &target, error));
    TRY(target_find(target, &request->target, error));
    TRY(read_u64(reader, "template_hash", 16, &request->template_hash, error));
    TRY(read_int(reader, "segment_fd", -1, INT_MAX, &request->segment_fd, error));
    TRY(read_int(reader, "launcher_pid", 0, INT_MAX, &request->launcher_pid, error));
    TRY(json_get_text(reader, "result_path", arena, &request->result_path, error));
    return json_get_text(reader, "failure_path", arena, &request->failure_path, error);
}

Status run_request_load(const char *path, Arena *arena, RunRequest *request, Error *error) {
    json_t *root = NULL;
    TRY(json_file_load(path, &root, error));
    *request = (RunRequest){0};
    const JsonReader reader = {.origin = path, .path = "", .object = root};
    const Status status = read_request(&reader, arena, request, error);
    json_decref(root);
    return status;
}

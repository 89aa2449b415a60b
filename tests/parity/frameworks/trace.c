// Reads traces with jansson; walks a program's instances for its collectives.

#include "tests/parity/frameworks/trace.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b) {
    return strcmp(a, b);
}

static void folder_of(const char *framework, char *path, size_t size) {
    snprintf(path, size, "%s/tests/frameworks/traces/%s", NDTUNE_SOURCE_DIR, framework);
}

int trace_names(const char *framework, char names[][TRACE_NAME], int capacity) {
    char folder[1024];
    folder_of(framework, folder, sizeof folder);
    DIR *directory = opendir(folder);
    cr_assert_not_null(directory, "no folder %s", folder);
    int count = 0;
    for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        const size_t length = strlen(entry->d_name);
        if (length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0) {
            cr_assert_lt(count, capacity);
            snprintf(names[count++], TRACE_NAME, "%.*s", (int)length - 5, entry->d_name);
        }
    }
    closedir(directory);
    cr_assert_gt(count, 0);
    qsort(names, (size_t)count, sizeof names[0], compare_names);
    return count;
}

// ---- reading

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    cr_assert_not_null(text, "no text \"%s\"", key);
    return text;
}

static int64_t number_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_integer(value), "no integer \"%s\"", key);
    return json_integer_value(value);
}

static bool flag_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_boolean(value), "no boolean \"%s\"", key);
    return json_is_true(value);
}

static void set_text(char out[TRACE_TEXT], const char *text) {
    cr_assert_lt(strlen(text), TRACE_TEXT, "\"%s\" is too long", text);
    snprintf(out, TRACE_TEXT, "%s", text);
}

static const char *dtype_text(const char *torch_name) {
    return strcmp(torch_name, "bfloat16") == 0 ? "bf16" : strcmp(torch_name, "float32") == 0 ? "fp32" : torch_name;
}

// Its preset.
static const char *check_model(const json_t *model) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec tiny;
    const json_t *experts = json_object_get(model, "num_local_experts");
    const char *name = experts ? "tiny-moe" : "tiny";
    cr_assert_eq(model_find(name, &arena, &tiny, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(json_integer_value(experts), tiny.experts.count);
    cr_assert_eq(json_integer_value(json_object_get(model, "num_experts_per_tok")), tiny.experts.active);
    cr_assert_eq(number_of(model, "num_hidden_layers"), tiny.layers);
    cr_assert_eq(number_of(model, "hidden_size"), tiny.hidden);
    cr_assert_eq(number_of(model, "num_attention_heads"), tiny.heads);
    cr_assert_eq(number_of(model, "num_key_value_heads"), tiny.kv_heads);
    cr_assert_eq(number_of(model, "head_dim"), tiny.head_dim);
    cr_assert_eq(number_of(model, "intermediate_size"), tiny.ffn);
    cr_assert_eq(number_of(model, "vocab_size"), tiny.vocab);
    arena_free(&arena);
    return name;
}

static Recompute recompute_of(const json_t *root) {
    const char *name = text_of(root, "recompute");
    int choice = 0;
    while (choice < RECOMPUTE_COUNT && strcmp(name, recompute_names[choice]) != 0) {
        choice++;
    }
    cr_assert_lt(choice, RECOMPUTE_COUNT, "recompute \"%s\"", name);
    return (Recompute)choice;
}

// "accelerate-1.15" holds target accelerate@1.15. no_sync is what transformers' Trainer does over FSDP version 1: a
// target of its own.
static void target_of(const json_t *root, const char *folder, char out[TRACE_TEXT]) {
    if (strncmp(folder, "fsdp1", strlen("fsdp1")) == 0 && json_is_true(json_object_get(root, "no_sync"))) {
        folder = "accelerate-1.0";
    }
    set_text(out, folder);
    char *dash = strrchr(out, '-');
    cr_assert_not_null(dash, "folder %s names no version", folder);
    *dash = '@';
}

static int64_t number_or(const json_t *object, const char *key, int64_t fallback) {
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

static void read_live(const json_t *root, Trace *trace) {
    const json_t *gradients = json_object_get(root, "gradient_bytes");
    trace->kept_bytes_per_layer = number_or(root, "kept_bytes_per_layer", -1);
    trace->gradient_count = (int)json_array_size(gradients);
    cr_assert_leq(trace->gradient_count, TRACE_MAX_STEPS);
    for (int i = 0; i < trace->gradient_count; i++) {
        trace->whole_gradient_bytes[i] = number_of(json_array_get(gradients, (size_t)i), "whole");
        trace->shard_gradient_bytes[i] = number_of(json_array_get(gradients, (size_t)i), "shards");
    }
}

// Not said: the target's own. A stage of 0 is asked for as -1.
static int stage_of(const json_t *root) {
    const json_t *stage = json_object_get(root, "zero");
    return !stage ? 0 : json_integer_value(stage) == 0 ? -1 : (int)json_integer_value(stage);
}

static ReduceOverlap overlap_of(const json_t *root) {
    const json_t *said = json_object_get(root, "overlap_comm");
    return !said || stage_of(root) == 3 ? REDUCE_OVERLAP_TARGET
           : json_is_true(said)         ? REDUCE_OVERLAP_ON
                                        : REDUCE_OVERLAP_OFF;
}

static LossForm loss_of(const json_t *root) {
    const char *name = json_string_value(json_object_get(root, "loss"));
    return !name ? LOSS_TARGET : strcmp(name, "chunked") == 0 ? LOSS_CHUNKED : LOSS_WHOLE;
}

static void read_plan(const json_t *root, Trace *trace, const char *framework) {
    Error error = {0};
    const json_t *mesh = json_object_get(root, "mesh");
    const json_t *model = json_object_get(root, "model");
    const char *preset = check_model(model);
    snprintf(trace->mesh, sizeof trace->mesh, "dp_replicate=%d,dp_shard=%d,cp=%d,tp=%d,ep=%d",
             (int)number_of(mesh, "dp_replicate"), (int)number_of(mesh, "dp_shard"), (int)number_of(mesh, "cp"),
             (int)number_of(mesh, "tp"), (int)number_or(mesh, "ep", 1));
    cr_assert_eq(mesh_parse(trace->mesh, &trace->sizes, &error), STATUS_OK, "%s", error.message);
    trace->layers = (int)number_of(model, "num_hidden_layers");
    const json_t *whole = json_object_get(root, "most_unsharded_layers");
    trace->most_whole_layers = json_is_null(whole) ? -1 : (int)json_integer_value(whole);
    trace->loads_bf16 = strcmp(text_of(root, "load"), "bf16") == 0;
    target_of(root, framework, trace->target);
    const bool keeps = !flag_of(root, "reshard");
    trace->request = (LoweredRequest){
        .model = preset,
        .target = trace->target,
        .mesh = trace->mesh,
        .seq = (int)number_of(root, "seq"),
        .micro_batch = (int)number_of(root, "micro_batch"),
        .grad_accum = (int)number_of(root, "grad_accum"),
        .zero = stage_of(root),
        .reduce_overlap = overlap_of(root),
        .reshard = keeps ? RESHARD_NEVER : RESHARD_ALWAYS,
        .recompute = recompute_of(root),
        .cp_rotate = strcmp(text_of(root, "rotate"), "alltoall") == 0 ? CP_ROTATE_RING : CP_ROTATE_ALLGATHER,
        .bf16 = strcmp(text_of(root, "precision"), "bf16") == 0,
        .tied = flag_of(model, "tie_word_embeddings"),
        .loss = loss_of(root),
        .finetune = json_object_get(root, "finetune") ? FINETUNE_LORA : FINETUNE_FULL,
        .grad_sync = json_is_true(json_object_get(root, "sync_each_batch")) ? GRAD_SYNC_EACH : GRAD_SYNC_TARGET,
    };
}

static void read_storage(const json_t *storage, Trace *trace) {
    const json_t *dtypes = json_object_get(storage, "parameter_dtypes");
    cr_assert_eq(json_array_size(dtypes), 1, "parameters of several dtypes");
    set_text(trace->parameter_dtype, dtype_text(json_string_value(json_array_get(dtypes, 0)) + strlen("torch.")));
    trace->parameter_bytes = number_of(storage, "parameter_bytes");
    trace->moment_bytes = number_of(storage, "moment_bytes");
}

// Columns in the order of trace_collectives.py's event_line.
static void read_event(const json_t *row, TraceEvent *event) {
    cr_assert_eq(json_array_size(row), 8);
    event->micro_batch = (int)json_integer_value(json_array_get(row, 0));
    set_text(event->phase, json_string_value(json_array_get(row, 1)));
    set_text(event->place, json_string_value(json_array_get(row, 2)));
    const char *kind = json_string_value(json_array_get(row, 3));
    set_text(event->kind, strcmp(kind, "all_to_all") == 0 ? "transfer" : kind);  // permute_tensor is an all-to-all
    set_text(event->axes, json_string_value(json_array_get(row, 4)));
    event->bytes = json_integer_value(json_array_get(row, 5));
    set_text(event->dtype, dtype_text(json_string_value(json_array_get(row, 6))));
    set_text(event->origin, json_string_value(json_array_get(row, 7)));
}

void trace_read(const char *framework, const char *name, Trace *trace) {
    char path[2048];
    json_error_t error;
    folder_of(framework, path, sizeof path - 256);
    snprintf(path + strlen(path), 256, "/%s.json", name);
    json_t *root = json_load_file(path, 0, &error);
    cr_assert_not_null(root, "%s: %s", path, error.text);
    *trace = (Trace){0};
    snprintf(trace->name, sizeof trace->name, "%s", name);
    read_plan(root, trace, framework);
    read_storage(json_object_get(root, "storage"), trace);
    read_live(root, trace);
    trace->syncs_each_batch = json_is_true(json_object_get(root, "sync_each_batch"));
    const json_t *events = json_object_get(root, "events");
    trace->list.count = (int)json_array_size(events);
    cr_assert_leq(trace->list.count, TRACE_MAX_EVENTS);
    for (int i = 0; i < trace->list.count; i++) {
        read_event(json_array_get(events, (size_t)i), &trace->list.events[i]);
    }
    json_decref(root);
}

// ---- the program

static const char *phase_text(Phase phase) {
    switch (phase) {
    case PHASE_RECOMPUTE:
        return "recompute";
    case PHASE_BACKWARD:
    case PHASE_REDUCE:
        return "backward";
    case PHASE_OPTIMIZER:
        return "optimizer";
    default:
        return "forward";  // the loss belongs to the forward call of the model
    }
}

static const char *kind_text(TaskKind kind) {
    static const char *const names[] = {"all_gather", "reduce_scatter", "all_reduce", "transfer"};
    return kind == TASK_ALL_TO_ALL ? "transfer" : names[kind - TASK_ALL_GATHER];
}

// Of the shards of experts what ep leaves.
static void task_axes_text(const StepProgram *program, const Task *task, char out[TRACE_TEXT]) {
    out[0] = '\0';
    if (program->groups[task->group].axes & AXES_LEFT_BY_EP) {
        snprintf(out, TRACE_TEXT, "efsdp");
        return;
    }
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if ((program->groups[task->group].axes & AXIS_BIT(axis)) && program->plan.mesh.size[axis] > 1) {
            snprintf(out + strlen(out), TRACE_TEXT - strlen(out), "%s%s", out[0] ? "+" : "", axis_names[axis]);
        }
    }
}

// The layer of the loop around the task, else its unit, else what the segment is about.
static void place_text(const StepProgram *program, const StepCursor *cursor, const StepInstance *at,
                       char out[TRACE_TEXT]) {
    const Task *task = &program->tasks[at->task];
    const char *unit = task->unit >= 0 ? program->units[task->unit].name : "";
    if (cursor->depth == 2) {
        snprintf(out, TRACE_TEXT, "layer %d", at->layer + task->layer_guard);
    } else if (strcmp(unit, "layer") == 0 || strcmp(unit, "experts") == 0) {  // the first gather of backward
        snprintf(out, TRACE_TEXT, "layer %d", program->layers - 1);
    } else if (task->phase == PHASE_OPTIMIZER) {
        out[0] = '\0';
    } else if (unit[0]) {
        set_text(out, unit);
    } else {
        const bool edge = strncmp(program->segments[cursor->segment].name, "embedding", strlen("embedding")) == 0;
        set_text(out, edge ? "embedding" : "head");
    }
}

void trace_of_program(const StepProgram *program, EventList *list) {
    list->count = 0;
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program->tasks[instance.task];
        if (!task_is_collective(task) || program->groups[task->group].size == 1) {
            continue;
        }
        cr_assert_lt(list->count, TRACE_MAX_EVENTS);
        TraceEvent *event = &list->events[list->count++];
        *event = (TraceEvent){.micro_batch = instance.micro_step, .bytes = task->payload_bytes};
        set_text(event->phase, phase_text(task->phase));
        set_text(event->kind, kind_text(task->kind));
        set_text(event->dtype, dtype_name(task->dtype));
        task_axes_text(program, task, event->axes);
        place_text(program, &cursor, &instance, event->place);
    }
}

bool trace_event_equal(const TraceEvent *a, const TraceEvent *b) {
    const bool in_step = strcmp(a->phase, "optimizer") != 0;  // which is once per step
    return (!in_step || a->micro_batch == b->micro_batch) && strcmp(a->phase, b->phase) == 0 &&
           strcmp(a->place, b->place) == 0 && strcmp(a->kind, b->kind) == 0 && strcmp(a->axes, b->axes) == 0 &&
           a->bytes == b->bytes && strcmp(a->dtype, b->dtype) == 0;
}

void trace_event_print(const char *who, const TraceEvent *event) {
    if (!event) {
        fprintf(stderr, "  %-9s -\n", who);
        return;
    }
    fprintf(stderr, "  %-9s %d %s, %s: %s over %s, %lld bytes of %s %s\n", who, event->micro_batch, event->phase,
            event->place, event->kind, event->axes, (long long)event->bytes, event->dtype, event->origin);
}

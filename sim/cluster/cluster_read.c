// Profile file -> ClusterProfile. Strict: each field of the table must be there as {"value", "source", "grade"},
// nothing else may be, and every error names file, path and value. GEMM dtypes, attention kernels, group sizes and
// curves are the keys of their sections.

#include <stdio.h>
#include <string.h>

#include "sim/base/escape.h"
#include "sim/base/text.h"
#include "sim/cluster/cluster_fields.h"

enum { MAX_GROUP_RANKS = 1024 };

typedef struct Reading {
    const char *origin;
    json_t *root;
    Arena *arena;
    ClusterProfile *profile;
    ClusterSlots slots;
} Reading;

static JsonReader reader_at(const Reading *reading, json_t *object, const char *path) {
    return (JsonReader){.origin = reading->origin, .path = path, .object = object};
}

// The value at a dotted path, or NULL.
static json_t *value_at(json_t *root, const char *path) {
    char key[64];
    json_t *value = root;
    while (value && *path != '\0') {
        const size_t length = strcspn(path, ".");
        if (length >= sizeof key) {
            return NULL;
        }
        memcpy(key, path, length);
        key[length] = '\0';
        value = json_object_get(value, key);
        path += length + (path[length] == '.');
    }
    return value;
}

static Status error_at(const Reading *reading, const char *path, Error *error, const char *sentence,
                       const char *found) {
    return error_set(error, STATUS_USAGE, "%s: %s: %s%s%s", reading->origin, path, sentence, found ? ", got " : "",
                     found ? found : "");
}

// The text of row i of cluster_texts.
static Status read_text(const Reading *reading, int row, const char **text, Error *error) {
    const ClusterText *field = &cluster_texts[row];
    const json_t *found = value_at(reading->root, field->path);
    FAIL_WITH(!json_is_string(found) || json_string_value(found)[0] == '\0',
              error_at(reading, field->path, error, found ? "must be text that is not empty" : "missing", NULL));
    if (!text_is_line(json_string_value(found))) {
        return error_at(reading, field->path, error, "must be text without control characters or line ends",
                        json_string_value(found));
    }
    *text = arena_text(reading->arena, json_string_value(found));
    return STATUS_OK;
}

static Status read_name(const Reading *reading, int row, char *name, size_t bytes, Error *error) {
    const char *text = NULL;
    TRY(read_text(reading, row, &text, error));
    const size_t length = strlen(text);
    FAIL_WITH(length >= bytes, error_at(reading, cluster_texts[row].path, error,
                                        arena_format(reading->arena, "longer than %zu bytes", bytes - 1), text));
    memcpy(name, text, length + 1);
    return STATUS_OK;
}

static Status read_class(const Reading *reading, int row, Error *error) {
    const char *text = NULL;
    TRY(read_text(reading, row, &text, error));
    const int found = text_index(device_class_names, DEVICE_CLASS_COUNT, text);
    FAIL_WITH(found < 0, error_at(reading, cluster_texts[row].path, error, "must be \"gpu\" or \"cpu\"", text));
    reading->profile->accelerator.device_class = (DeviceClass)found;
    return STATUS_OK;
}

static Status read_texts(const Reading *reading, Error *error) {
    ClusterProfile *profile = reading->profile;
    const char *schema = NULL;
    TRY(read_text(reading, 0, &schema, error));
    FAIL_WITH(strcmp(schema, CLUSTER_SCHEMA) != 0,
              error_at(reading, "schema", error, "must be \"" CLUSTER_SCHEMA "\"", schema));
    TRY(read_name(reading, 1, profile->name, sizeof profile->name, error));
    TRY(read_text(reading, 2, &profile->description, error));
    TRY(read_text(reading, 3, &profile->stack, error));
    TRY(read_text(reading, 4, &profile->date, error));
    TRY(read_name(reading, 5, profile->accelerator.name, sizeof profile->accelerator.name, error));
    return read_class(reading, 6, error);
}

// Which dtypes have GEMM rates: the keys of accelerator.gemm.
static Status read_dtypes(const Reading *reading, unsigned *mask, Error *error) {
    const char *key;
    json_t *rates;
    *mask = 0;
    json_object_foreach(value_at(reading->root, "accelerator.gemm"), key, rates) {
        Dtype dtype;
        FAIL_WITH(
            !dtype_parse(key, &dtype) || dtype == DTYPE_INT32,
            error_at(reading, "accelerator.gemm", error, "dtypes are fp32, bf16, fp16, fp8, fp8_block and nvfp4", key));
        *mask |= 1u << dtype;
    }
    return *mask ? STATUS_OK : error_at(reading, "accelerator.gemm", error, "needs rates of at least one dtype", NULL);
}

// Which attention kernels: keys "kernel-headdim" of accelerator.attention.
static Status read_kernels(const Reading *reading, Error *error) {
    static const char path[] = "accelerator.attention";
    Accelerator *accelerator = &reading->profile->accelerator;
    const char *key;
    json_t *rates;
    accelerator->attention_count = 0;
    json_object_foreach(value_at(reading->root, path), key, rates) {
        FAIL_WITH(accelerator->attention_count == CLUSTER_MAX_ATTENTION,
                  error_at(reading, path, error,
                           arena_format(reading->arena, "more than %d kernels", CLUSTER_MAX_ATTENTION), NULL));
        AttentionRate *rate = &accelerator->attention[accelerator->attention_count];
        const char *dash = strrchr(key, '-');
        const size_t length = dash ? (size_t)(dash - key) : 0;
        int64_t head_dim = 0;
        FAIL_WITH(length == 0 || length >= sizeof rate->kernel || !text_parse_int(dash + 1, &head_dim) ||
                      head_dim < 1 || head_dim > 65536,
                  error_at(reading, path, error, "kernels are named kernel-headdim, such as flash-128", key));
        memcpy(rate->kernel, key, length);
        rate->kernel[length] = '\0';
        rate->head_dim = (int)head_dim;
        accelerator->attention_count++;
    }
    return accelerator->attention_count > 0
               ? STATUS_OK
               : error_at(reading, path, error, "needs at least one kernel, such as flash-128", NULL);
}

// Which group sizes have curves of their own: the keys of node.groups, ascending.
static Status read_groups(const Reading *reading, Error *error) {
    static const char path[] = "node.groups";
    Node *node = &reading->profile->node;
    const char *key;
    json_t *rates;
    json_object_foreach(value_at(reading->root, path), key, rates) {
        FAIL_WITH(node->group_count == CLUSTER_MAX_GROUPS,
                  error_at(reading, path, error, arena_format(reading->arena, "more than %d sizes", CLUSTER_MAX_GROUPS),
                           NULL));
        int64_t ranks = 0;
        char canonical[16];
        const int before = node->group_count > 0 ? node->groups[node->group_count - 1].ranks : 1;
        const bool counts = text_parse_int(key, &ranks) && ranks > before && ranks <= MAX_GROUP_RANKS;
        snprintf(canonical, sizeof canonical, "%d", counts ? (int)ranks : 0);
        FAIL_WITH(!counts || strcmp(key, canonical) != 0,
                  error_at(reading, path, error, "keys are numbers of ranks from 2 on, ascending", key));
        node->groups[node->group_count++].ranks = (int)ranks;
    }
    return STATUS_OK;
}

// Whose running costs were calibrated here: the keys of targets, "name@version" with _ for the version's dots.
static Status read_targets(const Reading *reading, Error *error) {
    static const char path[] = "targets";
    ClusterProfile *profile = reading->profile;
    const char *key;
    json_t *costs;
    json_object_foreach(value_at(reading->root, path), key, costs) {
        FAIL_WITH(
            profile->target_count == CLUSTER_MAX_TARGETS,
            error_at(reading, path, error, arena_format(reading->arena, "more than %d", CLUSTER_MAX_TARGETS), NULL));
        ClusterTarget *target = &profile->targets[profile->target_count];
        const char *at = strchr(key, '@');
        FAIL_WITH(!at || at == key || at[1] == '\0' || strlen(key) >= sizeof target->name || strchr(key, '.'),
                  error_at(reading, path, error, "keys are name@version with _ for ., such as ndtune@1", key));
        snprintf(target->name, sizeof target->name, "%s", key);
        for (char *p = target->name + (at - key); *p; p++) {
            *p = *p == '_' ? '.' : *p;
        }
        profile->target_count++;
    }
    return STATUS_OK;
}

static Status read_grade(const Reading *reading, const JsonReader *leaf, Grade *grade, Error *error) {
    const char *name = NULL;
    TRY(json_get_text(leaf, "grade", reading->arena, &name, error));
    for (int i = 0; i < GRADE_COUNT; i++) {
        if (strcmp(name, grade_name((Grade)i)) == 0) {
            *grade = (Grade)i;
            return STATUS_OK;
        }
    }
    return json_error(leaf, "grade", error, "must be measured, fitted, datasheet, estimated or user, got \"%s\"", name);
}

static Status read_origin(const Reading *reading, const JsonReader *leaf, Provenance *row, Error *error) {
    TRY(json_get_text(leaf, "source", reading->arena, &row->source, error));
    JSON_FAIL_IF(row->source[0] == '\0', leaf, "source", error, "must not be empty: say where the number comes from");
    return read_grade(reading, leaf, &row->grade, error);
}

static Status read_slot(const Reading *reading, const ClusterSlot *slot, Provenance *row, Error *error) {
    static const char *const keys[] = {"value", "source", "grade"};
    json_t *object = value_at(reading->root, slot->path);
    if (!object && slot->field->need != FIELD_REQUIRED) {
        *row = (Provenance){.path = slot->path, .source = "not known", .grade = GRADE_ESTIMATED};
        cluster_slot_store(slot, 0);
        return STATUS_OK;
    }
    FAIL_WITH(!json_is_object(object), error_at(reading, slot->path, error,
                                                object ? "must be an object with value, source and grade"
                                                       : "missing, must be an object with value, source and grade",
                                                NULL));
    const JsonReader leaf = reader_at(reading, object, slot->path);
    const ClusterField *field = slot->field;
    double value = 0.0;
    if (field->type == FIELD_INTEGER) {
        int64_t number = 0;
        TRY(json_get_int(&leaf, "value", (int64_t)field->low, (int64_t)field->high, &number, error));
        value = (double)number;
    } else {
        TRY(json_get_double(&leaf, "value", field->low, field->high, &value, error));
    }
    *row = (Provenance){.path = slot->path, .value = value};
    TRY(read_origin(reading, &leaf, row, error));
    cluster_slot_store(slot, value);
    return json_reader_finish(&leaf, keys, sizeof keys / sizeof keys[0], error);
}

// Of what has points: a curve, the products. The row has path and value.
static Status read_points_origin(const Reading *reading, Provenance *row, Error *error) {
    static const char *const keys[] = {"points", "source", "grade"};
    const JsonReader leaf = reader_at(reading, value_at(reading->root, row->path), row->path);
    if (!leaf.object) {  // the key was not written the one way, such as all_reduce-02x8
        return error_at(reading, row->path, error, "a curve must be named exactly so", NULL);
    }
    TRY(read_origin(reading, &leaf, row, error));
    return json_reader_finish(&leaf, keys, sizeof keys / sizeof keys[0], error);
}

static Status unknown_field(const Reading *reading, const char *path, Error *error) {
    const int count = reading->slots.count + CLUSTER_TEXT_COUNT;
    const char **paths = ARENA_ARRAY(reading->arena, const char *, count);
    for (int i = 0; i < reading->slots.count; i++) {
        paths[i] = reading->slots.rows[i].path;
    }
    for (int i = 0; i < CLUSTER_TEXT_COUNT; i++) {
        paths[reading->slots.count + i] = cluster_texts[i].path;
    }
    const Status status = error_at(reading, path, error, "unknown field", NULL);
    if (cluster_short_name(path)) {
        return error_hint(error, "%s is a short name for --set: a file says %s", path, cluster_short_name(path));
    }
    const char *nearest = text_nearest(path, paths, (size_t)count);
    return nearest ? error_hint(error, "did you mean %s?", nearest) : status;
}

// 1: a field; 0: a section above fields; -1: neither.
static int path_kind(const Reading *reading, const char *path) {
    const size_t length = strlen(path);
    int kind = -1;
    for (int i = 0; i < reading->slots.count + CLUSTER_TEXT_COUNT; i++) {
        const char *known =
            i < reading->slots.count ? reading->slots.rows[i].path : cluster_texts[i - reading->slots.count].path;
        if (strncmp(known, path, length) == 0 && (known[length] == '\0' || known[length] == '.')) {
            kind = known[length] == '\0' ? 1 : kind == 1 ? 1 : 0;
        }
    }
    return kind;
}

// Nothing but known fields below `object`.
static Status refuse_unknown(const Reading *reading, json_t *object, const char *prefix, Error *error) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        if (prefix[0] == '\0' && (strcmp(key, "curves") == 0 || strcmp(key, "extends") == 0 ||
                                  strcmp(key, "calibration") == 0 || strcmp(key, CLUSTER_PRODUCTS_PATH) == 0)) {
            continue;  // read by cluster_curves.c, _extend.c, _calibration.c and _products.c, just as strictly
        }
        const char *path = arena_format(reading->arena, "%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", key);
        const int kind = strchr(key, '.') ? -1 : path_kind(reading, path);
        if (kind < 0) {
            return unknown_field(reading, path, error);
        }
        if (kind == 0 && !json_is_object(value)) {
            return error_at(reading, path, error, "must be an object", NULL);
        }
        if (kind == 0) {
            TRY(refuse_unknown(reading, value, path, error));
        }
    }
    return STATUS_OK;
}

static Status read_provenance(Reading *reading, Error *error) {
    ClusterProfile *profile = reading->profile;
    const int numbers = reading->slots.count;
    const int products = cluster_product_rows(profile), count = numbers + profile->curve_count + products;
    Provenance *rows = ARENA_ARRAY(reading->arena, Provenance, count);
    for (int i = 0; i < numbers; i++) {
        TRY(read_slot(reading, &reading->slots.rows[i], &rows[i], error));
    }
    for (int i = 0; i < profile->curve_count; i++) {
        const MeasuredCurve *curve = &profile->curves[i];
        rows[numbers + i] = (Provenance){.path = cluster_curve_path(curve, reading->arena), .value = curve->count};
        TRY(read_points_origin(reading, &rows[numbers + i], error));
    }
    if (products > 0) {
        rows[count - 1] = (Provenance){.path = CLUSTER_PRODUCTS_PATH, .value = profile->accelerator.product_count};
        TRY(read_points_origin(reading, &rows[count - 1], error));
    }
    profile->provenance = rows;
    profile->provenance_count = count;
    return STATUS_OK;
}

static Status read_root(Reading *reading, Error *error) {
    unsigned dtypes = 0;
    TRY(read_texts(reading, error));
    TRY(read_dtypes(reading, &dtypes, error));
    TRY(read_kernels(reading, error));
    TRY(read_groups(reading, error));
    TRY(read_targets(reading, error));
    const JsonReader root = reader_at(reading, reading->root, "");
    TRY(cluster_curves_read(&root, reading->arena, reading->profile, error));
    TRY(cluster_products_read(&root, reading->arena, reading->profile, error));
    TRY(cluster_calibration_read(&root, reading->arena, reading->profile, error));
    cluster_order(reading->profile);
    reading->slots = cluster_slots(reading->profile, dtypes, reading->arena);
    TRY(refuse_unknown(reading, reading->root, "", error));
    TRY(read_provenance(reading, error));
    const Status status = cluster_check(reading->profile, error);
    return status == STATUS_OK ? status : error_wrap(error, "%s", reading->origin);
}

Status cluster_read(json_t *root, const char *origin, Arena *arena, ClusterProfile *profile, Error *error) {
    FAIL_IF(!json_is_object(root), error, STATUS_USAGE, "%s: must be a JSON object", origin);
    json_t *whole = NULL;
    TRY(cluster_extend(root, origin, arena, &whole, error));
    const json_t *extends = json_object_get(root, "extends");
    ClusterProfile read = {.extends = extends ? arena_text(arena, json_string_value(extends)) : NULL};
    Reading reading = {.origin = origin, .root = whole, .arena = arena, .profile = &read};
    const Status status = read_root(&reading, error);
    json_decref(whole);
    if (status == STATUS_OK) {
        *profile = read;
    }
    return status;
}

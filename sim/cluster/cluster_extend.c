// A profile file that names a parent ("extends": "dgx-h100") states only what differs. Merging follows JSON merge patch
// (RFC 7396): sections merge, a number or curve replaces the parent's as a whole with its source and grade, null
// removes. Schema, name and description are never inherited. Parents are built-in profiles, so that a file does not
// depend on its location.

#include "sim/base/text.h"
#include "sim/cluster/cluster_fields.h"

enum { MAX_GENERATIONS = 4 };

// A number, a curve or a text: replaced as a whole. A section: merged key by key.
static bool is_section(const json_t *value) {
    return json_is_object(value) && !json_object_get(value, "value") && !json_object_get(value, "points");
}

static Status merge(json_t *into, json_t *from, const JsonReader *at, Arena *arena, Error *error) {
    const char *key;
    json_t *value;
    json_object_foreach(from, key, value) {
        json_t *inherited = json_object_get(into, key);
        if (json_is_null(value)) {
            JSON_FAIL_IF(!inherited, at, key, error,
                         "null removes what the extended profile has, and it has no such key");
            json_object_del(into, key);
        } else if (is_section(inherited) && json_is_object(value)) {
            const char *dot = at->path[0] == '\0' ? "" : ".";
            const JsonReader below = {
                .origin = at->origin, .path = arena_format(arena, "%s%s%s", at->path, dot, key), .object = value};
            TRY(merge(inherited, value, &below, arena, error));
        } else {
            json_object_set(into, key, value);
        }
    }
    return STATUS_OK;
}

static const EmbeddedProfile *parent_find(const char *name) {
    return TEXT_FIND(embedded_profiles, embedded_profile_count, name, name);
}

static Status unknown_parent(const char *name, const char *origin, Error *error) {
    const Status status =
        error_set(error, STATUS_USAGE, "%s: extends: must name a built-in profile, got \"%.64s\"", origin, name);
    const char *nearest = text_nearest(name, embedded_profile_names, (size_t)embedded_profile_count);
    return nearest ? error_hint(error, "did you mean %s?", nearest) : status;
}

static Status extend(json_t *root, const char *origin, int generation, Arena *arena, json_t **whole, Error *error) {
    const json_t *extends = json_object_get(root, "extends");
    if (!extends) {
        *whole = json_incref(root);
        return STATUS_OK;
    }
    FAIL_IF(!json_is_string(extends), error, STATUS_USAGE, "%s: extends: must be the name of a built-in profile",
            origin);
    const EmbeddedProfile *parent = parent_find(json_string_value(extends));
    if (!parent) {
        return unknown_parent(json_string_value(extends), origin, error);
    }
    FAIL_IF(generation == MAX_GENERATIONS, error, STATUS_USAGE, "%s: extends: more than %d profiles in a row", origin,
            MAX_GENERATIONS);
    json_t *parent_root = NULL, *merged = NULL;
    Status status = json_text_load(parent->text, parent->name, &parent_root, error);
    if (status == STATUS_OK) {
        status = extend(parent_root, parent->name, generation + 1, arena, &merged, error);
    }
    if (status == STATUS_OK) {
        json_object_del(merged, "schema");
        json_object_del(merged, "name");
        json_object_del(merged, "description");
        status = merge(merged, root, &(JsonReader){.origin = origin, .path = "", .object = root}, arena, error);
    }
    json_decref(parent_root);
    if (status == STATUS_OK) {
        *whole = merged;
    } else {
        json_decref(merged);
    }
    return status;
}

Status cluster_extend(json_t *root, const char *origin, Arena *arena, json_t **whole, Error *error) {
    return extend(root, origin, 0, arena, whole, error);
}

// schema.json is for editors and other programs; ndtune checks with the field table. They must agree.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/cluster/cluster_fields.h"

static Arena arena;
static json_t *schema;
static ClusterSlots slots;
static ClusterProfile profile;

static void begin(void) {
    Error error = {0};
    cr_assert_eq(json_file_load(NDTUNE_SOURCE_DIR "/cluster-profiles/schema.json", &schema, &error), STATUS_OK, "%s",
                 error.message);
    profile.accelerator.attention_count = 1;
    profile.accelerator.attention[0] = (AttentionRate){.kernel = "flash", .head_dim = 128};
    profile.node.group_count = 1;
    profile.node.groups[0].ranks = 2;
    profile.target_count = 1;
    snprintf(profile.targets[0].name, sizeof profile.targets[0].name, "ndtune@1");
    slots = cluster_slots(&profile, 1u << DTYPE_BF16, &arena);
}

static void end(void) {
    json_decref(schema);
    arena_free(&arena);
}

TestSuite(cluster_schema, .init = begin, .fini = end);

// The schema of one key below `object`: a named property, or the pattern that gemm, attention and group entries follow.
static json_t *step(json_t *object, const char *key) {
    json_t *named = json_object_get(json_object_get(object, "properties"), key);
    json_t *other = json_object_get(object, "additionalProperties");
    return named ? named : json_is_object(other) ? other : NULL;
}

static json_t *schema_at(const char *path) {
    json_t *object = schema;
    char key[64];
    while (object && *path != '\0') {
        const size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        object = step(object, key);
        path += length + (path[length] == '.');
    }
    return object;
}

Test(cluster_schema, every_field_is_described_with_its_range_type_and_unit) {
    for (int i = 0; i < slots.count; i++) {
        const ClusterField *field = slots.rows[i].field;
        json_t *leaf = schema_at(slots.rows[i].path);
        cr_assert_not_null(leaf, "%s is not in schema.json", slots.rows[i].path);
        const json_t *value = json_object_get(json_object_get(leaf, "properties"), "value");
        cr_assert_eq(json_number_value(json_object_get(value, "minimum")), field->low, "%s", slots.rows[i].path);
        cr_assert_eq(json_number_value(json_object_get(value, "maximum")), field->high, "%s", slots.rows[i].path);
        cr_assert_str_eq(json_string_value(json_object_get(value, "type")),
                         field->type == FIELD_INTEGER ? "integer" : "number");
        char unit[64];
        snprintf(unit, sizeof unit, "unit: %s", field->unit);
        cr_assert_str_eq(json_string_value(json_object_get(leaf, "description")), unit, "%s", slots.rows[i].path);
    }
}

// Numbers described below `object`; no section may allow unknown fields.
static int count_numbers(json_t *object) {
    json_t *properties = json_object_get(object, "properties");
    json_t *entries = json_object_get(object, "additionalProperties");
    if (json_object_get(object, "allOf")) {
        return 1;
    }
    if (json_is_object(entries)) {
        return count_numbers(entries);  // a reference to the form of a curve holds none
    }
    if (!properties) {
        return 0;  // a text
    }
    cr_assert(json_is_false(entries), "a section allows unknown fields");
    int count = 0;
    const char *key;
    json_t *child;
    json_object_foreach(properties, key, child) {
        count += count_numbers(child);
    }
    return count;
}

Test(cluster_schema, nothing_is_described_that_does_not_exist) {
    cr_assert_eq(count_numbers(schema), slots.count);
}

Test(cluster_schema, a_file_that_extends_nothing_needs_every_section) {
    json_t *always = json_object_get(schema, "required");
    json_t *otherwise = json_object_get(json_object_get(schema, "then"), "required");
    const size_t optional = 5;  // extends, curves, products, targets, calibration
    cr_assert_eq(json_array_size(always) + json_array_size(otherwise) + optional,
                 json_object_size(json_object_get(schema, "properties")));
}

Test(cluster_schema, texts_are_described) {
    for (int i = 0; i < CLUSTER_TEXT_COUNT; i++) {
        cr_assert_not_null(schema_at(cluster_texts[i].path), "%s", cluster_texts[i].path);
    }
    cr_assert_str_eq(json_string_value(json_object_get(schema_at("schema"), "const")), CLUSTER_SCHEMA);
}

// The form of one key in the part of the schema that holds for files that extend nothing: entries of gemm, attention
// and groups are wrapped, because null is one.
static json_t *whole_step(json_t *object, const char *key) {
    json_t *entry = json_object_get(object, "additionalProperties");
    json_t *named = json_object_get(json_object_get(object, "properties"), key);
    return named ? named : json_object_get(entry, "then");
}

static bool requires(const json_t *object, const char *key) {
    const json_t *required = json_object_get(object, "required");
    for (size_t i = 0; i < json_array_size(required); i++) {
        if (strcmp(json_string_value(json_array_get(required, i)), key) == 0) {
            return true;
        }
    }
    return false;
}

Test(cluster_schema, a_file_that_extends_nothing_must_state_every_number) {
    for (int i = 0; i < slots.count; i++) {
        const char *path = slots.rows[i].path;
        if (strncmp(path, "targets.", 8) == 0) {
            continue;  // what ndtune calibrate adds
        }
        if (slots.rows[i].field->need != FIELD_REQUIRED) {
            continue;  // 0 where it is left out
        }
        json_t *object = json_object_get(schema, "then");
        char key[64];
        for (const char *at = path; *at != '\0';) {
            const size_t length = strcspn(at, ".");
            snprintf(key, sizeof key, "%.*s", (int)length, at);
            const bool named = json_object_get(object, "properties") != NULL;
            const bool optional = !named || strcmp(key, "groups") == 0;
            cr_assert(optional || requires(object, key), "%s: %s may be left out", path, key);
            object = whole_step(object, key);
            cr_assert_not_null(object, "%s is not in the schema's form of a whole file", path);
            at += length + (at[length] == '.');
        }
        cr_assert_str_eq(json_string_value(json_object_get(object, "type")), "object", "%s may be null", path);
    }
}

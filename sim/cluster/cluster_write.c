// ClusterProfile -> profile file, self-contained (inherited values are written out), in field-table order. Reading
// the text back gives the same profile, values bit for bit: 15 digits where they are enough for every number of the
// profile (they keep 0.96 readable), else 17.

#include <stdlib.h>
#include <string.h>

#include "sim/cluster/cluster_fields.h"

// The object that holds the last word of path, made on the way; *word is that last word.
static json_t *section_for(json_t *root, const char *path, const char **word) {
    char key[64];
    json_t *section = root;
    for (const char *dot = strchr(path, '.'); dot; dot = strchr(path, '.')) {
        const size_t length = (size_t)(dot - path);
        ASSERT(length < sizeof key);
        memcpy(key, path, length);
        key[length] = '\0';
        json_t *child = json_object_get(section, key);
        if (!child) {
            child = json_object();
            json_object_set_new(section, key, child);
        }
        section = child;
        path = dot + 1;
    }
    *word = path;
    return section;
}

static void put(json_t *root, const char *path, json_t *value) {
    const char *word = NULL;
    json_t *section = section_for(root, path, &word);
    json_object_set_new(section, word, value);
}

static json_t *number_json(const ClusterSlot *slot) {
    const double value = cluster_slot_value(slot);
    const bool whole = value == (double)(json_int_t)value && value < 0x1p53;
    return slot->field->type == FIELD_INTEGER || whole ? json_integer((json_int_t)value) : json_real(value);
}

static void put_leaf(json_t *root, const Provenance *row, const char *what, json_t *value) {
    json_t *leaf = json_object();
    json_object_set_new(leaf, what, value);
    json_object_set_new(leaf, "source", json_string(row->source));
    json_object_set_new(leaf, "grade", json_string(grade_name(row->grade)));
    put(root, row->path, leaf);
}

static json_t *profile_json(const ClusterProfile *profile, const ClusterSlots *slots, Arena *arena) {
    const char *texts[CLUSTER_TEXT_COUNT] = {CLUSTER_SCHEMA,
                                             profile->name,
                                             profile->description,
                                             profile->stack,
                                             profile->date,
                                             profile->accelerator.name,
                                             device_class_names[profile->accelerator.device_class]};
    json_t *root = json_object();
    for (int i = 0; i < CLUSTER_TEXT_COUNT; i++) {
        put(root, cluster_texts[i].path, json_string(texts[i]));
    }
    for (int i = 0; i < slots->count; i++) {
        put_leaf(root, &profile->provenance[i], "value", number_json(&slots->rows[i]));
    }
    for (int i = 0; i < profile->curve_count; i++) {
        put_leaf(root, &profile->provenance[slots->count + i], "points", cluster_curve_points(&profile->curves[i]));
    }
    if (cluster_product_rows(profile)) {
        put_leaf(root, &profile->provenance[slots->count + profile->curve_count], "points",
                 cluster_products_points(&profile->accelerator, arena));
    }
    if (profile->calibration) {
        json_object_set_new(root, "calibration", cluster_calibration_json(profile->calibration));
    }
    return root;
}

static bool round_trips(double value, int digits) {
    char text[64];
    snprintf(text, sizeof text, "%.*g", digits, value);
    return strtod(text, NULL) == value;
}

Status cluster_write(const ClusterProfile *profile, char **text, Error *error) {
    Arena arena = {0};
    ClusterProfile copy = *profile;
    const ClusterSlots slots = cluster_slots(&copy, cluster_dtypes(profile), &arena);
    ASSERT(slots.count + profile->curve_count + cluster_product_rows(profile) == profile->provenance_count);
    size_t digits = 15;
    for (int i = 0; i < slots.count; i++) {
        digits = round_trips(cluster_slot_value(&slots.rows[i]), 15) ? digits : 17;
    }
    for (int i = 0; i < profile->curve_count; i++) {
        for (int point = 0; point < profile->curves[i].count; point++) {
            const MeasuredCurve *curve = &profile->curves[i];
            digits = round_trips(curve->bytes[point], 15) && round_trips(curve->seconds[point], 15) ? digits : 17;
        }
    }
    for (int i = 0; i < profile->accelerator.product_count; i++) {
        digits = round_trips(profile->accelerator.products[i].seconds, 15) ? digits : 17;
    }
    json_t *root = profile_json(profile, &slots, &arena);
    *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(digits));
    json_decref(root);
    arena_free(&arena);
    return *text ? STATUS_OK : error_set(error, STATUS_INTERNAL, "profile %s: cannot encode as JSON", profile->name);
}

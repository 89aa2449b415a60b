// --set KEY=VALUE: overrides one number of a profile. KEY is a path of the field table or one of the short names below,
// which are in the units that people use. The result is checked like a file; on any error the profile is left as it
// was. Measured curves and times of the changed part of the machine are dropped, else they would hide it.

#include <math.h>
#include <string.h>

#include "sim/base/text.h"
#include "sim/cluster/cluster_fields.h"

typedef struct Alias {
    const char *name;
    const char *path;
    double scale;  // SI per unit of the alias
    bool per_nic;  // the alias is the sum over the node's NICs
} Alias;

static const Alias aliases[] = {
    {"node.gpus", "node.accelerators", 1.0, false},
    {"fabric.node_gbps", "fabric.nic_bytes_per_s", 1e9 / 8.0, true},  // Gbit/s of the whole node
    {"fabric.nic_gbps", "fabric.nic_bytes_per_s", 1e9 / 8.0, false},  // Gbit/s of one NIC
    {"price", "price_usd_per_accelerator_hour", 1.0, false},
    {"uncertainty", "relative_uncertainty", 1.0, false},
};

enum { ALIAS_COUNT = sizeof aliases / sizeof aliases[0] };

static const Alias *alias_find(const char *key) {
    return TEXT_FIND(aliases, ALIAS_COUNT, name, key);
}

const char *cluster_short_name(const char *key) {
    const Alias *alias = alias_find(key);
    return alias ? alias->path : NULL;
}

static int slot_find(const ClusterSlots *slots, const char *path) {
    return TEXT_ROW(slots->rows, slots->count, path, path);
}

static Status unknown_key(const ClusterProfile *profile, const ClusterSlots *slots, const char *key, Arena *arena,
                          Error *error) {
    const char **names = ARENA_ARRAY(arena, const char *, slots->count + ALIAS_COUNT);
    for (int i = 0; i < slots->count; i++) {
        names[i] = slots->rows[i].path;
    }
    for (int i = 0; i < ALIAS_COUNT; i++) {
        names[slots->count + i] = aliases[i].name;
    }
    error_set(error, STATUS_USAGE, "profile %s has no field \"%s\"", profile->name, key);
    const size_t length = strlen(key);
    for (int i = 0; i < slots->count; i++) {
        if (strncmp(names[i], key, length) == 0 && names[i][length] == '.') {
            return error_hint(error, "%s has several numbers, such as %s", key, names[i]);
        }
    }
    const char *nearest = text_nearest(key, names, (size_t)slots->count + ALIAS_COUNT);
    return nearest ? error_hint(error, "did you mean %s?", nearest)
                   : error_hint(error, "ndtune clusters NAME lists the fields of a profile");
}

// The number in SI: bytes may carry a unit, an alias scales.
static Status parse_value(const ClusterProfile *profile, const ClusterSlot *slot, const Alias *alias, const char *key,
                          const char *text, double *value, Error *error) {
    int64_t bytes = 0;
    if (strcmp(slot->field->unit, "bytes") == 0 && text_parse_bytes(text, &bytes)) {
        *value = (double)bytes;
        return STATUS_OK;
    }
    double number = 0.0;
    FAIL_IF(!text_parse_double(text, &number), error, STATUS_USAGE, "%s must be a number, got \"%s\"", key, text);
    number *= alias ? alias->scale : 1.0;
    if (alias && alias->per_nic) {
        FAIL_IF(profile->fabric.nics == 0, error, STATUS_USAGE,
                "%s: profile %s has no network cards; set fabric.nics first", key, profile->name);
        number /= profile->fabric.nics;
    }
    *value = number;
    return STATUS_OK;
}

static Status check_value(const ClusterSlot *slot, double value, Error *error) {
    const ClusterField *field = slot->field;
    FAIL_IF(!(value >= field->low && value <= field->high), error, STATUS_USAGE,
            "%s must be between %.10g and %.10g, got %.10g", slot->path, field->low, field->high, value);
    FAIL_IF(value != 0 && fabs(value) < TEXT_LEAST_NUMBER, error, STATUS_USAGE,
            "%s must be 0 or at least %g in size, got %.10g", slot->path, TEXT_LEAST_NUMBER, value);
    FAIL_IF(field->type == FIELD_INTEGER && value != floor(value), error, STATUS_USAGE,
            "%s must be an integer, got %.10g", slot->path, value);
    return STATUS_OK;
}

// The profile's rows with row `index` replaced.
static void provenance_replace(ClusterProfile *profile, int index, const Provenance *row, Arena *arena) {
    Provenance *rows = ARENA_ARRAY(arena, Provenance, profile->provenance_count);
    memcpy(rows, profile->provenance, (size_t)profile->provenance_count * sizeof *rows);
    rows[index] = *row;
    profile->provenance = rows;
}

void cluster_put(ClusterProfile *profile, const char *path, double value, const Provenance *origin, Arena *arena) {
    const ClusterSlots slots = cluster_slots(profile, cluster_dtypes(profile), arena);
    const int index = slot_find(&slots, path);
    const Provenance row = {
        .path = slots.rows[index].path, .value = value, .source = origin->source, .grade = origin->grade};
    cluster_slot_store(&slots.rows[index], value);
    provenance_replace(profile, index, &row, arena);
}

// Keeps the curves of groups inside one node unless everything goes.
static void curves_drop(ClusterProfile *profile, bool all, Arena *arena) {
    const int products = cluster_product_rows(profile);
    const int numbers = profile->provenance_count - profile->curve_count - products;
    MeasuredCurve *kept = ARENA_ARRAY(arena, MeasuredCurve, profile->curve_count);
    Provenance *rows = ARENA_ARRAY(arena, Provenance, profile->provenance_count);
    memcpy(rows, profile->provenance, (size_t)numbers * sizeof *rows);
    int count = 0;
    for (int i = 0; i < profile->curve_count; i++) {
        if (!all && profile->curves[i].nodes == 1) {
            rows[numbers + count] = profile->provenance[numbers + i];
            kept[count++] = profile->curves[i];
        }
    }
    if (products > 0) {
        rows[numbers + count] = profile->provenance[profile->provenance_count - 1];
    }
    profile->provenance = rows;
    profile->provenance_count = numbers + count + products;
    profile->curves = kept;
    profile->curve_count = count;
}

static bool speaks_of_products(const char *path) {
    return strncmp(path, "accelerator.gemm.", 17) == 0 || strcmp(path, "accelerator.memory_bytes_per_s") == 0 ||
           strcmp(path, "accelerator.sm_count") == 0;
}

// What two nodes reach by trees was measured on the cards as they were: it is a share of them.
static void scale_tree(ClusterProfile *profile, const ClusterSlots *slots, double factor, const char *source,
                       Arena *arena) {
    const int index = slot_find(slots, "fabric.tree.bandwidth_bytes_per_s");
    profile->fabric.tree.bandwidth_bytes_per_s *= factor;
    const Provenance row = {.path = slots->rows[index].path,
                            .value = profile->fabric.tree.bandwidth_bytes_per_s,
                            .source = arena_format(arena, "scaled with the cards, %s", source),
                            .grade = GRADE_USER};
    provenance_replace(profile, index, &row, arena);
}

// What else a value that is set speaks of: figures measured with the value before are void or follow it.
static void settle_others(ClusterProfile *profile, const ClusterSlots *slots, const Provenance *row, double before,
                          Arena *arena) {
    if (strcmp(row->path, "fabric.nic_bytes_per_s") == 0 && before > 0) {
        scale_tree(profile, slots, row->value / before, row->source, arena);
    }
    const bool of_node = strncmp(row->path, "node.", 5) == 0;
    if (profile->curve_count > 0 && (of_node || strncmp(row->path, "fabric.", 7) == 0)) {
        curves_drop(profile, of_node, arena);
    }
    if (speaks_of_products(row->path)) {
        cluster_products_drop(profile);
    }
    // Whoever sets it has one library: it is no share of CUDA 12's to be scaled by what CUDA 13 gained.
    if (strcmp(row->path, "accelerator.fp8_exact_share") == 0 && profile->accelerator.fp8_exact_share_cuda_13 > 0) {
        cluster_put(profile, "accelerator.fp8_exact_share_cuda_13", row->value, row, arena);
    }
}

Status cluster_set(ClusterProfile *profile, const char *assignment, Arena *arena, Error *error) {
    const char *equals = strchr(assignment, '=');
    FAIL_IF(!equals || equals == assignment, error, STATUS_USAGE,
            "\"%s\" must be KEY=VALUE, such as fabric.node_gbps=800", assignment);
    const char *key = arena_format(arena, "%.*s", (int)(equals - assignment), assignment);
    const Alias *alias = alias_find(key);
    const ClusterSlots slots = cluster_slots(profile, cluster_dtypes(profile), arena);
    const int index = slot_find(&slots, alias ? alias->path : key);
    if (index < 0) {
        return unknown_key(profile, &slots, key, arena, error);
    }
    const ClusterSlot *slot = &slots.rows[index];
    double value = 0.0;
    TRY(parse_value(profile, slot, alias, key, equals + 1, &value, error));
    TRY(check_value(slot, value, error));
    const double before = cluster_slot_value(slot);
    cluster_slot_store(slot, value);
    if (cluster_check(profile, error) != STATUS_OK) {
        cluster_slot_store(slot, before);
        return error_wrap(error, "%s", assignment);
    }
    const Provenance row = {.path = slot->path,
                            .value = value,
                            .source = arena_format(arena, "set by the user: %s", assignment),
                            .grade = GRADE_USER};
    provenance_replace(profile, index, &row, arena);
    settle_others(profile, &slots, &row, before, arena);
    return STATUS_OK;
}

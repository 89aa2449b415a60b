// Finding a profile: built-in names (the files of cluster-profiles/, compiled in) or a file; and the hash of its
// numbers.

#include "sim/cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "sim/base/json.h"
#include "sim/base/text.h"
#include "sim/cluster/cluster_fields.h"

const char *grade_name(Grade grade) {
    static const char *const names[GRADE_COUNT] = {"measured", "fitted", "datasheet", "estimated", "user"};
    return names[grade];
}

const char *const *cluster_names(int *count) {
    *count = embedded_profile_count;
    return embedded_profile_names;
}

// "dgx-a100": the profiles whose names go on from there.
static int clusters_from(const char *name, char out[ERROR_HINT_BYTES]) {
    size_t used = 0;
    int found = 0;
    for (int i = 0; i < embedded_profile_count && strlen(name) > 2; i++) {
        const char *known = embedded_profile_names[i];
        if (strncasecmp(known, name, strlen(name)) == 0 && used + strlen(known) + 3 < ERROR_HINT_BYTES - 32) {
            used += (size_t)snprintf(out + used, ERROR_HINT_BYTES - used, "%s%s", found++ ? ", " : "", known);
        }
    }
    return found;
}

// "h100", "A100-80GB": the profiles whose name has the word before the first dash, as far as a line takes them.
static bool suggest_clusters(const char *name, char out[ERROR_HINT_BYTES]) {
    char word[64];
    size_t used = 0;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, "-_ "), name);
    for (int i = 0; i < embedded_profile_count && strlen(word) > 2; i++) {
        const char *known = embedded_profile_names[i];
        if (text_contains(known, word) && used + strlen(known) + 3 < ERROR_HINT_BYTES - 32) {
            used += (size_t)snprintf(out + used, ERROR_HINT_BYTES - used, "%s%s", used ? ", " : "", known);
        }
    }
    return used > 0;
}

// 2x4090, 8 x H100: so many, and the usual node of the chip; NULL.
static const char *node_of_counted(const char *name, long *count) {
    enum { MOST = 1 << 20 };  // as of meshes, which are a layer above
    char *sign;
    *count = strtol(name, &sign, 10);
    sign += strspn(sign, " ");
    const bool counted = *count > 0 && *count <= MOST && (*sign == 'x' || *sign == 'X' || *sign == '*');
    return counted ? cluster_usual_node(sign + 1 + strspn(sign + 1, " ")) : NULL;
}

static Status unknown_cluster(const char *name, Error *error) {
    const Status status =
        error_set(error, STATUS_USAGE,
                  "unknown cluster \"%.128s\"; must be one of the %d that `ndtune clusters` lists, or "
                  "the path of a profile file",
                  name, embedded_profile_count);
    char some[ERROR_HINT_BYTES];
    if (strchr(name, ',')) {
        error_set(error, STATUS_USAGE, "cluster \"%.128s\": a cluster has one node type", name);
        return error_hint(error, "ask of each alone; the slower of two in one job sets the pace of both");
    }
    long count;
    const char *node = node_of_counted(name, &count);
    if (node) {
        return error_hint(
            error,
            "say which chip and how many apart: --cluster %s with --world %ld (plan), or with a --mesh of "
            "%ld (predict)",
            node, count, count);
    }
    const int longer = clusters_from(name, some);
    if (longer > 0) {
        return error_hint(error, "did you mean %s%s?", longer > 1 ? "one of " : "", some);
    }
    const char *nearest = text_nearest(name, embedded_profile_names, (size_t)embedded_profile_count);
    if (nearest) {
        return error_hint(error, "did you mean %s?", nearest);
    }
    return suggest_clusters(name, some) ? error_hint(error, "did you mean one of %s?", some) : status;
}

// -1 = none is called so.
static int built_in(const char *name) {
    for (int i = 0; i < embedded_profile_count; i++) {
        if (text_same_word(name, embedded_profiles[i].name) || strcasecmp(name, embedded_profiles[i].name) == 0) {
            return i;
        }
    }
    return -1;
}

// Of that name, or of a chip's usual node.
static int stood_for(const char *name) {
    const int at = built_in(name);
    const char *node = at < 0 ? cluster_usual_node(name) : NULL;
    return node ? built_in(node) : at;
}

const char *cluster_built_in(const char *name) {
    const int at = stood_for(name);
    return at < 0 ? NULL : embedded_profiles[at].name;
}

static Status find_embedded(const char *name, json_t **root, const char **origin, Error *error) {
    const int at = stood_for(name);
    if (at < 0) {
        return unknown_cluster(name, error);
    }
    *origin = embedded_profiles[at].name;
    return json_text_load(embedded_profiles[at].text, embedded_profiles[at].name, root, error);
}

bool cluster_is_file(const char *name_or_path) {
    struct stat about;
    return text_is_path(name_or_path) ||
           (built_in(name_or_path) < 0 && stat(name_or_path, &about) == 0 && !S_ISDIR(about.st_mode));
}

Status cluster_find(const char *name_or_path, Arena *arena, ClusterProfile *profile, Error *error) {
    json_t *root = NULL;
    const char *origin = name_or_path;
    if (cluster_is_file(name_or_path)) {
        TRY(json_file_load(name_or_path, &root, error));
    } else {
        TRY(find_embedded(name_or_path, &root, &origin, error));
    }
    const Status status = cluster_read(root, origin, arena, profile, error);
    json_decref(root);
    return status;
}

// Rates that only plans of these formats read go into the hash of those: older stores hold hashes without them.
static const unsigned plan_dtypes = 1u << DTYPE_FP8_BLOCK | 1u << DTYPE_NVFP4;

void cluster_hash_products(const ClusterProfile *profile, Dtype dtype, Hash *hash) {
    if (!(plan_dtypes >> dtype & 1)) {
        return;
    }
    Arena arena = {0};
    ClusterProfile copy = *profile;
    const ClusterSlots slots = cluster_slots(&copy, 1u << dtype, &arena);
    const char *key = arena_format(&arena, ".%s.", dtype_name(dtype));
    for (int i = 0; i < slots.count; i++) {
        if (strstr(slots.rows[i].path, key)) {
            hash_double(hash, cluster_slot_value(&slots.rows[i]));
        }
    }
    arena_free(&arena);
}

static bool is_hashed(const ClusterSlot *slot) {
    return slot->field->need == FIELD_REQUIRED || (slot->field->need == FIELD_WHAT_IF && cluster_slot_value(slot) > 0);
}

void cluster_hash_optional(const ClusterProfile *profile, Hash *hash) {
    Arena arena = {0};
    ClusterProfile copy = *profile;
    const ClusterSlots slots = cluster_slots(&copy, 0, &arena);
    for (int i = 0; i < slots.count; i++) {
        if (slots.rows[i].field->need == FIELD_OPTIONAL) {
            hash_double(hash, cluster_slot_value(&slots.rows[i]));
        }
    }
    arena_free(&arena);
}

void cluster_hash(const ClusterProfile *profile, Hash *hash) {
    Arena arena = {0};
    ClusterProfile copy = *profile;
    cluster_order(&copy);
    const ClusterSlots slots = cluster_slots(&copy, cluster_dtypes(profile) & ~plan_dtypes, &arena);
    hash_int(hash, profile->accelerator.device_class);
    int optional = 0;  // left out, as in the hash that stores hold (cluster_hash_optional)
    for (int i = 0; i < slots.count; i++) {
        optional += !is_hashed(&slots.rows[i]);
    }
    hash_int(hash, slots.count - optional);
    for (int i = 0; i < slots.count; i++) {
        if (is_hashed(&slots.rows[i])) {
            hash_text(hash, slots.rows[i].path);
            hash_double(hash, cluster_slot_value(&slots.rows[i]));
        }
    }
    for (int i = 0; i < profile->curve_count; i++) {
        const MeasuredCurve *curve = &profile->curves[i];
        hash_text(hash, cluster_curve_path(curve, &arena));
        for (int point = 0; point < curve->count; point++) {
            hash_double(hash, curve->bytes[point]);
            hash_double(hash, curve->seconds[point]);
        }
    }
    for (int i = 0; i < profile->accelerator.product_count; i++) {
        hash_text(hash, cluster_product_text(&profile->accelerator.products[i], &arena));
        hash_double(hash, profile->accelerator.products[i].seconds);
    }
    arena_free(&arena);
}

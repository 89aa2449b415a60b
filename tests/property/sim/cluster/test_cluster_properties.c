// Built-in profiles with random numbers changed, from a printed seed: a profile within its ranges survives writing and
// reading bit for bit, the hash covers every number, and a file with any one thing removed is refused by path.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cluster/cluster_fields.h"

enum { CASES = 300 };
static const uint64_t seed = 20261124;

static uint64_t state;
static Arena arena;

static void begin(void) {
    state = seed;
    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(cluster_property, .init = begin, .fini = end);

static uint64_t draw(void) {  // xorshift64*, Vigna 2016
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717ull;
}

static ClusterProfile draw_profile(void) {
    ClusterProfile profile;
    Error error = {0};
    int count = 0;
    const char *const *names = cluster_names(&count);
    cr_assert_eq(cluster_find(names[draw() % (uint64_t)count], &arena, &profile, &error), STATUS_OK, "%s",
                 error.message);
    return profile;
}

// Rates of two formats are hashed with the plans that read them.
static uint64_t hash_of(const ClusterProfile *profile) {
    Hash hash = hash_begin();
    cluster_hash(profile, &hash);
    cluster_hash_optional(profile, &hash);
    cluster_hash_products(profile, DTYPE_FP8_BLOCK, &hash);
    cluster_hash_products(profile, DTYPE_NVFP4, &hash);
    return hash_end(&hash);
}

// Nudges one number by up to 1 %, inside its range; integers and zeros stay. False when nothing changed.
static bool nudge(ClusterProfile *profile, const char **path) {
    const ClusterSlots slots = cluster_slots(profile, cluster_dtypes(profile), &arena);
    const ClusterSlot *slot = &slots.rows[draw() % (uint64_t)slots.count];
    const double before = cluster_slot_value(slot);
    const double after = before * (1.0 - 0.01 * (double)(draw() >> 11) * 0x1p-53);
    *path = slot->path;
    if (slot->field->type == FIELD_INTEGER || after == before || after < slot->field->low) {
        return false;
    }
    char assignment[128];
    snprintf(assignment, sizeof assignment, "%s=%.17g", slot->path, after);
    Error error = {0};
    return cluster_set(profile, assignment, &arena, &error) == STATUS_OK;
}

Test(cluster_property, any_profile_survives_writing_and_reading_bit_for_bit) {
    int changed = 0;
    for (int i = 0; i < CASES; i++) {
        ClusterProfile profile = draw_profile();
        const char *path = NULL;
        for (int edits = 0; edits < 5; edits++) {
            changed += nudge(&profile, &path);
        }
        char *text = NULL;
        json_t *root = NULL;
        ClusterProfile again;
        Error error = {0};
        cr_assert_eq(cluster_write(&profile, &text, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(json_text_load(text, "written", &root, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(cluster_read(root, "written", &arena, &again, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(hash_of(&profile), hash_of(&again));
        for (int row = 0; row < profile.provenance_count; row++) {
            cr_assert_eq(again.provenance[row].grade, profile.provenance[row].grade);
            cr_assert_str_eq(again.provenance[row].source, profile.provenance[row].source);
        }
        json_decref(root);
        free(text);
        arena_reset(&arena);
    }
    cr_assert_gt(changed, CASES, "%d numbers changed", changed);
}

Test(cluster_property, the_hash_sees_every_number) {
    for (int i = 0; i < CASES; i++) {
        ClusterProfile profile = draw_profile();
        const uint64_t before = hash_of(&profile);
        const char *path = NULL;
        if (nudge(&profile, &path)) {
            cr_assert_neq(hash_of(&profile), before, "%s is not hashed", path);
        }
        arena_reset(&arena);
    }
}

// Removes the object or text at a slot's path from the tree.
static void remove_at(json_t *root, const char *path) {
    json_t *object = root;
    char key[64];
    for (const char *dot = strchr(path, '.'); dot; dot = strchr(path, '.')) {
        snprintf(key, sizeof key, "%.*s", (int)(dot - path), path);
        object = json_object_get(object, key);
        path = dot + 1;
    }
    cr_assert_eq(json_object_del(object, path), 0);
}

Test(cluster_property, a_file_without_any_one_of_its_fields_is_refused_by_path) {
    ClusterProfile profile = draw_profile();
    const ClusterSlots slots = cluster_slots(&profile, cluster_dtypes(&profile), &arena);
    char *text = NULL;
    Error error = {0};
    cr_assert_eq(cluster_write(&profile, &text, &error), STATUS_OK);
    for (int i = 0; i < slots.count + CLUSTER_TEXT_COUNT; i++) {
        const char *path = i < slots.count ? slots.rows[i].path : cluster_texts[i - slots.count].path;
        json_t *root = NULL;
        ClusterProfile again;
        const bool required = i >= slots.count || slots.rows[i].field->need == FIELD_REQUIRED;
        if (!required) {
            continue;
        }
        cr_assert_eq(json_text_load(text, "cut", &root, &error), STATUS_OK);
        remove_at(root, path);
        cr_assert_eq(cluster_read(root, "cut", &arena, &again, &error), STATUS_USAGE, "%s is not required", path);
        cr_assert_not_null(strstr(error.message, path), "%s: %s", path, error.message);
        json_decref(root);
    }
    free(text);
}

// Profiles as JSON text: read, and written and read again.

#pragma once

#include <criterion/criterion.h>
#include <stdlib.h>

#include "sim/cluster/cluster_fields.h"

static inline Status cluster_from_text(const char *text, Arena *arena, ClusterProfile *profile, Error *error) {
    json_t *root = NULL;
    cr_assert_eq(json_text_load(text, "mine.json", &root, error), STATUS_OK, "%s", error->message);
    const Status status = cluster_read(root, "mine.json", arena, profile, error);
    json_decref(root);
    return status;
}

static inline ClusterProfile cluster_read_back(const ClusterProfile *profile, Arena *arena) {
    char *text = NULL;
    Error error = {0};
    ClusterProfile again;
    cr_assert_eq(cluster_write(profile, &text, &error), STATUS_OK);
    cr_assert_eq(cluster_from_text(text, arena, &again, &error), STATUS_OK, "%s", error.message);
    free(text);
    return again;
}

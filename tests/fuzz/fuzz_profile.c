// Arbitrary bytes as a cluster profile. A refusal is one sentence; an accepted profile survives writing and reading bit
// for bit, takes settings or refuses them without side effects, and prices every collective with a number.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/cluster/cluster_fields.h"
#include "sim/cost/cost.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/hash_of.h"

static Status read_text(const char *text, Arena *arena, ClusterProfile *profile, Error *error) {
    json_t *root = NULL;
    TRY(json_text_load(text, "fuzz.json", &root, error));
    const Status status = cluster_read(root, "fuzz.json", arena, profile, error);
    json_decref(root);
    return status;
}

static void check_writing(const ClusterProfile *profile, Arena *arena) {
    char *text = NULL;
    Error error = {0};
    ClusterProfile again;
    ASSERT(cluster_write(profile, &text, &error) == STATUS_OK);
    ASSERT(read_text(text, arena, &again, &error) == STATUS_OK);
    ASSERT(hash_of_cluster(profile) == hash_of_cluster(&again));
    ASSERT(again.provenance_count == profile->provenance_count);
    free(text);
}

static void check_settings(const ClusterProfile *profile, Arena *arena) {
    static const char *const assignments[] = {"node.gpus=3",         "fabric.node_gbps=400", "fabric.nics=0",
                                              "fabric.efficiency=0", "node.cores=0",         "fabric.tier2.nodes=5"};
    for (size_t i = 0; i < sizeof assignments / sizeof assignments[0]; i++) {
        ClusterProfile copy = *profile;
        Error error = {0};
        if (cluster_set(&copy, assignments[i], arena, &error) != STATUS_OK) {
            fuzz_refused(&error);
            ASSERT(hash_of_cluster(&copy) == hash_of_cluster(profile));
        } else {
            check_writing(&copy, arena);
        }
    }
}

static void check_costs(const ClusterProfile *profile) {
    static const GroupPlacement groups[] = {
        {2, 1, 2, 1, 2, 0}, {3, 1, 3, 2, 5, 0}, {16, 2, 8, 1, 16, 0}, {64, 64, 1, 8, 505, 0}};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (int kind = COLLECTIVE_ALL_GATHER; kind <= COLLECTIVE_SEND_RECV; kind++) {
            for (double bytes = 1; bytes < 1e12; bytes *= 1e3) {
                const double seconds = cost_collective_s(profile, (CollectiveKind)kind, &groups[i], bytes, NULL);
                ASSERT(seconds >= 0);  // infinite where the profile has no way; never not a number
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena arena = {0};
    char *text = arena_alloc(&arena, size + 1);
    memcpy(text, data, size);
    ClusterProfile profile;
    Error error = {0};
    if (read_text(text, &arena, &profile, &error) == STATUS_OK) {
        check_writing(&profile, &arena);
        check_settings(&profile, &arena);
        check_costs(&profile);
    } else {
        fuzz_refused(&error);
    }
    arena_free(&arena);
    return 0;
}

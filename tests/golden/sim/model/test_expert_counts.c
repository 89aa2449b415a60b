// MoE presets, and the published config.json of each, against the model that transformers 5.23 builds from the same
// file (count_experts.py): all parameters, and those active per token.

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>

#include "sim/model/model.h"
#include "tests/support/hash_of.h"
#include "tests/support/model_counts.h"

#define FOLDER NDTUNE_SOURCE_DIR "/tests/golden/sim/model/"
enum { MODELS = 17, PATH_BYTES = 512 };

static void check_model(const char *name, int64_t total, int64_t active) {
    char path[PATH_BYTES];
    Arena arena = {0};
    Error error = {0};
    ModelSpec preset, file;
    snprintf(path, sizeof path, FOLDER "experts/%s.json", name);
    cr_assert_eq(model_find(name, &arena, &preset, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(model_parameters(&preset), total, "%s: %" PRId64, name, model_parameters(&preset) - total);
    cr_expect_eq(active_parameters(&preset), active, "%s: %" PRId64, name, active_parameters(&preset) - active);
    cr_assert_eq(model_check(&preset, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(model_find(path, &arena, &file, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(hash_of_model(&file), hash_of_model(&preset), "%s: its config.json is another model", name);
    arena_free(&arena);
}

Test(expert_counts, presets_and_files_count_as_transformers_builds_them) {
    FILE *table = fopen(FOLDER "expert_counts.txt", "r");
    char name[64];
    int64_t total, active;
    int models = 0;
    cr_assert_not_null(table);
    while (fscanf(table, "%63s %" SCNd64 " %" SCNd64, name, &total, &active) == 3) {
        check_model(name, total, active);
        models++;
    }
    fclose(table);
    cr_assert_eq(models, MODELS);
    int count = 0, presets_with_experts = 0;
    const ModelPreset *presets = model_presets(&count);
    for (int i = 0; i < count; i++) {
        presets_with_experts += presets[i].spec.experts.count > 0;
    }
    cr_assert_eq(models, presets_with_experts);
}

// Arbitrary bytes as a config file of each syntax and framework. A refusal is one sentence; accepted input that settles
// has a mesh whose sizes multiply to the world and a batch that is the product of its factors.

#include <stdio.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"
#include "tests/fuzz/fuzz.h"

static void check_error(const Error *error) {
    ASSERT(error->status == STATUS_USAGE);
    ASSERT(error->message[0] != '\0' && !strchr(error->hint, '\n'));
}

static void check_import(Import *import) {
    const ImportChoices given = import_nothing_said();
    import_settle(import, &given);
    for (int i = 0; i < import->finding_count; i++) {
        ASSERT(import->findings[i].sentence[0] != '\0');
    }
    if (import->refusal) {
        return;
    }
    const TrainPlan usual = {.seq = 128};
    TrainPlan plan;
    import_plan(import, &usual, &plan);
    ASSERT(mesh_world(&plan.mesh) == import->said.world);
    ASSERT(plan_global_batch(&plan) == import->said.global_batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const ConfigSyntax syntaxes[] = {SYNTAX_YAML, SYNTAX_JSON, SYNTAX_TOML, SYNTAX_SHELL, SYNTAX_PYTHON};
    static const char *const formats[] = {"auto", "accelerate", "axolotl", "torchtitan", "deepspeed", "megatron"};
    for (size_t s = 0; s < 5; s++) {
        for (size_t f = 0; f < 6; f++) {
            Arena arena = {0};
            Error error = {0};
            ConfigNode *root = NULL;
            Import import;
            char *text = arena_alloc(&arena, size + 1);
            memcpy(text, data, size);
            if (config_parse(text, "file", syntaxes[s], &arena, &root, &error) != STATUS_OK ||
                import_tree(root, "file", formats[f], &arena, &import, &error) != STATUS_OK) {
                check_error(&error);
            } else {
                check_import(&import);
            }
            arena_free(&arena);
        }
    }
    return 0;
}

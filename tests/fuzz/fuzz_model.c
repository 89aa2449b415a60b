// Arbitrary bytes as a Hugging Face config.json. A refusal is one sentence; accepted input is a model with positive
// sizes and a finite number of parameters.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/model/model_config.h"
#include "tests/fuzz/fuzz.h"

static void check_model(const ModelSpec *model) {
    ASSERT(model->layers > 0 && model->hidden > 0 && model->heads > 0 && model->kv_heads > 0);
    ASSERT(model->head_dim > 0 && model->ffn > 0 && model->vocab > 0 && model->max_seq > 0);
    ASSERT(model_parameters(model) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena arena = {0};
    char path[64];
    snprintf(path, sizeof path, "/tmp/ndtune-fuzz-%d.json", (int)getpid());
    fuzz_write_file(path, data, size);
    ModelSpec model;
    Error error = {0};
    if (model_config_load(path, &arena, &model, &error) == STATUS_OK) {
        check_model(&model);
    } else {
        fuzz_refused(&error);
    }
    remove(path);
    arena_free(&arena);
    return 0;
}

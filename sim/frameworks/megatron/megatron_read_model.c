// Which model a file of Megatron's trains, by its sizes or by the name of its tokenizer.

#include <string.h>

#include "sim/frameworks/megatron/megatron_read.h"
#include "sim/model/model.h"

// That of the preset is predicted; another is named as left out.
static void take_window(Import *import) {
    static const char flag[] = "--window-size";
    const ConfigNode *said = config_child(import->root, flag);
    ModelSpec model;
    if (said && said->kind == NODE_SCALAR && import->preset &&
        model_find(import->preset, import->arena, &model, &(Error){0}) == STATUS_OK &&
        strcmp(said->text, arena_format(import->arena, "%d,0", model.window - 1)) == 0) {
        import_known(import, (const char *const[]){flag, NULL});
    }
}

// The preset with these sizes, where there is one.
Status megatron_read_model(Import *import, Error *error) {
    int layers = 0, hidden = 0, ffn = 0, heads = 0, experts = 0;
    double theta = 0;
    TRY(megatron_int(import, M_LAYERS, 1, 1 << 16, &layers, error));
    TRY(megatron_int(import, M_HIDDEN, 1, 1 << 20, &hidden, error));
    TRY(megatron_int(import, M_FFN, 1, 1 << 22, &ffn, error));
    TRY(megatron_int(import, M_HEADS, 1, 1 << 16, &heads, error));
    TRY(megatron_int(import, M_EXPERTS, 0, 1 << 20, &experts, error));
    TRY(megatron_number(import, M_ROTARY_BASE, 1, 1e12, &theta, error));
    import_name_model(import, &(ImportSizes){layers, hidden, ffn, heads, experts, theta});
    take_window(import);
    import->model_key = megatron_is_bridge(import) ? "tokenizer.tokenizer_model" : "--tokenizer-model";
    TRY(import_word(import, import->model_key, &import->model, error));
    const ConfigNode *loaded = import_has(import, "model._args_") ? import_at(import, "model._args_") : NULL;
    if (!import->model && loaded && loaded->first && loaded->first->kind == NODE_SCALAR) {
        import->model_key = "model._args_";  // AutoBridge.from_hf_pretrained("org/name")
        import->model = loaded->first->text;
    }
    if (import->model && (strchr(import->model, '$') || !strchr(import->model, '/'))) {
        import->model = NULL;
    }
    return STATUS_OK;
}

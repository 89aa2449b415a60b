// Sizes come from the row; structure (norms, biases, positions) from the preset with the longest matching name prefix
// and the same kind of MLP, else from the plainest family of that kind. No column says whether embeddings are tied: the
// variant whose parameter count is nearer to the row's is taken. A row with experts takes biases and gates from a
// preset with experts; its first `dense_layers` layers are dense, unless a preset has the same number of dense layers
// out of the same total, whose positions are then used. A row that lacks sizes is the preset it names, or nothing.

#include "autotune/accuracy/run_model.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autotune/accuracy/run_labels.h"
#include "autotune/accuracy/run_tests.h"
#include "sim/frameworks/target.h"

enum { NAME_BYTES = 64, FAMILY_LETTERS = 3 };

// Letters and digits in lower case: "Llama3-8B" and "llama-3-8b" are one name.
static void plain_name(const char *name, char out[NAME_BYTES]) {
    size_t used = 0;
    for (; *name && used + 1 < NAME_BYTES; name++) {
        if (isalnum((unsigned char)*name)) {
            out[used++] = (char)tolower((unsigned char)*name);
        }
    }
    out[used] = '\0';
}

static int common_prefix(const char *a, const char *b) {
    int length = 0;
    while (a[length] && a[length] == b[length]) {
        length++;
    }
    return length;
}

// "Qwen3-14B" is built like qwen3-8b; NULL when no name shares a prefix.
static const ModelSpec *preset_like(const char *name, MlpKind mlp, bool experts) {
    char wanted[NAME_BYTES], plain[NAME_BYTES];
    plain_name(name, wanted);
    int count = 0, longest = FAMILY_LETTERS - 1;
    const ModelPreset *presets = model_presets(&count);
    const ModelSpec *found = NULL;
    for (int i = 0; i < count; i++) {
        plain_name(presets[i].spec.name, plain);
        const int length = common_prefix(plain, wanted);
        const bool same_kind = (presets[i].spec.experts.count > 0) == experts;
        if (same_kind && presets[i].spec.mlp == mlp && length > longest) {
            longest = length;
            found = &presets[i].spec;
        }
    }
    return found;
}

static void choose_tying(const RunRow *row, ModelSpec *model) {
    if (row->params_b <= 0) {
        return;
    }
    ModelSpec other = *model;
    other.tied_embeddings = !model->tied_embeddings;
    const double published = row->params_b * 1e9;
    if (fabs((double)model_parameters(&other) - published) < fabs((double)model_parameters(model) - published)) {
        *model = other;
    }
}

// A row of an MoE model without expert columns is not the dense model of the same name.
static const char *check_count(Arena *arena, const RunRow *row, const ModelSpec *model) {
    enum { TIMES = 2 };
    const double made = (double)model_parameters(model) / 1e9;
    return row->experts.count == 0 && row->params_b > TIMES * made
               ? arena_format(arena, "params_b says %.1f B and the sizes make %.1f B: what has the rest no column says",
                              row->params_b, made)
               : NULL;
}

// Dense Nemotrons are plain MLPs that no preset is like: half of each head is rotated, and only norms have biases
// (arXiv 2402.16819, section 2; NVIDIA/NeMo v2.1.0, collections/llm/gpt/model/nemotron.py). Squared ReLU takes GELU's
// place.
static void set_nemotron(const RunRow *row, ModelSpec *model) {
    enum { ROTATED_OF = 2 };
    model_set_family(model, "gpt2");
    model->activation = ACTIVATION_GELU;
    model->position = POSITION_ROTARY;
    model->rotary_dims = (int)(row->head_dim > 0 ? row->head_dim : row->hidden / row->heads) / ROTATED_OF;
    model->qkv_bias = model->out_bias = model->mlp_bias = false;
}

static void set_structure(const RunRow *row, bool plain, ModelSpec *model) {
    const bool experts = row->experts.count > 0;
    const ModelSpec *like = preset_like(row->model, plain ? MLP_PLAIN : MLP_GATED, experts);
    *model = (ModelSpec){.rope_theta = 10000.0, .norm_eps = 1e-5};
    if (like) {
        *model = *like;
    } else if (row_is_nemotron(row)) {
        set_nemotron(row, model);
    } else {
        model_set_family(model, plain ? "gpt2" : experts ? "mixtral" : "llama");
        model->qkv_bias &= !experts;  // experts of Megatron's and their layers have none
        model->out_bias &= !experts;
        model->mlp_bias &= !experts;
    }
    if (row->plan_number[PLAN_QKV_ROPE] == 1) {  // whose kernel has no YaRN, and MLPerf's GPT-OSS none either
        model->yarn = (YarnScaling){0};
    }
    snprintf(model->name, sizeof model->name, "%s", row->model);
    model->source = "the row's own columns";
}

static void set_sizes(const RunRow *row, ModelSpec *model) {
    model->layers = (int)row->layers;
    model->hidden = (int)row->hidden;
    model->heads = (int)row->heads;
    model->kv_heads = (int)(row->kv_heads > 0 ? row->kv_heads : row->heads);
    model->head_dim = (int)(row->head_dim > 0 ? row->head_dim : row->hidden / row->heads);
    model->ffn = (int)row->ffn;
    model->vocab = (int)row->vocab;
    model->max_seq = (int)(row->seq > 0 ? row->seq : 1);
    model->rotary_dims = model->rotary_dims > model->head_dim ? 0 : model->rotary_dims;
}

// Dense layers, if any, come first.
static void set_runs(Arena *arena, int dense, ModelSpec *model) {
    model->runs = NULL;
    model->run_count = 0;
    if (dense > 0 && dense < model->layers) {
        LayerRun *runs = ARENA_ARRAY(arena, LayerRun, 2);
        runs[0] = (LayerRun){LAYER_DENSE, 0, dense};
        runs[1] = (LayerRun){LAYER_EXPERTS, dense, model->layers - dense};
        model->runs = runs;
        model->run_count = 2;
    }
}

// Sizes of a head from the row, else the preset's, else those that its test was read to have.
static void set_latent_head(const RunRow *row, ModelSpec *model) {
    LatentAttention said = {.rope = (int)row->experts.rope, .value = (int)row->experts.value};
    int head_dim = (int)row->head_dim;
    if (model->latent.kv_rank == 0) {
        row_take_latent_head(row, &head_dim, &said);
        model->qkv_bias = false;
    }
    model->latent.rope = said.rope > 0 ? said.rope : model->latent.rope;
    model->latent.value = said.value > 0 ? said.value : model->latent.value;
    model->head_dim = head_dim > 0 ? head_dim : model->head_dim;
    model->rotary_dims = model->latent.rope;
}

// Ranks, widths and numbers from the row; NULL, or why it cannot be predicted.
static const char *set_latent(Arena *arena, const RunRow *row, ModelSpec *model) {
    const bool latent = row->experts.kv_rank > 0;
    if (strcmp(row->experts.attention_type, "mla") == 0 && !latent) {
        return "latent attention (mla), and kv_lora is empty";
    }
    if (!latent) {
        model->latent = (LatentAttention){.q_rank = 0};
        return NULL;
    }
    set_latent_head(row, model);
    REFUSE_IF(arena, model->latent.rope == 0 || model->latent.value == 0,
              "latent attention, no preset like it begins as \"%s\" does, and of head_dim, qk_rope_head_dim and "
              "v_head_dim some are empty",
              row->model);
    model->latent.q_rank = (int)row->experts.q_rank;
    model->latent.kv_rank = (int)row->experts.kv_rank;
    return NULL;
}

static int64_t dense_layers(const ModelSpec *model) {
    int64_t dense = 0;
    for (int i = 0; i < model->run_count; i++) {
        dense += model->runs[i].kind == LAYER_DENSE ? model->runs[i].count : 0;
    }
    return dense;
}

// Alternating, as in the preset.
static bool keeps_turns(const RunExperts *given, const ModelSpec *model) {
    int64_t layers = 0;
    for (int i = 0; i < model->run_count; i++) {
        layers += model->runs[i].count;
    }
    return layers == model->layers && given->dense_layers == dense_layers(model);
}

static const char *set_experts(Arena *arena, const RunRow *row, ModelSpec *model) {
    const RunExperts *given = &row->experts;
    const bool by_turns = model->run_count > 2;
    if (model->experts.sigmoid.groups > 0 && given->count != model->experts.count) {  // groups of another model
        model->experts.sigmoid.groups = model->experts.sigmoid.active_groups = 1;
    }
    model->experts.count = (int)given->count;
    model->experts.active = (int)given->active;
    model->experts.ffn = (int)given->ffn;
    model->experts.shared_ffn = (int)given->shared_ffn;
    if (given->count == 0) {
        return NULL;
    }
    if (given->active == 0 || given->ffn == 0) {
        return "of topk and moe_ffn of a model with experts some are empty";
    }
    if (by_turns && keeps_turns(given, model)) {
        return NULL;
    }
    REFUSE_IF(arena, by_turns, "%lld dense layers of %d: which of them no column says", (long long)given->dense_layers,
              model->layers);
    set_runs(arena, (int)given->dense_layers, model);
    return NULL;
}

// Where the row says whose GELU it is, the family's aside.
static bool is_written_out(const RunRow *row) {
    return strcmp(row->mlp, "gelu-new") == 0;
}

static bool is_one_kernel(const RunRow *row) {
    return strcmp(row->mlp, "gelu-tanh") == 0;
}

static void set_activation(const RunRow *row, ModelSpec *model) {
    model->activation = is_written_out(row)  ? ACTIVATION_GELU_NEW
                        : is_one_kernel(row) ? ACTIVATION_GELU_TANH
                                             : model->activation;
}

static bool lacks_size(const RunRow *row) {
    return row->layers == 0 || row->hidden == 0 || row->heads == 0 || row->ffn == 0 || row->vocab == 0;
}

static bool lacks_all_sizes(const RunRow *row) {
    return row->layers == 0 && row->hidden == 0 && row->heads == 0 && row->ffn == 0 && row->vocab == 0;
}

static bool is_plain(const RunRow *row) {
    return strcmp(row->mlp, "gelu") == 0 || is_written_out(row) || is_one_kernel(row);
}

// A size as the row has it (0 = not at all) and as its preset has it.
typedef struct GivenSize {
    const char *column;
    int64_t given, of_preset;
} GivenSize;

static const char *check_sizes(Arena *arena, const RunRow *row, const ModelSpec *preset) {
    const RunExperts *experts = &row->experts;
    const GivenSize sizes[] = {{"layers", row->layers, preset->layers},
                               {"hidden", row->hidden, preset->hidden},
                               {"heads", row->heads, preset->heads},
                               {"kv_heads", row->kv_heads, preset->kv_heads},
                               {"head_dim", row->head_dim, preset->head_dim},
                               {"ffn", row->ffn, preset->ffn},
                               {"experts", experts->count, preset->experts.count},
                               {"topk", experts->active, preset->experts.active},
                               {"moe_ffn", experts->ffn, preset->experts.ffn},
                               {"shared_ffn", experts->shared_ffn, preset->experts.shared_ffn},
                               {"dense_layers", experts->dense_layers, dense_layers(preset)},
                               {"q_lora", experts->q_rank, preset->latent.q_rank},
                               {"kv_lora", experts->kv_rank, preset->latent.kv_rank},
                               {"qk_rope_head_dim", experts->rope, preset->latent.rope},
                               {"v_head_dim", experts->value, preset->latent.value}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        REFUSE_IF(arena, sizes[i].given > 0 && sizes[i].given != sizes[i].of_preset,
                  "some sizes are empty, and %s is %lld where that of %s is %lld", sizes[i].column,
                  (long long)sizes[i].given, preset->name, (long long)sizes[i].of_preset);
    }
    REFUSE_IF(arena, row->mlp[0] && is_plain(row) != (preset->mlp == MLP_PLAIN),
              "some sizes are empty, and mlp \"%s\" is not that of %s", row->mlp, preset->name);
    REFUSE_IF(arena, strcmp(experts->attention_type, "mla") == 0 && preset->latent.kv_rank == 0,
              "some sizes are empty, and %s has no latent attention (mla)", preset->name);
    return NULL;
}

// A row that lacks sizes is the preset it names, whole: but for a vocabulary that it says, padded or not.
static const char *named_model(Arena *arena, const RunRow *row, ModelSpec *model) {
    Error error = {0};
    REFUSE_IF(arena, model_find(row->model, arena, model, &error) != STATUS_OK,
              "%slayers, hidden, heads, ffn and vocab %sare empty, and \"%s\" is no preset",
              lacks_all_sizes(row) ? "" : "of ", lacks_all_sizes(row) ? "" : "some ", row->model);
    const char *reason = check_sizes(arena, row, model);
    model->vocab = row->vocab > 0 ? (int)row->vocab : model->vocab;
    set_activation(row, model);
    return reason;
}

// The row's own sizes, structured as the preset whose name is nearest.
static const char *own_model(Arena *arena, const RunRow *row, ModelSpec *model) {
    set_structure(row, is_plain(row), model);
    set_activation(row, model);
    set_sizes(row, model);
    row_take_structure(row, model);
    const char *reason = set_latent(arena, row, model);
    reason = reason ? reason : set_experts(arena, row, model);
    if (!reason) {
        choose_tying(row, model);
    }
    return reason;
}

const char *run_model(Arena *arena, const RunRow *row, ModelSpec *model) {
    REFUSE_IF(arena, row->mlp[0] && !is_plain(row) && strcmp(row->mlp, "swiglu") != 0,
              "mlp \"%s\" is not swiglu, gelu, gelu-new or gelu-tanh", row->mlp);
    const char *reason = lacks_size(row) ? named_model(arena, row, model) : own_model(arena, row, model);
    reason = reason ? reason : check_count(arena, row, model);
    if (reason) {
        return reason;
    }
    Error error = {0};
    return model_check(model, &error) == STATUS_OK ? NULL : arena_text(arena, error.message);
}

// ModelSpec: names, runs of layers, and counts: what a layer holds is in layer_kinds.c.

#include "sim/model/model.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/integer.h"
#include "sim/base/text.h"
#include "sim/model/layer_kinds.h"
#include "sim/model/model_config.h"
#include "sim/model/model_names.h"

// A file, or the folder of a downloaded model.
static Status load_path(const char *path, Arena *arena, ModelSpec *model, Error *error) {
    struct stat about;
    const bool folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    return model_config_load(folder ? arena_format(arena, "%s/config.json", path) : path, arena, model, error);
}

bool model_is_known(const char *name_or_path) {
    Arena arena = {0};
    ModelSpec model;
    const bool known = text_is_path(name_or_path) || model_find(name_or_path, &arena, &model, NULL) == STATUS_OK;
    arena_free(&arena);
    return known;
}

Status model_find(const char *name_or_path, Arena *arena, ModelSpec *model, Error *error) {
    if (text_is_path(name_or_path)) {
        return load_path(name_or_path, arena, model, error);
    }
    int count = 0;
    const ModelPreset *presets = model_presets(&count);
    for (int i = 0; i < count; i++) {
        const bool named = text_same_word(name_or_path, presets[i].spec.name);
        if (named || (presets[i].alias && text_same_word(name_or_path, presets[i].alias))) {
            *model = presets[i].spec;
            return STATUS_OK;
        }
    }
    if (access(name_or_path, R_OK) == 0) {
        return load_path(name_or_path, arena, model, error);
    }
    for (int i = 0; i < count; i++) {
        if (model_is_called(&presets[i], name_or_path)) {
            *model = presets[i].spec;
            return STATUS_OK;
        }
    }
    return model_unknown(name_or_path, error);
}

int model_run_count(const ModelSpec *model) {
    return model->run_count > 0 ? model->run_count : 1;
}

LayerRun model_run(const ModelSpec *model, int index) {
    return model->run_count > 0 ? model->runs[index]
                                : (LayerRun){model->experts.count > 0 ? LAYER_EXPERTS : LAYER_DENSE, 0, model->layers};
}

int64_t model_norm_parameters(const ModelSpec *model) {
    return (model->norm_bias ? 2 : 1) * (int64_t)model->hidden;
}

int64_t model_layer_parameters(const ModelSpec *model, LayerKind kind) {
    return layer_kinds[kind].matrix_parameters(model) + layer_kinds[kind].vector_parameters(model);
}

int64_t model_layers_parameters(const ModelSpec *model) {
    int64_t count = 0;
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        count += run.count * model_layer_parameters(model, run.kind);
    }
    return count;
}

int64_t model_expert_parameters(const ModelSpec *model) {
    const int matrices = model->mlp == MLP_GATED ? 3 : 2;
    int64_t count = 0;
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        count += run.kind == LAYER_EXPERTS ? run.count : 0;
    }
    return count * model->experts.count * matrices * model->hidden * model->experts.ffn;
}

int64_t model_parameters(const ModelSpec *model) {
    const int64_t table = (int64_t)model->vocab * model->hidden;
    const int64_t positions = model->position == POSITION_LEARNED ? (int64_t)model->max_seq * model->hidden : 0;
    return model_layers_parameters(model) + model_norm_parameters(model) + positions +
           (model->tied_embeddings ? 1 : 2) * table + (model->head_bias ? model->vocab : 0);
}

bool model_norms_behind(const ModelSpec *model) {
    return model->residual == RESIDUAL_POST_NORM || model->residual == RESIDUAL_BOTH_NORMS;
}

static int64_t idle_parameters(const ModelSpec *model) {
    int64_t count = 0;
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        const LayerKindRow *kind = &layer_kinds[run.kind];
        count += run.count * (kind->idle_matrices(model) + kind->idle_vectors(model));
    }
    return count;
}

int64_t model_flop_parameters(const ModelSpec *model) {
    return model_layers_parameters(model) - idle_parameters(model) + model_norm_parameters(model) +
           (int64_t)model->vocab * model->hidden;
}

double model_flops_per_token(const ModelSpec *model, int seq) {
    double attention = 0;
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        attention += run.count * layer_kinds[run.kind].attention_flops(model, seq);
    }
    return 6.0 * (double)model_flop_parameters(model) + attention;
}

static int64_t further_own(const ModelSpec *model) {
    enum { NORMS = 3, WIDTHS = 2 };
    return NORMS * model_norm_parameters(model) + WIDTHS * (int64_t)model->hidden * model->hidden;
}

static LayerKind last_kind(const ModelSpec *model) {
    return model_run(model, model_run_count(model) - 1).kind;
}

int64_t model_further_parameters(const ModelSpec *model) {
    return further_own(model) + model_layer_parameters(model, last_kind(model));
}

double model_further_flops_per_token(const ModelSpec *model, int seq) {
    const LayerKindRow *kind = &layer_kinds[last_kind(model)];
    const int64_t idle = kind->idle_matrices(model) + kind->idle_vectors(model);
    const int64_t met = model_further_parameters(model) - idle + (int64_t)model->vocab * model->hidden;
    return 6.0 * (double)met + kind->attention_flops(model, seq);
}

// What only some models have is hashed where they have it: the others' hashes stay.
static void hash_experts(const ModelSpec *model, Hash *hash) {
    const Experts *experts = &model->experts;
    const LatentAttention *latent = &model->latent;
    const int64_t of_experts[] = {experts->count,       experts->active,      experts->ffn, experts->shared_ffn,
                                  experts->shared_gate, experts->router_bias, experts->bias};
    const int64_t of_latent[] = {latent->q_rank, latent->kv_rank, latent->rope, latent->value};
    if (experts->count > 0) {
        hash_text(hash, "experts");
        hash_ints(hash, of_experts, sizeof of_experts / sizeof of_experts[0]);
        hash_tag(hash, experts->unscaled, "unscaled");
        hash_tag(hash, experts->in_turn, "in turn");
        hash_tag(hash, experts->alike, "alike");
        if (experts->sigmoid.groups > 0) {
            hash_text(hash, "sigmoid");
            hash_int(hash, experts->sigmoid.groups);
            hash_int(hash, experts->sigmoid.active_groups);
            hash_double(hash, experts->sigmoid.factor);
        }
        hash_more_double(hash, "balance", experts->balance);
    }
    if (latent->kv_rank > 0) {
        hash_text(hash, "latent");
        hash_ints(hash, of_latent, sizeof of_latent / sizeof of_latent[0]);
    }
    hash_tag(hash, model->head_bias || model->sinks, model->head_bias ? "head bias" : "sinks");
}

// That a part of them is met by some drawn ones: 1 - C(count - part, drawn) / C(count, drawn).
static double met(int count, int drawn, int part) {
    double missed = 1;
    for (int i = 0; i < drawn; i++) {
        missed *= (double)(count - part - i) / (count - i);
    }
    return 1 - missed;
}

// Of one behind the other, in the mean over where the first of them is.
static double visited_in_turn(int active, int part) {
    return 1 + (double)(active - gcd(active, part)) / part;
}

double experts_parts_visited(const Experts *experts, int parts) {
    if (experts->in_turn) {
        return visited_in_turn(experts->active, experts->count / parts);
    }
    const int count = experts->count, groups = experts->sigmoid.groups, best = experts->sigmoid.active_groups;
    if (best == groups) {
        return parts * met(count, experts->active, count / parts);
    }
    if (parts <= groups) {
        return parts * met(groups, best, groups / parts);
    }
    return parts * met(count / groups * best, experts->active, count / parts) * best / groups;
}

static void hash_sizes(const ModelSpec *model, Hash *hash) {
    const int64_t fields[] = {model->layers,
                              model->hidden,
                              model->heads,
                              model->kv_heads,
                              model->head_dim,
                              model->ffn,
                              model->vocab,
                              model->max_seq,
                              model->norm,
                              model->norm_bias,
                              model->mlp,
                              model->activation,
                              model->position,
                              model->rotary_dims,
                              model->qk_norm,
                              model->residual,
                              model->qkv_bias,
                              model->out_bias,
                              model->mlp_bias,
                              model->fused_qkv,
                              model->fused_gate_up,
                              model->tied_embeddings,
                              model->scaled_embeddings};
    hash_ints(hash, fields, sizeof fields / sizeof fields[0]);
    for (int i = 0; i < model->run_count; i++) {
        hash_text(hash, layer_kinds[model->runs[i].kind].name);
        hash_int(hash, model->runs[i].count);
    }
}

// Windows, scales and caps of attention.
static void hash_attention(const ModelSpec *model, Hash *hash) {
    if (model->window > 0) {
        hash_text(hash, "window");
        hash_int(hash, model->window);
    }
    if (model->window_first > 0 || model->window_every > 0) {
        hash_int(hash, model->window_first);
        hash_int(hash, model->window_every);
    }
    if (model->rope_local > 0) {
        hash_text(hash, "rope local");
        hash_double(hash, model->rope_local);
    }
    if (model->score_scalar > 0) {
        hash_text(hash, "score scalar");
        hash_int(hash, model->score_scalar);
    }
    if (model->attention_cap > 0 || model->logit_cap > 0) {
        hash_text(hash, "caps");
        hash_double(hash, model->attention_cap);
        hash_double(hash, model->logit_cap);
    }
}

void model_hash(const ModelSpec *model, Hash *hash) {
    const RopeScaling *scaling = &model->rope_scaling;
    hash_sizes(model, hash);
    hash_double(hash, model->rope_theta);
    hash_double(hash, model->norm_eps);
    hash_attention(model, hash);
    hash_experts(model, hash);
    if (scaling->factor > 0) {
        const double numbers[] = {scaling->factor, scaling->low, scaling->high, scaling->original};
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            hash_double(hash, numbers[i]);
        }
    }
}

// What a ModelSpec may hold, whatever its origin: ranges, divisibility, choices that exclude each other.

#include <math.h>

#include "sim/model/model.h"

typedef struct FieldCheck {
    const char *name;
    int value, count;
} FieldCheck;

static Status check_sizes(const ModelSpec *model, Error *error) {
    const FieldCheck sizes[] = {{"layers", model->layers, 0},     {"hidden", model->hidden, 0},
                                {"heads", model->heads, 0},       {"kv_heads", model->kv_heads, 0},
                                {"head_dim", model->head_dim, 0}, {"ffn", model->ffn, 0},
                                {"vocab", model->vocab, 0},       {"max_seq", model->max_seq, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        FAIL_IF(sizes[i].value < 1, error, STATUS_USAGE, "model %s: %s must be positive, got %d", model->name,
                sizes[i].name, sizes[i].value);
    }
    FAIL_IF(model->heads % model->kv_heads != 0, error, STATUS_USAGE, "model %s: kv_heads %d must divide heads %d",
            model->name, model->kv_heads, model->heads);
    // Every byte count must stay far from 2^63: 16 bytes per parameter of 2^56 parameters would still fit.
    const double parameters = (double)model->layers * model->hidden *
                              (3.0 * model->ffn + 2.0 * (model->heads + model->kv_heads) * (double)model->head_dim);
    const double positions = model->position == POSITION_LEARNED ? (double)model->max_seq * model->hidden : 0;
    FAIL_IF(parameters + positions + 2.0 * model->vocab * (double)model->hidden > 0x1p50, error, STATUS_USAGE,
            "model %s: about %.2g parameters, more than 2^50 are not supported", model->name, parameters + positions);
    return STATUS_OK;
}

// In order, every layer in one run.
static Status check_runs(const ModelSpec *model, Error *error) {
    int next = 0;
    for (int i = 0; i < model->run_count; i++) {
        const LayerRun run = model->runs[i];
        FAIL_IF((int)run.kind < 0 || run.kind >= LAYER_KIND_COUNT || run.first != next || run.count < 1 ||
                    run.count > model->layers - next,
                error, STATUS_USAGE, "model %s: run %d of its layers is %d from %d on, where %d of %d are left",
                model->name, i, run.count, run.first, model->layers - next, model->layers);
        next += run.count;
    }
    FAIL_IF(model->run_count > 0 && next < model->layers, error, STATUS_USAGE,
            "model %s: its runs have %d of %d layers", model->name, next, model->layers);
    return STATUS_OK;
}

static Status check_rotary(const ModelSpec *model, Error *error) {
    if (model->position != POSITION_ROTARY) {
        return STATUS_OK;
    }
    FAIL_IF(model->head_dim % 2 != 0, error, STATUS_USAGE, "model %s: head_dim must be even (rotary pairs), got %d",
            model->name, model->head_dim);
    FAIL_IF(model->rotary_dims < 0 || model->rotary_dims > model->head_dim || model->rotary_dims % 2 != 0, error,
            STATUS_USAGE, "model %s: rotary_dims must be even and between 0 and head_dim %d, got %d", model->name,
            model->head_dim, model->rotary_dims);
    FAIL_IF(!(model->rope_theta >= 1.0) || !isfinite(model->rope_theta), error, STATUS_USAGE,
            "model %s: rope_theta must be at least 1, got %g", model->name, model->rope_theta);
    const RopeScaling *scaling = &model->rope_scaling;
    FAIL_IF(scaling->factor != 0 && !(scaling->factor >= 1 && scaling->high > scaling->low && scaling->low >= 0), error,
            STATUS_USAGE,
            "model %s: rope scaling needs a factor of at least 1 and low < high, got factor %g, low %g, high %g",
            model->name, scaling->factor, scaling->low, scaling->high);
    return STATUS_OK;
}

static Status check_choices(const ModelSpec *model, Error *error) {
    const FieldCheck choices[] = {{"norm", (int)model->norm, NORM_COUNT},
                                  {"mlp", (int)model->mlp, MLP_COUNT},
                                  {"activation", (int)model->activation, ACTIVATION_COUNT},
                                  {"position", (int)model->position, POSITION_COUNT},
                                  {"qk_norm", (int)model->qk_norm, QK_NORM_COUNT},
                                  {"residual", (int)model->residual, RESIDUAL_COUNT}};
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        FAIL_IF(choices[i].value < 0 || choices[i].value >= choices[i].count, error, STATUS_USAGE,
                "model %s: %s has no choice %d", model->name, choices[i].name, choices[i].value);
    }
    FAIL_IF(model->norm_bias && model->norm != NORM_LAYER, error, STATUS_USAGE,
            "model %s: norm_bias goes with layer norms only", model->name);
    const bool norm_behind = model_norms_behind(model);
    FAIL_IF(norm_behind && model->out_bias, error, STATUS_USAGE,
            "model %s: out_bias in front of a norm is not modelled", model->name);
    FAIL_IF(norm_behind && model->mlp_bias, error, STATUS_USAGE,
            "model %s: mlp_bias in front of a norm is not modelled", model->name);
    FAIL_IF(model->residual == RESIDUAL_BOTH_NORMS && model->experts.count > 0, error, STATUS_USAGE,
            "model %s: experts between norms are not modelled", model->name);
    return STATUS_OK;
}

static Status check_window(const ModelSpec *model, Error *error) {
    FAIL_IF(model->window < 0 || model->window_first < 0 || model->window_every < 0 || model->window_every == 1, error,
            STATUS_USAGE,
            "model %s: window %d, window_first %d and window_every %d must not be negative, and a window "
            "that every layer goes without is none",
            model->name, model->window, model->window_first, model->window_every);
    return STATUS_OK;
}

static Status check_experts(const ModelSpec *model, Error *error) {
    const Experts *experts = &model->experts;
    const double most = (double)model->layers * experts->count * 3.0 * model->hidden * experts->ffn;
    FAIL_IF(experts->count > 0 && experts->active > experts->count, error, STATUS_USAGE,
            "model %s: a token visits %d experts, and there are %d", model->name, experts->active, experts->count);
    FAIL_IF(experts->count < 0 || experts->shared_ffn < 0 ||
                (experts->count > 0 && (experts->active < 1 || experts->ffn < 1)),
            error, STATUS_USAGE,
            "model %s: of %d experts of width %d a token visits %d, and the shared ones are %d wide", model->name,
            experts->count, experts->ffn, experts->active, experts->shared_ffn);
    const SigmoidRouter *router = &experts->sigmoid;
    FAIL_IF(router->groups < 0 ||
                (router->groups > 0 && (experts->count % router->groups != 0 || !(router->factor > 0) ||
                                        router->active_groups < 1 || router->active_groups > router->groups ||
                                        experts->count / router->groups * router->active_groups < experts->active)),
            error, STATUS_USAGE, "model %s: a token visits %d of %d experts, in %d of %d groups, weights times %g",
            model->name, experts->active, experts->count, router->active_groups, router->groups, router->factor);
    FAIL_IF(most > 0x1p50, error, STATUS_USAGE,
            "model %s: about %.2g parameters of experts, more than 2^50 are not supported", model->name, most);
    for (int i = 0; i < model->run_count && experts->count == 0; i++) {
        FAIL_IF(model->runs[i].kind == LAYER_EXPERTS, error, STATUS_USAGE,
                "model %s: has layers of experts and no experts", model->name);
    }
    return STATUS_OK;
}

static Status check_latent(const ModelSpec *model, Error *error) {
    const LatentAttention *latent = &model->latent;
    FAIL_IF(latent->kv_rank < 0 || latent->q_rank < 0 ||
                (latent->kv_rank > 0 && (latent->rope < 1 || latent->rope >= model->head_dim || latent->value < 1)),
            error, STATUS_USAGE,
            "model %s: latent attention of ranks %d and %d needs heads of which %d of %d elements turn, "
            "and values of %d",
            model->name, latent->q_rank, latent->kv_rank, latent->rope, model->head_dim, latent->value);
    return STATUS_OK;
}

Status model_check(const ModelSpec *model, Error *error) {
    TRY(check_sizes(model, error));
    TRY(check_choices(model, error));
    TRY(check_runs(model, error));
    TRY(check_rotary(model, error));
    TRY(check_window(model, error));
    TRY(check_experts(model, error));
    TRY(check_latent(model, error));
    FAIL_IF(!(model->norm_eps > 0.0) || model->norm_eps > 0.1, error, STATUS_USAGE,
            "model %s: norm_eps must be above 0 and at most 0.1, got %g", model->name, model->norm_eps);
    return STATUS_OK;
}

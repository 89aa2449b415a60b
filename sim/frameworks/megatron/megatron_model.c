// The model of a script with Megatron-LM's flags: what they can say of layers, positions and experts.

#include <math.h>
#include <string.h>

#include "sim/frameworks/megatron/megatron_files.h"

static bool is_type(const ModelSpec *model, const char *type) {
    return model->type && strcmp(model->type, type) == 0;
}

// yanring/Megatron-MoE-ModelZoo@e865051, model_configs/benchmarking/DeepSeek-V3.yaml
static bool is_deepseek_v3(const ModelSpec *model) {
    return is_type(model, "deepseek_v3") && model->latent.q_rank > 0 && model->experts.sigmoid.groups > 0;
}

// examples/post_training/modelopt/conf/openai/gpt-oss-20b.sh
static bool is_gpt_oss(const ModelSpec *model) {
    return is_type(model, "gpt_oss");
}

// Beside these, types whose router weighs what it chose by a softmax over that, as Megatron-LM's does by itself.
static bool knows_experts(const ModelSpec *model) {
    const bool known = is_type(model, "mixtral") || is_type(model, "qwen3_moe") || is_gpt_oss(model);
    return is_deepseek_v3(model) || (model->run_count == 0 && known);
}

// Biases of all products, of queries, keys and values alone, or none.
static bool knows_biases(const ModelSpec *model) {
    const bool all = model->mlp_bias || model->experts.bias;
    return model->out_bias == all && (!all || model->qkv_bias) && !model->head_bias &&
           (model->norm == NORM_RMS || model->norm_bias);
}

static bool knows_layers(const ModelSpec *model) {
    const bool activation =
        model->mlp == MLP_GATED ? model->activation == ACTIVATION_SILU : model->activation != ACTIVATION_SILU;
    const bool plain_scores = model->score_scalar == 0 && model->attention_cap == 0 && model->logit_cap == 0;
    return activation && model->residual == RESIDUAL_PRE_NORM && model->position != POSITION_ALIBI &&
           model->qk_norm != QK_NORM_WHOLE && !model->scaled_embeddings && plain_scores && knows_biases(model);
}

// As llama3 does: the factor alone has a flag, 1, 4 and 8192 are its own (common/embeddings/rotary_pos_embedding.py).
static bool is_llama3(const RopeScaling *scaling) {
    return scaling->low == 1 && scaling->high == 4 && scaling->original == 8192;
}

// All pairs alike, by a whole factor: --rotary-seq-len-interpolation-factor is an int.
static bool is_linear(const RopeScaling *scaling) {
    return scaling->original == 0 && scaling->factor == floor(scaling->factor);
}

static double yarn_original(const ModelSpec *model) {
    return model->yarn.original > 0 ? model->yarn.original : model->max_seq;
}

// Latent attention stretches them by yarn or not at all, by yarn from 4096 with its own betas (MLATransformerConfig,
// whose fields of those have no flags).
static bool knows_positions(const ModelSpec *model) {
    const RopeScaling *scaling = &model->rope_scaling;
    const YarnScaling *yarn = &model->yarn;
    if (model->latent.kv_rank == 0) {
        return model->rope_local == 0 && (scaling->factor == 0 || is_llama3(scaling) || is_linear(scaling));
    }
    const bool own = yarn_original(model) == 4096 && yarn->fast == 32 && yarn->slow == 1 && !yarn->unrounded;
    return scaling->factor == 0 && (yarn->factor == 0 || own);
}

// Which does nothing within the model's own length (transformers' modeling_rope_utils.py).
static bool is_dynamic(const ModelSpec *model) {
    return model->positions && strcmp(model->positions, "dynamic") == 0;
}

static bool stretches_unread(const ModelSpec *model, int seq) {
    return model->positions && (!is_dynamic(model) || seq > model->max_seq);
}

// get_attention_backend of Transformer Engine at d0067d0da: FlashAttention is left out for any softmax but the plain.
const char *megatron_refuse_kernel(const ConfigJob *job) {
    REFUSE_IF(job->arena, job->model->sinks && job->plan->attention == ATTENTION_FLASH,
              "Transformer Engine has no FlashAttention with sinks, which %s has: use --attention cudnn",
              job->model->name);
    return NULL;
}

const char *megatron_refuse_model(const ConfigJob *job) {
    const ModelSpec *model = job->model;
    REFUSE_IF(job->arena, !knows_layers(model),
              "no flags of Megatron-LM describe the layers of %s: use a llama, qwen or gpt2 model", model->name);
    REFUSE_IF(job->arena, !knows_positions(model),
              "no flags of Megatron-LM stretch the positions of %s as its config.json does: use --as megatron-bridge "
              "with --target megatron@bridge-0.6",
              model->name);
    REFUSE_IF(
        job->arena, stretches_unread(model, job->plan->seq),
        "no flags of Megatron-LM stretch the positions of %s, which are of type %s: use --as megatron-bridge with "
        "--target megatron@bridge-0.6%s",
        model->name, model->positions,
        is_dynamic(model) ? arena_format(job->arena, ", or --seq %d", model->max_seq) : "");
    REFUSE_IF(job->arena, model->latent.kv_rank == 0 && model->yarn.factor > 0 && job->plan->mtp > 0,
              "Megatron-LM stops at --mtp-num-layers with the positions of %s, which are yarn's: use --mtp 0",
              model->name);
    REFUSE_IF(job->arena, model->experts.count > 0 && !knows_experts(model),
              "flags of Megatron-LM for layers of experts like those of %s are not written yet: use --as "
              "megatron-bridge with --target megatron@bridge-0.6, whose recipe takes the model from its checkpoint",
              model->name);
    return megatron_refuse_kernel(job);
}

static const char *dispatcher_words(const ConfigJob *job) {
    static const char *const words[DISPATCH_COUNT] = {[DISPATCH_ALLTOALL] = "alltoall",
                                                      [DISPATCH_ALLGATHER] = "allgather",
                                                      [DISPATCH_DEEPEP] = "flex --moe-flex-dispatcher-backend deepep",
                                                      [DISPATCH_HYBRIDEP] =
                                                          "flex --moe-flex-dispatcher-backend hybridep"};
    return words[target_dispatch(job->target, job->plan)];
}

// [0]*3+[1]*58: dense layers, and those of experts.
static void write_layer_kinds(const ModelSpec *model, FILE *out) {
    fputs("    --moe-layer-freq \"(", out);
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        fprintf(out, "%s[%d]*%d", i > 0 ? "+" : "", run.kind == LAYER_EXPERTS, run.count);
    }
    fputs(")\"\n", out);
}

static void write_router(const ConfigJob *job, FILE *out) {
    const Experts *experts = &job->model->experts;
    if (!is_deepseek_v3(job->model)) {
        fputs("    --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 1e-2\n", out);
        // DeepEP and HybridEP take weights in fp32 only (transformer/moe/token_dispatcher.py)
        fputs(job->plan->dispatch >= DISPATCH_DEEPEP ? "    --moe-router-dtype fp32\n" : "", out);
        return;
    }
    write_layer_kinds(job->model, out);
    fprintf(
        out,
        "    --moe-shared-expert-intermediate-size %d\n"
        "    --moe-router-score-function sigmoid --moe-router-enable-expert-bias --moe-router-bias-update-rate 1e-3\n"
        "    --moe-router-num-groups %d --moe-router-group-topk %d --moe-router-topk-scaling-factor %g\n"
        "    --moe-router-load-balancing-type seq_aux_loss --moe-aux-loss-coeff 1e-4 --moe-router-dtype fp32\n",
        experts->shared_ffn, experts->sigmoid.groups, experts->sigmoid.active_groups, experts->sigmoid.factor);
}

// By the dispatcher that is predicted: its own default gathers the tokens of all ranks instead.
static void write_experts(const ConfigJob *job, FILE *out) {
    static const double PER_CENT = 100;
    const Experts *experts = &job->model->experts;
    if (experts->count > 0) {
        fprintf(out,
                "    --num-experts %d --moe-router-topk %d --moe-ffn-hidden-size %d\n"
                "    --moe-grouped-gemm --moe-permute-fusion --moe-router-fusion --moe-token-dispatcher-type %s\n",
                experts->count, experts->active, experts->ffn, dispatcher_words(job));
        write_router(job, out);
        PRINT_IF(job->plan->expert_capacity > 0, out, "    --moe-expert-capacity-factor %g%s\n",
                 job->plan->expert_capacity / PER_CENT,
                 job->plan->pad_experts ? " --moe-pad-expert-input-to-capacity" : "");
    }
}

// Layers that look back all the way: every so many-th, or, where the first ones do, [0]*21+[1]*7.
static void write_window(const ModelSpec *model, FILE *out) {
    if (model->window == 0) {
        return;
    }
    fprintf(out, "    --window-size %d,0", model->window - 1);
    if (model->window_first == 0) {
        PRINT_IF(model->window_every > 0, out, " --window-attn-skip-freq %d", model->window_every);
    } else {
        fputs(" --window-attn-skip-freq \"(", out);
        for (int layer = 0, next; layer < model->layers; layer = next) {
            const bool slides = model_layer_slides(model, layer);
            for (next = layer + 1; next < model->layers && model_layer_slides(model, next) == slides;) {
                next++;
            }
            fprintf(out, "%s[%d]*%d", layer > 0 ? "+" : "", slides, next - layer);
        }
        fputs(")\"", out);
    }
    fputc('\n', out);
}

static void write_attention(const ModelSpec *model, FILE *out) {
    const LatentAttention *latent = &model->latent;
    write_window(model, out);
    fputs(model->sinks ? "    --softmax-type learnable\n" : "", out);
    if (latent->kv_rank == 0) {
        fprintf(out, "    --num-attention-heads %d --group-query-attention --num-query-groups %d --kv-channels %d\n",
                model->heads, model->kv_heads, model->head_dim);
        return;
    }
    fprintf(out,
            "    --num-attention-heads %d --kv-channels %d --multi-latent-attention --qk-layernorm\n"
            "    --q-lora-rank %d --kv-lora-rank %d --qk-head-dim %d --qk-pos-emb-head-dim %d --v-head-dim %d\n",
            model->heads, model->head_dim - latent->rope, latent->q_rank, latent->kv_rank,
            model->head_dim - latent->rope, latent->rope, latent->value);
    // Yarn that stretches nothing is plain rotation: beside --rope-type rope its fused kernel is refused
    const YarnScaling none = {.factor = 1, .mscale = 1}, *yarn = model->yarn.factor > 0 ? &model->yarn : &none;
    fprintf(out, "    --rotary-scaling-factor %g --mscale %g --mscale-all-dim %g\n", yarn->factor, yarn->mscale,
            yarn->mscale_all);
}

// pretrain_gpt.py of 2026-08 takes 8 whatever the factor's flag says (argument_utils.py, gpt_config_from_args).
static void write_llama3(double factor, FILE *out) {
    static const double own = 8;
    fprintf(out, "    --use-rope-scaling --rope-scaling-factor %g%s\n", factor,
            factor == own ? "" : "  # which pretrain_gpt.py of 2026-08 leaves at 8");
}

static void write_positions(const ModelSpec *model, FILE *out) {
    const RopeScaling *scaling = &model->rope_scaling;
    const YarnScaling *yarn = &model->yarn;
    if (model->position != POSITION_ROTARY) {
        fputs("    --position-embedding-type learned_absolute\n", out);
        return;
    }
    const bool latent = model->latent.kv_rank > 0, by_yarn = yarn->factor > 0 && !latent;
    fputs(by_yarn ? "    # Megatron-LM turns them by separate operations, which no predicted time has\n" : "", out);
    fprintf(out, "    --position-embedding-type %s --rotary-base %.0f\n", by_yarn ? "yarn" : "rope", model->rope_theta);
    PRINT_IF(model->rotary_dims > 0 && !latent, out, "    --rotary-percent %.9g\n",
             (double)model->rotary_dims / model->head_dim);
    if (by_yarn) {
        // transformers takes the ratio of both factors where both are given (modeling_rope_utils.py), else that of 1
        const double mscale = yarn->mscale_all > 0 ? yarn->mscale : 1;
        fprintf(out,
                "    --rotary-scaling-factor %g --yarn-original-max-position-embeddings %.0f\n"
                "    --yarn-beta-fast %g --yarn-beta-slow %g --mscale %g --mscale-all-dim %g\n",
                yarn->factor, yarn_original(model), yarn->fast, yarn->slow, mscale, yarn->mscale_all);
        fputs(yarn->unrounded ? "    --no-yarn-correction-range-round-to-int\n" : "", out);
    } else if (scaling->factor > 0 && is_llama3(scaling)) {
        write_llama3(scaling->factor, out);
    } else if (scaling->factor > 0) {
        fprintf(out, "    --rotary-seq-len-interpolation-factor %g\n", scaling->factor);
    }
}

// Of GPT-OSS: clamped, gate by a quick GELU; unfused, as it is predicted and as Megatron-LM's own scripts have it.
// TEGroupedMLP asserts that products with biases do without fused dropout.
static const char clamped_glu[] =
    "    --quick-geglu --glu-linear-offset 1.0 --activation-func-clamp-value 7.0 --no-bias-gelu-fusion\n"
    "    --no-bias-dropout-fusion\n";

static void write_products(const ConfigJob *job, FILE *out) {
    const ModelSpec *model = job->model;
    const bool biases = model->mlp_bias || model->experts.bias;
    fputs(is_gpt_oss(model) ? clamped_glu : model->mlp == MLP_GATED ? "    --swiglu\n" : "", out);
    fputs(job->plan->op_fuser ? "    --use-transformer-engine-op-fuser\n" : "", out);
    fputs(biases ? "" : "    --disable-bias-linear\n", out);
    fputs(model->qkv_bias && !biases ? "    --add-qkv-bias\n" : "", out);
    fputs(model->qk_norm == QK_NORM_HEAD ? "    --qk-layernorm\n" : "", out);
    fputs(model->tied_embeddings ? "" : "    --untie-embeddings-and-output-weights\n", out);
}

void megatron_write_model(const ConfigJob *job, FILE *out) {
    const ModelSpec *model = job->model;
    fprintf(out,
            "MODEL=(\n"
            "    --use-mcore-models --transformer-impl transformer_engine\n"
            "    --num-layers %d --hidden-size %d --ffn-hidden-size %d\n",
            model->layers, model->hidden, model->ffn);
    write_attention(model, out);
    fprintf(out,
            "    --max-position-embeddings %d --seq-length %d\n"
            "    --normalization %s --norm-epsilon %g\n",
            job->plan->seq > model->max_seq ? job->plan->seq : model->max_seq, job->plan->seq,
            model->norm == NORM_RMS ? "RMSNorm" : "LayerNorm", model->norm_eps);
    write_positions(model, out);
    // The plan has no dropout, Megatron's default is 0.1
    fprintf(out, "    --attention-dropout 0 --hidden-dropout 0%s\n",
            job->plan->loss == LOSS_ONE_COPY ? "" : " --cross-entropy-loss-fusion");
    write_products(job, out);
    write_experts(job, out);
    PRINT_IF(job->plan->mtp > 0, out, "    --mtp-num-layers %d\n", job->plan->mtp);
    fputs(")\n", out);
}

// Switches of Megatron-LM's functional tests, by the names of their folders: model_config.yaml beside each golden file,
// read at d98e8a64d, the commit that rows are cited from.

#include "autotune/accuracy/run_tests.h"

#include <stdio.h>
#include <string.h>

#include "autotune/accuracy/run_source.h"

bool row_is_of_core(const RunRow *row) {
    return row_cites(row, "Megatron-LM@") && row_cites(row, ":tests/functional_tests/");
}

// --transformer-impl local in model_config.yaml: these and no others.
bool row_has_local_layers(const RunRow *row) {
    return row_is_of_core(row) && row_cites(row, "/gpt3_mcore_tp") && !row_cites(row, "/gpt3_mcore_tp2_cp2_");
}

// Without --moe-grouped-gemm.
static const char *const one_by_one[] = {"te_8experts2parallel_dist_optimizer", "te_8experts2parallel_multi_dist",
                                         "te_4experts2parallel", "te_2experts", NULL};

// Without --moe-permute-fusion and --moe-router-fusion, which few of them have.
static const char *const routing_apart[] = {"/moe/gpt3_mcore_te_tp1_",
                                            "/moe/gpt3_mcore_te_tp2_pp1_",
                                            "/moe/gpt3_mcore_te_tp2_zp_z3_",
                                            "/moe/gpt3_mcore_tp2_",
                                            "/moe/gpt3_mcore_cp2_",
                                            "/moe/gpt3_moe_mcore_te_ep8_",
                                            "/moe/gpt3_moe_mcore_te_tp4_ep2_etp2_pp2_resume_",
                                            "/mixtral/mixtral_8x",
                                            NULL};

// --no-gradient-accumulation-fusion is in 845 of their 866 rows, but in none of those of real size and few others.
static const char *const fused_sums[] = {"_te_tp2_pp2_ep4_etp1_", "/mixtral/mixtral_8x", "15b_8t_release",
                                         "/hybrid_flextron_", NULL};

bool row_adds_gradients(const RunRow *row) {
    return row_is_of_core(row) && !row_cites_any(row, fused_sums);
}

// Without --moe-aux-loss-coeff, whatever their balance is called.
static const char *const unbalanced[] = {"/moe/gpt3_moe_mcore_te_ep8_", "/moe/gpt3_moe_mcore_te_tp4_ep2_etp2_pp2_",
                                         NULL};

// Of latent attention and experts, with --no-rope-fusion and without --moe-router-fusion, and Megatron-Bridge's recipe
// of Moonlight (apply_rope_fusion of its provider and moe_router_fusion are False, 067f987df).
static const char *const unfused_latent[] = {"_te_tp2_pp2_ep4_etp1_", "/moe/deepseek_proxy_fsdp_", NULL};

bool row_runs_moonlight(const RunRow *row) {
    return row_cites(row, "Megatron-Bridge@") && row_cites(row, "[Moonlight");
}

// AWS's benchmarks of dispatchers take recipes of Megatron-Bridge 0.4.2 (qwen3_moe.py, deepseek_v3.py:
// moe_router_fusion is False) whose providers leave apply_rope_fusion at Megatron-core's default or set it False.
static bool row_is_of_dispatchers(const RunRow *row) {
    return row_cites(row, "awsome-distributed-ai@") && row_cites(row, "/benchmarks/");
}

bool row_fuses_no_choice(const RunRow *row) {
    return (row_is_of_core(row) && row_cites_any(row, unfused_latent)) || row_runs_moonlight(row) ||
           row_is_of_dispatchers(row);
}

// Dense layers of these tests, with --no-rope-fusion.
bool row_turns_apart(const RunRow *row) {
    static const char *const unfused_rope[] = {"_interleaved_no_fusion", "_modelopt_distill_", NULL};
    return row_is_of_core(row) && row_cites_any(row, unfused_rope);
}

bool row_is_of_experts(const RunRow *row) {
    return row->experts.count > 0 && row_is_of_core(row) && row_cites_any(row, routing_apart);
}

// Rounds until the balance of a router as it is initialised moves by less than Megatron's 1e-4: 3 in each of 16 draws
// of 1,024 to 4,096 tokens, 512 wide, weights of 0.02 over 8 experts, tokens alike by up to 0.9; tests of 50 to 100
// steps with a warm-up of 3,200 do not move it far (4 with logits twice as wide).
enum { ROUNDS_AT_FIRST = 3 };

void take_experts_of_test(const RunRow *row, TargetRuntime *runtime) {
    runtime->routes_apart = true;
    runtime->balances_nothing = row_cites_any(row, unbalanced);
    runtime->experts_one_by_one = row_cites_any(row, one_by_one);
    runtime->sinkhorn_rounds = row->balance && strcmp(row->balance, "sinkhorn") == 0 ? ROUNDS_AT_FIRST : 0;
}

// --attention-backend: unfused.
static const char *const unfused[] = {"_pp4_vp1/",
                                      "_pp4_vp1_1node/",
                                      "_pp4_vp1_dist_optimizer_",
                                      "_pp4_vp1_tunable_",
                                      "_pp4_vp1_uneven_",
                                      "_account_for_embedding_loss_",
                                      "_te_tp2_pp2_mla",
                                      "_modelopt_distill_",
                                      "_te_tp4_pp1_dist_optimizer_",
                                      "te_8experts2parallel_ddp_average_in_collective",
                                      "te_8experts2parallel_overlap_grad_reduce",
                                      "tp2_pp1_te_8experts2parallel_",
                                      "tp2_pp1_te_8experts_etp1_ep4",
                                      "tp2_pp1_te_a2a_ovlp_8experts",
                                      "tp2_pp2_ep2_etp2_te_4experts2parallel",
                                      "tp2_pp2_ep2_te_4experts2parallel",
                                      "_te_tp2_pp2_ep4_etp1_",
                                      "/moe/deepseek_proxy_fsdp_",
                                      NULL};

// Before cuDNN's kernels and FlashAttention of the containers that are called lts were deterministic, on A100
// (get_attention_backend, Transformer Engine v1.13 to v2.8): tests with NVTE_ALLOW_NONDETERMINISTIC_ALGO: 0. Of dense
// ones the files of the first machine alone, whose memory says so (tests/accuracy/megatron_ci, RESULTS).
static bool lacks_deterministic_kernel(const RunRow *row) {
    static const char *const free[] = {"nondeterministic", "reshard_2x1x4", NULL};
    const char *values = row->experts.count > 0 ? "golden_values_lts" : "/golden_values_lts_dgxa100_";
    return row_cites(row, values) && !row_cites_any(row, free);
}

bool row_attends_apart(const RunRow *row) {
    return row_is_of_core(row) && (row_cites_any(row, unfused) || lacks_deterministic_kernel(row));
}

// Without --deterministic-mode, whether or not CUBLAS_WORKSPACE_CONFIG is set.
static const char *const undetermined[] = {"nondeterministic", "_te_tp2_pp2_cp2", "_reshard_8x1x", "_reshard_2x1x4_",
                                           "_pp2_ep4_etp1_",   "_8t_release",     "/mixtral/",     NULL};

bool row_is_deterministic(const RunRow *row) {
    return row_is_of_core(row) && !row_cites_any(row, undetermined);
}

// Of these, those of cp have no dropout.
static bool is_undropped(const RunRow *row) {
    static const char *const of_cp[] = {"_cp2_", "_cp2/", "_cp4_", NULL};
    return row_is_of_core(row) && !row_is_deterministic(row) && row_cites_any(row, of_cp);
}

// Megatron-LM's own tests set what arguments.py does not: where a row says none of it, it is what most of their
// model_config.yaml at d98e8a64d leave or say. No fused loss (all), hidden_dropout 0.1 (235 of 282 runs), and
// CUBLAS_WORKSPACE_CONFIG for deterministic products (240).
static bool is_bare_test(const RunRow *row) {
    return row_is_of_core(row) && row->plan_word[PLAN_LOSS][0] == '\0' && row->dropout == 0 &&
           row->cublas_workspaces[0] == '\0';
}

// Its tests of latent attention that no preset is like: what their model_config.yaml says, which but for one is the
// default of MLATransformerConfig (transformer_config.py).
void row_take_latent_head(const RunRow *row, int *head_dim, LatentAttention *latent) {
    const bool small = row_cites(row, ":tests/functional_tests/test_cases/gpt/gpt3_mcore_te_tp2_pp2_mla");
    if (!row_is_of_core(row)) {
        return;
    }
    const LatentAttention tested =
        small ? (LatentAttention){.rope = 8, .value = 16} : (LatentAttention){.rope = 64, .value = 128};
    latent->rope = latent->rope > 0 ? latent->rope : tested.rope;
    latent->value = latent->value > 0 ? latent->value : tested.value;
    *head_dim = *head_dim > 0 ? *head_dim : tested.value + tested.rope;
}

static const char biasless[] = "_disable_bias_linear";

bool row_has_plain_gelu(const RunRow *row) {
    return row_is_of_core(row) && row_cites(row, biasless);
}

// What of a layer the columns cannot say: --position-embedding-type, --normalization, --disable-bias-linear,
// --qk-layernorm, and that a gated MLP alone is no Llama. Others are as GPT-2's, the defaults of arguments.py.
typedef struct TestModel {
    const char *cites;
    bool gated_gpt, rotary, rms, no_bias, normed_heads;
    int rotary_of;  // a head; 0 = all of it
} TestModel;

static const TestModel structures[] = {
    {"gpt/gpt3_mcore_te_tp1_pp4_resume_torch_dist_swiglu", .gated_gpt = true},
    {"_rope_embeddings", .rotary = true},
    {biasless, .no_bias = true},
    {"_qk_layernorm_", .normed_heads = true},
    {"_modelopt_distill_", .gated_gpt = true, .rotary = true, .rms = true, .no_bias = true, .rotary_of = 2},
    {"gpt3_weekly_mcore_tp4_cp2_current_scaling_", .rms = true},
};

static void take_structure(const TestModel *test, ModelSpec *model) {
    if (test->gated_gpt) {
        model->norm = NORM_LAYER;
        model->position = POSITION_LEARNED;
        model->norm_bias = model->qkv_bias = model->out_bias = model->mlp_bias = true;
    }
    if (test->rms) {
        model->norm = NORM_RMS;
        model->norm_bias = false;
    }
    if (test->rotary) {
        static const double base = 10000;  // --rotary-base of arguments.py
        model->position = POSITION_ROTARY;
        model->rope_theta = base;
        model->rotary_dims = test->rotary_of > 0 ? model->head_dim / test->rotary_of : 0;
    }
    if (test->no_bias) {
        model->qkv_bias = model->out_bias = model->mlp_bias = false;
    }
    model->qk_norm = test->normed_heads ? QK_NORM_HEAD : model->qk_norm;
}

void row_take_structure(const RunRow *row, ModelSpec *model) {
    for (size_t i = 0; row_is_of_core(row) && i < sizeof structures / sizeof structures[0]; i++) {
        if (row_cites(row, structures[i].cites)) {
            take_structure(&structures[i], model);
        }
    }
}

bool row_has_test_loss(const RunRow *row, const Target *target) {
    return is_bare_test(row) && (target->losses_by_call & LOSS_BIT(LOSS_ONE_COPY));
}

bool row_drops_in_test(const RunRow *row) {
    return is_bare_test(row) && !is_undropped(row);
}

// ":4096:2:16:8": two of 4096 KiB and eight of 16.
double row_workspace_bytes(const RunRow *row) {
    static const double KIB = 1024;
    const bool sets = is_bare_test(row) && (row_is_deterministic(row) || row->experts.count > 0);
    const char *at = sets ? ":4096:8" : row->cublas_workspaces;
    double bytes = 0;
    int kib = 0, count = 0, read = 0;
    while (at && sscanf(at, ":%d:%d%n", &kib, &count, &read) == 2) {
        bytes += KIB * kib * count;
        at += read;
    }
    return bytes;
}

bool row_sets_workspaces(const RunRow *row) {
    return row_workspace_bytes(row) > 0;
}

// What columns of the reference's rows leave out, or have otherwise: --moe-layer-freq, --mtp-num-layers, --swiglu,
// --fp8-recipe, --cuda-graph-modules, --attention-dropout and --optimizer.
typedef struct TestRow {
    const char *cites;
    int64_t dense_layers, mtp;
    const char *mlp, *fp8_recipe, *graphs, *attention_dropout, *optimizer;
} TestRow;

static const TestRow tested[] = {
    {"_te_tp2_pp2_ep4_etp1_memory_", 1, 1, .mlp = "swiglu", .attention_dropout = "0"},
    {"_te_tp2_pp2_ep4_etp1_mtp_", 1, 1, .mlp = "swiglu", .fp8_recipe = "tensorwise", .attention_dropout = "0"},
    {"/moe/deepseek_proxy_fsdp_ep2_fsdp2/", 3, .fp8_recipe = "tensorwise", .attention_dropout = "0"},
    {"/moe/deepseek_proxy_fsdp_ep2_fsdp2_", 1, .fp8_recipe = "tensorwise", .attention_dropout = "0"},
    {"_etp2_pp2_scoped_cudagraph", 4, 1, .fp8_recipe = "blockwise", .graphs = "attn+mlp+router",
     .attention_dropout = "0"},
    {"_te_ep8_resume_torch_dist_muon", .optimizer = "muon"},
};

static const char *said_or(const char *word, const char *other) {
    return word[0] || !other ? word : other;
}

static void correct(RunRow *row, const TestRow *test) {
    const char **words = row->plan_word;
    row->mlp = test->mlp ? test->mlp : row->mlp;
    row->experts.dense_layers = row->experts.dense_layers > 0 ? row->experts.dense_layers : test->dense_layers;
    row->plan_number[PLAN_MTP] = row->plan_number[PLAN_MTP] > 0 ? row->plan_number[PLAN_MTP] : test->mtp;
    row->attention_dropout = said_or(row->attention_dropout, test->attention_dropout);
    words[PLAN_OPTIMIZER] = said_or(words[PLAN_OPTIMIZER], test->optimizer);
    words[PLAN_CUDA_GRAPHS] = said_or(words[PLAN_CUDA_GRAPHS], test->graphs);
    if (strcmp(words[PLAN_PRECISION], "fp8") == 0) {
        words[PLAN_FP8_RECIPE] = said_or(words[PLAN_FP8_RECIPE], test->fp8_recipe);
    }
}

const RunRow *row_as_tested(const RunRow *row, Arena *arena) {
    for (size_t i = 0; row_is_of_core(row) && i < sizeof tested / sizeof tested[0]; i++) {
        if (row_cites(row, tested[i].cites)) {
            RunRow *own = ARENA_NEW(arena, RunRow);
            *own = *row;
            correct(own, &tested[i]);
            return own;
        }
    }
    return row;
}

// --check-weight-hash-across-dp-replicas-interval: 1.
bool row_hashes_weights(const RunRow *row) {
    return row_is_of_core(row) && row_cites(row, "_te_ep8_resume_torch_dist_muon");
}

// --optimizer: dist_muon with --no-use-layer-wise-param-layout.
bool row_deals_by_layer(const RunRow *row) {
    return row_is_of_core(row) && row_cites(row, "_te_ep8_resume_torch_dist_dist_muon");
}

// --is-hybrid-model: its rows have the sizes of its attention alone.
bool row_is_hybrid(const RunRow *row) {
    return row_is_of_core(row) && row_cites(row, "/hybrid/");
}

// --num-distributed-optimizer-instances: 2, each of which shards over half of the ranks. The values called lts of the
// test of experts are those of the one without.
enum { INSTANCES = 2 };

void take_instances(const RunRow *row, Mesh *mesh) {
    const bool without = row->experts.count > 0 && row_cites(row, "golden_values_lts");
    if (row_is_of_core(row) && row_cites(row, "multi_dist_optimizer_instances") && !without &&
        mesh->size[AXIS_DP_SHARD] % INSTANCES == 0) {
        mesh->size[AXIS_DP_SHARD] /= INSTANCES;
        mesh->size[AXIS_DP_REPLICATE] *= INSTANCES;
    }
}

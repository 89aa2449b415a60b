// The built-in models: a row each. Figures are the published config.json of each model; a golden test checks the
// parameter counts against the published ones. The sizes of the GPT-3 paper (125m to 1.3b, 175b) are GPT-2 type with
// 2048 learned positions and GPT-2's 50257 words padded to 50304, as Megatron-LM and nanoGPT pad them, so that tensor
// parallelism can split them.

#include "sim/model/model.h"
#include "sim/model/model_families.h"

#define SHAPE(LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN)                                                          \
    .layers = (LAYERS), .hidden = (HIDDEN), .heads = (HEADS), .kv_heads = (KV_HEADS), .head_dim = (HEAD_DIM),          \
    .ffn = (FFN)

// Words, positions, base of the rotary angles, epsilon of the norms.
#define SIZES(VOCAB, MAX_SEQ, ROPE_THETA, NORM_EPS)                                                                    \
    .vocab = (VOCAB), .max_seq = (MAX_SEQ), .rope_theta = (ROPE_THETA), .norm_eps = (NORM_EPS)

#define GPT3_SIZES .vocab = 50304, .max_seq = 2048, .norm_eps = 1e-5, .tied_embeddings = true, FAMILY_GPT2
#define LLAMA1_SIZES SIZES(32000, 2048, 1e4, 1e-6), FAMILY_LLAMA
#define LLAMA2_SIZES SIZES(32000, 4096, 1e4, 1e-5), FAMILY_LLAMA
// rope_scaling of type llama3, factors 1 and 4 of 8192 positions.
#define LLAMA31_SIZES(times) .max_seq = 131072, .rope_scaling = {times, 1, 4, 8192}, LLAMA3_SIZES
#define LLAMA3_SIZES .vocab = 128256, .rope_theta = 5e5, .norm_eps = 1e-5, FAMILY_LLAMA
#define QWEN2_SIZES .rope_theta = 1e6, .norm_eps = 1e-6, FAMILY_QWEN2
#define QWEN3_SIZES SIZES(151936, 40960, 1e6, 1e-6), FAMILY_QWEN3
#define GEMMA_SIZES SIZES(256000, 8192, 1e4, 1e-6), .tied_embeddings = true, FAMILY_GEMMA
// The language model alone; the words of the larger ones are 262144 and what stands for a picture. The layers that see
// all rotate 8 times slower (rope_scaling of type linear).
#define GEMMA3_SIZES .norm_eps = 1e-6, .rope_theta = 1e6, .rope_local = 1e4, .tied_embeddings = true, FAMILY_GEMMA3
#define GEMMA3_WITH_EYES                                                                                               \
    .vocab = 262208, .max_seq = 131072, .window = 1024, .window_every = 6, .rope_scaling = {8, 1, 2, 0},               \
    .note = "the part that sees pictures is left out; " SLIDES("1024"), GEMMA3_SIZES
#define GPT2_SIZES .vocab = 50257, .max_seq = 1024, .norm_eps = 1e-5, .tied_embeddings = true, FAMILY_GPT2
#define NEOX_SIZES .max_seq = 2048, .rope_theta = 1e4, .norm_eps = 1e-5, FAMILY_GPT_NEOX
#define MPT_SIZES .vocab = 50432, .norm_eps = 1e-5, .tied_embeddings = true, FAMILY_MPT
#define OLMO2_SIZES SIZES(100352, 4096, 5e5, 1e-6), FAMILY_OLMO2

#define EXPERTS(COUNT, ACTIVE, FFN) .experts = {.count = (COUNT), .active = (ACTIVE), .ffn = (FFN)}
#define SHARED_EXPERTS(COUNT, ACTIVE, FFN, SHARED)                                                                     \
    .experts = {.count = (COUNT), .active = (ACTIVE), .ffn = (FFN), .shared_ffn = (SHARED)}
#define SHARED_EXPERTS_GATED(COUNT, ACTIVE, FFN, SHARED)                                                               \
    .experts = {.count = (COUNT),                                                                                      \
                .active = (ACTIVE),                                                                                    \
                .ffn = (FFN),                                                                                          \
                .shared_ffn = (SHARED),                                                                                \
                .shared_gate = true,                                                                                   \
                .unscaled = true}
#define SIGMOID_EXPERTS(COUNT, GROUPS, ACTIVE_GROUPS, FACTOR)                                                          \
    .experts = {.count = (COUNT),                                                                                      \
                .active = 8,                                                                                           \
                .ffn = 2048,                                                                                           \
                .shared_ffn = 2048,                                                                                    \
                .sigmoid = {(GROUPS), (ACTIVE_GROUPS), (FACTOR)}}
#define RUNS(TABLE) .runs = (TABLE), .run_count = (int)(sizeof(TABLE) / sizeof(TABLE)[0])
#define GPT_OSS_SIZES(COUNT)                                                                                           \
    SIZES(201088, 131072, 1.5e5, 1e-5),                                                                                \
        .window = 128, .window_every = 2,                                                                              \
        .experts = {.count = (COUNT), .active = 4, .ffn = 2880, .router_bias = true, .bias = true},                    \
        .yarn = {32, 1, 0, 4096, 32, 1, true}, FAMILY_GPT_OSS
#define DEEPSEEK_HEAD(Q_RANK)                                                                                          \
    .latent = {.q_rank = (Q_RANK), .kv_rank = 512, .rope = 64, .value = 128}, .rotary_dims = 64
#define DEEPSEEK_V2_SIZES SIZES(102400, 163840, 1e4, 1e-6), FAMILY_DEEPSEEK_V2
#define LLAMA4_SIZES                                                                                                   \
    .vocab = 202048, .rope_theta = 5e5, .norm_eps = 1e-5, .window = 8192, .window_every = 4, FAMILY_LLAMA4

// Dense layers come first, and then those of experts; Maverick's alternate.
static const LayerRun deepseek_v2_lite_runs[] = {{LAYER_DENSE, 0, 1}, {LAYER_EXPERTS, 1, 26}};
static const LayerRun deepseek_v2_runs[] = {{LAYER_DENSE, 0, 1}, {LAYER_EXPERTS, 1, 59}};
static const LayerRun deepseek_v3_runs[] = {{LAYER_DENSE, 0, 3}, {LAYER_EXPERTS, 3, 58}};
static const LayerRun kimi_k2_runs[] = {{LAYER_DENSE, 0, 1}, {LAYER_EXPERTS, 1, 60}};
#define PAIR(FIRST)                                                                                                    \
    {LAYER_DENSE, (FIRST), 1}, {                                                                                       \
        LAYER_EXPERTS, (FIRST) + 1, 1                                                                                  \
    }
#define FOUR_PAIRS(FIRST) PAIR(FIRST), PAIR((FIRST) + 2), PAIR((FIRST) + 4), PAIR((FIRST) + 6)
static const LayerRun maverick_runs[] = {FOUR_PAIRS(0),  FOUR_PAIRS(8),  FOUR_PAIRS(16),
                                         FOUR_PAIRS(24), FOUR_PAIRS(32), FOUR_PAIRS(40)};

// What is priced, and what takes longer: transformers hands sdpa a mask, which skips nothing (masking_utils.py).
#define SLIDES(tokens)                                                                                                 \
    "the sliding window of " tokens " tokens takes less on longer sequences: a kernel is priced that skips the rest, " \
    "as flash_attention_2 does; sdpa, eager attention and cp above 1 are priced all the way back"

// sim/step/lower_mixed.c
#define TWO_KINDS "dense layers and layers of experts on one stage are priced by their mean"

#define CHUNKS "attention in chunks of 8192 tokens is priced as a sliding window of as many"

#define PAPER "; GPT-2 type, 50257 words padded to 50304"

// A row: its name, its alias or NULL, and members of its ModelSpec.
#define MODEL(NAME, ALIAS, ...)                                                                                        \
    { .spec = {.name = (NAME), __VA_ARGS__}, .alias = (ALIAS) }

static const ModelPreset presets[] = {
    MODEL("tiny", NULL, SHAPE(4, 256, 16, 8, 16, 768), SIZES(1024, 2048, 1e4, 1e-5), FAMILY_LLAMA,
          .source = "ndtune: small enough for CPUs, 16 and 8 heads so that every mesh of 8 ranks is legal"),
    MODEL("tiny-moe", NULL, SHAPE(4, 256, 16, 8, 16, 384), EXPERTS(8, 2, 384), SIZES(1024, 2048, 1e4, 1e-5),
          FAMILY_MIXTRAL, .source = "ndtune: tiny with 8 experts, of which a token visits 2, half as wide"),
    MODEL("gpt3-125m", "125m", SHAPE(12, 768, 12, 12, 64, 3072), GPT3_SIZES,
          .source = "Brown et al. 2020, table 2.1" PAPER),
    MODEL("gpt3-350m", "350m", SHAPE(24, 1024, 16, 16, 64, 4096), GPT3_SIZES,
          .source = "Brown et al. 2020, table 2.1" PAPER),
    MODEL("gpt3-760m", "760m", SHAPE(24, 1536, 16, 16, 96, 6144), GPT3_SIZES,
          .source = "Brown et al. 2020, table 2.1" PAPER),
    MODEL("gpt3-1.3b", "1.3b", SHAPE(24, 2048, 16, 16, 128, 8192), GPT3_SIZES,
          .source = "Brown et al. 2020, table 2.1, with 16 heads of 128: its 24 do not divide the width" PAPER),
    MODEL("gpt3-2.7b", NULL, SHAPE(32, 2560, 32, 32, 80, 10240), GPT3_SIZES,
          .source = "Brown et al. 2020, table 2.1" PAPER),
    MODEL("gpt3-6.7b", NULL, SHAPE(32, 4096, 32, 32, 128, 16384), GPT3_SIZES,
          .source = "Brown et al. 2020, table 2.1" PAPER),
    MODEL("gpt3-13b", NULL, SHAPE(40, 5120, 40, 40, 128, 20480), GPT3_SIZES,
          .source = "Brown et al. 2020, table 2.1, width 5120 for the printed 5140" PAPER),
    MODEL("gpt3-175b", NULL, SHAPE(96, 12288, 96, 96, 128, 49152), GPT3_SIZES,
          .source = "Brown et al. 2020, table 2.1" PAPER),
    MODEL("llama-1-7b", NULL, SHAPE(32, 4096, 32, 32, 128, 11008), LLAMA1_SIZES,
          .source = "Touvron et al. 2023 (LLaMA), table 2; huggyllama/llama-7b config.json"),
    MODEL("llama-1-13b", NULL, SHAPE(40, 5120, 40, 40, 128, 13824), LLAMA1_SIZES,
          .source = "Touvron et al. 2023 (LLaMA), table 2; huggyllama/llama-13b config.json"),
    MODEL("llama-1-30b", "30b", SHAPE(60, 6656, 52, 52, 128, 17920), LLAMA1_SIZES,
          .source = "Touvron et al. 2023 (LLaMA), table 2; huggyllama/llama-30b config.json"),
    MODEL("llama-1-65b", "65b", SHAPE(80, 8192, 64, 64, 128, 22016), LLAMA1_SIZES,
          .source = "Touvron et al. 2023 (LLaMA), table 2; huggyllama/llama-65b config.json"),
    MODEL("llama-2-7b", "7b", SHAPE(32, 4096, 32, 32, 128, 11008), LLAMA2_SIZES,
          .source = "meta-llama/Llama-2-7b-hf config.json"),
    MODEL("llama-2-13b", "13b", SHAPE(40, 5120, 40, 40, 128, 13824), LLAMA2_SIZES,
          .source = "meta-llama/Llama-2-13b-hf config.json"),
    MODEL("llama-2-70b", "70b", SHAPE(80, 8192, 64, 8, 128, 28672), LLAMA2_SIZES,
          .source = "meta-llama/Llama-2-70b-hf config.json"),
    MODEL("codellama-34b", "34b", SHAPE(48, 8192, 64, 8, 128, 22016), SIZES(32000, 16384, 1e6, 1e-5), FAMILY_LLAMA,
          .source = "codellama/CodeLlama-34b-hf config.json; the shape of Llama 2 34B"),
    MODEL("llama-3-8b", NULL, SHAPE(32, 4096, 32, 8, 128, 14336), .max_seq = 8192, LLAMA3_SIZES,
          .source = "meta-llama/Meta-Llama-3-8B config.json"),
    MODEL("llama-3-70b", NULL, SHAPE(80, 8192, 64, 8, 128, 28672), .max_seq = 8192, LLAMA3_SIZES,
          .source = "meta-llama/Meta-Llama-3-70B config.json"),
    MODEL("llama-3.1-8b", "8b", SHAPE(32, 4096, 32, 8, 128, 14336), LLAMA31_SIZES(8),
          .source = "meta-llama/Llama-3.1-8B config.json"),
    MODEL("llama-3.1-70b", NULL, SHAPE(80, 8192, 64, 8, 128, 28672), LLAMA31_SIZES(8),
          .source = "meta-llama/Llama-3.1-70B config.json"),
    MODEL("llama-3.1-405b", "405b", SHAPE(126, 16384, 128, 8, 128, 53248), LLAMA31_SIZES(8),
          .source = "meta-llama/Llama-3.1-405B config.json"),
    MODEL("llama-3.2-1b", "1b", SHAPE(16, 2048, 32, 8, 64, 8192), .tied_embeddings = true, LLAMA31_SIZES(32),
          .source = "meta-llama/Llama-3.2-1B config.json"),
    MODEL("llama-3.2-3b", "3b", SHAPE(28, 3072, 24, 8, 128, 8192), .tied_embeddings = true, LLAMA31_SIZES(32),
          .source = "meta-llama/Llama-3.2-3B config.json"),
    MODEL("tinyllama-1.1b", NULL, SHAPE(22, 2048, 32, 4, 64, 5632), SIZES(32000, 2048, 1e4, 1e-5), FAMILY_LLAMA,
          .source = "TinyLlama/TinyLlama_v1.1 config.json"),
    MODEL("yi-34b", NULL, SHAPE(60, 7168, 56, 8, 128, 20480), SIZES(64000, 4096, 5e6, 1e-5), FAMILY_LLAMA,
          .source = "01-ai/Yi-34B config.json"),
    MODEL("mistral-7b", NULL, SHAPE(32, 4096, 32, 8, 128, 14336), SIZES(32000, 32768, 1e4, 1e-5), FAMILY_MISTRAL,
          .window = 4096, .note = SLIDES("4096"), .source = "mistralai/Mistral-7B-v0.1 config.json"),
    MODEL("mistral-nemo-12b", NULL, SHAPE(40, 5120, 32, 8, 128, 14336), SIZES(131072, 131072, 1e6, 1e-5),
          FAMILY_MISTRAL, .source = "mistralai/Mistral-Nemo-Base-2407 config.json"),
    MODEL("qwen2.5-0.5b", NULL, SHAPE(24, 896, 14, 2, 64, 4864), .vocab = 151936, .max_seq = 32768,
          .tied_embeddings = true, QWEN2_SIZES, .source = "Qwen/Qwen2.5-0.5B config.json"),
    MODEL("qwen2.5-1.5b", NULL, SHAPE(28, 1536, 12, 2, 128, 8960), .vocab = 151936, .max_seq = 131072,
          .tied_embeddings = true, QWEN2_SIZES, .source = "Qwen/Qwen2.5-1.5B config.json"),
    MODEL("qwen2.5-3b", NULL, SHAPE(36, 2048, 16, 2, 128, 11008), .vocab = 151936, .max_seq = 32768,
          .tied_embeddings = true, QWEN2_SIZES, .source = "Qwen/Qwen2.5-3B config.json"),
    MODEL("qwen2.5-7b", NULL, SHAPE(28, 3584, 28, 4, 128, 18944), .vocab = 152064, .max_seq = 131072, QWEN2_SIZES,
          .source = "Qwen/Qwen2.5-7B config.json"),
    MODEL("qwen2.5-14b", NULL, SHAPE(48, 5120, 40, 8, 128, 13824), .vocab = 152064, .max_seq = 131072, QWEN2_SIZES,
          .source = "Qwen/Qwen2.5-14B config.json"),
    MODEL("qwen2.5-32b", NULL, SHAPE(64, 5120, 40, 8, 128, 27648), .vocab = 152064, .max_seq = 131072, QWEN2_SIZES,
          .source = "Qwen/Qwen2.5-32B config.json"),
    MODEL("qwen2.5-72b", NULL, SHAPE(80, 8192, 64, 8, 128, 29568), .vocab = 152064, .max_seq = 131072, QWEN2_SIZES,
          .source = "Qwen/Qwen2.5-72B config.json"),
    MODEL("qwen3-0.6b", NULL, SHAPE(28, 1024, 16, 8, 128, 3072), .tied_embeddings = true, QWEN3_SIZES,
          .source = "Qwen/Qwen3-0.6B config.json"),
    MODEL("qwen3-1.7b", NULL, SHAPE(28, 2048, 16, 8, 128, 6144), .tied_embeddings = true, QWEN3_SIZES,
          .source = "Qwen/Qwen3-1.7B config.json"),
    MODEL("qwen3-4b", NULL, SHAPE(36, 2560, 32, 8, 128, 9728), .tied_embeddings = true, QWEN3_SIZES,
          .source = "Qwen/Qwen3-4B config.json"),
    MODEL("qwen3-8b", NULL, SHAPE(36, 4096, 32, 8, 128, 12288), QWEN3_SIZES, .source = "Qwen/Qwen3-8B config.json"),
    MODEL("qwen3-14b", NULL, SHAPE(40, 5120, 40, 8, 128, 17408), QWEN3_SIZES, .source = "Qwen/Qwen3-14B config.json"),
    MODEL("qwen3-32b", NULL, SHAPE(64, 5120, 64, 8, 128, 25600), QWEN3_SIZES, .source = "Qwen/Qwen3-32B config.json"),
    MODEL("gemma-2b", NULL, SHAPE(18, 2048, 8, 1, 256, 16384), GEMMA_SIZES, .source = "google/gemma-2b config.json"),
    MODEL("gemma-7b", NULL, SHAPE(28, 3072, 16, 16, 256, 24576), GEMMA_SIZES, .source = "google/gemma-7b config.json"),
    MODEL("gemma-3-1b", NULL, SHAPE(26, 1152, 4, 1, 256, 6912), .vocab = 262144, .max_seq = 32768, .window = 512,
          .window_every = 6, .note = SLIDES("512"), GEMMA3_SIZES, .source = "google/gemma-3-1b-pt config.json"),
    MODEL("gemma-3-4b", NULL, SHAPE(34, 2560, 8, 4, 256, 10240), GEMMA3_WITH_EYES,
          .source = "google/gemma-3-4b-pt config.json, its text_config"),
    MODEL("gemma-3-12b", NULL, SHAPE(48, 3840, 16, 8, 256, 15360), GEMMA3_WITH_EYES,
          .source = "google/gemma-3-12b-pt config.json, its text_config"),
    MODEL("gemma-3-27b", NULL, SHAPE(62, 5376, 32, 16, 128, 21504), GEMMA3_WITH_EYES, .score_scalar = 168,
          .source = "google/gemma-3-27b-pt config.json, its text_config"),
    MODEL("phi-3-mini", NULL, SHAPE(32, 3072, 32, 32, 96, 8192), SIZES(32064, 4096, 1e4, 1e-5), FAMILY_PHI3,
          .window = 2047, .note = SLIDES("2047"), .source = "microsoft/Phi-3-mini-4k-instruct config.json"),
    MODEL("phi-3-medium", NULL, SHAPE(40, 5120, 40, 10, 128, 17920), SIZES(32064, 4096, 1e4, 1e-5), FAMILY_PHI3,
          .window = 2047, .note = SLIDES("2047"), .source = "microsoft/Phi-3-medium-4k-instruct config.json"),
    MODEL("phi-4", NULL, SHAPE(40, 5120, 40, 10, 128, 17920), SIZES(100352, 16384, 2.5e5, 1e-5), FAMILY_PHI3,
          .source = "microsoft/phi-4 config.json"),
    MODEL("gpt2", NULL, SHAPE(12, 768, 12, 12, 64, 3072), GPT2_SIZES, .source = "openai-community/gpt2 config.json"),
    MODEL("gpt2-medium", NULL, SHAPE(24, 1024, 16, 16, 64, 4096), GPT2_SIZES,
          .source = "openai-community/gpt2-medium config.json"),
    MODEL("gpt2-large", NULL, SHAPE(36, 1280, 20, 20, 64, 5120), GPT2_SIZES,
          .source = "openai-community/gpt2-large config.json"),
    MODEL("gpt2-xl", NULL, SHAPE(48, 1600, 25, 25, 64, 6400), GPT2_SIZES,
          .source = "openai-community/gpt2-xl config.json"),
    MODEL("gpt-neox-20b", NULL, SHAPE(44, 6144, 64, 64, 96, 24576), .vocab = 50432, .rotary_dims = 24,
          .activation = ACTIVATION_GELU_NEW, NEOX_SIZES, .source = "EleutherAI/gpt-neox-20b config.json"),
    MODEL("pythia-1.4b", NULL, SHAPE(24, 2048, 16, 16, 128, 8192), .vocab = 50304, .rotary_dims = 32,
          .activation = ACTIVATION_GELU, NEOX_SIZES, .source = "EleutherAI/pythia-1.4b config.json"),
    MODEL("pythia-6.9b", NULL, SHAPE(32, 4096, 32, 32, 128, 16384), .vocab = 50432, .rotary_dims = 32,
          .activation = ACTIVATION_GELU, NEOX_SIZES, .source = "EleutherAI/pythia-6.9b config.json"),
    MODEL("pythia-12b", NULL, SHAPE(36, 5120, 40, 40, 128, 20480), .vocab = 50688, .rotary_dims = 32,
          .activation = ACTIVATION_GELU, NEOX_SIZES, .source = "EleutherAI/pythia-12b config.json"),
    MODEL("mpt-7b", NULL, SHAPE(32, 4096, 32, 32, 128, 16384), .max_seq = 2048, MPT_SIZES,
          .source = "mosaicml/mpt-7b config.json"),
    MODEL("mpt-30b", NULL, SHAPE(48, 7168, 64, 64, 112, 28672), .max_seq = 8192, MPT_SIZES,
          .source = "mosaicml/mpt-30b config.json"),
    MODEL("olmo2-7b", NULL, SHAPE(32, 4096, 32, 32, 128, 11008), OLMO2_SIZES,
          .source = "allenai/OLMo-2-1124-7B config.json"),
    MODEL("olmo2-13b", NULL, SHAPE(40, 5120, 40, 40, 128, 13824), OLMO2_SIZES,
          .source = "allenai/OLMo-2-1124-13B config.json"),
    MODEL("olmo2-32b", NULL, SHAPE(64, 5120, 40, 8, 128, 27648), OLMO2_SIZES,
          .source = "allenai/OLMo-2-0325-32B config.json"),
    MODEL("mixtral-8x7b", NULL, SHAPE(32, 4096, 32, 8, 128, 14336), EXPERTS(8, 2, 14336),
          SIZES(32000, 32768, 1e6, 1e-5), FAMILY_MIXTRAL, .source = "mistralai/Mixtral-8x7B-v0.1 config.json"),
    MODEL("mixtral-8x22b", NULL, SHAPE(56, 6144, 48, 8, 128, 16384), EXPERTS(8, 2, 16384),
          SIZES(32000, 65536, 1e6, 1e-5), FAMILY_MIXTRAL, .source = "mistralai/Mixtral-8x22B-v0.1 config.json"),
    MODEL("qwen1.5-moe-a2.7b", NULL, SHAPE(24, 2048, 16, 16, 128, 5632), SHARED_EXPERTS_GATED(60, 4, 1408, 5632),
          SIZES(151936, 8192, 1e6, 1e-6), FAMILY_QWEN2_MOE, .source = "Qwen/Qwen1.5-MoE-A2.7B config.json"),
    MODEL("qwen2-57b-a14b", NULL, SHAPE(28, 3584, 28, 4, 128, 18944), SHARED_EXPERTS_GATED(64, 8, 2560, 20480),
          SIZES(151936, 131072, 1e6, 1e-6), FAMILY_QWEN2_MOE, .source = "Qwen/Qwen2-57B-A14B config.json"),
    MODEL("qwen3-30b-a3b", NULL, SHAPE(48, 2048, 32, 4, 128, 6144), EXPERTS(128, 8, 768),
          SIZES(151936, 40960, 1e6, 1e-6), FAMILY_QWEN3_MOE, .source = "Qwen/Qwen3-30B-A3B config.json"),
    MODEL("qwen3-235b-a22b", NULL, SHAPE(94, 4096, 64, 4, 128, 12288), EXPERTS(128, 8, 1536),
          SIZES(151936, 40960, 1e6, 1e-6), FAMILY_QWEN3_MOE, .source = "Qwen/Qwen3-235B-A22B config.json"),
    MODEL("olmoe-1b-7b", NULL, SHAPE(16, 2048, 16, 16, 128, 1024),
          .experts = {.count = 64, .active = 8, .ffn = 1024, .unscaled = true}, SIZES(50304, 4096, 1e4, 1e-5),
          FAMILY_OLMOE, .source = "allenai/OLMoE-1B-7B-0924 config.json"),
    MODEL("phi-3.5-moe", NULL, SHAPE(32, 4096, 32, 8, 128, 6400), EXPERTS(16, 2, 6400), SIZES(32064, 131072, 1e4, 1e-5),
          FAMILY_PHIMOE, .source = "microsoft/Phi-3.5-MoE-instruct config.json"),
    MODEL("gpt-oss-20b", NULL, SHAPE(24, 2880, 64, 8, 64, 2880), GPT_OSS_SIZES(32), .note = SLIDES("128"),
          .source = "openai/gpt-oss-20b config.json"),
    MODEL("gpt-oss-120b", NULL, SHAPE(36, 2880, 64, 8, 64, 2880), GPT_OSS_SIZES(128), .note = SLIDES("128"),
          .source = "openai/gpt-oss-120b config.json"),
    MODEL("llama-4-scout", NULL, SHAPE(48, 5120, 40, 8, 128, 16384), SHARED_EXPERTS(16, 1, 8192, 8192),
          .max_seq = 10485760, LLAMA4_SIZES, .note = CHUNKS, .source = "meta-llama/Llama-4-Scout-17B-16E config.json"),
    MODEL("llama-4-maverick", NULL, SHAPE(48, 5120, 40, 8, 128, 16384), SHARED_EXPERTS(128, 1, 8192, 8192),
          RUNS(maverick_runs), .max_seq = 1048576, LLAMA4_SIZES, .note = CHUNKS "; " TWO_KINDS,
          .source = "meta-llama/Llama-4-Maverick-17B-128E config.json"),
    MODEL("deepseek-v2-lite", NULL, SHAPE(27, 2048, 16, 16, 192, 10944), SHARED_EXPERTS(64, 6, 1408, 2816),
          RUNS(deepseek_v2_lite_runs), DEEPSEEK_HEAD(0), DEEPSEEK_V2_SIZES, .note = TWO_KINDS,
          .source = "deepseek-ai/DeepSeek-V2-Lite config.json"),
    MODEL("deepseek-v2", NULL, SHAPE(60, 5120, 128, 128, 192, 12288), SHARED_EXPERTS(160, 6, 1536, 3072),
          RUNS(deepseek_v2_runs), DEEPSEEK_HEAD(1536), DEEPSEEK_V2_SIZES, .note = TWO_KINDS,
          .source = "deepseek-ai/DeepSeek-V2 config.json"),
    MODEL("deepseek-v3", NULL, SHAPE(61, 7168, 128, 128, 192, 18432), SIGMOID_EXPERTS(256, 8, 4, 2.5),
          RUNS(deepseek_v3_runs), DEEPSEEK_HEAD(1536), SIZES(129280, 163840, 1e4, 1e-6), FAMILY_DEEPSEEK_V3,
          .yarn = {40, 1, 1, 4096, 32, 1, false},
          .note = TWO_KINDS "; its layer that predicts a second token (MTP) is left out, as "
                            "transformers leaves it out: --mtp 1 has it",
          .source = "deepseek-ai/DeepSeek-V3 config.json"),
    MODEL("kimi-k2", NULL, SHAPE(61, 7168, 64, 64, 192, 18432), SIGMOID_EXPERTS(384, 1, 1, 2.827), RUNS(kimi_k2_runs),
          DEEPSEEK_HEAD(1536), SIZES(163840, 131072, 5e4, 1e-6), FAMILY_KIMI_K2, .note = TWO_KINDS,
          .source = "moonshotai/Kimi-K2-Base config.json"),
};

const ModelPreset *model_presets(int *count) {
    *count = (int)(sizeof presets / sizeof presets[0]);
    return presets;
}

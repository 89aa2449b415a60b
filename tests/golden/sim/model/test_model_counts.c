// Presets against published parameter counts. Unless stated otherwise a number is the total of the model's weight files
// as its Hugging Face page states it (safetensors total, or total_size of the index over the bytes of its dtype). Gemma
// 3: the language model alone, as transformers 5.23 builds Gemma3ForCausalLM from its text_config (meta device). No
// number was computed with this project's formulas.

#include <criterion/criterion.h>
#include <math.h>

#include "sim/model/model.h"

typedef struct Published {
    const char *name;
    int64_t parameters;
} Published;

static const Published published[] = {
    {"gpt2", INT64_C(124439808)},                // openai-community/gpt2
    {"gpt2-medium", INT64_C(354823168)},         // openai-community/gpt2-medium
    {"gpt2-large", INT64_C(774030080)},          // openai-community/gpt2-large
    {"gpt2-xl", INT64_C(1557611200)},            // openai-community/gpt2-xl
    {"llama-1-7b", INT64_C(6738415616)},         // huggyllama/llama-7b
    {"llama-1-13b", INT64_C(13015864320)},       // huggyllama/llama-13b
    {"llama-1-30b", INT64_C(32528943616)},       // huggyllama/llama-30b
    {"llama-1-65b", INT64_C(65285660672)},       // huggyllama/llama-65b
    {"llama-2-7b", INT64_C(6738415616)},         // meta-llama/Llama-2-7b-hf
    {"llama-2-13b", INT64_C(13015864320)},       // meta-llama/Llama-2-13b-hf
    {"llama-2-70b", INT64_C(68976648192)},       // meta-llama/Llama-2-70b-hf
    {"codellama-34b", INT64_C(33743970304)},     // codellama/CodeLlama-34b-hf
    {"llama-3-8b", INT64_C(8030261248)},         // meta-llama/Meta-Llama-3-8B
    {"llama-3-70b", INT64_C(70553706496)},       // meta-llama/Meta-Llama-3-70B
    {"llama-3.1-8b", INT64_C(8030261248)},       // meta-llama/Llama-3.1-8B
    {"llama-3.1-70b", INT64_C(70553706496)},     // meta-llama/Llama-3.1-70B
    {"llama-3.1-405b", INT64_C(405853388800)},   // meta-llama/Llama-3.1-405B
    {"llama-3.2-1b", INT64_C(1235814400)},       // meta-llama/Llama-3.2-1B, the tied table once
    {"llama-3.2-3b", INT64_C(3212749824)},       // meta-llama/Llama-3.2-3B
    {"tinyllama-1.1b", INT64_C(1100048384)},     // TinyLlama/TinyLlama_v1.1
    {"yi-34b", INT64_C(34388917248)},            // 01-ai/Yi-34B
    {"mistral-7b", INT64_C(7241732096)},         // mistralai/Mistral-7B-v0.1
    {"mistral-nemo-12b", INT64_C(12247782400)},  // mistralai/Mistral-Nemo-Base-2407
    {"qwen2.5-0.5b", INT64_C(494032768)},        // Qwen/Qwen2.5-0.5B
    {"qwen2.5-1.5b", INT64_C(1543714304)},       // Qwen/Qwen2.5-1.5B
    {"qwen2.5-3b", INT64_C(3085938688)},         // Qwen/Qwen2.5-3B
    {"qwen2.5-7b", INT64_C(7615616512)},         // Qwen/Qwen2.5-7B
    {"qwen2.5-14b", INT64_C(14770033664)},       // Qwen/Qwen2.5-14B
    {"qwen2.5-32b", INT64_C(32763876352)},       // Qwen/Qwen2.5-32B
    {"qwen2.5-72b", INT64_C(72706203648)},       // Qwen/Qwen2.5-72B
    {"qwen3-0.6b", INT64_C(596049920)},          // Qwen/Qwen3-0.6B, the tied table once
    {"qwen3-1.7b", INT64_C(1720574976)},         // Qwen/Qwen3-1.7B, the tied table once
    {"qwen3-4b", INT64_C(4022468096)},           // Qwen/Qwen3-4B
    {"qwen3-8b", INT64_C(8190735360)},           // Qwen/Qwen3-8B
    {"qwen3-14b", INT64_C(14768307200)},         // Qwen/Qwen3-14B
    {"qwen3-32b", INT64_C(32762123264)},         // Qwen/Qwen3-32B
    {"gemma-2b", INT64_C(2506172416)},           // google/gemma-2b
    {"gemma-7b", INT64_C(8537680896)},           // google/gemma-7b
    {"gemma-3-1b", INT64_C(999885952)},          // google/gemma-3-1b-pt
    {"gemma-3-4b", INT64_C(3880263168)},         // google/gemma-3-4b-pt, its text_config
    {"gemma-3-12b", INT64_C(11766034176)},       // google/gemma-3-12b-pt, its text_config
    {"gemma-3-27b", INT64_C(27009346304)},       // google/gemma-3-27b-pt, its text_config
    {"phi-3-mini", INT64_C(3821079552)},         // microsoft/Phi-3-mini-4k-instruct
    {"phi-3-medium", INT64_C(13960238080)},      // microsoft/Phi-3-medium-4k-instruct
    {"phi-4", INT64_C(14659507200)},             // microsoft/phi-4
    {"gpt-neox-20b", INT64_C(20554567680)},      // its model card and Black et al. 2022, table 1
    {"pythia-1.4b", INT64_C(1414647808)},        // its model card
    {"pythia-6.9b", INT64_C(6857302016)},        // its model card
    {"pythia-12b", INT64_C(11846072320)},        // its model card
    {"mpt-7b", INT64_C(6649286656)},             // index total_size 13298573312 bytes of bf16
    {"olmo2-7b", INT64_C(7298617344)},           // allenai/OLMo-2-1124-7B
    {"olmo2-13b", INT64_C(13716198400)},         // allenai/OLMo-2-1124-13B
    {"olmo2-32b", INT64_C(32234279936)},         // allenai/OLMo-2-0325-32B
};

static ModelSpec find(const char *name) {
    ModelSpec model = {0};
    Error error = {0};
    cr_assert_eq(model_find(name, NULL, &model, &error), STATUS_OK, "%s", error.message);
    return model;
}

Test(model_counts, presets_have_exactly_the_published_parameters) {
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        const ModelSpec model = find(published[i].name);
        cr_expect_eq(model_parameters(&model), published[i].parameters, "%s: %lld, published %lld", published[i].name,
                     (long long)model_parameters(&model), (long long)published[i].parameters);
    }
}

typedef struct Rounded {
    const char *name;
    double billions, relative;  // half a unit of the last printed digit
} Rounded;

static const Rounded rounded[] = {
    {"gpt3-125m", 0.125, 0.5 / 125},        // Brown et al. 2020, table 2.1, n_params of each size
    {"gpt3-350m", 0.350, 0.02},             //   printed 350M; 24 layers of 1024 with its own vocabulary come to 356M
    {"gpt3-760m", 0.760, 0.5 / 760},        //   printed 760M
    {"gpt3-1.3b", 1.3, 0.05 / 1.3},         //   printed 1.3B
    {"gpt3-2.7b", 2.7, 0.05 / 2.7},         //   printed 2.7B
    {"gpt3-6.7b", 6.7, 0.05 / 6.7},         //   printed 6.7B
    {"gpt3-13b", 13.0, 0.02},               //   printed 13.0B with a width of 5140, which 40 heads of 128 do not give
    {"gpt3-175b", 175.0, 0.5 / 175},        //   printed 175.0B
    {"mpt-30b", 29.95, 0.005 / 29.95 * 2},  // mosaicml/mpt-30b model card: 29.95B (29.957 cut, not rounded)
};

Test(model_counts, models_of_papers_have_the_printed_size) {
    for (size_t i = 0; i < sizeof rounded / sizeof rounded[0]; i++) {
        const ModelSpec model = find(rounded[i].name);
        const double parameters = (double)model_parameters(&model) / 1e9;
        cr_expect_lt(fabs(parameters / rounded[i].billions - 1), rounded[i].relative, "%s: %.4f billion, printed %.4f",
                     rounded[i].name, parameters, rounded[i].billions);
    }
}

Test(model_counts, every_preset_but_tiny_stands_in_one_of_the_tables) {
    int count = 0;
    const ModelPreset *presets = model_presets(&count);
    const size_t held = sizeof published / sizeof published[0] + sizeof rounded / sizeof rounded[0];
    size_t dense = 0;
    for (int i = 0; i < count; i++) {
        dense += presets[i].spec.experts.count == 0;  // the others: test_expert_counts.c
    }
    cr_assert_eq(dense, held + 1);
    cr_assert_str_eq(presets[0].spec.name, "tiny");
}

// The model cards print parameters without the two tables next to the totals.
Test(model_counts, without_embeddings_as_published) {
    const ModelSpec small = find("pythia-1.4b"), middle = find("pythia-6.9b"), large = find("pythia-12b");
    const ModelSpec qwen = find("qwen3-8b");
    cr_assert_eq(model_parameters(&small) - 2 * INT64_C(50304) * 2048, INT64_C(1208602624));
    cr_assert_eq(model_parameters(&middle) - 2 * INT64_C(50432) * 4096, INT64_C(6444163072));
    cr_assert_eq(model_parameters(&large) - 2 * INT64_C(50688) * 5120, INT64_C(11327027200));
    // Qwen/Qwen3-8B: "6.95B"
    cr_assert_lt(fabs((double)(model_parameters(&qwen) - 2 * INT64_C(151936) * 4096) / 6.95e9 - 1), 0.005 / 6.95);
}

// 6 * (19,934,859,264 in the layers and final norm + head 50432 * 6144) + 12 * 44 * 6144 * 2048.
Test(model_counts, flops_of_gpt_neox_20b_by_hand) {
    const ModelSpec model = find("gpt-neox-20b");
    const double expected = 6.0 * (19934859264.0 + 50432.0 * 6144) + 12.0 * 44 * 6144 * 2048;
    cr_assert_lt(fabs(model_flops_per_token(&model, 2048) / expected - 1), 1e-15);
}

// gpt2: 12 layers of 12*768^2 + 13*768 and the final norm 2*768 = 85,056,000; the head is the embedding, 50257*768, and
// counts; the positions do not.
Test(model_counts, flop_parameters_of_gpt2_by_hand) {
    const ModelSpec model = find("gpt2");
    cr_assert_eq(model_flop_parameters(&model), INT64_C(85056000) + 50257 * 768);
}

// Every format, byte by byte, and what formats refuse. With NDTUNE_GOLDEN_OUT=FOLDER the files that this version writes
// are stored there, to be compared and, if the change was intended, adopted.

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/escape.h"
#include "tests/golden/export/export_case.h"
#include "tests/support/sizes.h"

static char *stored(const char *file) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/export/%s", NDTUNE_SOURCE_DIR, file);
    FILE *in = fopen(path, "rb");
    char *text = calloc(1 << 16, 1);
    if (in) {
        fread(text, 1, (1 << 16) - 1, in);
        fclose(in);
    }
    return text;
}

static void put_aside(const char *file, const char *text) {
    const char *folder = getenv("NDTUNE_GOLDEN_OUT");
    if (!folder) {
        return;
    }
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *out = fopen(path, "wb");
    cr_assert_not_null(out);
    fputs(text, out);
    fclose(out);
}

Test(export_files, every_file_is_its_golden_one) {
    for (int i = 0; i < golden_count; i++) {
        const Golden *golden = &goldens[i];
        Case made;
        Error error = {0};
        case_fill(&made, golden->model, golden->target, &golden->plan);
        char *text = exported(golden->format, &made, &error);
        cr_assert_not_null(text, "%s: %s", golden->file, error.message);
        put_aside(golden->file, text);
        char *expected = stored(golden->file);
        cr_expect_str_eq(text, expected, "%s differs; NDTUNE_GOLDEN_OUT=FOLDER puts what is written now there",
                         golden->file);
        free(expected);
        free(text);
        arena_free(&made.arena);
    }
}

Test(export_files, every_format_has_a_golden_file) {
    const ExportFormat *format;
    for (int i = 0; (format = export_format_at(i)); i++) {
        bool found = false;
        for (int k = 0; k < golden_count; k++) {
            found = found || strcmp(goldens[k].format, format->name) == 0;
        }
        cr_expect(found, "%s", format->name);
    }
}

// What the packages answered is a file; a format that none has read is not done.
Test(export_files, every_format_was_read_by_the_real_package) {
    json_t *answers = json_load_file(NDTUNE_SOURCE_DIR "/tests/frameworks/exports.json", 0, NULL);
    cr_assert_not_null(answers);
    const ExportFormat *format;
    for (int i = 0; (format = export_format_at(i)); i++) {
        const json_t *row = json_object_get(answers, format->name);
        cr_expect_gt(json_array_size(json_object_get(row, "read")), 0, "%s", format->name);
        cr_expect_gt(json_object_size(json_object_get(row, "versions")), 0, "%s", format->name);
    }
    json_decref(answers);
}

Test(export_files, what_a_format_cannot_express_is_refused_in_a_sentence) {
    static const AxisOrder tp_slow = {.shift = {3, 3, 3, 3}};  // tp, dp_replicate, dp_shard, cp
    TrainPlan reordered = PLAN(2, 8, 1, 2, .micro_batch = 1, .grad_accum = 1, .zero = 3, EAGER_FULL);
    reordered.mesh.order = tp_slow;
    const struct {
        const char *format, *target, *words;
        TrainPlan plan;
    } cases[] = {
        {"accelerate-yaml", "accelerate", "--as accelerate-python", PLAN(1, 1, 1, 8, .fused = FUSED_EAGER)},
        {"accelerate-yaml", "accelerate", "rank-order default", reordered},
        {"accelerate-yaml", "torchtitan", "--target accelerate@1.15", PLAN(1, 8, 1, 1, .zero = 3)},
        {"accelerate-yaml", "accelerate", "whole nodes of 8", PLAN(1, 12, 1, 1, .zero = 3, .fused = FUSED_EAGER)},
        {"accelerate-python", "accelerate", "--fused fused", PLAN(1, 8, 1, 1, .zero = 3, .fused = FUSED_FUSED)},
        {"accelerate-yaml",
         "accelerate",
         "--precision fp8",
         {.mesh = {.size = SIZES(1, 8, 1, 1)}, .seq = 4096, .precision = DTYPE_FP8, .zero = 3, .fused = FUSED_EAGER}},
        {"accelerate-yaml", "accelerate", "--reduce-dtype auto",
         PLAN(1, 8, 1, 1, .zero = 3, .reduce_dtype = REDUCE_DTYPE_FP32, .fused = FUSED_EAGER)},
        {"axolotl", "axolotl", "--reshard never",
         PLAN(1, 8, 1, 1, .zero = 3, .reshard = RESHARD_NEVER, .fused = FUSED_EAGER)},
        {"axolotl", "axolotl", "--micro-batch 1",
         PLAN(1, 8, 2, 1, .zero = 3, .micro_batch = 2, .grad_accum = 1, .fused = FUSED_EAGER)},
        {"torchtitan-toml", "torchtitan", "--fused compiled",
         PLAN(1, 8, 1, 2, .zero = 3, .tp_overlap = true, .fused = FUSED_EAGER)},
        {"automodel", "accelerate", "--cp-rotate allgather",
         PLAN(1, 8, 2, 1, .zero = 3, .cp_rotate = CP_ROTATE_RING, .fused = FUSED_EAGER)},
        {"megatron", "megatron", "--as megatron-bridge", PLAN(1, 8, 1, 1, .zero = 1, .loss = LOSS_IN_PLACE)},
        {"nanotron", "nanotron", "dp_shard=16", PLAN(2, 8, 1, 1, .zero = 1)},
        {"deepspeed", "deepspeed", "dp_shard=16", PLAN(2, 8, 1, 1, .zero = 3, .fused = FUSED_EAGER)},
        {"deepspeed",
         "deepspeed",
         "--as accelerate-deepspeed",
         {.mesh = {.size = {[0 ... AXIS_COUNT - 1] = 1, [AXIS_SP] = 8}},
          .seq = 4096,
          .precision = DTYPE_BF16,
          .zero = 3,
          .fused = FUSED_EAGER}},
        {"deepspeed", "deepspeed", "use tp=1 or pp=1", STAGES(2, 4, 2, .zero = 1, .fused = FUSED_EAGER)},
        {"accelerate-deepspeed", "deepspeed", "which holds no pipeline",
         STAGES(2, 4, 1, .zero = 1, .fused = FUSED_EAGER)},
        {"sbatch", "fsdp1", "no config file of fsdp1", PLAN(1, 8, 1, 1, .zero = 3)},
        {"sbatch", "deepspeed", "dp_shard=16", PLAN(2, 8, 1, 1, .zero = 3, .fused = FUSED_EAGER)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Case made;
        Error error = {0};
        case_fill(&made, "llama-3-8b", cases[i].target, &cases[i].plan);
        char *text = exported(cases[i].format, &made, &error);
        cr_expect_null(text, "case %zu was written", i);
        cr_expect(strstr(error.message, cases[i].words), "case %zu: %s", i, error.message);
        free(text);
        arena_free(&made.arena);
    }
}

// JSON's strings are those of YAML's, TOML's and Python's double quotes as far as escape_quoted goes.
Test(export_files, a_quoted_text_reads_back_as_it_was) {
    static const char *const texts[] = {"plain",
                                        "a \"b\" \\ 'c'",
                                        "line\nbreak\r\ttab\x01",
                                        "caf\xc3\xa9 \xe2\x80\xa8 end",
                                        "\x7f and \xc2\x85",
                                        "\xf0\x9f\x98\x80",
                                        "#{}[]: - %"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *out = open_memstream(&text, &bytes);
        escape_quoted(texts[i], out);
        fclose(out);
        cr_expect_null(strchr(text, '\n'));
        json_t *read = json_loads(text, JSON_DECODE_ANY, NULL);
        cr_assert_not_null(read, "%s", text);
        cr_expect_str_eq(json_string_value(read), texts[i]);
        json_decref(read);
        free(text);
    }
}

// Lines of a file that begin with none of the words are as many as without the hostile name.
static int lines_with(const char *text, const char *start) {
    int count = 0;
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        count += strncmp(line, start, strlen(start)) == 0;
    }
    return count;
}

Test(export_files, the_name_of_a_model_ends_no_string_and_no_comment) {
    static const char hostile[] = "/m\"'\nimport os; os.system('x')\nEND_OF_FILE\n/config.json";
    static const char *const names[] = {"accelerate-python", "hf-trainer", "axolotl",
                                        "automodel",         "nanotron",   "sbatch"};
    static const char *const targets[] = {"accelerate", "accelerate", "axolotl", "accelerate", "nanotron", "axolotl"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const bool nanotron = strcmp(names[i], "nanotron") == 0;
        const bool in_bf16 = strcmp(targets[i], "axolotl") == 0;
        const TrainPlan plan = PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 1, .zero = nanotron ? 1 : 3,
                                    .fused = nanotron ? FUSED_FUSED : FUSED_EAGER, .bf16_master = in_bf16);
        Case made;
        Error error = {0};
        case_fill(&made, hostile, targets[i], &plan);
        made.job.command = hostile;
        made.job.file_name = "a b\n'c";
        char *text = exported(names[i], &made, &error);
        cr_assert_not_null(text, "%s", error.message);
        cr_expect_eq(lines_with(text, "import os; "), 0, "%s", text);
        cr_expect_eq(lines_with(text, "END_OF_FILE"), strcmp(names[i], "sbatch") == 0, "%s", text);
        cr_expect(strstr(text, "\"/m\\\"'\\u000aimport os; os.system('x')\\u000aEND_OF_FILE\\u000a\""), "%s", text);
        free(text);
        arena_free(&made.arena);
    }
}

// from_pretrained takes a folder with a config.json, or a file of another name by itself.
Test(export_files, a_config_of_another_name_is_loaded_by_that_name) {
    Case made;
    Error error = {0};
    const TrainPlan plan = PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 1, .zero = 3, .fused = FUSED_EAGER);
    case_fill(&made, "/m/llama_tp3.json", "accelerate", &plan);
    char *text = exported("hf-trainer", &made, &error);
    cr_assert_not_null(text, "%s", error.message);
    cr_expect(strstr(text, "MODEL = \"/m/llama_tp3.json\"\n"), "%s", text);
    free(text);
    arena_free(&made.arena);
}

Test(export_files, a_path_that_is_no_utf8_is_refused) {
    Case made;
    Error error = {0};
    const TrainPlan plan = PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 1, .zero = 3, .fused = FUSED_EAGER);
    case_fill(&made, "/m\xff/config.json", "accelerate", &plan);
    cr_expect_null(exported("accelerate-yaml", &made, &error));
    cr_expect(strstr(error.message, "UTF-8"), "%s", error.message);
    arena_free(&made.arena);
}

// Where layers do not divide, the rule of the target says which stages have one more, and the file says it too.
Test(export_files, megatron_is_told_where_layers_go_that_do_not_divide) {
    static const struct {
        int stages;
        const char *words;
    } cases[] = {{5, "--pipeline-model-parallel-layout \"Et*7|t*7|(t*6|)*2t*6L\"\n"},
                 {11, "    --account-for-loss-in-pipeline-split\n"},
                 {17, "    --account-for-embedding-in-pipeline-split\n"},
                 {7, "--pipeline-model-parallel-layout \"Et*5|(t*5|)*3(t*4|)*2t*4L\"\n"},
                 {4, "--pipeline-model-parallel-size 4\n    --use-distributed-optimizer"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Case made;
        Error error = {0};
        const TrainPlan plan =
            STAGES(cases[i].stages, 8, 1, .zero = 1, .micro_batch = 1, .grad_accum = 32, .attention = ATTENTION_CUDNN);
        case_fill(&made, "llama-3-8b", "megatron", &plan);
        char *text = exported("megatron", &made, &error);
        cr_assert_not_null(text, "%s", error.message);
        cr_expect(strstr(text, cases[i].words), "pp=%d has no %s", cases[i].stages, cases[i].words);
        free(text);
        arena_free(&made.arena);
    }
}

static char *stretched(const char *model, const YarnScaling *yarn, const RopeScaling *scaling, Case *made,
                       Error *error) {
    TrainPlan plan = PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 1, .zero = 1, .attention = ATTENTION_CUDNN);
    case_fill(made, model, "megatron", &plan);
    made->request.model.yarn = *yarn;
    made->request.model.rope_scaling = *scaling;
    return exported("megatron", made, error);
}

Test(export_files, megatron_stretches_positions_as_the_models_config_says) {
    static const struct {
        const char *model;
        YarnScaling yarn;
        RopeScaling scaling;
        const char *words;
    } cases[] = {
        {"deepseek-v3",
         {8, 0.707, 0.5, 4096, 32, 1, false},
         {.factor = 0},
         "    --rotary-scaling-factor 8 --mscale 0.707 --mscale-all-dim 0.5\n"},
        {"deepseek-v3", {.factor = 0}, {.factor = 0}, "    --rotary-scaling-factor 1 --mscale 1 --mscale-all-dim 0\n"},
        {"llama-3-8b", {.factor = 0}, {8, 1, 4, 8192}, "    --use-rope-scaling --rope-scaling-factor 8\n"},
        {"llama-3-8b",
         {.factor = 0},
         {32, 1, 4, 8192},
         "    --use-rope-scaling --rope-scaling-factor 32  # which pretrain_gpt.py of 2026-08 leaves at 8\n"},
        {"llama-3-8b", {.factor = 0}, {4, 1, 2, 0}, "    --rotary-seq-len-interpolation-factor 4\n"},
        {"llama-3-8b",
         {4, 1, 0, 32768, 32, 1, false},
         {.factor = 0},
         "    --position-embedding-type yarn --rotary-base 500000\n"
         "    --rotary-scaling-factor 4 --yarn-original-max-position-embeddings 32768\n"
         "    --yarn-beta-fast 32 --yarn-beta-slow 1 --mscale 1 --mscale-all-dim 0\n"},
        {"gpt-oss-20b",
         {32, 1, 0, 4096, 32, 1, true},
         {.factor = 0},
         " --mscale 1 --mscale-all-dim 0\n    --no-yarn-correction-range-round-to-int\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Case made;
        Error error = {0};
        char *text = stretched(cases[i].model, &cases[i].yarn, &cases[i].scaling, &made, &error);
        cr_assert_not_null(text, "%s", error.message);
        cr_expect(strstr(text, cases[i].words), "%s", text);
        free(text);
        arena_free(&made.arena);
    }
}

Test(export_files, positions_that_megatron_cannot_stretch_are_refused) {
    static const struct {
        const char *model;
        YarnScaling yarn;
        RopeScaling scaling;
    } cases[] = {{"deepseek-v3", {.factor = 0}, {8, 1, 2, 0}},
                 {"deepseek-v3", {8, 1, 1, 8192, 32, 1, false}, {.factor = 0}},
                 {"deepseek-v3", {8, 1, 1, 4096, 64, 1, false}, {.factor = 0}},
                 {"deepseek-v3", {8, 1, 1, 4096, 32, 1, true}, {.factor = 0}},
                 {"llama-3-8b", {.factor = 0}, {2.5, 1, 2, 0}},
                 {"llama-3-8b", {.factor = 0}, {8, 1, 4, 4096}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Case made;
        Error error = {0};
        cr_expect_null(stretched(cases[i].model, &cases[i].yarn, &cases[i].scaling, &made, &error), "case %zu", i);
        cr_expect(strstr(error.message, "stretch the positions"), "%s", error.message);
        arena_free(&made.arena);
    }
}

// transformers: dynamic stretches nothing within the model's own length, longrope does always.
Test(export_files, positions_of_types_that_are_not_read_are_refused_where_they_stretch) {
    static const struct {
        const char *type;
        int longest;
        bool refused;
    } cases[] = {{"longrope", 131072, true}, {"dynamic", 4096, false}, {"dynamic", 2048, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Case made;
        Error error = {0};
        TrainPlan plan = PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 1, .zero = 1, .attention = ATTENTION_CUDNN);
        case_fill(&made, "llama-3-8b", "megatron", &plan);
        made.request.model.positions = cases[i].type;
        made.request.model.max_seq = cases[i].longest;
        char *text = exported("megatron", &made, &error);
        cr_expect_eq(text == NULL, cases[i].refused, "case %zu", i);
        cr_expect(!cases[i].refused || strstr(error.message, cases[i].type), "case %zu: %s", i, error.message);
        free(text);
        arena_free(&made.arena);
    }
}

// DistributedDataParallel asserts that (experts' ranks / ranks) / experts' ranks is 1 / ranks in doubles.
Test(export_files, gradients_of_experts_are_averaged_in_collectives_where_doubles_divide_exactly) {
    static const struct {
        int ranks, ep;
        bool averages;
    } cases[] = {{78, 26, false}, {78, 13, false}, {78, 6, true}, {78, 1, true}, {64, 1, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Case made;
        Error error = {0};
        TrainPlan plan = EXPERTS(cases[i].ranks, cases[i].ep, .micro_batch = 1, .grad_accum = 1, .fused = FUSED_FUSED,
                                 .attention = ATTENTION_CUDNN);
        plan.zero = 1;
        plan.recompute = RECOMPUTE_NONE;
        case_fill(&made, "mixtral-8x7b", "megatron", &plan);
        made.request.cluster.node.accelerators = 2;
        made.request.model.experts.count = 78;
        char *text = exported("megatron", &made, &error);
        cr_assert_not_null(text, "%s", error.message);
        cr_expect_eq(strstr(text, "--ddp-average-in-collective") != NULL, cases[i].averages, "case %zu", i);
        free(text);
        arena_free(&made.arena);
    }
}

static char *text_of(const ModelSpec *model, Case *made) {
    TrainPlan plan = PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 1, .zero = 1, .attention = ATTENTION_CUDNN);
    Error error = {0};
    case_fill(made, "llama-3-8b", "megatron", &plan);
    made->request.model = *model;
    char *text = exported("megatron", made, &error);
    cr_assert_not_null(text, "%s", error.message);
    return text;
}

Test(export_files, megatron_is_told_how_far_which_layers_look_back) {
    static const struct {
        int window, first, every;
        const char *words;
    } cases[] = {{4096, 0, 0, "    --window-size 4095,0\n"},
                 {128, 0, 2, "    --window-size 127,0 --window-attn-skip-freq 2\n"},
                 {512, 21, 0, "    --window-size 511,0 --window-attn-skip-freq \"([0]*21+[1]*11)\"\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Case made;
        Arena arena = {0};
        ModelSpec model;
        cr_assert_eq(model_find("llama-3-8b", &arena, &model, &(Error){0}), STATUS_OK);
        model.window = cases[i].window;
        model.window_first = cases[i].first;
        model.window_every = cases[i].every;
        char *text = text_of(&model, &made);
        cr_expect(strstr(text, cases[i].words), "%s", text);
        free(text);
        arena_free(&made.arena);
        arena_free(&arena);
    }
}

Test(export_files, layers_that_flags_of_megatron_cannot_say_are_refused) {
    static const struct {
        const char *model, *words;
        AttentionKernel attention;
        bool out_bias, capped;
    } cases[] = {{"gpt-oss-20b", "no FlashAttention with sinks", ATTENTION_FLASH, true, false},
                 {"llama-3-8b", "describe the layers", ATTENTION_CUDNN, true, false},
                 {"llama-3-8b", "describe the layers", ATTENTION_CUDNN, false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Case made;
        Error error = {0};
        const TrainPlan plan =
            PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 1, .zero = 1, .attention = cases[i].attention);
        case_fill(&made, cases[i].model, "megatron", &plan);
        made.request.model.out_bias = cases[i].out_bias;
        made.request.model.logit_cap = cases[i].capped ? 30 : 0;
        cr_expect_null(exported("megatron", &made, &error), "case %zu", i);
        cr_expect(strstr(error.message, cases[i].words), "case %zu: %s", i, error.message);
        arena_free(&made.arena);
    }
}

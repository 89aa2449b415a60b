// Precisions, and adapters of Megatron-Bridge. Its recipes of mixed precision are functions
// (training/mixed_precision.py); the flags are those of validate_args.

#include <string.h>

#include "sim/frameworks/megatron/megatron_read.h"

static const ImportWord fp8_words[] = {
    {"tensorwise", FP8_TENSORWISE}, {"delayed", FP8_DELAYED}, {"mxfp8", FP8_MX}, {"blockwise", FP8_BLOCK}, {NULL, 0}};

static void take_fp8(ImportChoices *said, int recipe, int gathers) {
    said->choice[PLAN_PRECISION] = DTYPE_FP8;
    said->choice[PLAN_FP8_RECIPE] = recipe;
    said->choice[PLAN_FP8_PARAMETERS] = gathers;
}

static Status read_reduction(Import *import, Error *error) {
    int bf16 = 0;
    const char *of_fsdp = "auto";
    TRY(import_bool(import, "--grad-reduce-in-bf16", &bf16, error));
    TRY(import_word(import, "--megatron-fsdp-grad-comm-dtype", &of_fsdp, error));
    if (bf16 || strcmp(of_fsdp, "bf16") == 0) {
        import->said.choice[PLAN_REDUCE_DTYPE] = REDUCE_DTYPE_BF16;
    }
    return STATUS_OK;
}

// A factor of 1 is left out.
static bool averages_over_ranks(const ImportChoices *said) {
    const int64_t tp = said->size[AXIS_TP], pp = said->size[AXIS_PP];
    return said->world == 0 || said->world > (tp > 1 ? tp : 1) * (pp > 1 ? pp : 1);
}

// What scripts leave on and recipes of Bridge do not, in no plan's time (distributed/param_and_grad_buffer.py,
// start_grad_sync; pretrain_gpt.py, loss_func). Its FSDP scales as it reduces, a loss per token is scaled at the end,
// fp16 looks by its scale.
static void find_left_on(Import *import, bool fp16) {
    static const char averages[] = "--ddp-average-in-collective", unchecked[] = "--no-check-for-nan-in-loss-and-grad";
    const bool divides = import->said.choice[PLAN_ZERO] < 2 && averages_over_ranks(&import->said) &&
                         !import_is_on(import, "--calculate-per-token-loss");
    FIND_IF(
        divides && !import_is_on(import, averages), import, FINDING_UNMODELLED, averages,
        "without it gradients are divided by a pass of their own before they are reduced: your run needs more time");
    FIND_IF(!import_is_on(import, unchecked) && (!fp16 || import_has(import, "--loss-scale")), import,
            FINDING_UNMODELLED, unchecked,
            "without it losses and gradients are looked through for NaN, and the host waits for each look: your run "
            "needs more time");
}

static Status read_flags(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    int bf16 = 0, fp16 = 0, gathers = 0, gathers_four = 0, recipe = FP8_DELAYED;
    const char *fp8 = NULL, *fp4 = NULL;
    TRY(import_bool(import, "--bf16", &bf16, error));
    TRY(import_bool(import, "--fp16", &fp16, error));
    TRY(import_word(import, "--fp8-format", &fp8, error));
    TRY(import_word(import, "--fp4-format", &fp4, error));
    TRY(import_choice(import, "--fp8-recipe", fp8_words, &recipe, error));
    TRY(import_bool(import, "--fp8-param-gather", &gathers, error));
    TRY(import_bool(import, "--fp4-param-gather", &gathers_four, error));
    said->choice[PLAN_PRECISION] = bf16 ? DTYPE_BF16 : fp16 ? DTYPE_FP16 : DTYPE_FP32;
    FIND_IF(bf16 && fp16, import, FINDING_REFUSED, "--fp16", "assert not args.bf16: bf16 and fp16 are both on");
    FIND_IF(fp8 && fp4, import, FINDING_REFUSED, "--fp4-format",
            "--fp4-format and --fp8-format cannot be used simultaneously. Please choose one.");
    FIND_IF(gathers_four && !fp4, import, FINDING_REFUSED, "--fp4-param-gather",
            "--fp4-param-gather must be used together with --fp4-format.");
    FIND_IF(gathers && said->choice[PLAN_ZERO] == 0, import, FINDING_REFUSED, "--fp8-param-gather",
            "--fp8-param-gather only supported with distributed optimizer, torch fsdp2, megatron fsdp, or "
            "inference mode");
    FIND_IF((fp8 || fp4) && !bf16, import, FINDING_UNMODELLED, fp8 ? "--fp8-format" : "--fp4-format",
            "the products in fewer bits beside layers in %s: predicted beside bf16", fp16 ? "fp16" : "fp32");
    if (fp4) {
        take_fp8(said, FP8_NVFP4, gathers_four);
    } else if (fp8) {
        take_fp8(said, recipe, gathers);
    }
    find_left_on(import, fp16);
    return read_reduction(import, error);
}

// ---- Bridge

// The first of these words that the recipe's name contains.
static int recipe_named(const char *name) {
    static const ImportWord parts[] = {{"nvfp4", FP8_NVFP4},
                                       {"mxfp8", FP8_MX},
                                       {"fp8_mx", FP8_MX},
                                       {"subchannel", FP8_BLOCK},
                                       {"fp8_sc", FP8_BLOCK},
                                       {"current", FP8_TENSORWISE},
                                       {"fp8_cs", FP8_TENSORWISE},
                                       {"delayed", FP8_DELAYED},
                                       {"fp8_ds", FP8_DELAYED},
                                       {"fp8", FP8_DELAYED},
                                       {NULL, 0}};
    for (int i = 0; parts[i].word; i++) {
        if (strstr(name, parts[i].word)) {
            return parts[i].value;
        }
    }
    return -1;
}

#define MIXED "mixed_precision."

// The name of a recipe, with what is set on it; or a recipe's own fields, of a dump.
static Status read_recipe(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    const ConfigNode *node = import_at(import, "mixed_precision");
    const char *name = "bf16_mixed", *fp8 = NULL, *fp4 = NULL, *recipe_word = NULL;
    int bf16 = 0, fp16 = 0, gathers = -1, gathers_four = -1, in_fp32 = -1;
    if (node && node->kind == NODE_SCALAR) {
        TRY(import_word(import, "mixed_precision", &name, error));
    } else {
        TRY(import_word(import, MIXED "_target_", &name, error));
    }
    TRY(import_bool(import, MIXED "bf16", &bf16, error));
    TRY(import_bool(import, MIXED "fp16", &fp16, error));
    TRY(import_word(import, MIXED "fp8", &fp8, error));
    TRY(import_word(import, MIXED "fp4", &fp4, error));
    TRY(import_word(import, MIXED "fp8_recipe", &recipe_word, error));
    TRY(import_bool(import, MIXED "fp8_param", &gathers, error));
    TRY(import_bool(import, MIXED "fp8_param_gather", &gathers, error));
    TRY(import_bool(import, MIXED "fp4_param_gather", &gathers_four, error));
    TRY(import_bool(import, "ddp.grad_reduce_in_fp32", &in_fp32, error));
    TRY(import_bool(import, MIXED "grad_reduce_in_fp32", &in_fp32, error));
    int recipe = fp4 ? FP8_NVFP4 : recipe_named(name);
    recipe = recipe < 0 && fp8 ? FP8_DELAYED : recipe;
    if (recipe_word) {
        TRY(import_choice(import, MIXED "fp8_recipe", fp8_words, &recipe, error));
    }
    const bool half = fp16 || strncmp(name, "fp16", 4) == 0;
    said->choice[PLAN_PRECISION] = half ? DTYPE_FP16 : DTYPE_BF16;
    if (recipe >= 0) {  // nvfp4 and delayed gather in fewer bits by themselves
        const int said_so = recipe == FP8_NVFP4 ? gathers_four : gathers;
        take_fp8(said, recipe, said_so < 0 ? recipe != FP8_MX : said_so);
    }
    if (in_fp32 == 0) {
        said->choice[PLAN_REDUCE_DTYPE] = REDUCE_DTYPE_BF16;
    }
    return STATUS_OK;
}

// The first two are Bridge's alone: Megatron-LM makes no arguments of those attributes (arguments.py).
static Status read_operations(Import *import, Error *error) {
    int stores = 0, turns = 0, fuses = 0;
    if (megatron_is_bridge(import)) {
        TRY(megatron_bool(import, M_FP8_ACTIVATION, &stores, error));
        TRY(megatron_bool(import, M_QKV_ROPE, &turns, error));
    }
    TRY(megatron_bool(import, M_OP_FUSER, &fuses, error));
    import->said.choice[PLAN_FP8_ACTIVATION] = stores;
    import->said.choice[PLAN_OP_FUSER] = fuses;
    import->said.choice[PLAN_QKV_ROPE] = turns;
    return STATUS_OK;
}

Status megatron_read_precision(Import *import, Error *error) {
    TRY(megatron_is_bridge(import) ? read_recipe(import, error) : read_flags(import, error));
    return read_operations(import, error);
}

static bool lists(const ConfigNode *list, const char *word) {
    for (const ConfigNode *item = list ? list->first : NULL; item; item = item->next) {
        if (item->kind == NODE_SCALAR && strcmp(item->text, word) == 0) {
            return true;
        }
    }
    return false;
}

// LoRA(dim, alpha, target_modules): all four linear layers, those of attention, q, k and v alone (peft/lora.py).
Status megatron_read_adapters(Import *import, Error *error) {
    const char *kind = NULL;
    int rank = 32;  // dim of its LoRA
    const ConfigNode *peft = import_at(import, "peft");
    if (!peft || peft->kind != NODE_MAP) {
        return STATUS_OK;
    }
    TRY(import_word(import, "peft._target_", &kind, error));
    TRY(import_int(import, "peft.dim", 1, plan_fields[PLAN_LORA_RANK].high, &rank, error));
    if (kind && !strstr(kind, "LoRA")) {
        import_refuse(import, "peft", "adapters of kind %s, which no plan of ndtune holds", kind);
        return STATUS_OK;
    }
    const ConfigNode *modules = import_at(import, "peft.target_modules");
    const bool mlp = !modules || lists(modules, "linear_fc1"), out = !modules || lists(modules, "linear_proj");
    import->said.choice[PLAN_FINETUNE] = FINETUNE_LORA;
    import->said.choice[PLAN_LORA_RANK] = rank;
    import->said.choice[PLAN_LORA_TARGETS] = mlp ? LORA_ALL : out ? LORA_ATTENTION : LORA_QUERY_VALUE;
    return STATUS_OK;
}

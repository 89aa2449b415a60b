// Modules are those of Llama's kind; other families' are read where they have the same names.

#include "sim/frameworks/peft.h"
#include "sim/base/text.h"
#include "sim/frameworks/import_python.h"

// Query and value first, then the rest of attention: a set of layers is a prefix of these.
static const char *const modules[] = {"q_proj", "v_proj", "k_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
enum { MODULES = 7, OF_ATTENTION = 4, OF_QUERY_VALUE = 2 };

Finetune peft_finetune(bool in_4bit, bool in_8bit) {
    return in_4bit ? FINETUNE_QLORA : in_8bit ? FINETUNE_LORA_INT8 : FINETUNE_LORA;
}

static int module_of(const char *name) {
    return text_index(modules, MODULES, name);
}

// The set that holds them: the smallest one.
static LoraTargets set_of(unsigned named) {
    return named >> OF_ATTENTION ? LORA_ALL : named >> OF_QUERY_VALUE ? LORA_ATTENTION : LORA_QUERY_VALUE;
}

static unsigned all_of(LoraTargets set) {
    const int count[LORA_TARGETS_COUNT] = {
        [LORA_ALL] = MODULES, [LORA_ATTENTION] = OF_ATTENTION, [LORA_QUERY_VALUE] = OF_QUERY_VALUE};
    return (1u << count[set]) - 1;
}

static void take_modules(Import *import, const char *path, const ConfigNode *list) {
    unsigned named = 0;
    const char *other = NULL;
    for (const ConfigNode *item = list->kind == NODE_SCALAR ? list : list->first; item; item = item->next) {
        const char *name = item->kind == NODE_SCALAR ? item->text : "?";
        const int module = module_of(name);
        if (import_same_word(name, "all-linear")) {
            named |= all_of(LORA_ALL);
        } else if (module < 0) {
            other = name;
        } else {
            named |= 1u << module;
        }
        if (list->kind == NODE_SCALAR) {
            break;
        }
    }
    const LoraTargets set = named ? set_of(named) : LORA_ALL;
    import->said.choice[PLAN_LORA_TARGETS] = (int)set;
    if (other) {
        import_find(import, FINDING_UNMODELLED, path, "adapters beside %s: predicted beside %s", other,
                    lora_targets_names[set]);
    } else if (named != all_of(set)) {
        import_find(import, FINDING_UNMODELLED, path, "adapters beside some of these layers: predicted beside %s",
                    lora_targets_names[set]);
    }
}

Status peft_read(Import *import, const PeftKeys *keys, Finetune finetune, Error *error) {
    static const char *const other_parts[] = {"lora_modules_to_save", "lora_target_parameters"};
    int rank = keys->rank_unsaid, all = 0;
    python_leave_to(import, keys->rank, "lora-rank");
    TRY(import_int(import, keys->rank, 1, plan_fields[PLAN_LORA_RANK].high, &rank, error));
    if (keys->all) {
        TRY(import_bool(import, keys->all, &all, error));
    }
    python_leave_to(import, keys->modules, "lora-targets");
    import_note_default(import, keys->modules);
    const ConfigNode *list = import_has(import, keys->modules) ? import_at(import, keys->modules) : NULL;
    import_known(import, (const char *const[]){keys->modules, NULL});
    import->said.choice[PLAN_FINETUNE] = (int)finetune;
    import->said.choice[PLAN_LORA_RANK] = rank;
    import->said.choice[PLAN_LORA_TARGETS] = (int)(all ? LORA_ALL : keys->unsaid);
    if (!all && list) {
        take_modules(import, keys->modules, list);
    }
    for (int i = 0; i < 2; i++) {
        FIND_IF(import_is_on(import, other_parts[i]), import, FINDING_UNMODELLED, other_parts[i],
                "%s trains more than the adapters of linear layers: predicted without", other_parts[i]);
        import_known(import, (const char *const[]){other_parts[i], NULL});
    }
    return STATUS_OK;
}

// LoraConfig's default is rank 8. What trains more than these adapters is named.
Status peft_read_script(Import *import, bool *adapters, Error *error) {
    static const PeftKeys lora = {"peft_config.r", "peft_config.target_modules", NULL, LORA_QUERY_VALUE, 8};
    static const char config[] = "model_arguments.quantization_config";
    static const char *const four[] = {"model_arguments.quantization_config.load_in_4bit",
                                       "model_arguments.load_in_4bit"},
                             *const eight[] = {"model_arguments.quantization_config.load_in_8bit",
                                               "model_arguments.load_in_8bit"};
    static const ImportLeftOut left_out[] = {
        {"peft_config.modules_to_save", NULL, "modules_to_save are trained beside the adapters: predicted without"},
        {"peft_config.use_dora", NULL, "DoRA trains magnitudes of the weights too, with passes of their own"},
        {NULL, NULL, NULL}};
    int in_4bit = 0, in_8bit = 0;
    for (int i = 0; i < 2; i++) {
        python_leave_to(import, four[i], "finetune qlora where that is on");
        python_leave_to(import, eight[i], "finetune lora-int8 where that is on");
        TRY(import_bool(import, four[i], &in_4bit, error));
        TRY(import_bool(import, eight[i], &in_8bit, error));
    }
    python_leave(import, "model_arguments." PYTHON_MORE, "what the model is loaded with beside is not read");
    python_leave(import, "peft_config", "all is taken as trained, unless --finetune and --lora-rank say more");
    const ConfigNode *of_peft = import_has(import, "peft_config") ? import_at(import, "peft_config") : NULL;
    const bool several = of_peft && of_peft->kind == NODE_SCALAR;
    FIND_IF(several, import, FINDING_ASSUMED, "peft_config",
            "the script has several LoraConfigs: all is taken as trained, unless --finetune and --lora-rank say more");
    FIND_IF(import_at(import, "from_pretrained"), import, FINDING_ASSUMED, "from_pretrained",
            "the script loads several models: in which numbers, and by which attention, is not read");
    *adapters = of_peft && !several;
    if (!*adapters) {
        return STATUS_OK;
    }
    const ConfigNode *bits = import_at(import, config);
    if (bits && !python_is_made_by(bits, "BitsAndBytesConfig")) {
        python_leave_to(import, config, "finetune qlora where it loads 4 bits");
    }
    python_leave(import, "peft_config." PYTHON_MORE, "say what it holds with --lora-rank and --lora-targets");
    import_leave_out(import, left_out);
    TRY(peft_read(import, &lora, peft_finetune(in_4bit, in_8bit), error));
    import_known(import, (const char *const[]){"peft_config", NULL});
    return STATUS_OK;
}

void peft_write_modules(const ConfigJob *job, const char *quote, FILE *out) {
    const unsigned named = all_of(job->plan->lora_targets);
    for (int i = 0; named >> i & 1; i++) {
        fprintf(out, "%s%s%s%s", i > 0 ? ", " : "", quote, modules[i], quote);
    }
}

static void write_targets(const ConfigJob *job, FILE *out) {
    if (job->plan->lora_targets == LORA_ALL) {
        fputs("\"all-linear\"", out);
        return;
    }
    fputc('[', out);
    peft_write_modules(job, "\"", out);
    fputc(']', out);
}

void peft_write_python(const ConfigJob *job, FILE *out) {
    if (!plan_has_adapters(job->plan)) {
        return;
    }
    const int rank = plan_lora_rank(job->plan);
    fprintf(out,
            "\n\ndef peft_config():  # of get_peft_model, or SFTTrainer's peft_config\n"
            "    from peft import LoraConfig\n\n"
            "    return LoraConfig(task_type=\"CAUSAL_LM\", r=%d, lora_alpha=%d, target_modules=",
            rank, LORA_SCALING * rank);
    write_targets(job, out);
    fputs(")\n", out);
}

const char *peft_base_dtype(const ConfigJob *job) {
    const Dtype dtype = job->plan->precision;
    return dtype == DTYPE_FP32 ? "float32" : dtype == DTYPE_FP16 ? "float16" : "bfloat16";
}

// Of 4 bits each argument stands on a line of its own, behind `before`. bnb_4bit_quant_storage: FSDP shards tensors of
// one dtype (peft's guide of FSDP and QLoRA).
static void write_bits(const ConfigJob *job, const char *before, const char *after, FILE *out) {
    static const char *const in_4bit[] = {"load_in_4bit=True", "bnb_4bit_quant_type=\"nf4\"",
                                          "bnb_4bit_compute_dtype=\"bfloat16\"", "bnb_4bit_quant_storage=\"bfloat16\""};
    enum { IN_4BIT = sizeof in_4bit / sizeof in_4bit[0] };
    fputs("BitsAndBytesConfig(", out);
    PRINT_IF(job->plan->finetune == FINETUNE_LORA_INT8, out, "load_in_8bit=True");
    for (int i = 0; job->plan->finetune == FINETUNE_QLORA && i < IN_4BIT; i++) {
        fprintf(out, "%s%s%s", before, in_4bit[i], i + 1 < IN_4BIT ? "," : after);
    }
    fputc(')', out);
}

static bool has_bits(const ConfigJob *job) {
    return job->plan->finetune == FINETUNE_QLORA || job->plan->finetune == FINETUNE_LORA_INT8;
}

void peft_write_note(const ConfigJob *job, FILE *out) {
    if (!plan_has_adapters(job->plan)) {
        return;
    }
    const int rank = plan_lora_rank(job->plan);
    fprintf(out, "  Its model: from_pretrained(..., dtype=\"%s\"", peft_base_dtype(job));
    if (has_bits(job)) {
        fputs(", quantization_config=", out);
        write_bits(job, "\n    ", "", out);
    }
    fprintf(out, "), frozen,\n  in peft's get_peft_model(model, LoraConfig(r=%d, lora_alpha=%d, target_modules=", rank,
            LORA_SCALING * rank);
    write_targets(job, out);
    fputs(")).\n", out);
}

void peft_write_bits(const ConfigJob *job, FILE *out) {
    if (!has_bits(job)) {
        return;
    }
    fputs("    from transformers import BitsAndBytesConfig\n\n"
          "    arguments[\"quantization_config\"] = ",
          out);
    write_bits(job, "\n        ", ",\n    ", out);
    fputc('\n', out);
}

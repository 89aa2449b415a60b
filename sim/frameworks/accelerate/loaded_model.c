// In which numbers a model is loaded, and what accelerate and the Trainers on top of it train of that. transformers 5
// loads what the checkpoint has, 4 and the trainers that load by themselves float32. Under mixed precision accelerate
// makes fp32 of what FSDP shards (fsdp2_prepare_model, accelerator.py); replicas train in what they are loaded in, and
// so do shards where nothing is mixed.

#include <string.h>

#include "sim/frameworks/accelerate/accelerate_files.h"
#include "sim/frameworks/import_python.h"
#include "sim/frameworks/peft.h"

// ---- reading

Loaded loaded_read(Import *import, const char *path, Loaded unsaid) {
    static const char module[] = "torch.";
    static const ImportWord words[] = {{"float32", LOADED_FP32},
                                       {"float", LOADED_FP32},
                                       {"bfloat16", LOADED_BF16},
                                       {"float16", LOADED_FP16},
                                       {"half", LOADED_FP16},
                                       {"auto", LOADED_AS_STORED},
                                       {NULL, 0}};
    import_note_default(import, path);
    ConfigNode *node = import_at(import, path);
    const char *word = node && node->kind == NODE_SCALAR ? node->text : "";
    word += strncmp(word, module, strlen(module)) == 0 ? strlen(module) : 0;
    for (int i = 0; words[i].word; i++) {
        if (strcmp(word, words[i].word) == 0) {
            return (Loaded)words[i].value;
        }
    }
    python_leave_to(import, path, "master-weights");
    return unsaid;
}

bool loaded_is_half(Loaded loaded) {
    return loaded == LOADED_BF16 || loaded == LOADED_AS_STORED;
}

void loaded_take(Import *import, Loaded loaded, bool upcasts) {
    int *choice = import->said.choice;
    const bool mixed = choice[PLAN_PRECISION] != DTYPE_FP32, adapters = choice[PLAN_FINETUNE] != IMPORT_UNSAID;
    if (loaded == LOADED_UNREAD) {
        return;
    }
    if (!mixed && loaded_is_half(loaded)) {
        choice[PLAN_PRECISION] = DTYPE_BF16;
    } else if (!mixed && adapters && loaded == LOADED_FP16) {
        choice[PLAN_PRECISION] = DTYPE_FP16;
    }
    const bool made_fp32 = mixed && upcasts && choice[PLAN_ZERO] > 0;
    choice[PLAN_MASTER_WEIGHTS] =
        !adapters && !made_fp32 && choice[PLAN_PRECISION] == DTYPE_BF16 && loaded_is_half(loaded);
    FIND_IF(
        choice[PLAN_MASTER_WEIGHTS] && loaded == LOADED_AS_STORED, import, FINDING_ASSUMED, NULL,
        "no dtype is said, so that of the checkpoint is trained, taken as bf16; transformers before 5 load float32: "
        "--master-weights fp32");
    FIND_IF(!adapters && !made_fp32 && loaded == LOADED_FP16, import, FINDING_UNMODELLED, NULL,
            "weights in float16 without fp32 masters: predicted with them, your run needs less memory");
}

// ---- writing

bool export_mixes(const ConfigJob *job) {
    const bool made_fp32 = export_shards(job) && !target_shards_itself(job->target, job->plan);
    return job->plan->precision != DTYPE_FP32 && !(job->plan->bf16_master && made_fp32);
}

const char *export_mixed_precision(const ConfigJob *job) {
    return export_mixes(job) ? dtype_name(job->plan->precision) : "no";
}

const char *export_loaded_dtype(const ConfigJob *job) {
    return plan_freezes_base(job->plan) ? peft_base_dtype(job) : job->plan->bf16_master ? "bfloat16" : "float32";
}

void model_arguments_begin(const ConfigJob *job, const char *parameters, FILE *out) {
    const bool frozen = plan_freezes_base(job->plan) && job->plan->precision != DTYPE_FP32;
    fprintf(out,
            "\n\ndef model_arguments(%s):  # of from_pretrained\n"
            "    arguments = {\"attn_implementation\": \"%s\", \"dtype\": \"%s\"}  # %s\n",
            parameters, export_attention(job), export_loaded_dtype(job),
            frozen                   ? "frozen"
            : job->plan->bf16_master ? "trained in it, without masters"
                                     : "master weights");
}

// What other programs call an option, and which one it is here. To add one: a row; words for an axis are in its row.

#include "autotune/cli/options.h"
#include "sim/axes/axes.h"
#include "sim/base/text.h"

#define LORA_REFUSED "LoRA and QLoRA are not predicted yet; without this word the full fine-tune is, in more memory"

static const TextSynonym option_synonyms[] = {
    {"gpus", "--world N: all accelerators together"},
    {"num-gpus", "--world N: all accelerators together"},
    {"ngpus", "--world N: all accelerators together"},
    {"devices", "--world N: all accelerators together"},
    {"world-size", "--world N: all accelerators together"},
    {"num-processes", "--world N: all accelerators together"},
    {"nproc-per-node", "--gpus-per-node N, with --nodes N"},
    {"num-gpus-per-node", "--gpus-per-node N, with --nodes N"},
    {"num-nodes", "--nodes N, with --gpus-per-node N where the cluster's nodes have others"},
    {"nnodes", "--nodes N, with --gpus-per-node N where the cluster's nodes have others"},
    {"batch-size", "--global-batch N: sequences per optimizer step; --micro-batch N: of one rank at a time"},
    {"batch", "--global-batch N: sequences per optimizer step; --micro-batch N: of one rank at a time"},
    {"bs", "--global-batch N: sequences per optimizer step; --micro-batch N: of one rank at a time"},
    {"gbs", "--global-batch N: sequences per optimizer step"},
    {"mbs", "--micro-batch N: sequences of one rank at a time"},
    {"local-batch-size", "--micro-batch N: sequences of one rank at a time"},
    {"per-device-train-batch-size", "--micro-batch N: sequences of one rank at a time"},
    {"gradient-accumulation-steps", "--grad-accum N of one shape; a search finds it from --global-batch"},
    {"accumulation", "--grad-accum N of one shape; a search finds it from --global-batch"},
    {"seq-len", "--seq N"},
    {"seqlen", "--seq N"},
    {"seq-length", "--seq N"},
    {"sequence-length", "--seq N"},
    {"sequence-len", "--seq N"},
    {"context-length", "--seq N"},
    {"max-seq-len", "--seq N"},
    {"gpu", "--cluster H100, or any other accelerator or profile: ndtune clusters lists them"},
    {"gpu-type", "--cluster H100, or any other accelerator or profile: ndtune clusters lists them"},
    {"hardware", "--cluster NAME: ndtune clusters lists them"},
    {"framework", "--target NAME"},
    {"dtype", "--precision"},
    {"gradient-checkpointing", "--recompute"},
    {"activation-checkpointing", "--recompute"},
    {"ac", "--recompute"},
    {"bandwidth", "--set fabric.node_gbps=N: all cards of a node together, in Gbit/s"},
    {"price", "--set price=N: US dollars per accelerator and hour"},
    {"tensor-parallel", "--mesh tp=N of one shape; --max-tp N bounds the search"},
    {"tensor-parallel-size", "--mesh tp=N of one shape; --max-tp N bounds the search"},
    {"context-parallel", "--mesh cp=N of one shape"},
    {"context-parallel-size", "--mesh cp=N of one shape"},
    {"pipeline-parallel", "--mesh pp=N of one shape"},
    {"pipeline-parallel-size", "--mesh pp=N of one shape"},
    {"cpu-offload", "--offload optimizer, or parameters,optimizer"},
    {"optimizer", "every plan is AdamW with fp32 moments; --master-weights bf16 keeps all of it in bf16"},
    {"optim", "every plan is AdamW with fp32 moments; --master-weights bf16 keeps all of it in bf16"},
    {"lora", LORA_REFUSED},
    {"qlora", LORA_REFUSED},
    {"peft", LORA_REFUSED},
    {"lora-rank", LORA_REFUSED},
    {"lora-r", LORA_REFUSED},
    {"lora-targets", LORA_REFUSED},
    {"finetune", "a full fine-tune is predicted as training is: give its --global-batch and --seq; LoRA is not yet"},
    {"compile", "--fused compiled"},
    {"torch-compile", "--fused compiled"},
    {"flash-attention", "--attention flash"},
    {"json", "--format json"},
    {"output", "--out FILE of a config or profile, --html, --csv, or > FILE"},
};

const char *option_called(const char *name) {
    const char *axis = axis_as_option(name);
    return axis ? axis : text_synonym(name, option_synonyms, sizeof option_synonyms / sizeof option_synonyms[0]);
}

// Option names of other programs mapped to ours. To add one: a word of a row; words for an axis are in its row.

#include "autotune/cli/options.h"
#include "sim/axes/axes.h"
#include "sim/base/text.h"

static const TextSynonym option_synonyms[] = {
    {"gpus|num-gpus|ngpus|devices|world-size|num-processes", "--world N: all accelerators together"},
    {"nproc-per-node|num-gpus-per-node", "--gpus-per-node N, with --nodes N"},
    {"num-nodes|nnodes", "--nodes N, with --gpus-per-node N where the cluster's nodes have others"},
    {"batch-size|batch|bs", "--global-batch N: sequences per optimizer step; --micro-batch N: of one rank at a time"},
    {"gbs", "--global-batch N: sequences per optimizer step"},
    {"mbs|local-batch-size|per-device-train-batch-size", "--micro-batch N: sequences of one rank at a time"},
    {"gradient-accumulation-steps|accumulation", "--grad-accum N of one shape; a search finds it from --global-batch"},
    {"seq-len|seqlen|seq-length|sequence-length|sequence-len|context-length|max-seq-len", "--seq N"},
    {"gpu|gpu-type", "--cluster H100, or any other accelerator or profile: ndtune clusters lists them"},
    {"hardware", "--cluster NAME: ndtune clusters lists them"},
    {"framework", "--target NAME"},
    {"dtype", "--precision"},
    {"gradient-checkpointing|activation-checkpointing|ac", "--recompute"},
    {"bandwidth", "--set fabric.node_gbps=N: all cards of a node together, in Gbit/s"},
    {"price", "--set price=N: US dollars per accelerator and hour"},
    {"tensor-parallel|tensor-parallel-size", "--mesh tp=N of one shape; --max-tp N bounds the search"},
    {"context-parallel|context-parallel-size", "--mesh cp=N of one shape"},
    {"pipeline-parallel|pipeline-parallel-size", "--mesh pp=N of one shape"},
    {"pp-layout|pipeline-model-parallel-layout", "--pp-split \"Et*7|t*8|t*8|t*7L\""},
    {"cpu-offload", "--offload optimizer, or parameters,optimizer"},
    {"optim", "--optimizer NAME: another one than the target's AdamW"},
    {"lora", "--finetune lora"},
    {"qlora|load-in-4bit", "--finetune qlora"},
    {"peft|adapter", "--finetune lora, or qlora"},
    {"load-in-8bit", "--finetune lora-int8"},
    {"lora-r", "--lora-rank N"},
    {"lora-target-modules", "--lora-targets all, attention or query-value"},
    {"compile|torch-compile", "--fused compiled"},
    {"flash-attention", "--attention flash"},
    {"json", "--format json"},
    {"quiet|silent", "2> /dev/null: what is not the answer goes to standard error"},
    {"output|outfile|out-file|save|to", "--out FILE of a config or profile, --html, --csv, or > FILE"},
};

const char *option_called(const char *name) {
    const char *axis = axis_as_option(name);
    return axis ? axis : text_synonym(name, option_synonyms, sizeof option_synonyms / sizeof option_synonyms[0]);
}

// Letters that other programs take behind one dash.
const char *option_of_letter(const char *letter) {
    static const TextSynonym letters[] = {
        {"v", "did you mean --version or --verbose?"},
        {"o", "did you mean --out FILE, of a config or profile? --html FILE, --csv FILE or > FILE write others"},
        {"n|np|w", "did you mean --world N?"},
        {"m", "did you mean --model NAME?"},
        {"c", "did you mean --cluster NAME?"},
        {"t", "did you mean --target NAME?"},
        {"f", "did you mean --format table, json or csv?"},
        {"s", "did you mean --seq N?"},
        {"b", "did you mean --global-batch N?"},
        {"q", "2> /dev/null: what is not the answer goes to standard error"},
    };
    return text_synonym(letter, letters, sizeof letters / sizeof letters[0]);
}

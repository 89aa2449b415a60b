// What users type without having read the manual: accepted, with a note, where it can only mean one thing; otherwise
// refused with a hint what to type instead.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/cli/cli.h"

typedef struct Typed {
    const char *words[10];
    const char *says;  // where it is taken: on standard output; else in standard error
} Typed;

#define QUICK "--effort", "estimate"

static const Typed taken[] = {
    {{"--world", "4x8", "--model", "tiny", QUICK}, "on 32 x H100"},
    {{"--nodes", "2", "--gpus-per-node", "4", "--model", "tiny", QUICK}, "on 8 x H100"},
    {{"--nodes", "2", "--model", "tiny", QUICK}, "on 16 x H100"},
    {{"--nodes", "2", "--world", "8", "--model", "tiny", "--verbose", QUICK}, "4 per node"},
    {{"llama-3-8b", "--world", "8", QUICK}, "llama-3-8b ("},
    {{"plan", "Qwen/Qwen3-8B", "--world", "8", QUICK}, "qwen3-8b ("},
    {{"--model", "meta-llama/Llama-3.1-8B-Instruct", "--world", "8", QUICK}, "llama-3.1-8b ("},
    {{"--model", "llama3.1:8b", "--world", "8", QUICK}, "llama-3.1-8b ("},
    {{"--model", "Llama 3 8B", "--world", "8", QUICK}, "llama-3-8b ("},
    {{"--world", "8", "--model", "tiny", "--cluster", "h100", QUICK}, "--cluster dgx-h100"},
    {{"--world", "8", "--model", "tiny", "--cluster", "A100-40GB", QUICK}, "--cluster dgx-a100-40g"},
    {{"--world", "8", "--model", "tiny", "--cluster", "RTX 4090", QUICK}, "--cluster pcie-4090-8x"},
    {{"--world", "8", "--model", "tiny", "--cluster", "NVIDIA A100-SXM4-80GB", QUICK}, "--cluster dgx-a100-80g"},
    {{"--world", "8", "--model", "tiny", "--cluster", "MI300X", QUICK}, "--cluster mi300x-8x"},
    {{"--world", "8", "--model", "tiny", "--cluster", "DGX-H100", QUICK}, "(dgx-h100)"},
    {{"--world", "8", "--model", "tiny", "--cluster", "b200", "--verbose", QUICK}, "the usual node of b200"},
    {{"--world", "8", "--model", "tiny", "--memory-limit", "50%", "--verbose", QUICK}, "memory limit 39.5 GiB"},
    {{"--world", "16,8", "--model", "tiny", QUICK}, "8 instead of 16: 50.0 % fewer accelerators"},
    {{"--world", "8", "--model", "tiny", "--optimizer", "adamw", QUICK}, "accelerate 1.15"},
    {{"predict", "--mesh", "dp_shard=8", "--model", "tiny", "--optimizer", "sgd"}, "optimizer=sgd"},
    {{"export", "--as", "accelerate", "--mesh", "dp_shard=8", "--model", "tiny"}, "parallelism_config"},
    {{"predict", "--mesh", "dp_shard=32", "--model", "mixtral-8x7b"}, "mixtral-8x7b on 32 x H100"},
    {{"predict", "--mesh", "dp_shard=16", "--model", "Qwen/Qwen3-30B-A3B"}, "qwen3-30b-a3b on 16 x H100"},
    {{"predict", "gpt-oss-20b", "--mesh", "dp_shard=8"}, "none with experts: their part is a guess"},
    {{"predict", "tiny", "--mesh", "dp_shard=2", "--measured", "5s"}, "5.00 s"},
    {{"predict", "--mesh", "dp_shard=2", "--model", "tiny", "--measured", "900 ms"}, "900 ms"},
};

static const Typed refused[] = {
    {{"--world", "8", "--model", "xai-org/grok-1"}, "family of models with experts (MoE) is not predicted yet"},
    {{"mistralai/Mistral-7B-Instruct-v0.2", "--world", "8"}, "hint: did you mean mistral-7b?"},
    {{"--world", "8", "--model", "70b", "--lora-rank", "16"}, "--lora-rank goes with --finetune lora"},
    {{"--world", "8", "--model", "7b", "--pipeline-parallel", "2"}, "hint: --mesh pp=N of one shape"},
    {{"--world", "8", "--model", "gemma-2-9b"}, "Gemma 2 is read from its config.json"},
    {{"--world", "8", "--model", "falcon-7b"}, "Falcon (attention beside the MLP) is not predicted yet"},
    {{"--world", "8", "--model", "t5-11b"}, "models with an encoder are not predicted yet"},
    {{"--world", "8", "--model", "gpt3"}, "hint: did you mean gpt3-125m, "},
    {{"--world", "8", "--model", "llama-3-405b"}, "hint: did you mean llama-3.1-405b?"},
    {{"4x8", "--model", "7b"}, "hint: --world 4x8"},
    {{"--world", "8", "--model", "7b", "--as", "accelerate"}, "hint: --target NAME predicts for a framework"},
    {{"--world", "8", "--model", "70b", "--lora"}, "hint: --finetune lora"},
    {{"--world", "8", "--model", "70b", "--peft", "lora"}, "hint: --finetune lora, or qlora"},
    {{"--world", "8", "--model", "7b", "--tensor-parallel", "4"}, "hint: --mesh tp=N of one shape; --max-tp N"},
    {{"--world", "8", "--model", "7b", "--tp", "4"}, "--max-tp"},
    {{"--world", "8", "--model", "7b", "--optim", "adamw"}, "hint: --optimizer NAME"},
    {{"--world", "8", "--model", "7b", "--bs", "8"}, "hint: --global-batch N"},
    {{"--world", "8", "--model", "7b", "--nnodes", "2"}, "hint: --nodes N"},
    {{"--world", "8", "--model", "7b", "--nodes", "3"}, "--nodes 3 does not go with --world 8"},
    {{"--world", "8", "--model", "7b", "--memory-limit", "70"}, "--memory-limit 70 would be 70 bytes: say 70GiB"},
    {{"--world", "8", "--model", "7b", "--memory-limit", "120%"}, "takes a size such as 70GiB, 80GB, 80e9 or 90%"},
    {{"--world", "8", "--model", "7b", "--cluster", "dgx-h100,dgx-a100-80g"}, "a cluster has one node type"},
    {{"--world", "8", "--model", "7b", "--mesh", "dp_shard=8"}, "hint: ndtune predict --mesh ... is one shape"},
    {{"predict", "--world", "32", "--model", "7b"}, "hint: --mesh says the shape, such as --mesh dp_shard=32"},
    {{"run", "--world", "4", "--model", "tiny"}, "hint: --mesh says the shape"},
    {{"predict", "--mesh", "8x4", "--model", "7b"}, "hint: 8x4 may be dp_shard=8,tp=4"},
    {{"predict", "--mesh", "dp=8", "--model", "7b"}, "dp_replicate"},
    {{"--world", "8", "--model", "7b", "--target", "torchtune"}, "hint: torchtune shards by FSDP version 2"},
    {{"--world", "8", "--model", "7b", "--target", "unsloth"}, "hint: Unsloth trains by transformers' Trainer"},
    {{"version"}, "hint: ndtune --version"},
    {{"-v"}, "hint: did you mean --version or --verbose?"},
    {{"-n", "8", "--model", "7b"}, "hint: did you mean --world N?"},
    {{"export", "-o", "train.yaml"}, "hint: did you mean --out FILE"},
    {{"export", "--to", "train.yaml"}, "hint: --out FILE"},
    {{"-z"}, "hint: ndtune help plan lists all options"},
    {{"recommend", "--world", "8"}, "hint: ndtune --world 32 --model 7b"},
    {{"slow"}, "hint: ndtune predict --mesh ... --measured LOG says why a job is slow"},
    {{"diagnose"}, "--measured LOG says why a job is slow"},
    {{"help", "slurm"}, "hint: ndtune export --as sbatch"},
    {{"--world", "8,16,8", "--model", "7b"}, "--world names 8 twice"},
    {{"no-such-model", "--world", "8"}, "unknown command no-such-model"},
    {{"--world", "8", "--model", "7b", "--offload-layers", "4"}, "--offload-layers goes with --offload activations"},
    {{"--world", "8", "--model", "7b", "--recompute", "none", "--recompute-layers", "4"},
     "--recompute-layers goes with --recompute full"},
    {{"predict", "--mesh", "dp_shard=8", "--model", "7b", "--recompute-layers", "4"},
     "--recompute-layers goes with --recompute full"},
    {{"predict", "--mesh", "dp_shard=8", "--model", "7b", "--recompute-modules", "mlp"},
     "--recompute-modules goes with --recompute selective"},
    {{"predict", "--mesh", "dp_shard=8", "--model", "7b", "--recompute-unit", "layer"},
     "--recompute-unit goes with --recompute full"},
    {{"--world", "8", "--model", "7b", "--cluster", "2x4090"}, "hint: say which chip and how many apart"},
    {{"predict", "--mesh", "dp_shard=8", "--model", "8b", "--cluster", "8 x H100"},
     "--cluster dgx-h100 with --world 8 (plan), or with a --mesh of 8 (predict)"},
    {{"--world", "8", "--model", "7b", "--rank-order", "tp,dp"}, "hint: data parallelism is dp_shard"},
};

Test(cli_typed, what_can_only_mean_one_thing_is_taken_and_said) {
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        ProgramRun run = cli_words(taken[i].words);
        cr_expect_eq(run.exit_code, 0, "%s: %s", taken[i].says, run.err);
        cr_expect_not_null(strstr(run.out, taken[i].says), "%s is not in %s", taken[i].says, run.out);
        program_run_free(&run);
    }
}

Test(cli_typed, the_rest_is_refused_with_what_to_type_instead) {
    cr_assert_geq(sizeof refused / sizeof refused[0], 30);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        ProgramRun run = cli_words(refused[i].words);
        cr_expect_eq(run.exit_code, 1, "%s: exit %d", refused[i].says, run.exit_code);
        cr_expect_not_null(strstr(run.err, refused[i].says), "%s is not in %s", refused[i].says, run.err);
        cr_expect_str_empty(run.out, "%s", run.out);
        program_run_free(&run);
    }
}

// 8191 is a prime: every shape that runs has as many data ranks, eight times the batch, and gathers over all of them.
Test(cli_typed, of_a_prime_world_the_ranks_to_leave_idle_are_named) {
    ProgramRun run = CLI("--world", "8191", "--model", "7b", QUICK);
    cr_assert_not_null(strstr(run.out, "Leave 7 idle: --world 8184 is "), "%s%s", run.out, run.err);
    program_run_free(&run);
    ProgramRun even = CLI("--world", "16", "--model", "8b", QUICK);
    cr_assert_null(strstr(even.out, "idle"), "%s", even.out);
    program_run_free(&even);
}

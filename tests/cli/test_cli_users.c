// Eight users who have not read the manual, each served in at most two commands, or told first and plainly that they
// are not. What they must find on the screen is what made them give up or believe a wrong answer before. To change what
// a user gets, edit the row.

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/cli/cli.h"

enum { MOST_COMMANDS = 3, MOST_SAYINGS = 6 };

typedef struct Command {
    const char *words[14];
    int exit_code;
    const char *says[MOST_SAYINGS];  // on either stream
} Command;

typedef struct User {
    const char *who;
    Command commands[MOST_COMMANDS];
} User;

#define FILES NDTUNE_SOURCE_DIR "/tests/golden/import/files/"

static const User users[] = {
    {"fine-tunes 8B on 4 nodes of 8 H100 with accelerate",
     {{{"meta-llama/Llama-3.1-8B-Instruct", "--nodes", "4", "--gpus-per-node", "8", "--cluster", "h100",
        "--global-batch", "64"},
       0,
       {"on 32 x H100-SXM5-80GB (dgx-h100), for accelerate", "batch 64 sequences", "Best: --mesh ",
        "in accelerate:", "Next: ndtune export"}},
      {{"export", "--world", "32", "--model", "8b", "--global-batch", "64"},
       0,
       {"parallelism_config", "mixed_precision"}}}},
    {"trains 13B at 32k on A100-40GB with axolotl",
     {{{"--world", "64", "--model", "13b", "--seq", "32k", "--cluster", "A100-40GB", "--target", "axolotl"},
       0,
       {"A100-SXM4-40GB (dgx-a100-40g)", "Best: --mesh ", "leave 8 % of the memory free"}}}},
    {"has a job that is slow",
     {{{"predict", "--mesh", "dp_shard=64", "--model", "8b", "--target", "torchtitan", "--seq", "8k", "--recompute",
        "selective", "--measured", "1.9s"},
       0,
       {"more than the predicted", "look at", "one slow rank", "outside the step"}},
      {{"blame", NDTUNE_SOURCE_DIR "/tests/golden/blame/stopped"}, 2, {"Blamed: rank 1"}}}},
    {"is a student without a GPU",
     {{{"run", "--mesh", "dp_shard=2,cp=2", "--model", "tiny", "--steps", "4", "--explain"},
       0,
       {"What this step did", "FSDP (dp_shard x cp = 4): a rank keeps 1/4 of every weight", "in a ring",
        "a rank holds 1/2 of every sequence"}}}},
    {"buys 512 B200",
     {{{"--world", "512", "--model", "70b", "--cluster", "b200", "--target", "torchtitan", "--effort", "estimate"},
       0,
       {"6 of them on B200-SXM-180GB", "too fast", "up to 8 ranks"}}}},
    {"trains a mixture of experts",
     {{{"--world", "64", "--model", "mistralai/Mixtral-8x7B-v0.1"},
       0,
       {"mixtral-8x7b (46.7 B) on 64 x H100", "none with experts: their part is a guess",
        "(ep) are not predicted for this framework"}}}},
    {"trains a LoRA of 70B on 8",
     {{{"--world", "8", "--model", "70b", "--lora"}, 1, {"--finetune lora"}},
      {{"--world", "8", "--model", "70b", "--finetune", "lora"}, 0, {"Best: --mesh dp_shard=8", "batch 64 sequences"}},
      {{"--world", "8", "--model", "70b"}, 2, {"none of the 20 shapes can run", "by estimate something fits with"}}}},
    {"owns 8 x 4090",
     {{{"--world", "8", "--model", "3b", "--cluster", "RTX 4090"},
       0,
       {"(pcie-4090-8x)", "Best: --mesh ", "Assumed: --cluster pcie-4090-8x"}}}},
};

// Lines that were broken become one.
static void join_lines(char *text) {
    char *to = text;
    for (const char *at = text; *at; at++) {
        const bool space = *at == ' ' || *at == '\n';
        if (!space || (to > text && to[-1] != ' ')) {
            *to++ = space ? ' ' : *at;
        }
    }
    *to = '\0';
}

static void check(const User *user, const Command *command) {
    ProgramRun run = cli_words(command->words);
    join_lines(run.out);
    cr_expect_eq(run.exit_code, command->exit_code, "who %s: exit %d: %s", user->who, run.exit_code, run.err);
    for (int i = 0; i < MOST_SAYINGS && command->says[i]; i++) {
        cr_expect(strstr(run.out, command->says[i]) || strstr(run.err, command->says[i]),
                  "who %s finds no \"%s\" in %s%s", user->who, command->says[i], run.out, run.err);
    }
    program_run_free(&run);
}

Test(cli_users, each_is_served_in_two_commands_or_told_that_they_are_not) {
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        for (int j = 0; j < MOST_COMMANDS && users[i].commands[j].words[0]; j++) {
            check(&users[i], &users[i].commands[j]);
        }
    }
}

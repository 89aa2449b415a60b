// Command dispatch, and what commands share.

#include "autotune/cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/cli/quote.h"
#include "sim/base/escape.h"
#include "sim/base/text.h"
#include "sim/frameworks/words.h"
#include "sim/model/model.h"
#include "sim/model/model_names.h"

const CommandRow command_table[COMMAND_COUNT] = {
    [COMMAND_PLAN] = {"plan",
                      "which mesh shape to run: every shape of a world, predicted and ranked (the default command)",
                      "[plan] --world N[,N...] --model NAME|FILE [options]",
                      "ndtune --world 32 --model 7b\n"
                      "ndtune --world 64 --model llama-3-8b --cluster dgx-a100-80g --seq 8192 --global-batch 512\n"
                      "ndtune --world 16 --model ./config.json --max-tp 8 --format json\n"
                      "ndtune --world 32 --model 7b --baseline dp_replicate=4,dp_shard=8\n"
                      "ndtune --world 8,16,32,64 --model 7b --tokens 300e9 --set price=2.5\n",
                      cmd_plan},
    [COMMAND_PREDICT] = {"predict", "one shape in full: time, memory and where they go",
                         "predict --mesh AXIS=N,... --model NAME|FILE [options]",
                         "ndtune predict --mesh dp_shard=8 --model llama-3-8b --micro-batch 2\n"
                         "ndtune predict --mesh dp_shard=16,tp=4 --model 70b --recompute full --format json\n"
                         "ndtune predict --mesh dp_shard=8 --model 8b --target " FRAMEWORK_DEFAULT
                         " --global-batch 64 --measured 5.2\n",
                         cmd_predict},
    [COMMAND_EXPLAIN] =
        {"explain",
         "why the best shape beats the next one, and what would change the answer; with --from, what to "
         "change in a config that you train with",
         "explain [--world N --model NAME|FILE] [--from FILE] [options]",
         "ndtune explain --world 32 --model 7b\n"
         "ndtune explain --world 64 --model 70b --cluster aws-p5 --format json\n"
         "ndtune explain --from " FRAMEWORK_DEFAULT_FILE " --model llama-3-8b --micro-batch 2 --grad-accum 8\n",
         cmd_explain},
    [COMMAND_CHECK] = {"check",
                       "is this config right: does it run, fit, and come near the best with the same batch; of two "
                       "files, what the change costs",
                       "check FILE [FILE] [--model NAME|FILE] [--tolerance PERCENT] [options]",
                       "ndtune check " FRAMEWORK_DEFAULT_FILE " --model llama-3-8b\n"
                       "ndtune check main.yaml mine.yaml --model llama-3-8b --cluster aws-p5\n"
                       "ndtune check train.toml --world 64 --tolerance 5 --format github\n",
                       cmd_check},
    [COMMAND_RUN] = {"run", "train one shape for real on this machine, measured beside predicted",
                     "run --mesh AXIS=N,... --model NAME|FILE [options]",
                     "ndtune run --mesh dp_shard=2 --model tiny\n"
                     "ndtune run --mesh dp_shard=2,cp=2 --model tiny --steps 4 --explain\n"
                     "ndtune run --mesh dp_shard=2,tp=2 --model tiny --steps 20 --format json\n",
                     cmd_run},
    [COMMAND_VALIDATE] = {"validate",
                          "run the best shapes for real, measured beside predicted; without --world and --model those "
                          "of the last request",
                          "validate [--top N] [--world N --model NAME|FILE] [--with TARGET -- COMMAND...]",
                          "ndtune validate --top 3\n"
                          "ndtune validate --world 4 --model tiny --cluster probed.json --top 0 --repeats 5\n"
                          "ndtune validate --world 2 --model tiny --with " FRAMEWORK_DEFAULT " -- torchrun "
                          "--nproc-per-node={world} train.py --tp={tp} --cp={cp}\n",
                          cmd_validate},
    [COMMAND_CALIBRATE] =
        {"calibrate", "fit a cluster profile to measured runs: those in the store, of a file, or logs of a framework",
         "calibrate [--cluster NAME|FILE] [--runs FILE.csv] [--log FILE --mesh AXIS=N,... --model NAME] "
         "[--out FILE]",
         "ndtune calibrate --out ours.json\n"
         "ndtune calibrate --runs runs.csv --cluster dgx-h100 --target " FRAMEWORK_DEFAULT "\n"
         "ndtune calibrate --target " FRAMEWORK_DEFAULT " --model 7b --cluster dgx-a100-80g --log a.log@dp_shard=8 "
         "--log b.log@dp_shard=4,tp=2\n",
         cmd_calibrate},
    [COMMAND_TUNE] =
        {"tune",
         "find the fastest shape by running the ones that tell most about it, learning from each; an "
         "interrupted call goes on where it stopped",
         "tune [--max-runs N] [--max-time S] [--world N --model NAME|FILE] [options]",
         "ndtune tune --world 4 --model tiny --cluster probed.json --max-runs 12\n"
         "ndtune tune --world 4 --model tiny --hostfile hosts --probability 0.9 --within 2 --max-time 300\n"
         "ndtune tune\n",
         cmd_tune},
    [COMMAND_EXPORT] = {"export",
                        "a plan as the config file of a framework: of --mesh, or the best of a world, or the best of "
                        "the last request",
                        "export [--as FORMAT] [--mesh AXIS=N,... | --world N] [--model NAME|FILE] [options]",
                        "ndtune export --world 32 --model 7b --out " FRAMEWORK_DEFAULT_FILE "\n"
                        "ndtune export --as " FRAMEWORK_DEFAULT_FORMAT
                        " --mesh dp_shard=8,tp=4 --model llama-3-8b --global-batch 64\n"
                        "ndtune export --as sbatch --out train.sbatch\n",
                        cmd_export},
    [COMMAND_REPORT] = {"report",
                        "one HTML page of an answer: of the last request, of a stored run, or of what is asked here",
                        "report [--html FILE] [--open] [--run ID | --world N --model NAME|FILE]",
                        "ndtune report --open\n"
                        "ndtune report --world 32 --model 7b --html 7b.html\n"
                        "ndtune report --run 3\n",
                        cmd_report},
    [COMMAND_PROBE] = {"probe", "measure this machine and write a cluster profile of it",
                       "probe [--out FILE] [--cluster NAME to extend] [--world RANKS]",
                       "ndtune probe --out probed.json\n"
                       "ndtune probe --device cuda --transport nccl --cluster dgx-h100 --out ours.json\n"
                       "ndtune probe --hosts node1:2,node2:2 --out two-nodes.json\n"
                       "ndtune --world 4 --model tiny --cluster probed.json\n",
                       cmd_probe},
    [COMMAND_PREFLIGHT] =
        {"preflight", "check every rank, group and link of a shape before a long run",
         "preflight --mesh AXIS=N,... [--hosts HOST[:N],...] [--device cuda --transport nccl] [options]",
         "ndtune preflight --mesh dp_shard=2,tp=2\n"
         "ndtune preflight --mesh dp_shard=4,tp=8 --hosts node1:8,node2:8,node3:8,node4:8\n"
         "ndtune preflight --mesh dp_shard=4,tp=8 --hostfile hosts --device cuda --transport nccl\n",
         cmd_preflight},
    [COMMAND_BLAME] = {"blame", "who holds up a job of PyTorch's, from the dumps of its flight recorder",
                       "blame DIR [--mesh AXIS=N,... --model NAME|FILE --target T] [--timeout S] [options]",
                       "ndtune blame dumps\n"
                       "ndtune blame dumps --mesh dp_shard=8,tp=2 --model llama-3-8b --seq 8192\n"
                       "ndtune blame dumps --timeout 60 --format json\n"
                       "ndtune blame dumps --html blame.html\n",
                       cmd_blame},
    [COMMAND_RUNS] = {"runs", "what was asked and what was run, from the store; with a number, that run in full",
                      "runs [ID] [--top N] [--db FILE]",
                      "ndtune runs\nndtune runs --top 0 --format json\nndtune runs 3\n", cmd_runs},
    [COMMAND_MODELS] = {"models", "the built-in models; with a name or a config.json, that one in full",
                        "models [NAME|FILE] [--format table|json|csv]", "ndtune models\nndtune models llama-3-8b\n",
                        cmd_models},
    [COMMAND_CLUSTERS] = {"clusters", "the built-in cluster profiles; with a name, every number with its source",
                          "clusters [NAME|FILE] [--set KEY=VALUE]", "ndtune clusters\nndtune clusters dgx-h100\n",
                          cmd_clusters},
    [COMMAND_ACCURACY] = {"accuracy", "predictions of measured runs, scored beside a constant MFU",
                          "accuracy --runs FILE.csv [--oom FILE.csv] [--groups FILE.csv] [options]",
                          "ndtune accuracy --runs runs.csv\n"
                          "ndtune accuracy --runs runs.csv --leave-one-source-out\n"
                          "ndtune accuracy --runs runs.csv --groups groups.csv --effort estimate --csv rows.csv\n",
                          cmd_accuracy},
    [COMMAND_HELP] = {"help", "this text, all options of a command, or what to do about a topic",
                      "help [COMMAND|TOPIC]",
                      "ndtune help plan\nndtune help batch\nndtune help --man\nndtune help --completion bash\n",
                      cmd_help},
};

Status cli_blame(Cli *cli, OptionId id, Status status) {
    if (status != STATUS_OK && cli_given(cli, id)) {
        cli->blame = cli_value(cli, id)->argument;
    }
    return status;
}

Format cli_format(const Cli *cli) {
    return (Format)cli_value(cli, OPTION_FORMAT)->integer;  // the words stand in the order of Format
}

Status cli_answer(const Cli *cli, const Answer *answer, const void *what, Error *error) {
    const Renderer by_word[] = {answer->table, answer->json, answer->csv, answer->github};
    return by_word[cli_value(cli, OPTION_FORMAT)->integer](what, stdout, error);
}

static Status store_path(const Cli *cli, char path[STORE_PATH_BYTES], Error *error) {
    const OptionValue *db = cli_value(cli, OPTION_DB);
    if (!db->given) {
        return store_default_path(path, error);
    }
    return snprintf(path, STORE_PATH_BYTES, "%s", db->text) < STORE_PATH_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "the path of the store is longer than %d bytes", STORE_PATH_BYTES - 1);
}

static bool store_there(const Cli *cli, char path[STORE_PATH_BYTES]) {
    return store_path(cli, path, NULL) == STATUS_OK && access(path, F_OK) == 0;
}

bool cli_store_exists(const Cli *cli) {
    return store_there(cli, (char[STORE_PATH_BYTES]){0});
}

Status cli_open_store(Cli *cli, Error *error) {
    char path[STORE_PATH_BYTES];
    Store *store = NULL;
    if (cli->store && !cli->store_is_copy) {
        return STATUS_OK;
    }
    TRY(cli_blame(cli, OPTION_DB, store_path(cli, path, error)));
    if (!cli_given(cli, OPTION_DB)) {  // a folder that is named and not there is a name mistyped
        TRY(store_make_folders(path, error));
    }
    TRY(cli_blame(cli, OPTION_DB, store_open(path, &store, error)));
    store_close(cli->store);
    cli->store = store;
    cli->store_is_copy = false;
    return STATUS_OK;
}

Status cli_open_store_to_ask(Cli *cli, Error *error) {
    const Status status = cli->store ? STATUS_OK : cli_open_store(cli, error);
    if (status != STATUS_ENVIRONMENT) {
        return status;
    }
    Error none = {0};
    char path[STORE_PATH_BYTES];
    const bool there = store_there(cli, path);
    if ((cli_given(cli, OPTION_DB) && !there) || store_open_copy(there ? path : "", &cli->store, &none) != STATUS_OK) {
        return status;
    }
    fprintf(stderr, "ndtune: %s; what this call finds is not kept\n", error->message);
    cli->store_is_copy = true;
    *error = (Error){0};
    cli->blame = -1;
    return STATUS_OK;
}

Status cli_open_existing_store(Cli *cli, Error *error) {
    const OptionValue *db = cli_value(cli, OPTION_DB);
    if (db->given && access(db->text, F_OK) != 0) {
        cli->blame = db->argument;
        return error_set(error, STATUS_USAGE, "there is no store %s; plan, predict, run and validate make one",
                         db->text);
    }
    return cli_open_store_to_ask(cli, error);
}

void cli_end_inner(Cli *cli, Cli *inner) {
    store_close(inner->store);
    arena_adopt(&cli->arena, &inner->arena);
}

static Status unknown_command(Cli *cli, const char *word, Error *error) {
    cli->blame = 1;
    error_set(error, STATUS_USAGE, "unknown command %s; there are %s", word,
              command_names_of(EVERY_COMMAND, COMMANDS_BUFFER));
    static const TextSynonym others[] = {
        {"version", "ndtune --version"},
        {"recommend|rank|search", "ndtune --world 32 --model 7b"},
        {"estimate", "ndtune predict --mesh dp_shard=32 --model 7b"},
        {"diagnose|slow", "ndtune predict --mesh ... --measured LOG says why a job is slow; ndtune help slow"},
        {"debug|hang", "ndtune blame DIR says who holds a job up; ndtune help hang"},
        {"convert", "ndtune export --as FORMAT writes a config"},
        {"list", "ndtune models, ndtune clusters"},
    };
    const char *other = text_synonym(word, others, sizeof others / sizeof others[0]);
    if (other) {
        return error_hint(error, "%s", other);
    }
    if (word[0] >= '0' && word[0] <= '9') {
        return error_hint(error, "--world %s", word);
    }
    const char *nearest = text_nearest(word, command_names, COMMAND_COUNT);
    return nearest ? error_hint(error, "did you mean ndtune %s?", nearest)
                   : error_hint(error, "ndtune help says what each does");
}

// The command word, when there is one, and where the options begin.
static Status choose_command(Cli *cli, int *first, Error *error) {
    cli->command = COMMAND_PLAN;
    *first = 1;
    if (cli->argc < 2) {
        error_set(error, STATUS_USAGE, "nothing was asked; a recommendation needs --world and --model");
        return error_hint(error, "ndtune --world 32 --model 7b, or ndtune help");
    }
    if (cli->argv[1][0] == '-') {
        return STATUS_OK;
    }
    const int command = text_index(command_names, COMMAND_COUNT, cli->argv[1]);
    if (command >= 0) {
        cli->command = (CommandId)command;
        *first = 2;
        return STATUS_OK;
    }
    if (model_is_known(cli->argv[1])) {  // ndtune llama-3-8b --world 32
        return STATUS_OK;
    }
    if (model_is_named(cli->argv[1])) {  // ndtune mistralai/Mixtral-8x7B-v0.1 --world 64
        cli->blame = 1;
        return model_unknown(cli->argv[1], error);
    }
    return unknown_command(cli, cli->argv[1], error);
}

// Words go into results, files and the store, all of which are UTF-8 and line-based. What follows "--" is another
// program's.
static Status check_words(Cli *cli, Error *error) {
    for (int i = 1; i < cli->argc && strcmp(cli->argv[i], "--") != 0; i++) {
        if (!text_is_line(cli->argv[i])) {
            cli->blame = i;
            error_set(error, STATUS_USAGE, "word %d holds control characters or is not UTF-8", i);
            return error_hint(error, "a file of such a name can be renamed, or called through a link");
        }
    }
    return STATUS_OK;
}

Status cli_run(Cli *cli, Error *error) {
    ParseContext context = {.argc = cli->argc, .argv = cli->argv, .blame = -1};
    cli->blame = -1;
    TRY(check_words(cli, error));
    cli->line = quote_line(cli->argc, cli->argv, &cli->arena);
    TRY(choose_command(cli, &context.first, error));
    context.command = cli->command;
    const Status status = options_parse(&context, &cli->options, error);
    cli->blame = context.blame;
    if (cli_given(cli, OPTION_HELP)) {  // asked for help, whatever else is wrong
        cli->blame = -1;
        return cmd_help(cli, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (cli_given(cli, OPTION_VERSION)) {
        printf("ndtune %s, numbers %s\n", NDTUNE_VERSION, tune_engine_version());
        return STATUS_OK;
    }
    const Status ended = command_table[cli->command].run(cli, error);
    store_close(cli->store);
    return ended;
}

// ndtune check: is a config file right, for reviewers and CI; for two files, what the change between them costs. Exit
// code 0: it runs, fits and is near the best with its batch, or not slower than the file before; 2: not.

#include <stdio.h>

#include "autotune/cli/config_file.h"
#include "autotune/import/config_load.h"
#include "reports/check_report.h"

static double tolerance_of(const Cli *cli) {
    const double usual_percent = 10;
    return cli_number_or(cli, OPTION_TOLERANCE, usual_percent) / 100;
}

// ---- one file

static Status check_one(Cli *cli, Error *error) {
    ConfigFile file;
    ImportReport advice;
    CheckReport report;
    TRY(config_file_read(cli, cli->options.words[0], cli->options.word_argument[0], &file, error));
    TRY(config_file_advise(cli, &file, &advice, error));
    const CheckQuestion question = {.import = &file.import,
                                    .request = &file.request,
                                    .advice = advice.advice,
                                    .no_best = advice.no_best,
                                    .tolerance = tolerance_of(cli)};
    check_judge(&question, &cli->arena, &report);
    TRY(cli_answer(cli, &answer_check, &report, error));
    return report.near_best ? STATUS_OK
                            : error_set(error, STATUS_INFEASIBLE, "%s %s", file.import.path, report.verdict);
}

// ---- two files

typedef struct Comparing {
    Cli *cli;
    CheckPair pair;
} Comparing;

static Status predict_side(Comparing *comparing, ConfigFile *file, CheckSide *side, Error *error) {
    OnePlan one;
    TRY(config_file_predict(comparing->cli, file, &one, error));
    *side = (CheckSide){&file->import, &file->request, one.prediction, one.legal, one.reason};
    return STATUS_OK;
}

static Status read_side(Comparing *comparing, int index, CheckSide *side, Error *error) {
    Cli *cli = comparing->cli;
    ConfigFile *file = ARENA_NEW(&cli->arena, ConfigFile);
    TRY(config_file_read(cli, cli->options.words[index], cli->options.word_argument[index], file, error));
    return predict_side(comparing, file, side, error);
}

// The old file with the change applied: *priced false where no plan follows from it.
static Status price_tree(Comparing *comparing, ConfigNode *root, CheckChange *effect, Error *error) {
    Cli *cli = comparing->cli;
    const Prediction *own = &comparing->pair.before.own;
    ConfigFile *file = ARENA_NEW(&cli->arena, ConfigFile);
    CheckSide side;
    Error none = {0};
    if (config_file_read_tree(cli, cli->options.words[0], root, file, &none) != STATUS_OK) {
        cli->blame = -1;
        return STATUS_OK;
    }
    TRY(predict_side(comparing, file, &side, error));
    effect->priced = side.own.tokens_per_s > 0 && own->tokens_per_s > 0;
    if (effect->priced) {
        effect->slower = 1 - side.own.tokens_per_s / own->tokens_per_s;
        effect->more_bytes = side.own.memory.reserved_bytes - own->memory.reserved_bytes;
    }
    return STATUS_OK;
}

// Axis sizes change only together: their product is the world.
static Status price_rest(Comparing *comparing, ConfigNode *root, Error *error) {
    CheckPair *pair = &comparing->pair;
    CheckChange together = {0};
    for (int i = 0; i < pair->change_count; i++) {
        if (!pair->changes[i].alone) {
            root = config_with(root, &pair->changes[i].change, &comparing->cli->arena);
        }
    }
    TRY(price_tree(comparing, root, &together, error));
    for (int i = 0; i < pair->change_count; i++) {
        if (!pair->changes[i].alone) {
            together.change = pair->changes[i].change;
            pair->changes[i] = together;
        }
    }
    return STATUS_OK;
}

static Status price_changes(Comparing *comparing, Error *error) {
    Cli *cli = comparing->cli;
    CheckPair *pair = &comparing->pair;
    ConfigNode *before = NULL, *after = NULL;
    ConfigChange *changes = NULL;
    TRY(config_load(cli->options.words[0], &cli->arena, &before, error));
    TRY(config_load(cli->options.words[1], &cli->arena, &after, error));
    pair->change_count = config_changes(before, after, &cli->arena, &changes);
    pair->changes = ARENA_ARRAY(&cli->arena, CheckChange, pair->change_count);
    bool all_alone = true;
    for (int i = 0; i < pair->change_count; i++) {
        CheckChange *change = &pair->changes[i];
        change->change = changes[i];
        if (i < CHECK_PRICED_CHANGES) {
            TRY(price_tree(comparing, config_with(before, &changes[i], &cli->arena), change, error));
        }
        change->alone = change->priced;
        all_alone &= change->alone;
    }
    return all_alone ? STATUS_OK : price_rest(comparing, before, error);
}

static Status compare(Comparing *comparing, Error *error) {
    CheckPair *pair = &comparing->pair;
    TRY(read_side(comparing, 0, &pair->before, error));
    TRY(read_side(comparing, 1, &pair->after, error));
    TRY(price_changes(comparing, error));
    pair->tolerance = tolerance_of(comparing->cli);
    check_compare(pair, &comparing->cli->arena);
    TRY(cli_answer(comparing->cli, &answer_check_pair, pair, error));
    return pair->passed ? STATUS_OK : error_set(error, STATUS_INFEASIBLE, "%s", pair->verdict);
}

static Status check_two(Cli *cli, Error *error) {
    Comparing *comparing = ARENA_NEW(&cli->arena, Comparing);
    *comparing = (Comparing){.cli = cli};
    TRY(cli_open_store_to_ask(cli, error));
    return compare(comparing, error);
}

Status cmd_check(Cli *cli, Error *error) {
    if (cli->options.list_count > 1) {
        return cli_refuse(cli, OPTION_WORLD, error, "ndtune check takes one world, not a list");
    }
    switch (cli->options.word_count) {
    case 0:
        error_set(error, STATUS_USAGE, "check reads a config file");
        return error_hint(error,
                          "ndtune check train.yaml --model llama-3-8b; a second file is compared with the first");
    case 1:
        return check_one(cli, error);
    default:
        return check_two(cli, error);
    }
}

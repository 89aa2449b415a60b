// ndtune check: is a config file right, for reviewers and CI; for two files, what the change between them costs. Exit
// code 0: it runs, fits and is near the best with its batch, or not slower than the file before; 2: not.

#include "autotune/cli/config_file.h"
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
    TRY(config_file_read(cli, cli->options.words[0], cli->options.word_argument[0], NULL, &file, error));
    TRY(config_file_advise(cli, &file, &advice, error));
    const CheckQuestion question = {
        .import = &file.import, .request = &file.request, .advice = advice.advice, .tolerance = tolerance_of(cli)};
    check_judge(&question, &cli->arena, &report);
    TRY(cli_answer(cli, &answer_check, &report, error));
    return report.near_best ? STATUS_OK
                            : error_set(error, STATUS_INFEASIBLE, "%s %s", file.import.path, report.verdict);
}

// ---- two files

static Status predict_side(Cli *cli, ConfigFile *file, CheckSide *side, Error *error) {
    OnePlan one;
    TRY(config_file_predict(cli, file, &one, error));
    const char *stopped = file->import.refusal ? NULL : check_stopped(&file->import);
    *side = (CheckSide){&file->import, &file->request, one.prediction, one.legal && !stopped,
                        stopped ? stopped : one.reason};
    return STATUS_OK;
}

static Status read_side(Cli *cli, int index, CheckSide *side, Error *error) {
    ConfigFile *file = ARENA_NEW(&cli->arena, ConfigFile);
    TRY(config_file_read(cli, cli->options.words[index], cli->options.word_argument[index], NULL, file, error));
    return predict_side(cli, file, side, error);
}

static Status predict_tree(void *context, ConfigNode *root, CheckSide *side, Error *error) {
    Cli *cli = context;
    ConfigFile *file = ARENA_NEW(&cli->arena, ConfigFile);
    Error none = {0};
    if (config_file_read(cli, cli->options.words[0], -1, root, file, &none) != STATUS_OK) {
        cli->blame = -1;
        return STATUS_OK;
    }
    return predict_side(cli, file, side, error);
}

static Status check_two(Cli *cli, Error *error) {
    CheckPair *pair = ARENA_NEW(&cli->arena, CheckPair);
    const char *const *paths = cli->options.words;
    TRY(cli_open_store_to_ask(cli, error));
    TRY(read_side(cli, 0, &pair->before, error));
    TRY(read_side(cli, 1, &pair->after, error));
    TRY(check_changes(pair, paths[0], paths[1], predict_tree, cli, &cli->arena, error));
    pair->tolerance = tolerance_of(cli);
    check_compare(pair, &cli->arena);
    TRY(cli_answer(cli, &answer_check_pair, pair, error));
    return pair->passed ? STATUS_OK : error_set(error, STATUS_INFEASIBLE, "%s", pair->verdict);
}

Status cmd_check(Cli *cli, Error *error) {
    TRY(cli_one_world(cli, error));
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

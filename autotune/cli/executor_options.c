// What run, validate, tune, probe and preflight parse from the command line before anything is started.

#include "autotune/cli/executor_options.h"

#include <stdio.h>
#include <string.h>

enum { REPEATED_STEPS = 10, REPEATED_WARM_UP = 2 };

LaunchOptions executor_launch(const Cli *cli) {
    return (LaunchOptions){.launcher = cli_text_or(cli, OPTION_LAUNCHER, "auto"),
                           .hosts = cli_text_or(cli, OPTION_HOSTS, NULL),
                           .hostfile = cli_text_or(cli, OPTION_HOSTFILE, NULL)};
}

LaneMode executor_lanes(const Cli *cli) {
    return (LaneMode)cli_integer_or(cli, OPTION_LANES, LANES_SERIAL);
}

void executor_options(const Cli *cli, RunOptions *options) {
    const bool hosts = cli_given(cli, OPTION_HOSTS) || cli_given(cli, OPTION_HOSTFILE);
    *options = run_options_default();
    options->spans = true;
    options->device = cli_on_gpu(cli) ? "cuda" : "cpu";
    options->transport = cli_text_or(cli, OPTION_TRANSPORT, hosts ? "mpi" : "shm");
    options->steps = cli_integer_or(cli, OPTION_STEPS, options->steps);
    options->seed = cli_given(cli, OPTION_SEED) ? (uint64_t)cli_value(cli, OPTION_SEED)->integer : options->seed;
    options->data_path = cli_text_or(cli, OPTION_DATA, options->data_path);
    options->lr = cli_number_or(cli, OPTION_LR, options->lr);
    options->lanes = executor_lanes(cli);
    options->bitwise = cli_given(cli, OPTION_BITWISE);
    options->deterministic = cli_given(cli, OPTION_DETERMINISTIC);
    options->timeout_s = cli_number_or(cli, OPTION_TIMEOUT, options->timeout_s);
}

Status executor_check_with(Cli *cli, Error *error) {
    const OptionValue *with = cli_value(cli, OPTION_WITH);
    OptionValue *target = &cli->options.values[OPTION_TARGET];
    if (!with->given && cli->options.tail_count == 0) {
        return STATUS_OK;
    }
    FAIL_IF(!with->given, error, STATUS_USAGE, "a command behind -- needs --with TARGET: whose framework it starts");
    FAIL_WITH(
        cli->options.tail_count == 0,
        cli_refuse(cli, OPTION_WITH, error, "--with needs a command: validate --with %s -- COMMAND...", with->text));
    if (target->given && strcmp(target->text, with->text) != 0) {
        return cli_refuse(cli, OPTION_WITH, error,
                          "--target %s and --with %s: a run can only be measured for its own target", target->text,
                          with->text);
    }
    *target = *with;
    return STATUS_OK;
}

// Reported where the ranks are started by something other than ndtune.
static void launch_note(Cli *cli, const MeasuredRun *run) {
    const char *launcher, *because;
    if (!cli->launch_said && exec_check_backend(&run->run.options, NULL) == STATUS_OK &&
        exec_check_launch(&run->launch, run->run.options.transport, &cli->arena, &launcher, &because, NULL) ==
            STATUS_OK &&
        strcmp(launcher, "local") != 0) {
        cli->launch_said = true;
        fprintf(stderr, "ranks are started by %s: %s\n", launcher, because);
    }
}

static Progress begin(void *context, const MeasuredRun *run, const char *words) {
    Cli *cli = context;
    if (run) {
        launch_note(cli, run);
    }
    if (words) {
        cli_draw(cli, "%s", words);
    }
    return cli_progress(cli);
}

Measuring executor_measuring(Cli *cli, const TuneRequest *request, const Target *target) {
    Measuring measuring = {
        .like = {.arena = &cli->arena, .request = request, .target = target, .launch = executor_launch(cli)},
        .store = cli->store,
        .afresh = cli_given(cli, OPTION_NO_CACHE),
        .interrupted = cli->interrupted,
        .begin = begin,
        .context = cli};
    executor_options(cli, &measuring.options);
    measuring.options.steps = cli_integer_or(cli, OPTION_STEPS, REPEATED_STEPS);
    measuring.like.warm_up = cli_integer_or(cli, OPTION_WARM_UP, REPEATED_WARM_UP);
    return measuring;
}

Status executor_check_warm_up(Cli *cli, const Measuring *measuring, Error *error) {
    const int steps = measuring->options.steps, warm_up = measuring->like.warm_up;
    if (warm_up < steps) {
        return STATUS_OK;
    }
    return cli_refuse(cli, cli_given(cli, OPTION_WARM_UP) ? OPTION_WARM_UP : OPTION_STEPS, error,
                      "of %d steps, %d to warm up leave nothing to measure", steps, warm_up);
}

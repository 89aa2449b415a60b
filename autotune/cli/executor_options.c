// What run, validate, tune, probe and preflight parse from the command line before our executor starts.

#include "autotune/cli/executor_options.h"

#include <stdio.h>
#include <string.h>

#include "autotune/cli/request.h"
#include "autotune/predict/target_on_cluster.h"
#include "autotune/store/store.h"

enum { REPEATED_STEPS = 10, REPEATED_WARM_UP = 2 };

LaunchOptions executor_launch(const Cli *cli) {
    return (LaunchOptions){.launcher = cli_text_or(cli, OPTION_LAUNCHER, "auto"),
                           .hosts = cli_text_or(cli, OPTION_HOSTS, NULL),
                           .hostfile = cli_text_or(cli, OPTION_HOSTFILE, NULL)};
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
    options->lanes = (LaneMode)cli_integer_or(cli, OPTION_LANES, (int)options->lanes);
    options->bitwise = cli_given(cli, OPTION_BITWISE);
    options->deterministic = cli_given(cli, OPTION_DETERMINISTIC);
    options->timeout_s = cli_number_or(cli, OPTION_TIMEOUT, options->timeout_s);
}

void executor_options_repeated(const Cli *cli, RunOptions *options, int *warm_up) {
    executor_options(cli, options);
    options->steps = cli_integer_or(cli, OPTION_STEPS, REPEATED_STEPS);
    *warm_up = cli_integer_or(cli, OPTION_WARM_UP, REPEATED_WARM_UP);
}

Status executor_check_warm_up(Cli *cli, int steps, int warm_up, Error *error) {
    if (warm_up < steps) {
        return STATUS_OK;
    }
    return cli_refuse(cli, cli_given(cli, OPTION_WARM_UP) ? OPTION_WARM_UP : OPTION_STEPS, error,
                      "of %d steps, %d to warm up leave nothing to measure", steps, warm_up);
}

Status executor_takes(Cli *cli, TuneRequest *request, const Target **target, Error *error) {
    const Target *executor;
    TRY(target_find(run_defaults.target, &executor, error));
    executor = target_on_cluster(executor, &request->cluster, &cli->arena);
    Target *mixed = ARENA_NEW(&cli->arena, Target);
    *target = target_executed(request->target, &cli->arena);
    *mixed = target_run_by(*target, executor);
    request->target = mixed;
    request->runner = executor;
    request_serial(cli, request);
    return STATUS_OK;
}

Status executor_prices(Cli *cli, MeasuredRun *run, Error *error) {
    RunOptions *options = &run->run.options;
    return cli_on_gpu(cli) ? store_prices(cli->store, &cli->arena, &options->prices, &options->price_count, error)
                           : STATUS_OK;
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

Status executor_execute(Cli *cli, MeasuredRun *run, Error *error) {
    const Progress progress = cli_progress(cli);
    launch_note(cli, run);
    const Status status = measured_run_execute(run, &progress, error);
    cli_progress_clear(cli);
    return status;
}

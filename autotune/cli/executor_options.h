// Command-line options for how and where our executor runs.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/measure/measured_run.h"

// Span recording is on.
void executor_options(const Cli *cli, RunOptions *options);

// The launcher of the ranks, and the hosts.
LaunchOptions executor_launch(const Cli *cli);

// Whichever target's program it is (*target), our executor runs it: no Python, no caching allocator. Modifies the
// request's target.
Status executor_takes(Cli *cli, TuneRequest *request, const Target **target, Error *error);

// For several runs, as in validate and tune: number of steps, and how many of them are warm-up.
void executor_options_repeated(const Cli *cli, RunOptions *options, int *warm_up);

// Requires that some steps remain to be measured.
Status executor_check_warm_up(Cli *cli, int steps, int warm_up, Error *error);

// Passes on what earlier runs measured about chips.
Status executor_prices(Cli *cli, MeasuredRun *run, Error *error);

// Runs it and shows progress.
Status executor_execute(Cli *cli, MeasuredRun *run, Error *error);

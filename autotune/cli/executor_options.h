// The options of the command line that say how and where our executor runs.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/measure/measured_run.h"

// Spans are on.
void executor_options(const Cli *cli, RunOptions *options);

// Who starts the ranks, and where.
LaunchOptions executor_launch(const Cli *cli);

// Whatever target's program it is (*target), our executor runs it: no Python, no caching allocator. Changes the
// request's target.
Status executor_takes(Cli *cli, TuneRequest *request, const Target **target, Error *error);

// Of several runs, as validate and tune make them: how many steps, and how many of them warm up.
void executor_options_repeated(const Cli *cli, RunOptions *options, int *warm_up);

// Some steps must be left to measure.
Status executor_check_warm_up(Cli *cli, int steps, int warm_up, Error *error);

// Hands over what earlier runs found out of chips.
Status executor_prices(Cli *cli, MeasuredRun *run, Error *error);

// Runs it, with its progress.
Status executor_execute(Cli *cli, MeasuredRun *run, Error *error);

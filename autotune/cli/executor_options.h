// Command-line options for how and where runs are made.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/measure/measuring.h"

// Span recording is on.
void executor_options(const Cli *cli, RunOptions *options);

// The launcher of the ranks, and the hosts.
LaunchOptions executor_launch(const Cli *cli);

LaneMode executor_lanes(const Cli *cli);

// Several runs of a request's plans, as in validate and tune, kept in the call's store (opened before) and reported on
// its progress line.
Measuring executor_measuring(Cli *cli, const TuneRequest *request, const Target *target);

// Requires that some steps remain to be measured.
Status executor_check_warm_up(Cli *cli, const Measuring *measuring, Error *error);

// --with and a command require each other; the target is that of --with.
Status executor_check_with(Cli *cli, Error *error);

// What starts the ranks of a run: this program itself, or mpirun, srun, torchrun by argv. A launcher is a row.

#pragma once

#include "exec/launch/launch.h"

// What the argv is made of.
typedef struct LaunchPlan {
    int world, threads;
    bool passive;        // waiting threads shall sleep
    bool crowded;        // more ranks than cores on a host
    const char *worker;  // path
    const char *transport;
    const char *directory;  // of the run, for what a launcher leaves on this machine
    LaunchOptions options;
} LaunchPlan;

typedef struct Launcher {
    const char *name, *program;  // program: looked up in PATH; NULL: ndtune starts its workers itself
    const char *package;         // where it comes from
    bool mpi, others;            // transports that its ranks can use
    bool hosts;                  // it can start ranks on several hosts
    char **(*argv)(const LaunchPlan *plan, Arena *arena);
} Launcher;

// By name; USAGE names what there is.
Status launcher_find(const char *name, const Launcher **launcher, Error *error);

// The one to use and why; with a name the named one, or in words why not.
Status launcher_choose(const LaunchOptions *options, const char *transport, Arena *arena, const Launcher **launcher,
                       const char **why, Error *error);

// How many hosts the ranks will be on, as far as this side knows; at least 1.
int launcher_hosts(const Launcher *launcher, const LaunchOptions *options);

// What starts the ranks of a run: this program itself, or mpirun, srun, torchrun through argv. A launcher is a row.

#pragma once

#include "exec/launch/launch.h"

// Inputs of the argv.
typedef struct LaunchPlan {
    int world, threads;
    bool passive;        // waiting threads sleep
    bool crowded;        // more ranks than cores on a host
    const char *worker;  // path
    const char *transport;
    const char *directory;  // of the run, for files a launcher leaves on this machine
    LaunchOptions options;
} LaunchPlan;

typedef struct Launcher {
    const char *name, *program;  // program: looked up in PATH; NULL: ndtune starts its workers itself
    const char *package;         // that provides it
    bool mpi, others;            // transports its ranks can use
    bool hosts;                  // it can start ranks on several hosts
    char **(*argv)(const LaunchPlan *plan, Arena *arena);
} Launcher;

// Looked up by name; USAGE lists the known ones.
Status launcher_find(const char *name, const Launcher **launcher, Error *error);

// The one to use and why; with a name, the named one, or an error that says why not.
Status launcher_choose(const LaunchOptions *options, const char *transport, Arena *arena, const Launcher **launcher,
                       const char **why, Error *error);

// Number of hosts the ranks will be on, as far as the launcher's side knows; at least 1.
int launcher_hosts(const Launcher *launcher, const LaunchOptions *options);

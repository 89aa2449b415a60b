// One run as its launcher sees it. Private to exec/launch: launch.c begins and ends it, run_watch.c watches it.

#pragma once

#include "exec/launch/launchers.h"
#include "exec/launch/rendezvous.h"
#include "exec/launch/run_directory.h"
#include "exec/launch/signals.h"
#include "exec/launch/workers.h"
#include "exec/protocol/communicators.h"
#include "exec/transport/shm.h"
#include "exec/transport/watchdog.h"

typedef struct Run {
    RunRequest request;
    const ExecOptions *options;
    Arena *arena;
    const Launcher *launcher;
    int hosts;
    StepPrograms programs;
    int64_t arena_bytes;  // of the stage that needs most
    CommunicatorSet communicators;
    ShmSegment segment;  // transport shm; nccl with local ranks
    RunDirectory directory;
    const char *request_path;
    Rendezvous *rendezvous;  // NULL where the ranks are this program's own children
    Workers workers;
    Watchdog watch;
    int caught;  // signal to deliver again; 0 = none
} Run;

// Returns when the run has ended well; else an error that says why not.
Status run_watch(Run *run, const HeldSignals *held, Error *error);
// Prints what rank 0 noted in a run that ended well.
void run_notes_pass(const Run *run);

// Kills processes on this machine that their launcher left behind: stopped ones cannot end themselves.
void run_ranks_end(const Run *run);

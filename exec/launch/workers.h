// The processes of one run, one worker per rank or a single launcher for all: started by argv, watched, always reaped.
// Private to exec/launch.

#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "exec/launch/launchers.h"
#include "sim/base/arena.h"
#include "sim/base/error.h"

typedef struct Worker {
    pid_t pid;  // 0 once reaped
    int wait_status;
    bool stopped;  // by a signal, and not continued since
} Worker;

typedef struct Workers {
    int count, running;
    Worker *of_rank;   // a launcher takes rank 0's entry
    int first_failed;  // first rank that ended badly; -1 = none
    bool group;        // a launcher in its own process group, along with what it started
} Workers;

typedef struct WorkersSetup {
    LaunchPlan plan;  // rank-N.err files go to its directory
    const char *request_path;
    int segment_fd;  // becomes WORKER_SEGMENT_FD in the worker
    // A launcher instead of the workers:
    char **argv;                     // NULL = none
    const char *rendezvous_setting;  // value of RENDEZVOUS_VARIABLE in its environment
} WorkersSetup;

enum { WORKER_SEGMENT_FD = 3 };

Status worker_find(const char *wanted, Arena *arena, const char **path, Error *error);
Status workers_start(const WorkersSetup *setup, Arena *arena, Workers *workers, Error *error);

// Reaps those that ended and notes those that were stopped, without waiting.
void workers_poll(Workers *workers);
void workers_kill(Workers *workers);  // a launcher first gets time to end its ranks

// "was killed by signal 9 (Killed)", "exited with code 42".
const char *process_end_words(int wait_status, Arena *arena);

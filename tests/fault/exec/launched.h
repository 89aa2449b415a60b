// Runs to inject faults into: the small plan of the fault tests over either transport, and its processes.

#pragma once

#include <sys/types.h>

#include "tests/parity/exec/exec_case.h"

enum { LAUNCHED_RANKS = 4 };

typedef struct Launched {
    const char *transport;
    const char *fault;  // NDTUNE_FAULT; NULL = none
    double timeout_s;
    int steps;
    const Progress *progress;
} Launched;

// dp_shard 2, tp 2. Skips the test where the build has no such transport.
Status launched_run(const Launched *launched, Arena *arena, Error *error);
Status launched_experts_run(const Launched *launched, Arena *arena, Error *error);  // dp_shard 4, ep 2
Status launched_stages_run(const Launched *launched, Arena *arena, Error *error);   // pp 2, dp_shard 2

// The process of a rank below this test process; 0 = none.
pid_t launched_rank(const Launched *launched, int rank);

// Workers and launchers below `ancestor`.
int launched_processes(pid_t ancestor);

enum { CREW_MOST = 16 };

// A launcher (launch_forever) with everything below it.
typedef struct Crew {
    pid_t launcher;
    int count;
    pid_t pids[CREW_MOST];  // the launcher first
} Crew;

// Starts it and waits until steps are running; skips the test where the build has no such transport.
Crew crew_start(const char *transport, double timeout_s);
void crew_signal(const Crew *crew, int number);
int crew_alive(const Crew *crew);  // excluding dead processes that are not reaped yet

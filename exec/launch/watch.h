// The watchdog: looks at the progress table of a run and says in words who holds it up, once something stood still too
// long. Private to exec/launch.

#pragma once

#include "exec/launch/rendezvous.h"
#include "exec/launch/workers.h"
#include "exec/transport/diagnose.h"

typedef struct Watch {
    ProgressTable table;
    const Rendezvous *rendezvous;  // NULL: ranks are children of this process,
    const Workers *workers;        // these
    double timeout_s;
    double *still_s;     // by rank: since its progress changed
    unsigned *progress;  // by rank: when it changed last
    double *stopped_s;   // by rank: since its process was stopped; children only
    double looked_s;     // clock of the last look
} Watch;

// ProgressTable, rendezvous and timeout_s are set. host: of all ranks; NULL where they are on several.
void watch_begin(Watch *watch, const char *host, Arena *arena);

// OK while the run goes on; else the error that says who hangs, is silent, or is elsewhere.
Status watch_look(Watch *watch, Error *error);

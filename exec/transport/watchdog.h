// The watchdog: detects ranks that make no progress, sets how long that may last, and what is reported then
// (diagnose.h). A rank watches its own waits for others, the launcher all ranks. Both count looks of their own process,
// so a pause of it (stopped, suspended, starved) counts little.

#pragma once

#include <sched.h>

#include "exec/transport/diagnose.h"
#include "sim/base/clock.h"

// ---------------------------------------------------------------------------------------------- a rank's own waits

typedef struct Wait {
    const char *lane;
    double limit_s, waited_s;
    double looked_s;  // clock of the last look; 0 = none yet
} Wait;

// One more look that found nothing new. ENVIRONMENT if the run was stopped meanwhile.
Status wait_look(Wait *wait, bool stopped, Error *error);

// After that many looks: gives the core away, from `yields` on for so long.
static inline void wait_pause(int looks, int yields, double nap_s) {
    if (looks < yields) {
        sched_yield();
    } else {
        clock_nap(nap_s);
    }
}

static inline bool wait_is_over(const Wait *wait) {
    return wait->waited_s > wait->limit_s;
}

// It is over, and no rank nearer to the culprit is about to say so.
bool wait_is_to_be_told(const Wait *wait, const ProgressTable *table, int rank, int communicator);

// ---------------------------------------------------------------------------------------------- all ranks

// Per-rank state in addition to its row: what those who hear from it write (the rendezvous; for its own children the
// launcher), and what the watchdog counts.
typedef struct RankWatch {
    bool came, done;  // it has connected; it ended well, or reported why not
    bool heard;       // since the last look: a child that is not stopped, or a remote rank that sent something
    unsigned progress;
    double still_s, silent_s;  // since its progress changed; since it was last heard from
} RankWatch;

typedef struct Watchdog {
    ProgressTable table;
    RankWatch *ranks;  // by rank
    bool children;     // they see each other in shared memory, and are children of this process
    double timeout_s;
    double arrival_s;  // the first of them must have connected by then
    double looked_s;
    double nobody_s, some_s, over_s;  // time with no rank connected, with only some; time since all were done
} Watchdog;

// OK while the run goes on; else an error that names the rank that hangs, is silent, or is in a different place.
Status watchdog_look(Watchdog *watchdog, Error *error);
double watchdog_missing_s(const Watchdog *watchdog);  // how long ranks have been missing; 0 = they may yet connect
bool watchdog_over(const Watchdog *watchdog);         // ranks ended well, and their launcher should have too

// The watchdog: who stands still, how long that may be, and what is said then (diagnose.h). A rank watches its own
// waits for others, the launcher all ranks. Both count in looks of their process: a pause of its own (stopped,
// suspended, starved) counts little.

#pragma once

#include "exec/transport/diagnose.h"

// ---------------------------------------------------------------------------------------------- a rank's own waits

typedef struct Wait {
    const char *lane;
    double limit_s, waited_s;
    double looked_s;  // clock of the last look; 0 = none yet
} Wait;

// One more look that found nothing new. ENVIRONMENT where the run was stopped meanwhile.
Status wait_look(Wait *wait, bool stopped, Error *error);

static inline bool wait_is_over(const Wait *wait) {
    return wait->waited_s > wait->limit_s;
}

// ---------------------------------------------------------------------------------------------- all ranks

// One rank beside its row: what whoever hears of it writes (the rendezvous; of its own children the launcher), and what
// the watchdog counts.
typedef struct RankWatch {
    bool came, done;  // it is there; it came to a good end, or said why not
    bool heard;       // of it since the last look: a child that is not stopped, a rank of others that sent something
    unsigned progress;
    double still_s, silent_s;  // since its progress changed; since it was heard of
} RankWatch;

typedef struct Watchdog {
    ProgressTable table;
    RankWatch *ranks;  // by rank
    bool children;     // they see each other in shared memory, and are those of this process
    double timeout_s;
    double arrival_s;  // the first of them has come by then
    double looked_s;
    double nobody_s, some_s, over_s;  // since none, not all had come; since all were done
} Watchdog;

// OK while the run goes on; else the error that says who hangs, is silent, or is elsewhere.
Status watchdog_look(Watchdog *watchdog, Error *error);
double watchdog_missing_s(const Watchdog *watchdog);  // for so long ranks are missing; 0 = they may yet come
bool watchdog_over(const Watchdog *watchdog);         // ranks came to a good end, and their launcher should have

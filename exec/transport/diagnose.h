// Which rank holds up a waiting rank, derived from a progress table; and the message about it.

#pragma once

#include "exec/transport/progress_table.h"

typedef struct WaitDiagnosis {
    bool held_up[TRANSPORT_MAX_WORLD];  // waited for, directly or indirectly, but waiting themselves
    bool culprit[TRANSPORT_MAX_WORLD];  // waited for and waiting for no one
    int skipper;                        // in a cycle: skipped a collective; -1 = none
    int witness;                        // a rank waiting there,
    int skipped;                        // in this communicator
} WaitDiagnosis;

void diagnose_wait(const ProgressTable *table, int waiting_rank, WaitDiagnosis *wait);

// Of all that a culprit holds up, a rank in a message with it can name both ends, where a collective names only its
// group and a chain of waits only leads there.
typedef struct WaitPlace {
    int rank;  // the waiting rank if it is in one, else the first that is; -1 = none
    int communicator;
} WaitPlace;

WaitPlace diagnose_nearest(const ProgressTable *table, int waiting_rank);

// "lane tp, all-reduce of ...: rank 0 on a waited 5.0 s for rank 2 on b (last seen in ...); held up as well: rank 1 on
// a". First distinguishes members of one group that are in different collectives.
Status diagnose_late(const ProgressTable *table, int waiting_rank, int communicator, double waited_s, Error *error);

// For a group whose members disagree about the next collective: every member with its collective, and which one is at
// fault.
Status diagnose_mismatch(const ProgressTable *table, int rank, int communicator, Error *error);

// For a rank that receives a different message than the next one in its program.
Status diagnose_message(const ProgressTable *table, int rank, int communicator, Error *error);

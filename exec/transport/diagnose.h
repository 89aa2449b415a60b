// Who holds a waiting rank up, read from a progress table; and the sentence about it.

#pragma once

#include "exec/transport/progress_table.h"

typedef struct WaitDiagnosis {
    bool held_up[TRANSPORT_MAX_WORLD];  // waited for, directly or through others, but waiting themselves
    bool culprit[TRANSPORT_MAX_WORLD];  // waited for and waiting for nobody
    int skipper;                        // of a circle: went past a collective; -1 = none
    int witness;                        // who waits there,
    int skipped;                        // in this communicator
} WaitDiagnosis;

void diagnose_wait(const ProgressTable *table, int waiting_rank, WaitDiagnosis *wait);

// "lane tp, all-reduce of ...: rank 0 on a waited 5.0 s for rank 2 on b (last seen in ...); held up as well: rank 1 on
// a". Members of one group that are in different collectives are told apart first.
Status diagnose_late(const ProgressTable *table, int waiting_rank, int communicator, double waited_s, Error *error);

// Of a group whose members do not agree what collective comes next: every member with its collective, and whose fault
// it is.
Status diagnose_mismatch(const ProgressTable *table, int rank, int communicator, Error *error);

// Of a rank that receives a message and is given another one than the next of its program.
Status diagnose_message(const ProgressTable *table, int rank, int communicator, Error *error);

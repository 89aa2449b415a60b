// Who waits for whom: ranks in a collective that is not over, and the members that have not issued it.

#pragma once

#include "autotune/blame/job.h"

typedef struct Wait {
    int rank, group;
    const Turn *turn;
    double age_s;   // when the dump was written, < 0 = unknown
    bool too_long;  // for a sound job
} Wait;

typedef struct Waits {
    Wait *rows;  // at most one for each rank and group: its oldest
    int count;
    bool hangs;  // some wait is too long
    double longest_s;
    bool *waits;    // by rank: it waits for somebody
    bool *awaited;  // somebody waits for it
    bool *unseen;   // it has no dump
    int unseen_count;
} Waits;

void waits_find(const Job *job, double hang_s, Arena *arena, Waits *waits);

// Does the member hold that wait up: it has not issued the collective, as far as the dumps tell.
bool wait_is_for(const Job *job, const Wait *wait, const Member *member);

// The ranks that everybody waits for in the end, and that wait for nobody; NULL = the waits close a circle.
int *waits_sinks(const Job *job, const Waits *waits, Arena *arena, int *count);

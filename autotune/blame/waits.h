// The wait graph: ranks in a collective that has not completed, and the members that have not issued it.

#pragma once

#include "autotune/blame/job.h"

typedef struct Wait {
    int rank, group;
    const Turn *turn;
    double age_s;   // as of the writing of the dump, < 0 = unknown
    bool too_long;  // for a healthy job
} Wait;

typedef struct Waits {
    Wait *rows;  // at most one per rank and group: its oldest
    int count;
    bool hangs;  // some wait is too long
    double longest_s;
    bool *waits;    // by rank: it waits for another
    bool *awaited;  // another waits for it
    bool *unseen;   // it has no dump
    int unseen_count;
} Waits;

void waits_find(const Job *job, double hang_s, Arena *arena, Waits *waits);

// Whether the member holds up that wait: it has not issued the collective, as far as the dumps tell.
bool wait_is_for(const Job *job, const Wait *wait, const Member *member);

// The ranks that everybody ultimately waits for, and that wait for nobody; NULL = the waits form a cycle.
int *waits_sinks(const Job *job, const Waits *waits, Arena *arena, int *count);

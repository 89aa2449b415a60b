// Where a rank diverged from its peers: it issued another collective than its group at the same number, or skipped one
// that its group issued.

#pragma once

#include "autotune/blame/verdict.h"
#include "autotune/blame/waits.h"

typedef struct Deviation {
    bool found;
    VerdictKind kind;
    int rank;      // which rank diverged
    bool unknown;  // two disagree, and nothing says who is right
    int other;     // one that did not diverge
    int group;     // in which group, and at which number of it
    int64_t seq;
    const Turn *did;  // what the rank issued instead; NULL = it skipped it and went on
    const Turn *due;  // what it should have issued, as `other` did
    int did_group;
    bool no_next;   // nothing tells what its group issues after `due`
    int64_t at_ns;  // when it diverged
} Deviation;

// Members of a group with different collectives at the same number.
void deviations_in_groups(const Job *job, Arena *arena, Deviation *first);

// A member whose group has left no other dump: compared with groups of the same kind at the same number, or with its
// own past. Where sizes differ, libraries end processes, and those leave no dump.
void deviations_alone(const Job *job, Arena *arena, Deviation *first);

// A rank whose number of collectives in one group is inconsistent with another group's, from some point on: it skipped
// one that looks like its neighbours. For jobs that hang: healthy ones may differ at the edge of their dumps.
void deviations_between_groups(const Job *job, Arena *arena, Deviation *first);

// In a cycle of waits in which a rank waits for a message: the rank that departed from its own past, where what it left
// out belongs to a group or channel in which a rank waits for it.
void deviation_from_past(const Job *job, const Waits *waits, Arena *arena, Deviation *first);

// In a cycle of waits: the rank that is where it never was before at this point, or where no other rank is.
void deviation_of_circle(const Job *job, const Waits *waits, Arena *arena, Deviation *first);

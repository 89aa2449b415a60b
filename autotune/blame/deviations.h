// Where a rank left what its peers do: another collective than its group at the same number, or one that its group
// issued and it went past.

#pragma once

#include "autotune/blame/verdict.h"
#include "autotune/blame/waits.h"

typedef struct Deviation {
    bool found;
    VerdictKind kind;
    int rank;      // who left
    bool unknown;  // two disagree, and nothing says who is right
    int other;     // one who did not
    int group;     // in which, and at which number of it
    int64_t seq;
    const Turn *did;  // what the rank did instead; NULL = it went past without
    const Turn *due;  // what it should have done, as `other` did
    int did_group;
    bool no_next;   // nothing tells what its group issues after the one that was due
    int64_t at_ns;  // when
} Deviation;

// Members of a group with different collectives at the same number.
void deviations_in_groups(const Job *job, Arena *arena, Deviation *first);

// A member whose group has left no other dump: beside groups of the same kind at the same number, or its own past.
// Where sizes differ, libraries end processes, and those leave none.
void deviations_alone(const Job *job, Arena *arena, Deviation *first);

// A rank whose number of collectives in one group does not fit those in another, from some point on: it went past one
// that looks like its neighbours. For jobs that hang: sound ones may differ at the edge of their dumps.
void deviations_between_groups(const Job *job, Arena *arena, Deviation *first);

// Of a circle of waits in which somebody waits for a message: the rank that left its own past, and what it left out is
// of a group or channel in which somebody waits for it.
void deviation_from_past(const Job *job, const Waits *waits, Arena *arena, Deviation *first);

// Of a circle of waits: the rank that is where it never was at this point before, or where nobody else is.
void deviation_of_circle(const Job *job, const Waits *waits, Arena *arena, Deviation *first);

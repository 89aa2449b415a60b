// Compares turns: are two the same collective, and what did a rank do next whenever it was here before?

#pragma once

#include "autotune/blame/job.h"

bool turns_same_op(const Turn *a, const Turn *b);  // a send and its receive count as one
bool turns_agree(const Turn *a, const Turn *b);    // as far as members of a group have to

// One collective among all that a rank issued, on any group.
typedef struct Step {
    int kind;  // of the group
    int group;
    const Turn *turn;
} Step;

typedef struct Steps {
    Step *rows;
    int count;
} Steps;

Steps steps_of(const Job *job, int rank, Arena *arena);             // all, in issue order
Steps steps_in(const Job *job, const RankGroup *at, Arena *arena);  // those of one group
bool steps_agree(const Step *a, const Step *b);

// The index of a step that followed the same steps as `at` does; the longest such past counts. -1 = no match: fewer
// than STEPS_LEAST_PAST steps agree.
enum { STEPS_LEAST_PAST = 3 };
int steps_precedent(const Steps *steps, int at);
int steps_past(const Steps *steps, int one, int other);  // how many steps before both agree

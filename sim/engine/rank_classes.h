// Which ranks have to be simulated. Ranks of one class see the same from their groups, so one represents all of them.

#pragma once

#include "sim/engine/engine.h"

// members[first[i] .. first[i] + count[i]) with i = group * actors + actor: the actors that take part in the
// collectives of this group with that actor; the first of them leads.
typedef struct RankClasses {
    int32_t actors;
    int32_t *rank;          // the rank an actor represents: the lowest of its class
    double *slowdown;       // of an actor's compute
    double *link_slowdown;  // of the collectives that it is in
    int32_t *first, *count;
    int32_t *members;
} RankClasses;

// Of the ranks of the program's stage.
Status rank_classes_find(const StepProgram *program, const EngineOptions *options, Arena *arena, RankClasses *classes,
                         Error *error);

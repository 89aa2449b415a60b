// Candidates of a shape by the choices of their plans, micro-batches and rank orders apart: what a search knows of one
// tells of others with the same choices.

#pragma once

#include "autotune/result.h"

// Memory rises with the micro-batch only among plans whose gradients live beside as much: whole gradients that are
// summed over micro-steps (deferred reduction) may be larger than all else; a single micro-step has none, and a round
// of few, with several chunks or a split backward, has run all forwards before its first gradients.
typedef enum { ONE_MICRO_STEP, FEW_MICRO_STEPS, ACCUMULATES, ACCUMULATIONS } Accumulation;

Accumulation accumulation_of(const TrainPlan *plan);

typedef struct ChoiceSlot {
    PlanKey choices;
    const Candidate *candidate;
    const Candidate *fits;  // the one before it; NULL = there is none
    const char *reason;     // why others are rejected for its sake; NULL = none was
} ChoiceSlot;

// A candidate for each set of choices.
typedef struct ByChoices {
    PlanKey apart;  // bits of choices that make no difference
    ChoiceSlot *slots;
    size_t count, capacity;
} ByChoices;

ByChoices by_choices_but(uint64_t without);
PlanKey choices_of(const TrainPlan *plan);
PlanKey choices_that(const TrainPlan *plan, Accumulation accumulation);  // as if it accumulated so

// The slot of a plan's choices; empty at first. Valid until another one is added.
ChoiceSlot *choice_slot(Arena *arena, ByChoices *by, const PlanKey *plan);

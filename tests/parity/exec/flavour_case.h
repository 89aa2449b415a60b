// The programs of other targets compared with one rank of our own, on the shapes of a world.

#pragma once

#include "tests/parity/exec/exec_case.h"

// The case's model and options on this target; Megatron's get a vocabulary that its padding does not change.
RunRequest flavour_request(const Target *target, const TrainPlan *plan);

// Every row of the capability table except our own runs every stride-th of its plans of a world; each is expected to
// train as one rank.
void flavour_plans_train(int world, int stride);

// A few plans of worlds 2 and 4 that cover every existing pair of row, axis size and choice.
void flavour_pairs_train(void);

// The programs of other targets compared with one rank of our own, on the shapes of a world.

#pragma once

#include "tests/parity/exec/exec_case.h"

// The case's model and options on this target; Megatron's get a vocabulary that its padding does not change.
RunRequest flavour_request(const Target *target, const TrainPlan *plan);

// Every row of the capability table but our own runs every stride-th plan of a world that it has; each is expected to
// train as one rank.
void flavour_plans_train(int world, int stride);

// A few plans of worlds 2 and 4 that show every pair of row, axis size and choice that there is.
void flavour_pairs_train(void);

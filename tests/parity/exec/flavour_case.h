// The programs of other targets against one rank of our own, on the shapes of a world.

#pragma once

#include "tests/parity/exec/exec_case.h"

// Case model and options on this target; Megatron's get a vocabulary that its padding leaves as it is.
RunRequest flavour_request(const Target *target, const TrainPlan *plan);

// Runs up to so many plans of each shape that the target runs, far apart in its choices, and expects them to train as
// one rank.
void flavour_trains(const Target *target, int world, int plans_per_shape);

// The same for every row of the capability table but our own.
void flavour_all_train(int world, int plans_per_shape);

// Faults for tests: NDTUNE_FAULT=ACTION:RANK:TASK[:STEP[:SECONDS]] makes one rank misbehave at the first instance of a
// task in a step (from 1, default 1): hang, exit, skip the task, size (half the bytes of a collective), delay SECONDS.
// NDTUNE_FAULT=pace:SECONDS makes every kernel of every rank take at least that long, mostly asleep: with more ranks
// than cores, order and waits are then as on a core each (tests/bench/exec/bubbles.sh).

#pragma once

#include "exec/protocol/request.h"
#include "sim/step/stages.h"

// Leaves *fault alone where the variable is not set. USAGE says what is wrong with it.
Status fault_from_environment(const StepPrograms *programs, RunFault *fault, Error *error);

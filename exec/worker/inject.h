// Test faults (exec/launch/fault.h), checked for every task of a rank.

#pragma once

#include "exec/worker/session.h"

// Hangs, ends or delays this rank where its fault says so; else returns what the interpreter must do wrong: FAULT_SKIP
// or FAULT_SIZE, mostly FAULT_NONE.
FaultAction fault_inject(Session *session, const StepInstance *instance);
// Sleeps for the remainder of the pace for a kernel that began at that time (clock_s); without a pace, returns at once.
void fault_pace(const Session *session, double start_s);

// The fault of a test (exec/launch/fault.h), where every task of a rank passes.

#pragma once

#include "exec/worker/session.h"

// Hangs, ends or delays this rank where its fault says so; else what the interpreter has to do wrong: FAULT_SKIP or
// FAULT_SIZE, mostly FAULT_NONE.
FaultAction fault_inject(Session *session, const StepInstance *instance);
// Sleeps away what is left of the pace for a kernel that began at that time (clock_s); without a pace, nothing.
void fault_pace(const Session *session, double start_s);

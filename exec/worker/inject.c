// A fault strikes once, at the first instance of its task in its step; a pace applies throughout.

#include "exec/worker/inject.h"

#include <unistd.h>

#include "sim/base/clock.h"

enum { FAULT_EXIT_CODE = 42 };  // otherwise unused: tells an injected exit from a real one in messages

void fault_pace(const Session *session, double start_s) {
    const RunFault *fault = &session->request->options.fault;
    if (fault->action == FAULT_PACE) {
        const double left_s = fault->delay_s - (clock_s() - start_s);
        clock_nap(left_s > 0 ? left_s : 0);
    }
}

FaultAction fault_inject(Session *session, const StepInstance *instance) {
    const RunFault *fault = &session->request->options.fault;
    if (fault->action == FAULT_NONE || fault->rank != session->rank || fault->task != instance->task ||
        fault->step != session->step || session->fault_struck) {
        return FAULT_NONE;
    }
    session->fault_struck = true;
    switch (fault->action) {
    case FAULT_HANG:
        for (;;) {
            pause();
        }
    case FAULT_EXIT:
        _exit(FAULT_EXIT_CODE);
    case FAULT_DELAY:
        clock_nap(fault->delay_s);
        return FAULT_NONE;
    default:
        return fault->action;
    }
}

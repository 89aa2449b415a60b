// Which communicators a program needs, found the same way by the launcher (size of the segment) and by every worker.

#pragma once

#include "exec/launch/request.h"
#include "exec/transport/transport.h"
#include "sim/step/step.h"

typedef struct CommunicatorSet {
    Communicator entries[TRANSPORT_MAX_COMMUNICATORS];
    int count;
    int world;         // index of the communicator of all ranks, for the run's own bookkeeping
    int16_t *of_task;  // by task: index of its communicator, -1 for compute tasks
} CommunicatorSet;

// Training: those of the program's lanes. The other jobs add one for each set of axes that joins ranks.
Status communicators_find(const StepProgram *program, WorkerJob job, Arena *arena, CommunicatorSet *set, Error *error);

// The communicator of those axes that the other jobs have added; -1 = none.
int communicators_of_axes(const CommunicatorSet *set, AxisMask axes);

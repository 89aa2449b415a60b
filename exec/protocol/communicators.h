// The communicators a program needs, derived identically by the launcher (to size the segment) and by every worker.

#pragma once

#include "exec/protocol/request.h"
#include "exec/transport/transport.h"
#include "sim/step/stages.h"

typedef struct CommunicatorSet {
    Communicator entries[TRANSPORT_MAX_COMMUNICATORS];
    int count;
    int world;         // index of the communicator of all ranks, for run bookkeeping
    int16_t *of_task;  // by task of the stage's program: index of its communicator or link, -1 for compute tasks
} CommunicatorSet;

// For the program of one stage; the entries are the same for all stages. Training: those of the lanes of all stages,
// and a link for each phase and pair of stages that exchange messages. The other jobs add one for each set of axes that
// joins ranks. Only the request's job and options are read.
Status communicators_find(const StepPrograms *programs, int stage, const RunRequest *request, Arena *arena,
                          CommunicatorSet *set, Error *error);

// The communicator of those axes that the other jobs added; -1 = none.
int communicators_of_axes(const CommunicatorSet *set, AxisMask axes);

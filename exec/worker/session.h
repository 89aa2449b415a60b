// A session: one rank of a run from its request to its last step. The worker's main drives one; tests drive one in
// their own process.

#pragma once

#include <jansson.h>

#include "exec/device/device.h"
#include "exec/protocol/communicators.h"
#include "exec/protocol/request.h"
#include "exec/transport/progress_table.h"
#include "exec/worker/recorder.h"
#include "exec/worker/rendezvous_client.h"
#include "sim/memory/memory.h"
#include "sim/step/stages.h"

typedef struct Lanes Lanes;  // threads of the async mode, lanes.h

// Which rank this process is, and to whom it reports.
typedef struct RankPlace {
    int rank, local_rank;          // local: among those of its machine
    RendezvousClient *rendezvous;  // to a launcher that did not start this process; else NULL
} RankPlace;

// Tokens received by this rank's experts in excess of the mean over ranks, as a fraction of it: for each exchange in
// forward, as far as there is room.
typedef struct ExpertTally {
    float *over;
    int64_t count, room;
} ExpertTally;

typedef struct Session {
    const RunRequest *request;
    int rank, local_rank;
    MeshCoordinates at;
    StepPrograms programs;  // for all stages
    StepProgram program;    // for this rank's stage
    MemoryPlan memory;
    CommunicatorSet communicators;
    const TransportTable *transports;
    Transport *transport;
    RendezvousClient *rendezvous;  // from RankPlace
    ProgressRow row;               // where this rank publishes its state without rendezvous or segment
    const DeviceTable *devices;
    Device *device;
    Recorder recorder;
    Lanes *lanes;          // NULL in serial mode
    int64_t step;          // 0, 1, ...
    int64_t traced_from;   // first step timed by a device with its own clock
    bool fault_struck;     // the test fault, inject.h
    double step_begin_s;   // clock at the start of the step: spans count from here
    TransportPlace place;  // where the host is; kept for a device that runs asynchronously
    ExpertTally tally;
} Session;

typedef struct StepReport {
    double loss, grad_norm, step_time_s;
} StepReport;

Status session_join(const RunRequest *request, const RankPlace *place, Arena *arena, Session *session, Error *error);
void session_close(Session *session);

// Runs the next step. Allocates nothing.
Status session_step(Session *session, StepReport *report, Error *error);

// A barrier over all ranks, outside of steps.
Status session_meet(Session *session, Error *error);

// Bytes of a buffer's slot, from first_byte.
typedef struct SlotBytes {
    int32_t buffer;
    int slot;
    int64_t first_byte, bytes;
} SlotBytes;
Status session_read(Session *session, const SlotBytes *from, void *out, Error *error);

// Sends rank 0's result, to the file or over the rendezvous to the launcher. Frees root; NULL = it could not be built.
Status session_report(const Session *session, json_t *root, Error *error);

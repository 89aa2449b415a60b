// The nccl transport's own state, shared by its files: opening (nccl_open.c), waiting and aborting (nccl_wait.c),
// moving (nccl.c).

#pragma once

#include <pthread.h>

#include "exec/transport/lane_watch.h"
#include "exec/transport/nccl_choice.h"
#include "exec/transport/nccl_library.h"
#include "exec/transport/transport.h"

enum {
    NCCL_STAGING_BYTES = 8 << 20,  // of one half
    NCCL_MEMORIES_MOST = 4,        // the arena, and what a probe moves
};

// Messages of host memory that wait on the GPU until they are received.
typedef struct NcclOutbox {
    CUdeviceptr places;  // 0 until the first message: calls with a stream need none
    unsigned *ends;      // of each place: the call that sent the end of it
    int count, next;
} NcclOutbox;

// One communicator as this rank sees it.
typedef struct NcclLane {
    const Communicator *spec;
    int size, index;
    int first;  // rank of its member 0
    NcclChoice choice;
    ncclComm_t comm;  // NULL for a group of one
    ncclComm_t made;  // where a split puts it
    ncclWindow_t windows[NCCL_MEMORIES_MOST];
    CUstream stream;        // of calls with host memory
    NcclOutbox outbox;      // of the sender of a link
    CUdeviceptr counts_at;  // watch.counts as the GPU sees it
    LaneWatch watch;
} NcclLane;

struct Transport {
    TransportSetup setup;
    NcclLibrary nccl;
    CudaDriver cuda;
    CUdevice gpu;
    bool has_context;
    NcclLane *lanes;  // the setup's communicators, and behind them the whole run under the name "start"
    int lane_count;
    LaneCounts *counts;
    CUdeviceptr staging;                 // two halves: operands in, results out
    void *memories[NCCL_MEMORIES_MOST];  // what `memory` gave
    int64_t memory_bytes[NCCL_MEMORIES_MOST];
    int memory_count;
    Transport *segment;   // shm over the run's segment: stop flag and table; NULL where there is none
    ProgressTable table;  // ranks NULL where only this rank's row is known
    ProgressRow *row;
    ProgressCell *start_cell;  // of the lane that the progress table does not show
    pthread_t shower;
    bool showing;
    atomic_int closing, stopped;
    bool torn;       // communicators were aborted
    double limit_s;  // of a wait: longer until all ranks have met
};

// nccl_open.c
Status nccl_open(const TransportSetup *setup, Arena *arena, Transport **transport, Error *error);
void nccl_close(Transport *nccl);
Status nccl_memory(Transport *nccl, int64_t bytes, void **memory, Error *error);

// nccl_wait.c: whoever calls from outside aborts when one of these fails.
Status nccl_cuda_try(Transport *nccl, CUresult result, const char *what, Error *error);
Status nccl_try(Transport *nccl, const NcclLane *lane, ncclResult_t result, const char *what, Error *error);
// Until the communicator is ready for its next call.
Status nccl_settle(Transport *nccl, NcclLane *lane, const char *what, Error *error);
// Until a split has put its communicator there: NCCL does that by and by, also behind the end of the split.
Status nccl_made(Transport *nccl, NcclLane *lane, const char *what, Error *error);
// Until the stream has ended the call of this number.
Status nccl_ended(Transport *nccl, NcclLane *lane, unsigned number, Error *error);
// Until the lane's own stream is empty.
Status nccl_stream_wait(Transport *nccl, NcclLane *lane, Error *error);
Status nccl_finish(Transport *nccl, Error *error);      // the table's
Status nccl_torn(const Transport *nccl, Error *error);  // no call after an abort
void nccl_abort(Transport *nccl);
bool nccl_poll(const Transport *nccl);
Status nccl_shower_start(Transport *nccl, Error *error);  // the thread that keeps the progress table
void nccl_shower_stop(Transport *nccl);

// nccl.c: operands of the host where the call has no stream.
Status nccl_run(Transport *nccl, NcclLane *lane, TransportKind kind, const TransportCall *call, Error *error);

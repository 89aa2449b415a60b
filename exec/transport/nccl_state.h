// The nccl transport's own state, shared by its files: opening (nccl_open.c), waiting and aborting (nccl_wait.c), data
// movement (nccl.c).

#pragma once

#include <pthread.h>

#include "exec/transport/lane_watch.h"
#include "exec/transport/nccl_choice.h"
#include "exec/transport/nccl_library.h"
#include "exec/transport/transport.h"

enum {
    NCCL_STAGING_BYTES = 8 << 20,  // per half
    NCCL_MEMORIES_MOST = 4,        // the arena, and what a probe transfers
};

// Messages from host memory that are kept on the GPU until they are received.
typedef struct NcclOutbox {
    CUdeviceptr places;  // 0 until the first message: calls with a stream need none
    unsigned *ends;      // for each place: the call that sent the end of it
    int count, next;
} NcclOutbox;

// One communicator as this rank sees it.
typedef struct NcclLane {
    const Communicator *spec;
    int size, index;
    int first;  // rank of its member 0
    NcclChoice choice;
    ncclComm_t comm;  // NULL for a group of one
    ncclComm_t made;  // where a split stores it
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
    NcclLane *lanes;  // the setup's communicators, then the whole run's, under the name "start"
    int lane_count;
    LaneCounts *counts;
    CUdeviceptr staging;                 // two halves: operands in, results out
    void *memories[NCCL_MEMORIES_MOST];  // allocated by `memory`
    int64_t memory_bytes[NCCL_MEMORIES_MOST];
    int memory_count;
    Transport *segment;   // shm over the run's segment: stop flag and table; NULL where there is none
    ProgressTable table;  // ranks NULL where only this rank's row is known
    ProgressRow *row;
    ProgressCell *start_cell;  // of the lane that is not in the progress table
    pthread_t shower;
    bool showing;
    atomic_int closing, stopped;
    bool torn;       // communicators were aborted
    double limit_s;  // of a wait: longer until all ranks have connected
};

// nccl_open.c
Status nccl_open(const TransportSetup *setup, Arena *arena, Transport **transport, Error *error);
void nccl_close(Transport *nccl);
Status nccl_memory(Transport *nccl, int64_t bytes, void **memory, Error *error);

// nccl_wait.c: external callers abort when one of these fails.
Status nccl_cuda_try(Transport *nccl, CUresult result, const char *what, Error *error);
Status nccl_try(Transport *nccl, const NcclLane *lane, ncclResult_t result, const char *what, Error *error);
// Waits until the communicator is ready for its next call.
Status nccl_settle(Transport *nccl, NcclLane *lane, const char *what, Error *error);
// Waits until a split has stored its communicator there: NCCL may do so only after the split has returned.
Status nccl_made(Transport *nccl, NcclLane *lane, const char *what, Error *error);
// Waits until the stream has finished the call with this number.
Status nccl_ended(Transport *nccl, NcclLane *lane, unsigned number, Error *error);
// Waits until the lane's own stream is empty.
Status nccl_stream_wait(Transport *nccl, NcclLane *lane, Error *error);
Status nccl_finish(Transport *nccl, Error *error);      // the entry in its table
Status nccl_torn(const Transport *nccl, Error *error);  // no calls after an abort
void nccl_abort(Transport *nccl);
bool nccl_poll(const Transport *nccl);
Status nccl_shower_start(Transport *nccl, Error *error);  // the thread that updates the progress table
void nccl_shower_stop(Transport *nccl);

// nccl.c: host operands where the call has no stream.
Status nccl_run(Transport *nccl, NcclLane *lane, TransportKind kind, const TransportCall *call, Error *error);

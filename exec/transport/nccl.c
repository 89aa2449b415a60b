// Data movement: a collective goes into a stream between two writes that count it, which is how the watchdog sees what
// the GPU does. Host memory goes through two halves of a staging buffer, chunk by chunk. Bytes travel as int8; bf16
// sums are NCCL's (each step rounds), int64 sums are exact, as bitwise runs require. Sources: sim/SOURCES.md X2.

#include "exec/transport/nccl.h"

#include <stddef.h>
#include <string.h>

#include "exec/transport/nccl_state.h"
#include "exec/transport/reduce.h"
#include "exec/transport/shm.h"

// ---------------------------------------------------------------------------------------------- NCCL's calls

static ncclDataType_t type_of(const TransportCall *call) {
    if (call->op == REDUCE_SUM_INT64) {
        return ncclInt64;
    }
    ASSERT(call->dtype == DTYPE_FP32 || call->dtype == DTYPE_BF16);
    return call->dtype == DTYPE_BF16 ? ncclBfloat16 : ncclFloat32;
}

static ncclRedOp_t op_of(const TransportCall *call) {
    return call->op == REDUCE_MAX ? ncclMax : ncclSum;
}

static size_t count_of(const TransportCall *call) {
    return (size_t)(call->bytes / reduction_unit(reduction_of(call)));
}

typedef ncclResult_t Body(const NcclLibrary *nccl, const NcclLane *lane, const TransportCall *call, CUstream stream);

static ncclResult_t all_gather(const NcclLibrary *nccl, const NcclLane *lane, const TransportCall *call,
                               CUstream stream) {
    return nccl->all_gather(call->in, call->out, (size_t)call->bytes, ncclInt8, lane->comm, stream);
}

static ncclResult_t reduce_scatter(const NcclLibrary *nccl, const NcclLane *lane, const TransportCall *call,
                                   CUstream stream) {
    return nccl->reduce_scatter(call->in, call->out, count_of(call), type_of(call), op_of(call), lane->comm, stream);
}

static ncclResult_t all_reduce(const NcclLibrary *nccl, const NcclLane *lane, const TransportCall *call,
                               CUstream stream) {
    return nccl->all_reduce(call->in, call->out, count_of(call), type_of(call), op_of(call), lane->comm, stream);
}

// A part to each member and one from each, including itself (NCCL's manual, "All-to-all"). The group is ended even if
// part of it was refused: NCCL counts the calls.
static ncclResult_t all_to_all(const NcclLibrary *nccl, const NcclLane *lane, const TransportCall *call,
                               CUstream stream) {
    ncclResult_t failed = nccl->group_start();
    if (failed != ncclSuccess) {
        return failed;
    }
    const char *from = call->in;
    char *to = call->out;
    for (int i = 0; i < lane->size; i++) {
        const size_t leaves = (size_t)transport_part_piece(call->leave, call->bytes, i, 0, INT64_MAX);
        const size_t comes = (size_t)transport_part_piece(call->come, call->bytes, i, 0, INT64_MAX);
        const ncclResult_t sent = leaves > 0 ? nccl->send(from, leaves, ncclInt8, i, lane->comm, stream) : ncclSuccess;
        const ncclResult_t received = comes > 0 ? nccl->recv(to, comes, ncclInt8, i, lane->comm, stream) : ncclSuccess;
        failed = failed != ncclSuccess                                   ? failed
                 : sent != ncclSuccess && sent != ncclInProgress         ? sent
                 : received != ncclSuccess && received != ncclInProgress ? received
                                                                         : ncclSuccess;
        from += leaves;
        to += comes;
    }
    const ncclResult_t ended = nccl->group_end();
    return failed != ncclSuccess ? failed : ended;
}

static ncclResult_t send_recv(const NcclLibrary *nccl, const NcclLane *lane, const TransportCall *call,
                              CUstream stream) {
    int64_t leave[TRANSPORT_MAX_WORLD] = {0}, come[TRANSPORT_MAX_WORLD] = {0};
    TransportCall parts = *call;
    leave[(lane->index + 1) % lane->size] = call->bytes;
    come[(lane->index + lane->size - 1) % lane->size] = call->bytes;
    parts.leave = leave;
    parts.come = come;
    return all_to_all(nccl, lane, &parts, stream);
}

static ncclResult_t send(const NcclLibrary *nccl, const NcclLane *lane, const TransportCall *call, CUstream stream) {
    return nccl->send(call->in, (size_t)call->bytes, ncclInt8, 1 - lane->index, lane->comm, stream);
}

static ncclResult_t receive(const NcclLibrary *nccl, const NcclLane *lane, const TransportCall *call, CUstream stream) {
    return nccl->recv(call->out, (size_t)call->bytes, ncclInt8, 1 - lane->index, lane->comm, stream);
}

// NCCL has none: an all-reduce of a single number serves.
static ncclResult_t barrier(const NcclLibrary *nccl, const NcclLane *lane, const TransportCall *call, CUstream stream) {
    return nccl->all_reduce(call->in, call->out, 1, ncclInt32, ncclSum, lane->comm, stream);
}

static Body *const bodies[TRANSPORT_COUNT] = {
    [TRANSPORT_ALL_GATHER] = all_gather, [TRANSPORT_REDUCE_SCATTER] = reduce_scatter,
    [TRANSPORT_ALL_REDUCE] = all_reduce, [TRANSPORT_SEND_RECV] = send_recv,
    [TRANSPORT_BARRIER] = barrier,       [TRANSPORT_SEND] = send,
    [TRANSPORT_RECEIVE] = receive,       [TRANSPORT_ALL_TO_ALL] = all_to_all,
};

// ---------------------------------------------------------------------------------------------- into a stream

static Status count_write(Transport *nccl, const NcclLane *lane, CUstream stream, size_t at, unsigned number,
                          Error *error) {
    return nccl_cuda_try(nccl, nccl->cuda.stream_write(stream, lane->counts_at + at, number, 0), "a counter", error);
}

// shown: the collective this call is (part of), for the progress table.
static Status put(Transport *nccl, NcclLane *lane, TransportKind kind, const TransportCall *call,
                  const TransportCall *shown, Error *error) {
    const CUstream stream = shown->stream ? shown->stream : lane->stream;
    const unsigned number = lane_watch_note(&lane->watch, kind, shown);
    TRY(count_write(nccl, lane, stream, offsetof(LaneCounts, begun), number, error));
    TRY(nccl_try(nccl, lane, bodies[kind](&nccl->nccl, lane, call, stream), collective_names[kind], error));
    TRY(nccl_settle(nccl, lane, collective_names[kind], error));  // only now is it in the stream
    return count_write(nccl, lane, stream, offsetof(LaneCounts, ended), number, error);
}

static CUdeviceptr place_of(const void *memory) {
    return (CUdeviceptr)(uintptr_t)memory;
}

static Status copy(Transport *nccl, CUdeviceptr to, CUdeviceptr from, int64_t bytes, CUstream stream, Error *error) {
    return to == from || bytes == 0
               ? STATUS_OK
               : nccl_cuda_try(nccl, nccl->cuda.copy(to, from, (size_t)bytes, stream), "a copy", error);
}

// ---------------------------------------------------------------------------------------------- host memory

static void *pointer_of(CUdeviceptr at) {
    return (void *)(uintptr_t)at;
}

static bool has_in(TransportKind kind) {
    return kind != TRANSPORT_RECEIVE;
}

static bool has_out(TransportKind kind) {
    return kind != TRANSPORT_SEND;
}

static int64_t chunk_bytes(const NcclLane *lane) {
    enum { GRAIN = 256 };
    return NCCL_STAGING_BYTES / lane->size / GRAIN * GRAIN;
}

// One side of a collective in host memory; its parts are contiguous in the staging buffer.
typedef struct Side {
    CUdeviceptr host, staging;
    const int64_t *sizes;  // for parts of different sizes
    int64_t bytes;         // otherwise, of each
    int count;
} Side;

// Copies those bytes of the parts that are among the next `most` from `at` on; the size of each goes to `pieces`.
static Status side_copy(Transport *nccl, const NcclLane *lane, const Side *side, bool back, int64_t at, int64_t most,
                        int64_t *pieces, Error *error) {
    CUdeviceptr staging = side->staging;
    for (int i = 0; i < side->count; i++) {
        const int64_t begin = transport_part_begin(side->sizes, side->bytes, i) + at;
        const CUdeviceptr host = side->host + (CUdeviceptr)begin;
        pieces[i] = transport_part_piece(side->sizes, side->bytes, i, at, most);
        TRY(copy(nccl, back ? host : staging, back ? staging : host, pieces[i], lane->stream, error));
        staging += (CUdeviceptr)pieces[i];
    }
    return STATUS_OK;
}

static Status staged(Transport *nccl, NcclLane *lane, TransportKind kind, const TransportCall *call, Error *error) {
    const bool parts = kind == TRANSPORT_ALL_TO_ALL;
    const CUdeviceptr staging = nccl->staging;
    const Side in = {place_of(call->in), staging, call->leave, call->bytes,
                     parts || kind == TRANSPORT_REDUCE_SCATTER ? lane->size : has_in(kind)};
    const Side out = {place_of(call->out), staging + NCCL_STAGING_BYTES, call->come, call->bytes,
                      parts || kind == TRANSPORT_ALL_GATHER ? lane->size : has_out(kind)};
    const int64_t most = chunk_bytes(lane), leaves = transport_part_largest(call->leave, call->bytes, lane->size);
    const int64_t comes = transport_part_largest(call->come, call->bytes, lane->size);
    int64_t leave[TRANSPORT_MAX_WORLD], come[TRANSPORT_MAX_WORLD];
    for (int64_t at = 0; at < (leaves > comes ? leaves : comes); at += most) {
        TransportCall chunk = *call;
        chunk.in = pointer_of(in.staging);
        chunk.out = pointer_of(out.staging);
        chunk.bytes = call->bytes - at < most ? call->bytes - at : most;
        TRY(side_copy(nccl, lane, &in, false, at, most, leave, error));
        for (int i = 0; i < lane->size && call->leave; i++) {
            come[i] = transport_part_piece(call->come, call->bytes, i, at, most);
            chunk.leave = leave;
            chunk.come = come;
        }
        TRY(put(nccl, lane, kind, &chunk, call, error));
        // a copy to pageable host memory would block without checking the clock
        TRY(nccl_stream_wait(nccl, lane, error));
        TRY(side_copy(nccl, lane, &out, true, at, most, come, error));
        TRY(nccl_stream_wait(nccl, lane, error));
    }
    return STATUS_OK;
}

static Status meet(Transport *nccl, NcclLane *lane, const TransportCall *call, Error *error) {
    TransportCall shown = *call, sum = *call;
    shown.stream = NULL;
    shown.bytes = 0;
    sum.in = sum.out = pointer_of(nccl->staging);
    TRY(put(nccl, lane, TRANSPORT_BARRIER, &sum, &shown, error));
    return nccl_stream_wait(nccl, lane, error);
}

// ---------------------------------------------------------------------------------------------- memory of `memory`

static bool is_given(const Transport *nccl, const void *at) {
    for (int i = 0; i < nccl->memory_count; i++) {
        const CUdeviceptr first = place_of(nccl->memories[i]);
        if (place_of(at) >= first && place_of(at) < first + (CUdeviceptr)nccl->memory_bytes[i]) {
            return true;
        }
    }
    return false;
}

static Status nccl_move(Transport *nccl, void *to, const void *from, int64_t bytes, Error *error) {
    NcclLane *start = &nccl->lanes[nccl->setup.communicator_count];
    TRY(copy(nccl, place_of(to), place_of(from), bytes, start->stream, error));
    return nccl_stream_wait(nccl, start, error);
}

static Status unstaged(Transport *nccl, NcclLane *lane, TransportKind kind, const TransportCall *call, Error *error) {
    TRY(put(nccl, lane, kind, call, call, error));
    return call->stream ? STATUS_OK : nccl_stream_wait(nccl, lane, error);
}

// ---------------------------------------------------------------------------------------------- the table

static Status alone(Transport *nccl, TransportKind kind, const TransportCall *call, Error *error) {
    if (kind == TRANSPORT_BARRIER || call->in == call->out || call->bytes == 0) {
        return STATUS_OK;
    }
    if (call->stream) {
        return copy(nccl, place_of(call->out), place_of(call->in), call->bytes, call->stream, error);
    }
    if (is_given(nccl, call->in)) {
        return nccl_move(nccl, call->out, call->in, call->bytes, error);
    }
    memmove(call->out, call->in, (size_t)call->bytes);
    return STATUS_OK;
}

// Into a slot of the outbox, once that is free, and from there into the lane's stream, in the chunks in which it is
// received; this does not wait for the receive.
static Status posted(Transport *nccl, NcclLane *lane, const TransportCall *call, Error *error) {
    NcclOutbox *box = &lane->outbox;
    const int at = box->next;
    if (!box->places) {
        const size_t bytes = (size_t)(box->count * lane->spec->message_bytes);
        TRY(nccl_cuda_try(nccl, nccl->cuda.mem_alloc(&box->places, bytes), "memory for messages", error));
    }
    const CUdeviceptr place = box->places + (CUdeviceptr)(at * lane->spec->message_bytes);
    TRY(nccl_ended(nccl, lane, box->ends[at], error));
    TRY(nccl_move(nccl, pointer_of(place), call->in, call->bytes, error));
    for (int64_t done = 0; done < call->bytes; done += chunk_bytes(lane)) {
        TransportCall chunk = *call;
        chunk.in = pointer_of(place + (CUdeviceptr)done);
        chunk.bytes = call->bytes - done < chunk_bytes(lane) ? call->bytes - done : chunk_bytes(lane);
        TRY(put(nccl, lane, TRANSPORT_SEND, &chunk, call, error));
    }
    box->ends[at] = atomic_load(&lane->watch.noted);
    box->next = (at + 1) % box->count;
    return STATUS_OK;
}

Status nccl_run(Transport *nccl, NcclLane *lane, TransportKind kind, const TransportCall *call, Error *error) {
    TRY(nccl_torn(nccl, error));
    Status status;
    if (!lane->comm) {
        status = alone(nccl, kind, call, error);
    } else if (kind == TRANSPORT_BARRIER) {
        status = meet(nccl, lane, call, error);
    } else {
        const bool given = (!has_in(kind) || is_given(nccl, call->in)) && (!has_out(kind) || is_given(nccl, call->out));
        const bool there = call->stream || given;
        status = there                    ? unstaged(nccl, lane, kind, call, error)
                 : kind == TRANSPORT_SEND ? posted(nccl, lane, call, error)
                                          : staged(nccl, lane, kind, call, error);
    }
    if (status != STATUS_OK) {
        nccl_abort(nccl);
    }
    return status;
}

static Status nccl_run_call(Transport *nccl, TransportKind kind, const TransportCall *call, Error *error) {
    return nccl_run(nccl, &nccl->lanes[call->communicator], kind, call, error);
}

static void nccl_note(Transport *nccl, const TransportPlace *place) {
    progress_row_note(nccl->row, place);
}

// Without a segment, stops this process only: the launcher ends the others.
static bool nccl_stop(Transport *nccl) {
    const bool first = atomic_exchange(&nccl->stopped, 1) == 0;
    return nccl->segment ? transport_shm.stop(nccl->segment) : first;
}

const TransportTable transport_nccl = {
    .name = "nccl",
    .open = nccl_open,
    .close = nccl_close,
    .run = nccl_run_call,
    .note = nccl_note,
    .stop = nccl_stop,
    .poll = nccl_poll,
    .finish = nccl_finish,
    .memory = nccl_memory,
    .move = nccl_move,
};

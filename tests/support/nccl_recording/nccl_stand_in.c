// libnccl.so.2 for tests (stand_in.h): communicators are files that their members map. A collective goes through slots
// there, chunk by chunk, with a barrier before and after each; sums run in rank order, as over transport shm, so that
// results can be compared bit for bit. A message goes through a channel of its two members. Calls are non-blocking as
// transport nccl requires: each must be settled by ncclCommGetAsyncError before the next, and only then is it in its
// stream.

#define _GNU_SOURCE  // sched_yield

#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "exec/transport/reduce.h"
#include "tests/support/nccl_recording/channel.h"
#include "tests/support/nccl_recording/stand_in.h"

enum { RANKS_MOST = 16, SPLITS_MOST = 64, SLOT_BYTES = CHANNEL_BYTES, NAME_BYTES = 96, SETTLES = 2 };

typedef enum {
    CALL_ALL_GATHER,
    CALL_REDUCE_SCATTER,
    CALL_ALL_REDUCE,
    CALL_ALL_TO_ALL,
    CALL_SEND_RECV,
    CALL_SEND,
    CALL_RECV
} CallKind;
static const char *const call_names[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all",
                                         "send_recv",  "send",           "recv"};

// What members must agree on.
typedef struct Header {
    unsigned number;
    int kind, type, op;
    size_t count;
} Header;

typedef struct Member {
    _Alignas(64) atomic_uint joined, met, split_count;
    int colors[SPLITS_MOST], keys[SPLITS_MOST];
    Header header;
    _Alignas(64) char slot[SLOT_BYTES];
} Member;

typedef struct Meeting {
    Member members[RANKS_MOST];
    Channel channels[RANKS_MOST][RANKS_MOST];
} Meeting;

typedef struct Part {
    char *at;
    size_t bytes;
} Part;

typedef struct Call {
    struct ncclComm *comm;
    Header header;  // its count is that of the message in, where there is one
    const void *in;
    void *out;
    int to, from;
    CUstream stream;
    bool fails;
    int sends, receives;  // of its group: one of each, or parts of any size for members and from them
    Part gives[RANKS_MOST], takes[RANKS_MOST];
} Call;

struct ncclComm {
    char name[NAME_BYTES], lane[32];
    int size, rank, world_rank;
    FILE *record;
    pthread_mutex_t *recording;
    Meeting *meeting;
    unsigned meetings, calls, collectives, splits;
    bool ready;              // all members have joined
    struct ncclComm *child;  // of a split that is not settled
    struct ncclComm **made;  // where it goes
    struct ncclComm *older;  // keeps all of them in reach
    int settles;             // that the last call still needs
    Call *unsettled;
    bool working;  // on a window, until it is asked
    atomic_int aborted, result;
    bool finalized;
    char last_error[200];
};

static void record(struct ncclComm *comm, const char *line) {
    pthread_mutex_lock(comm->recording);
    fprintf(comm->record, "%s %s %d/%d %s\n", comm->name, comm->lane, comm->rank, comm->size, line);
    fflush(comm->record);
    pthread_mutex_unlock(comm->recording);
}

static ncclResult_t violation(struct ncclComm *comm, const char *what) {
    char line[256];
    snprintf(line, sizeof line, "VIOLATION %s", what);
    record(comm, line);
    snprintf(comm->last_error, sizeof comm->last_error, "%s", what);
    return ncclInvalidUsage;
}

// ---------------------------------------------------------------------------------------------- meetings

static ncclResult_t meeting_map(struct ncclComm *comm) {
    char path[512];
    const char *directory = getenv("NDTUNE_NCCL_RECORDING");
    snprintf(path, sizeof path, "%s/%s", directory ? directory : "/nowhere", comm->name);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(Meeting)) != 0) {
        return ncclSystemError;
    }
    comm->meeting = mmap(NULL, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (comm->meeting == MAP_FAILED) {
        return ncclSystemError;
    }
    atomic_store(&comm->meeting->members[comm->rank].joined, 1);
    return ncclSuccess;
}

static bool all_joined(const struct ncclComm *comm) {
    for (int i = 0; i < comm->size; i++) {
        if (!atomic_load(&comm->meeting->members[i].joined)) {
            return false;
        }
    }
    return true;
}

// Waits for all members; false once this one was aborted.
static bool meet(struct ncclComm *comm) {
    const unsigned number = ++comm->meetings;
    atomic_store(&comm->meeting->members[comm->rank].met, number);
    for (int i = 0, looks = 0; i < comm->size; looks++) {
        if ((int)(atomic_load(&comm->meeting->members[i].met) - number) >= 0) {
            i++;
        } else if (atomic_load(&comm->aborted)) {
            return false;
        } else if (looks < 100) {
            sched_yield();
        } else {
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        }
    }
    return true;
}

static struct ncclComm *comm_new(const struct ncclComm *parent, const char *lane) {
    static _Atomic(struct ncclComm *) newest;
    struct ncclComm *comm = calloc(1, sizeof *comm);  // never freed, so that calls after its end are detected
    comm->older = atomic_exchange(&newest, comm);
    snprintf(comm->lane, sizeof comm->lane, "%s", lane ? lane : "unnamed");
    for (char *at = comm->lane; *at; at++) {
        *at = *at == ' ' ? '-' : *at;  // a word of the record
    }
    if (parent) {
        comm->record = parent->record;
        comm->recording = parent->recording;
        comm->world_rank = parent->world_rank;
    }
    return comm;
}

static ncclResult_t config_check(struct ncclComm *comm, const ncclConfig_t *config) {
    if (config->magic != 0xcafebeef || config->size != sizeof *config || config->blocking != 0) {
        return violation(comm, "a configuration that is not initialised, or blocks");
    }
    char line[160];
    snprintf(line, sizeof line, "open share=%d policy=%d most_ctas=%d", config->splitShare,
             config->CTAPolicy == NCCL_CONFIG_UNDEF_INT ? -1 : config->CTAPolicy,
             config->maxCTAs == NCCL_CONFIG_UNDEF_INT ? -1 : config->maxCTAs);
    record(comm, line);
    return ncclInProgress;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    static atomic_int made;
    snprintf(id->internal, sizeof id->internal, "meeting-%ld-%d", (long)getpid(), atomic_fetch_add(&made, 1));
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config) {
    struct ncclComm *comm = comm_new(NULL, config->commName);
    char path[512];
    const char *directory = getenv("NDTUNE_NCCL_RECORDING");
    if (!directory || ranks > RANKS_MOST || strncmp(id.internal, "meeting-", 8) != 0) {
        return ncclInvalidArgument;
    }
    snprintf(path, sizeof path, "%s/calls-%d.log", directory, rank);
    snprintf(comm->name, sizeof comm->name, "%.80s", id.internal);
    comm->record = fopen(path, "a");
    comm->recording = malloc(sizeof *comm->recording);
    pthread_mutex_init(comm->recording, NULL);
    comm->rank = comm->world_rank = rank;
    comm->size = ranks;
    *made = comm;
    const ncclResult_t mapped = meeting_map(comm);
    return mapped == ncclSuccess ? config_check(comm, config) : mapped;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *config) {
    if (atomic_load(&comm->aborted) || !comm->ready || comm->child || comm->unsettled || comm->splits == SPLITS_MOST) {
        return violation(comm, "split of a communicator that is not at rest");
    }
    Member *own = &comm->meeting->members[comm->rank];
    own->colors[comm->splits] = color;
    own->keys[comm->splits] = key;
    comm->child = comm_new(comm, config->commName);
    comm->made = made;
    *made = NULL;
    snprintf(comm->child->name, NAME_BYTES, "%.60s.%u.%d", comm->name, comm->splits, color);
    char line[128];
    snprintf(line, sizeof line, "split %s color=%d key=%d share=%d", comm->child->lane, color, key, config->splitShare);
    record(comm, line);
    atomic_store(&own->split_count, ++comm->splits);
    return config->magic == 0xcafebeef && config->blocking == 0 ? ncclInProgress : ncclInvalidArgument;
}

typedef struct Handing {
    struct ncclComm *child, **made;
} Handing;

// NCCL's own thread stores it, after the parent reports that it is done.
static void *hand_over(void *context) {
    Handing *handing = context;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    __atomic_store_n(handing->made, handing->child, __ATOMIC_RELEASE);
    free(handing);
    return NULL;
}

// Once all members of the parent have split: those of one color, in the order of their keys; without a color, nothing.
static void split_settle(struct ncclComm *comm) {
    struct ncclComm *child = comm->child;
    const unsigned number = comm->splits - 1;
    const Member *members = comm->meeting->members;
    for (int i = 0; i < comm->size; i++) {
        if (atomic_load(&members[i].split_count) <= number) {
            return;
        }
    }
    if (members[comm->rank].colors[number] == NCCL_SPLIT_NOCOLOR) {
        comm->child = NULL;
        return;
    }
    for (int i = 0; i < comm->size; i++) {
        if (members[i].colors[number] == members[comm->rank].colors[number]) {
            child->size++;
            child->rank += members[i].keys[number] < members[comm->rank].keys[number];
        }
    }
    atomic_store(&child->result, (int)meeting_map(child));
    Handing *handing = malloc(sizeof *handing);
    *handing = (Handing){child, comm->made};
    pthread_t thread;
    pthread_create(&thread, NULL, hand_over, handing);
    pthread_detach(thread);
    comm->child = NULL;
}

// ---------------------------------------------------------------------------------------------- moving

static size_t type_bytes(int type) {
    return type == ncclInt64 ? 8 : type == ncclBfloat16 ? 2 : type == ncclInt8 ? 1 : 4;
}

static void combine(const Call *call, const void *const *rows, size_t bytes, void *out) {
    const int type = call->header.type;
    if (type == ncclInt32) {  // a barrier's number
        return;
    }
    const Reduction how = {.op = type == ncclInt64            ? REDUCE_SUM_INT64
                                 : call->header.op == ncclMax ? REDUCE_MAX
                                                              : REDUCE_SUM,
                           .dtype = type == ncclBfloat16 ? DTYPE_BF16 : DTYPE_FP32};
    reduce_rows(rows, call->comm->size, (int64_t)bytes, how, out);
}

// Bytes [at, at + bytes) of every part; parts are `share` apart in a slot.
static void chunk_take(const Call *call, size_t part, size_t at, size_t bytes, size_t share) {
    const struct ncclComm *comm = call->comm;
    const Member *members = comm->meeting->members;
    const void *rows[RANKS_MOST];
    for (int i = 0; i < comm->size; i++) {
        rows[i] = members[i].slot + (call->header.kind == CALL_REDUCE_SCATTER ? (size_t)comm->rank * share : 0);
        if (call->header.kind == CALL_ALL_GATHER) {
            memcpy((char *)call->out + (size_t)i * part + at, members[i].slot, bytes);
        }
    }
    if (call->header.kind != CALL_ALL_GATHER) {
        combine(call, rows, bytes, (char *)call->out + at);
    }
}

static void chunk_give(const Call *call, size_t part, size_t at, size_t bytes, size_t share) {
    Member *own = &call->comm->meeting->members[call->comm->rank];
    const char *in = call->in;
    const int parts = call->header.kind == CALL_REDUCE_SCATTER ? call->comm->size : 1;
    for (int i = 0; i < parts; i++) {
        memcpy(own->slot + (size_t)i * share, in + (size_t)i * part + at, bytes);
    }
}

static void disagree(struct ncclComm *comm, int other) {
    const Header *a = &comm->meeting->members[comm->rank].header, *b = &comm->meeting->members[other].header;
    snprintf(comm->last_error, sizeof comm->last_error, "rank %d calls %s of %zu, rank %d %s of %zu", comm->rank,
             call_names[a->kind], a->count, other, call_names[b->kind], b->count);
    char line[256];
    snprintf(line, sizeof line, "VIOLATION %s", comm->last_error);
    record(comm, line);
    atomic_store(&comm->result, ncclInvalidUsage);
}

static bool agree(const Call *call) {
    struct ncclComm *comm = call->comm;
    Member *members = comm->meeting->members;
    members[comm->rank].header = call->header;
    if (!meet(comm)) {
        return false;
    }
    for (int i = 0; i < comm->size; i++) {
        if (memcmp(&members[i].header, &call->header, sizeof call->header) != 0) {
            disagree(comm, i);
            return false;
        }
    }
    return true;
}

static bool message_run(struct ncclComm *comm, const Part *out, int to, const Part *in, int from) {
    Channel(*channels)[RANKS_MOST] = comm->meeting->channels;
    Exchange exchange = {.out = out->at ? &channels[comm->rank][to] : NULL,
                         .from = out->at,
                         .out_bytes = out->bytes,
                         .in = in->at ? &channels[from][comm->rank] : NULL,
                         .to = in->at,
                         .in_bytes = in->bytes,
                         .aborted = &comm->aborted};
    const bool well = exchange_run(&exchange);
    if (exchange.odd) {
        snprintf(comm->last_error, sizeof comm->last_error, "rank %d receives another size than rank %d sends",
                 comm->rank, from);
        record(comm, "VIOLATION a message of another size");
        atomic_store(&comm->result, ncclInvalidUsage);
    }
    return well;
}

// Those of all members meet in the same step.
static bool messages_run(const Call *call) {
    const int size = call->comm->size, rank = call->comm->rank;
    bool well = true;
    for (int k = 0; well && k < size; k++) {
        const int to = (rank + k) % size, from = (rank + size - k) % size;
        well = message_run(call->comm, &call->gives[to], to, &call->takes[from], from);
    }
    return well;
}

static bool collective_run(const Call *call) {
    struct ncclComm *comm = call->comm;
    const size_t part = call->header.count * type_bytes(call->header.type);
    const size_t cut = call->header.kind == CALL_REDUCE_SCATTER ? (size_t)comm->size : 1;
    const size_t share = SLOT_BYTES / cut / 64 * 64;
    bool well = agree(call);
    for (size_t at = 0; well && at < part; at += share) {
        const size_t bytes = part - at < share ? part - at : share;
        chunk_give(call, part, at, bytes, share);
        well = meet(comm);
        if (well) {
            chunk_take(call, part, at, bytes, share);
            well = meet(comm);
        }
    }
    return well;
}

// On the stream's thread.
static void call_run(void *context) {
    Call *call = context;
    struct ncclComm *comm = call->comm;
    const bool well =
        !call->fails && (call->header.kind >= CALL_ALL_TO_ALL ? messages_run(call) : collective_run(call));
    if (call->fails) {
        snprintf(comm->last_error, sizeof comm->last_error, "socket closed by its peer");
        atomic_store(&comm->result, ncclRemoteError);
    }
    while (!well && !atomic_load(&comm->aborted)) {  // a failed collective does not end
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    free(call);
}

// ---------------------------------------------------------------------------------------------- calls

static _Thread_local int group_depth;
static _Thread_local Call *group_call;

static bool fails_here(const struct ncclComm *comm) {
    int rank, number;
    const char *wanted = getenv("NDTUNE_NCCL_FAIL");
    return wanted && sscanf(wanted, "%d:%d", &rank, &number) == 2 && rank == comm->world_rank &&
           number == (int)comm->calls && strcmp(comm->lane, "start") != 0;
}

static ncclResult_t comm_check(struct ncclComm *comm) {
    if (atomic_load(&comm->aborted)) {
        return violation(comm, "a call on an aborted communicator");
    }
    if (comm->finalized || !comm->ready || comm->unsettled || comm->working) {
        return violation(comm, "a call before the last one is settled");
    }
    return ncclSuccess;
}

static ncclResult_t call_take(Call wanted) {
    struct ncclComm *comm = wanted.comm;
    const ncclResult_t checked = comm_check(comm);
    if (checked != ncclSuccess) {
        return checked;
    }
    Call *call = malloc(sizeof *call);
    *call = wanted;
    comm->calls++;
    call->header.number = call->header.kind < CALL_ALL_TO_ALL ? ++comm->collectives : 0;
    call->fails = fails_here(comm);
    char line[160];
    snprintf(line, sizeof line, "call %s count=%zu type=%d op=%d depth=%d to=%d from=%d", call_names[call->header.kind],
             call->header.count, call->header.type, call->header.op, group_depth, call->to, call->from);
    record(comm, line);
    comm->unsettled = call;
    comm->settles = SETTLES;
    return ncclInProgress;
}

static Header header_of(CallKind kind, size_t count, ncclDataType_t type, int op) {
    Header header;
    memset(&header, 0, sizeof header);  // compared as bytes
    header.kind = (int)kind;
    header.type = (int)type;
    header.op = op;
    header.count = count;
    return header;
}

static ncclResult_t collective(ncclComm_t comm, Header header, const void *in, void *out, CUstream stream) {
    return call_take(
        (Call){.comm = comm, .header = header, .in = in, .out = out, .to = -1, .from = -1, .stream = stream});
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    return collective(comm, header_of(CALL_ALL_GATHER, count, type, -1), in, out, stream);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
    return collective(comm, header_of(CALL_REDUCE_SCATTER, count, type, (int)op), in, out, stream);
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    return collective(comm, header_of(CALL_ALL_REDUCE, count, type, (int)op), in, out, stream);
}

ncclResult_t ncclGroupStart(void) {
    group_depth++;
    return ncclSuccess;
}

// A message is a call; in a group all of them make one when it ends.
static Call *message(ncclComm_t comm, size_t count, ncclDataType_t type, cudaStream_t stream) {
    if (!group_call) {
        group_call = calloc(1, sizeof *group_call);
        const Header header = header_of(CALL_SEND_RECV, count, type, -1);
        *group_call = (Call){.comm = comm, .header = header, .to = -1, .from = -1, .stream = stream};
    }
    return group_call;
}

static ncclResult_t message_end(void) {
    Call *call = group_call;
    const bool parts = call->sends > 1 || call->receives > 1 || call->to == call->comm->rank;
    call->header.kind = parts                   ? CALL_ALL_TO_ALL
                        : call->in && call->out ? CALL_SEND_RECV
                        : call->in              ? CALL_SEND
                                                : CALL_RECV;
    const ncclResult_t result = call_take(*call);
    free(call);
    group_call = NULL;
    return result;
}

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    Call *call = message(comm, count, type, stream);
    if (group_depth > 1 || call->comm != comm || call->gives[peer].at) {
        return violation(comm, "a second send of a group to one peer");
    }
    call->gives[peer] = (Part){(char *)(uintptr_t)in, count * type_bytes(type)};
    if (call->sends++ > 0) {
        return ncclSuccess;
    }
    call->in = in;
    call->to = peer;
    return group_depth == 0 ? message_end() : ncclSuccess;
}

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    Call *call = message(comm, count, type, stream);
    if (group_depth > 1 || call->comm != comm || call->takes[peer].at) {
        return violation(comm, "a second receive of a group from one peer");
    }
    call->takes[peer] = (Part){out, count * type_bytes(type)};
    if (call->receives++ > 0) {
        return ncclSuccess;
    }
    call->out = out;
    call->header.count = count;
    call->from = peer;
    return group_depth == 0 ? message_end() : ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    const ncclResult_t result = group_call ? message_end() : ncclSuccess;
    group_depth--;
    return result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
    if (atomic_load(&comm->aborted)) {
        return violation(comm, "a question to an aborted communicator");
    }
    if (comm->child) {
        split_settle(comm);
    }
    comm->ready = comm->ready || (comm->meeting && all_joined(comm));
    if (comm->unsettled && --comm->settles == 0) {
        stand_in_push(comm->unsettled->stream, call_run, comm->unsettled);
        comm->unsettled = NULL;
    }
    const bool working = comm->working;
    comm->working = false;
    const int failed = atomic_load(&comm->result);
    *result = failed                                                        ? (ncclResult_t)failed
              : comm->ready && !comm->child && !comm->unsettled && !working ? ncclSuccess
                                                                            : ncclInProgress;
    return ncclSuccess;
}

// ---------------------------------------------------------------------------------------------- ends, memory, words

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    const ncclResult_t checked = comm_check(comm);
    comm->finalized = true;
    record(comm, "finalize");
    return checked == ncclSuccess ? ncclInProgress : checked;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    record(comm, "destroy");
    return comm->finalized ? ncclSuccess : violation(comm, "destroyed before it was finalized");
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    record(comm, atomic_exchange(&comm->aborted, 1) ? "VIOLATION aborted twice" : "abort");
    return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window, int flags) {
    const ncclResult_t checked = comm_check(comm);
    char line[96];
    snprintf(line, sizeof line, "window bytes=%zu flags=%d", bytes, flags);
    record(comm, line);
    *window = (ncclWindow_t)memory;
    comm->working = checked == ncclSuccess;
    return (uintptr_t)memory % NCCL_WIN_REQUIRED_ALIGNMENT != 0 ? violation(comm, "a window that is not aligned")
           : checked == ncclSuccess                             ? ncclInProgress
                                                                : checked;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
    const ncclResult_t checked = comm_check(comm);
    (void)window;
    record(comm, "window closed");
    comm->working = checked == ncclSuccess;
    return checked == ncclSuccess ? ncclInProgress : checked;
}

const char *ncclGetLastError(ncclComm_t comm) {
    return comm ? comm->last_error : "";
}

// Transport: how ranks move bytes. One table of functions; a transport is a file and a row in transport_table.
//
// A communicator is (id, axes): the ranks that differ along the axes form one group, and the groups of one communicator
// are independent. Every rank opens the same communicators in the same order and calls its collectives in the same
// order; different communicators may be used concurrently from different threads. Sums run in rank order within the
// group (nccl: in an order of its own), and every member gets the same bits. Messages go through links, one
// communicator each, from one member to the other: the n-th receive gets the n-th send. A call that waits longer than
// the timeout, or whose run is stopped, returns an error with a message.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/axes/mesh.h"
#include "sim/base/arena.h"
#include "sim/base/dtype.h"
#include "sim/base/error.h"

enum { TRANSPORT_MAX_COMMUNICATORS = 32, TRANSPORT_MAX_WORLD = 256 };

// Where messages go in the ring of a group: to the next member or the previous one, from members of a class that
// contains no two neighbours. So a rank is in at most one link of a class, and either sends or receives there.
typedef struct Link {
    int8_t step;   // +1 or -1 along the ring; 0 = no link, the whole group
    int8_t class;  // 0, 1; 2 only to close a ring of odd size
} Link;

typedef struct Communicator {
    const char *name;  // "tp": the lane, for error messages
    int16_t id;        // lanes that serialise share one
    AxisMask axes;
    Link link;
    bool across_stages;     // its members run different programs: the same call belongs to different tasks
    int64_t message_bytes;  // link: of the longest message,
    int ahead;              // and how many may be sent before the first of them is received
    int64_t call_bytes;     // else: what a member gives to the largest call, of which more are cut up; 0 = not known
} Communicator;

// A rank's group in a communicator; member 0 of a link is the sender.
typedef struct TransportGroup {
    int size, index;
    int ranks[TRANSPORT_MAX_WORLD];
} TransportGroup;

TransportGroup transport_group(const Mesh *mesh, const Communicator *communicator, int rank);

// The link from one member of a ring to another. ASSERTs that they are neighbours.
Link transport_link(int size, int from, int to);

// What a rank is doing, for the error message of a rank waiting for it. The text comes from TransportWords.
typedef struct TransportPlace {
    int32_t step;  // -1 before the first
    int32_t task;  // -1 = none
    int32_t layer, micro_step;
    int32_t ordinal;  // of the task instance in issue order of the step
} TransportPlace;

// What a rank's program knows about its places; either may be NULL.
typedef struct TransportWords {
    // "step 1, task 'qkv', layer 2".
    const char *(*describe)(const void *context, int rank, const TransportPlace *place, char *out, size_t out_bytes);
    // Size of its collective; -1 = unknown.
    int64_t (*expected_bytes)(const void *context, int rank, const TransportPlace *place);
    const void *context;
} TransportWords;

typedef struct TransportSetup {
    Mesh mesh;
    int rank;
    const Communicator *communicators;
    int communicator_count;
    int local_rank;           // among the ranks of its machine, as set by the launcher; nccl: its GPU
    int segment_fd;           // shm, nccl on one machine: descriptor of the shared segment; one rank may go without, -1
    struct ProgressRow *row;  // where this rank publishes its state (progress_table.h) when there is no segment
    // Without a segment: broadcasts rank 0's bytes before the transport is up (nccl: its id).
    Status (*share)(void *context, void *data, size_t bytes, Error *error);
    void *share_context;
    double timeout_s;
    int spins;        // polls before sleeping; 0 where there are fewer cores than waiting threads
    bool concurrent;  // different communicators are used from different threads
    TransportWords words;
    // Whether the device that the transport waits for made progress since the last look; may be NULL.
    bool (*moved)(void *context);
    void *moved_context;
} TransportSetup;

// SUM_INT64: of 8-byte integers, which have no dtype.
typedef enum { REDUCE_SUM, REDUCE_MAX, REDUCE_SUM_INT64 } ReduceOp;

typedef enum {
    TRANSPORT_ALL_GATHER,
    TRANSPORT_REDUCE_SCATTER,
    TRANSPORT_ALL_REDUCE,
    TRANSPORT_SEND_RECV,
    TRANSPORT_BARRIER,
    TRANSPORT_SEND,  // messages between a link's two members
    TRANSPORT_RECEIVE,
    TRANSPORT_ALL_TO_ALL,
    TRANSPORT_COUNT
} TransportKind;

extern const char *const collective_names[TRANSPORT_COUNT];  // "all-gather" ...

// Sizes: all_gather: bytes of one part, out holds one part per rank of the group; reduce_scatter: bytes of one part, in
// holds one per rank; all_reduce: bytes of the data, in == out allowed; send_recv: bytes of the message, to the next
// rank of the group and from the previous one; all_to_all: bytes of one part, in and out hold one per rank, or
// contiguous parts of `leave` and `come` bytes, and bytes, the same on all ranks, is for the progress table alone;
// send, receive: bytes of the message, only in or out is used. Reductions take fp32, or bf16 summed in fp32 and rounded
// once. in may be the own part of out (all_gather), out that of in (reduce_scatter).
typedef struct TransportCall {
    int communicator;  // index into the setup's communicators
    const void *in;
    void *out;
    int64_t bytes;
    ReduceOp op;
    Dtype dtype;                  // reductions only
    const int64_t *leave, *come;  // bytes to each member and from each
    TransportPlace place;
    // nccl: not NULL = the operands are in device memory, and the call is enqueued into this stream and returns; NULL =
    // they are in host memory, and it returns when done. Other transports take host memory and no stream.
    void *stream;
} TransportCall;

typedef struct Transport Transport;

typedef struct TransportTable {
    const char *name;
    Status (*open)(const TransportSetup *setup, Arena *arena, Transport **transport, Error *error);
    void (*close)(Transport *transport);
    // Of a barrier only communicator and place are read. A send is done when `in` may be overwritten: up to `ahead`
    // messages are buffered in the transport (nccl: those of host memory; others wait in their stream for the receive).
    Status (*run)(Transport *transport, TransportKind kind, const TransportCall *call, Error *error);
    void (*note)(Transport *transport, const TransportPlace *place);  // this rank is here now
    bool (*stop)(Transport *transport);        // stops every rank of the run; true for the first rank to do so
    bool (*poll)(const Transport *transport);  // false once the run is stopped
    // Waits for everything enqueued into streams; NULL where calls return when they are done.
    Status (*finish)(Transport *transport, Error *error);
    // Device memory that this transport transfers fastest, the same bytes in the same order on every rank, kept until
    // close. A call without a stream may have its operands there too. *memory NULL: not offered by this library. NULL
    // where any memory will do.
    Status (*memory)(Transport *transport, int64_t bytes, void **memory, Error *error);
    // Copies between there and the host, either way.
    Status (*move)(Transport *transport, void *to, const void *from, int64_t bytes, Error *error);
} TransportTable;

// USAGE where a run is larger than any transport supports.
Status transport_check_setup(const char *name, const TransportSetup *setup, Error *error);

// OK when the worker of this build has it, ENVIRONMENT when it could have it, USAGE for any other name; with a message.
Status transport_check(const char *name, Error *error);

// For an all-to-all: offset of the member's part, and how many of its bytes from `at` on are among the next `most`.
static inline int64_t transport_part_begin(const int64_t *parts, int64_t bytes, int member) {
    int64_t begin = parts ? 0 : member * bytes;
    for (int i = 0; parts && i < member; i++) {
        begin += parts[i];
    }
    return begin;
}

static inline int64_t transport_part_piece(const int64_t *parts, int64_t bytes, int member, int64_t at, int64_t most) {
    const int64_t left = (parts ? parts[member] : bytes) - at;
    return left < 0 ? 0 : left < most ? left : most;
}

static inline int64_t transport_part_largest(const int64_t *parts, int64_t bytes, int members) {
    int64_t largest = parts ? 0 : bytes;
    for (int i = 0; parts && i < members; i++) {
        largest = parts[i] > largest ? parts[i] : largest;
    }
    return largest;
}

// The transport's table, for programs that link exec_transports; the same errors.
const TransportTable *transport_find(const char *name, Error *error);

// Collectives over Open MPI's non-blocking messages, so that a wait can time out, be stopped, and yield the core. Sums
// run over the members in rank order, in the same loop as shm's (reduce.c): both transports give the same bits. Every
// member exchanges directly with every other: reduce-scatter moves (n-1)/n of the data out of each rank, all-reduce
// twice that, all-gather n-1 parts, whatever the topology; no ring or tree. Message tags are built from the
// collective's signature and number: members that disagree wait, and are told apart by the progress table, instead of
// mixing data. A message is copied and sent from the copy, so that its sender can continue; the library makes progress
// only when called, which every task of a rank without lanes in threads does. Sources: sim/SOURCES.md X1 (malloc
// tuning, cost of Open MPI's own collectives), MPI 3.1 sections 3.7, 6.4.

#define _GNU_SOURCE  // mallopt

#include "exec/transport/mpi.h"

#include <malloc.h>
#include <string.h>

#include "exec/transport/host_calls.h"
#include "exec/transport/mpi_library.h"
#include "exec/transport/reduce.h"
#include "exec/transport/watchdog.h"
#include "sim/base/integer.h"

enum {
    SMALL_REDUCE_BYTES = 4096,  // below, every member sends everything and sums it: one exchange instead of two
    ROW_BYTES = 256 << 10,      // staged per member at a time: some rows fit a second-level cache
    MESSAGE_BYTES = 64 << 20,   // most in one message: MPI counts in int
    YIELDS = 100,               // polls before sleeping between them: some 50 us where nothing else wants the core
    TAG_BITS = 30,              // Open MPI's tags go up to INT_MAX
    PARTS_MOST = 4,             // of one message, MESSAGE_BYTES each
};
static const double NAP_S = 50e-6;

// Messages of a link in flight: a slot for each that may be ahead of its receive.
typedef struct MpiOutbox {
    char *places;
    MPI_Request (*requests)[PARTS_MOST];  // for each slot
    int count, next;
} MpiOutbox;

typedef struct MpiMember {
    MPI_Comm group;  // ranked in group order
    int size, index;
    int ranks[TRANSPORT_MAX_WORLD];
    ProgressCell *cell;
    int tag;                // of the current call
    MPI_Request *requests;  // receives by member, then sends by member
    char *staging;          // a row per member
    MpiOutbox outbox;       // of a link's sender
    MPI_Request arriving[PARTS_MOST];
} MpiMember;

struct Transport {
    MpiLibrary library;
    TransportSetup setup;
    MpiMember *members;
    ProgressRow *row;
    ProgressTable table;  // with its own row only
    atomic_int stopped;
    bool begun;       // the library is initialised
    atomic_int torn;  // a call failed: messages may be in flight
};

// ---------------------------------------------------------------------------------------------- open and close

static Status mpi_words(const Transport *mpi, const char *what, int code, Error *error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    mpi->library.error_string(code, text, &length);
    return error_set(error, STATUS_ENVIRONMENT, "MPI: %s: %s", what, text);
}

#define MPI_TRY(call, what)                                                                                            \
    do {                                                                                                               \
        const int code_ = (call);                                                                                      \
        if (code_ != MPI_SUCCESS) {                                                                                    \
            return mpi_words(mpi, what, code_, error);                                                                 \
        }                                                                                                              \
    } while (0)

// Keeps glibc from returning the library's temporaries to the kernel each time: 2 to 3.6 times on large reductions
// (sim/SOURCES.md X1).
static void malloc_tune(void) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 2147483647);
    mallopt(M_TOP_PAD, 64 << 20);
}

static Status library_begin(Transport *mpi, Error *error) {
    const int wanted = mpi->setup.concurrent ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
    int given, rank, world;
    malloc_tune();
    TRY(mpi_library_open(&mpi->library, error));
    MPI_TRY(mpi->library.init_thread(NULL, NULL, wanted, &given), "start");
    mpi->begun = true;
    mpi->library.comm_set_errhandler(mpi->library.world, mpi->library.errors_return);
    FAIL_IF(given < wanted, error, STATUS_ENVIRONMENT, "MPI: this library does not serve several threads at a time");
    mpi->library.comm_rank(mpi->library.world, &rank);
    mpi->library.comm_size(mpi->library.world, &world);
    FAIL_IF(world != mesh_world(&mpi->setup.mesh) || rank != mpi->setup.rank, error, STATUS_ENVIRONMENT,
            "MPI started this process as rank %d of %d, the run as rank %d of %d", rank, world, mpi->setup.rank,
            mesh_world(&mpi->setup.mesh));
    return STATUS_OK;
}

static Status outbox_open(const Transport *mpi, const Communicator *spec, MpiOutbox *box, Arena *arena, Error *error) {
    const int count = spec->ahead;
    FAIL_IF(spec->message_bytes > (int64_t)PARTS_MOST * MESSAGE_BYTES, error, STATUS_USAGE,
            "transport mpi sends messages of up to %d MiB, lane %s has one of %lld", PARTS_MOST * (MESSAGE_BYTES >> 20),
            spec->name, (long long)spec->message_bytes >> 20);
    box->count = count;
    box->places = malloc((size_t)(count * spec->message_bytes));
    box->requests = arena_alloc(arena, (size_t)count * sizeof *box->requests);
    FAIL_IF(!box->places, error, STATUS_ENVIRONMENT, "MPI: no memory for messages of lane %s", spec->name);
    for (int i = 0; i < count * PARTS_MOST; i++) {
        box->requests[i / PARTS_MOST][i % PARTS_MOST] = mpi->library.no_request;
    }
    return STATUS_OK;
}

// Every rank splits the world once per communicator, in the same order: no group is created by its members alone.
static Status member_begin(Transport *mpi, int communicator, Arena *arena, Error *error) {
    const TransportSetup *setup = &mpi->setup;
    const Communicator *spec = &setup->communicators[communicator];
    MpiMember *member = &mpi->members[communicator];
    const TransportGroup group = transport_group(&setup->mesh, spec, setup->rank);
    member->size = group.size;
    member->index = group.index;
    member->cell = &mpi->row->cells[communicator];
    memcpy(member->ranks, group.ranks, sizeof member->ranks);
    MPI_TRY(mpi->library.comm_split(mpi->library.world, group.ranks[0], member->index, &member->group), "make a group");
    mpi->library.comm_set_errhandler(member->group, mpi->library.errors_return);
    member->requests = ARENA_ARRAY(arena, MPI_Request, 2 * (int64_t)member->size);
    if (member->size > 1) {
        member->staging = aligned_alloc(PROGRESS_LINE_BYTES, (size_t)member->size * ROW_BYTES);
        FAIL_IF(!member->staging, error, STATUS_ENVIRONMENT, "MPI: no memory to stage messages");
    }
    const bool sends = spec->link.step != 0 && member->size > 1 && member->index == 0;
    return sends ? outbox_open(mpi, spec, &member->outbox, arena, error) : STATUS_OK;
}

static Status mpi_open(const TransportSetup *setup, Arena *arena, Transport **transport, Error *error) {
    TRY(transport_check_setup("mpi", setup, error));
    Transport *mpi = ARENA_NEW(arena, Transport);
    *transport = mpi;
    mpi->setup = *setup;
    mpi->row = setup->row;
    mpi->table = progress_table_from(setup, NULL);
    ASSERT(mpi->row);
    progress_row_join(mpi->row);
    progress_row_meet(mpi->row, true);
    TRY(library_begin(mpi, error));
    mpi->members = ARENA_ARRAY(arena, MpiMember, setup->communicator_count);
    for (int i = 0; i < setup->communicator_count; i++) {
        TRY(member_begin(mpi, i, arena, error));
    }
    progress_row_meet(mpi->row, false);
    return STATUS_OK;
}

// Memory that the library may still read is not freed.
static void mpi_close(Transport *mpi) {
    const bool torn = atomic_load(&mpi->torn) != 0;
    for (int i = 0; mpi->members && i < mpi->setup.communicator_count && !torn; i++) {
        free(mpi->members[i].staging);
        MpiOutbox *box = &mpi->members[i].outbox;
        if (box->count > 0) {
            mpi->library.waitall(box->count * PARTS_MOST, box->requests[0], MPI_STATUSES_IGNORE);
            free(box->places);
        }
    }
    if (mpi->begun && !torn) {
        mpi->library.finalize();
    }
}

// ---------------------------------------------------------------------------------------------- waiting

// Requests of the current call.
typedef struct Waiting {
    const TransportCall *call;
    MPI_Request *requests;
    int count;
    int peer;  // of a message: its other rank; -1: the member's own requests, or those of all members
} Waiting;

// Members whose messages have not arrived; if all have, those that did not take ours.
static Status late(const Transport *mpi, const Waiting *waiting, double waited_s, Error *error) {
    const TransportCall *call = waiting->call;
    MpiMember *member = &mpi->members[call->communicator];
    char whom[256] = "", rank[16];
    if (waiting->peer >= 0) {
        snprintf(whom, sizeof whom, "rank %d", waiting->peer);
    }
    for (int half = 0; half < 2 && !*whom && waiting->count > 1; half++) {
        for (int i = 0; i < member->size; i++) {
            int done = 1;
            mpi->library.test(&member->requests[half * member->size + i], &done, MPI_STATUS_IGNORE);
            if (!done) {
                snprintf(rank, sizeof rank, "rank %d", member->ranks[i]);
                progress_list_add(whom, sizeof whom, rank);
            }
        }
    }
    return error_set(error, STATUS_ENVIRONMENT, "lane %s, %s: %s waited %.1f s for %s",
                     mpi->setup.communicators[call->communicator].name,
                     progress_call_words(&mpi->table, mpi->setup.rank, progress_view(member->cell)).text,
                     progress_row_words(&mpi->table, mpi->setup.rank, false).text, waited_s,
                     *whom ? whom : "all others to meet");
}

// Waits until all requests are done; drives the library, and checks the clock and the stop flag from time to time.
static Status requests_wait(Transport *mpi, const Waiting *waiting, Error *error) {
    Wait wait = {.lane = mpi->setup.communicators[waiting->call->communicator].name, .limit_s = mpi->setup.timeout_s};
    for (int looks = 1;; looks++) {
        int done = 0;
        MPI_TRY(mpi->library.testall(waiting->count, waiting->requests, &done, MPI_STATUSES_IGNORE), "a message");
        if (done) {
            return STATUS_OK;
        }
        if (looks % 64 == 0) {
            TRY(wait_look(&wait, atomic_load_explicit(&mpi->stopped, memory_order_relaxed) != 0, error));
            FAIL_WITH(wait_is_over(&wait), late(mpi, waiting, wait.waited_s, error));
        }
        if (looks >= mpi->setup.spins) {
            wait_pause(looks - mpi->setup.spins, YIELDS, NAP_S);
        }
    }
}

static Status members_wait(Transport *mpi, const TransportCall *call, int count, Error *error) {
    return requests_wait(mpi, &(Waiting){call, mpi->members[call->communicator].requests, count, -1}, error);
}

// ---------------------------------------------------------------------------------------------- exchanges

// One side of an exchange: the message of member i begins at + i * stride and has `unit` bytes, fewer where it would
// extend past `end` bytes; with parts of different sizes, those from `done` on.
typedef struct Way {
    char *at;
    int64_t stride, unit, end;
    const int64_t *parts;
    int64_t done;
} Way;

static char *way_at(const Way *way, int i) {
    return way->at + transport_part_begin(way->parts, way->stride, i) + way->done;
}

static int way_bytes(const Way *way, int i) {
    const int64_t left = way->parts ? way->parts[i] - way->done : way->end - i * way->stride;
    return (int)(left < 0 ? 0 : int_min(left, way->unit));
}

static Status exchange(Transport *mpi, const TransportCall *call, const Way *out, const Way *in, Error *error) {
    MpiMember *member = &mpi->members[call->communicator];
    for (int i = 0; i < member->size; i++) {
        MPI_Request *request = &member->requests[i];
        *request = mpi->library.no_request;
        if (i != member->index && way_bytes(in, i) > 0) {
            MPI_TRY(mpi->library.irecv(way_at(in, i), way_bytes(in, i), mpi->library.byte, i, member->tag,
                                       member->group, request),
                    "receive");
        }
    }
    for (int k = 0; k < member->size; k++) {  // each starts with a different peer: no member is everyone's first
        const int i = (member->index + k) % member->size;
        MPI_Request *request = &member->requests[member->size + i];
        *request = mpi->library.no_request;
        if (i != member->index && way_bytes(out, i) > 0) {
            MPI_TRY(mpi->library.isend(way_at(out, i), way_bytes(out, i), mpi->library.byte, i, member->tag,
                                       member->group, request),
                    "send");
        }
    }
    return members_wait(mpi, call, 2 * member->size, error);
}

// What MPI only reads passes through the same struct as what it writes.
static char *readable(const void *data) {
    return (char *)(uintptr_t)data;
}

// Staged rows of the others and this member's own in place, in member order.
static void reduce(const MpiMember *member, const void *own, int64_t bytes, Reduction how, void *out) {
    const void *rows[TRANSPORT_MAX_WORLD];
    for (int i = 0; i < member->size; i++) {
        rows[i] = i == member->index ? own : (const void *)(member->staging + (int64_t)i * ROW_BYTES);
    }
    reduce_rows(rows, member->size, bytes, how, out);
}

static Status all_gather(Transport *mpi, const TransportCall *call, Error *error) {
    MpiMember *member = &mpi->members[call->communicator];
    for (int64_t at = 0; at < call->bytes; at += MESSAGE_BYTES) {
        const int64_t bytes = int_min(MESSAGE_BYTES, call->bytes - at);
        const Way out = {readable((const char *)call->in + at), 0, bytes, .end = INT64_MAX};
        const Way in = {(char *)call->out + at, call->bytes, bytes, .end = INT64_MAX};
        TRY(exchange(mpi, call, &out, &in, error));
    }
    host_copy((char *)call->out + member->index * call->bytes, call->in, call->bytes);
    return STATUS_OK;
}

static Status reduce_scatter(Transport *mpi, const TransportCall *call, Error *error) {
    MpiMember *member = &mpi->members[call->communicator];
    const char *in = call->in, *own = in + member->index * call->bytes;
    for (int64_t at = 0; at < call->bytes; at += ROW_BYTES) {
        const int64_t bytes = int_min(ROW_BYTES, call->bytes - at);
        const Way out = {readable(in + at), call->bytes, bytes, .end = INT64_MAX};
        const Way rows = {member->staging, ROW_BYTES, bytes, .end = INT64_MAX};
        TRY(exchange(mpi, call, &out, &rows, error));
        reduce(member, own + at, bytes, reduction_of(call), (char *)call->out + at);
    }
    return STATUS_OK;
}

// Every member reduces its share of a chunk, then all gather the shares.
static Status all_reduce_shared(Transport *mpi, const TransportCall *call, int64_t at, int64_t bytes, Error *error) {
    MpiMember *member = &mpi->members[call->communicator];
    const int64_t unit = reduction_unit(reduction_of(call));
    const int64_t share = (bytes / unit + member->size - 1) / member->size * unit;
    const int64_t first = int_min(bytes, member->index * share), mine = int_min(share, bytes - first);
    const char *in = (const char *)call->in + at;
    char *out = (char *)call->out + at;
    const Way parts = {readable(in), share, share, .end = bytes},
              rows = {member->staging, ROW_BYTES, mine, .end = INT64_MAX};
    TRY(exchange(mpi, call, &parts, &rows, error));
    reduce(member, in + first, mine, reduction_of(call), out + first);
    const Way sums = {out + first, 0, mine, .end = INT64_MAX}, all = {out, share, share, .end = bytes};
    return exchange(mpi, call, &sums, &all, error);
}

static Status all_reduce(Transport *mpi, const TransportCall *call, Error *error) {
    MpiMember *member = &mpi->members[call->communicator];
    const int64_t most = (int64_t)ROW_BYTES * member->size;
    if (call->bytes > SMALL_REDUCE_BYTES) {
        for (int64_t at = 0; at < call->bytes; at += most) {
            TRY(all_reduce_shared(mpi, call, at, int_min(most, call->bytes - at), error));
        }
        return STATUS_OK;
    }
    const Way out = {readable(call->in), 0, call->bytes, .end = INT64_MAX},
              rows = {member->staging, ROW_BYTES, call->bytes, .end = INT64_MAX};
    TRY(exchange(mpi, call, &out, &rows, error));
    reduce(member, call->in, call->bytes, reduction_of(call), call->out);
    return STATUS_OK;
}

// A part to each other member and one from each.
static Status exchange_parts(Transport *mpi, const TransportCall *call, const int64_t *leave, const int64_t *come,
                             Error *error) {
    const MpiMember *member = &mpi->members[call->communicator];
    const int64_t bytes = call->bytes;
    const int64_t leaves = transport_part_largest(leave, bytes, member->size);
    const int64_t comes = transport_part_largest(come, bytes, member->size), largest = leaves > comes ? leaves : comes;
    for (int64_t at = 0; at < largest; at += MESSAGE_BYTES) {
        const int64_t unit = leave ? MESSAGE_BYTES : int_min(MESSAGE_BYTES, bytes - at);
        const Way out = {readable(call->in), bytes, unit, INT64_MAX, leave, at};
        const Way in = {call->out, bytes, unit, INT64_MAX, come, at};
        TRY(exchange(mpi, call, &out, &in, error));
    }
    return STATUS_OK;
}

static Status send_recv(Transport *mpi, const TransportCall *call, Error *error) {
    const MpiMember *member = &mpi->members[call->communicator];
    int64_t leave[TRANSPORT_MAX_WORLD] = {0}, come[TRANSPORT_MAX_WORLD] = {0};
    leave[(member->index + 1) % member->size] = call->bytes;
    come[(member->index + member->size - 1) % member->size] = call->bytes;
    return exchange_parts(mpi, call, leave, come, error);
}

static Status all_to_all(Transport *mpi, const TransportCall *call, Error *error) {
    TRY(exchange_parts(mpi, call, call->leave, call->come, error));
    host_keep_part(call, mpi->members[call->communicator].index);
    return STATUS_OK;
}

static Status barrier(Transport *mpi, const TransportCall *call, Error *error) {
    MpiMember *member = &mpi->members[call->communicator];
    MPI_TRY(mpi->library.ibarrier(member->group, &member->requests[0]), "barrier");
    return members_wait(mpi, call, 1, error);
}

// ---------------------------------------------------------------------------------------------- messages

static Status give(Transport *mpi, const TransportCall *call, Error *error) {
    MpiMember *member = &mpi->members[call->communicator];
    MpiOutbox *box = &member->outbox;
    ASSERT(box->count > 0);
    const int at = box->next;
    box->next = (at + 1) % box->count;
    const Waiting room = {call, box->requests[at], PARTS_MOST, member->ranks[1]};
    TRY(requests_wait(mpi, &room, error));
    char *place = box->places + at * mpi->setup.communicators[call->communicator].message_bytes;
    host_copy(place, call->in, call->bytes);
    for (int64_t done = 0, part = 0; done < call->bytes; done += MESSAGE_BYTES, part++) {
        MPI_TRY(mpi->library.isend(place + done, (int)int_min(MESSAGE_BYTES, call->bytes - done), mpi->library.byte, 1,
                                   member->tag, member->group, &box->requests[at][part]),
                "send");
    }
    return STATUS_OK;
}

static Status take(Transport *mpi, const TransportCall *call, Error *error) {
    MpiMember *member = &mpi->members[call->communicator];
    int parts = 0;
    for (int64_t done = 0; done < call->bytes; done += MESSAGE_BYTES, parts++) {
        MPI_TRY(mpi->library.irecv((char *)call->out + done, (int)int_min(MESSAGE_BYTES, call->bytes - done),
                                   mpi->library.byte, 0, member->tag, member->group, &member->arriving[parts]),
                "receive");
    }
    return requests_wait(mpi, &(Waiting){call, member->arriving, parts, member->ranks[0]}, error);
}

// Progresses messages waiting to be received while this rank computes: without lanes in threads nothing else calls MPI.
static void messages_move(Transport *mpi) {
    for (int i = 0; i < mpi->setup.communicator_count && !mpi->setup.concurrent; i++) {
        const MpiOutbox *box = &mpi->members[i].outbox;
        int done;
        if (box->count > 0) {
            mpi->library.testall(box->count * PARTS_MOST, box->requests[0], &done, MPI_STATUSES_IGNORE);
        }
    }
}

// ---------------------------------------------------------------------------------------------- the table

typedef Status Body(Transport *mpi, const TransportCall *call, Error *error);

// Publishes the call in the progress table while it runs.
static Status mpi_run(Transport *mpi, TransportKind kind, const TransportCall *call, Error *error) {
    static Body *const bodies[TRANSPORT_COUNT] = {
        [TRANSPORT_ALL_GATHER] = all_gather,
        [TRANSPORT_REDUCE_SCATTER] = reduce_scatter,
        [TRANSPORT_ALL_REDUCE] = all_reduce,
        [TRANSPORT_SEND_RECV] = send_recv,
        [TRANSPORT_BARRIER] = barrier,
        [TRANSPORT_ALL_TO_ALL] = all_to_all,
        [TRANSPORT_SEND] = give,
        [TRANSPORT_RECEIVE] = take,
    };
    MpiMember *member = &mpi->members[call->communicator];
    const Communicator *spec = &mpi->setup.communicators[call->communicator];
    if (member->size == 1) {
        return host_run_alone(kind, call);
    }
    progress_cell_enter(member->cell, spec, kind, call, member->ranks[kind == TRANSPORT_SEND]);
    // Tags distinguish messages of different places (MPI keeps order within one), and collectives by number.
    const unsigned number = is_message(kind) ? 0 : progress_cell_round(member->cell);
    member->tag = (int)((collective_signature(spec, kind, call) + number) & ((1u << TAG_BITS) - 1));
    const Status status = bodies[kind](mpi, call, error);
    if (status != STATUS_OK) {
        atomic_store(&mpi->torn, 1);
        return status;
    }
    if (is_message(kind)) {
        progress_cell_count_message(member->cell);
    }
    progress_cell_leave(mpi->row, member->cell);
    return STATUS_OK;
}

static void mpi_note(Transport *mpi, const TransportPlace *place) {
    progress_row_note(mpi->row, place);
    messages_move(mpi);
}

// Stops this process only: the launcher ends the others.
static bool mpi_stop(Transport *mpi) {
    atomic_store(&mpi->torn, 1);
    return atomic_exchange(&mpi->stopped, 1) == 0;
}

static bool mpi_poll(const Transport *mpi) {
    return atomic_load_explicit(&((Transport *)(uintptr_t)mpi)->stopped, memory_order_relaxed) == 0;
}

const TransportTable transport_mpi = {
    .name = "mpi",
    .open = mpi_open,
    .close = mpi_close,
    .run = mpi_run,
    .note = mpi_note,
    .stop = mpi_stop,
    .poll = mpi_poll,
};

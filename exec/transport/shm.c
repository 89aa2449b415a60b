// Collectives over staging slots. A collective is a chain of rounds: a rank writes its chunk into the round's slot
// half, passes the group's gate, and reads the others' halves. With two halves one gate per round suffices: a half is
// overwritten two rounds later, and no rank passes the gate in between before all have read it. Messages go through
// pipes with room for all that may be ahead of their receives, so two neighbours may both send first. Against Open MPI
// and MPICH: sim/SOURCES.md X1. Does not model or use topology: every rank reads every other rank's slot.

#define _GNU_SOURCE  // syscall

#include "exec/transport/shm.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "exec/transport/host_calls.h"
#include "exec/transport/reduce.h"
#include "exec/transport/shm_segment.h"
#include "exec/transport/watchdog.h"
#include "sim/base/integer.h"

static const int64_t SMALL_REDUCE_BYTES = 4096;  // below, every rank sums everything: one gate instead of two
static const long SLICE_NS = 50 * 1000 * 1000;   // longest sleep between checks of the stop flag and the clock
// Parts of a slot begin at multiples of a vector; the smallest slot has one per rank at the maximum world size.
_Static_assert(SHM_SLOT_BYTES_LEAST / TRANSPORT_MAX_WORLD >= SHM_SHARE_GRAIN, "a share of a slot must not be empty");
// One communicator as this rank sees it.
typedef struct ShmMember {
    const Communicator *spec;
    int size, index;
    uint32_t rounds;
    bool begins;  // the next round is the first of its collective
    ShmGate *gate;
    ProgressCell *cells[TRANSPORT_MAX_WORLD];  // by group index
    char *slots[TRANSPORT_MAX_WORLD];
    int64_t slot_bytes;
    int ranks[TRANSPORT_MAX_WORLD];
} ShmMember;

struct Transport {
    TransportSetup setup;
    ShmLayout layout;
    void *memory;  // NULL for one rank without a segment
    ShmMember *members;
    ProgressTable table;
    ProgressRow *here;  // this rank's row; NULL without a segment
};

static void member_begin(Transport *shm, int communicator) {
    const TransportSetup *setup = &shm->setup;
    ShmMember *member = &shm->members[communicator];
    member->spec = &setup->communicators[communicator];
    const TransportGroup group = transport_group(&setup->mesh, member->spec, setup->rank);
    member->size = group.size;
    member->index = group.index;
    member->slot_bytes = shm->layout.slot_bytes[communicator];
    if (member->size == 1) {
        return;
    }
    for (int i = 0; i < member->size; i++) {
        const int rank = member->ranks[i] = group.ranks[i];
        member->cells[i] = &shm->table.ranks[rank].cells[communicator];
        member->slots[i] = shm_slot(shm->memory, &shm->layout, communicator, rank);
    }
    member->gate = shm_gate(shm->memory, &shm->layout, communicator, member->ranks[0]);
}

static Status shm_open_transport(const TransportSetup *setup, Arena *arena, Transport **transport, Error *error) {
    TRY(transport_check_setup("shm", setup, error));
    Transport *shm = ARENA_NEW(arena, Transport);
    shm->setup = *setup;
    shm->layout = shm_layout(&setup->mesh, setup->communicators, setup->communicator_count);
    if (mesh_world(&setup->mesh) > 1 || setup->segment_fd >= 0) {
        TRY(shm_segment_attach(setup->segment_fd, &shm->layout, &shm->memory, error));
        shm->table = progress_table_from(setup, shm_progress_table(shm->memory, &shm->layout));
        shm->here = &shm->table.ranks[setup->rank];
        progress_row_join(shm->here);
    }
    shm->members = ARENA_ARRAY(arena, ShmMember, setup->communicator_count);
    for (int i = 0; i < setup->communicator_count; i++) {
        member_begin(shm, i);
    }
    *transport = shm;
    return STATUS_OK;
}

const ProgressTable *shm_table_of(const Transport *shm) {
    return &shm->table;
}

static void shm_close(Transport *shm) {
    if (shm->memory) {
        munmap(shm->memory, (size_t)shm->layout.bytes);
    }
}

// ---------------------------------------------------------------------------------------------- bells and gates

static bool shm_poll(const Transport *shm) {
    return !shm->memory || atomic_load_explicit(&((ShmHead *)shm->memory)->stopped, memory_order_relaxed) == 0;
}

static bool shm_stop(Transport *shm) {
    if (!shm->memory) {
        return true;
    }
    ShmHead *head = shm->memory;
    int nobody = SHM_NO_RANK;
    const bool first = atomic_compare_exchange_strong(&head->first_failure, &nobody, shm->setup.rank);
    atomic_store(&head->stopped, 1);
    return first;
}

static void shm_note(Transport *shm, const TransportPlace *here) {
    if (shm->here) {
        progress_row_note(shm->here, here);
    }
}

static void bell_sleep(ShmBell *bell, unsigned rings) {
    const struct timespec slice = {.tv_nsec = SLICE_NS};
    atomic_fetch_add(&bell->sleepers, 1);
    syscall(SYS_futex, &bell->rings, FUTEX_WAIT, rings, &slice, NULL, 0);
    atomic_fetch_sub(&bell->sleepers, 1);
}

static void bell_ring(ShmBell *bell) {
    atomic_fetch_add(&bell->rings, 1);
    if (atomic_load(&bell->sleepers) > 0) {
        syscall(SYS_futex, &bell->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

// Waits until the bell has been rung more than `rings` times.
static Status bell_wait(const Transport *shm, const TransportCall *call, ShmBell *bell, unsigned rings, Error *error) {
    for (int i = 0; i < shm->setup.spins; i++) {
        if (atomic_load_explicit(&bell->rings, memory_order_acquire) != rings) {
            return STATUS_OK;
        }
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
    Wait wait = {.lane = shm->setup.communicators[call->communicator].name, .limit_s = shm->setup.timeout_s};
    while (atomic_load(&bell->rings) == rings) {
        TRY(wait_look(&wait, !shm_poll(shm), error));
        FAIL_WITH(wait_is_to_be_told(&wait, &shm->table, shm->setup.rank, call->communicator),
                  diagnose_late(&shm->table, shm->setup.rank, call->communicator, wait.waited_s, error));
        bell_sleep(bell, rings);
    }
    return STATUS_OK;
}

// All members have reached this gate; they must have come for the same collective. A signature is overwritten two
// rounds later, like a slot half.
static Status gate_agree(const Transport *shm, const ShmMember *member, const TransportCall *call, Error *error) {
    const unsigned parity = (member->rounds - 1) & 1;
    const uint64_t own = atomic_load_explicit(&member->cells[member->index]->signature[parity], memory_order_relaxed);
    for (int i = 0; i < member->size; i++) {
        if (atomic_load_explicit(&member->cells[i]->signature[parity], memory_order_relaxed) != own) {
            return diagnose_mismatch(&shm->table, shm->setup.rank, call->communicator, error);
        }
    }
    return STATUS_OK;
}

// On return every member of the group has entered this round. Advances the round.
static Status gate_pass(const Transport *shm, ShmMember *member, const TransportCall *call, Error *error) {
    ShmGate *gate = member->gate;
    member->rounds = progress_cell_round(member->cells[member->index]);
    const unsigned rings = atomic_load(&gate->bell.rings);
    if (atomic_fetch_add(&gate->arrived, 1) + 1 < (unsigned)member->size) {
        TRY(bell_wait(shm, call, &gate->bell, rings, error));
    } else {
        atomic_store(&gate->arrived, 0);
        bell_ring(&gate->bell);
    }
    const bool first = member->begins;
    member->begins = false;
    return first ? gate_agree(shm, member, call, error) : STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- rounds

// Slot half that a member uses in round `rounds` (0 = the one about to be passed).
static char *half(const ShmMember *member, int index, uint32_t rounds) {
    return member->slots[index] + (rounds & 1) * member->slot_bytes;
}

// A range of bytes in the halves of the round just passed.
typedef struct ByteRange {
    int64_t offset_bytes, bytes;
} ByteRange;

// out = sum or max over members, in rank order, of their ranges; this rank's own is at `own`, which may be `out`.
static void reduce(const ShmMember *member, ByteRange range, Reduction how, const void *own, void *out) {
    const void *rows[TRANSPORT_MAX_WORLD];
    for (int i = 0; i < member->size; i++) {
        rows[i] = i == member->index ? own : half(member, i, member->rounds - 1) + range.offset_bytes;
    }
    reduce_rows(rows, member->size, range.bytes, how, out);
}

static Status all_gather(Transport *shm, const TransportCall *call, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    char *out = call->out, *own = out + member->index * call->bytes;
    const char *in = call->in;
    for (int64_t at = 0; at < call->bytes; at += member->slot_bytes) {
        const int64_t bytes = int_min(member->slot_bytes, call->bytes - at);
        host_copy(half(member, member->index, member->rounds), in + at, bytes);
        host_copy(own + at, in + at, bytes);  // while it is in the cache
        TRY(gate_pass(shm, member, call, error));
        for (int i = 0; i < member->size; i++) {
            if (i != member->index) {
                host_copy(out + i * call->bytes + at, half(member, i, member->rounds - 1), bytes);
            }
        }
    }
    return STATUS_OK;
}

static Status reduce_scatter(Transport *shm, const TransportCall *call, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    const char *in = call->in;
    char *out = call->out;
    const int64_t share = member->slot_bytes / member->size / SHM_SHARE_GRAIN * SHM_SHARE_GRAIN;  // a member's
    for (int64_t at = 0; at < call->bytes; at += share) {
        const int64_t bytes = int_min(share, call->bytes - at);
        for (int i = 0; i < member->size; i++) {
            if (i != member->index) {
                host_copy(half(member, member->index, member->rounds) + i * share, in + i * call->bytes + at, bytes);
            }
        }
        TRY(gate_pass(shm, member, call, error));
        reduce(member, (ByteRange){member->index * share, bytes}, reduction_of(call),
               in + member->index * call->bytes + at, out + at);
    }
    return STATUS_OK;
}

// A chunk in two rounds: each member reduces its share, then all gather the shares.
static Status all_reduce_shared(Transport *shm, const TransportCall *call, int64_t at, int64_t bytes, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    const int64_t unit = reduction_unit(reduction_of(call));
    const int64_t share = (bytes / unit + member->size - 1) / member->size * unit;
    const int64_t first_mine = int_min(bytes, member->index * share), mine = int_min(share, bytes - first_mine);
    const char *in = (const char *)call->in + at;
    char *slot = half(member, member->index, member->rounds);
    host_copy(slot, in, first_mine);  // its own share need not be published
    host_copy(slot + first_mine + mine, in + first_mine + mine, bytes - first_mine - mine);
    TRY(gate_pass(shm, member, call, error));
    char *shared = half(member, member->index, member->rounds);
    reduce(member, (ByteRange){first_mine, mine}, reduction_of(call), in + first_mine, shared);
    TRY(gate_pass(shm, member, call, error));
    for (int i = 0; i < member->size; i++) {
        const int64_t first = int_min(bytes, i * share);
        host_copy((char *)call->out + at + first, half(member, i, member->rounds - 1), int_min(share, bytes - first));
    }
    return STATUS_OK;
}

static Status all_reduce(Transport *shm, const TransportCall *call, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    for (int64_t at = 0; at < call->bytes; at += member->slot_bytes) {
        const int64_t bytes = int_min(member->slot_bytes, call->bytes - at);
        if (bytes > SMALL_REDUCE_BYTES) {
            TRY(all_reduce_shared(shm, call, at, bytes, error));
            continue;
        }
        host_copy(half(member, member->index, member->rounds), (const char *)call->in + at, bytes);
        TRY(gate_pass(shm, member, call, error));
        const void *own = half(member, member->index, member->rounds - 1);  // the input may be the output
        reduce(member, (ByteRange){0, bytes}, reduction_of(call), own, (char *)call->out + at);
    }
    return STATUS_OK;
}

static Status send_recv(Transport *shm, const TransportCall *call, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    const int before = (member->index + member->size - 1) % member->size;
    for (int64_t at = 0; at < call->bytes; at += member->slot_bytes) {
        const int64_t bytes = int_min(member->slot_bytes, call->bytes - at);
        host_copy(half(member, member->index, member->rounds), (const char *)call->in + at, bytes);
        TRY(gate_pass(shm, member, call, error));
        host_copy((char *)call->out + at, half(member, before, member->rounds - 1), bytes);
    }
    return STATUS_OK;
}

// Parts of different sizes: each publishes its largest in the first round, in its own part's place, so that all make
// equally many rounds.
static void agree_on_largest(const ShmMember *member, int64_t share, int64_t *largest) {
    for (int i = 0; i < member->size; i++) {
        int64_t other;
        memcpy(&other, half(member, i, member->rounds - 1) + i * share, sizeof other);
        *largest = other > *largest ? other : *largest;
    }
}

static Status all_to_all(Transport *shm, const TransportCall *call, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    const int64_t *leave = call->leave, *come = call->come, bytes = call->bytes;
    const int64_t share = member->slot_bytes / member->size / SHM_SHARE_GRAIN * SHM_SHARE_GRAIN;  // a member's
    int64_t largest = transport_part_largest(leave, bytes, member->size);
    for (int64_t at = 0; at < largest || (leave && at == 0); at += share) {
        char *slot = half(member, member->index, member->rounds);
        host_copy(slot + member->index * share, &largest, leave && at == 0 ? (int64_t)sizeof largest : 0);
        for (int i = 0; i < member->size; i++) {
            host_copy(slot + i * share, (const char *)call->in + transport_part_begin(leave, bytes, i) + at,
                      i == member->index ? 0 : transport_part_piece(leave, bytes, i, at, share));
        }
        TRY(gate_pass(shm, member, call, error));
        for (int i = 0; i < member->size; i++) {
            host_copy((char *)call->out + transport_part_begin(come, bytes, i) + at,
                      half(member, i, member->rounds - 1) + member->index * share,
                      i == member->index ? 0 : transport_part_piece(come, bytes, i, at, share));
        }
        if (leave && at == 0) {
            agree_on_largest(member, share, &largest);
        }
    }
    host_keep_part(call, member->index);
    return STATUS_OK;
}

static Status barrier(Transport *shm, const TransportCall *call, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    return gate_pass(shm, member, call, error);
}

// ---------------------------------------------------------------------------------------------- messages

// One end of a pipe while a message goes through it.
typedef struct PipeEnd {
    const Transport *shm;
    const TransportCall *call;
    ShmPipe *pipe;
    int64_t room;
} PipeEnd;

static PipeEnd pipe_end(const Transport *shm, const TransportCall *call) {
    const int sender = shm->members[call->communicator].ranks[0];
    return (PipeEnd){.shm = shm,
                     .call = call,
                     .pipe = shm_pipe(shm->memory, &shm->layout, call->communicator, sender),
                     .room = shm->layout.room_bytes[call->communicator]};
}

// Moves this many bytes into the pipe (`from` there) or out of it (`to` there), as room or data becomes available.
static Status pipe_move(const PipeEnd *end, const char *from, char *to, int64_t bytes, Error *error) {
    ShmPipe *pipe = end->pipe;
    atomic_ullong *own = from ? &pipe->written : &pipe->taken;
    uint64_t at = atomic_load_explicit(own, memory_order_relaxed);
    for (int64_t done = 0; done < bytes;) {
        const unsigned rings = atomic_load(&pipe->bell.rings);
        const int64_t filled = (int64_t)(from ? at - atomic_load(&pipe->taken) : atomic_load(&pipe->written) - at);
        const int64_t there = from ? end->room - filled : filled, place = (int64_t)(at % (uint64_t)end->room);
        const int64_t piece = int_min(int_min(there, bytes - done), end->room - place);
        if (piece == 0) {
            bell_ring(&pipe->bell);  // the other end may be waiting for what was moved so far
            TRY(bell_wait(end->shm, end->call, &pipe->bell, rings + 1, error));
            continue;
        }
        char *room = (char *)(pipe + 1) + place;
        host_copy(from ? room : to + done, from ? from + done : room, piece);
        at += (uint64_t)piece;
        done += piece;
        atomic_store(own, at);
    }
    return STATUS_OK;
}

static Status pipe_give(Transport *shm, const TransportCall *call, Error *error) {
    const PipeEnd end = pipe_end(shm, call);
    const Communicator *spec = &shm->setup.communicators[call->communicator];
    const ShmMessage head = {collective_signature(spec, TRANSPORT_SEND, call), call->bytes};
    TRY(pipe_move(&end, (const char *)&head, NULL, sizeof head, error));
    TRY(pipe_move(&end, call->in, NULL, call->bytes, error));
    bell_ring(&end.pipe->bell);
    return STATUS_OK;
}

static Status pipe_take(Transport *shm, const TransportCall *call, Error *error) {
    const PipeEnd end = pipe_end(shm, call);
    const Communicator *spec = &shm->setup.communicators[call->communicator];
    ShmMessage head;
    TRY(pipe_move(&end, NULL, (char *)&head, sizeof head, error));
    if (head.signature != collective_signature(spec, TRANSPORT_RECEIVE, call)) {
        return diagnose_message(&shm->table, shm->setup.rank, call->communicator, error);
    }
    TRY(pipe_move(&end, NULL, call->out, call->bytes, error));
    bell_ring(&end.pipe->bell);
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- the table

typedef Status Body(Transport *shm, const TransportCall *call, Error *error);

// Publishes the call in the progress table while it runs.
static Status shm_run(Transport *shm, TransportKind kind, const TransportCall *call, Error *error) {
    static Body *const bodies[TRANSPORT_COUNT] = {
        [TRANSPORT_ALL_GATHER] = all_gather, [TRANSPORT_REDUCE_SCATTER] = reduce_scatter,
        [TRANSPORT_ALL_REDUCE] = all_reduce, [TRANSPORT_SEND_RECV] = send_recv,
        [TRANSPORT_BARRIER] = barrier,       [TRANSPORT_ALL_TO_ALL] = all_to_all,
        [TRANSPORT_SEND] = pipe_give,        [TRANSPORT_RECEIVE] = pipe_take,
    };
    ShmMember *member = &shm->members[call->communicator];
    if (member->size == 1) {
        return host_run_alone(kind, call);
    }
    ProgressCell *cell = member->cells[member->index];
    progress_cell_enter(cell, member->spec, kind, call, member->ranks[kind == TRANSPORT_SEND]);
    member->begins = true;
    TRY(bodies[kind](shm, call, error));
    if (is_message(kind)) {
        progress_cell_count_message(cell);
    }
    progress_cell_leave(shm->here, cell);
    return STATUS_OK;
}

const TransportTable transport_shm = {
    .name = "shm",
    .open = shm_open_transport,
    .close = shm_close,
    .run = shm_run,
    .note = shm_note,
    .stop = shm_stop,
    .poll = shm_poll,
};

// Collectives over staging slots. A collective is a chain of rounds: a rank puts its chunk into the slot half of the
// round, passes the group's gate, and reads the others' halves. Two halves make one gate per round enough: a half is
// written again two rounds later, and nobody passes the gate between before everybody has read. Idea: executor.md 6.3
// (own shm against Open MPI and MPICH). Does not model or use topology: every rank reads every other rank's slot.

#define _GNU_SOURCE  // syscall

#include "exec/transport/shm.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "exec/transport/shm_blame.h"
#include "exec/transport/shm_segment.h"

enum { SUM_BLOCK = 1024 };                       // floats summed at a time: stays in the first-level cache
static const int64_t SMALL_REDUCE_BYTES = 4096;  // below, every rank sums everything: one gate instead of two
static const long SLICE_NS = 50 * 1000 * 1000;   // longest sleep between looks at the stop flag and the clock

// One communicator as this rank sees it.
typedef struct ShmMember {
    const Communicator *spec;
    int size, index;
    uint32_t rounds;
    ShmGate *gate;
    ShmSeat *seats[TRANSPORT_MAX_WORLD];  // by group index
    char *slots[TRANSPORT_MAX_WORLD];
    int ranks[TRANSPORT_MAX_WORLD];
} ShmMember;

struct Transport {
    TransportSetup setup;
    ShmLayout layout;
    void *memory;  // NULL for one rank without a segment
    ShmMember *members;
};

static void member_begin(Transport *shm, int communicator) {
    const TransportSetup *setup = &shm->setup;
    const MeshCoordinates at = mesh_coordinates(&setup->mesh, setup->rank);
    ShmMember *member = &shm->members[communicator];
    member->spec = &setup->communicators[communicator];
    member->size = mesh_group_size(&setup->mesh, member->spec->axes);
    member->index = mesh_group_index(&setup->mesh, member->spec->axes, &at);
    if (member->size == 1) {
        return;
    }
    for (int i = 0; i < member->size; i++) {
        const int rank = mesh_group_member(&setup->mesh, member->spec->axes, &at, i);
        member->ranks[i] = rank;
        member->seats[i] = shm_seat(shm->memory, &shm->layout, communicator, rank);
        member->slots[i] = shm_slot(shm->memory, &shm->layout, communicator, rank);
    }
    member->gate = shm_gate(shm->memory, &shm->layout, communicator, member->ranks[0]);
}

static Status shm_open_transport(const TransportSetup *setup, Arena *arena, Transport **transport, Error *error) {
    const int world = mesh_world(&setup->mesh);
    if (world > TRANSPORT_MAX_WORLD || setup->communicator_count > TRANSPORT_MAX_COMMUNICATORS) {
        return error_set(error, STATUS_USAGE, "transport shm runs up to %d ranks and %d communicators, not %d and %d",
                         TRANSPORT_MAX_WORLD, TRANSPORT_MAX_COMMUNICATORS, world, setup->communicator_count);
    }
    Transport *shm = ARENA_NEW(arena, Transport);
    shm->setup = *setup;
    shm->layout = shm_layout(&setup->mesh, setup->communicator_count);
    if (world > 1 || setup->segment_fd >= 0) {
        TRY(shm_segment_attach(setup->segment_fd, &shm->layout, &shm->memory, error));
    }
    shm->members = ARENA_ARRAY(arena, ShmMember, setup->communicator_count);
    for (int i = 0; i < setup->communicator_count; i++) {
        member_begin(shm, i);
    }
    *transport = shm;
    return STATUS_OK;
}

static void shm_close(Transport *shm) {
    if (shm->memory) {
        munmap(shm->memory, (size_t)shm->layout.bytes);
    }
}

// ---------------------------------------------------------------------------------------------- the gate

static double clock_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

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
    if (!shm->memory) {
        return;
    }
    ShmPlace *place = shm_place(shm->memory, &shm->layout, shm->setup.rank);
    atomic_store_explicit(&place->step, here->step, memory_order_relaxed);
    atomic_store_explicit(&place->layer, here->layer, memory_order_relaxed);
    atomic_store_explicit(&place->micro_batch, here->micro_batch, memory_order_relaxed);
    atomic_store_explicit(&place->task, here->task, memory_order_relaxed);
}

static const char *place_words(const Transport *shm, const TransportPlace *place, char *out, size_t out_bytes) {
    out[0] = '\0';
    return shm->setup.describe ? shm->setup.describe(shm->setup.context, place, out, out_bytes) : out;
}

static TransportPlace place_of(const Transport *shm, int rank) {
    const ShmSegment segment = {.fd = -1, .memory = shm->memory, .bytes = shm->layout.bytes};
    return shm_segment_place(&segment, rank);
}

typedef struct Words {
    char text[ERROR_MESSAGE_BYTES / 2];
    size_t used;
} Words;

static void words_rank(Words *words, int rank, const char *seen_in) {
    const int more =
        snprintf(words->text + words->used, sizeof words->text - words->used, "%srank %d%s%s%s",
                 words->used ? ", " : "", rank, *seen_in ? " (last seen in " : "", seen_in, *seen_in ? ")" : "");
    words->used += more > 0 && words->used + (size_t)more < sizeof words->text ? (size_t)more : 0;
}

// Names who holds this rank up, and what each was last seen doing; then who else is held up.
static Status gate_late(const Transport *shm, const ShmMember *member, const TransportCall *call, double waited_s,
                        Error *error) {
    char here[160], there[160];
    Words culprits = {.text = ""}, others = {.text = ""};
    ShmBlame blame;
    shm_blame(&(ShmView){&shm->setup, &shm->layout, shm->memory}, shm->setup.rank, &blame);
    for (int rank = 0; rank < shm->layout.world; rank++) {
        const TransportPlace place = place_of(shm, rank);
        if (blame.culprit[rank] && rank != shm->setup.rank) {
            words_rank(&culprits, rank, place_words(shm, &place, there, sizeof there));
        } else if (blame.held_up[rank]) {
            words_rank(&others, rank, "");
        }
    }
    return error_set(error, STATUS_ENVIRONMENT, "lane %s, %s: waited %.1f s for %s%s%s", member->spec->name,
                     place_words(shm, &call->place, here, sizeof here), waited_s,
                     culprits.used ? culprits.text : "nobody that is missing", others.used ? "; held up as well: " : "",
                     others.text);
}

static void gate_sleep(ShmGate *gate, unsigned generation) {
    const struct timespec slice = {.tv_nsec = SLICE_NS};
    atomic_fetch_add(&gate->sleepers, 1);
    syscall(SYS_futex, &gate->generation, FUTEX_WAIT, generation, &slice, NULL, 0);
    atomic_fetch_sub(&gate->sleepers, 1);
}

static Status gate_wait(const Transport *shm, const ShmMember *member, const TransportCall *call, unsigned generation,
                        Error *error) {
    ShmGate *gate = member->gate;
    for (int i = 0; i < shm->setup.spins; i++) {
        if (atomic_load_explicit(&gate->generation, memory_order_acquire) != generation) {
            return STATUS_OK;
        }
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
    const double begin_s = clock_s();
    while (atomic_load(&gate->generation) == generation) {
        if (!shm_poll(shm)) {
            return error_set(error, STATUS_ENVIRONMENT, "lane %s: stopped because another rank failed",
                             member->spec->name);
        }
        const double waited_s = clock_s() - begin_s;
        if (waited_s > shm->setup.timeout_s) {
            return gate_late(shm, member, call, waited_s, error);
        }
        gate_sleep(gate, generation);
    }
    return STATUS_OK;
}

// Everybody of the group has entered this round when it returns. Advances the round.
static Status gate_pass(const Transport *shm, ShmMember *member, const TransportCall *call, Error *error) {
    ShmGate *gate = member->gate;
    member->rounds++;
    atomic_store_explicit(&member->seats[member->index]->rounds, member->rounds, memory_order_release);
    const unsigned generation = atomic_load(&gate->generation);
    if (atomic_fetch_add(&gate->arrived, 1) + 1 < (unsigned)member->size) {
        return gate_wait(shm, member, call, generation, error);
    }
    atomic_store(&gate->arrived, 0);
    atomic_fetch_add(&gate->generation, 1);
    if (atomic_load(&gate->sleepers) > 0) {
        syscall(SYS_futex, &gate->generation, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- rounds

// Slot half that a member uses in round `rounds` (0 = the one about to be passed).
static char *half(const Transport *shm, const ShmMember *member, int index, uint32_t rounds) {
    return member->slots[index] + (rounds & 1) * shm->layout.slot_bytes;
}

static void copy(void *to, const void *from, int64_t bytes) {
    if (to != from && bytes > 0) {
        memcpy(to, from, (size_t)bytes);
    }
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// A stretch of the halves of the round just passed.
typedef struct Stretch {
    int64_t offset_bytes, count;
} Stretch;

// out[i] = sum or max over members, in rank order, of their stretches.
static void reduce(const Transport *shm, const ShmMember *member, Stretch stretch, ReduceOp op, float *out) {
    const uint32_t round = member->rounds - 1;
    const int64_t offset = stretch.offset_bytes, count = stretch.count;
    for (int64_t first = 0; first < count; first += SUM_BLOCK) {
        const int64_t n = least(SUM_BLOCK, count - first);
        float sum[SUM_BLOCK];
        memcpy(sum, (const float *)(const void *)(half(shm, member, 0, round) + offset) + first,
               (size_t)n * sizeof(float));
        for (int i = 1; i < member->size; i++) {
            const float *x = (const float *)(const void *)(half(shm, member, i, round) + offset) + first;
            if (op == REDUCE_SUM) {
                for (int64_t j = 0; j < n; j++) {
                    sum[j] += x[j];
                }
            } else {
                for (int64_t j = 0; j < n; j++) {
                    sum[j] = x[j] > sum[j] ? x[j] : sum[j];
                }
            }
        }
        memcpy(out + first, sum, (size_t)n * sizeof(float));
    }
}

static Status shm_all_gather(Transport *shm, const TransportCall *call, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    char *out = call->out;
    const char *in = call->in;
    for (int64_t at = 0; member->size > 1 && at < call->bytes; at += shm->layout.slot_bytes) {
        const int64_t bytes = least(shm->layout.slot_bytes, call->bytes - at);
        copy(half(shm, member, member->index, member->rounds), in + at, bytes);
        TRY(gate_pass(shm, member, call, error));
        for (int i = 0; i < member->size; i++) {
            if (i != member->index) {
                copy(out + i * call->bytes + at, half(shm, member, i, member->rounds - 1), bytes);
            }
        }
    }
    copy(out + member->index * call->bytes, in, call->bytes);
    return STATUS_OK;
}

static Status shm_reduce_scatter(Transport *shm, const TransportCall *call, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    const char *in = call->in;
    char *out = call->out;
    if (member->size == 1) {
        copy(out, in, call->bytes);
        return STATUS_OK;
    }
    const int64_t share =
        shm->layout.slot_bytes / member->size / SHM_LINE_BYTES * SHM_LINE_BYTES;  // of each destination in a slot
    for (int64_t at = 0; at < call->bytes; at += share) {
        const int64_t bytes = least(share, call->bytes - at);
        for (int i = 0; i < member->size; i++) {
            copy(half(shm, member, member->index, member->rounds) + i * share, in + i * call->bytes + at, bytes);
        }
        TRY(gate_pass(shm, member, call, error));
        reduce(shm, member, (Stretch){member->index * share, bytes / (int64_t)sizeof(float)}, call->op,
               (float *)(void *)(out + at));
    }
    return STATUS_OK;
}

// A chunk in two rounds: each member reduces its share of it, then everybody collects the shares.
static Status all_reduce_shared(Transport *shm, const TransportCall *call, int64_t at, int64_t bytes, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    const int64_t unit = (int64_t)sizeof(float);
    const int64_t share = (bytes / unit + member->size - 1) / member->size * unit;
    const int64_t mine = least(share, bytes - least(bytes, member->index * share));
    copy(half(shm, member, member->index, member->rounds), (const char *)call->in + at, bytes);
    TRY(gate_pass(shm, member, call, error));
    char *shared = half(shm, member, member->index, member->rounds);
    reduce(shm, member, (Stretch){member->index * share, mine / unit}, call->op, (float *)(void *)shared);
    TRY(gate_pass(shm, member, call, error));
    for (int i = 0; i < member->size; i++) {
        const int64_t first = least(bytes, i * share);
        copy((char *)call->out + at + first, half(shm, member, i, member->rounds - 1), least(share, bytes - first));
    }
    return STATUS_OK;
}

static Status shm_all_reduce(Transport *shm, const TransportCall *call, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    if (member->size == 1) {
        copy(call->out, call->in, call->bytes);
        return STATUS_OK;
    }
    for (int64_t at = 0; at < call->bytes; at += shm->layout.slot_bytes) {
        const int64_t bytes = least(shm->layout.slot_bytes, call->bytes - at);
        if (bytes > SMALL_REDUCE_BYTES) {
            TRY(all_reduce_shared(shm, call, at, bytes, error));
            continue;
        }
        copy(half(shm, member, member->index, member->rounds), (const char *)call->in + at, bytes);
        TRY(gate_pass(shm, member, call, error));
        reduce(shm, member, (Stretch){0, bytes / (int64_t)sizeof(float)}, call->op,
               (float *)(void *)((char *)call->out + at));
    }
    return STATUS_OK;
}

static Status shm_send_recv(Transport *shm, const TransportCall *call, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    if (member->size == 1) {
        copy(call->out, call->in, call->bytes);
        return STATUS_OK;
    }
    const int before = (member->index + member->size - 1) % member->size;
    for (int64_t at = 0; at < call->bytes; at += shm->layout.slot_bytes) {
        const int64_t bytes = least(shm->layout.slot_bytes, call->bytes - at);
        copy(half(shm, member, member->index, member->rounds), (const char *)call->in + at, bytes);
        TRY(gate_pass(shm, member, call, error));
        copy((char *)call->out + at, half(shm, member, before, member->rounds - 1), bytes);
    }
    return STATUS_OK;
}

static Status shm_barrier(Transport *shm, const TransportCall *call, Error *error) {
    ShmMember *member = &shm->members[call->communicator];
    return member->size == 1 ? STATUS_OK : gate_pass(shm, member, call, error);
}

const TransportTable transport_shm = {
    .name = "shm",
    .open = shm_open_transport,
    .close = shm_close,
    .all_gather = shm_all_gather,
    .reduce_scatter = shm_reduce_scatter,
    .all_reduce = shm_all_reduce,
    .send_recv = shm_send_recv,
    .barrier = shm_barrier,
    .note = shm_note,
    .stop = shm_stop,
    .poll = shm_poll,
};

// The shared segment: created and immediately unlinked by the launcher, attached by descriptor in the workers. Bytes
// are reserved up front, so that a full /dev/shm is an error message and not a SIGBUS in the middle of a step.

#define _GNU_SOURCE  // O_CLOEXEC with shm_open's mode, posix_fallocate

#include "exec/transport/shm_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/integer.h"
#include "sim/base/text.h"

static const uint64_t SHM_MAGIC = UINT64_C(0x6e6474756e653104);  // "ndtune1" and the layout's version

// Staging: large enough that a round's fixed cost (about 1 us, sim/SOURCES.md X1) is small against copying it, small
// enough that both halves stay in a core's second-level cache; the sum over ranks stays below what a container's
// default /dev/shm (64 MiB) holds.
static const int64_t SLOT_BYTES_MOST = 256 << 10, SLOTS_BYTES_MOST = 40 << 20, SLOT_GRAIN_BYTES = 4096;

// No more than the largest call takes: each byte of the segment is had from the system before a run and given back.
static int64_t slot_bytes_of(const Communicator *spec, int world, int64_t most) {
    const int64_t unknown = spec->link.step != 0 ? SHM_SLOT_BYTES_LEAST : most;  // messages have pipes
    const int64_t wanted = spec->call_bytes > 0 ? spec->call_bytes + world * SHM_SHARE_GRAIN : unknown;
    return int_min(most, int_round_up(int_max(wanted, SHM_SLOT_BYTES_LEAST), SLOT_GRAIN_BYTES));
}

static void layout_slots(const Communicator *communicators, ShmLayout *layout) {
    int64_t most = SLOT_BYTES_MOST;
    while (most > SHM_SLOT_BYTES_LEAST && layout->communicators * layout->world * 2 * most > SLOTS_BYTES_MOST) {
        most /= 2;
    }
    for (int i = 0; i < layout->communicators; i++) {
        layout->slot_bytes[i] = slot_bytes_of(&communicators[i], layout->world, most);
        layout->slots_at[i] = layout->bytes;
        layout->bytes += layout->world > 1 ? layout->world * 2 * layout->slot_bytes[i] : 0;
    }
}

// Room for the messages that may be ahead of their receives: a sender that finds none waits. Ranks that send nothing
// have a pipe that is never touched.
static void layout_pipes(const Communicator *communicators, ShmLayout *layout) {
    for (int i = 0; i < layout->communicators; i++) {
        const Communicator *spec = &communicators[i];
        if (spec->link.step != 0) {
            const int64_t bytes = spec->ahead * (spec->message_bytes + (int64_t)sizeof(ShmMessage));
            layout->room_bytes[i] = int_round_up(bytes, SHM_LINE_BYTES);
            layout->pipes_at[i] = layout->bytes;
            layout->bytes += layout->world * ((int64_t)sizeof(ShmPipe) + layout->room_bytes[i]);
        }
    }
}

ShmLayout shm_layout(const Mesh *mesh, const Communicator *communicators, int count) {
    ShmLayout layout = {.world = mesh_world(mesh), .communicators = count};
    const int64_t cells = (int64_t)count * layout.world;
    layout.progress_table_at = int_round_up((int64_t)sizeof(ShmHead), SHM_LINE_BYTES);
    layout.gates_at = layout.progress_table_at + layout.world * (int64_t)sizeof(ProgressRow);
    layout.bytes = int_round_up(layout.gates_at + cells * (int64_t)sizeof(ShmGate), 4096);
    layout_slots(communicators, &layout);
    layout_pipes(communicators, &layout);
    return layout;
}

static void head_begin(ShmSegment *segment, const ShmLayout *layout) {
    ShmHead *head = segment->memory;
    head->magic = SHM_MAGIC;
    head->world = layout->world;
    head->communicators = layout->communicators;
    head->bytes = layout->bytes;
    atomic_init(&head->stopped, 0);
    atomic_init(&head->first_failure, SHM_NO_RANK);
    for (int rank = 0; rank < layout->world; rank++) {
        progress_row_begin(shm_progress_table(segment->memory, layout) + rank);
    }
}

Status shm_segment_create(const Mesh *mesh, const Communicator *communicators, int count, ShmSegment *segment,
                          Error *error) {
    const ShmLayout layout = shm_layout(mesh, communicators, count);
    *segment = (ShmSegment){.fd = -1, .memory = MAP_FAILED, .bytes = layout.bytes};
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    char name[64];
    snprintf(name, sizeof name, "/ndtune-%ld-%lld", (long)getpid(), (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    segment->fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FAIL_IF(segment->fd < 0, error, STATUS_ENVIRONMENT, "shared memory %s: %s", name, strerror(errno));
    shm_unlink(name);
    const int full = posix_fallocate(segment->fd, 0, layout.bytes);
    if (full != 0) {
        shm_segment_destroy(segment);
        return error_set(error, STATUS_ENVIRONMENT, "shared memory: no room for %s in /dev/shm: %s",
                         text_bytes(UNIT_BUFFER, (double)layout.bytes), strerror(full));
    }
    segment->memory = mmap(NULL, (size_t)layout.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);
    if (segment->memory == MAP_FAILED) {
        const int why = errno;
        shm_segment_destroy(segment);
        return error_set(error, STATUS_ENVIRONMENT, "shared memory: cannot map %s: %s",
                         text_bytes(UNIT_BUFFER, (double)layout.bytes), strerror(why));
    }
    head_begin(segment, &layout);
    return STATUS_OK;
}

void shm_segment_destroy(ShmSegment *segment) {
    if (segment->memory && segment->memory != MAP_FAILED) {
        munmap(segment->memory, (size_t)segment->bytes);
    }
    if (segment->fd >= 0) {
        close(segment->fd);
    }
    *segment = (ShmSegment){.fd = -1};
}

Status shm_segment_attach(int fd, const ShmLayout *layout, void **memory, Error *error) {
    *memory = mmap(NULL, (size_t)layout->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    FAIL_IF(*memory == MAP_FAILED, error, STATUS_ENVIRONMENT, "shared memory: cannot map descriptor %d: %s", fd,
            strerror(errno));
    const ShmHead *head = *memory;
    if (head->magic != SHM_MAGIC || head->world != layout->world || head->communicators != layout->communicators ||
        head->bytes != layout->bytes) {
        munmap(*memory, (size_t)layout->bytes);
        return error_set(error, STATUS_INTERNAL, "shared memory: descriptor %d was made for another run", fd);
    }
    return STATUS_OK;
}

void shm_segment_stop(ShmSegment *segment) {
    atomic_store(&((ShmHead *)segment->memory)->stopped, 1);
}

ProgressRow *shm_segment_progress_table(const ShmSegment *segment) {
    return (ProgressRow *)(void *)((char *)segment->memory + int_round_up((int64_t)sizeof(ShmHead), SHM_LINE_BYTES));
}

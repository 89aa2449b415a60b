// Transport nccl over a recording stand-in for NCCL and the driver (tests/support/nccl_recording), ranks as threads:
// the same table of checks as the other transports', calls with streams, and the memory of windows.

#define _GNU_SOURCE  // setenv

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exec/transport/nccl_choice.h"
#include "exec/transport/shm.h"
#include "tests/support/run_program.h"
#include "tests/support/sizes.h"
#include "tests/unit/exec/transport_checks.h"

typedef struct Crew Crew;

typedef struct Member {
    Crew *crew;
    CheckRank check;
    Arena arena;
    Status status;
} Member;

struct Crew {
    Mesh mesh;
    Communicator communicators[CHECK_COMMUNICATORS_MOST];
    int count;
    ShmSegment segment;
    Member members[CHECK_RANKS_MOST];
    void (*work)(CheckRank *rank);
};

static char *directory;

// Ranks are threads here: what each would set is there before, as another may be reading the environment.
static void begin(void) {
    NcclSetting settings[NCCL_SETTINGS_MOST];
    directory = temp_dir_make();
    setenv("NDTUNE_NCCL_RECORDING", directory, 1);
    for (int i = nccl_settings(false, settings) - 1; i >= 0; i--) {
        setenv(settings[i].name, settings[i].value ? settings[i].value : "ndtune-rank-0", 0);
    }
}

static void end(void) {
    temp_dir_remove(directory);
}

TestSuite(transport_nccl, .init = begin, .fini = end);

static void *member_main(void *argument) {
    Member *member = argument;
    Crew *crew = member->crew;
    CheckRank *check = &member->check;
    const TransportSetup setup = {.mesh = crew->mesh,
                                  .rank = check->rank,
                                  .local_rank = check->rank,
                                  .communicators = crew->communicators,
                                  .communicator_count = crew->count,
                                  .segment_fd = crew->segment.fd,
                                  .timeout_s = 60};
    member->status = check->table->open(&setup, &member->arena, &check->transport, &check->error);
    if (member->status == STATUS_OK) {
        crew->work(check);
    }
    if (check->transport) {
        check->table->close(check->transport);
    }
    return NULL;
}

static void crew_work(Mesh mesh, void (*work)(CheckRank *rank)) {
    static Crew crew;
    Error error = {0};
    crew = (Crew){.mesh = mesh, .work = work};
    const bool links = work == check_line || work == check_messages_ahead;
    crew.count = (links ? check_links : check_communicators)(&mesh, crew.communicators);
    const TransportTable *table = transport_find("nccl", &error);
    cr_assert(table, "%s", error.message);
    cr_assert(shm_segment_create(&mesh, crew.communicators, crew.count, &crew.segment, &error) == STATUS_OK, "%s",
              error.message);
    pthread_t threads[CHECK_RANKS_MOST];
    for (int rank = 0; rank < mesh_world(&mesh); rank++) {
        crew.members[rank] = (Member){.crew = &crew,
                                      .check = {.table = table,
                                                .mesh = mesh,
                                                .communicators = crew.communicators,
                                                .communicator_count = crew.count,
                                                .rank = rank}};
        pthread_create(&threads[rank], NULL, member_main, &crew.members[rank]);
    }
    for (int rank = 0; rank < mesh_world(&mesh); rank++) {
        pthread_join(threads[rank], NULL);
        Member *member = &crew.members[rank];
        cr_expect(member->status == STATUS_OK && member->check.faults == 0, "rank %d: %d faults; %s", rank,
                  member->check.faults, member->check.error.message);
        arena_free(&member->arena);
    }
    shm_segment_destroy(&crew.segment);
}

static void check_all_and_order(CheckRank *rank) {
    check_all(rank);
    check_order(rank);
}

Test(transport_nccl, every_mask_of_3_ranks_moves_and_sums_exactly) {
    crew_work((Mesh){.size = SIZES(1, 1, 3, 1)}, check_all_and_order);
}

Test(transport_nccl, every_mask_of_4_ranks_moves_and_sums_exactly) {
    crew_work((Mesh){.size = SIZES(1, 2, 1, 2)}, check_all_and_order);
}

Test(transport_nccl, messages_go_along_a_line_and_back) {
    crew_work((Mesh){.size = SIZES(1, 3, 1, 1)}, check_line);
}

Test(transport_nccl, neighbours_that_send_first_do_not_wait_for_each_other) {
    crew_work((Mesh){.size = SIZES(1, 3, 1, 1)}, check_messages_ahead);
}

static void expect(CheckRank *rank, bool right) {
    rank->faults += !right;
}

// A stream of the driver's stand-in; the test finds it as the transport does.
typedef int StreamCreate(void **stream, unsigned flags, int priority);
typedef int StreamDestroy(void *stream);

static void *symbol(const char *name) {
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
}

// Many calls, no wait between them: they run in the stream's order, and finish waits for all.
static void streams_are_ordered(CheckRank *rank) {
    enum { ROUNDS = 40, COUNT = 33 };
    StreamCreate *create;
    StreamDestroy *destroy;
    void *found = symbol("cuStreamCreateWithPriority"), *stream = NULL;
    memcpy(&create, &found, sizeof found);
    found = symbol("cuStreamDestroy_v2");
    memcpy(&destroy, &found, sizeof found);
    create(&stream, 0, 0);
    float data[COUNT];
    for (int i = 0; i < COUNT; i++) {
        data[i] = (float)(i + rank->rank);
    }
    const int world = rank->communicator_count - 1;
    const TransportCall call = {
        .communicator = world, .in = data, .out = data, .bytes = sizeof data, .stream = stream, .place = {.task = -1}};
    TransportCall largest = call;
    largest.op = REDUCE_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        expect(rank, rank->table->run(rank->transport, TRANSPORT_ALL_REDUCE, &largest, &rank->error) == STATUS_OK);
    }
    expect(rank, rank->table->run(rank->transport, TRANSPORT_ALL_REDUCE, &call, &rank->error) == STATUS_OK);
    expect(rank, rank->table->finish(rank->transport, &rank->error) == STATUS_OK);
    const int size = mesh_world(&rank->mesh);
    for (int i = 0; i < COUNT; i++) {
        expect(rank, data[i] == (float)(size * (i + size - 1)));
    }
    destroy(stream);
}

Test(transport_nccl, calls_with_a_stream_run_in_its_order_and_finish_waits_for_them) {
    crew_work((Mesh){.size = SIZES(1, 2, 1, 1)}, streams_are_ordered);
}

static void memory_is_given(CheckRank *rank) {
    void *memory = NULL;
    expect(rank, rank->table->memory(rank->transport, 100000, &memory, &rank->error) == STATUS_OK);
    expect(rank, memory && (uintptr_t)memory % 4096 == 0);
}

Test(transport_nccl, the_arena_comes_from_nccl_and_is_the_same_size_everywhere) {
    crew_work((Mesh){.size = SIZES(1, 2, 1, 1)}, memory_is_given);
}

static void sizes_differ(CheckRank *rank) {
    void *memory = NULL;
    const Status status = rank->table->memory(rank->transport, 4096 * (1 + rank->rank), &memory, &rank->error);
    expect(rank, status == STATUS_INTERNAL && !memory && strstr(rank->error.message, "memory of rank"));
}

Test(transport_nccl, arenas_of_different_sizes_are_refused) {
    crew_work((Mesh){.size = SIZES(1, 2, 1, 1)}, sizes_differ);
}

Test(transport_nccl, threads_that_call_for_several_lanes_are_refused) {
    Error error = {0};
    Arena arena = {0};
    Transport *transport = NULL;
    const TransportSetup setup = {.mesh = {.size = SIZES(1, 1, 1, 1)}, .segment_fd = -1, .concurrent = true};
    cr_assert(transport_find("nccl", &error)->open(&setup, &arena, &transport, &error) == STATUS_USAGE);
    cr_expect(strstr(error.message, "from one thread"), "%s", error.message);
    arena_free(&arena);
}

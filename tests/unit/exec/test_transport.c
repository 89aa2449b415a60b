// The shm transport with threads as ranks: every group mask of meshes of 2, 4 and 8 ranks, odd sizes, exactly summable
// data (small integers), independent communicators at the same time, and the sentences about who is missing or
// elsewhere.

#define _GNU_SOURCE  // nanosleep in strict C

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "exec/transport/shm.h"
#include "tests/support/sizes.h"
#include "tests/unit/exec/transport_checks.h"

typedef struct Crew Crew;

typedef struct Member {
    Crew *crew;
    CheckRank check;
    Arena arena;
} Member;

struct Crew {
    Mesh mesh;
    Communicator communicators[CHECK_COMMUNICATORS_MOST];
    int count;
    ShmSegment segment;
    Member members[CHECK_RANKS_MOST];
    double timeout_s;
    void (*work)(CheckRank *rank);
};

static void *member_main(void *argument) {
    Member *member = argument;
    member->crew->work(&member->check);
    return NULL;
}

static void crew_open(Crew *crew) {
    Error error = {0};
    cr_assert(shm_segment_create(&crew->mesh, crew->count, &crew->segment, &error) == STATUS_OK, "%s", error.message);
    for (int rank = 0; rank < mesh_world(&crew->mesh); rank++) {
        Member *member = &crew->members[rank];
        *member = (Member){.crew = crew,
                           .check = {.table = &transport_shm,
                                     .mesh = crew->mesh,
                                     .communicators = crew->communicators,
                                     .communicator_count = crew->count,
                                     .rank = rank}};
        const TransportSetup setup = {.mesh = crew->mesh,
                                      .rank = rank,
                                      .communicators = crew->communicators,
                                      .communicator_count = crew->count,
                                      .segment_fd = crew->segment.fd,
                                      .timeout_s = crew->timeout_s > 0 ? crew->timeout_s : 60};
        cr_assert(transport_shm.open(&setup, &member->arena, &member->check.transport, &error) == STATUS_OK, "%s",
                  error.message);
    }
}

static int crew_close(Crew *crew) {
    int faults = 0;
    for (int rank = 0; rank < mesh_world(&crew->mesh); rank++) {
        faults += crew->members[rank].check.faults;
        transport_shm.close(crew->members[rank].check.transport);
        arena_free(&crew->members[rank].arena);
    }
    shm_segment_destroy(&crew->segment);
    return faults;
}

static void crew_run(Crew *crew) {
    pthread_t threads[CHECK_RANKS_MOST];
    for (int rank = 0; rank < mesh_world(&crew->mesh); rank++) {
        pthread_create(&threads[rank], NULL, member_main, &crew->members[rank]);
    }
    for (int rank = 0; rank < mesh_world(&crew->mesh); rank++) {
        pthread_join(threads[rank], NULL);
    }
}

// ---------------------------------------------------------------------------------------------- every collective

static void mesh_is_right(Mesh mesh) {
    Crew crew = {.mesh = mesh, .work = check_all};
    crew.count = check_communicators(crew.communicators);
    crew_open(&crew);
    crew_run(&crew);
    cr_expect(crew_close(&crew) == 0, "mesh %d %d %d %d", mesh.size[0], mesh.size[1], mesh.size[2], mesh.size[3]);
}

Test(transport, every_mask_of_2_ranks_moves_and_sums_exactly) {
    mesh_is_right((Mesh){.size = SIZES(1, 2, 1, 1)});
    mesh_is_right((Mesh){.size = SIZES(1, 1, 1, 2)});
}

Test(transport, every_mask_of_4_ranks_moves_and_sums_exactly) {
    mesh_is_right((Mesh){.size = SIZES(2, 1, 1, 2)});
    mesh_is_right((Mesh){.size = SIZES(1, 1, 4, 1)});
}

Test(transport, every_mask_of_8_ranks_moves_and_sums_exactly) {
    mesh_is_right((Mesh){.size = SIZES(2, 1, 2, 2)});
    mesh_is_right((Mesh){.size = SIZES(1, 8, 1, 1)});
}

Test(transport, every_mask_of_6_ranks_moves_and_sums_exactly) {
    mesh_is_right((Mesh){.size = SIZES(1, 3, 1, 2)});
}

// ---------------------------------------------------------------------------------------------- order, lanes, lateness

// Rounding differs with the order of a sum: the bits of rank order, on every rank.
Test(transport, sums_run_in_rank_order_on_every_rank) {
    Crew crew = {.mesh = {.size = SIZES(1, 8, 1, 1)}, .work = check_order};
    crew.count = check_communicators(crew.communicators);
    crew_open(&crew);
    crew_run(&crew);
    cr_assert(crew_close(&crew) == 0);
}

static void *second_lane(void *argument) {
    check_some(argument, 1, 25);
    return NULL;
}

static void two_lanes(CheckRank *rank) {
    CheckRank other = *rank;  // counts its own faults: the two threads share only the transport
    other.faults = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, second_lane, &other);
    check_some(rank, 0, 25);
    pthread_join(thread, NULL);
    rank->faults += other.faults;
}

Test(transport, communicators_do_not_disturb_each_other) {
    Crew crew = {.mesh = {.size = SIZES(1, 2, 1, 2)}, .work = two_lanes, .count = 2};
    crew.communicators[0] = (Communicator){.name = "one", .id = 0, .axes = AXIS_ALL};
    crew.communicators[1] = (Communicator){.name = "two", .id = 1, .axes = AXIS_ALL};
    crew_open(&crew);
    crew_run(&crew);
    cr_assert(crew_close(&crew) == 0);
}

// ---------------------------------------------------------------------------------------------- lateness and
// disagreement

static void one_is_missing(CheckRank *rank) {
    const TransportCall meet = {.place = {.task = -1}};
    if (rank->rank != 2) {
        rank->faults += transport_shm.barrier(rank->transport, &meet, &rank->error) == STATUS_OK;
        transport_shm.stop(rank->transport);
    }
}

Test(transport, a_late_rank_is_named_within_the_timeout) {
    Crew crew = {.mesh = {.size = SIZES(1, 4, 1, 1)}, .work = one_is_missing, .count = 1, .timeout_s = 0.2};
    crew.communicators[0] = (Communicator){.name = "ag", .axes = AXIS_ALL};
    crew_open(&crew);
    crew_run(&crew);
    int named = 0;
    for (int rank = 0; rank < 4; rank++) {
        const char *message = crew.members[rank].check.error.message;
        named += strstr(message, "lane ag") && strstr(message, "for rank 2") && !strstr(message, "rank 1,");
        cr_expect(rank == 2 || message[0] != '\0', "rank %d hung or passed", rank);
    }
    cr_expect(named >= 1, "%s", crew.members[0].check.error.message);
    cr_assert(crew_close(&crew) == 0);
}

// Rank 2 is one collective ahead of the others, or asks for half of the bytes.
static void one_disagrees(CheckRank *rank, bool skips) {
    float in[8] = {0}, out[64];
    const TransportCall first = {
        .in = in, .out = out, .bytes = rank->rank == 2 && !skips ? 16 : 32, .place = {.task = 1, .ordinal = 1}};
    const TransportCall second = {.in = in, .out = in, .bytes = 8, .place = {.task = 2, .ordinal = 2}};
    Status status = STATUS_OK;
    if (rank->rank != 2 || !skips) {
        status = transport_shm.all_gather(rank->transport, &first, &rank->error);
    }
    if (status == STATUS_OK) {
        status = transport_shm.all_reduce(rank->transport, &second, &rank->error);
    }
    rank->faults += status == STATUS_OK;
}

static void one_skips(CheckRank *rank) {
    one_disagrees(rank, true);
}

static void one_halves(CheckRank *rank) {
    one_disagrees(rank, false);
}

static void rank_2_is_told(void (*work)(CheckRank *rank), const char *words) {
    Crew crew = {.mesh = {.size = SIZES(1, 4, 1, 1)}, .work = work, .count = 1};
    crew.communicators[0] = (Communicator){.name = "ag", .axes = AXIS_ALL};
    crew_open(&crew);
    crew_run(&crew);
    for (int rank = 0; rank < 4; rank++) {
        const char *message = crew.members[rank].check.error.message;
        cr_expect(strstr(message, "lane ag: rank 2") && strstr(message, words), "%s", message);
    }
    cr_assert(crew_close(&crew) == 0);
}

Test(transport, a_rank_that_skips_a_collective_is_told_at_the_next) {
    rank_2_is_told(one_skips, "is in all-reduce of 8 B while rank 0");
}

Test(transport, a_rank_with_another_size_is_told) {
    rank_2_is_told(one_halves, "is in all-gather of 16 B while rank 0");
}

Test(transport, an_unknown_transport_is_refused_in_words) {
    Error error = {0};
    cr_assert(transport_check("carrier pigeon", &error) == STATUS_USAGE);
    cr_assert(strstr(error.message, "this build runs shm"), "%s", error.message);
    cr_assert(transport_check("shm", &error) == STATUS_OK);
}

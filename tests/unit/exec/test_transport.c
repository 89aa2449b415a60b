// The shm transport with threads as ranks: every group mask of meshes of 2, 4 and 8 ranks, odd sizes, exactly summable
// data (small integers), independent communicators at the same time, and the messages about ranks that are missing or
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
    cr_assert(shm_segment_create(&crew->mesh, crew->communicators, crew->count, &crew->segment, &error) == STATUS_OK,
              "%s", error.message);
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
    crew.count = check_communicators(&crew.mesh, crew.communicators);
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

// Rounding depends on the order of a sum: every rank must have the bits of rank order.
Test(transport, sums_run_in_rank_order_on_every_rank) {
    Crew crew = {.mesh = {.size = SIZES(1, 8, 1, 1)}, .work = check_order};
    crew.count = check_communicators(&crew.mesh, crew.communicators);
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
        rank->faults += transport_shm.run(rank->transport, TRANSPORT_BARRIER, &meet, &rank->error) == STATUS_OK;
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
        status = transport_shm.run(rank->transport, TRANSPORT_ALL_GATHER, &first, &rank->error);
    }
    if (status == STATUS_OK) {
        status = transport_shm.run(rank->transport, TRANSPORT_ALL_REDUCE, &second, &rank->error);
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

// ---------------------------------------------------------------------------------------------- messages

static void messages_are_right(int ranks, void (*work)(CheckRank *rank)) {
    Crew crew = {.mesh = {.size = SIZES(1, ranks, 1, 1)}, .work = work};
    crew.count = check_links(&crew.mesh, crew.communicators);
    crew_open(&crew);
    crew_run(&crew);
    cr_expect(crew_close(&crew) == 0, "%d ranks", ranks);
}

Test(transport, messages_go_along_a_line_and_back) {
    messages_are_right(2, check_line);
    messages_are_right(5, check_line);
}

Test(transport, neighbours_that_send_first_do_not_wait_for_each_other) {
    for (int ranks = 2; ranks <= 5; ranks++) {
        messages_are_right(ranks, check_messages_ahead);
    }
}

Test(transport, messages_are_sent_and_received_by_different_threads) {
    messages_are_right(2, check_message_lanes);
    messages_are_right(3, check_message_lanes);
}

Test(transport, a_rank_is_in_one_link_of_a_class_and_at_one_end_of_it) {
    for (int ranks = 2; ranks <= 7; ranks++) {
        const Mesh mesh = {.size = SIZES(1, ranks, 1, 1)};
        Communicator links[CHECK_COMMUNICATORS_MOST];
        const int count = check_links(&mesh, links) - 1;
        int sends = 0, receives = 0;
        for (int i = 0; i < count; i++) {
            for (int rank = 0; rank < ranks; rank++) {
                const TransportGroup group = transport_group(&mesh, &links[i], rank);
                cr_expect(group.ranks[group.index] == rank);
                const TransportGroup other = transport_group(&mesh, &links[i], group.ranks[group.size - 1]);
                cr_expect(other.size == group.size && other.ranks[0] == group.ranks[0]);
                sends += group.size == 2 && group.index == 0;
                receives += group.size == 2 && group.index == 1;
            }
        }
        const int edges = ranks == 2 ? 2 : 2 * ranks;  // of two, the next is the previous one
        cr_expect(sends == edges && receives == edges, "%d ranks: %d sends, %d receives", ranks, sends, receives);
    }
}

static Communicator link_between(int ranks, int from, int to, int64_t message_bytes) {
    return (Communicator){.name = "pp",
                          .axes = AXIS_ALL,
                          .link = transport_link(ranks, from, to),
                          .message_bytes = message_bytes,
                          .ahead = 1};
}

// Ranks in a line; rank 1 stops before it forwards.
static void one_sends_nothing(CheckRank *rank) {
    float data[16] = {0};
    TransportCall call = {.in = data, .out = data, .bytes = sizeof data, .place = {.task = -1}};
    Status status = STATUS_OK;
    if (rank->rank > 0) {
        call.communicator = (rank->rank - 1) % 2;
        status = transport_shm.run(rank->transport, TRANSPORT_RECEIVE, &call, &rank->error);
    }
    if (rank->rank != 1 && rank->rank < 3 && status == STATUS_OK) {
        call.communicator = rank->rank % 2;
        status = transport_shm.run(rank->transport, TRANSPORT_SEND, &call, &rank->error);
    }
    rank->faults += rank->rank > 1 && status == STATUS_OK;
    if (status != STATUS_OK) {
        transport_shm.stop(rank->transport);
    }
}

Test(transport, a_rank_that_sends_nothing_is_named_by_those_after_it) {
    Crew crew = {.mesh = {.size = SIZES(1, 4, 1, 1)}, .work = one_sends_nothing, .count = 2, .timeout_s = 0.2};
    crew.communicators[0] = link_between(4, 0, 1, 64);
    crew.communicators[1] = link_between(4, 1, 2, 64);
    crew_open(&crew);
    crew_run(&crew);
    int named = 0;
    for (int rank = 2; rank < 4; rank++) {
        const char *message = crew.members[rank].check.error.message;
        named += strstr(message, "lane pp, receive of 64 B from rank") && strstr(message, "for rank 1");
    }
    cr_expect(named >= 1, "%s", crew.members[3].check.error.message);
    cr_assert(crew_close(&crew) == 0);
}

// Rank 0 sends micro-step 1, or half of the bytes, where rank 1 expects all of micro-step 0.
static void sender_disagrees(CheckRank *rank, const TransportCall *sent) {
    float data[16] = {0};
    TransportCall call = {.in = data, .out = data, .bytes = sizeof data};
    if (rank->rank == 0) {
        call.bytes = sent->bytes;
        call.place = sent->place;
        rank->faults += transport_shm.run(rank->transport, TRANSPORT_SEND, &call, &rank->error) != STATUS_OK;
    } else {
        rank->faults += transport_shm.run(rank->transport, TRANSPORT_RECEIVE, &call, &rank->error) == STATUS_OK;
    }
}

static void one_message_skipped(CheckRank *rank) {
    sender_disagrees(rank, &(TransportCall){.bytes = 64, .place = {.micro_step = 1}});
}

static void one_message_halved(CheckRank *rank) {
    sender_disagrees(rank, &(TransportCall){.bytes = 32});
}

Test(transport, a_message_that_is_not_the_next_one_is_told) {
    void (*const works[])(CheckRank * rank) = {one_message_skipped, one_message_halved};
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        Crew crew = {.mesh = {.size = SIZES(1, 2, 1, 1)}, .work = works[i], .count = 1};
        crew.communicators[0] = link_between(2, 0, 1, 64);
        crew_open(&crew);
        crew_run(&crew);
        const char *message = crew.members[1].check.error.message;
        cr_expect(strstr(message, "lane pp: rank 1") && strstr(message, "receive of 64 B from rank 0") &&
                      strstr(message, "the message that came is another one"),
                  "%s", message);
        cr_assert(crew_close(&crew) == 0);
    }
}

// More than the buffer holds: the sender waits for the receiver, and nothing is lost or mixed up.
static void many_messages(CheckRank *rank) {
    enum { MESSAGES = 200, FLOATS = 1000 };
    float data[FLOATS];
    for (int number = 0; number < MESSAGES; number++) {
        const int count = 1 + (number * 397) % FLOATS;
        const TransportCall call = {
            .in = data, .out = data, .bytes = count * (int64_t)sizeof *data, .place = {.micro_step = number}};
        for (int i = 0; i < count; i++) {
            data[i] = rank->rank == 0 ? (float)(number + i) : -1;
        }
        const TransportKind kind = rank->rank == 0 ? TRANSPORT_SEND : TRANSPORT_RECEIVE;
        rank->faults += transport_shm.run(rank->transport, kind, &call, &rank->error) != STATUS_OK;
        for (int i = 0; i < count; i++) {
            rank->faults += data[i] != (float)(number + i);
        }
    }
}

Test(transport, a_sender_without_room_waits_for_its_receiver) {
    Crew crew = {.mesh = {.size = SIZES(1, 1, 1, 2)}, .work = many_messages, .count = 1};
    crew.communicators[0] = link_between(2, 0, 1, 1000);
    crew_open(&crew);
    crew_run(&crew);
    cr_assert(crew_close(&crew) == 0, "%s", crew.members[1].check.error.message);
}

Test(transport, an_unknown_transport_is_refused_in_words) {
    Error error = {0};
    cr_assert(transport_check("carrier pigeon", &error) == STATUS_USAGE);
    cr_assert(strstr(error.message, "this build runs shm"), "%s", error.message);
    cr_assert(transport_check("shm", &error) == STATUS_OK);
}

// The shm transport with threads as ranks: every group mask of meshes of 2, 4 and 8 ranks, odd sizes, exactly summable
// data (small integers), independent communicators at the same time, and the sentence about who is missing.

#define _GNU_SOURCE  // nanosleep in strict C

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "exec/transport/shm.h"

enum { RANKS_MOST = 8, THREADS_MOST = 2 * RANKS_MOST };

typedef struct Crew Crew;

typedef struct Member {
    Crew *crew;
    Transport *transport;
    Arena arena;
    int rank;
    int faults;  // wrong elements or failed calls
    Error error;
} Member;

struct Crew {
    Mesh mesh;
    Communicator communicators[16];
    int count;
    ShmSegment segment;
    Member members[RANKS_MOST];
    double timeout_s;
    void (*work)(Member *member);
};

static void *member_main(void *argument) {
    Member *member = argument;
    member->crew->work(member);
    return NULL;
}

static void crew_open(Crew *crew) {
    Error error = {0};
    cr_assert(shm_segment_create(&crew->mesh, crew->count, &crew->segment, &error) == STATUS_OK, "%s", error.message);
    for (int rank = 0; rank < mesh_world(&crew->mesh); rank++) {
        Member *member = &crew->members[rank];
        *member = (Member){.crew = crew, .rank = rank};
        const TransportSetup setup = {.mesh = crew->mesh,
                                      .rank = rank,
                                      .communicators = crew->communicators,
                                      .communicator_count = crew->count,
                                      .segment_fd = crew->segment.fd,
                                      .timeout_s = crew->timeout_s > 0 ? crew->timeout_s : 60};
        cr_assert(transport_shm.open(&setup, &member->arena, &member->transport, &error) == STATUS_OK, "%s",
                  error.message);
    }
}

static int crew_close(Crew *crew) {
    int faults = 0;
    for (int rank = 0; rank < mesh_world(&crew->mesh); rank++) {
        faults += crew->members[rank].faults;
        transport_shm.close(crew->members[rank].transport);
        arena_free(&crew->members[rank].arena);
    }
    shm_segment_destroy(&crew->segment);
    return faults;
}

static void crew_run(Crew *crew) {
    pthread_t threads[RANKS_MOST];
    for (int rank = 0; rank < mesh_world(&crew->mesh); rank++) {
        pthread_create(&threads[rank], NULL, member_main, &crew->members[rank]);
    }
    for (int rank = 0; rank < mesh_world(&crew->mesh); rank++) {
        pthread_join(threads[rank], NULL);
    }
}

// ---------------------------------------------------------------------------------------------- every collective

// What rank puts at element i: sums over 8 ranks stay exact in fp32.
static float element(int rank, int64_t i) {
    return (float)((rank * 31 + i * 7) % 1024 - 512);
}

typedef struct Seat {
    Member *member;
    int communicator, size, index;
    int ranks[RANKS_MOST];
} Seat;

static Seat seat_of(Member *member, int communicator) {
    const Mesh *mesh = &member->crew->mesh;
    const AxisMask axes = member->crew->communicators[communicator].axes;
    const MeshCoordinates at = mesh_coordinates(mesh, member->rank);
    Seat seat = {member, communicator, mesh_group_size(mesh, axes), mesh_group_index(mesh, axes, &at), {0}};
    for (int i = 0; i < seat.size; i++) {
        seat.ranks[i] = mesh_group_member(mesh, axes, &at, i);
    }
    return seat;
}

static void expect(Member *member, bool right) {
    member->faults += !right;
}

static float combined(const Seat *seat, int64_t i, ReduceOp op) {
    float result = element(seat->ranks[0], i);
    for (int k = 1; k < seat->size; k++) {
        const float x = element(seat->ranks[k], i);
        result = op == REDUCE_SUM ? result + x : x > result ? x : result;
    }
    return result;
}

static TransportCall call_of(const Seat *seat, const float *in, float *out, int64_t count, ReduceOp op) {
    return (TransportCall){
        .communicator = seat->communicator, .in = in, .out = out, .bytes = count * 4, .op = op, .place = {.task = -1}};
}

static void check_all_gather(const Seat *seat, int64_t count) {
    float *in = malloc((size_t)count * 4), *out = malloc((size_t)(count * seat->size) * 4);
    for (int64_t i = 0; i < count; i++) {
        in[i] = element(seat->member->rank, i);
    }
    const TransportCall call = call_of(seat, in, out, count, REDUCE_SUM);
    expect(seat->member, transport_shm.all_gather(seat->member->transport, &call, &seat->member->error) == STATUS_OK);
    for (int64_t i = 0; i < count * seat->size; i++) {
        expect(seat->member, out[i] == element(seat->ranks[i / count], i % count));
    }
    free(in);
    free(out);
}

// The result goes over the own part of the input, which is allowed.
static void check_reduce_scatter(const Seat *seat, int64_t count, ReduceOp op) {
    float *in = malloc((size_t)(count * seat->size) * 4);
    for (int64_t i = 0; i < count * seat->size; i++) {
        in[i] = element(seat->member->rank, i);
    }
    float *out = in + seat->index * count;
    const TransportCall call = call_of(seat, in, out, count, op);
    expect(seat->member,
           transport_shm.reduce_scatter(seat->member->transport, &call, &seat->member->error) == STATUS_OK);
    for (int64_t i = 0; i < count; i++) {
        expect(seat->member, out[i] == combined(seat, seat->index * count + i, op));
    }
    free(in);
}

static void check_all_reduce(const Seat *seat, int64_t count, ReduceOp op) {
    float *data = malloc((size_t)count * 4);
    for (int64_t i = 0; i < count; i++) {
        data[i] = element(seat->member->rank, i);
    }
    const TransportCall call = call_of(seat, data, data, count, op);
    expect(seat->member, transport_shm.all_reduce(seat->member->transport, &call, &seat->member->error) == STATUS_OK);
    for (int64_t i = 0; i < count; i++) {
        expect(seat->member, data[i] == combined(seat, i, op));
    }
    free(data);
}

static void check_send_recv(const Seat *seat, int64_t count) {
    float *out = malloc((size_t)count * 4), *in = malloc((size_t)count * 4);
    for (int64_t i = 0; i < count; i++) {
        out[i] = element(seat->member->rank, i);
    }
    const TransportCall call = call_of(seat, out, in, count, REDUCE_SUM);
    expect(seat->member, transport_shm.send_recv(seat->member->transport, &call, &seat->member->error) == STATUS_OK);
    const int before = seat->ranks[(seat->index + seat->size - 1) % seat->size];
    for (int64_t i = 0; i < count; i++) {
        expect(seat->member, in[i] == element(before, i));
    }
    free(out);
    free(in);
}

// One element; around the sizes where the method changes; more than a slot, with a rest. Slots hold 65536 floats or
// fewer.
static const int64_t counts[] = {1, 3, 1023, 1024, 1025, 70001, 200003};

static void every_collective(Member *member) {
    for (int communicator = 0; communicator < member->crew->count; communicator++) {
        const Seat seat = seat_of(member, communicator);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            check_all_gather(&seat, counts[i]);
            check_reduce_scatter(&seat, counts[i], REDUCE_SUM);
            check_reduce_scatter(&seat, counts[i], REDUCE_MAX);
            check_all_reduce(&seat, counts[i], REDUCE_SUM);
            check_all_reduce(&seat, counts[i], REDUCE_MAX);
            check_send_recv(&seat, counts[i]);
        }
        const TransportCall meet = {.communicator = communicator, .place = {.task = -1}};
        expect(member, transport_shm.barrier(member->transport, &meet, &member->error) == STATUS_OK);
    }
}

static void mesh_is_right(Mesh mesh) {
    Crew crew = {.mesh = mesh, .work = every_collective};
    for (AxisMask axes = 1; axes <= AXIS_ALL; axes++) {
        crew.communicators[crew.count++] = (Communicator){.name = "lane", .id = 0, .axes = axes};
    }
    crew_open(&crew);
    crew_run(&crew);
    cr_expect(crew_close(&crew) == 0, "mesh %d %d %d %d", mesh.size[0], mesh.size[1], mesh.size[2], mesh.size[3]);
}

Test(transport, every_mask_of_2_ranks_moves_and_sums_exactly) {
    mesh_is_right((Mesh){{1, 2, 1, 1}});
    mesh_is_right((Mesh){{1, 1, 1, 2}});
}

Test(transport, every_mask_of_4_ranks_moves_and_sums_exactly) {
    mesh_is_right((Mesh){{2, 1, 1, 2}});
    mesh_is_right((Mesh){{1, 1, 4, 1}});
}

Test(transport, every_mask_of_8_ranks_moves_and_sums_exactly) {
    mesh_is_right((Mesh){{2, 1, 2, 2}});
    mesh_is_right((Mesh){{1, 8, 1, 1}});
}

Test(transport, every_mask_of_6_ranks_moves_and_sums_exactly) {
    mesh_is_right((Mesh){{1, 3, 1, 2}});
}

// ---------------------------------------------------------------------------------------------- order, lanes, lateness

enum { ORDER_COUNT = 5000 };

static uint32_t order_bits[RANKS_MOST][ORDER_COUNT];

static void uneven_sum(Member *member) {
    float data[ORDER_COUNT];
    for (int i = 0; i < ORDER_COUNT; i++) {
        data[i] = (float)(1.0 / (1 + member->rank * 977 + i));
    }
    const TransportCall call = {.in = data, .out = data, .bytes = sizeof data, .place = {.task = -1}};
    expect(member, transport_shm.all_reduce(member->transport, &call, &member->error) == STATUS_OK);
    memcpy(order_bits[member->rank], data, sizeof data);
}

// Rounding differs with the order of a sum: the bits of rank order, on every rank.
Test(transport, sums_run_in_rank_order_on_every_rank) {
    Crew crew = {.mesh = {{1, 8, 1, 1}}, .work = uneven_sum, .count = 1};
    crew.communicators[0] = (Communicator){.name = "lane", .axes = AXIS_ALL};
    crew_open(&crew);
    crew_run(&crew);
    cr_assert(crew_close(&crew) == 0);
    for (int i = 0; i < ORDER_COUNT; i++) {
        float sum = (float)(1.0 / (1 + i));
        for (int rank = 1; rank < 8; rank++) {
            sum += (float)(1.0 / (1 + rank * 977 + i));
        }
        for (int rank = 0; rank < 8; rank++) {
            cr_assert(memcmp(&order_bits[rank][i], &sum, sizeof sum) == 0, "element %d of rank %d", i, rank);
        }
    }
}

static void *second_lane(void *argument) {
    const Seat *seat = argument;
    for (int i = 0; i < 50; i++) {
        check_all_reduce(seat, 3001, REDUCE_SUM);
        check_send_recv(seat, 777);
    }
    return NULL;
}

static void two_lanes(Member *member) {
    Member other = *member;  // counts its own faults: the two threads share only the transport
    other.faults = 0;
    Seat second = seat_of(&other, 1);
    const Seat first = seat_of(member, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, second_lane, &second);
    for (int i = 0; i < 50; i++) {
        check_all_gather(&first, 1501);
        check_reduce_scatter(&first, 333, REDUCE_SUM);
    }
    pthread_join(thread, NULL);
    member->faults += other.faults;
}

Test(transport, communicators_do_not_disturb_each_other) {
    Crew crew = {.mesh = {{1, 2, 1, 2}}, .work = two_lanes, .count = 2};
    crew.communicators[0] = (Communicator){.name = "one", .id = 0, .axes = AXIS_ALL};
    crew.communicators[1] = (Communicator){.name = "two", .id = 1, .axes = AXIS_ALL};
    crew_open(&crew);
    crew_run(&crew);
    cr_assert(crew_close(&crew) == 0);
}

static void one_is_missing(Member *member) {
    const TransportCall meet = {.place = {.task = -1}};
    if (member->rank != 2) {
        expect(member, transport_shm.barrier(member->transport, &meet, &member->error) != STATUS_OK);
        transport_shm.stop(member->transport);
    }
}

Test(transport, a_late_rank_is_named_within_the_timeout) {
    Crew crew = {.mesh = {{1, 4, 1, 1}}, .work = one_is_missing, .count = 1, .timeout_s = 0.2};
    crew.communicators[0] = (Communicator){.name = "ag", .axes = AXIS_ALL};
    crew_open(&crew);
    crew_run(&crew);
    int named = 0;
    for (int rank = 0; rank < 4; rank++) {
        const char *message = crew.members[rank].error.message;
        named += strstr(message, "lane ag") && strstr(message, "for rank 2") && !strstr(message, "rank 1");
        cr_expect(rank == 2 || message[0] != '\0', "rank %d hung or passed", rank);
    }
    cr_expect(named >= 1, "%s", crew.members[0].error.message);
    cr_assert(crew_close(&crew) == 0);
}

Test(transport, an_absent_transport_is_refused_in_words) {
    Error error = {0};
    cr_assert(transport_find("mpi", &error) == NULL && error.status == STATUS_ENVIRONMENT);
    cr_assert(strstr(error.message, "it runs shm"), "%s", error.message);
    cr_assert(transport_find("carrier pigeon", &error) == NULL && error.status == STATUS_USAGE);
}

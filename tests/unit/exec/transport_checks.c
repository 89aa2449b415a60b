// Elements are small integers, so that sums are exact in fp32 in any order; only check_order tests rounding.

#include "tests/unit/exec/transport_checks.h"

#include <pthread.h>
#include <string.h>

#include "sim/base/bf16.h"

enum { MESSAGES_AHEAD = 2, MESSAGE_FLOATS_MOST = 200003, MESSAGES_ROUND = 50 };

int check_communicators(const Mesh *mesh, Communicator communicators[CHECK_COMMUNICATORS_MOST]) {
    const AxisMask real = mesh_real_axes(mesh, AXIS_ALL);
    int count = 0;
    for (AxisMask axes = 1; axes <= AXIS_ALL; axes++) {
        if (axes == AXIS_ALL || ((axes & ~real) == 0 && axes != real)) {
            communicators[count++] = (Communicator){.name = "lane", .id = 0, .axes = axes};
        }
    }
    return count;
}

// A rank's value of element i: sums over 8 ranks stay exact in fp32.
static float element(int rank, int64_t i) {
    return (float)((rank * 31 + i * 7) % 1024 - 512);
}

typedef struct Seat {
    CheckRank *rank;
    int communicator, size, index;
    int ranks[CHECK_RANKS_MOST];
} Seat;

static Seat cell_of(CheckRank *rank, int communicator) {
    const AxisMask axes = rank->communicators[communicator].axes;
    const MeshCoordinates at = mesh_coordinates(&rank->mesh, rank->rank);
    Seat cell = {rank, communicator, mesh_group_size(&rank->mesh, axes), mesh_group_index(&rank->mesh, axes, &at), {0}};
    for (int i = 0; i < cell.size; i++) {
        cell.ranks[i] = mesh_group_member(&rank->mesh, axes, &at, i);
    }
    return cell;
}

static void expect(const Seat *cell, bool right) {
    cell->rank->faults += !right;
}

// place.step distinguishes calls, as a program's places do.
static void call(const Seat *cell, TransportKind kind, const float *in, float *out, int64_t count, ReduceOp op) {
    const TransportCall call = {.communicator = cell->communicator,
                                .in = in,
                                .out = out,
                                .bytes = count * (int64_t)sizeof(float),
                                .op = op,
                                .place = {.task = -1}};
    expect(cell, cell->rank->table->run(cell->rank->transport, kind, &call, &cell->rank->error) == STATUS_OK);
}

static float combined(const Seat *cell, int64_t i, ReduceOp op) {
    float result = element(cell->ranks[0], i);
    for (int k = 1; k < cell->size; k++) {
        const float x = element(cell->ranks[k], i);
        result = op == REDUCE_SUM ? result + x : x > result ? x : result;
    }
    return result;
}

static float *elements(int rank, int64_t count) {
    float *data = malloc((size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++) {
        data[i] = element(rank, i);
    }
    return data;
}

static void all_gather(const Seat *cell, int64_t count, ReduceOp op) {
    float *in = elements(cell->rank->rank, count), *out = elements(-1, count * cell->size);
    call(cell, TRANSPORT_ALL_GATHER, in, out, count, op);
    for (int64_t i = 0; i < count * cell->size; i++) {
        expect(cell, out[i] == element(cell->ranks[i / count], i % count));
    }
    free(in);
    free(out);
}

// The rank's own part is already in the result, which is allowed.
static void all_gather_in_place(const Seat *cell, int64_t count, ReduceOp op) {
    float *out = elements(-1, count * cell->size), *in = elements(cell->rank->rank, count);
    memcpy(out + cell->index * count, in, (size_t)count * sizeof(float));
    call(cell, TRANSPORT_ALL_GATHER, out + cell->index * count, out, count, op);
    for (int64_t i = 0; i < count * cell->size; i++) {
        expect(cell, out[i] == element(cell->ranks[i / count], i % count));
    }
    free(in);
    free(out);
}

static void scattered(const Seat *cell, const float *in, float *out, int64_t count, ReduceOp op) {
    call(cell, TRANSPORT_REDUCE_SCATTER, in, out, count, op);
    for (int64_t i = 0; i < count; i++) {
        expect(cell, out[i] == combined(cell, cell->index * count + i, op));
    }
}

static void reduce_scatter(const Seat *cell, int64_t count, ReduceOp op) {
    float *in = elements(cell->rank->rank, count * cell->size), *out = elements(-1, count);
    scattered(cell, in, out, count, op);
    free(in);
    free(out);
}

// The result overwrites the rank's own part of the input, which is allowed.
static void reduce_scatter_in_place(const Seat *cell, int64_t count, ReduceOp op) {
    float *in = elements(cell->rank->rank, count * cell->size);
    scattered(cell, in, in + cell->index * count, count, op);
    free(in);
}

static void all_reduce(const Seat *cell, int64_t count, ReduceOp op) {
    float *in = elements(cell->rank->rank, count), *out = elements(-1, count);
    call(cell, TRANSPORT_ALL_REDUCE, in, out, count, op);
    for (int64_t i = 0; i < count; i++) {
        expect(cell, out[i] == combined(cell, i, op));
    }
    free(in);
    free(out);
}

static void all_reduce_in_place(const Seat *cell, int64_t count, ReduceOp op) {
    float *data = elements(cell->rank->rank, count);
    call(cell, TRANSPORT_ALL_REDUCE, data, data, count, op);
    for (int64_t i = 0; i < count; i++) {
        expect(cell, data[i] == combined(cell, i, op));
    }
    free(data);
}

// Too wide for fp32 and for a double.
static int64_t integer(int rank, int64_t i) {
    return (rank - 3) * (INT64_C(1) << 58) + 7 * i + rank;
}

static int64_t integer_sum(const Seat *cell, int64_t i) {
    int64_t sum = 0;
    for (int k = 0; k < cell->size; k++) {
        sum += integer(cell->ranks[k], i);
    }
    return sum;
}

static void integers(const Seat *cell, int64_t count, ReduceOp op) {
    const int64_t part = (count + cell->size - 1) / cell->size, all = part * cell->size;
    int64_t *in = calloc((size_t)all, sizeof *in), *out = calloc((size_t)all, sizeof *out);
    for (int64_t i = 0; i < all; i++) {
        in[i] = integer(cell->rank->rank, i);
    }
    call(cell, TRANSPORT_ALL_REDUCE, (const float *)(void *)in, (float *)(void *)out, 2 * all, op);
    for (int64_t i = 0; i < all; i++) {
        expect(cell, out[i] == integer_sum(cell, i));
    }
    call(cell, TRANSPORT_REDUCE_SCATTER, (const float *)(void *)in, (float *)(void *)out, 2 * part, op);
    for (int64_t i = 0; i < part; i++) {
        expect(cell, out[i] == integer_sum(cell, cell->index * part + i));
    }
    free(in);
    free(out);
}

// Integers up to 128 are exact in bf16; an odd count of them is not a whole number of floats.
static float half_element(int rank, int64_t i) {
    return (float)((rank * 31 + i * 7) % 256 - 128);
}

static void all_reduce_bf16(const Seat *cell, int64_t count, ReduceOp op) {
    uint16_t *data = malloc((size_t)count * sizeof *data);
    for (int64_t i = 0; i < count; i++) {
        data[i] = bf16_of(half_element(cell->rank->rank, i));
    }
    const TransportCall call = {.communicator = cell->communicator,
                                .in = data,
                                .out = data,
                                .bytes = count * (int64_t)sizeof *data,
                                .op = op,
                                .dtype = DTYPE_BF16,
                                .place = {.task = -1}};
    expect(cell,
           cell->rank->table->run(cell->rank->transport, TRANSPORT_ALL_REDUCE, &call, &cell->rank->error) == STATUS_OK);
    for (int64_t i = 0; i < count; i++) {
        float sum = 0;
        for (int k = 0; k < cell->size; k++) {
            sum += half_element(cell->ranks[k], i);
        }
        expect(cell, data[i] == bf16_of(sum));
    }
    free(data);
}

static void send_recv(const Seat *cell, int64_t count, ReduceOp op) {
    float *out = elements(cell->rank->rank, count), *in = elements(-1, count);
    call(cell, TRANSPORT_SEND_RECV, out, in, count, op);
    const int before = cell->ranks[(cell->index + cell->size - 1) % cell->size];
    for (int64_t i = 0; i < count; i++) {
        expect(cell, in[i] == element(before, i));
    }
    free(out);
    free(in);
}

// Part k is for member k; received part k is the one that member k had for this one.
static void all_to_all(const Seat *cell, int64_t count, ReduceOp op) {
    float *in = elements(cell->rank->rank, count * cell->size), *out = elements(-1, count * cell->size);
    call(cell, TRANSPORT_ALL_TO_ALL, in, out, count, op);
    for (int64_t i = 0; i < count * cell->size; i++) {
        const int from = (int)(i / count);
        expect(cell, out[i] == element(cell->ranks[from], cell->index * count + i % count));
    }
    free(in);
    free(out);
}

// How many elements go from one member to another: none, a few, all.
static int64_t uneven_count(const Seat *cell, int from, int to, int64_t count) {
    const int64_t share = (from * 3 + to * 5 + 1) % (cell->size + 1);
    return count * share / cell->size;
}

static void all_to_all_uneven(const Seat *cell, int64_t count, ReduceOp op) {
    float *in = elements(cell->rank->rank, count * cell->size), *out = elements(-1, count * cell->size);
    int64_t leave[TRANSPORT_MAX_WORLD], come[TRANSPORT_MAX_WORLD], at = 0;
    for (int i = 0; i < cell->size; i++) {
        leave[i] = uneven_count(cell, cell->index, i, count) * (int64_t)sizeof(float);
        come[i] = uneven_count(cell, i, cell->index, count) * (int64_t)sizeof(float);
    }
    const TransportCall call = {.communicator = cell->communicator,
                                .in = in,
                                .out = out,
                                .bytes = count * (int64_t)sizeof(float),
                                .op = op,
                                .dtype = DTYPE_FP32,
                                .leave = leave,
                                .come = come,
                                .place = {.task = -1}};
    expect(cell,
           cell->rank->table->run(cell->rank->transport, TRANSPORT_ALL_TO_ALL, &call, &cell->rank->error) == STATUS_OK);
    for (int from = 0; from < cell->size; from++) {
        int64_t first = 0;  // in what that member sends
        for (int to = 0; to < cell->index; to++) {
            first += uneven_count(cell, from, to, count);
        }
        for (int64_t i = 0; i < uneven_count(cell, from, cell->index, count); i++, at++) {
            expect(cell, out[at] == element(cell->ranks[from], first + i));
        }
    }
    for (; at < count * cell->size; at++) {
        expect(cell, out[at] == element(-1, at));
    }
    free(in);
    free(out);
}

static void barrier(const Seat *cell, int64_t count, ReduceOp op) {
    (void)count;
    call(cell, TRANSPORT_BARRIER, NULL, NULL, 0, op);
}

typedef struct Check {
    void (*run)(const Seat *cell, int64_t count, ReduceOp op);
    ReduceOp op;
} Check;

static const Check checks[] = {
    {all_gather, REDUCE_SUM},     {all_gather_in_place, REDUCE_SUM},     {reduce_scatter, REDUCE_SUM},
    {reduce_scatter, REDUCE_MAX}, {reduce_scatter_in_place, REDUCE_SUM}, {all_reduce, REDUCE_SUM},
    {all_reduce, REDUCE_MAX},     {all_reduce_in_place, REDUCE_SUM},     {send_recv, REDUCE_SUM},
    {all_to_all, REDUCE_SUM},     {all_to_all_uneven, REDUCE_SUM},       {all_reduce_bf16, REDUCE_SUM},
    {barrier, REDUCE_SUM},        {integers, REDUCE_SUM_INT64},
};

// One element; around the sizes where the methods change; more than is staged at a time, with a remainder.
static const int64_t counts[] = {1, 3, 1023, 1024, 1025, 70001, 200003};

void check_all(CheckRank *rank) {
    for (int communicator = 0; communicator < rank->communicator_count; communicator++) {
        const Seat cell = cell_of(rank, communicator);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            for (size_t c = 0; c < sizeof checks / sizeof *checks; c++) {
                checks[c].run(&cell, counts[i], checks[c].op);
            }
        }
    }
}

void check_some(CheckRank *rank, int communicator, int times) {
    const Seat cell = cell_of(rank, communicator);
    for (int i = 0; i < times; i++) {
        all_reduce(&cell, 3001, REDUCE_SUM);
        send_recv(&cell, 777, REDUCE_SUM);
        all_to_all(&cell, 411, REDUCE_SUM);
        all_to_all_uneven(&cell, 411, REDUCE_SUM);
        all_gather(&cell, 1501, REDUCE_SUM);
        reduce_scatter(&cell, 333, REDUCE_SUM);
    }
}

// ---------------------------------------------------------------------------------------------- order

enum { ORDER_COUNT = 5000 };

static float uneven(int rank, int i) {
    return (float)(1.0 / (1 + rank * 977 + i));
}

void check_order(CheckRank *rank) {
    const Seat cell = cell_of(rank, rank->communicator_count - 1);  // the mask of all axes
    float data[ORDER_COUNT];
    for (int i = 0; i < ORDER_COUNT; i++) {
        data[i] = uneven(rank->rank, i);
    }
    call(&cell, TRANSPORT_ALL_REDUCE, data, data, ORDER_COUNT, REDUCE_SUM);
    for (int i = 0; i < ORDER_COUNT; i++) {
        float sum = uneven(0, i);
        for (int k = 1; k < cell.size; k++) {
            sum += uneven(k, i);
        }
        expect(&cell, memcmp(&data[i], &sum, sizeof sum) == 0);
    }
}

// ---------------------------------------------------------------------------------------------- messages

int check_links(const Mesh *mesh, Communicator communicators[CHECK_COMMUNICATORS_MOST]) {
    const int size = mesh_world(mesh);
    int count = 0;
    for (int from = 0; from < size; from++) {
        for (int step = 0; step < 2; step++) {
            const Link link = transport_link(size, from, (from + (step == 0 ? 1 : size - 1)) % size);
            int known = 0;
            while (known < count &&
                   (communicators[known].link.step != link.step || communicators[known].link.class != link.class)) {
                known++;
            }
            communicators[known] = (Communicator){.name = "link",
                                                  .id = 0,
                                                  .axes = AXIS_ALL,
                                                  .link = link,
                                                  .message_bytes = MESSAGE_FLOATS_MOST * (int64_t)sizeof(float),
                                                  .ahead = MESSAGES_AHEAD};
            count += known == count;
        }
    }
    communicators[count++] = (Communicator){.name = "run", .id = 1, .axes = AXIS_ALL};
    return count;
}

static float message_element(int rank, int number, int64_t i) {
    return element(rank, i + 13 * number);
}

static TransportCall message_call(const CheckRank *rank, int from, int to, int number, int64_t count) {
    const Link link = transport_link(mesh_world(&rank->mesh), from, to);
    TransportCall call = {.bytes = count * (int64_t)sizeof(float), .place = {.task = -1, .micro_step = number}};
    while (rank->communicators[call.communicator].link.step != link.step ||
           rank->communicators[call.communicator].link.class != link.class) {
        call.communicator++;
    }
    return call;
}

static void send(CheckRank *rank, int to, int number, int64_t count) {
    float *data = malloc((size_t)count * sizeof *data);
    for (int64_t i = 0; i < count; i++) {
        data[i] = message_element(rank->rank, number, i);
    }
    TransportCall call = message_call(rank, rank->rank, to, number, count);
    call.in = data;
    rank->faults += rank->table->run(rank->transport, TRANSPORT_SEND, &call, &rank->error) != STATUS_OK;
    free(data);  // sent data belongs to the transport
}

static void receive(CheckRank *rank, int from, int number, int64_t count) {
    float *data = calloc((size_t)count, sizeof *data);
    TransportCall call = message_call(rank, from, rank->rank, number, count);
    call.out = data;
    rank->faults += rank->table->run(rank->transport, TRANSPORT_RECEIVE, &call, &rank->error) != STATUS_OK;
    for (int64_t i = 0; i < count; i++) {
        rank->faults += data[i] != message_element(from, number, i);
    }
    free(data);
}

// Down the line and back up it, as activations and their gradients go; the last message of each way is longer.
static void messages_along_line(CheckRank *rank, int64_t count) {
    enum { MESSAGES = 3 };
    const int size = mesh_world(&rank->mesh);
    for (int number = 0; number < 2 * MESSAGES; number++) {
        const bool down = number < MESSAGES;
        const int from = rank->rank + (down ? -1 : 1), to = rank->rank + (down ? 1 : -1);
        const int64_t floats = number % MESSAGES == MESSAGES - 1 ? count : (count + 1) / 2;
        if (from >= 0 && from < size) {
            receive(rank, from, number, floats);
        }
        if (to >= 0 && to < size) {
            send(rank, to, number, floats);
        }
    }
}

void check_line(CheckRank *rank) {
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        messages_along_line(rank, counts[i]);
    }
}

// Round the ring, both ways.
static void messages_before_receives(CheckRank *rank, int64_t count) {
    const int size = mesh_world(&rank->mesh);
    const int next = (rank->rank + 1) % size, before = (rank->rank + size - 1) % size;
    const int ways = next == before ? 1 : 2;
    for (int n = 0; n < ways * MESSAGES_AHEAD; n++) {
        send(rank, n % ways == 0 ? next : before, n / ways, count);
    }
    for (int n = 0; n < ways * MESSAGES_AHEAD; n++) {
        receive(rank, n % ways == 0 ? before : next, n / ways, count);
    }
}

void check_messages_ahead(CheckRank *rank) {
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        messages_before_receives(rank, counts[i]);
    }
}

static void *receiving_lane(void *argument) {
    CheckRank *rank = argument;
    for (int number = 0; number < MESSAGES_ROUND; number++) {
        receive(rank, (rank->rank + mesh_world(&rank->mesh) - 1) % mesh_world(&rank->mesh), number, 5000 + number);
    }
    return NULL;
}

void check_message_lanes(CheckRank *rank) {
    CheckRank other = *rank;
    other.faults = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, receiving_lane, &other);
    for (int number = 0; number < MESSAGES_ROUND; number++) {
        send(rank, (rank->rank + 1) % mesh_world(&rank->mesh), number, 5000 + number);
    }
    pthread_join(thread, NULL);
    rank->faults += other.faults;
}

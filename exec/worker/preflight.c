// Values are small whole numbers, so a sum in any order is exact and a single wrong bit shows. All groups of an axis
// run at the same time, as they do in a run. Clocks: after a barrier every rank reads its own; the smallest difference
// to rank 0 over several rounds is what the barrier cannot explain. A rank that does not answer ends the job through
// the transport's timeout, which names it.

#include "exec/worker/preflight.h"

#include <jansson.h>
#include <math.h>

#include "exec/worker/gather.h"
#include "exec/worker/hosts.h"
#include "exec/worker/preflight_links.h"
#include "exec/worker/probe_buffers.h"
#include "exec/worker/stopwatch.h"
#include "kernels/kernels.h"
#include "sim/base/clock.h"

enum {
    CLOCK_ROUNDS = 20,
    KINDS = 4,  // the first of probe_collective_rows
    REPEATS = 7,
    PART_FLOATS_ODD = 3,       // not a multiple of a slot, line or vector
    PAYLOAD_FLOATS = 1 << 20,  // 4 MB: bandwidth, not latency
    GEMM_SIDE = 384,
    GEMM_REPEATS = 15,
};

typedef struct Check {
    Session *session;
    const ProbeCollective *row;
    int size, index;  // members, this rank among them
    int64_t part;     // floats of one member
    TransportCall call;
    const ProbeBuffers *buffers;  // where the transport accesses them
    float *in, *out;              // host view
} Check;

// What member `index` contributes at position i.
static float value_of(int64_t i, int index) {
    return (float)((i * 7 + index * 13) % 64);
}

static float sum_of(int64_t i, int size) {
    float sum = 0;
    for (int index = 0; index < size; index++) {
        sum += value_of(i, index);
    }
    return sum;
}

static Status check_call(void *context, Error *error) {
    const Check *check = context;
    return check->session->transports->run(check->session->transport, check->row->kind, &check->call, error);
}

static Status check_fill(Check *check, Error *error) {
    const bool part_in = check->row->kind == TRANSPORT_ALL_GATHER;
    const int64_t whole = check->part * check->size;
    for (int64_t i = 0; i < (part_in ? check->part : whole); i++) {
        check->in[i] = value_of(i, check->index);
    }
    check->call.in = check->buffers->in;
    check->call.out = check->buffers->out;
    check->call.bytes = (check->row->parts ? check->part : whole) * (int64_t)sizeof(float);
    return probe_buffers_move(check->session, check->buffers, check->buffers->in, check->in,
                              (part_in ? check->part : whole) * (int64_t)sizeof(float), error);
}

// What this member gets at position i.
static float expected_of(const Check *check, int64_t i) {
    const TransportKind kind = check->row->kind;
    const int64_t part = check->part;
    return kind == TRANSPORT_ALL_GATHER       ? value_of(i % part, (int)(i / part))
           : kind == TRANSPORT_REDUCE_SCATTER ? sum_of(check->index * part + i, check->size)
           : kind == TRANSPORT_ALL_REDUCE     ? sum_of(i, check->size)
                                              : value_of(i, (check->index + check->size - 1) % check->size);
}

// Counts elements with an incorrect value.
static Status check_wrong(const Check *check, int64_t *wrong, Error *error) {
    const bool part_out = check->row->kind == TRANSPORT_REDUCE_SCATTER;
    const int64_t count = part_out ? check->part : check->part * check->size;
    TRY(probe_buffers_move(check->session, check->buffers, check->out, check->buffers->out,
                           count * (int64_t)sizeof(float), error));
    for (int64_t i = 0; i < count; i++) {
        const float expected = expected_of(check, i);
        *wrong += check->out[i] < expected || check->out[i] > expected;
    }
    return STATUS_OK;
}

typedef struct Finding {
    double seconds;
    int64_t wrong;
} Finding;

static Status check_run(Check *check, Finding *finding, Error *error) {
    finding->wrong = 0;
    check->part = PART_FLOATS_ODD;
    TRY(check_fill(check, error));
    TRY(check_call(check, error));
    TRY(check_wrong(check, &finding->wrong, error));
    check->part = PAYLOAD_FLOATS / check->size;
    TRY(check_fill(check, error));
    Timing timing;
    TRY(stopwatch_run(check_call, check, &(StopwatchPlan){clock_s, REPEATS, 1}, &timing, error));
    finding->seconds = timing.seconds;
    return check_wrong(check, &finding->wrong, error);
}

static json_t *findings_json(const Finding *all, int world, bool wrong) {
    json_t *numbers = json_array();
    for (int rank = 0; rank < world; rank++) {
        json_array_append_new(numbers,
                              wrong ? json_integer((json_int_t)all[rank].wrong) : json_real(all[rank].seconds));
    }
    return numbers;
}

// One collective over one set of axes, on all its groups.
static Status check_axes(const Check *common, AxisMask axes, const ProbeCollective *row, json_t *rows, Error *error) {
    Session *session = common->session;
    const Mesh *mesh = &session->request->plan.mesh;
    const int world = mesh_world(mesh);
    Check check = *common;
    check.row = row;
    check.size = mesh_group_size(mesh, axes);
    check.index = mesh_group_index(mesh, axes, &session->at);
    check.call = (TransportCall){.communicator = communicators_of_axes(&session->communicators, axes),
                                 .place = {.step = -1, .task = -1}};
    Finding own, all[TRANSPORT_MAX_WORLD];
    TRY(check_run(&check, &own, error));
    TRY(gather(session, &own, all, sizeof own, error));
    json_array_append_new(rows, json_pack("{s:i, s:s, s:I, s:o, s:o}", "axes", (int)axes, "collective", row->name,
                                          "payload_bytes",
                                          (json_int_t)(check.part * check.size * (int64_t)sizeof(float)), "seconds",
                                          findings_json(all, world, false), "wrong", findings_json(all, world, true)));
    return STATUS_OK;
}

// Single axes, and the sharding group where it differs from them.
static Status check_groups(Session *session, Arena *arena, json_t *rows, Error *error) {
    AxisMask wanted[AXIS_COUNT + 1];  // fast axes first, the group after the single axes that it combines
    size_t count = 0;
    for (int axis = AXIS_COUNT - 1; axis >= 0; axis--) {
        wanted[count++] = AXIS_BIT(axis);
        if (axes_slowest(AXES_SHARD_GROUP) == (Axis)axis) {
            wanted[count++] = AXES_SHARD_GROUP;
        }
    }
    ProbeBuffers buffers;
    TRY(probe_buffers_open(session, PAYLOAD_FLOATS * (int64_t)sizeof(float), arena, &buffers, error));
    const Check check = {.session = session,
                         .buffers = &buffers,
                         .in = ARENA_ARRAY(arena, float, PAYLOAD_FLOATS),
                         .out = ARENA_ARRAY(arena, float, PAYLOAD_FLOATS)};
    for (size_t i = 0; i < count; i++) {
        const bool there = communicators_of_axes(&session->communicators, wanted[i]) >= 0;
        for (int which = 0; there && which < KINDS; which++) {
            TRY(check_axes(&check, wanted[i], &probe_collective_rows[which], rows, error));
        }
    }
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- ranks

// offsets[rank]: its clock minus that of rank 0.
static Status check_clocks(Session *session, Arena *arena, double *offsets, Error *error) {
    const int world = mesh_world(&session->request->plan.mesh);
    double *clocks = ARENA_ARRAY(arena, double, world);
    for (int round = 0; round < CLOCK_ROUNDS; round++) {
        TRY(session_meet(session, error));
        const double own_s = clock_of_s(CLOCK_REALTIME);
        TRY(gather(session, &own_s, clocks, sizeof own_s, error));
        for (int rank = 0; rank < world; rank++) {
            const double offset = clocks[rank] - clocks[0];
            offsets[rank] = round == 0 || fabs(offset) < fabs(offsets[rank]) ? offset : offsets[rank];
        }
    }
    return STATUS_OK;
}

typedef struct Product {
    float *a, *b, *c;
} Product;

static Status multiply(void *context, Error *error) {
    const Product *product = context;
    (void)error;
    kernel_gemm(false, true, GEMM_SIDE, GEMM_SIDE, GEMM_SIDE, product->a, product->b, product->c, false);
    return STATUS_OK;
}

// All ranks at once; rates[rank] in FLOP/s.
static Status check_speed(Session *session, Arena *arena, double *rates, Error *error) {
    Product product;
    float **const parts[] = {&product.a, &product.b, &product.c};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *parts[i] = ARENA_ARRAY(arena, float, GEMM_SIDE *GEMM_SIDE);
        for (int j = 0; j < GEMM_SIDE * GEMM_SIDE; j++) {
            (*parts[i])[j] = 0.5f;
        }
    }
    TRY(session_meet(session, error));
    Timing timing;
    TRY(stopwatch_run(multiply, &product, &(StopwatchPlan){clock_s, GEMM_REPEATS, 1}, &timing, error));
    const double rate = 2.0 * GEMM_SIDE * GEMM_SIDE * GEMM_SIDE / timing.seconds;
    return gather(session, &rate, rates, sizeof rate, error);
}

static json_t *ranks_json(const RankHost *hosts, const double *offsets, const double *rates, int world) {
    json_t *rows = json_array();
    for (int rank = 0; rank < world; rank++) {
        const RankHost *host = &hosts[rank];
        json_array_append_new(rows,
                              json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "host", host->name, "node",
                                        (int)host->node, "cores", (json_int_t)host->cores, "memory_bytes",
                                        (json_int_t)host->memory_bytes, "shared_bytes", (json_int_t)host->shared_bytes,
                                        "locked_limit_bytes", (json_int_t)host->locked_limit_bytes,
                                        "address_limit_bytes", (json_int_t)host->address_limit_bytes, "clock_offset_s",
                                        offsets[rank], "flop_per_s", rates[rank]));
    }
    return rows;
}

static Status preflight_all(Session *session, Arena *arena, json_t *groups, Error *error) {
    const int world = mesh_world(&session->request->plan.mesh);
    double *offsets = ARENA_ARRAY(arena, double, world), *rates = ARENA_ARRAY(arena, double, world);
    RankHost *hosts;
    TRY(hosts_gather(session, arena, &hosts, error));
    TRY(check_clocks(session, arena, offsets, error));
    TRY(check_speed(session, arena, rates, error));
    TRY(check_groups(session, arena, groups, error));
    TRY(preflight_links(session, arena, groups, error));
    if (session->rank != 0) {
        return STATUS_OK;
    }
    return session_report(session,
                          json_pack("{s:s, s:o, s:O}", "schema", "ndtune.preflight-result/1", "ranks",
                                    ranks_json(hosts, offsets, rates, world), "groups", groups),
                          error);
}

Status preflight_run(Session *session, Arena *arena, Error *error) {
    json_t *groups = json_array();
    const Status status = preflight_all(session, arena, groups, error);
    json_decref(groups);
    return status;
}

// Each collective on every kind of group, a kind being the number of machines it spans and of ranks per machine. One
// group at a time, while the ranks outside wait, because the cost model adds sharing between siblings itself. Calls run
// back to back; repeats are agreed on within the group from the first call.

#include "exec/worker/probe.h"
#include "exec/worker/probe_buffers.h"
#include "sim/base/clock.h"

static const double BUDGET_S = 0.06;  // per sample
// Payload as defined by sim/cost. The last two are for devices with their own memory, whose layers have such buffers.
static const int64_t sizes_bytes[] = {4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20, 256 << 20};
enum { SIZES = sizeof sizes_bytes / sizeof sizes_bytes[0], HOST_SIZES = 4, LEAST_SIZES = 2 };

typedef struct Exchange {
    Session *session;
    TransportCall call;
    TransportKind kind;
} Exchange;

static Status exchange_call(void *context, Error *error) {
    const Exchange *exchange = context;
    return exchange->session->transports->run(exchange->session->transport, exchange->kind, &exchange->call, error);
}

const ProbeCollective probe_collective_rows[PROBE_COLLECTIVES] = {
    {"all_gather", TRANSPORT_ALL_GATHER, true},  {"reduce_scatter", TRANSPORT_REDUCE_SCATTER, true},
    {"all_reduce", TRANSPORT_ALL_REDUCE, false}, {"send_recv", TRANSPORT_SEND_RECV, false},
    {"all_to_all", TRANSPORT_ALL_TO_ALL, true},  {"barrier", TRANSPORT_BARRIER, false}};
enum { BARRIER = PROBE_COLLECTIVES - 1 };

// The slowest member's first call decides for all members.
static Status agree(Exchange *exchange, float *seconds, Error *error) {
    TransportCall call = exchange->call;
    call.in = call.out = seconds;
    call.bytes = sizeof *seconds;
    call.op = REDUCE_MAX;
    return exchange->session->transports->run(exchange->session->transport, TRANSPORT_ALL_REDUCE, &call, error);
}

static Status probe_one(Probe *probe, Exchange *exchange, const ProbeTopic *topic, Error *error) {
    TRY(exchange_call(exchange, error));
    const double start_s = clock_s();
    TRY(exchange_call(exchange, error));
    float first_s = (float)(clock_s() - start_s);
    TRY(agree(exchange, &first_s, error));
    const StopwatchPlan plan = stopwatch_plan(clock_s, first_s, BUDGET_S);
    Timing timing;
    TRY(stopwatch_run(exchange_call, exchange, &plan, &timing, error));
    probe_add(probe, topic, &timing);
    return STATUS_OK;
}

// How many of the sizes are used: two make a curve.
static int sizes_of(const Probe *probe) {
    int count = probe->session->devices->own_memory ? SIZES : HOST_SIZES;
    const int64_t most = sizes_bytes[count - 1] / probe->divisor / probe->divisor;
    while (count > LEAST_SIZES && sizes_bytes[count - 1] > most) {
        count--;
    }
    return count;
}

static Status probe_group(Probe *probe, const ProbeBuffers *buffers, int communicator, ProbeTopic topic, Error *error) {
    Session *session = probe->session;
    const int members = topic.nodes * topic.per_node;
    Exchange exchange = {
        .session = session,
        .call = {
            .communicator = communicator, .in = buffers->in, .out = buffers->out, .place = {.step = -1, .task = -1}}};
    topic.what = "collective";
    for (int which = 0; which < PROBE_COLLECTIVES; which++) {
        const ProbeCollective *row = &probe_collective_rows[which];
        exchange.kind = row->kind;
        topic.name = row->name;
        for (int s = 0; s < (which == BARRIER ? 1 : sizes_of(probe)); s++) {
            const int64_t part = sizes_bytes[s] / members / 64 * 64;
            exchange.call.bytes = row->parts ? part : sizes_bytes[s];
            topic.size[0] = which == BARRIER ? 0 : (double)(row->parts ? part * members : sizes_bytes[s]);
            TRY(probe_one(probe, &exchange, &topic, error));
        }
    }
    return STATUS_OK;
}

// Kinds of groups that were measured: over how many nodes, of how many ranks on each.
typedef struct KnownKinds {
    int nodes[AXIS_ALL], per_node[AXIS_ALL], count;
} KnownKinds;

static bool add_kind(KnownKinds *known, const ProbeTopic *topic) {
    for (int i = 0; i < known->count; i++) {
        if (known->nodes[i] == topic->nodes && known->per_node[i] == topic->per_node) {
            return false;
        }
    }
    known->nodes[known->count] = topic->nodes;
    known->per_node[known->count++] = topic->per_node;
    return true;
}

static ProbeTopic topic_of_axes(const Probe *probe, AxisMask axes) {
    Session at_origin = *probe->session;
    at_origin.at = (MeshCoordinates){{0}};
    ProbeTopic topic = {0};
    hosts_of_group(&at_origin, probe->hosts, axes, &topic.nodes, &topic.per_node);
    return topic;
}

// Of all groups over these axes, the one with rank 0.
static bool in_first_group(const Session *session, AxisMask axes) {
    bool mine = true;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        mine = mine && ((axes & AXIS_BIT(axis)) || session->at.at[axis] == 0);
    }
    return mine;
}

Status probe_collectives(Probe *probe, Error *error) {
    Session *session = probe->session;
    const bool own_memory = session->devices->own_memory;
    ProbeBuffers buffers;
    if (probe->world == 1 || (own_memory && !session->transports->memory)) {
        return probe_meet(probe, error);
    }
    TRY(probe_buffers_open(session, sizes_bytes[sizes_of(probe) - 1], probe->arena, &buffers, error));
    if (own_memory && !buffers.device) {
        return probe_meet(probe, error);
    }
    KnownKinds known = {.count = 0};
    for (AxisMask axes = 1; axes <= AXIS_ALL; axes++) {
        const int communicator = communicators_of_axes(&session->communicators, axes);
        if (communicator < 0) {
            continue;
        }
        const ProbeTopic topic = topic_of_axes(probe, axes);
        const bool even = topic.nodes * topic.per_node == mesh_group_size(&session->request->plan.mesh, axes);
        if (!even || !add_kind(&known, &topic)) {  // spread unevenly it is no kind
            continue;
        }
        if (in_first_group(session, axes)) {
            TRY(probe_group(probe, &buffers, communicator, topic, error));
        }
        TRY(probe_meet(probe, error));
    }
    return STATUS_OK;
}

// One link at a time: after a barrier its sender sends and its receiver measures the time, while all others wait at the
// next barrier. Both members of links of one class are active at once, as their groups are in a run. A message is no
// longer than the run's longest on that link, for which the transport reserved room. A fault that names a message of
// this link strikes here as it would in the run.

#include "exec/worker/preflight_links.h"

#include <string.h>

#include "exec/worker/gather.h"
#include "exec/worker/inject.h"
#include "exec/worker/probe_buffers.h"
#include "exec/worker/stopwatch.h"
#include "sim/base/clock.h"

enum { MOST_FLOATS = 1 << 20, REPEATS = 7 };  // 4 MB: bandwidth, not latency

typedef struct LinkFinding {
    double seconds;  // of the slowest link on which this rank receives, median
    int64_t wrong, bytes;
    int32_t from;  // -1 = it receives nothing in this direction
} LinkFinding;

typedef struct Links {
    Session *session;
    ProbeBuffers buffers;
    float *values;
} Links;

// What `rank` sends at position i.
static float value_of(int64_t i, int rank) {
    return (float)((i * 11 + rank * 5) % 128);
}

static FaultAction struck(Session *session, int link) {
    const RunFault *fault = &session->request->options.fault;
    if (fault->action == FAULT_NONE || fault->action == FAULT_PACE || fault->rank != session->rank ||
        session->communicators.of_task[fault->task] != link) {
        return FAULT_NONE;
    }
    return fault_inject(session, &(StepInstance){.task = fault->task});
}

static Status send(Links *links, const TransportCall *whole, Error *error) {
    Session *session = links->session;
    const int64_t count = whole->bytes / (int64_t)sizeof(float);
    for (int64_t i = 0; i < count; i++) {
        links->values[i] = value_of(i, session->rank);
    }
    TRY(probe_buffers_move(session, &links->buffers, links->buffers.in, links->values, whole->bytes, error));
    TransportCall call = *whole;
    switch (struck(session, call.communicator)) {
    case FAULT_SKIP:
        return STATUS_OK;
    case FAULT_SIZE:
        call.bytes /= 2;
        break;
    default:
        break;
    }
    call.in = links->buffers.in;
    return session->transports->run(session->transport, TRANSPORT_SEND, &call, error);
}

static Status receive(Links *links, const TransportCall *whole, int from, LinkFinding *finding, Error *error) {
    Session *session = links->session;
    TransportCall call = *whole;
    const int64_t count = call.bytes / (int64_t)sizeof(float);
    call.out = links->buffers.out;
    struck(session, call.communicator);
    TRY(session->transports->run(session->transport, TRANSPORT_RECEIVE, &call, error));
    TRY(probe_buffers_move(session, &links->buffers, links->values, links->buffers.out, call.bytes, error));
    for (int64_t i = 0; i < count; i++) {
        finding->wrong += links->values[i] < value_of(i, from) || links->values[i] > value_of(i, from);
    }
    return STATUS_OK;
}

static Status check_link(Links *links, int link, LinkFinding *finding, Error *error) {
    Session *session = links->session;
    const Communicator *communicator = &session->communicators.entries[link];
    const TransportGroup group = transport_group(&session->request->plan.mesh, communicator, session->rank);
    const int64_t floats = communicator->message_bytes / (int64_t)sizeof(float);
    const TransportCall call = {.communicator = link,
                                .bytes = (floats < MOST_FLOATS ? floats : MOST_FLOATS) * (int64_t)sizeof(float),
                                .place = {.step = -1, .task = -1}};
    double took[REPEATS];
    for (int repeat = -1; repeat < REPEATS; repeat++) {  // the first is not timed: it establishes connections
        TRY(session_meet(session, error));
        const double start_s = clock_s();
        if (group.size == 2 && group.index == 0) {
            TRY(send(links, &call, error));
        } else if (group.size == 2) {
            TRY(receive(links, &call, group.ranks[0], finding, error));
        }
        if (repeat >= 0) {
            took[repeat] = clock_s() - start_s;
        }
    }
    if (group.size == 2 && group.index == 1) {
        const double seconds = timing_of(took, REPEATS).seconds;
        finding->from = seconds > finding->seconds ? group.ranks[0] : finding->from;
        finding->seconds = seconds > finding->seconds ? seconds : finding->seconds;
    }
    finding->bytes = call.bytes;
    return STATUS_OK;
}

static json_t *direction_row(const LinkFinding *all, int world, const char *phase) {
    json_t *seconds = json_array(), *wrong = json_array(), *from = json_array();
    for (int rank = 0; rank < world; rank++) {
        json_array_append_new(seconds, json_real(all[rank].seconds));
        json_array_append_new(wrong, json_integer((json_int_t)all[rank].wrong));
        json_array_append_new(from, json_integer(all[rank].from));
    }
    return json_pack("{s:i, s:s, s:I, s:o, s:o, s:o}", "axes", (int)AXES_STAGE, "collective",
                     strcmp(phase, "forward") == 0 ? "send_forward" : "send_backward", "payload_bytes",
                     (json_int_t)all[0].bytes, "seconds", seconds, "wrong", wrong, "from", from);
}

// All links that carry messages of this phase.
static Status check_direction(Links *links, const char *phase, json_t *rows, Error *error) {
    Session *session = links->session;
    LinkFinding own = {.from = -1}, all[TRANSPORT_MAX_WORLD];
    int found = 0;
    for (int i = 0; i < session->communicators.count; i++) {
        const Communicator *entry = &session->communicators.entries[i];
        if (entry->link.step != 0 && strcmp(entry->name, phase) == 0) {
            TRY(check_link(links, i, &own, error));
            found++;
        }
    }
    if (found > 0) {
        TRY(gather(session, &own, all, sizeof own, error));
        json_array_append_new(rows, direction_row(all, mesh_world(&session->request->plan.mesh), phase));
    }
    return STATUS_OK;
}

Status preflight_links(Session *session, Arena *arena, json_t *rows, Error *error) {
    static const Phase phases[] = {PHASE_FORWARD, PHASE_BACKWARD};
    Links links = {.session = session, .values = ARENA_ARRAY(arena, float, MOST_FLOATS)};
    if (!plan_has_stages(&session->request->plan)) {
        return STATUS_OK;
    }
    TRY(probe_buffers_open(session, MOST_FLOATS * (int64_t)sizeof(float), arena, &links.buffers, error));
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        TRY(check_direction(&links, phase_name(phases[i]), rows, error));
    }
    return STATUS_OK;
}

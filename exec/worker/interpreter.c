// The interpreter: compute tasks go to the device, collectives to the transport, in issue order, which is a valid
// serial execution of the program (step.h).

#include "exec/worker/interpreter.h"

#include "exec/protocol/program_words.h"
#include "exec/worker/exchange.h"
#include "exec/worker/inject.h"
#include "sim/base/clock.h"

static Status transport_run(Session *session, const Task *task, const TransportCall *call, Error *error) {
    static const TransportKind kinds[TASK_KIND_COUNT] = {
        [TASK_ALL_GATHER] = TRANSPORT_ALL_GATHER, [TASK_REDUCE_SCATTER] = TRANSPORT_REDUCE_SCATTER,
        [TASK_ALL_REDUCE] = TRANSPORT_ALL_REDUCE, [TASK_SEND_RECV] = TRANSPORT_SEND_RECV,
        [TASK_ALL_TO_ALL] = TRANSPORT_ALL_TO_ALL, [TASK_SEND] = TRANSPORT_SEND,
        [TASK_RECEIVE] = TRANSPORT_RECEIVE,
    };
    return session->transports->run(session->transport, kinds[task->kind], call, error);
}

// Transfers its floats, its exact sums, or both.
static Status transfer_run(Session *session, const Task *task, const DeviceTransfer *transfer,
                           const TransportCall *floats, Error *error) {
    if (!transfer->sums_alone) {
        TRY(transport_run(session, task, floats, error));
    }
    if (!transfer->in_sums) {
        return STATUS_OK;
    }
    TransportCall sums = *floats;
    sums.in = transfer->in_sums;
    sums.out = transfer->out_sums;
    sums.bytes *= DEVICE_SUM_BYTES;
    sums.op = REDUCE_SUM_INT64;
    return transport_run(session, task, &sums, error);
}

static Status collective_run(Session *session, const StepInstance *instance, const TransportPlace *place,
                             FaultAction fault, Error *error) {
    const StepProgram *program = &session->program;
    const Task *task = &program->tasks[instance->task];
    DeviceTransfer transfer;
    ExchangeParts parts;
    TRY(session->devices->begin_transfer(session->device, instance, &transfer, error));
    TransportCall call = {
        .communicator = session->communicators.of_task[instance->task],
        .in = transfer.in,
        .out = transfer.out,
        .bytes = program_collective_bytes(program, task),
        .op = task->reduce_max ? REDUCE_MAX : REDUCE_SUM,
        .dtype = task->dtype,
        .place = *place,
        .stream = transfer.stream,
    };
    TRY(exchange_parts(session, instance, &transfer, &parts, &call, error));
    call.bytes /= fault == FAULT_SIZE ? 2 : 1;
    TRY(transfer_run(session, task, &transfer, &call, error));
    return session->devices->end_transfer(session->device, instance, &transfer, error);
}

static TransportPlace place_note(Session *session, const StepInstance *instance, int64_t ordinal) {
    const TransportPlace place = {.step = (int32_t)session->step,
                                  .task = instance->task,
                                  .layer = instance->layer,
                                  .micro_step = instance->micro_step,
                                  .ordinal = (int32_t)ordinal};
    if (session->devices->own_memory) {
        session->place = place;
    }
    session->transports->note(session->transport, &place);
    return place;
}

// *next: the place after the tasks that were run.
static Status instance_run(Session *session, const StepInstance *instance, int64_t ordinal, int64_t *next,
                           Error *error) {
    const TransportPlace place = place_note(session, instance, ordinal);
    const FaultAction fault = fault_inject(session, instance);
    *next = ordinal + 1;
    if (fault == FAULT_SKIP) {
        return STATUS_OK;
    }
    const double start_s = clock_s();
    if (task_is_transfer(&session->program.tasks[instance->task])) {
        TRY(collective_run(session, instance, &place, fault, error));
    } else {
        *next = ordinal + session->devices->run(session->device, instance, ordinal);
        fault_pace(session, start_s);
    }
    if (!session->devices->span) {
        recorder_span(&session->recorder, &(RecorderSpan){.step = session->step,
                                                          .ordinal = ordinal,
                                                          .task = instance->task,
                                                          .start_s = start_s - session->step_begin_s,
                                                          .end_s = clock_s() - session->step_begin_s});
    }
    return STATUS_OK;
}

Status interpreter_run_instance(Session *session, const StepInstance *instance, int64_t ordinal, Error *error) {
    int64_t next;
    return instance_run(session, instance, ordinal, &next, error);
}

Status interpreter_run_serial(Session *session, Error *error) {
    StepCursor cursor = step_cursor_begin(&session->program);
    StepInstance instance;
    int64_t next = 0;
    for (int64_t ordinal = 0; step_cursor_next(&cursor, &instance); ordinal++) {
        if (ordinal == next) {
            TRY(instance_run(session, &instance, ordinal, &next, error));
        }
    }
    return STATUS_OK;
}

Status interpreter_take_spans(Session *session, Error *error) {
    StepCursor cursor = step_cursor_begin(&session->program);
    StepInstance instance;
    for (int64_t ordinal = 0; step_cursor_next(&cursor, &instance); ordinal++) {
        RecorderSpan span = {.step = session->step, .ordinal = ordinal, .task = instance.task};
        TRY(session->devices->span(session->device, ordinal, &span.start_s, &span.end_s, error));
        recorder_span(&session->recorder, &span);
    }
    return STATUS_OK;
}

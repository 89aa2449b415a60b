// The interpreter: compute tasks go to the device, collectives to the transport, in issue order, which is a valid
// serial execution of the program (step.h).

#include "exec/worker/interpreter.h"

#include "exec/launch/program_words.h"
#include "exec/transport/clock.h"
#include "exec/worker/exchange.h"
#include "exec/worker/inject.h"

static Status transport_run(Session *session, const Task *task, const TransportCall *call, Error *error) {
    static const TransportKind kinds[TASK_KIND_COUNT] = {
        [TASK_ALL_GATHER] = COLLECTIVE_ALL_GATHER, [TASK_REDUCE_SCATTER] = COLLECTIVE_REDUCE_SCATTER,
        [TASK_ALL_REDUCE] = COLLECTIVE_ALL_REDUCE, [TASK_SEND_RECV] = COLLECTIVE_SEND_RECV,
        [TASK_ALL_TO_ALL] = COLLECTIVE_ALL_TO_ALL, [TASK_SEND] = COLLECTIVE_SEND,
        [TASK_RECEIVE] = COLLECTIVE_RECEIVE,
    };
    return session->transports->run(session->transport, kinds[task->kind], call, error);
}

// Where a task that moves bytes finds them, and where it leaves them.
static const BufferRef *moved_from(const StepProgram *program, const Task *task) {
    return &task_operand(program, task, AT_COLLECTIVE_FROM)->ref;
}

static const BufferRef *moved_to(const StepProgram *program, const Task *task) {
    return &task_operand(program, task, task_is_message(task) ? AT_MESSAGE : collective_to(task->kind))->ref;
}

// In a bitwise run sums travel as integers and are rounded behind the last rank's part. A message, on a ring, to
// another stage or to all ranks, is values or part of a sum (gradients): both go.
static Status exact_run(Session *session, const StepInstance *instance, const TransportCall *floats, Error *error) {
    const StepProgram *program = &session->program;
    const Task *task = &program->tasks[instance->task];
    const BufferRef *in = moved_from(program, task), *out = moved_to(program, task);
    TransportCall call = *floats;
    call.in = session->devices->sums(session->device, in, instance);
    call.out = session->devices->sums(session->device, out, instance);
    call.bytes *= DEVICE_SUM_BYTES;
    call.op = REDUCE_SUM_INT64;
    if (task->kind == TASK_SEND_RECV || task->kind == TASK_ALL_TO_ALL || task_is_message(task)) {
        TRY(transport_run(session, task, floats, error));
        return transport_run(session, task, &call, error);
    }
    TRY(transport_run(session, task, &call, error));
    session->devices->round(session->device, out, instance);
    return STATUS_OK;
}

static TransportCall collective_call(Session *session, const StepInstance *instance, const TransportPlace *place) {
    const StepProgram *program = &session->program;
    const Task *task = &program->tasks[instance->task];
    const BufferRef *in = moved_from(program, task), *out = moved_to(program, task);
    return (TransportCall){
        .communicator = session->communicators.of_task[instance->task],
        .in = session->devices->address(session->device, in, instance),
        .out = session->devices->address(session->device, out, instance),
        .bytes = program_collective_bytes(program, task),
        .op = task->reduce_max ? REDUCE_MAX : REDUCE_SUM,
        .dtype = task->dtype,
        .place = *place,
    };
}

// The transport reads host memory, the device has its own.
static Status staged_run(Session *session, const StepInstance *instance, TransportCall *call, Error *error) {
    DeviceStage stage;
    TRY(session->devices->stage(session->device, instance, &stage, error));
    call->in = stage.in;
    call->out = stage.out;
    TRY(transport_run(session, &session->program.tasks[instance->task], call, error));
    return session->devices->unstage(session->device, instance, error);
}

static Status collective_run(Session *session, const StepInstance *instance, const TransportPlace *place,
                             FaultAction fault, Error *error) {
    const Task *task = &session->program.tasks[instance->task];
    TransportCall call = collective_call(session, instance, place);
    ExchangeParts parts;
    TRY(exchange_parts(session, instance, &parts, &call, error));
    call.bytes /= fault == FAULT_SIZE ? 2 : 1;
    if (session->transports->finish && session->devices->stream) {
        call.stream = session->devices->stream(session->device, task->lane);
        return transport_run(session, task, &call, error);
    }
    if (session->devices->stage) {
        return staged_run(session, instance, &call, error);
    }
    const bool whole = task->kind == TASK_ALL_GATHER || task->reduce_max;
    return session->request->options.bitwise && !whole ? exact_run(session, instance, &call, error)
                                                       : transport_run(session, task, &call, error);
}

static Status task_run(Session *session, const StepInstance *instance, const TransportPlace *place, FaultAction fault,
                       Error *error) {
    const DeviceTable *devices = session->devices;
    if (devices->wait) {
        devices->wait(session->device, instance);
    }
    const Task *task = &session->program.tasks[instance->task];
    if (task_is_transfer(task)) {
        TRY(collective_run(session, instance, place, fault, error));
    } else {
        const double start_s = clock_s();
        devices->run(session->device, instance);
        fault_pace(session, start_s);
    }
    if (devices->record) {
        devices->record(session->device, instance);
    }
    return STATUS_OK;
}

static TransportPlace place_note(Session *session, const StepInstance *instance, int64_t ordinal) {
    const TransportPlace place = {.step = (int32_t)session->step,
                                  .task = instance->task,
                                  .layer = instance->layer,
                                  .micro_step = instance->micro_step,
                                  .ordinal = (int32_t)ordinal};
    if (session->devices->moved) {
        session->place = place;
    }
    session->transports->note(session->transport, &place);
    return place;
}

Status interpreter_run_instance(Session *session, const StepInstance *instance, int64_t ordinal, Error *error) {
    const TransportPlace place = place_note(session, instance, ordinal);
    const FaultAction fault = fault_inject(session, instance);
    if (fault == FAULT_SKIP) {
        return STATUS_OK;
    }
    const double start_s = clock_s();
    TRY(task_run(session, instance, &place, fault, error));
    if (!session->devices->span) {
        recorder_span(&session->recorder, &(RecorderSpan){.step = session->step,
                                                          .ordinal = ordinal,
                                                          .task = instance->task,
                                                          .start_s = start_s - session->step_begin_s,
                                                          .end_s = clock_s() - session->step_begin_s});
    }
    return STATUS_OK;
}

// The device takes what it can at once; a place is noted for each such run, by its first task.
static Status runs_run(Session *session, const IssueRuns *runs, Error *error) {
    for (int32_t r = 0; r < runs->count; r++) {
        const IssueRun *run = &runs->runs[r];
        StepCursor cursor = run->cursor;
        StepInstance instance;
        if (run->kind == RUN_FIXED && session->devices->launch(session->device, r)) {
            step_cursor_next(&cursor, &instance);
            place_note(session, &instance, run->first);
            continue;
        }
        for (int32_t i = 0; i < run->count && step_cursor_next(&cursor, &instance); i++) {
            TRY(interpreter_run_instance(session, &instance, run->first + i, error));
        }
    }
    return STATUS_OK;
}

Status interpreter_run_serial(Session *session, Error *error) {
    if (session->devices->runs && session->request->options.fault.action == FAULT_NONE) {
        return runs_run(session, session->devices->runs(session->device), error);
    }
    StepCursor cursor = step_cursor_begin(&session->program);
    StepInstance instance;
    for (int64_t ordinal = 0; step_cursor_next(&cursor, &instance); ordinal++) {
        TRY(interpreter_run_instance(session, &instance, ordinal, error));
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

// Gathers over the run's own communicator: the transport is there already, so results need no files of their own per
// rank.

#include "exec/worker/gather.h"

#include "exec/launch/result.h"
#include "kernels/kernels.h"

Status gather(Session *session, const void *part, void *whole, int64_t bytes, Error *error) {
    const TransportCall call = {.communicator = session->communicators.world,
                                .in = part,
                                .out = whole,
                                .bytes = bytes,
                                .place = {.step = (int32_t)session->step - 1, .task = -1}};
    return session->transports->all_gather(session->transport, &call, error);
}

static Status gather_most(Session *session, int64_t own, Arena *arena, int64_t *most, Error *error) {
    const int world = mesh_world(&session->request->plan.mesh);
    int64_t *each = ARENA_ARRAY(arena, int64_t, world);
    TRY(gather(session, &own, each, sizeof own, error));
    *most = 0;
    for (int rank = 0; rank < world; rank++) {
        *most = each[rank] > *most ? each[rank] : *most;
    }
    return STATUS_OK;
}

static Status gather_memory(Session *session, Arena *arena, RunRecord *record, Error *error) {
    DeviceAccount account = {0};
    if (session->devices->account) {
        session->devices->account(session->device, &account);
    }
    record->chip = account.chip;
    record->prices = account.prices;
    record->price_count = account.price_count;
    TRY(gather_most(session, account.bytes, arena, &record->device_bytes, error));
    return gather_most(session, session->devices->peak_bytes(session->device), arena, &record->peak_bytes, error);
}

// Of one step: counts are the same on every rank, seconds are the mean over ranks and steps.
static Status gather_totals(Session *session, Arena *arena, TaskTotal *totals, Error *error) {
    const int world = mesh_world(&session->request->plan.mesh);
    const int32_t tasks = session->program.task_count;
    TaskTotal *all = ARENA_ARRAY(arena, TaskTotal, (int64_t)tasks * world);
    TRY(gather(session, session->recorder.totals, all, tasks * (int64_t)sizeof(TaskTotal), error));
    const int counted = session->recorder.counted > 0 ? session->recorder.counted : 1;
    for (int32_t t = 0; t < tasks; t++) {
        totals[t] = (TaskTotal){.count = all[t].count / counted};
        for (int rank = 0; rank < world; rank++) {
            totals[t].seconds += all[(int64_t)rank * tasks + t].seconds / counted / world;
        }
    }
    return STATUS_OK;
}

static Status gather_spans(Session *session, const StepSeries *series, Arena *arena, RunRecord *record, Error *error) {
    const Recorder *recorder = &session->recorder;
    record->span_step = recorder_typical_step(recorder, series->step_time_s, series->steps);
    if (record->span_step < 0) {
        return STATUS_OK;
    }
    const int64_t at = record->span_step % recorder->steps_kept * recorder->instances;
    const int64_t bytes = recorder->instances * (int64_t)sizeof(double);
    double *start_s = ARENA_ARRAY(arena, double, recorder->instances * record->world);
    double *end_s = ARENA_ARRAY(arena, double, recorder->instances * record->world);
    TRY(gather(session, recorder->start_s + at, start_s, bytes, error));
    TRY(gather(session, recorder->end_s + at, end_s, bytes, error));
    record->spans_per_rank = recorder->instances;
    record->start_s = start_s;
    record->end_s = end_s;
    return STATUS_OK;
}

Status gather_and_save(Session *session, const StepSeries *series, Arena *arena, Error *error) {
    const int world = mesh_world(&session->request->plan.mesh);
    TaskTotal *totals = ARENA_ARRAY(arena, TaskTotal, session->program.task_count);
    RunRecord record = {.world = world,
                        .steps = series->steps,
                        .loss = series->loss,
                        .grad_norm = series->grad_norm,
                        .step_time_s = series->step_time_s,
                        .planned_peak_bytes = session->memory.arena_bytes,
                        .totals = totals,
                        .task_count = session->program.task_count};
    if (!session->devices->measure) {  // its kernels are those of the host
        record.core_type = kernel_blas_name();
    }
    TRY(gather_memory(session, arena, &record, error));
    TRY(gather_totals(session, arena, totals, error));
    TRY(gather_spans(session, series, arena, &record, error));
    return session->rank == 0 ? session_report(session, run_result_json(&record), error) : STATUS_OK;
}

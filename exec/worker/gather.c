// Gathers over the run's own communicator: the transport is already there, so results need no per-rank files.

#include "exec/worker/gather.h"

#include <string.h>

#include "exec/protocol/result.h"
#include "kernels/kernels.h"
#include "sim/base/integer.h"

Status gather(Session *session, const void *part, void *whole, int64_t bytes, Error *error) {
    const TransportCall call = {.communicator = session->communicators.world,
                                .in = part,
                                .out = whole,
                                .bytes = bytes,
                                .place = {.step = (int32_t)session->step - 1, .task = -1}};
    return session->transports->run(session->transport, TRANSPORT_ALL_GATHER, &call, error);
}

static int stage_of(const Session *session, int rank) {
    return mesh_stage_of(&session->request->plan.mesh, rank);
}

// The maximum over the ranks of each stage, on every rank.
static Status gather_most(Session *session, int64_t own, Arena *arena, int64_t *of_stage, Error *error) {
    const int world = mesh_world(&session->request->plan.mesh);
    int64_t *each = ARENA_ARRAY(arena, int64_t, world);
    TRY(gather(session, &own, each, sizeof own, error));
    for (int rank = 0; rank < world; rank++) {
        int64_t *so_far = &of_stage[stage_of(session, rank)];
        *so_far = int_max(*so_far, each[rank]);
    }
    return STATUS_OK;
}

static Status gather_memory(Session *session, Arena *arena, RunResult *result, Error *error) {
    int64_t *taken = ARENA_ARRAY(arena, int64_t, result->stage_count),
            *peak = ARENA_ARRAY(arena, int64_t, result->stage_count),
            *planned = ARENA_ARRAY(arena, int64_t, result->stage_count);
    DeviceAccount account;
    session->devices->account(session->device, &account);
    result->chip = account.chip;
    result->prices = account.prices;
    result->price_count = account.price_count;
    TRY(gather_most(session, account.bytes, arena, taken, error));
    TRY(gather_most(session, account.peak_bytes, arena, peak, error));
    TRY(gather_most(session, session->memory.arena_bytes, arena, planned, error));
    for (int stage = 0; stage < result->stage_count; stage++) {
        result->device_bytes = int_max(result->device_bytes, taken[stage]);
        result->stages[stage].peak_bytes = peak[stage];
        result->stages[stage].planned_peak_bytes = planned[stage];
    }
    return STATUS_OK;
}

// Per step: counts are the same on every rank of a stage, seconds are the mean over its ranks and the steps.
static Status gather_totals(Session *session, Arena *arena, StageResult *stages, Error *error) {
    const int world = mesh_world(&session->request->plan.mesh), ranks = world / session->programs.count;
    int32_t longest = 0;
    for (int stage = 0; stage < session->programs.count; stage++) {
        const int32_t tasks = session->programs.of[stage].task_count;
        longest = tasks > longest ? tasks : longest;
    }
    TaskTotal *own = ARENA_ARRAY(arena, TaskTotal, longest),
              *all = ARENA_ARRAY(arena, TaskTotal, (int64_t)longest * world);
    memcpy(own, session->recorder.totals, (size_t)session->program.task_count * sizeof *own);
    TRY(gather(session, own, all, longest * (int64_t)sizeof *own, error));
    const int counted = session->recorder.counted > 0 ? session->recorder.counted : 1;
    for (int stage = 0; stage < session->programs.count; stage++) {
        const int32_t tasks = session->programs.of[stage].task_count;
        TaskTotal *totals = ARENA_ARRAY(arena, TaskTotal, tasks);
        for (int64_t i = 0; i < (int64_t)tasks * world; i++) {
            const TaskTotal *of_rank = &all[i / tasks * longest + i % tasks];
            if (stage_of(session, (int)(i / tasks)) == stage) {
                totals[i % tasks].count = of_rank->count / counted;
                totals[i % tasks].seconds += of_rank->seconds / counted / ranks;
            }
        }
        stages[stage].totals = totals;
        stages[stage].task_count = tasks;
    }
    return STATUS_OK;
}

static Status gather_spans(Session *session, Arena *arena, WorkerRecord *record, Error *error) {
    const Recorder *recorder = &session->recorder;
    const RunResult *result = &record->result;
    record->span_step = recorder_typical_step(recorder, result->step_time_s, result->steps);
    if (record->span_step < 0) {
        return STATUS_OK;
    }
    const int64_t at = record->span_step % recorder->steps_kept * recorder->instances;
    int64_t longest = 0;
    for (int stage = 0; stage < session->programs.count; stage++) {
        longest = int_max(longest, step_instance_count(&session->programs.of[stage]));
    }
    double *own = ARENA_ARRAY(arena, double, longest);
    double *start_s = ARENA_ARRAY(arena, double, longest * result->world);
    double *end_s = ARENA_ARRAY(arena, double, longest * result->world);
    memcpy(own, recorder->start_s + at, (size_t)recorder->instances * sizeof *own);
    TRY(gather(session, own, start_s, longest * (int64_t)sizeof *own, error));
    memcpy(own, recorder->end_s + at, (size_t)recorder->instances * sizeof *own);
    TRY(gather(session, own, end_s, longest * (int64_t)sizeof *own, error));
    record->spans_per_rank = longest;
    record->start_s = start_s;
    record->end_s = end_s;
    return STATUS_OK;
}

// The other ranks of an ep group wait for its busiest rank, exchange by exchange.
static Status gather_load(Session *session, Arena *arena, ExpertLoad *load, Error *error) {
    const Mesh *mesh = &session->request->plan.mesh;
    const int world = mesh_world(mesh), ep = mesh->size[AXIS_EP];
    int64_t *counts = ARENA_ARRAY(arena, int64_t, world), longest = 0, exchanges = 0;
    TRY(gather(session, &session->tally.count, counts, sizeof *counts, error));
    for (int rank = 0; rank < world; rank++) {
        longest = int_max(longest, counts[rank]);
    }
    float *own = ARENA_ARRAY(arena, float, longest), *all = ARENA_ARRAY(arena, float, longest *world);
    if (longest == 0) {
        return STATUS_OK;
    }
    memcpy(own, session->tally.over, sizeof *own * (size_t)session->tally.count);
    TRY(gather(session, own, all, longest * (int64_t)sizeof *own, error));
    for (int rank = 0; rank < world; rank++) {
        const MeshCoordinates at = mesh_coordinates(mesh, rank);
        if (mesh_group_index(mesh, AXIS_BIT(AXIS_EP), &at) > 0) {
            continue;
        }
        for (int64_t i = 0; i < counts[rank]; i++, exchanges++) {
            double over = 0;
            for (int member = 0; member < ep; member++) {
                const float of = all[mesh_group_member(mesh, AXIS_BIT(AXIS_EP), &at, member) * longest + i];
                over = (double)of > over ? (double)of : over;
            }
            load->over += over;
            load->most = over > load->most ? over : load->most;
        }
    }
    *load = (ExpertLoad){true, 100 * load->over / (double)exchanges, 100 * load->most};
    return STATUS_OK;
}

Status gather_and_save(Session *session, const StepSeries *series, Arena *arena, Error *error) {
    WorkerRecord record = {.result = {.world = mesh_world(&session->request->plan.mesh),
                                      .steps = series->steps,
                                      .loss = series->loss,
                                      .grad_norm = series->grad_norm,
                                      .step_time_s = series->step_time_s,
                                      .stages = ARENA_ARRAY(arena, StageResult, session->programs.count),
                                      .stage_count = session->programs.count}};
    RunResult *result = &record.result;
    if (!session->devices->own_memory) {  // it uses the host's kernels
        result->core_type = kernel_blas_name();
    }
    TRY(gather_memory(session, arena, result, error));
    TRY(gather_totals(session, arena, result->stages, error));
    TRY(gather_load(session, arena, &result->expert_load, error));
    TRY(gather_spans(session, arena, &record, error));
    return session->rank == 0 ? session_report(session, run_result_json(&record), error) : STATUS_OK;
}

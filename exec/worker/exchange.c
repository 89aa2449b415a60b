// The row counts per expert that leave were written by the router; those that arrive were exchanged between the ranks.

#include "exec/worker/exchange.h"

// From [ranks][experts] to sums by rank; returns the total.
static int64_t rows_by_rank(const int32_t *counts, int ranks, int experts, int64_t *rows) {
    int64_t all = 0;
    for (int rank = 0; rank < ranks; rank++) {
        rows[rank] = 0;
        for (int e = 0; e < experts; e++) {
            rows[rank] += counts[rank * experts + e];
        }
        all += rows[rank];
    }
    return all;
}

// mean: over the group's ranks, as each sends equally many. Later layers may need more.
static Status overflow(const Session *session, const StepInstance *instance, const int32_t *came, int64_t rows,
                       int64_t mean, Error *error) {
    const StepProgram *program = &session->program;
    const Task *task = &program->tasks[instance->task];
    const int ranks = program->plan.mesh.size[AXIS_EP], experts = program->model.experts.count / ranks;
    const int first = mesh_group_index(&program->plan.mesh, AXIS_BIT(AXIS_EP), &session->at) * experts;
    int64_t most = -1;
    int busiest = 0;
    for (int e = 0; e < experts; e++) {
        int64_t of_expert = 0;
        for (int rank = 0; rank < ranks; rank++) {
            of_expert += came[rank * experts + e];
        }
        busiest = of_expert > most ? e : busiest;
        most = of_expert > most ? of_expert : most;
    }
    return error_set(error, STATUS_USAGE,
                     "in step %lld, layer %d, %lld rows came to experts %d to %d, most of them (%lld) to "
                     "expert %d, and there is room for %lld: use --capacity %lld or more, or a smaller ep",
                     (long long)session->step + 1, stage_model_layer(&program->held, instance->layer), (long long)rows,
                     first, first + experts - 1, (long long)most, first + busiest, (long long)task->rows,
                     (long long)((100 * rows + mean - 1) / mean));
}

enum { TALLY_MOST = 1 << 16 };  // judged: the beginning of a longer run

void exchange_open(Session *session, Arena *arena) {
    const TrainPlan *plan = &session->program.plan;
    if (plan->mesh.size[AXIS_EP] > 1) {
        const int64_t all = (int64_t)session->request->options.steps * plan->grad_accum * session->program.model.layers;
        session->tally.room = all < TALLY_MOST ? all : TALLY_MOST;
        session->tally.over = ARENA_ARRAY(arena, float, session->tally.room);
    }
}

// Every rank of the group sends equally many rows, so what leaves equals the mean of what arrives.
static void tally(Session *session, const Task *task, int64_t came, int64_t left) {
    ExpertTally *tally = &session->tally;
    if (task->phase == PHASE_FORWARD && !task->backward && tally->count < tally->room) {
        tally->over[tally->count++] = (float)((double)came / (double)left - 1);
    }
}

Status exchange_parts(Session *session, const StepInstance *instance, const DeviceTransfer *transfer,
                      ExchangeParts *parts, TransportCall *call, Error *error) {
    const StepProgram *program = &session->program;
    const Task *task = &program->tasks[instance->task];
    if (!transfer->came) {
        return STATUS_OK;
    }
    const int ranks = program->groups[task->group].size, experts = program->model.experts.count / ranks;
    int64_t *const leaving = task->backward ? parts->come : parts->leave;
    int64_t *const coming = task->backward ? parts->leave : parts->come;
    const int64_t left = rows_by_rank(transfer->leave, ranks, experts, leaving);
    const int64_t rows = rows_by_rank(transfer->came, ranks, experts, coming);
    tally(session, task, rows, left);
    if (rows > task->rows) {
        return overflow(session, instance, transfer->came, rows, left, error);
    }
    for (int rank = 0; rank < ranks; rank++) {
        parts->leave[rank] *= task->cols * dtype_bytes(task->dtype);
        parts->come[rank] *= task->cols * dtype_bytes(task->dtype);
    }
    call->leave = parts->leave;
    call->come = parts->come;
    return STATUS_OK;
}

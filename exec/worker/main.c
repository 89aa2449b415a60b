// ndtune-worker run REQUEST.json RANK: one rank of a run. Started by the launcher, which reads the result and failure
// files.

#define _GNU_SOURCE  // RTLD_DEFAULT

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "exec/launch/result.h"
#include "exec/worker/gather.h"
#include "exec/worker/gather_moments.h"
#include "sim/base/text.h"

// A test preloads a library with this function: while armed, any allocation ends the process (nothing is allocated in a
// step).
typedef void AllocationGuard(int armed);

static void guard_none(int armed) {
    (void)armed;
}

static AllocationGuard *guard_find(void) {
    void *found = dlsym(RTLD_DEFAULT, "ndtune_allocation_guard");
    AllocationGuard *guard = guard_none;
    if (found) {
        memcpy(&guard, &found, sizeof guard);  // ISO C has no cast from object to function pointer
    }
    return guard;
}

static Status steps_run(Session *session, const StepSeries *series, Error *error) {
    AllocationGuard *guard = guard_find();
    for (int step = 0; step < series->steps; step++) {
        StepReport report;
        guard(step > 0);  // the first step warms libraries up
        const Status status = session_step(session, &report, error);
        guard(0);
        TRY(status);
        series->loss[step] = report.loss;
        series->grad_norm[step] = report.grad_norm;
        series->step_time_s[step] = report.step_time_s;
    }
    return STATUS_OK;
}

static Status session_run(Session *session, Arena *arena, Error *error) {
    const int steps = session->request->options.steps;
    const StepSeries series = {.loss = ARENA_ARRAY(arena, double, steps),
                               .grad_norm = ARENA_ARRAY(arena, double, steps),
                               .step_time_s = ARENA_ARRAY(arena, double, steps),
                               .steps = steps};
    TRY(steps_run(session, &series, error));
    if (session->request->options.moments_path) {
        TRY(gather_moments(session, session->request->options.moments_path, arena, error));
    }
    return gather_and_save(session, &series, arena, error);
}

// Says why once, in the failure file, and stops the other ranks. A rank that was stopped keeps quiet.
static void failed(const RunRequest *request, int rank, Session *session, const Error *error) {
    fprintf(stderr, "rank %d: %s\n", rank, error->message);
    if (session->transport && !session->transports->poll(session->transport)) {
        return;
    }
    run_failure_save(request->failure_path, rank, error);
    if (session->transport) {
        session->transports->stop(session->transport);
    }
}

static Status run_rank(const char *path, int rank, Error *error) {
    Arena arena = {0};
    RunRequest request;
    Session session = {0};
    Status status = run_request_load(path, &arena, &request, error);
    if (status == STATUS_OK && request.launcher_pid > 0 && getppid() != request.launcher_pid) {
        status = error_set(error, STATUS_ENVIRONMENT, "the launcher is gone");  // before prctl could tell
    }
    if (status == STATUS_OK) {
        status = session_open(&request, rank, &arena, &session, error);
        status = status == STATUS_OK ? session_run(&session, &arena, error) : status;
        if (status != STATUS_OK) {
            failed(&request, rank, &session, error);
        }
        if (status != STATUS_OK && session.lanes) {
            _exit(status_exit_code(status));  // threads of other lanes may still sit in a collective or a task
        }
        session_close(&session);
    } else {
        fprintf(stderr, "rank %d: %s\n", rank, error->message);
    }
    arena_free(&arena);
    return status;
}

int main(int argc, char **argv) {
    int64_t rank;
    if (argc != 4 || strcmp(argv[1], "run") != 0 || !text_parse_int(argv[3], &rank) || rank < 0) {
        fprintf(stderr, "usage: ndtune-worker run REQUEST.json RANK (ndtune starts it)\n");
        return status_exit_code(STATUS_USAGE);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // no rank outlives the launcher
    Error error = {0};
    return status_exit_code(run_rank(argv[2], (int)rank, &error));
}

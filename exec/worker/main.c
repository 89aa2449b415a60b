// ndtune-worker run REQUEST.json RANK: one rank of a run, a child of the launcher, which reads the result and failure
// files. ndtune-worker join RANK_VARIABLE LOCAL_VARIABLE: one started by mpirun, srun or torchrun, which set its
// numbers in these variables; request and results go over the rendezvous.

#define _GNU_SOURCE  // RTLD_DEFAULT

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "exec/protocol/result.h"
#include "exec/worker/gather.h"
#include "exec/worker/gather_state.h"
#include "exec/worker/preflight.h"
#include "exec/worker/probe.h"
#include "kernels/kernels.h"
#include "sim/base/log.h"
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
        guard(step > 0);  // the first step warms up libraries
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
    const char *const paths[] = {[GATHER_MOMENTS] = session->request->options.moments_path,
                                 [GATHER_WEIGHTS] = session->request->options.weights_path};
    for (int state = GATHER_MOMENTS; state <= GATHER_WEIGHTS; state++) {
        if (paths[state]) {
            TRY(gather_state(session, (GatherState)state, paths[state], arena, error));
        }
    }
    return gather_and_save(session, &series, arena, error);
}

typedef Status Job(Session *session, Arena *arena, Error *error);

static Job *const jobs[JOB_COUNT] = {
    [JOB_TRAIN] = session_run, [JOB_PROBE] = probe_run, [JOB_PREFLIGHT] = preflight_run};

static void failure_send(RendezvousClient *rendezvous, int rank, const Error *error) {
    json_t *root = run_failure_json(rank, error);
    rendezvous_send_json(rendezvous, RENDEZVOUS_FAILURE, root, NULL);
    json_decref(root);
}

// Reports the reason once, in the failure file or to the launcher, and stops the other ranks. A rank that was stopped
// reports nothing.
static void failed(Session *session, const Error *error) {
    fprintf(stderr, "rank %d: %s\n", session->rank, error->message);
    if (session->transport && !session->transports->poll(session->transport)) {
        return;
    }
    if (session->rendezvous) {
        failure_send(session->rendezvous, session->rank, error);
    } else {
        run_failure_save(session->request->failure_path, session->rank, error);
    }
    if (session->transport) {
        session->transports->stop(session->transport);
    }
}

// What the products run on is logged once, with the result.
static void core_note(const Session *session, int rank) {
    char words[256];
    if (rank == 0 && session->devices && !session->devices->own_memory && kernel_core_words(words, sizeof words)) {
        log_note("%s", words);
    }
}

static Status rank_run(const RunRequest *request, const RankPlace *place, Arena *arena, Error *error) {
    Session session = {0};
    Status status = session_join(request, place, arena, &session, error);
    core_note(&session, place->rank);
    status = status == STATUS_OK ? jobs[request->job](&session, arena, error) : status;
    if (status != STATUS_OK) {
        failed(&session, error);
    }
    if (status != STATUS_OK && (session.lanes || place->rendezvous)) {
        _exit(status_exit_code(status));  // other lanes may still be inside a task, MPI in the middle of a message
    }
    session_close(&session);
    return status;
}

static Status child_run(const char *path, int rank, Arena *arena, Error *error) {
    RunRequest request;
    TRY(run_request_load(path, arena, &request, error));
    if (request.launcher_pid > 0 && getppid() != request.launcher_pid) {
        return error_set(error, STATUS_ENVIRONMENT, "the launcher is gone");  // before prctl took effect
    }
    return rank_run(&request, &(RankPlace){.rank = rank, .local_rank = rank}, arena, error);
}

// ---------------------------------------------------------------------------------------------- joining a run

// The segment has no name; it is opened through its descriptor in the launcher's process.
static Status segment_open(RunRequest *request, Error *error) {
    char path[64];
    if (request->segment_fd < 0) {
        return STATUS_OK;
    }
    snprintf(path, sizeof path, "/proc/%d/fd/%d", request->launcher_pid, request->segment_fd);
    request->segment_fd = open(path, O_RDWR | O_CLOEXEC);
    if (request->segment_fd >= 0) {
        return STATUS_OK;
    }
    error_set(error, STATUS_ENVIRONMENT, "no shared memory with the launcher: %s: %s", path, strerror(errno));
    return error_hint(error, "ranks of transport shm run on the launcher's machine; across machines use transport mpi");
}

static Status join_rank(const char *rank_variable, const char *local_variable, RankPlace *rank, Error *error) {
    int64_t number, local = 0;
    const char *place = getenv(rank_variable), *local_place = getenv(local_variable);
    FAIL_IF(!place || !text_parse_int(place, &number) || number < 0, error, STATUS_ENVIRONMENT,
            "the launcher gave this process no rank in %s", rank_variable);
    rank->rank = (int)number;
    rank->local_rank = local_place && text_parse_int(local_place, &local) && local >= 0 ? (int)local : 0;
    return STATUS_OK;
}

static Status join(const char *rank_variable, const char *local_variable, Arena *arena, Error *error) {
    RunRequest request;
    RendezvousClient rendezvous;
    char *text;
    RankPlace place = {.rendezvous = &rendezvous};
    const char *setting = getenv(RENDEZVOUS_VARIABLE);
    TRY(join_rank(rank_variable, local_variable, &place, error));
    FAIL_IF(!setting, error, STATUS_ENVIRONMENT, "%s does not say where the launcher is", RENDEZVOUS_VARIABLE);
    TRY(rendezvous_join(&rendezvous, setting, place.rank, &text, error));
    Status status = rendezvous_watch(&rendezvous, error);
    status = status == STATUS_OK ? run_request_parse(text, arena, &request, error) : status;
    free(text);
    status = status == STATUS_OK ? segment_open(&request, error) : status;
    if (status == STATUS_OK) {
        status = rank_run(&request, &place, arena, error);
    } else {
        failure_send(&rendezvous, place.rank, error);
    }
    rendezvous_leave(&rendezvous);
    return status;
}

int main(int argc, char **argv) {
    kernel_core_settle(argv);
    int64_t rank = -1;
    const bool child = argc == 4 && strcmp(argv[1], "run") == 0 && text_parse_int(argv[3], &rank) && rank >= 0;
    if (!child && (argc != 4 || strcmp(argv[1], "join") != 0)) {
        fprintf(stderr,
                "usage: ndtune-worker run REQUEST.json RANK | join RANK_VARIABLE LOCAL_VARIABLE (ndtune starts it)\n");
        return status_exit_code(STATUS_USAGE);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);         // no rank outlives its parent
    prctl(PR_SET_NAME, WORKER_PROCESS_NAME);  // by which its launcher recognizes it, whatever the file is called
    Error error = {0};
    Arena arena = {0};
    const Status status =
        child ? child_run(argv[2], (int)rank, &arena, &error) : join(argv[2], argv[3], &arena, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "ndtune-worker: %s\n", error.message);
    }
    arena_free(&arena);
    return status_exit_code(status);
}

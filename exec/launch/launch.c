// One run: a private directory, a nameless shared segment, workers, a watch loop that sleeps in sigtimedwait, and a way
// out that always reaps and removes. SIGINT and SIGTERM are held back meanwhile and delivered again once nothing is
// left behind.

#include "exec/launch/launch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exec/data/token_file.h"
#include "exec/launch/communicators.h"
#include "exec/launch/program_words.h"
#include "exec/launch/result.h"
#include "exec/launch/run_directory.h"
#include "exec/launch/workers.h"
#include "exec/transport/shm.h"
#include "sim/base/text.h"

static const long POLL_NS = 20 * 1000 * 1000;  // progress is drawn this often; a worker's end wakes the watch at once

typedef struct Run {
    RunRequest request;
    const ExecOptions *options;
    Arena *arena;
    StepProgram program;
    MemoryPlan memory;
    ShmSegment segment;
    RunDirectory directory;
    const char *request_path;
    Workers workers;
    int caught;  // signal to deliver again; 0 = none
} Run;

// ---------------------------------------------------------------------------------------------- before

static Status room_check(const Run *run, Error *error) {
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file) {
        return STATUS_OK;  // not this kind of system: the mapping itself will tell
    }
    char line[128];
    long long free_kib = -1;
    while (fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %lld", &free_kib) != 1) {
    }
    fclose(file);
    const double needed = (double)run->memory.arena_bytes * mesh_world(&run->request.plan.mesh);
    if (free_kib >= 0 && needed > (double)free_kib * 1024) {
        char have[TEXT_UNIT_BYTES], want[TEXT_UNIT_BYTES];
        return error_set(error, STATUS_INFEASIBLE, "the ranks need %s together, this machine has %s available",
                         text_bytes(want, needed), text_bytes(have, (double)free_kib * 1024));
    }
    return STATUS_OK;
}

// Before anything starts: the tokens that the run will read.
static Status data_prepare(Run *run, Error *error) {
    RunRequest *request = &run->request;
    const char *path = request->options.data_path;
    if (!path) {
        return STATUS_OK;
    }
    TokenFile file;
    TRY(token_file_open(path, request->model.vocab, &file, error));
    const TokenNeed need = {.seed = request->options.seed,
                            .vocab = request->model.vocab,
                            .steps = request->options.steps,
                            .sequences = plan_global_batch(&request->plan),
                            .count = request->plan.seq + 1};
    const Status status = token_file_check(&file, &need, error);
    token_file_close(&file);
    return status;
}

static Status run_prepare(Run *run, Error *error) {
    RunRequest *request = &run->request;
    plan_canonical(&request->plan);
    const char *reason = exec_check(&request->model, &request->plan, request->target, run->arena);
    if (reason) {
        return error_set(error, STATUS_INFEASIBLE, "%s", reason);
    }
    TRY(exec_check_backend(&request->options, error));
    TRY(data_prepare(run, error));
    TRY(step_lower(&request->model, &request->plan, request->target, run->arena, &run->program, error));
    TRY(memory_plan(&run->program, run->arena, &run->memory, error));
    TRY(room_check(run, error));
    request->template_hash = run->program.template_hash;
    request->segment_fd = WORKER_SEGMENT_FD;
    if (request->options.threads == 0) {
        const long threads = sysconf(_SC_NPROCESSORS_ONLN) / mesh_world(&request->plan.mesh);
        request->options.threads = threads < 1 ? 1 : (int)threads;
    }
    CommunicatorSet communicators;
    TRY(communicators_find(&run->program, run->arena, &communicators, error));
    return shm_segment_create(&request->plan.mesh, communicators.count, &run->segment, error);
}

static Status directory_begin(Run *run, Error *error) {
    TRY(run_directory_make(run->arena, &run->directory, error));
    const char *path = run->directory.path;
    run->request_path = arena_format(run->arena, "%s/request.json", path);
    run->request.result_path = arena_format(run->arena, "%s/result.json", path);
    run->request.failure_path = arena_format(run->arena, "%s/failure.json", path);
    run->request.launcher_pid = getpid();
    return run_request_save(&run->request, run->request_path, error);
}

static Status workers_begin(Run *run, Error *error) {
    const RunOptions *options = &run->request.options;
    const int world = mesh_world(&run->request.plan.mesh);
    WorkersSetup setup = {.request_path = run->request_path,
                          .directory = run->directory.path,
                          .world = world,
                          .threads = options->threads,
                          .passive =
                              options->lanes == LANES_ASYNC || world * options->threads > sysconf(_SC_NPROCESSORS_ONLN),
                          .segment_fd = run->segment.fd};
    TRY(worker_find(run->options->worker_path, run->arena, &setup.program, error));
    return workers_start(&setup, run->arena, &run->workers, error);
}

// ---------------------------------------------------------------------------------------------- while it runs

// The last line that a worker wrote, for one that died without a failure file.
static const char *last_words(const Run *run, int rank) {
    FILE *file = fopen(arena_format(run->arena, "%s/rank-%d.err", run->directory.path, rank), "r");
    char line[256], last[256] = "";
    while (file && fgets(line, sizeof line, file)) {
        if (line[0] != '\n') {
            snprintf(last, sizeof last, "%s", line);
        }
    }
    if (file) {
        fclose(file);
    }
    last[strcspn(last, "\n")] = '\0';
    return last[0] ? arena_format(run->arena, "; its last words: %s", last) : "";
}

static const char *place_words(const Run *run, int rank) {
    const TransportPlace place = board_place(shm_segment_board(&run->segment) + rank);
    const TransportWords words = program_words(&run->program);
    char text[160];
    return arena_format(run->arena, "in %s", words.describe(words.context, &place, text, sizeof text));
}

static Status run_failed(const Run *run, Error *error) {
    if (run_failure_load(run->request.failure_path, error)) {
        return error->status;
    }
    const int rank = run->workers.first_failed;
    return error_set(error, STATUS_ENVIRONMENT, "rank %d %s %s%s", rank,
                     worker_end_words(&run->workers.of_rank[rank], run->arena), place_words(run, rank),
                     last_words(run, rank));
}

static Status run_watch(Run *run, const sigset_t *signals, Error *error) {
    const struct timespec nap = {.tv_nsec = POLL_NS};
    while (run->workers.running > 0) {
        const int caught = sigtimedwait(signals, NULL, &nap);
        if (caught > 0 && caught != SIGCHLD) {
            run->caught = caught;
            return error_set(error, STATUS_ENVIRONMENT, "interrupted by signal %d", caught);
        }
        workers_poll(&run->workers);
        if (run->workers.first_failed >= 0) {
            shm_segment_stop(&run->segment);
            workers_kill(&run->workers);
            return run_failed(run, error);
        }
        const TransportPlace place = board_place(shm_segment_board(&run->segment));
        if (!progress_update(run->options->progress, "step", place.step < 0 ? 0 : place.step,
                             run->request.options.steps)) {
            return error_set(error, STATUS_ENVIRONMENT, "the run was cancelled");
        }
    }
    return STATUS_OK;
}

static Status run_all(Run *run, const sigset_t *signals, RunResult *result, Error *error) {
    TRY(run_prepare(run, error));
    TRY(directory_begin(run, error));
    TRY(workers_begin(run, error));
    TRY(run_watch(run, signals, error));
    return run_result_load(run->request.result_path, &run->program, run->arena, result, error);
}

Status exec_run(const RunRequest *request, const ExecOptions *options, Arena *arena, RunResult *result, Error *error) {
    static const ExecOptions usual = {0};
    Run run = {.request = *request, .options = options ? options : &usual, .arena = arena, .segment = {.fd = -1}};
    Error unread;
    error = error ? error : &unread;
    sigset_t signals, before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    const Status status = run_all(&run, &signals, result, error);
    workers_kill(&run.workers);
    shm_segment_destroy(&run.segment);
    run_directory_remove(&run.directory);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (run.caught) {
        raise(run.caught);
    }
    return status;
}

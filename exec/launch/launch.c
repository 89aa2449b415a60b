// One run: a private directory, an unlinked shared segment or a rendezvous, workers or their launcher, and an exit path
// that always reaps and removes. Signals that would end it are blocked meanwhile and re-delivered once nothing is left
// behind.

#define _GNU_SOURCE  // gethostname in strict C

#include "exec/launch/launch.h"

#include <string.h>
#include <unistd.h>

#include "exec/data/token_file.h"
#include "exec/launch/fault.h"
#include "exec/launch/rendezvous_address.h"
#include "exec/launch/run.h"
#include "exec/protocol/cores.h"
#include "exec/protocol/link_room.h"
#include "exec/protocol/program_words.h"
#include "exec/protocol/result.h"
#include "sim/base/json.h"
#include "sim/base/text.h"
#include "sim/memory/memory.h"

static const double ARRIVAL_S = 60;       // a rank has connected by then: mpirun over ssh takes seconds, not minutes,
static const double ARRIVAL_HERE_S = 10;  // on this machine less than one

// ---------------------------------------------------------------------------------------------- before

static Status room_check(const Run *run, Error *error) {
    const int64_t free_bytes = memory_available_bytes();  // if unknown, the mapping itself will tell
    const double copies = run->request.options.bitwise ? 1 + EXACT_SUM_BYTES : 1;
    const double needed = copies * (double)run->arena_bytes * mesh_world(&run->request.plan.mesh);
    FAIL_IF(free_bytes >= 0 && needed > (double)free_bytes, error, STATUS_INFEASIBLE,
            "the ranks need %s together, this machine has %s available", text_bytes(UNIT_BUFFER, needed),
            text_bytes(UNIT_BUFFER, (double)free_bytes));
    return STATUS_OK;
}

// Before anything starts: validates the tokens the run will read.
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
    request->options.data_tokens = file.count;
    token_file_close(&file);
    return status;
}

// Lowers the program and checks that it can run.
static Status program_prepare(Run *run, Error *error) {
    RunRequest *request = &run->request;
    plan_canonical(&request->plan);
    request->target = target_executed(request->target, run->arena);
    const char *reason =
        exec_check(&request->model, &request->plan, request->target, request->options.device, run->arena);
    if (!reason) {
        reason = exec_check_options(&request->model, &request->plan, &request->options);
    }
    FAIL_IF(reason, error, STATUS_INFEASIBLE, "%s", reason);
    TRY(exec_check_backend(&request->options, error));
    TRY(data_prepare(run, error));
    TRY(step_lower_stages(&request->model, &request->plan, request->target, run->arena, &run->programs, error));
    for (int stage = 0; stage < run->programs.count; stage++) {
        MemoryPlan memory;
        TRY(memory_plan(&run->programs.of[stage], run->arena, &memory, error));
        run->arena_bytes = memory.arena_bytes > run->arena_bytes ? memory.arena_bytes : run->arena_bytes;
    }
    TRY(fault_from_environment(&run->programs, &request->options.fault, error));
    request->template_hash = step_programs_hash(&run->programs);
    return communicators_find(&run->programs, 0, request, run->arena, &run->communicators, error);
}

static bool over(const Run *run, const char *transport) {
    return strcmp(run->request.options.transport, transport) == 0;
}

// nccl ranks that are this program's children also publish their state in a segment.
static bool has_segment(const Run *run) {
    return over(run, "shm") || (over(run, "nccl") && !run->launcher->program);
}

static Status launch_prepare(Run *run, Error *error) {
    RunRequest *request = &run->request;
    const char *because;
    TRY(launcher_choose(&run->options->launch, request->options.transport, run->arena, &run->launcher, &because,
                        error));
    run->hosts = launcher_hosts(run->launcher, &run->options->launch);
    if (run->hosts == 1 && strcmp(request->options.device, "cpu") == 0) {
        TRY(room_check(run, error));
    }
    if (request->options.threads == 0) {
        const int threads = cores_allowed() * run->hosts / mesh_world(&request->plan.mesh);
        request->options.threads = threads < 1 ? 1 : threads;
    }
    request->segment_fd = -1;
    request->launcher_pid = getpid();
    request->result_path = request->failure_path = "";
    if (has_segment(run)) {
        TRY(shm_segment_create(&request->plan.mesh, run->communicators.entries, run->communicators.count, &run->segment,
                               error));
        request->segment_fd = run->launcher->program ? run->segment.fd : WORKER_SEGMENT_FD;
    }
    return run_directory_make(run->arena, &run->directory, error);
}

static Status request_prepare(Run *run, Error *error) {
    if (run->launcher->program) {
        const char *text;
        TRY(run_request_text(&run->request, run->arena, &text, error));
        const LaunchOptions *where = &run->options->launch;
        const bool anywhere = where->hostfile || (run->hosts > 1 && !where->hosts);
        const uint32_t address =
            anywhere ? RENDEZVOUS_EVERYWHERE : rendezvous_address(where->hosts ? where->hosts : "");
        return rendezvous_open(mesh_world(&run->request.plan.mesh), address, text, run->arena, &run->rendezvous, error);
    }
    const char *path = run->directory.path;
    run->request_path = arena_format(run->arena, "%s/request.json", path);
    run->request.result_path = arena_format(run->arena, "%s/result.json", path);
    run->request.failure_path = arena_format(run->arena, "%s/failure.json", path);
    return run_request_save(&run->request, run->request_path, error);
}

static Status workers_begin(Run *run, Error *error) {
    const RunOptions *options = &run->request.options;
    const int world = mesh_world(&run->request.plan.mesh);
    const int cores = cores_allowed() * run->hosts;
    WorkersSetup setup = {.plan = {.world = world,
                                   .threads = options->threads,
                                   .passive = options->lanes == LANES_ASYNC || world * options->threads > cores,
                                   .crowded = world > cores,
                                   .transport = options->transport,
                                   .directory = run->directory.path,
                                   .options = run->options->launch},
                          .request_path = run->request_path,
                          .segment_fd = run->segment.fd};
    TRY(worker_find(run->options->worker_path, run->arena, &setup.plan.worker, error));
    if (run->launcher->program) {
        setup.argv = run->launcher->argv(&setup.plan, run->arena);
        setup.rendezvous_setting = run->rendezvous->setting;
    }
    return workers_start(&setup, run->arena, &run->workers, error);
}

static void watch_prepare(Run *run) {
    const int world = mesh_world(&run->request.plan.mesh);
    run->watch = (Watchdog){
        .table = {.mesh = run->request.plan.mesh,
                  .communicators = run->communicators.entries,
                  .communicator_count = run->communicators.count,
                  .ranks = has_segment(run) ? shm_segment_progress_table(&run->segment) : run->rendezvous->table,
                  // An nccl rank issues work that its streams do later.
                  .ordered = run->request.options.lanes == LANES_SERIAL && !over(run, "nccl"),
                  .words = program_words(&run->programs)},
        .ranks = run->rendezvous ? run->rendezvous->ranks : ARENA_ARRAY(run->arena, RankWatch, world),
        .children = !run->rendezvous,
        .timeout_s = run->request.options.timeout_s,
        .arrival_s = run->hosts == 1 ? ARRIVAL_HERE_S : ARRIVAL_S};
    char host[PROGRESS_HOST_BYTES] = "";
    const bool here = run->hosts == 1 && !run->options->launch.hosts && !run->options->launch.hostfile &&
                      gethostname(host, sizeof host - 1) == 0;
    for (int rank = 0; here && rank < world; rank++) {  // a rank reports it itself once it gets that far
        memcpy(run->watch.table.ranks[rank].host, host, sizeof host);
    }
}

static Status result_take(Run *run, ExecReader *read, void *result, Error *error) {
    json_t *root = NULL;
    TRY(run->rendezvous ? json_text_load(run->rendezvous->result, "rank 0", &root, error)
                        : json_file_load(run->request.result_path, &root, error));
    const Status status = read(root, &run->programs, run->arena, result, error);
    json_decref(root);
    return status;
}

static Status run_all(Run *run, const HeldSignals *held, ExecReader *read, void *result, Error *error) {
    TRY(program_prepare(run, error));
    TRY(launch_prepare(run, error));
    TRY(request_prepare(run, error));
    TRY(workers_begin(run, error));
    watch_prepare(run);
    TRY(run_watch(run, held, error));
    run_notes_pass(run);
    return result_take(run, read, result, error);
}

// The rendezvous closes first: ranks that see it close end by themselves.
static void run_end(Run *run) {
    rendezvous_lines_close(run->rendezvous);
    workers_kill(&run->workers);
    run_ranks_end(run);
    rendezvous_close(run->rendezvous);
    shm_segment_destroy(&run->segment);
    run_directory_remove(&run->directory);
}

Status exec_check_launch(const LaunchOptions *options, const char *transport, Arena *arena, const char **launcher,
                         const char **because, Error *error) {
    const Launcher *chosen;
    TRY(launcher_choose(options, transport, arena, &chosen, because, error));
    *launcher = chosen->name;
    return STATUS_OK;
}

Status exec_job(const RunRequest *request, const ExecOptions *options, ExecReader *read, Arena *arena, void *result,
                Error *error) {
    static const ExecOptions usual = {0};
    Run run = {.request = *request, .options = options ? options : &usual, .arena = arena, .segment = {.fd = -1}};
    Error unread;
    error = error ? error : &unread;
    HeldSignals held;
    signals_hold(&held);
    const Status status = run_all(&run, &held, read, result, error);
    run_end(&run);
    signals_release(&held, run.caught);
    return status;
}

static Status read_run(const json_t *root, const StepPrograms *programs, Arena *arena, void *result, Error *error) {
    return run_result_take(root, programs, arena, result, error);
}

Status exec_run(const RunRequest *request, const ExecOptions *options, Arena *arena, RunResult *result, Error *error) {
    return exec_job(request, options, read_run, arena, result, error);
}

// Ranks that die or hang, and an interrupted launcher: the culprit is named and nothing is left over, neither processes
// nor files nor shared memory. Faults are injected into the worker (RunFault); one worker is really killed from
// outside.

#define _GNU_SOURCE  // setenv, kill

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/parity/exec/exec_case.h"
#include "tests/support/run_program.h"
#include "tests/support/sizes.h"

static Arena arena;
static char *directory;

static void begin(void) {
    directory = temp_dir_make();
    setenv("TMPDIR", directory, 1);
}

static int entries(const char *path, const char *prefix) {
    DIR *open = opendir(path);
    int count = 0;
    for (const struct dirent *entry = readdir(open); entry; entry = readdir(open)) {
        count += entry->d_name[0] != '.' && strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    closedir(open);
    return count;
}

static void nothing_stays(void) {
    char name[64];
    snprintf(name, sizeof name, "ndtune-%ld-", (long)getpid());
    cr_expect(entries("/dev/shm", name) == 0, "shared memory stayed");
    cr_expect(entries(directory, "") == 0, "files stayed");
    cr_expect(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "workers stayed");
}

static void end(void) {
    nothing_stays();
    temp_dir_remove(directory);
    arena_free(&arena);
}

enum { RANKS_MOST = 8 };

TestSuite(faults, .init = begin, .fini = end);

// Tasks have no fixed numbers: the first of this name in the program of a stage.
static int stage_task_named(const TrainPlan *plan, int stage, const char *name) {
    const ModelSpec model = case_model();
    const Target *target;
    StepProgram program;
    Error error = {0};
    cr_assert(target_find("ndtune", &target, &error) == STATUS_OK);
    cr_assert(step_lower_stage(&model, plan, target, stage, &arena, &program, &error) == STATUS_OK, "%s",
              error.message);
    for (int t = 0; t < program.task_count; t++) {
        if (strcmp(program.tasks[t].name, name) == 0) {
            return t;
        }
    }
    cr_assert_fail("no task '%s'", name);
    return -1;
}

static int task_named(const TrainPlan *plan, const char *name) {
    return stage_task_named(plan, 0, name);
}

// A rank descheduled for as long as the timeout looks as if it hung: a wrong verdict at the shortest timeout is retried
// with a longer one, which only an overloaded machine needs.
static void run_tells(const TrainPlan *plan, RunOptions options, const char *const *words) {
    static const double timeouts_s[] = {0.5, 5, 30};
    enum { TIMEOUTS = sizeof timeouts_s / sizeof *timeouts_s };
    const char *missing = "";
    Error error = {0};
    for (int try = 0; try < TIMEOUTS && missing; try++) {
        RunResult result;
        options.timeout_s = timeouts_s[try];
        cr_assert(case_try(plan, &options, &arena, &result, &error) == STATUS_ENVIRONMENT, "%s", error.message);
        missing = NULL;
        for (int i = 0; words[i] && !missing; i++) {
            missing = strstr(error.message, words[i]) ? NULL : words[i];
        }
    }
    cr_expect(!missing, "no '%s' in: %s", missing, error.message);
}

static void fault_is_told(FaultAction action, LaneMode lanes, const char *const *words) {
    const TrainPlan plan = case_sharded_plan((Mesh){.size = SIZES(1, 2, 1, 2)});
    RunOptions options = case_options();
    options.lanes = lanes;
    options.fault = (RunFault){.action = action, .rank = 2, .task = task_named(&plan, "mlp down")};
    run_tells(&plan, options, words);
}

Test(faults, a_rank_that_exits_is_named_with_its_task) {
    fault_is_told(FAULT_EXIT, LANES_SERIAL, (const char *[]){"rank 2 on ", "exited with code 42", "'mlp down'", NULL});
}

Test(faults, a_rank_that_exits_is_named_when_lanes_are_threads) {
    fault_is_told(FAULT_EXIT, LANES_ASYNC, (const char *[]){"rank 2 on ", "exited with code 42", NULL});
}

Test(faults, a_rank_that_hangs_is_named_by_those_who_wait) {
    fault_is_told(FAULT_HANG, LANES_SERIAL, (const char *[]){"s for rank 2", "'mlp down'", NULL});
}

// Another lane of the hanging rank may go on, so the place reported is that lane's.
Test(faults, a_rank_that_hangs_is_named_when_lanes_are_threads) {
    fault_is_told(FAULT_HANG, LANES_ASYNC, (const char *[]){"s for rank 2", NULL});
}

// Ranks wait for each other in chains across lanes; the one that hangs must be found at the end of the chain.
Test(faults, a_hang_in_any_lane_is_traced_to_its_rank) {
    const TrainPlan plan = case_sharded_plan((Mesh){.size = SIZES(2, 1, 2, 2)});
    const ModelSpec model = case_model();
    const Target *target;
    StepProgram program;
    Error error = {0};
    cr_assert(target_find("ndtune", &target, &error) == STATUS_OK);
    cr_assert(step_lower(&model, &plan, target, &arena, &program, &error) == STATUS_OK, "%s", error.message);
    bool tried[LANE_COUNT] = {false};
    for (int t = 0; t < program.task_count; t++) {
        if (tried[program.tasks[t].lane] || program.tasks[t].phase == PHASE_OPTIMIZER) {
            continue;
        }
        tried[program.tasks[t].lane] = true;
        RunOptions options = case_options();
        options.fault = (RunFault){.action = FAULT_HANG, .rank = 5, .task = t};
        run_tells(&plan, options, (const char *[]){"s for rank 5 on ", NULL});
    }
}

// Two stages of two ranks: 2 and 3 form the second one.
static void message_fault_is_told(FaultAction action, int rank, const char *task, const char *const *words) {
    TrainPlan plan;
    Mesh mesh = {.size = SIZES(1, 2, 1, 1)};
    mesh.size[AXIS_PP] = 2;
    cr_assert(case_plan(&mesh, 4, &plan));
    plan_canonical(&plan);
    RunOptions options = case_options();
    options.fault =
        (RunFault){.action = action, .rank = rank, .task = stage_task_named(&plan, mesh_stage_of(&mesh, rank), task)};
    run_tells(&plan, options, words);
}

Test(faults, a_rank_that_hangs_before_its_message_is_named_with_its_stage) {
    message_fault_is_told(FAULT_HANG, 2, "send gradients",
                          (const char *[]){"lane backward, receive of", "from rank 2", "stage 0 waited", "s for rank 2",
                                           "stage 1 (last seen in", "'send gradients'", NULL});
}

Test(faults, a_message_that_is_skipped_is_told_by_the_next_one) {
    message_fault_is_told(FAULT_SKIP, 0, "send activations",
                          (const char *[]){"lane forward: rank 2", "stage 1 waits in receive of", "from rank 0",
                                           "the message that came is another one", NULL});
}

Test(faults, a_message_of_another_size_is_told) {
    message_fault_is_told(FAULT_SIZE, 0, "send activations",
                          (const char *[]){"from rank 0", "the message that came is another one", NULL});
}

// ---------------------------------------------------------------------------------------------- from outside

static Status run_long(const Progress *progress, Error *error) {
    RunRequest request = {
        .model = case_model(), .plan = case_sharded_plan((Mesh){.size = SIZES(1, 2, 1, 2)}), .options = case_options()};
    request.options.steps = 1000000;
    const ExecOptions options = {.worker_path = NDTUNE_BIN_DIR "/ndtune-worker", .progress = progress};
    RunResult result;
    TRY(target_find("ndtune", &request.target, error));
    return exec_run(&request, &options, &arena, &result, error);
}

// Children of a process, from /proc.
static int children_of(pid_t parent, pid_t children[RANKS_MOST]) {
    char path[64], list[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)parent, (long)parent);
    FILE *file = fopen(path, "r");
    list[file ? fread(list, 1, sizeof list - 1, file) : 0] = '\0';
    if (file) {
        fclose(file);
    }
    int count = 0;
    for (char *word = strtok(list, " "); word && count < RANKS_MOST; word = strtok(NULL, " ")) {
        children[count++] = (pid_t)strtol(word, NULL, 10);
    }
    return count;
}

// The last word of a worker's command line is its rank.
static int rank_of(pid_t pid) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
    FILE *file = fopen(path, "r");
    const size_t bytes = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    const char *last = line + (bytes > 1 ? bytes - 2 : 0);
    while (last > line && last[-1] != '\0') {
        last--;
    }
    return bytes > 0 ? (int)strtol(last, NULL, 10) : -1;
}

static pid_t pid_of_rank(int wanted) {
    pid_t children[RANKS_MOST];
    const int count = children_of(getpid(), children);
    for (int i = 0; i < count; i++) {
        if (rank_of(children[i]) == wanted) {
            return children[i];
        }
    }
    return 0;
}

static bool kill_rank_1(void *context, const char *label, int64_t done, int64_t total) {
    (void)label;
    (void)total;
    bool *killed = context;
    const pid_t pid = done > 2 && !*killed ? pid_of_rank(1) : 0;
    if (pid > 0) {
        kill(pid, SIGKILL);
        *killed = true;
    }
    return true;
}

Test(faults, every_kernel_takes_its_pace_at_least) {
    enum { PACE_MS = 2 };
    const TrainPlan plan = {.mesh = {.size = SIZES(1, 1, 1, 1)}, .seq = CASE_SEQ, .micro_batch = 1, .grad_accum = 1};
    RunOptions options = case_options();
    options.steps = 1;
    options.spans = true;
    options.fault = (RunFault){.action = FAULT_PACE, .rank = -1, .task = -1, .delay_s = 1e-3 * PACE_MS};
    const RunResult result = case_run(&plan, &options, &arena);
    cr_assert(result.timeline.span_count > 0);
    for (int64_t i = 0; i < result.timeline.span_count; i++) {
        const double took_s = result.timeline.spans[i].end_s - result.timeline.spans[i].start_s;
        cr_expect(took_s >= options.fault.delay_s - 1e-6, "span %lld took %g s", (long long)i, took_s);
    }
}

Test(faults, a_killed_worker_is_named) {
    bool killed = false;
    Error error = {0};
    const Progress progress = {.update = kill_rank_1, .context = &killed};
    cr_assert(run_long(&progress, &error) == STATUS_ENVIRONMENT);
    cr_assert(killed);
    cr_expect(strstr(error.message, "rank 1 on ") && strstr(error.message, "was killed by signal 9"), "%s",
              error.message);
}

static bool cancel_after_2(void *context, const char *label, int64_t done, int64_t total) {
    (void)context;
    (void)label;
    (void)total;
    return done <= 2;
}

Test(faults, a_cancelled_run_ends) {
    Error error = {0};
    const Progress progress = {.update = cancel_after_2};
    cr_assert(run_long(&progress, &error) == STATUS_ENVIRONMENT);
    cr_expect(strstr(error.message, "cancelled"), "%s", error.message);
}

static volatile sig_atomic_t interrupts;

static void count_interrupt(int signal_number) {
    (void)signal_number;
    interrupts++;
}

static bool interrupt_after_2(void *context, const char *label, int64_t done, int64_t total) {
    (void)label;
    (void)total;
    bool *sent = context;
    if (done > 2 && !*sent) {
        kill(getpid(), SIGINT);
        *sent = true;
    }
    return true;
}

Test(faults, an_interrupt_is_delivered_after_everything_is_cleaned_up) {
    bool sent = false;
    Error error = {0};
    signal(SIGINT, count_interrupt);
    const Progress progress = {.update = interrupt_after_2, .context = &sent};
    cr_assert(run_long(&progress, &error) == STATUS_ENVIRONMENT);
    cr_expect(strstr(error.message, "interrupted"), "%s", error.message);
    cr_expect(interrupts == 1, "%d interrupts", (int)interrupts);
    nothing_stays();
}

static bool hang_up_after_2(void *context, const char *label, int64_t done, int64_t total) {
    (void)label;
    (void)total;
    bool *sent = context;
    if (done > 2 && !*sent) {
        kill(getpid(), SIGHUP);
        *sent = true;
    }
    return done <= 6;
}

// As under nohup.
Test(faults, a_run_goes_on_when_a_signal_comes_that_its_launcher_ignores) {
    bool sent = false;
    Error error = {0};
    signal(SIGHUP, SIG_IGN);
    const Progress progress = {.update = hang_up_after_2, .context = &sent};
    cr_assert(run_long(&progress, &error) == STATUS_ENVIRONMENT);
    cr_expect(sent && strstr(error.message, "cancelled"), "%s", error.message);
}

Test(faults, a_run_ends_well_where_the_ends_of_children_are_ignored) {
    RunOptions options = case_options();
    options.steps = 1;
    const TrainPlan plan = case_sharded_plan((Mesh){.size = SIZES(1, 2, 1, 1)});
    signal(SIGCHLD, SIG_IGN);
    case_run(&plan, &options, &arena);
    signal(SIGCHLD, SIG_DFL);
}

Test(faults, a_missing_worker_program_is_told_with_a_hint) {
    RunRequest request = {
        .model = case_model(), .plan = case_sharded_plan((Mesh){.size = SIZES(1, 2, 1, 1)}), .options = case_options()};
    const ExecOptions options = {.worker_path = "/nowhere/ndtune-worker"};
    RunResult result;
    Error error = {0};
    cr_assert(target_find("ndtune", &request.target, &error) == STATUS_OK);
    cr_assert(exec_run(&request, &options, &arena, &result, &error) == STATUS_ENVIRONMENT);
    cr_expect(strstr(error.message, "/nowhere/ndtune-worker"), "%s", error.message);
    cr_expect(strstr(error.hint, "NDTUNE_WORKER"), "%s", error.hint);
}

Test(faults, a_worker_refuses_another_program_than_the_launchers) {
    const TrainPlan plan = case_sharded_plan((Mesh){.size = SIZES(1, 1, 1, 1)});
    const char *request_path = arena_format(&arena, "%s/request.json", directory);
    RunRequest request = {.model = case_model(),
                          .plan = plan,
                          .options = case_options(),
                          .template_hash = 1,
                          .segment_fd = -1,
                          .result_path = arena_format(&arena, "%s/result.json", directory),
                          .failure_path = arena_format(&arena, "%s/failure.json", directory)};
    Error error = {0};
    cr_assert(target_find("ndtune", &request.target, &error) == STATUS_OK);
    cr_assert(run_request_save(&request, request_path, &error) == STATUS_OK);
    ProgramRun run =
        program_run((const char *[]){NDTUNE_BIN_DIR "/ndtune-worker", "run", request_path, "0", NULL}, NULL, 120);
    cr_expect(run.exit_code == 4, "code %d", run.exit_code);
    cr_expect(strstr(run.err, "lowers to program"), "%s", run.err);
    program_run_free(&run);
    unlink(request_path);
    unlink(request.failure_path);
}

// ---------------------------------------------------------------------------------------------- a killed launcher

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
}

// Gone, or a zombie waiting for the process that adopted it.
static bool ended(pid_t pid) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "r");
    const bool there = file && fgets(line, sizeof line, file);
    if (file) {
        fclose(file);
    }
    const char *state = there ? strrchr(line, ')') : NULL;
    return !state || state[2] == 'Z' || state[2] == 'X';
}

static void kill_launcher(pid_t launcher, int *left) {
    pid_t workers[RANKS_MOST];
    int count = 0;
    for (int i = 0; i < 12000 && count < 2; i++) {
        nap();
        count = children_of(launcher, workers);
    }
    cr_assert(count == 2, "the launcher started %d workers", count);
    kill(launcher, SIGKILL);
    waitpid(launcher, NULL, 0);
    for (int i = 0; i < 12000 && !(ended(workers[0]) && ended(workers[1])); i++) {
        nap();
    }
    *left = !ended(workers[0]) + !ended(workers[1]);
}

Test(faults, a_killed_launcher_takes_its_workers_along_and_the_next_run_sweeps_its_files) {
    pid_t launcher;
    char *const words[] = {LAUNCH_FOREVER, NDTUNE_BIN_DIR "/ndtune-worker", NULL};
    cr_assert(posix_spawn(&launcher, LAUNCH_FOREVER, NULL, NULL, words, environ) == 0);
    int left;
    kill_launcher(launcher, &left);
    cr_expect(left == 0, "%d workers live on", left);
    cr_expect(entries(directory, "ndtune-run-") == 1, "the killed launcher left no directory: the test shows nothing");
    RunOptions options = case_options();
    options.steps = 1;
    const TrainPlan plan = case_sharded_plan((Mesh){.size = SIZES(1, 2, 1, 1)});
    case_run(&plan, &options, &arena);
    cr_expect(entries(directory, "ndtune-run-") == 0, "the next run did not sweep");
}

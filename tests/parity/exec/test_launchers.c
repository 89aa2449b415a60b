// Any launcher and any transport give the same losses and norms to the bit, with processes started by ndtune itself, by
// mpirun, by a real Slurm, by torchrun, and on two nodes that share nothing but a link.

#define _GNU_SOURCE  // setenv

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/protocol/program_words.h"
#include "tests/parity/exec/exec_case.h"
#include "tests/support/run_program.h"
#include "tests/support/sizes.h"

enum { STEPS = 3, SETTINGS_MOST = 16 };

static const char CLUSTER[] = NDTUNE_SOURCE_DIR "/tests/cluster/";
static const Mesh mesh = {.size = SIZES(1, 2, 1, 2)};

static Arena arena;
static char *directory;
static const char *down[3];  // the script that takes back what the test set up

static void begin(void) {
    directory = temp_dir_make();
    setenv("TMPDIR", directory, 1);
}

static void end(void) {
    if (down[0]) {
        ProgramRun run = program_run(down, NULL, 200);
        cr_expect(run.exit_code == 0, "%s", run.err);
        program_run_free(&run);
    }
    temp_dir_remove(directory);
    arena_free(&arena);
}

TestSuite(launchers, .init = begin, .fini = end);

static RunResult run_by(Mesh shape, const char *transport, LaunchOptions launch) {
    const TrainPlan plan = case_sharded_plan(shape);
    RunOptions options = case_options();
    options.steps = STEPS;
    options.transport = transport;
    const RunRequest request = case_request(&plan, &options);
    const ExecOptions how = {.worker_path = NDTUNE_BIN_DIR "/ndtune-worker", .launch = launch};
    RunResult result = {0};
    Error error = {0};
    const Status status = exec_run(&request, &how, &arena, &result, &error);
    cr_assert(status == STATUS_OK, "%s over %s: %s", launch.launcher ? launch.launcher : "auto", transport,
              error.message);
    return result;
}

static void equal_bits(const char *who, const RunResult *run, const RunResult *reference) {
    for (int i = 0; i < STEPS; i++) {
        cr_expect(run->loss[i] == reference->loss[i] && run->grad_norm[i] == reference->grad_norm[i],
                  "%s, step %d: loss %.9g and %.9g, norm %.9g and %.9g", who, i + 1, run->loss[i], reference->loss[i],
                  run->grad_norm[i], reference->grad_norm[i]);
    }
}

static void needs_transport(const char *transport) {
    Error error = {0};
    if (transport_check(transport, &error) != STATUS_OK) {
        cr_skip_test("%s", error.message);
    }
}

static void needs_launcher(const char *launcher, const char *transport) {
    const char *name, *because;
    Error error = {0};
    const LaunchOptions options = {.launcher = launcher};
    if (exec_check_launch(&options, transport, &arena, &name, &because, &error) != STATUS_OK) {
        cr_skip_test("%s", error.message);
    }
}

static void trains_as_local(const char *launcher, const char *transport) {
    const RunResult reference = run_by(mesh, "shm", (LaunchOptions){.launcher = "local"});
    const RunResult run = run_by(mesh, transport, (LaunchOptions){.launcher = launcher});
    equal_bits(launcher, &run, &reference);
}

Test(launchers, mpirun_trains_as_local_over_either_transport) {
    needs_transport("mpi");
    needs_launcher("mpirun", "mpi");
    trains_as_local("mpirun", "mpi");
    trains_as_local("mpirun", "shm");
}

Test(launchers, auto_takes_children_for_shm_and_mpirun_for_mpi_and_says_why) {
    needs_transport("mpi");
    unsetenv("SLURM_JOB_ID");
    needs_launcher("mpirun", "mpi");
    const char *name, *because;
    const LaunchOptions usual = {.launcher = NULL};
    cr_assert(exec_check_launch(&usual, "shm", &arena, &name, &because, NULL) == STATUS_OK);
    cr_expect(strcmp(name, "local") == 0 && strstr(because, "this machine"), "%s: %s", name, because);
    cr_assert(exec_check_launch(&usual, "mpi", &arena, &name, &because, NULL) == STATUS_OK);
    cr_expect(strcmp(name, "mpirun") == 0 && strstr(because, "outside of Slurm"), "%s: %s", name, because);
}

Test(launchers, what_does_not_go_together_is_refused_in_words) {
    const char *name, *because;
    Error error = {0};
    const LaunchOptions local = {.launcher = "local"}, hosts = {.hosts = "a,b"}, pigeon = {.launcher = "pigeon"};
    cr_expect(exec_check_launch(&local, "mpi", &arena, &name, &because, &error) == STATUS_USAGE);
    cr_expect(strstr(error.message, "local starts no ranks of transport mpi"), "%s", error.message);
    cr_expect(exec_check_launch(&hosts, "shm", &arena, &name, &because, &error) == STATUS_USAGE);
    cr_expect(strstr(error.message, "does not leave this machine"), "%s", error.message);
    cr_expect(exec_check_launch(&pigeon, "shm", &arena, &name, &because, &error) == STATUS_USAGE);
    cr_expect(strstr(error.message, "pigeon"), "%s", error.message);
}

// How a run that mpirun gives up explains itself.
static const char *mpirun_gives_up(void) {
    const TrainPlan plan = case_sharded_plan(mesh);
    RunOptions options = case_options();
    options.transport = "mpi";
    const RunRequest request = case_request(&plan, &options);
    const ExecOptions how = {.worker_path = NDTUNE_BIN_DIR "/ndtune-worker", .launch = {.hosts = "elsewhere:4"}};
    RunResult result = {0};
    Error error = {0};
    cr_assert(exec_run(&request, &how, &arena, &result, &error) == STATUS_ENVIRONMENT, "%s", error.message);
    return arena_text(&arena, error.message);
}

// mpirun ends its boxes with advice; what happened stands at their beginning.
Test(launchers, what_mpirun_gives_up_with_is_told_by_how_it_begins) {
    needs_transport("mpi");
    needs_launcher("mpirun", "mpi");
    setenv("OMPI_MCA_plm_rsh_agent", "/bin/false", 1);
    const char *words = mpirun_gives_up();
    const char *said = strstr(words, "it said: ");  // ORTE of Open MPI 4, PRTE of 5
    cr_expect(said && strstr(said, "was unable to reliably start"), "%s", words);
}

// Open MPI 4.1.4 warned so after its box, once in some hundred starts, when the agent was faster than its parent.
Test(launchers, a_warning_of_mpirun_is_not_why_it_gave_up) {
    needs_transport("mpi");
    needs_launcher("mpirun", "mpi");
    const char *path = arena_format(&arena, "%s/mpirun", directory);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL);
    fputs("#!/bin/sh\n"
          "echo ----------------- >&2\n"
          "echo ORTE was unable to reliably start one or more daemons. >&2\n"
          "echo ----------------- >&2\n"
          "echo '[vm:2] plm:rsh: Warning: setpgid(3,3) failed in parent with errno=Permission denied(13)' >&2\n"
          "exit 1\n",
          file);
    cr_assert(fclose(file) == 0 && chmod(path, 0755) == 0);
    setenv("PATH", arena_format(&arena, "%s:%s", directory, getenv("PATH")), 1);
    const char *words = mpirun_gives_up();
    cr_expect(strstr(words, "it said: ORTE was unable to reliably start"), "%s", words);
}

// PyTorch's own where it is installed, else a script that sets the same variables.
Test(launchers, torchrun_trains_as_local) {
    const char *name, *because;
    const LaunchOptions options = {.launcher = "torchrun"};
    if (exec_check_launch(&options, "shm", &arena, &name, &because, NULL) != STATUS_OK) {
        cr_assert(symlink(arena_format(&arena, "%storchrun_like", CLUSTER),
                          arena_format(&arena, "%s/torchrun", directory)) == 0);
        setenv("PATH", arena_format(&arena, "%s:%s", directory, getenv("PATH")), 1);
    }
    trains_as_local("torchrun", "shm");
}

// ---------------------------------------------------------------------------------------------- clusters by script

// Runs "SCRIPT up ..." and takes over the settings that it prints; skips with its reason.
static void set_up(const char *script, const char *option, const char *value) {
    const char *path = arena_format(&arena, "%s%s", CLUSTER, script);
    const char *words[] = {path, "up", option, value, NULL};
    ProgramRun run = program_run(words, NULL, 200);
    if (run.exit_code == 77) {
        cr_skip_test("%s", run.err);
    }
    cr_assert(run.exit_code == 0, "%s", run.err);
    down[0] = path;
    down[1] = "down";
    for (char *rest = run.out, *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(rest, "\n", &rest)) {
        char *name = line + strlen("export "), *equals = strchr(line, '=');
        cr_assert(strncmp(line, "export ", strlen("export ")) == 0 && equals, "%s", line);
        *equals = '\0';
        setenv(name, equals + 1, 1);
    }
    program_run_free(&run);
}

// A skipped test takes nothing down: what it needs is asked before it sets up.
Test(launchers, srun_trains_as_local_over_shm) {
    set_up("slurm", NULL, NULL);
    trains_as_local("srun", "shm");
}

Test(launchers, srun_trains_as_local_over_mpi) {
    needs_transport("mpi");
    set_up("slurm", NULL, NULL);
    trains_as_local("srun", "mpi");
}

static double relative(double value, double reference) {
    return (value > reference ? value - reference : reference - value) / reference;
}

// Parity with one rank: bounds of test_meshes. And with shm on this machine: the bits.
Test(launchers, two_nodes_train_as_one_rank_and_as_shared_memory) {
    needs_transport("mpi");
    needs_launcher("mpirun", "mpi");
    set_up("two_nodes", NULL, NULL);
    const LaunchOptions nodes = {.hostfile = getenv("NDTUNE_CLUSTER_HOSTFILE")};
    const RunResult one = run_by((Mesh){.size = SIZES(1, 1, 1, 1)}, "shm", (LaunchOptions){0});
    const Mesh shapes[] = {{.size = SIZES(1, 2, 1, 2)}, {.size = SIZES(2, 1, 2, 1)}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const RunResult shared = run_by(shapes[i], "shm", (LaunchOptions){0});
        const RunResult run = run_by(shapes[i], "mpi", nodes);
        equal_bits("two nodes", &run, &shared);
        cr_expect(relative(run.loss[0], one.loss[0]) <= 2e-6, "loss %.9g and %.9g", run.loss[0], one.loss[0]);
        cr_expect(relative(run.grad_norm[0], one.grad_norm[0]) <= 1e-5, "norm %.9g and %.9g", run.grad_norm[0],
                  one.grad_norm[0]);
    }
}

// What both ranks of a node send across in one step where dp_shard spans the nodes.
static double bytes_across(void) {
    const TrainPlan plan = case_sharded_plan(mesh);
    const ModelSpec model = case_model();
    const Target *target;
    StepProgram program;
    cr_assert(target_find("ndtune", &target, NULL) == STATUS_OK);
    cr_assert(step_lower(&model, &plan, target, &arena, &program, NULL) == STATUS_OK);
    StepCursor cursor = step_cursor_begin(&program);
    StepInstance instance;
    double bytes = 0;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program.tasks[instance.task];
        const bool across = (task->kind == TASK_ALL_GATHER || task->kind == TASK_REDUCE_SCATTER) &&
                            (program.groups[task->group].axes & AXIS_BIT(AXIS_DP_SHARD));
        bytes += across ? 2.0 * (double)program_collective_bytes(&program, task) : 0;
    }
    return bytes;
}

// A law, not a timing: no step can be shorter than its bytes need on the shaped link, a burst of 128 KiB apart.
Test(launchers, no_step_is_faster_than_the_link_between_two_nodes_allows) {
    needs_transport("mpi");
    needs_launcher("mpirun", "mpi");
    set_up("two_nodes", "--rate", "20mbit");
    const RunResult run = run_by(mesh, "mpi", (LaunchOptions){.hostfile = getenv("NDTUNE_CLUSTER_HOSTFILE")});
    const double least_s = (bytes_across() - 131072) / (20e6 / 8);
    cr_assert(least_s > 0.1, "the test shows nothing: %.3f s", least_s);
    for (int i = 0; i < STEPS; i++) {
        cr_expect(run.step_time_s[i] >= least_s, "step %d took %.3f s, the link needs %.3f s", i + 1,
                  run.step_time_s[i], least_s);
    }
    cr_log_warn("steps of %.2f s where the link needs %.2f s", run.step_time_s[STEPS - 1], least_s);
}

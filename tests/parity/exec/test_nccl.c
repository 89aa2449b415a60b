// The real worker over transport nccl, with the recording stand-ins of tests/support/nccl_recording as the machine's
// driver and NCCL, and compute on the CPU: the bits of shm, and exactly the collectives of the program. Then what is
// refused, and what happens when NCCL fails or a rank hangs.

#define _GNU_SOURCE  // setenv

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/parity/exec/exec_case.h"
#include "tests/parity/exec/nccl_log.h"
#include "tests/support/run_program.h"
#include "tests/support/sizes.h"

enum { STEPS = 2 };

static Arena arena;
static char *directory;

static void begin(void) {
    directory = temp_dir_make();
    setenv("NDTUNE_NCCL_RECORDING", directory, 1);
    setenv("LD_LIBRARY_PATH", NCCL_STAND_IN, 1);
}

static void end(void) {
    temp_dir_remove(directory);
    arena_free(&arena);
}

TestSuite(nccl, .init = begin, .fini = end);

static RunOptions options_over(const char *transport) {
    RunOptions options = case_options();
    options.steps = STEPS;
    options.transport = transport;
    return options;
}

static Status try_mesh(Mesh mesh, const RunOptions *options, LaunchOptions launch, RunResult *result, Error *error) {
    const TrainPlan plan = case_sharded_plan(mesh);
    const RunRequest request = case_request(&plan, options);
    const ExecOptions how = {.worker_path = NDTUNE_BIN_DIR "/ndtune-worker", .launch = launch};
    return exec_run(&request, &how, &arena, result, error);
}

static RunResult run_mesh(Mesh mesh, const char *transport, LaunchOptions launch) {
    const RunOptions options = options_over(transport);
    RunResult result = {0};
    Error error = {0};
    cr_assert(try_mesh(mesh, &options, launch, &result, &error) == STATUS_OK, "%s: %s %s", transport, error.message,
              error.hint);
    return result;
}

static void equal_bits(const RunResult *run, const RunResult *reference) {
    for (int i = 0; i < STEPS; i++) {
        cr_expect(run->loss[i] == reference->loss[i] && run->grad_norm[i] == reference->grad_norm[i],
                  "step %d: loss %.9g and %.9g, norm %.9g and %.9g", i + 1, run->loss[i], reference->loss[i],
                  run->grad_norm[i], reference->grad_norm[i]);
    }
}

// ---------------------------------------------------------------------------------------------- the program's calls

static StepProgram program_of(Mesh mesh) {
    const TrainPlan plan = case_sharded_plan(mesh);
    const ModelSpec model = case_model();
    const Target *target;
    StepProgram program;
    Error error = {0};
    cr_assert(target_find("ndtune", &target, &error) == STATUS_OK);
    cr_assert(step_lower(&model, &plan, target, &arena, &program, &error) == STATUS_OK, "%s", error.message);
    return program;
}

static void splits_share_nothing(const NcclLog *log) {
    int splits = 0;
    for (int i = 0; i < log->count; i++) {
        const NcclCall *call = &log->calls[i];
        splits += strncmp(call->words, "split", 5) == 0;
        cr_expect(call->share != 1, "%s shares resources", call->lane);
    }
    cr_expect(splits > 0 && nccl_log_has(log, "destroy") && !nccl_log_has(log, "abort"));
}

static void trains_as_shm(Mesh mesh) {
    const RunResult reference = run_mesh(mesh, "shm", (LaunchOptions){0});
    const RunResult run = run_mesh(mesh, "nccl", (LaunchOptions){0});
    const StepProgram program = program_of(mesh);
    const NcclLog first = nccl_log_read(directory, 0, &arena);
    equal_bits(&run, &reference);
    for (int rank = 0; rank < mesh_world(&mesh); rank++) {
        const NcclLog log = nccl_log_read(directory, rank, &arena);
        cr_expect(!nccl_log_has(&log, "VIOLATION"), "rank %d", rank);
        nccl_log_is_the_programs(&log, &program, rank, STEPS);
        splits_share_nothing(&log);
        nccl_log_has_partners(&log, &first);
    }
}

Test(nccl, shards_and_tensor_parts_make_the_programs_calls_and_the_bits_of_shm) {
    trains_as_shm((Mesh){.size = SIZES(1, 2, 1, 2)});
}

Test(nccl, replicas_and_rings_make_the_programs_calls_and_the_bits_of_shm) {
    trains_as_shm((Mesh){.size = SIZES(2, 1, 2, 1)});
}

Test(nccl, a_ring_of_four_makes_the_programs_calls_and_the_bits_of_shm) {
    trains_as_shm((Mesh){.size = SIZES(1, 1, 4, 1)});
}

// Two micro-steps are in flight between the stages at a time, in both directions.
Test(nccl, stages_send_messages_and_give_the_bits_of_shm) {
    TrainPlan plan;
    Mesh mesh = {.size = SIZES(1, 2, 1, 1)};
    mesh.size[AXIS_PP] = 2;
    cr_assert(case_plan(&mesh, 4, &plan));
    plan_canonical(&plan);
    const RunOptions shm = options_over("shm"), nccl = options_over("nccl");
    const RunResult reference = case_run(&plan, &shm, &arena), run = case_run(&plan, &nccl, &arena);
    equal_bits(&run, &reference);
    for (int rank = 0; rank < mesh_world(&mesh); rank++) {
        const NcclLog log = nccl_log_read(directory, rank, &arena);
        cr_expect(!nccl_log_has(&log, "VIOLATION") && nccl_log_has(&log, "call send") &&
                      nccl_log_has(&log, "call recv"),
                  "rank %d", rank);
    }
}

static void needs_launcher(LaunchOptions launch) {
    const char *name, *because;
    Error error = {0};
    if (exec_check_launch(&launch, "nccl", &arena, &name, &because, &error) != STATUS_OK) {
        cr_skip_test("%s", error.message);
    }
}

static void launched_trains_as_shm(LaunchOptions launch) {
    const Mesh mesh = {.size = SIZES(1, 2, 1, 1)};
    const RunResult reference = run_mesh(mesh, "shm", (LaunchOptions){0});
    const RunResult run = run_mesh(mesh, "nccl", launch);
    equal_bits(&run, &reference);
}

Test(nccl, ranks_of_mpirun_get_the_id_through_the_post) {
    const LaunchOptions mpirun = {.launcher = "mpirun"};
    needs_launcher(mpirun);
    launched_trains_as_shm(mpirun);
}

// Two GPUs for two ranks: each must know its number on the machine.
Test(nccl, ranks_of_torchrun_get_the_id_and_a_gpu_each) {
    cr_assert(
        symlink(NDTUNE_SOURCE_DIR "/tests/cluster/torchrun_like", arena_format(&arena, "%s/torchrun", directory)) == 0);
    setenv("PATH", arena_format(&arena, "%s:%s", directory, getenv("PATH")), 1);
    setenv("NDTUNE_STAND_IN_GPUS", "2", 1);
    launched_trains_as_shm((LaunchOptions){.launcher = "torchrun"});
}

// Every collective of every group, on device memory that NCCL gave: right elements, and no call that is staged.
Test(nccl, preflight_finds_every_group_right_and_times_no_copies) {
    const char *const run[] = {"ndtune",          "preflight",   "--model", "tiny",     "--mesh",
                               "dp_shard=2,tp=2", "--transport", "nccl",    "--format", "json",
                               "--timeout",       "120",         NULL};
    ProgramRun ended = program_run(run, NULL, 200);
    int right = 0;
    for (const char *at = strstr(ended.out, "\"wrong_elements\""); at; at = strstr(at + 1, "\"wrong_elements\"")) {
        right += strncmp(at, "\"wrong_elements\": 0.0", 21) == 0;
    }
    cr_expect_eq(right, 2 * 4, "%s %s", ended.out, ended.err);  // axes, collectives
    for (int rank = 0; rank < 4; rank++) {
        const NcclLog log = nccl_log_read(directory, rank, &arena);
        cr_expect(!nccl_log_has(&log, "VIOLATION"), "rank %d", rank);
    }
    program_run_free(&ended);
}

// ---------------------------------------------------------------------------------------------- failures

static void failure_says(const RunOptions *options, const char *const *words) {
    RunResult result = {0};
    Error error = {0};
    const Mesh mesh = {.size = SIZES(1, 2, 1, 2)};
    cr_assert(try_mesh(mesh, options, (LaunchOptions){0}, &result, &error) == STATUS_ENVIRONMENT, "%s", error.message);
    for (int i = 0; words[i]; i++) {
        cr_expect(strstr(error.message, words[i]) || strstr(error.hint, words[i]), "no '%s' in: %s (%s)", words[i],
                  error.message, error.hint);
    }
}

static int task_named(const char *name) {
    const StepProgram program = program_of((Mesh){.size = SIZES(1, 2, 1, 2)});
    for (int t = 0; t < program.task_count; t++) {
        if (strcmp(program.tasks[t].name, name) == 0) {
            return t;
        }
    }
    cr_assert_fail("no task '%s'", name);
    return -1;
}

Test(nccl, a_rank_that_hangs_is_named_and_the_others_abort) {
    RunOptions options = options_over("nccl");
    options.timeout_s = 1;
    options.fault = (RunFault){.action = FAULT_HANG, .rank = 2, .task = task_named("mlp down")};
    failure_says(&options, (const char *[]){"lane ", "for rank 2", "'mlp down'", NULL});
    nccl_log_aborts(directory, 4, &arena);  // how many had time to is the launcher's affair
}

// There the launcher sees what each rank's streams have done, and speaks before a rank, which knows its own only,
// unless the machine is so busy that the launcher has had no time to look.
Test(nccl, a_rank_of_mpirun_that_hangs_is_named_through_the_post) {
    const LaunchOptions mpirun = {.launcher = "mpirun"};
    needs_launcher(mpirun);
    RunOptions options = options_over("nccl");
    options.timeout_s = 2;
    options.fault = (RunFault){.action = FAULT_HANG, .rank = 2, .task = task_named("mlp down")};
    RunResult result = {0};
    Error error = {0};
    const Mesh mesh = {.size = SIZES(1, 2, 1, 2)};
    cr_assert(try_mesh(mesh, &options, mpirun, &result, &error) == STATUS_ENVIRONMENT, "%s", error.message);
    const bool named = strstr(error.message, "for rank 2"), busy = strstr(error.message, "for the others of its group");
    cr_expect(strstr(error.message, "lane ") && (named || busy), "%s", error.message);
}

Test(nccl, a_rank_that_ends_is_named_with_its_task) {
    RunOptions options = options_over("nccl");
    options.fault = (RunFault){.action = FAULT_EXIT, .rank = 2, .task = task_named("mlp down")};
    failure_says(&options, (const char *[]){"rank 2 on ", "exited with code 42", "'mlp down'", NULL});
}

Test(nccl, an_error_that_comes_later_is_told_in_nccls_words_with_rank_and_lane) {
    const RunOptions options = options_over("nccl");
    setenv("NDTUNE_NCCL_FAIL", "1:3", 1);
    failure_says(&options, (const char *[]){"lane ", "rank 1: NCCL says: remote process exited",
                                            "socket closed by its peer", NULL});
    cr_expect_gt(nccl_log_aborts(directory, 2, &arena), 0);
}

Test(nccl, a_rank_with_another_size_is_told) {
    RunOptions options = options_over("nccl");
    options.timeout_s = 5;
    const StepProgram program = program_of((Mesh){.size = SIZES(1, 2, 1, 2)});
    int gather = 0;
    while (program.tasks[gather].kind != TASK_ALL_GATHER) {
        gather++;
    }
    options.fault = (RunFault){.action = FAULT_SIZE, .rank = 2, .task = gather};
    failure_says(&options, (const char *[]){"NCCL says: invalid usage", NULL});
}

// ---------------------------------------------------------------------------------------------- refusals

Test(nccl, ranks_that_would_share_a_gpu_are_refused_in_words_that_name_shm) {
    const RunOptions options = options_over("nccl");
    setenv("NDTUNE_STAND_IN_GPUS", "2", 1);
    failure_says(&options,
                 (const char *[]){"one rank per GPU", "4 ranks on this machine and 2 GPUs", "--transport shm", NULL});
}

Test(nccl, ranks_share_a_gpu_where_that_is_asked_for) {
    setenv("NDTUNE_STAND_IN_GPUS", "1", 1);
    setenv("NDTUNE_NCCL_SHARE_GPU", "1", 1);
    const Mesh mesh = {.size = SIZES(1, 2, 1, 1)};
    const RunResult reference = run_mesh(mesh, "shm", (LaunchOptions){0});
    const RunResult run = run_mesh(mesh, "nccl", (LaunchOptions){0});
    equal_bits(&run, &reference);
}

Test(nccl, a_library_that_is_too_old_is_refused_with_both_versions) {
    const RunOptions options = options_over("nccl");
    setenv("NDTUNE_NCCL_VERSION", "21705", 1);
    failure_says(&options, (const char *[]){"needs NCCL 2.18.0 or newer", "2.17.5", NULL});
}

// An empty file is found first and is no library, whatever this machine has.
static void missing_library_is_told(const char *library, const char *folders, const char *words) {
    char path[512], setting[1024];
    snprintf(path, sizeof path, "%s/%s", directory, library);
    FILE *file = fopen(path, "w");
    cr_assert(file);
    fclose(file);
    snprintf(setting, sizeof setting, "LD_LIBRARY_PATH=%s%s", directory, folders);
    const char *const run[] = {"ndtune",      "run",  "--model", "tiny", "--mesh", "dp_shard=2",
                               "--transport", "nccl", "--seq",   "16",   NULL};
    const char *const environment[] = {setting, NULL};
    ProgramRun ended = program_run(run, environment, 200);
    cr_expect_eq(ended.exit_code, 3, "%d", ended.exit_code);
    cr_expect(strstr(ended.err, words), "%s", ended.err);
    program_run_free(&ended);
}

Test(nccl, a_machine_without_the_driver_is_told_in_a_sentence) {
    missing_library_is_told("libcuda.so.1", "", "transport nccl: no libcuda.so.1 on this machine (the NVIDIA driver");
}

Test(nccl, a_machine_without_nccl_is_told_in_a_sentence) {
    missing_library_is_told("libnccl.so.2", ":" NCCL_STAND_IN, "transport nccl: no libnccl.so.2 on this machine");
}

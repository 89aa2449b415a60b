// The launcher's parts that need no worker: what it refuses, its files, how it chooses a typical step.

#define _GNU_SOURCE  // setenv, sched_setaffinity

#include <criterion/criterion.h>
#include <math.h>
#include <sched.h>
#include <string.h>

#include "exec/launch/launchers.h"
#include "exec/protocol/cores.h"
#include "exec/protocol/result.h"
#include "exec/worker/recorder.h"
#include "tests/parity/exec/exec_case.h"
#include "tests/support/run_program.h"
#include "tests/support/sizes.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(launch, .fini = clean);

static const Target *target_of(const char *name) {
    const Target *target = NULL;
    Error error = {0};
    cr_assert(target_find(name, &target, &error) == STATUS_OK, "%s", error.message);
    return target;
}

static TrainPlan plan_of(Mesh mesh) {
    TrainPlan plan;
    case_plan(&mesh, 1, &plan);
    plan_canonical(&plan);
    return plan;
}

Test(launch, runs_every_legal_shape_of_its_own_target) {
    const ModelSpec model = case_model();
    Mesh meshes[32];
    const int count = mesh_enumerate(8, AXES_FIRST, meshes, 32);
    for (int i = 0; i < count; i++) {
        const TrainPlan plan = plan_of(meshes[i]);
        const char *reason = exec_check(&model, &plan, target_of("ndtune"), "cpu", &arena);
        cr_expect(!reason, "%s", reason);
    }
}

Test(launch, refuses_more_ranks_than_a_run_can_watch) {
    const ModelSpec model = case_model();
    TrainPlan plan = plan_of((Mesh){.size = SIZES(512, 1, 1, 1)});
    plan.micro_batch = 1;
    const char *reason = exec_check(&model, &plan, target_of("ndtune"), "cpu", &arena);
    cr_assert(reason && strstr(reason, "up to 256 ranks") && strstr(reason, "512"), "%s", reason ? reason : "runs it");
}

Test(launch, refuses_other_precisions_in_words) {
    const ModelSpec model = case_model();
    TrainPlan plan = plan_of((Mesh){.size = SIZES(1, 2, 1, 1)});
    plan.precision = DTYPE_FP16;
    const char *reason = exec_check(&model, &plan, target_of("ndtune"), "cpu", &arena);
    cr_assert(reason && strstr(reason, "not in fp16"), "%s", reason ? reason : "runs it");
}

Test(launch, refuses_dualpipev_in_words) {
    ModelSpec model = case_model();
    model.layers = 4;
    Mesh mesh = {.size = SIZES(1, 1, 1, 1)};
    mesh.size[AXIS_PP] = 2;
    TrainPlan plan = plan_of(mesh);
    plan.pp_schedule = PP_DUALPIPEV;
    plan.grad_accum = 4;
    const char *reason = exec_check(&model, &plan, target_of("ndtune"), "cpu", &arena);
    cr_assert(reason && strstr(reason, "use pp_schedule zbv"), "%s", reason ? reason : "runs it");
}

Test(launch, refuses_head_sizes_that_the_kernels_do_not_take) {
    ModelSpec model = case_model();
    model.head_dim = 12;
    const TrainPlan plan = plan_of((Mesh){.size = SIZES(1, 1, 1, 1)});
    const char *reason = exec_check(&model, &plan, target_of("ndtune"), "cpu", &arena);
    cr_assert(reason && strstr(reason, "head_dim"), "%s", reason ? reason : "runs it");
}

Test(launch, runs_models_of_every_type) {
    const char *const models[] = {"gpt2",     "gpt-neox-20b", "mpt-7b",     "gemma-7b", "qwen2.5-7b",
                                  "qwen3-8b", "phi-3-mini",   "mistral-7b", "olmo2-7b", "llama-3-8b"};
    TrainPlan plan = plan_of((Mesh){.size = SIZES(1, 1, 1, 1)});
    plan.seq = 128;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        ModelSpec model;
        Error error = {0};
        cr_assert(model_find(models[i], &arena, &model, &error) == STATUS_OK, "%s", error.message);
        const char *reason = exec_check(&model, &plan, target_of("ndtune"), "cpu", &arena);
        cr_expect(!reason, "%s: %s", models[i], reason);
    }
}

Test(launch, refuses_kernels_and_overlap_that_it_does_not_have_in_words) {
    const ModelSpec model = case_model();
    TrainPlan plan = plan_of((Mesh){.size = SIZES(1, 2, 1, 1)});
    plan.attention = ATTENTION_EAGER;
    const char *reason = exec_check(&model, &plan, target_of("ndtune"), "cpu", &arena);
    cr_expect(reason && strstr(reason, "eager"), "%s", reason ? reason : "runs it");
    plan = plan_of((Mesh){.size = SIZES(1, 1, 1, 2)});
    plan.tp_overlap = true;
    reason = exec_check(&model, &plan, target_of("megatron"), "cpu", &arena);
    cr_expect(reason && strstr(reason, "tp_overlap"), "%s", reason ? reason : "runs it");
}

Test(launch, runs_one_table_on_two_stages) {
    ModelSpec model = case_model();
    TrainPlan plan = plan_of((Mesh){.size = SIZES(1, 1, 1, 1)});
    plan.mesh.size[AXIS_PP] = 2;
    plan_canonical(&plan);
    for (int tied = 0; tied < 2; tied++) {
        model.tied_embeddings = tied;
        const char *reason = exec_check(&model, &plan, target_of("megatron"), "cpu", &arena);
        cr_expect(!reason, "%s", reason);
    }
}

// OpenBLAS, if asked, prints at start which core it detected.
Test(launch, a_worker_sheds_a_core_type_that_slows_the_products) {
    const char *const words[] = {"ndtune-worker", NULL};
    const char *const environment[] = {"OPENBLAS_CORETYPE=Haswell", "OPENBLAS_VERBOSE=2", NULL};
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")) {
        cr_skip_test("this processor has no AVX-512: Haswell is no slower than what OpenBLAS takes");
    }
    ProgramRun run = program_run(words, environment, 200);
    const char *slow = strstr(run.err, "Core: Haswell"), *fast = slow ? strstr(slow + 1, "Core: ") : NULL;
    cr_expect(slow, "%s", run.err);
    cr_expect(fast && strncmp(fast, "Core: Haswell", 13) != 0, "%s", run.err);
    cr_expect_eq(run.exit_code, 1);
    program_run_free(&run);
}

Test(launch, options_that_a_device_does_not_go_with_are_refused) {
    RunOptions options = run_options_default();
    Error error = {0};
    options.device = "cuda";
    cr_assert(exec_check_backend(&options, &error) == STATUS_OK, "%s", error.message);
    options.bitwise = true;
    cr_assert(exec_check_backend(&options, &error) == STATUS_USAGE);
    options.bitwise = false;
    options.lanes = LANES_ASYNC;
    cr_assert(exec_check_backend(&options, &error) == STATUS_USAGE);
    options.device = "abacus";
    cr_assert(exec_check_backend(&options, &error) == STATUS_USAGE);
    cr_assert(strstr(error.message, "cpu and cuda"), "%s", error.message);
}

// Whether this processor multiplies in bf16 is decided by its worker (tests/parity/exec/test_half.c).
Test(launch, bf16_is_for_gpus_and_processors_but_never_bitwise) {
    const ModelSpec model = case_model();
    TrainPlan plan = plan_of((Mesh){.size = SIZES(1, 2, 1, 1)});
    plan.precision = DTYPE_BF16;
    const char *reason = exec_check(&model, &plan, target_of("ndtune"), "cpu", &arena);
    cr_expect(!reason, "%s", reason);
    reason = exec_check(&model, &plan, target_of("ndtune"), "cuda", &arena);
    cr_expect(!reason, "%s", reason);
    RunOptions options = case_options();
    options.bitwise = true;
    reason = exec_check_options(&model, &plan, &options);
    cr_expect(reason && strstr(reason, "nothing in bf16"), "%s", reason ? reason : "runs it");
}

static RunRequest request_of(void) {
    RunRequest request = {.model = case_model(),
                          .plan = plan_of((Mesh){.size = SIZES(1, 2, 2, 2)}),
                          .target = target_of("ndtune"),
                          .options = case_options(),
                          .template_hash = UINT64_C(0xfedcba9876543210),
                          .segment_fd = 3,
                          .result_path = "/somewhere/result.json",
                          .failure_path = "/somewhere/failure.json"};
    request.model.fused_qkv = true;
    request.model.activation = ACTIVATION_GELU;
    request.model.qkv_bias = true;
    request.plan.recompute = RECOMPUTE_FULL;
    request.plan.tp_overlap = true;
    request.options.seed = UINT64_MAX;
    request.options.data_tokens = INT64_C(1) << 40;
    request.options.lr = 0.1;  // not a dyadic fraction: shows that digits survive
    request.options.lanes = LANES_ASYNC;
    request.options.fault = (RunFault){.action = FAULT_HANG, .rank = 1, .task = 7};
    return request;
}

Test(launch, a_request_survives_its_file) {
    char *directory = temp_dir_make();
    const char *path = arena_format(&arena, "%s/request.json", directory);
    RunRequest written = request_of();
    const LayerRun runs[] = {{LAYER_DENSE, 0, 1}, {LAYER_DENSE, 1, written.model.layers - 1}};
    written.model.runs = runs;
    written.model.run_count = 2;
    RunRequest read;
    Error error = {0};
    cr_assert(run_request_save(&written, path, &error) == STATUS_OK, "%s", error.message);
    cr_assert(run_request_load(path, &arena, &read, &error) == STATUS_OK, "%s", error.message);
    temp_dir_remove(directory);
    char a[PLAN_TEXT_BYTES], b[PLAN_TEXT_BYTES];
    cr_assert_str_eq(plan_text(&written.plan, a), plan_text(&read.plan, b));
    Hash model_written = hash_begin(), model_read = hash_begin();
    model_hash(&written.model, &model_written);
    model_hash(&read.model, &model_read);
    cr_assert_eq(hash_end(&model_written), hash_end(&model_read));
    cr_assert_eq(read.model.runs[1].first, 1);
    cr_assert_eq(read.target, written.target);
    cr_assert_eq(read.template_hash, written.template_hash);
    cr_assert_eq(read.options.seed, UINT64_MAX);
    cr_assert_eq(read.options.data_tokens, INT64_C(1) << 40);
    cr_assert(read.options.lr == 0.1 && read.options.lanes == LANES_ASYNC);
    cr_assert(read.options.fault.action == FAULT_HANG && read.options.fault.rank == 1 && read.options.fault.task == 7);
    cr_assert_str_eq(read.failure_path, written.failure_path);
}

Test(launch, a_request_with_a_path_that_json_cannot_hold_is_refused_in_words) {
    RunRequest request = request_of();
    const char *text;
    Error error = {0};
    request.options.data_path = "caf\xe9.u16";
    cr_assert(run_request_text(&request, &arena, &text, &error) == STATUS_USAGE);
    cr_assert(strstr(error.message, "not UTF-8"), "%s", error.message);
}

Test(launch, a_request_with_a_missing_field_is_refused_by_name) {
    char *directory = temp_dir_make();
    const char *path = arena_format(&arena, "%s/request.json", directory);
    FILE *file = fopen(path, "w");
    fputs("{\"schema\":\"ndtune.run-request/2\",\"model\":{\"name\":\"x\"}}", file);
    fclose(file);
    RunRequest read;
    Error error = {0};
    cr_assert(run_request_load(path, &arena, &read, &error) == STATUS_USAGE);
    cr_assert(strstr(error.message, "layers"), "%s", error.message);
    temp_dir_remove(directory);
}

Test(launch, the_first_failure_is_the_one_that_is_told) {
    char *directory = temp_dir_make();
    const char *path = arena_format(&arena, "%s/failure.json", directory);
    Error first, second, read = {0};
    error_set(&first, STATUS_ENVIRONMENT, "no room");
    error_set(&second, STATUS_INTERNAL, "stopped");
    run_failure_save(path, 3, &first);
    run_failure_save(path, 1, &second);
    cr_assert(run_failure_load(path, &read));
    temp_dir_remove(directory);
    cr_assert(read.status == STATUS_ENVIRONMENT);
    cr_assert_str_eq(read.message, "rank 3: no room");
}

// Paths and host names may be any bytes, JSON is UTF-8.
Test(launch, a_failure_whose_words_are_no_utf8_is_told) {
    char *directory = temp_dir_make();
    const char *path = arena_format(&arena, "%s/failure.json", directory);
    Error failure, read = {0};
    error_set(&failure, STATUS_ENVIRONMENT, "caf\xe9.u16: cannot be read");
    error_hint(&failure, "name \xff differently");
    run_failure_save(path, 2, &failure);
    cr_assert(run_failure_load(path, &read));
    temp_dir_remove(directory);
    cr_assert_str_eq(read.message, "rank 2: caf?.u16: cannot be read");
    cr_assert_str_eq(read.hint, "name ? differently");
}

Test(launch, a_transport_of_one_machine_is_refused_in_a_job_of_several) {
    const LaunchOptions options = {.launcher = "srun"};
    const char *launcher, *why;
    Error error = {0};
    setenv("SLURM_JOB_NUM_NODES", "2", 1);
    cr_expect(exec_check_launch(&options, "shm", &arena, &launcher, &why, &error) == STATUS_USAGE);
    unsetenv("SLURM_JOB_NUM_NODES");
    cr_expect(strstr(error.message, "transport shm does not leave this machine"), "%s", error.message);
    cr_expect(strstr(error.hint, "--transport mpi"), "%s", error.hint);
}

Test(launch, the_cores_are_those_that_this_process_may_use) {
    cpu_set_t before, one;
    cr_assert(sched_getaffinity(0, sizeof before, &before) == 0);
    cr_expect_eq(cores_allowed(), CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &before)) {
            CPU_SET(i, &one);
        }
    }
    cr_assert(sched_setaffinity(0, sizeof one, &one) == 0);
    cr_expect_eq(cores_allowed(), 1);
    sched_setaffinity(0, sizeof before, &before);
}

Test(launch, a_host_that_is_named_twice_is_one_host) {
    const Launcher *mpirun = NULL;
    Error error = {0};
    cr_assert(launcher_find("mpirun", &mpirun, &error) == STATUS_OK);
    cr_expect_eq(launcher_hosts(mpirun, &(LaunchOptions){.hosts = "a:2,b,a"}), 2);
    cr_expect_eq(launcher_hosts(mpirun, &(LaunchOptions){.hosts = "node1,node10"}), 2);
    cr_expect_eq(launcher_hosts(mpirun, &(LaunchOptions){.hosts = "localhost,localhost"}), 1);
}

Test(launch, hosts_that_are_none_are_refused_in_words_of_our_own) {
    static const struct {
        LaunchOptions options;
        const char *words;
    } cases[] = {{{.hosts = ""}, "names no host"},
                 {{.hosts = ","}, "names no host"},
                 {{.hostfile = "/no/such/hosts"}, "cannot be read: No such file"},
                 {{.hostfile = "/dev/null"}, "host file /dev/null is no file but a folder, device or pipe"},
                 {{.hosts = "a", .hostfile = "/dev/null"}, "give one of them"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *launcher, *why;
        Error error = {0};
        cr_expect(exec_check_launch(&cases[i].options, "mpi", &arena, &launcher, &why, &error) == STATUS_USAGE);
        cr_expect(strstr(error.message, cases[i].words), "%s", error.message);
    }
}

Test(launch, a_launcher_that_mpirun_started_many_times_says_to_start_it_once) {
    const LaunchOptions usual = {0};
    const char *launcher, *why;
    Error error = {0};
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    cr_expect(exec_check_launch(&usual, "shm", &arena, &launcher, &why, &error) == STATUS_USAGE);
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
    cr_expect(strstr(error.message, "as rank 3 of 4") && strstr(error.hint, "start it once"), "%s", error.message);
}

Test(launch, the_typical_step_is_the_median_after_warm_up) {
    const double seconds[] = {9, 3, 1, 2, 5, 4};
    const Recorder all = {.instances = 1, .steps_kept = 6};
    cr_assert_eq(recorder_typical_step(&all, seconds, 6), 1);  // of 3 1 2 5 4
    const Recorder last = {.instances = 1, .steps_kept = 2};
    cr_assert_eq(recorder_typical_step(&last, seconds, 6), 5);  // the lower of 5 4
    const Recorder none = {.instances = 1};
    cr_assert_eq(recorder_typical_step(&none, seconds, 6), -1);
    const Recorder only = {.instances = 1, .steps_kept = 1};
    cr_assert_eq(recorder_typical_step(&only, seconds, 1), 0);
}

static bool has_pair(char **words, const char *option, const char *value) {
    for (int i = 0; words[i] && words[i + 1]; i++) {
        if (strcmp(words[i], option) == 0 && strcmp(words[i + 1], value) == 0) {
            return true;
        }
    }
    return false;
}

Test(launch, mpirun_hands_on_what_people_set_for_nccl) {
    const Launcher *mpirun = NULL;
    Error error = {0};
    cr_assert(launcher_find("mpirun", &mpirun, &error) == STATUS_OK);
    setenv("NCCL_SOCKET_IFNAME", "eth7", 1);
    LaunchPlan plan = {.world = 2, .threads = 1, .worker = "worker", .transport = "nccl", .options.hosts = "a,b"};
    cr_expect(has_pair(mpirun->argv(&plan, &arena), "-x", "NCCL_SOCKET_IFNAME"));
    plan.transport = "mpi";
    cr_expect(!has_pair(mpirun->argv(&plan, &arena), "-x", "NCCL_SOCKET_IFNAME"));
}

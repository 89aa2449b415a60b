// Device cuda over transport nccl, end to end: the real kernels, streams, events and collectives, on stand-ins for the
// CUDA runtime, the driver and NCCL. NCCL's streams must give the results of one rank's compute and of shm, to the bit,
// in any legal order of the streams.

#define _GNU_SOURCE  // setenv

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/parity/exec/exec_case.h"
#include "tests/parity/exec/nccl_log.h"
#include "tests/support/run_program.h"
#include "tests/support/sizes.h"

enum { STEPS = 1 };

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

TestSuite(nccl_cuda, .init = begin, .fini = end);

static RunRequest request_of(Mesh mesh, const char *transport) {
    const TrainPlan plan = case_sharded_plan(mesh);
    RunOptions options = case_options();
    options.steps = STEPS;
    options.transport = transport;
    options.device = "cuda";
    Error error = {0};
    if (exec_check_backend(&options, &error) != STATUS_OK) {
        cr_skip_test("%s", error.message);
    }
    RunRequest request = case_request(&plan, &options);
    request.plan.seq = 16;
    request.plan.micro_batch = 1;
    return request;
}

static Status try_run(const RunRequest *request, RunResult *result, Error *error) {
    const ExecOptions how = {.worker_path = WORKER};
    return exec_run(request, &how, &arena, result, error);
}

static RunResult run(const RunRequest *request) {
    RunResult result = {0};
    Error error = {0};
    cr_assert(try_run(request, &result, &error) == STATUS_OK, "%s: %s %s", request->options.transport, error.message,
              error.hint);
    return result;
}

static StepProgram program_of(const RunRequest *request) {
    StepProgram program;
    Error error = {0};
    cr_assert(step_lower(&request->model, &request->plan, request->target, &arena, &program, &error) == STATUS_OK, "%s",
              error.message);
    return program;
}

// Without experts the model of all tests.
static RunResult same_as_shm(Mesh mesh, const char *seed, Experts experts) {
    setenv("NDTUNE_CUDA_HOST_SEED", seed, 1);
    RunRequest over_shm = request_of(mesh, "shm"), over_nccl = request_of(mesh, "nccl");
    if (experts.count > 0) {
        cr_assert(model_set_family(&over_shm.model, "mixtral"));
        over_shm.model.experts = experts;
        over_shm.plan.capacity = 400;
        plan_canonical(&over_shm.plan);
        over_nccl.model = over_shm.model;
        over_nccl.plan = over_shm.plan;
    }
    const RunResult reference = run(&over_shm), result = run(&over_nccl);
    const StepProgram program = program_of(&over_nccl);
    for (int i = 0; i < STEPS; i++) {
        cr_expect(result.loss[i] == reference.loss[i] && result.grad_norm[i] == reference.grad_norm[i],
                  "step %d: loss %.9g and %.9g, norm %.9g and %.9g", i + 1, result.loss[i], reference.loss[i],
                  result.grad_norm[i], reference.grad_norm[i]);
    }
    const NcclLog first = nccl_log_read(directory, 0, &arena);
    for (int rank = 0; rank < mesh_world(&mesh); rank++) {
        const NcclLog log = nccl_log_read(directory, rank, &arena);
        cr_expect(!nccl_log_has(&log, "VIOLATION"), "rank %d", rank);
        nccl_log_is_the_programs(&log, &program, rank, STEPS);
        nccl_log_has_partners(&log, &first);
    }
    return result;
}

static RunResult trains_as_shm(Mesh mesh, const char *seed) {
    return same_as_shm(mesh, seed, (Experts){0});
}

Test(nccl_cuda, a_ring_runs_in_streams_to_the_bits_of_shm) {
    trains_as_shm((Mesh){.size = SIZES(1, 1, 2, 1)}, "11");
}

Test(nccl_cuda, tensor_parts_run_in_streams_to_the_bits_of_shm_and_on_a_shared_gpu_find_no_prices) {
    setenv("NDTUNE_NCCL_SHARE_GPU", "1", 1);
    const RunResult result = trains_as_shm((Mesh){.size = SIZES(1, 1, 1, 2)}, "12");
    cr_expect(result.chip && result.price_count == 0);
    unsetenv("NDTUNE_NCCL_SHARE_GPU");
}

Test(nccl_cuda, shards_run_in_streams_and_the_arena_is_a_window_of_gather_and_scatter) {
    trains_as_shm((Mesh){.size = SIZES(1, 2, 1, 1)}, "13");
    const NcclLog log = nccl_log_read(directory, 0, &arena);
    int windows = 0;
    for (int i = 0; i < log.count; i++) {
        const NcclCall *call = &log.calls[i];
        const bool sharding = strcmp(call->lane, "ag") == 0 || strcmp(call->lane, "rs") == 0;
        if (strcmp(call->words, "window") == 0) {
            windows++;
            cr_expect(sharding, "%s", call->lane);
        }
    }
    cr_expect_eq(windows, 2);
}

// Ranks tell each other how many rows come, then parts of those sizes cross in streams.
Test(nccl_cuda, tokens_cross_to_experts_in_parts_of_their_own_sizes_to_the_bits_of_shm) {
    Mesh mesh = {.size = SIZES(1, 2, 1, 1)};
    mesh.size[AXIS_EP] = 2;
    same_as_shm(mesh, "14", (Experts){.count = 4, .active = 2, .ffn = 32});
}

// Its host stands still; the streams of the others have begun a collective that never ends.
Test(nccl_cuda, a_rank_that_hangs_is_named_by_streams_that_wait) {
    RunRequest request = request_of((Mesh){.size = SIZES(1, 2, 1, 1)}, "nccl");
    const StepProgram program = program_of(&request);
    int task = 0;
    while (strcmp(program.tasks[task].name, "mlp down") != 0) {
        task++;
    }
    request.options.timeout_s = 3;
    request.options.fault = (RunFault){.action = FAULT_HANG, .rank = 1, .task = task, .step = 0};
    RunResult result = {0};
    Error error = {0};
    cr_assert(try_run(&request, &result, &error) == STATUS_ENVIRONMENT, "%s", error.message);
    cr_expect(strstr(error.message, "rank 1") && strstr(error.message, "'mlp down'"), "%s", error.message);
    nccl_log_aborts(directory, 2, &arena);
}

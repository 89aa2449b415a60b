// The probe's kernels of device cuda over the stand-in runtime: each kind runs at a small size and is timed. In this
// process, since the probe's own sizes are for GPUs.

#include <criterion/criterion.h>
#include <string.h>

#include "exec/worker/session.h"
#include "tests/parity/exec/exec_case.h"
#include "tests/support/sizes.h"

// A product that goes on until its time is over; attention of a library that this build has not.
static void check_special(Session *session) {
    const DeviceWork on_and_on = {.kind = DEVICE_WORK_GEMM, .size = {16, 8, 32}, .sustain_s = 0.01};
    const DeviceWork absent = {.kind = DEVICE_WORK_ATTENTION, .size = {32, 0, 2, 64}, .library = true};
    DeviceTiming timing;
    Error error = {0};
    cr_assert(session->devices->measure(session->device, &on_and_on, &timing, &error) == STATUS_OK, "%s",
              error.message);
    cr_expect(timing.seconds > 0 && timing.repeats > 0);
    cr_assert(session->devices->measure(session->device, &absent, &timing, &error) == STATUS_OK, "%s", error.message);
    cr_expect_eq(timing.repeats, 0);
}

Test(cuda_measure, every_kind_of_work_runs_and_takes_time) {
    static const double sizes[DEVICE_WORK_COUNT][4] = {
        [DEVICE_WORK_GEMM] = {16, 8, 32},
        [DEVICE_WORK_ADD] = {4096},
        [DEVICE_WORK_NORM] = {8192},
        [DEVICE_WORK_SWIGLU] = {8192},
        [DEVICE_WORK_ADAMW] = {4096},
        [DEVICE_WORK_ATTENTION] = {32, 0, 2, 64},
        [DEVICE_WORK_ATTENTION_BACKWARD] = {32, 32, 2, 64},
    };
    Arena arena = {0};
    Error error = {0};
    Session session = {0};
    RunOptions options = case_options();
    TrainPlan plan = {.mesh = {.size = SIZES(1, 1, 1, 1)}, .seq = 16, .micro_batch = 1, .grad_accum = 1};
    StepProgram program;
    plan.precision = DTYPE_BF16;
    plan_canonical(&plan);
    options.device = "cuda";
    RunRequest request = case_request(&plan, &options);
    request.segment_fd = -1;
    cr_assert(step_lower(&request.model, &plan, request.target, &arena, &program, &error) == STATUS_OK);
    request.template_hash = step_template_hash(&program);
    cr_assert(session_join(&request, &(RankPlace){0}, &arena, &session, &error) == STATUS_OK, "%s", error.message);
    for (int kind = 0; kind < DEVICE_WORK_COUNT; kind++) {
        DeviceTiming timing;
        DeviceWork work = {.kind = (DeviceWorkKind)kind};
        memcpy(work.size, sizes[kind], sizeof work.size);
        cr_assert(session.devices->measure(session.device, &work, &timing, &error) == STATUS_OK, "%s", error.message);
        cr_expect(timing.seconds > 0 && timing.low <= timing.seconds && timing.seconds <= timing.high, "%d", kind);
        cr_expect((kind >= DEVICE_WORK_ATTENTION) == (timing.way != NULL), "%d", kind);
    }
    check_special(&session);
    session_close(&session);
    arena_free(&arena);
}

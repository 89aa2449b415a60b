// What forward shows of gathers of updated weights beside it: a program built by hand, one unit.

#include <criterion/criterion.h>

#include "sim/cost/gathers.h"
#include "tests/support/sizes.h"
#include "tests/unit/sim/cost/machines.h"

enum { STAGES = 4, CHUNKS = 3, TOKENS = 4096, EXPERTS = 32, ACTIVE = 4, EP = 4 };

static const int64_t layer_parameters = 100000000;
static const double gather_s = 5e-3;

// 735 TFLOP/s: 2 x 1e8 x 4096 operations.
static const double micro_step_s = 2.0 * 100000000 * TOKENS / 735e12;

static double open_of(int16_t unit, PpSchedule schedule, int stages, bool beside_forward) {
    const ClusterProfile profile = machine_h100();
    const Target target = {.group_rule = GROUPS_OF_STAGES, .runtime.gathers_beside_forward = beside_forward};
    const CostModel model = {.profile = &profile, .target = &target};
    const StepProgram program = {.model.experts = {.count = EXPERTS, .active = ACTIVE},
                                 .target = &target,
                                 .plan = {.mesh = {SIZES(1, 16, 1, 1)},
                                          .seq = TOKENS,
                                          .micro_batch = 1,
                                          .grad_accum = 2 * STAGES,
                                          .pp_rounds = 1,
                                          .zero = 1,
                                          .precision = DTYPE_BF16,
                                          .pp_schedule = schedule,
                                          .virtual_stages = CHUNKS}};
    StepProgram staged = program;
    staged.plan.mesh.size[AXIS_PP] = stages;
    staged.plan.mesh.size[AXIS_EP] = unit == UNIT_EXPERTS ? EP : 1;
    const Task gather = {.kind = TASK_ALL_GATHER,
                         .lane = LANE_AG,
                         .phase = PHASE_OPTIMIZER,
                         .unit = unit,
                         .dtype = DTYPE_BF16,
                         .payload_bytes = 2 * layer_parameters};
    return gather_open_s(&model, &staged, &gather, gather_s);
}

static double open_s(PpSchedule schedule, int stages, bool beside_forward) {
    return open_of(UNIT_LAYER, schedule, stages, beside_forward);
}

Test(gathers, without_overlap_all_of_a_gather_is_in_the_open) {
    cr_expect_eq(open_s(PP_1F1B, 1, false), gather_s);
}

// 5 ms less the 1.11 ms of a micro-step.
Test(gathers, one_micro_step_hides_the_gather_of_a_layer) {
    cr_expect_float_eq(open_s(PP_1F1B, 1, true), gather_s - micro_step_s, 1e-9);
    cr_expect_float_eq(open_s(PP_1F1B, STAGES, true), gather_s - micro_step_s, 1e-9);
}

// The first of three chunks as above; four micro-steps, 4.46 ms, hide each of the others'.
Test(gathers, a_group_of_micro_steps_hides_the_gathers_of_the_next_chunk) {
    const double first = gather_s - micro_step_s, later = gather_s - STAGES * micro_step_s;
    cr_expect_float_eq(open_s(PP_INTERLEAVED, STAGES, true), (first + 2 * later) / CHUNKS, 1e-9);
}

// Each of a rank's 8 experts has an eighth of four ranks' 16,384 tokens: half a micro-step hides them.
Test(gathers, what_experts_compute_hides_the_gather_of_experts) {
    cr_expect_float_eq(open_of(UNIT_EXPERTS, PP_1F1B, 1, true), gather_s - micro_step_s * ACTIVE * EP / EXPERTS, 1e-9);
    cr_expect_eq(open_of(UNIT_EXPERTS, PP_1F1B, 1, false), gather_s);
}

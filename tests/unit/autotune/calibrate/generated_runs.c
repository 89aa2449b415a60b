// The truth is applied by the table's own functions: the test is whether the fit finds it, not what a factor means.

#include "tests/unit/autotune/calibrate/generated_runs.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/calibrate/calibrate_internal.h"
#include "tests/support/seed.h"
#include "tests/support/sizes.h"
#include "tests/support/splitmix.h"

static const Mesh meshes[] = {
    {.size = SIZES(1, 1, 1, 1)}, {.size = SIZES(1, 2, 1, 1)}, {.size = SIZES(1, 1, 1, 2)},
    {.size = SIZES(1, 1, 2, 1)}, {.size = SIZES(2, 1, 1, 1)}, {.size = SIZES(1, 4, 1, 1)},
    {.size = SIZES(1, 2, 1, 2)}, {.size = SIZES(1, 1, 1, 4)}, {.size = SIZES(2, 2, 1, 1)},
};
enum { MESHES = sizeof meshes / sizeof meshes[0] };

static TrainPlan plan_of(const Generated *generated, const Mesh *mesh, bool large) {
    const bool cpu = generated->base.accelerator.device_class == DEVICE_CLASS_CPU;
    TrainPlan plan;
    memset(&plan, 0, sizeof plan);
    plan.mesh = *mesh;
    plan.seq = cpu ? (large ? 512 : 128) : 2048;
    plan.micro_batch = large ? 4 : 1;
    plan.grad_accum = 1;
    plan.zero = target_default_zero(generated->target, mesh);
    plan.precision = cpu ? DTYPE_FP32 : DTYPE_BF16;
    plan.attention = generated->target->default_attention;
    plan.fused = generated->target->default_fused;
    plan.cp_rotate = target_default_rotate(generated->target);
    plan_canonical(&plan);
    return plan;
}

void generated_begin(Generated *generated, const char *target, Arena *arena) {
    Error error = {0};
    const bool executor = strcmp(target, "ndtune") == 0;
    *generated = (Generated){.arena = arena};
    cr_assert_eq(model_find(executor ? "tiny" : "llama-3.2-1b", arena, &generated->model, &error), STATUS_OK, "%s",
                 error.message);
    cr_assert_eq(cluster_find(executor ? "local-cpu" : "dgx-h100", arena, &generated->base, &error), STATUS_OK, "%s",
                 error.message);
    cr_assert_eq(target_find(target, &generated->target, &error), STATUS_OK, "%s", error.message);
    for (int i = 0; i < GENERATED_SHAPES; i++) {
        generated->cases[i] = (CalibrationCase){.model = &generated->model,
                                                .cluster = &generated->base,
                                                .target = generated->target,
                                                .runner = generated->target,
                                                .plan = plan_of(generated, &meshes[i % MESHES], i >= MESHES),
                                                .serial_lanes = executor};
    }
}

// Logs of what a run of the case would be observed by.
static void observe(const Generated *generated, const CalibrationCase *what, const Truth *truth, int truths,
                    double logs[OBSERVE_COUNT]) {
    ClusterProfile cluster = generated->base;
    Target target = *what->target;
    int count = 0;
    const CalibrationParameter *rows = calibration_parameters(&count);
    for (int t = 0; t < truths; t++) {
        for (int i = 0; i < count; i++) {
            if (strcmp(rows[i].name, truth[t].name) == 0) {
                rows[i].scale(exp(truth[t].log_factor),
                              &(CalibrationScaled){&cluster, &target.runtime, generated->arena});
            }
        }
    }
    ShapeData shape = {.what = *what};
    shape.what.cluster = &cluster;
    shape.what.target = shape.what.runner = &target;
    static const CalibrationPosterior nothing = {0};  // no coordinates: the case unchanged
    const double theta[CALIBRATION_MAX] = {0};
    Arena lowered = {0}, scratch = {0};
    Error error = {0};
    cr_assert_eq(step_lower(what->model, &what->plan, &target, &lowered, &shape.program, &error), STATUS_OK, "%s",
                 error.message);
    cr_assert_eq(theta_predict_shape(&nothing, &shape, theta, &scratch, logs, &error), STATUS_OK, "%s", error.message);
    arena_free(&lowered);
    arena_free(&scratch);
}

double generated_step_s(const Generated *generated, const CalibrationCase *what, const Truth *truth, int truths) {
    double logs[OBSERVE_COUNT];
    observe(generated, what, truth, truths, logs);
    return exp(logs[OBSERVE_STEP]);
}

void generated_spans(Generated *generated, const Truth *truth, int truths) {
    for (int i = 0; i < generated->count; i++) {
        double logs[OBSERVE_COUNT];
        observe(generated, &generated->samples[i].what, truth, truths, logs);
        for (int kind = 0; kind < SPAN_KIND_COUNT; kind++) {
            generated->samples[i].span_s[kind] = exp(logs[OBSERVE_SPANS + kind]);
        }
    }
}

void generated_runs(Generated *generated, const Truth *truth, int truths, int repeats, double misfit_sd,
                    double noise_sd, uint64_t *seed) {
    generated->count = 0;
    for (int s = 0; s < GENERATED_SHAPES; s++) {
        const double step_s =
            generated_step_s(generated, &generated->cases[s], truth, truths) * exp(misfit_sd * generated_normal(seed));
        for (int repeat = 0; repeat < repeats; repeat++) {
            generated->samples[generated->count++] =
                (CalibrationSample){.what = generated->cases[s],
                                    .id = arena_format(generated->arena, "run %d.%d", s, repeat),
                                    .set = "generated",
                                    .step_s = step_s * exp(noise_sd * generated_normal(seed))};
        }
    }
}

CalibrationInput generated_input(const Generated *generated) {
    return (CalibrationInput){.base = &generated->base, .samples = generated->samples, .count = generated->count};
}

int generated_coordinate(const CalibrationPosterior *posterior, const char *name) {
    for (int i = 0; i < posterior->count; i++) {
        if (strcmp(posterior->at[i].parameter->name, name) == 0) {
            return i;
        }
    }
    cr_assert_fail("no coordinate %s", name);
    return 0;
}

double generated_uniform(uint64_t *seed) {
    return (double)(splitmix_next(seed) >> 11) * 0x1p-53;
}

double generated_normal(uint64_t *seed) {  // Box and Muller
    const double radius = sqrt(-2 * log(1 - generated_uniform(seed)));
    return radius * cos(2 * 3.14159265358979323846 * generated_uniform(seed));
}

uint64_t generated_seed(void) {
    return seed_of_run("runs", 20261120);
}

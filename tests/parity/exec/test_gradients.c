// The gradient that the interpreter computes is the derivative of the loss that it computes: one rank, 2 layers, hidden
// 16, every parameter slice. With beta1 = 0 and lr = 0 AdamW leaves the parameters alone and the first moment is clip
// scale * gradient. A slice is moved along its own gradient direction u, where the derivative is |g|: central
// difference, step h. Tolerance: the loss is an fp32 sum (relative 1e-7 of about 3, so 6e-7 / 2h = 2e-5 for h = 0.015,
// against |g| of 1e-2 to 1), and the third derivative adds h^2/6: 1e-4 + 1 % of |g| holds both and is far below any
// wrong factor or missing term.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "exec/worker/session.h"
#include "tests/parity/exec/exec_families.h"
#include "tests/support/session_slot.h"
#include "tests/support/sizes.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(gradients, .fini = clean);

static const double STEP = 0.015;

static RunRequest request_of(const char *type, Recompute recompute) {
    const ModelSpec sizes = {.name = "test",
                             .layers = 2,
                             .hidden = 16,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_dim = 8,
                             .ffn = 24,
                             .vocab = 20,
                             .max_seq = 32,
                             .rope_theta = 10000,
                             .norm_eps = 1e-5,
                             .source = "tests"};
    RunRequest request = {.model = exec_family(sizes, type),
                          .plan = {.mesh = {SIZES(1, 1, 1, 1)},
                                   .seq = 12,
                                   .micro_batch = 2,
                                   .grad_accum = 2,
                                   .recompute = recompute,
                                   .precision = DTYPE_FP32},
                          .options = run_options_default(),
                          .segment_fd = -1};
    Error error = {0};
    request.options.lr = 0;
    request.options.beta1 = 0;
    request.options.threads = 1;
    cr_assert(target_find("ndtune", &request.target, &error) == STATUS_OK);
    plan_canonical(&request.plan);
    StepProgram program;
    cr_assert(step_lower(&request.model, &request.plan, request.target, &arena, &program, &error) == STATUS_OK, "%s",
              error.message);
    request.template_hash = step_template_hash(&program);
    return request;
}

// Always the same step's data: the session counts steps, the test sets it back.
static double loss_of(Session *session) {
    StepReport report;
    Error error = {0};
    session->step = 0;
    cr_assert(session_step(session, &report, &error) == STATUS_OK, "%s", error.message);
    return report.loss;
}

static float *slice_of(Session *session, int32_t buffer, int instance, const ParamSlice *slice) {
    return (float *)session_slot(session, buffer, instance) + slice->offset_elements;
}

typedef struct Probe {
    Session *session;
    const Unit *unit;
    const ParamSlice *slice;
    int instance;
    double clip_scale;
    double gradient[1024];  // direction after normalisation
    int64_t elements;
} Probe;

static double normalise(Probe *probe) {
    const float *moment = slice_of(probe->session, probe->unit->moment1, probe->instance, probe->slice);
    double square = 0;
    for (int64_t i = 0; i < probe->elements; i++) {
        probe->gradient[i] = moment[i] / probe->clip_scale;
        square += probe->gradient[i] * probe->gradient[i];
    }
    for (int64_t i = 0; i < probe->elements; i++) {
        probe->gradient[i] /= sqrt(square);
    }
    return sqrt(square);
}

static double loss_moved(Probe *probe, double step) {
    float *master = slice_of(probe->session, probe->unit->master, probe->instance, probe->slice);
    float before[1024];
    for (int64_t i = 0; i < probe->elements; i++) {
        before[i] = master[i];
        master[i] += (float)(step * probe->gradient[i]);
    }
    const double loss = loss_of(probe->session);
    for (int64_t i = 0; i < probe->elements; i++) {
        master[i] = before[i];
    }
    return loss;
}

static void check_slice(Session *session, const Unit *unit, const ParamSlice *slice, int instance) {
    Probe probe = {.session = session, .unit = unit, .slice = slice, .instance = instance};
    probe.elements = slice->local_rows * slice->local_cols;
    cr_assert(probe.elements <= 1024);
    loss_of(session);
    probe.clip_scale = ((const float *)session_slot(session, session->program.norm_buffer, 0))[0];
    const double norm = normalise(&probe);
    const double slope = (loss_moved(&probe, STEP) - loss_moved(&probe, -STEP)) / (2 * STEP);
    const char *type = session->program.model.type;
    cr_expect(fabs(slope - norm) <= 1e-4 + 0.01 * norm, "%s %s %d: gradient %.6f, difference %.6f", type, slice->name,
              instance, norm, slope);
    const bool void_bias = strcmp(slice->name, "bk") == 0 && session->program.model.position != POSITION_ROTARY;
    if (void_bias) {  // q . bk is the same for every key of a query: the softmax does not see it
        cr_expect(norm < 1e-6, "%s %d: gradient %g", slice->name, instance, norm);
        return;
    }
    cr_expect(norm > 1e-3, "%s %s %d: gradient %.6f is too small to show anything", type, slice->name, instance, norm);
}

// Initial weights of 0.02 suit wide models; at hidden 16 they leave activations so small that the norms bend within a
// step of 0.015. About 1/sqrt(16) for matrices and 1 for embeddings keep everything smooth on that scale.
static void enlarge(Session *session) {
    for (int32_t u = 0; u < session->program.unit_count; u++) {
        const Unit *unit = &session->program.units[u];
        for (int32_t s = unit->first_slice; s < unit->first_slice + unit->slice_count; s++) {
            const ParamSlice *slice = &session->program.slices[s];
            const float factor = slice->init_std == 0 ? 1 : strcmp(slice->name, "embed") == 0 ? 50 : 12;
            for (int instance = 0; instance < unit->instances; instance++) {
                float *x = slice_of(session, unit->master, instance, slice);
                for (int64_t i = 0; i < slice->local_rows * slice->local_cols; i++) {
                    x[i] *= factor;
                }
            }
        }
    }
}

static void check_all(const char *type, Recompute recompute) {
    const RunRequest request = request_of(type, recompute);
    Session session;
    Error error = {0};
    cr_assert(session_join(&request, &(RankPlace){0}, &arena, &session, &error) == STATUS_OK, "%s", error.message);
    enlarge(&session);
    for (int32_t u = 0; u < session.program.unit_count; u++) {
        const Unit *unit = &session.program.units[u];
        for (int32_t s = 0; s < unit->slice_count; s++) {
            for (int instance = 0; instance < unit->instances; instance++) {
                check_slice(&session, unit, &session.program.slices[unit->first_slice + s], instance);
            }
        }
    }
    session_close(&session);
}

Test(gradients, agree_with_central_differences_of_the_loss_for_every_model_type) {
    for (int i = 0; i < EXEC_FAMILIES; i++) {
        check_all(exec_families[i], RECOMPUTE_NONE);
    }
}

Test(gradients, agree_with_central_differences_when_recomputing) {
    for (int i = 0; i < EXEC_FAMILIES; i++) {
        check_all(exec_families[i], RECOMPUTE_FULL);
    }
}

// One rank against PyTorch: Hugging Face models of every type, started from the same weights and fed the same tokens
// (make_fixtures.py wrote the figures; it computes in float64). Step 1: logits, loss, and every gradient, which AdamW
// leaves in the first moments when beta1 = 0. Then ten AdamW steps with decay and clipping: losses, gradient norms,
// weights. A tensor's error is measured against its own norm per element, so large values cannot mask small ones.
// Adapters are those of peft, with both matrices of one initialised as normal weights. A key bias without rotary
// positions has no gradient (the softmax cancels it): only its size is checked.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/worker/interpreter.h"
#include "exec/worker/session.h"
#include "kernels/kernels.h"
#include "tests/parity/exec/exec_families.h"
#include "tests/support/session_slot.h"
#include "tests/support/sizes.h"

enum { SAMPLES = 6, STEPS = 10, MOST_LINES = 128, NAME_BYTES = 32 };

static const float SCALE = 8;  // of every normal weight, in make_fixtures.py too

// Seen (Zen 5, AVX-512): losses and norms 4e-7, logits 9e-7, gradients 4e-6, weights 1e-5 (a bias of qwen2, which
// starts at zero).
static const double LOSS = 2e-6, LOGITS = 1e-5, GRADIENT = 1e-5, WEIGHT = 5e-5;

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(pytorch, .fini = clean);

// ---------------------------------------------------------------------------------------------- fixtures

typedef struct Figures {
    char kind[NAME_BYTES], slice[NAME_BYTES];
    int instance;
    double norm, sample[SAMPLES];
} Figures;

typedef struct Fixture {
    Figures lines[MOST_LINES];
    int count;
    double loss[STEPS], grad_norm[STEPS], logits[1 + SAMPLES];
} Fixture;

static int read_numbers(const char *text, int count, double *numbers) {
    int read = 0;
    for (char *end; read < count; read++, text = end) {
        numbers[read] = strtod(text, &end);
        if (end == text) {
            break;
        }
    }
    return read;
}

static bool read_line(const char *text, Fixture *fixture) {
    if (text[0] == '#') {
        return true;
    }
    if (strncmp(text, "loss ", 5) == 0) {
        return read_numbers(text + 5, STEPS, fixture->loss) == STEPS;
    }
    if (strncmp(text, "grad_norm ", 10) == 0) {
        return read_numbers(text + 10, STEPS, fixture->grad_norm) == STEPS;
    }
    if (strncmp(text, "logits ", 7) == 0) {
        return read_numbers(text + 7, 1 + SAMPLES, fixture->logits) == 1 + SAMPLES;
    }
    Figures *line = &fixture->lines[fixture->count++];
    double numbers[1 + SAMPLES];
    int used = 0;
    if (sscanf(text, "%31s %31s %d%n", line->kind, line->slice, &line->instance, &used) != 3 ||
        read_numbers(text + used, 1 + SAMPLES, numbers) != 1 + SAMPLES) {
        return false;
    }
    line->norm = numbers[0];
    memcpy(line->sample, numbers + 1, sizeof line->sample);
    return true;
}

static Fixture *fixture_of(const char *type) {
    Fixture *fixture = ARENA_NEW(&arena, Fixture);
    const char *path = arena_format(&arena, "%s/tests/parity/pytorch/%s.txt", NDTUNE_SOURCE_DIR, type);
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    char text[512];
    while (fgets(text, sizeof text, file)) {
        cr_assert(fixture->count < MOST_LINES && read_line(text, fixture), "%s: %s", path, text);
    }
    fclose(file);
    return fixture;
}

// ---------------------------------------------------------------------------------------------- runs

// Llamas with positions for longer sequences.
static const struct {
    const char *name;
    RopeScaling scaling;
} stretched[] = {{"llama_linear", {.factor = 4, .low = 1, .high = 2}}, {"llama_llama3", {8, 1, 4, 16}}};
enum { STRETCHED = sizeof stretched / sizeof stretched[0] };

// Adapters on every linear layer of a llama's blocks.
static const char *const ADAPTED = "llama_lora";
enum { ADAPTER_RANK = 4 };

static bool is_adapted(const char *type) {
    return strcmp(type, ADAPTED) == 0;
}

// Softmax over the choices, or over all experts; query and key norms in two of them; a gated shared expert; biases,
// clamps, sinks and a window in every other layer.
static const char *const routed[] = {"mixtral", "qwen3_moe", "olmoe", "qwen2_moe", "gpt_oss", "mixtral_balance"};
enum { ROUTED = sizeof routed / sizeof routed[0] };

static const char *const BALANCED = "mixtral_balance", *const LATENT = "deepseek_v3",
                         *const FIRST_DENSE = "deepseek_v3_dense", *const GEMMA2 = "gemma2",
                         *const GEMMA3 = "gemma3_text";

static const char *const SLIDING = "mistral_window";
enum { WINDOW = 7 };

static ModelSpec model_of(const char *type) {
    ModelSpec sizes = {.name = "test",
                       .layers = 2,
                       .hidden = 32,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_dim = 8,
                       .ffn = 128,
                       .vocab = 96,
                       .max_seq = 32,
                       .rope_theta = 10000,
                       .norm_eps = 1e-5,
                       .source = "tests"};
    for (int i = 0; i < STRETCHED; i++) {
        if (strcmp(stretched[i].name, type) == 0) {
            sizes.rope_scaling = stretched[i].scaling;
            type = "llama";
        }
    }
    const bool oss = strcmp(type, "gpt_oss") == 0, sliding = strcmp(type, SLIDING) == 0;
    sizes.window = oss || sliding ? WINDOW : 0;
    sizes.window_every = oss ? 2 : 0;
    for (int i = 0; i < ROUTED; i++) {
        if (strcmp(routed[i], type) == 0) {
            sizes.experts = (Experts){
                .count = 4, .active = 2, .ffn = sizes.ffn, .unscaled = strcmp(type, "olmoe") == 0, .bias = oss};
            sizes.experts.router_bias = oss;
            sizes.experts.shared_gate = strcmp(type, "qwen2_moe") == 0;
            sizes.experts.shared_ffn = sizes.experts.shared_gate ? 64 : 0;
            sizes.experts.unscaled = sizes.experts.unscaled || sizes.experts.shared_gate;
        }
    }
    const bool balanced = strcmp(type, BALANCED) == 0;
    sizes.experts.balance = balanced ? 0.1 : 0;
    return exec_family(sizes, is_adapted(type) ? "llama" : sliding ? "mistral" : balanced ? "mixtral" : type);
}

// Partially rotated heads and values of a different width; experts in groups, corrected scores.
static ModelSpec latent_model(void) {
    ModelSpec model = model_of(LATENT);
    model.latent = (LatentAttention){.q_rank = 24, .kv_rank = 16, .rope = 8, .value = 8};
    model.head_dim = 16;
    model.kv_heads = model.heads;
    model.rotary_dims = model.latent.rope;
    model.experts = (Experts){.count = 8, .active = 2, .ffn = 64, .shared_ffn = 64, .sigmoid = {4, 2, 2.5}};
    return model;
}

static ModelSpec first_dense_model(void) {
    static const LayerRun runs[] = {{LAYER_DENSE, 0, 1}, {LAYER_EXPERTS, 1, 1}};
    ModelSpec model = latent_model();
    model.runs = runs;
    model.run_count = 2;
    return model;
}

// Norms on both sides of each half and of queries and keys; the first layer slides, by angles of its own, the second
// is scaled.
static ModelSpec gemma3_model(void) {
    ModelSpec model = model_of(GEMMA3);
    model.head_dim = 16;
    model.tied_embeddings = true;
    model.window = WINDOW;
    model.window_every = 2;
    model.rope_local = 1000;
    model.rope_scaling = (RopeScaling){.factor = 4, .low = 1, .high = 2};
    return model;
}

// Norms on both sides, the first layer slides; caps of the size of scores and logits.
static ModelSpec gemma2_model(void) {
    ModelSpec model = model_of(GEMMA2);
    model.head_dim = 16;
    model.tied_embeddings = true;
    model.window = WINDOW;
    model.window_every = 2;
    model.attention_cap = 1.5;
    model.logit_cap = 4;
    return model;
}

static RunRequest request_of(const char *type, bool gradients) {
    RunRequest request = {.model = strcmp(type, FIRST_DENSE) == 0 ? first_dense_model()
                                   : strcmp(type, GEMMA2) == 0    ? gemma2_model()
                                   : strcmp(type, GEMMA3) == 0    ? gemma3_model()
                                   : strcmp(type, LATENT) == 0    ? latent_model()
                                                                  : model_of(type),
                          .plan = {.mesh = {SIZES(1, 1, 1, 1)},
                                   .seq = 24,
                                   .micro_batch = 2,
                                   .grad_accum = 1,
                                   .precision = DTYPE_FP32,
                                   .finetune = is_adapted(type) ? FINETUNE_LORA : FINETUNE_FULL,
                                   .lora_rank = is_adapted(type) ? ADAPTER_RANK : 0},
                          .options = run_options_default(),
                          .segment_fd = -1};
    Error error = {0};
    request.options.seed = 7;
    request.options.threads = 1;
    request.options.lr = gradients ? 0 : 1e-3;
    request.options.beta1 = gradients ? 0 : 0.9;
    request.options.clip = gradients ? 1e30 : 1;
    request.options.weight_decay = gradients ? 0 : 0.1;
    cr_assert(target_find("ndtune", &request.target, &error) == STATUS_OK);
    plan_canonical(&request.plan);
    StepProgram program;
    cr_assert(step_lower(&request.model, &request.plan, request.target, &arena, &program, &error) == STATUS_OK, "%s",
              error.message);
    request.template_hash = step_template_hash(&program);
    return request;
}

static float *slice_of(Session *session, int32_t buffer, int instance, const ParamSlice *slice) {
    return (float *)session_slot(session, buffer, instance) + slice->offset_elements;
}

// A buffer to transformers: nothing moves it.
static bool is_correction(const ParamSlice *slice) {
    return strcmp(slice->name, "router_correction") == 0;
}

// What begins as zeros gets the numbers that a normal weight in its place would have.
static void make_normal(Session *session, const ParamSlice *slice, int layer, float *x) {
    enum { PART_SHIFT = 56, TENSOR_SHIFT = 32 };  // exec/device/initial.c
    const KernelNormal numbers = {.key = (uint64_t)session->request->options.seed,
                                  .stream = (uint64_t)slice->part << PART_SHIFT |
                                            (uint64_t)slice->tensor << TENSOR_SHIFT | (uint32_t)layer,
                                  .scale = 0.02F / 65536.0F};
    kernel_normal(&numbers, slice->local_rows * slice->local_cols, x);
}

static void scale_weights(Session *session) {
    for (int32_t u = 0; u < session->program.unit_count; u++) {
        const Unit *unit = &session->program.units[u];
        for (int32_t i = 0; i < unit->slice_count * unit->instances; i++) {
            const ParamSlice *slice = &session->program.slices[unit->first_slice + i % unit->slice_count];
            float *x = slice_of(session, unit->master, i / unit->slice_count, slice);
            const bool zeros = (u == UNIT_ADAPTERS && slice->init_std == 0) || is_correction(slice);
            if (zeros) {
                make_normal(session, slice, i / unit->slice_count, x);
            }
            for (int64_t k = 0; (zeros || slice->init_std > 0) && k < slice->local_rows * slice->local_cols; k++) {
                x[k] *= SCALE;
            }
        }
    }
}

static void open_scaled(const RunRequest *request, Session *session) {
    Error error = {0};
    cr_assert(session_join(request, &(RankPlace){0}, &arena, session, &error) == STATUS_OK, "%s", error.message);
    scale_weights(session);
}

// ---------------------------------------------------------------------------------------------- comparison

// Largest difference of norm and samples, in units of the tensor's root mean square.
static double off_by(const float *x, int64_t count, const double *norm_and_samples) {
    double square = 0, worst = 0;
    for (int64_t i = 0; i < count; i++) {
        square += (double)x[i] * x[i];
    }
    const double norm = norm_and_samples[0], scale = norm / sqrt((double)count);
    for (int i = 0; i < SAMPLES; i++) {
        const double got = x[(2 * i + 1) * count / (2 * SAMPLES)];
        worst = fmax(worst, fabs(got - norm_and_samples[1 + i]) / scale);
    }
    return fmax(worst, fabs(sqrt(square) - norm) / norm);
}

// A key bias shifts every key's score equally where keys are not rotated: nowhere, or not in the whole head.
static bool without_gradient(const ModelSpec *model, const ParamSlice *slice, bool partly) {
    const bool turns = model->position == POSITION_ROTARY, part = turns && model->rotary_dims > 0;
    return strcmp(slice->name, "bk") == 0 && (!turns || (partly && part));
}

static const Figures *find(const Fixture *fixture, const char *kind, const char *slice, int instance) {
    for (int i = 0; i < fixture->count; i++) {
        const Figures *line = &fixture->lines[i];
        if (strcmp(line->kind, kind) == 0 && strcmp(line->slice, slice) == 0 && line->instance == instance) {
            return line;
        }
    }
    cr_assert_fail("no %s of %s %d", kind, slice, instance);
    return NULL;
}

typedef struct Comparison {
    Session *session;
    const Fixture *fixture;
    const char *kind;  // "gradient" "weight"
    double bound, zero_bound;
    double worst;
    int compared;
} Comparison;

// A layer has room for what layers of the other kind have: its gradient is zero.
static bool is_of_others(const ModelSpec *model, const ParamSlice *slice, int layer) {
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        if (layer >= run.first && layer < run.first + run.count) {
            return slice->only > 0 && slice->only != 1 + (int)run.kind;
        }
    }
    return false;
}

static void expect_zeros(const Comparison *c, const Unit *unit, const ParamSlice *slice, int instance) {
    const float *x = slice_of(c->session, unit->moment1, instance, slice);
    for (int64_t i = 0; i < slice->local_rows * slice->local_cols; i++) {
        cr_expect(x[i] == 0, "a gradient of %s: %g", slice->name, (double)x[i]);
    }
}

static void compare_slice(Comparison *c, const Unit *unit, const ParamSlice *slice, int instance) {
    if (is_correction(slice) || is_of_others(&c->session->program.model, slice, instance)) {
        expect_zeros(c, unit, slice, instance);
        return;
    }
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s", slice->name);
    for (char *at = name; (at = strchr(at, ' ')); *at = '_') {  // "wq adapter a"
    }
    const Figures *want = find(c->fixture, c->kind, name, instance);
    const bool weight = strcmp(c->kind, "weight") == 0;
    const int32_t buffer = weight ? unit->master : unit->moment1;
    const float *got = slice_of(c->session, buffer, instance, slice);
    const int64_t count = slice->local_rows * slice->local_cols;
    const ModelSpec *model = &c->session->program.model;
    c->compared++;
    if (without_gradient(model, slice, weight)) {
        for (int64_t i = 0; i < count; i++) {
            cr_expect(fabs((double)got[i]) <= c->zero_bound, "%s: %s of %s is %g", model->type, c->kind, slice->name,
                      (double)got[i]);
        }
        return;
    }
    double numbers[1 + SAMPLES] = {want->norm};
    memcpy(numbers + 1, want->sample, sizeof want->sample);
    const double off = off_by(got, count, numbers);
    c->worst = fmax(c->worst, off);
    cr_expect(off <= c->bound, "%s: %s of %s %d is off by %.1e", model->type, c->kind, slice->name, instance, off);
}

static double compare_slices(Comparison *c) {
    const StepProgram *program = &c->session->program;
    for (int32_t u = 0; u < program->unit_count; u++) {
        const Unit *unit = &program->units[u];
        for (int32_t i = 0; unit->trainable && i < unit->slice_count * unit->instances; i++) {
            compare_slice(c, unit, &program->slices[unit->first_slice + i % unit->slice_count], i / unit->slice_count);
        }
    }
    cr_expect_eq(2 * c->compared, c->fixture->count, "%d tensors, %d lines", c->compared, c->fixture->count);
    return c->worst;
}

// Runs step 1 up to the loss and returns what the head made, which the loss caps.
static float *logits_of(Session *session, int64_t *count) {
    StepCursor cursor = step_cursor_begin(&session->program);
    StepInstance instance;
    Error error = {0};
    session->devices->begin_step(session->device, 0, false);
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &session->program.tasks[instance.task];
        if (task->kind == TASK_LOSS) {
            *count = task->rows * task->cols;
            return session_slot(session, task_operand(&session->program, task, AT_LOSS_LOGITS)->ref.buffer, 0);
        }
        cr_assert(interpreter_run_instance(session, &instance, 0, &error) == STATUS_OK, "%s", error.message);
    }
    cr_assert_fail("no loss");
    return NULL;
}

static void check_first_step(const char *type, const Fixture *fixture) {
    const RunRequest request = request_of(type, true);
    Session session;
    StepReport report;
    Error error = {0};
    int64_t count = 0;
    open_scaled(&request, &session);
    float *logits = logits_of(&session, &count);
    if (request.model.logit_cap > 0) {
        kernel_loss_cap(count, (float)request.model.logit_cap, logits);
    }
    const double logits_off = off_by(logits, count, fixture->logits);
    cr_expect(logits_off <= LOGITS, "%s: logits are off by %.1e", type, logits_off);
    cr_assert(session_step(&session, &report, &error) == STATUS_OK, "%s", error.message);
    cr_expect(fabs(report.loss / fixture->loss[0] - 1) <= LOSS, "%s: loss %.7f, not %.7f", type, report.loss,
              fixture->loss[0]);
    Comparison gradients = {
        .session = &session, .fixture = fixture, .kind = "gradient", .bound = GRADIENT, .zero_bound = 1e-7};
    cr_log_warn("%s: logits %.1e, gradients %.1e", type, logits_off, compare_slices(&gradients));
    session_close(&session);
}

static void check_training(const char *type, const Fixture *fixture) {
    const RunRequest request = request_of(type, false);
    Session session;
    double worst = 0;
    open_scaled(&request, &session);
    for (int step = 0; step < STEPS; step++) {
        StepReport report;
        Error error = {0};
        cr_assert(session_step(&session, &report, &error) == STATUS_OK, "%s", error.message);
        const double loss_off = fabs(report.loss / fixture->loss[step] - 1);
        const double norm_off = fabs(report.grad_norm / fixture->grad_norm[step] - 1);
        worst = fmax(worst, fmax(loss_off, norm_off));
        cr_expect(loss_off <= LOSS && norm_off <= LOSS, "%s, step %d: loss off by %.1e, norm by %.1e", type, step + 1,
                  loss_off, norm_off);
    }
    // A weight without gradient moves by rounding noise, at most the learning rate a step.
    Comparison weights = {
        .session = &session, .fixture = fixture, .kind = "weight", .bound = WEIGHT, .zero_bound = STEPS * 1e-3};
    cr_log_warn("%s: losses and norms %.1e, weights %.1e", type, worst, compare_slices(&weights));
    session_close(&session);
}

Test(pytorch, first_step_has_its_logits_loss_and_every_gradient) {
    for (int i = 0; i < EXEC_FAMILIES; i++) {
        check_first_step(exec_families[i], fixture_of(exec_families[i]));
    }
}

Test(pytorch, ten_adamw_steps_have_its_losses_norms_and_weights) {
    for (int i = 0; i < EXEC_FAMILIES; i++) {
        check_training(exec_families[i], fixture_of(exec_families[i]));
    }
}

Test(pytorch, stretched_positions_train_as_its_own) {
    for (int i = 0; i < STRETCHED; i++) {
        check_first_step(stretched[i].name, fixture_of(stretched[i].name));
        check_training(stretched[i].name, fixture_of(stretched[i].name));
    }
}

Test(pytorch, layers_of_experts_train_as_those_of_transformers) {
    for (int i = 0; i < ROUTED; i++) {
        check_first_step(routed[i], fixture_of(routed[i]));
        check_training(routed[i], fixture_of(routed[i]));
    }
}

Test(pytorch, latent_attention_and_a_router_of_sigmoids_train_as_those_of_transformers) {
    check_first_step(LATENT, fixture_of(LATENT));
    check_training(LATENT, fixture_of(LATENT));
}

Test(pytorch, a_dense_layer_in_front_of_those_of_experts_trains_as_its_own) {
    check_first_step(FIRST_DENSE, fixture_of(FIRST_DENSE));
    check_training(FIRST_DENSE, fixture_of(FIRST_DENSE));
}

Test(pytorch, a_sliding_window_trains_as_its_own) {
    check_first_step(SLIDING, fixture_of(SLIDING));
    check_training(SLIDING, fixture_of(SLIDING));
}

Test(pytorch, gemma_2_trains_as_its_own) {
    check_first_step(GEMMA2, fixture_of(GEMMA2));
    check_training(GEMMA2, fixture_of(GEMMA2));
}

Test(pytorch, gemma_3_trains_as_its_own) {
    check_first_step(GEMMA3, fixture_of(GEMMA3));
    check_training(GEMMA3, fixture_of(GEMMA3));
}

Test(pytorch, adapters_train_as_those_of_peft) {
    check_first_step(ADAPTED, fixture_of(ADAPTED));
    check_training(ADAPTED, fixture_of(ADAPTED));
}

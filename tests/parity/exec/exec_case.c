// Test model and batch are chosen so that all 35 shapes of worlds up to 8 are legal: heads, widths, vocabulary and
// sequence divide by 8 (the zigzag split by 16), the batch of 8 sequences by every dp_replicate * dp_shard.

#include "tests/parity/exec/exec_case.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ModelSpec case_model(void) {
    return (ModelSpec){.name = "test",
                       .layers = 2,
                       .hidden = 64,
                       .heads = 16,
                       .kv_heads = 8,
                       .head_dim = 8,
                       .ffn = 160,
                       .vocab = 256,
                       .max_seq = 256,
                       .rope_theta = 10000,
                       .norm_eps = 1e-5,
                       .source = "tests"};
}

RunOptions case_options(void) {
    RunOptions options = run_options_default();
    options.steps = CASE_STEPS;
    options.seed = 7;
    options.timeout_s = 120;  // of a machine that is busy with other things
    options.threads = 1;
    return options;
}

bool case_plan(const Mesh *mesh, int grad_accum, TrainPlan *plan) {
    const int parts = mesh->size[AXIS_DP_REPLICATE] * mesh->size[AXIS_DP_SHARD] * grad_accum;
    *plan = (TrainPlan){.mesh = *mesh,
                        .seq = CASE_SEQ,
                        .micro_batch = CASE_BATCH / parts,
                        .grad_accum = grad_accum,
                        .precision = DTYPE_FP32};
    return CASE_BATCH % parts == 0;
}

TrainPlan case_sharded_plan(Mesh mesh) {
    TrainPlan plan;
    case_plan(&mesh, 1, &plan);
    plan.zero = 3;
    plan_canonical(&plan);
    return plan;
}

RunRequest case_request(const TrainPlan *plan, const RunOptions *options) {
    RunRequest request = {.model = case_model(), .plan = *plan, .options = *options};
    Error error = {0};
    cr_assert(target_find("ndtune", &request.target, &error) == STATUS_OK, "%s", error.message);
    return request;
}

static const ExecOptions built = {.worker_path = NDTUNE_BIN_DIR "/ndtune-worker"};

RunResult case_run_keeping(RunRequest *request, const char **kept, Arena *arena, char **content, int64_t *bytes) {
    char path[] = "/tmp/ndtune-state-XXXXXX";
    const int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    *kept = path;
    const RunResult run = case_run_request(request, arena);
    *kept = NULL;
    FILE *file = fopen(path, "rb");
    cr_assert(file && fseek(file, 0, SEEK_END) == 0);
    *bytes = ftell(file);
    rewind(file);
    *content = ARENA_ARRAY(arena, char, *bytes);
    cr_assert_eq(fread(*content, 1, (size_t)*bytes, file), (size_t)*bytes);
    fclose(file);
    unlink(path);
    return run;
}

Status case_try(const TrainPlan *plan, const RunOptions *options, Arena *arena, RunResult *result, Error *error) {
    const RunRequest request = case_request(plan, options);
    return exec_run(&request, &built, arena, result, error);
}

RunResult case_run_request(const RunRequest *request, Arena *arena) {
    return case_run_by(built.worker_path, request, arena);
}

RunResult case_run_by(const char *worker, const RunRequest *request, Arena *arena) {
    const ExecOptions options = {.worker_path = worker};
    RunResult result;
    Error error = {0};
    char text[PLAN_TEXT_BYTES];
    const Status status = exec_run(request, &options, arena, &result, &error);
    cr_assert(status == STATUS_OK, "%s: %s", plan_text(&request->plan, text), error.message);
    return result;
}

RunResult case_run(const TrainPlan *plan, const RunOptions *options, Arena *arena) {
    const RunRequest request = case_request(plan, options);
    return case_run_request(&request, arena);
}

static double relative(double value, double reference) {
    return fabs(value - reference) / fabs(reference);
}

void case_expect_same(const RunRequest *request, const RunResult *run, const RunResult *reference, Deviation *worst) {
    const int last = run->steps - 1;
    const Deviation off = {.loss_first = relative(run->loss[0], reference->loss[0]),
                           .loss_last = relative(run->loss[last], reference->loss[last]),
                           .norm_first = relative(run->grad_norm[0], reference->grad_norm[0]),
                           .norm_last = relative(run->grad_norm[last], reference->grad_norm[last])};
    char plan[PLAN_TEXT_BYTES], words[PLAN_TEXT_BYTES + 64];
    snprintf(words, sizeof words, "%s@%s %s", request->target->name, request->target->version,
             plan_text(&request->plan, plan));
    cr_expect(strcmp(run->state, "ok") == 0, "%s: %s", words, run->state);  // fmax below passes over NAN
    cr_expect(off.loss_first <= 2e-6 && off.norm_first <= 2e-6, "%s: step 1 loss %.2e norm %.2e", words, off.loss_first,
              off.norm_first);
    const double grown = 1e-4 * run->steps / CASE_STEPS;
    cr_expect(off.loss_last <= grown && off.norm_last <= grown, "%s: step %d loss %.2e norm %.2e", words, run->steps,
              off.loss_last, off.norm_last);
    cr_expect(run->peak_bytes == run->planned_peak_bytes, "%s: peak %lld of %lld planned", words,
              (long long)run->peak_bytes, (long long)run->planned_peak_bytes);
    worst->loss_first = fmax(worst->loss_first, off.loss_first);
    worst->loss_last = fmax(worst->loss_last, off.loss_last);
    worst->norm_first = fmax(worst->norm_first, off.norm_first);
    worst->norm_last = fmax(worst->norm_last, off.norm_last);
}

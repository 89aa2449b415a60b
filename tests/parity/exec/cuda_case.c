#include "tests/parity/exec/cuda_case.h"

#include <criterion/criterion.h>
#include <math.h>

enum { BATCH = 4, SEQ = 16 };  // every fiber of the stand-in costs

ModelSpec cuda_case_model(void) {
    return (ModelSpec){.name = "test",
                       .layers = 2,
                       .hidden = 32,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_dim = 8,
                       .ffn = 48,
                       .vocab = 64,
                       .max_seq = 64,
                       .rope_theta = 10000,
                       .norm_eps = 1e-5,
                       .source = "tests"};
}

RunRequest cuda_case_request(const CudaCase *c, Dtype precision, const char *device) {
    Mesh mesh;
    Error error = {0};
    RunOptions options = case_options();
    cr_assert(mesh_parse(c->mesh, &mesh, &error) == STATUS_OK, "%s", error.message);
    TrainPlan plan = {.mesh = mesh,
                      .seq = SEQ,
                      .grad_accum = c->grad_accum,
                      .zero = c->zero,
                      .recompute = c->recompute,
                      .precision = precision};
    plan.micro_batch = BATCH / (mesh.size[AXIS_DP_REPLICATE] * mesh.size[AXIS_DP_SHARD] * c->grad_accum);
    plan_canonical(&plan);
    options.steps = CUDA_CASE_STEPS;
    options.device = device;
    options.poison = true;
    RunRequest request = case_request(&plan, &options);
    request.model = cuda_case_model();
    return request;
}

double case_off(double value, double reference) {
    return fabs(value - reference) / fabs(reference);
}

void cuda_case_step(RunRequest *request, Arena *arena, CudaAllowed allowed, const char *words) {
    request->options.steps = 1;
    request->options.device = "cuda";
    const RunResult cuda = case_run_by(CUDA_HOST_WORKER, request, arena);
    request->options.device = "cpu";
    request->plan.precision = DTYPE_FP32;
    const RunResult cpu = case_run_request(request, arena);
    cr_expect(case_off(cuda.loss[0], cpu.loss[0]) <= allowed.loss, "%s: loss %.9g, on the cpu %.9g", words,
              cuda.loss[0], cpu.loss[0]);
    cr_expect(case_off(cuda.grad_norm[0], cpu.grad_norm[0]) <= allowed.norm, "%s: norm %.9g, on the cpu %.9g", words,
              cuda.grad_norm[0], cpu.grad_norm[0]);
}

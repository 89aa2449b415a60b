#include "tests/parity/exec/pipeline_case.h"

#include <criterion/criterion.h>

enum { LAYERS = 8, SHAPES_MOST = 128, STEPS = 4, REFERENCES = 16 };

int pipeline_shapes(int world, Mesh *meshes, int capacity) {
    Mesh all[SHAPES_MOST];
    const int found = mesh_enumerate(world, AXES_FIRST | AXES_STAGE, all, SHAPES_MOST);
    int count = 0;
    cr_assert_leq(found, SHAPES_MOST);
    for (int i = 0; i < found; i++) {
        if (mesh_stages(&all[i]) > 1) {
            cr_assert_lt(count, capacity);
            meshes[count++] = all[i];
        }
    }
    return count;
}

// As mesh_case's families, but narrower: this tests which stage has which layer, and when.
static ModelSpec model_for(const Mesh *mesh) {
    const bool threes = mesh_world(mesh) % 3 == 0;
    ModelSpec model = case_model();
    model.layers = mesh_stages(mesh) > LAYERS ? mesh_stages(mesh) : LAYERS;
    model.hidden = 32;
    model.heads = threes ? 12 : 8;
    model.kv_heads = threes ? 12 : 8;
    model.ffn = threes ? 72 : 64;
    model.vocab = threes ? 264 : 256;
    return model;
}

bool pipeline_request(const Mesh *mesh, const PipelineChoice *choice, RunRequest *request) {
    const int batch = mesh_world(mesh) % 3 == 0 ? 12 : mesh_world(mesh) > 8 ? 16 : 8;
    TrainPlan plan = {.mesh = *mesh,
                      .seq = mesh_world(mesh) % 3 == 0 ? 24 : 32,
                      .micro_batch = 1,
                      .grad_accum = batch / mesh_group_size(mesh, AXES_BATCH),
                      .precision = DTYPE_FP32,
                      .zero = choice->zero,
                      .reshard = choice->reshard,
                      .recompute = choice->recompute,
                      .pp_schedule = choice->schedule,
                      .pp_order = choice->order,
                      .virtual_stages = choice->virtual_stages,
                      .pp_split = choice->split,
                      .pp_first = choice->first,
                      .pp_last = choice->last};
    Arena arena = {0};
    RunOptions options = case_options();
    const char *reason = NULL;
    options.steps = STEPS;
    plan_canonical(&plan);
    *request = case_request(&plan, &options);
    request->model = model_for(mesh);
    target_check(request->target, &request->model, &plan, &arena, &reason);
    const bool legal = reason == NULL;
    arena_free(&arena);
    return legal;
}

PipelineChoice pipeline_spread(PpSchedule schedule, int index) {
    return (PipelineChoice){.schedule = schedule,
                            .virtual_stages = 2,
                            .zero = index % 4,
                            .reshard = index % 3 ? RESHARD_ALWAYS : RESHARD_NEVER,
                            .recompute = index / 2 % 2 ? RECOMPUTE_FULL : RECOMPUTE_NONE};
}

RunRequest pipeline_one_rank(const RunRequest *request) {
    RunRequest one = *request;
    one.plan = (TrainPlan){.mesh = mesh_of_one(),
                           .seq = request->plan.seq,
                           .micro_batch = 1,
                           .grad_accum = (int)plan_global_batch(&request->plan),
                           .precision = DTYPE_FP32};
    plan_canonical(&one.plan);
    return one;
}

// A reference that was run before for the same model and batch: shapes of one world mostly share theirs.
typedef struct Reference {
    const Target *target;
    int64_t vocab;
    int layers, ffn, seq, batch;
    bool tied;
    RunResult result;
} Reference;

static const RunResult *reference_of(const RunRequest *request) {
    static Arena kept;  // until the process ends: one test
    static Reference known[REFERENCES];
    static int count;
    const RunRequest one = pipeline_one_rank(request);
    const Reference asked = {.target = one.target,
                             .vocab = one.model.vocab,
                             .layers = one.model.layers,
                             .ffn = (int)one.model.ffn,
                             .seq = one.plan.seq,
                             .batch = one.plan.grad_accum,
                             .tied = one.model.tied_embeddings};
    for (int i = 0; i < count; i++) {
        const Reference *old = &known[i];
        if (old->target == asked.target && old->vocab == asked.vocab && old->layers == asked.layers &&
            old->ffn == asked.ffn && old->seq == asked.seq && old->batch == asked.batch && old->tied == asked.tied) {
            return &old->result;
        }
    }
    cr_assert_lt(count, REFERENCES);
    known[count] = asked;
    known[count].result = case_run_request(&one, &kept);
    return &known[count++].result;
}

void pipeline_trains(const RunRequest *request, Deviation *worst) {
    Arena arena = {0};
    const RunResult *reference = reference_of(request);
    const RunResult run = case_run_request(request, &arena);
    case_expect_same(request, &run, reference, worst);
    cr_assert_eq(run.stage_count, mesh_stages(&request->plan.mesh));
    for (int stage = 0; stage < run.stage_count; stage++) {
        const StageResult *of = &run.stages[stage];
        cr_expect(of->peak_bytes == of->planned_peak_bytes && of->peak_bytes > 0, "stage %d: peak %lld of %lld planned",
                  stage, (long long)of->peak_bytes, (long long)of->planned_peak_bytes);
    }
    arena_free(&arena);
}

// How a pipeline's layers lie on its stages: which stage has most of them, how many are on the last one, and how many
// each chunk has. Found once for each split.

#include "sim/analytic/stages.h"

#include "sim/step/splits/split.h"

TrainPlan stage_plan_alone(const Analytic *analytic, const TrainPlan *plan) {
    TrainPlan alone = *plan;
    split_alone(&analytic->model, &alone);
    alone.pp_schedule = PP_1F1B;
    alone.grad_accum = plan_round_steps(plan);
    alone.pp_rounds = plan_rounds(plan) > 1 ? 2 : 1;  // a later one of several
    plan_canonical(&alone);
    return alone;
}

// Of this many layers from one on, those with experts. Layers behind the model's own are like its last one.
static int32_t expert_layers(const ModelSpec *model, int32_t first, int32_t count) {
    const int32_t last_run = model_run_count(model) - 1, end = first + count;
    int32_t experts = 0;
    for (int i = 0; i <= last_run; i++) {
        LayerRun run = model_run(model, i);
        run.count = i == last_run && end > model->layers ? end - run.first : run.count;
        experts += run.kind == LAYER_EXPERTS && layer_run_cut(&run, first, count) ? run.count : 0;
    }
    return experts;
}

bool stage_mixes_layers(const ModelSpec *model) {
    const int32_t experts = expert_layers(model, 0, model->layers);
    return experts > 0 && experts < model->layers;
}

static int32_t dense_layers(const ModelSpec *model, int32_t first, int32_t count) {
    return stage_mixes_layers(model) ? count - expert_layers(model, first, count) : 0;
}

// Of most layers of experts, or of most layers where none are of experts; the first one.
static int fullest_stage(const ModelSpec *model, const int32_t *layers, int stages) {
    int fullest = 0;
    int32_t first = 0, most = -1;
    for (int stage = 0; stage < stages; first += layers[stage++]) {
        const int32_t count = layers[stage] - dense_layers(model, first, layers[stage]);
        if (count > most) {
            fullest = stage;
            most = count;
        }
    }
    return fullest;
}

static StageSplit *make_split(const Analytic *analytic, const TrainPlan *plan) {
    StageSplit *split = ARENA_NEW(analytic->arena, StageSplit);
    const TrainPlan alone = stage_plan_alone(analytic, plan);
    const int stages = mesh_stages(&plan->mesh), chunks = plan_chunks(plan);
    int32_t *layers = ARENA_ARRAY(analytic->arena, int32_t, stages);
    *split = (StageSplit){.stage = {0, stages - 1},
                          .part_layers = ARENA_ARRAY(analytic->arena, int32_t, stages * chunks),
                          .part_dense = ARENA_ARRAY(analytic->arena, int32_t, stages * chunks),
                          .chunk_layers = ARENA_ARRAY(analytic->arena, int32_t, chunks),
                          .chunk_kept = ARENA_ARRAY(analytic->arena, int32_t, chunks),
                          .part_s = ARENA_ARRAY(analytic->arena, double, stages *chunks),
                          .first_s = ARENA_ARRAY(analytic->arena, double, stages *chunks),
                          .last_s = ARENA_ARRAY(analytic->arena, double, stages *chunks),
                          .parts = stages * chunks};
    split_layers(&analytic->model, analytic->cost.target, &alone, layers);
    split_layers(&analytic->model, analytic->cost.target, plan, split->part_layers);
    split->stage[STAGE_FULLEST] = fullest_stage(&analytic->model, layers, stages);
    split->first_layers = layers[0];
    split->first_dense = dense_layers(&analytic->model, 0, layers[0]);
    for (int i = 0; i < STAGES_LOOKED_AT; i++) {
        split->layers[i] = layers[split->stage[i]];
    }
    for (int32_t part = 0, first = 0; part < split->parts; first += split->part_layers[part++]) {
        split->part_dense[part] = dense_layers(&analytic->model, first, split->part_layers[part]);
    }
    return split;
}

StageSplit *stage_split(Analytic *analytic, const TrainPlan *plan) {
    const uint64_t stages = (uint64_t)mesh_stages(&plan->mesh), chunks = (uint64_t)plan_chunks(plan);
    const uint64_t ends = (uint64_t)plan->pp_first << 32 | (uint64_t)plan->pp_last;
    const MemoKey key = {.words = {stages << 32 | chunks, (uint64_t)plan->pp_split, ends}};
    StageSplit *split = memo_find(&analytic->splits, &key);
    if (!split) {
        split = make_split(analytic, plan);
        memo_add(&analytic->splits, &key, split, analytic->arena);
    }
    return split;
}

const int32_t *stage_chunk_layers(const StageSplit *split, const PipelineShape *shape, int stage) {
    for (int32_t chunk = 0; chunk < shape->chunks; chunk++) {
        split->chunk_layers[chunk] = split->part_layers[pipeline_part(shape, stage, chunk)];
    }
    return split->chunk_layers;
}

bool stages_are_alike(const StageSplit *split, const PipelineShape *shape, int stage, int other) {
    bool alike = true;
    for (int32_t chunk = 0; chunk < shape->chunks; chunk++) {
        const int32_t a = pipeline_part(shape, stage, chunk), b = pipeline_part(shape, other, chunk);
        alike &= split->part_layers[a] == split->part_layers[b] && split->part_dense[a] == split->part_dense[b];
    }
    return alike;
}

int32_t stage_all_layers(const PipelineShape *shape, const int32_t *chunk_layers) {
    int32_t layers = 0;
    for (int32_t chunk = 0; chunk < shape->chunks; chunk++) {
        layers += chunk_layers[chunk];
    }
    return layers;
}

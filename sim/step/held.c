// Chunks of all stages are numbered in forward order: chunk after chunk over the stages, or folded, back and forth.

#include "sim/step/held.h"

#include "sim/step/splits/split.h"
#include "sim/step/units.h"

static int32_t stage_at(int32_t part, int32_t parts, int32_t stages, bool folded) {
    if (part < 0 || part >= parts) {
        return -1;
    }
    const bool back = folded && part / stages % 2 == 1;
    return back ? stages - 1 - part % stages : part % stages;
}

StageLayers stage_layers(const ModelSpec *model, const TrainPlan *plan, const Target *target, bool folded, int stage,
                         Arena *arena) {
    const int32_t stages = mesh_stages(&plan->mesh), parts = stages * plan_chunks(plan);
    int32_t *counts = ARENA_ARRAY(arena, int32_t, parts);
    split_layers(model, target, plan, counts);
    StageLayers held = {.tied_peer = -1, .chunks = ARENA_ARRAY(arena, StageChunk, plan_chunks(plan))};
    int32_t in_model = 0;
    for (int32_t part = 0; part < parts; in_model += counts[part++]) {
        if (stage_at(part, parts, stages, folded) == stage) {
            held.chunks[held.chunk_count++] = (StageChunk){.first = held.layers,
                                                           .count = counts[part],
                                                           .first_in_model = in_model,
                                                           .before = stage_at(part - 1, parts, stages, folded),
                                                           .after = stage_at(part + 1, parts, stages, folded)};
            held.layers += counts[part];
            held.embedding |= part == 0;
            held.head |= part == parts - 1;
        }
    }
    held.further = held.head ? plan->mtp : 0;
    held.further_table = held.further > 0 && !held.embedding && !model->tied_embeddings;
    if ((model->tied_embeddings || plan->mtp > 0) && held.embedding != held.head) {
        held.tied_peer = stage_at(held.embedding ? parts - 1 : 0, parts, stages, folded);
    }
    return held;
}

int unit_of_head(const Target *target) {
    return target->root_unit ? UNIT_EMBEDDING : UNIT_HEAD;
}

int stage_tied_unit(const StageLayers *held, const Target *target, const TrainPlan *plan) {
    const bool sums = held->tied_peer >= 0 && !plan->update_in_backward;
    return !sums ? -1 : held->embedding ? UNIT_EMBEDDING : unit_of_head(target);
}

ModelSpec stage_model(const ModelSpec *model, const StageLayers *held, Arena *arena) {
    ModelSpec part = *model;
    part.layers = held->layers;
    part.tied_embeddings = model->tied_embeddings && held->embedding;
    if (held->layers == model->layers || model->run_count == 0) {
        return part;
    }
    LayerRun *runs = ARENA_ARRAY(arena, LayerRun, model->run_count * held->chunk_count);
    part.runs = runs;
    part.run_count = 0;
    for (int32_t c = 0; c < held->chunk_count; c++) {
        const StageChunk *chunk = &held->chunks[c];
        for (int i = 0; i < model->run_count; i++) {
            LayerRun run = model->runs[i];
            run.first += chunk->first - chunk->first_in_model;
            run.count += i == model->run_count - 1 ? held->further : 0;  // MTP layers are like the last one
            if (layer_run_cut(&run, chunk->first, chunk->count)) {
                runs[part.run_count++] = run;
            }
        }
    }
    return part;
}

bool layer_run_cut(LayerRun *run, int32_t first, int32_t count) {
    const int32_t from = run->first > first ? run->first : first;
    const int32_t run_end = run->first + run->count, end = run_end < first + count ? run_end : first + count;
    run->first = from;
    run->count = end - from;
    return end > from;
}

int stage_model_layer(const StageLayers *held, int layer) {
    const StageChunk *chunk = held->chunks;
    while (layer >= chunk->first + chunk->count) {
        chunk++;
    }
    return chunk->first_in_model + layer - chunk->first;
}

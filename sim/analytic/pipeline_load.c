// How many bytes a stage has at the worst moment of its order: what it carries from forwards to their backwards, and
// the whole gradients that backwards have begun. Activations become gradients layer by layer, so a backward is worst
// where it begins or where it ends.

#include <math.h>

#include "sim/analytic/pipeline.h"

typedef struct Walk {
    const PipelineLoad *load;
    double held;  // shares of the stage's layers
    double grown_bytes, early_bytes, most_bytes;
} Walk;

static void note(Walk *walk) {
    const double bytes = walk->held * walk->load->carried_bytes + walk->grown_bytes + walk->early_bytes;
    walk->most_bytes = fmax(walk->most_bytes, bytes);
}

static double gradient_bytes(const PipelineShape *shape, const PipelineLoad *load, int32_t chunk) {
    return load->growing_bytes * load->chunk_layers[chunk] / load->layers +
           (chunk == 0 ? load->first_growing_bytes : 0) + (chunk == shape->chunks - 1 ? load->last_growing_bytes : 0);
}

// Of one stage in this order; what a split backward carries goes on until its weight gradients are there.
static double most_bytes(PipelineOrders *known, const PipelineShape *shape, int32_t stage, const PipelineLoad *load) {
    const Work releases = (Work)(schedule_works(shape->schedule) - 1);
    int32_t count = 0, forwards = 0;
    const ScheduleAction *actions = pipeline_actions(known, shape, stage, &count);
    Arena scratch = {0};
    int32_t *done = ARENA_ARRAY(&scratch, int32_t, shape->chunks);
    Walk walk = {.load = load, .early_bytes = load->early_bytes};
    for (int32_t i = 0; i < count; i++) {
        const int32_t chunk = actions[i].chunk;
        const double share = (double)load->chunk_layers[chunk] / load->layers;
        if (actions[i].work == WORK_FORWARD) {
            walk.held += share;
            note(&walk);
            forwards += chunk == 0;
            walk.early_bytes = forwards == shape->micro_steps ? 0 : walk.early_bytes;
        } else if (actions[i].work == releases) {
            note(&walk);
            walk.held -= share;
            walk.grown_bytes += done[chunk] == 0 ? gradient_bytes(shape, load, chunk) : 0;
            note(&walk);
            walk.grown_bytes -=
                ++done[chunk] == shape->micro_steps ? gradient_bytes(shape, load, chunk) : 0;  // reduced
        }
    }
    arena_free(&scratch);
    return walk.most_bytes;
}

double pipeline_most_bytes(PipelineOrders *known, const PipelineShape *shape, int32_t stage, const PipelineLoad *load) {
    PipelineShape few, more;
    if (!pipeline_shows(shape, &few, &more)) {
        return most_bytes(known, shape, stage, load);
    }
    const double most = most_bytes(known, &more, stage, load), rise = most - most_bytes(known, &few, stage, load);
    return most + rise * (shape->micro_steps - more.micro_steps) / (more.micro_steps - few.micro_steps);
}

// A stage ends after the block whose cost brings the sum to the stage's share of the total. Blocks of a layer cost 4
// h^2 + 3 h ffn, the head V h, the rest nothing (get_block_compute_costs of HuggingFace's pre-training library, 0.4).
// Where its head would come before the last stage, the stages after it hold nothing; here the head is on the last one
// and the empty ones come before it, which takes equally long. A sum that equals the share also ends it: the library's
// source compares with >, but where its sweep has such sums (16 layers and a head costing four) both the time and the
// memory of the first stage match 10 layers of two stages and 5 of four, not 11 and 6 (tests/accuracy/runs/RESULTS.md).

#include "sim/step/splits/split.h"

static void cut(const ModelSpec *model, const SplitShape *shape, int32_t *counts) {
    const int32_t chunks = shape->chunks;
    const double hidden = model->hidden, layer = 4 * hidden * hidden + 3 * hidden * (double)model->ffn;
    const double all = layer * model->layers + (double)model->vocab * hidden;
    double sum = 0;
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        counts[chunk] = 0;
    }
    for (int32_t i = 0, chunk = 0; i < model->layers; i++) {
        counts[chunk]++;
        sum += layer;
        chunk += chunk < chunks - 1 && sum >= all * (chunk + 1) / chunks;
    }
}

extern const LayerSplit layer_split_cost;
const LayerSplit layer_split_cost = {.cut = cut};

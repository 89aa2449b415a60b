// What a stage gathers and reduces once a round delays the later stages (FSDP2 inside a pipeline: sim/SOURCES.md
// P6). A unit is gathered into one of few buffers, which the compute lane empties: until the first micro-step arrives
// there a stage is few layers ahead of it, so on links that are slower than layers compute each stage in turn makes the
// first micro-step wait for its gathers. In the same way the compute lane copies a layer's gradients out once the layer
// before has been reduced, so each stage in turn holds back the last gradient that the stage before waits for.
//
// Of L layers, `ahead` of them gathered, with gathers of g and forwards of f a layer, which overlap gathers f' and a
// copy: the first micro-step leaves the later of (L - ahead) g + f' and ahead f + (L - ahead) f' after it came, where
// others take L f. With reductions of r and backwards of b, b' where they overlap: L (b' - b), and r - b' of each layer
// but the one copied first and the last of the backward, whose copy follows its gradient. The head is gathered after
// its stage's layers and reduced before them, as many times as long as its bytes are more. The first part is what the
// stage alone was seen to do: it begins with nothing gathered and ends with all reduced. Not modelled: messages that
// share these links.

#include <math.h>

#include "sim/analytic/stages.h"

typedef struct PartOnce {
    const OnceTimes *once;
    double forward_s, backward_s;             // of a layer
    double first_forward_s, last_backward_s;  // of one that overlaps them, with its copies
    double edge;                              // layers that gather and reduce as long as the head or the embedding
} PartOnce;

static double gathers_late_s(const PartOnce *of, int32_t layers, bool has_head) {
    const int32_t ahead = of->once->ahead < layers ? of->once->ahead : layers, beside = layers - ahead;
    const double computed_s = ahead * of->forward_s + beside * of->first_forward_s + layers * of->once->copy_out_s;
    const double gathered_s = beside * of->once->gather_s;
    const double head_s = has_head ? of->edge * of->once->gather_s : of->first_forward_s;
    return fmax(computed_s, gathered_s + head_s) - layers * of->forward_s;
}

static double reduces_late_s(const PartOnce *of, int32_t layers, bool has_head) {
    enum { NOT_WAITED_FOR = 2 };
    const int32_t waits = layers > NOT_WAITED_FOR ? layers - NOT_WAITED_FOR : 0;
    const double head_s = has_head && layers > 0 ? fmax(0, of->edge * of->once->scatter_s - of->last_backward_s) : 0;
    return head_s + layers * (of->last_backward_s - of->backward_s) +
           waits * fmax(0, of->once->scatter_s - of->last_backward_s);
}

void stage_time_once(const Analytic *analytic, const StageSplit *split, const OnceTimes *once, double layer_s,
                     double forward_share) {
    const ModelSpec *model = &analytic->model;
    const double of_layer = (double)model_layers_parameters(model) / model->layers;
    const double forward_s = layer_s * forward_share, backward_s = layer_s - forward_s;
    const PartOnce of = {.once = once,
                         .forward_s = forward_s,
                         .backward_s = backward_s,
                         .first_forward_s = forward_s * (1 + once->forward_slow),
                         .last_backward_s = backward_s * (1 + once->backward_slow) + once->copy_in_s,
                         .edge = (double)model->vocab * (double)model->hidden / of_layer};
    const double share = (double)split->part_layers[0] / split->layers[STAGE_FULLEST];
    const double beyond = split->stage[STAGE_FULLEST] == 0 ? 0 : of.edge;
    for (int32_t part = 1; part < split->parts; part++) {
        const bool has_head = part + 1 == split->parts;
        split->first_s[part] = gathers_late_s(&of, split->part_layers[part], has_head);
        split->last_s[part] = reduces_late_s(&of, split->part_layers[part], has_head);
    }
    split->first_s[0] = once->begin_s + once->forward_s * share + beyond * once->gather_s;
    split->last_s[0] = once->backward_s * share + once->end_s + beyond * once->scatter_s;
}

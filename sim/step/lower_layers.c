// Pass 1: the arithmetic of one rank, forward and backward, in local sizes. A Llama block is
//   x' = x + Wo attention(rope(Wqkv norm(x))),  x'' = x' + Wdown swiglu(Wgate norm(x'), Wup norm(x'));
// the other families place norms, biases and positions differently (sim/model/model.h). Marks say where tensor
// parallelism joins ranks and where a unit's weights and gradients begin and end. Backward is the chain rule in
// reverse; the gradient of the residual stream, dx, is one tensor updated in place.

#include "sim/step/lower_ops.h"
#include "sim/step/mixed.h"

static bool side_by_side(const Lowering *lowering) {
    return lowering->model->residual == RESIDUAL_PARALLEL;
}

static OpRef layer_input(Lowering *lowering) {
    return stream_at(lowering, residual_stream(lowering), 0);
}

// Between the halves of a layer.
static OpRef middle(Lowering *lowering) {
    return op_whole(lowering, between_by_hidden(lowering, "x_mid"));
}

// Input of the feed-forward half: the middle, or the layer's input in parallel blocks.
static OpRef mlp_input(Lowering *lowering) {
    return side_by_side(lowering) ? layer_input(lowering) : middle(lowering);
}

// The feed-forward half of dense layers among MoE layers.
static void dense_half_forward(Lowering *lowering, OpRef x_mid, OpRef x_next) {
    mixed_begin(lowering, LAYER_DENSE);
    lowering->layer_part = GRAPHED_MLP;
    const Half mlp = mlp_half(lowering);
    const int32_t s = lower_mlp(lowering, op_whole(lowering, half_begin(lowering, &mlp, x_mid)));
    half_end(lowering, &mlp, s, x_mid, x_next);
    lowering->layer_part = 0;
    mixed_end(lowering);
}

static void dense_half_backward(Lowering *lowering, const NormBackward *stream) {
    mixed_begin(lowering, LAYER_DENSE);
    lowering->layer_part = GRAPHED_MLP;
    const Half mlp = mlp_half(lowering);
    const HalfGradient gradient = half_gradient(lowering, &mlp, stream->residual);
    half_out_backward(lowering, &mlp, &gradient, mlp_inner(lowering), mlp_inner_gradient(lowering));
    const Projection gate_up = lower_mlp_backward(lowering);
    half_begin_backward(lowering, &mlp, &gate_up, stream);
    lowering->layer_part = 0;
    mixed_end(lowering);
}

static void lower_experts_forward(Lowering *lowering) {
    const Half attention = attention_half(lowering);
    const OpRef x = layer_input(lowering), x_mid = middle(lowering);
    lowering->layer_part = GRAPHED_ATTENTION;
    const int32_t o = lower_attention(lowering, half_begin(lowering, &attention, x));
    const OpRef x_next = stream_at(lowering, residual_stream(lowering), 1);
    half_end(lowering, &attention, o, x, x_mid);
    lowering->layer_part = 0;
    if (lowering_is_mixed(lowering)) {
        dense_half_forward(lowering, x_mid, x_next);
    }
    mixed_begin(lowering, LAYER_EXPERTS);
    const Half mlp = mlp_half(lowering);
    lower_experts(lowering, &mlp, x_mid, x_next);
    mixed_end(lowering);
}

static void lower_dense_forward(Lowering *lowering) {
    const Half attention = attention_half(lowering), mlp = mlp_half(lowering);
    const OpRef x = layer_input(lowering), x_mid = middle(lowering);
    const OpRef x_next = stream_at(lowering, residual_stream(lowering), 1);
    lowering->layer_part = GRAPHED_ATTENTION;
    const int32_t o = lower_attention(lowering, half_begin(lowering, &attention, x));
    half_end(lowering, &attention, o, x, x_mid);
    lowering->layer_part = GRAPHED_MLP;
    const int32_t in = half_begin(lowering, &mlp, mlp_input(lowering));
    if (lowering->plan->mlp_tiles > 0) {
        lower_tiles(lowering, &mlp, in);
        half_leave(lowering, &mlp, x_mid, x_next);
    } else {
        half_end(lowering, &mlp, lower_mlp(lowering, op_whole(lowering, in)), x_mid, x_next);
    }
    lowering->layer_part = 0;
}

static HalfGradient lower_mlp_half_backward(Lowering *lowering, OpRef g, OpRef mid) {
    const Half mlp = mlp_half(lowering);
    const NormBackward stream = {.x = mlp_input(lowering), .residual = g, .dx = mid};
    const HalfGradient gradient = half_gradient(lowering, &mlp, g);
    if (lowering->plan->mlp_tiles > 0) {
        lower_tiles_backward(lowering, &mlp, &gradient, &stream);
        return gradient;
    }
    half_out_backward(lowering, &mlp, &gradient, mlp_inner(lowering), mlp_inner_gradient(lowering));
    const Projection gate_up = lower_mlp_backward(lowering);
    half_begin_backward(lowering, &mlp, &gate_up, &stream);
    return gradient;
}

static void attention_half_backward(Lowering *lowering, const Half *attention, const HalfGradient *gradient,
                                    OpRef mid) {
    half_out_backward(lowering, attention, gradient, attention_projected(lowering), attention_inner_gradient(lowering));
    const Projection qkv = lower_attention_backward(lowering);
    half_begin_backward(lowering, attention, &qkv,
                        &(NormBackward){.x = layer_input(lowering), .residual = mid, .dx = gradient_at(lowering, 0)});
}

// In parallel blocks both halves start from the same gradient g; the one through the feed-forward half is set aside.
static void lower_dense_backward(Lowering *lowering) {
    const Half attention = attention_half(lowering);
    const OpRef g = gradient_at(lowering, 1);
    const bool in_place = !side_by_side(lowering) && !gradients_apart(lowering);
    const char *name = side_by_side(lowering) ? "dx_aside" : "dx_mid";
    const OpRef mid = in_place ? g : op_whole(lowering, between_by_hidden(lowering, name));

    lowering->layer_part = GRAPHED_MLP;
    HalfGradient gradient = lower_mlp_half_backward(lowering, g, mid);
    lowering->layer_part = GRAPHED_ATTENTION;
    if (!side_by_side(lowering)) {
        gradient = half_gradient(lowering, &attention, mid);
    }
    attention_half_backward(lowering, &attention, &gradient, mid);
    lowering->layer_part = 0;
}

static void lower_experts_layer_backward(Lowering *lowering) {
    const Half attention = attention_half(lowering);
    const OpRef g = gradient_at(lowering, 1);
    const OpRef mid = gradients_apart(lowering) ? op_whole(lowering, between_by_hidden(lowering, "dx_mid")) : g;
    const NormBackward stream = {.x = middle(lowering), .residual = g, .dx = mid};
    mixed_begin(lowering, LAYER_EXPERTS);
    const Half mlp = mlp_half(lowering);
    lower_experts_backward(lowering, &mlp, &stream);
    mixed_end(lowering);
    if (lowering_is_mixed(lowering)) {
        dense_half_backward(lowering, &stream);
    }
    lowering->layer_part = GRAPHED_ATTENTION;
    const HalfGradient gradient = half_gradient(lowering, &attention, mid);
    attention_half_backward(lowering, &attention, &gradient, mid);
    lowering->layer_part = 0;
}

// How a layer of a kind is lowered, forward and backward.
typedef struct LayerPasses {
    void (*forward)(Lowering *lowering);
    void (*backward)(Lowering *lowering);
} LayerPasses;

static const LayerPasses kinds[LAYER_KIND_COUNT] = {
    [LAYER_DENSE] = {lower_dense_forward, lower_dense_backward},
    [LAYER_EXPERTS] = {lower_experts_forward, lower_experts_layer_backward},
};

// All runs are of one kind: a section's list is that kind's, and runs are loops over it (lower_lanes.c).
static LayerKind only_kind(const Lowering *lowering) {
    const ModelSpec *model = lowering->model;
    const LayerKind kind = model_run(model, 0).kind;
    if (lowering_is_mixed(lowering)) {
        return LAYER_EXPERTS;  // which lowers both
    }
    for (int i = 1; i < model_run_count(model); i++) {
        ASSERT(model_run(model, i).kind == kind);
    }
    return kind;
}

// The part of a layer in a separate unit is gathered and released with the layer: targets that gather weights prefetch
// both together (set_modules_to_forward_prefetch).
static void mark_layer(Lowering *lowering, Section section, Mark mark) {
    mark_unit(lowering, section, mark, UNIT_LAYER);
    if (lowering->unit_count > UNIT_EXPERTS) {
        mark_unit(lowering, section, mark, UNIT_EXPERTS);
    }
}

static void layers_forward(Lowering *lowering) {
    mark_layer(lowering, SECTION_LAYER_FORWARD, MARK_UNIT_NEED);
    lower_fp8_weights(lowering);
    kinds[only_kind(lowering)].forward(lowering);
}

// Experts that are wrapped separately are gathered before the next layer's prefetch (lower_sharding.c), and reduced
// before the rest of their layer.
static void mark_backward(Lowering *lowering, Mark mark) {
    if (lowering->ep > 1 && lowering->target->experts_apart) {
        mark_unit(lowering, SECTION_LAYER_BACKWARD, mark, UNIT_EXPERTS);
        mark_unit(lowering, SECTION_LAYER_BACKWARD, mark, UNIT_LAYER);
    } else {
        mark_layer(lowering, SECTION_LAYER_BACKWARD, mark);
    }
}

static void layers_backward(Lowering *lowering) {
    mark_backward(lowering, MARK_UNIT_NEED);
    mark_layer(lowering, SECTION_LAYER_BACKWARD, MARK_UNIT_BACKWARD);
    lower_fp8_backward_weights(lowering);
    kinds[only_kind(lowering)].backward(lowering);
    mixed_zero_others(lowering);
    mark_backward(lowering, MARK_UNIT_GRADIENT);
}

// A stage may have no layers: head and loss alone, or nothing but forwarding messages.
void lower_layers(Lowering *lowering) {
    const bool layers = lowering->model->layers > 0;
    lower_fp8_begin(lowering);
    if (lowering->held->embedding) {
        lower_begin(lowering);
    }
    if (layers) {
        layers_forward(lowering);
    }
    lower_fp8_history(lowering, SECTION_TAIL);
    if (lowering->held->head) {
        lower_tail(lowering);
    }
    if (layers) {
        layers_backward(lowering);
    }
    if (lowering->held->embedding) {
        lower_end(lowering);
    }
    lower_fp8_history(lowering, SECTION_END);
}

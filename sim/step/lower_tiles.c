// The feed-forward half on a tile of a rank's tokens at a time (TiledMLP of DeepSpeed 0.19.8,
// runtime/sequence_parallel/ulysses_sp.py, and variants of it; Bekman et al. 2025). Tensors inside it have the size of
// a tile. Forward keeps only its input; backward recomputes each tile completely before it computes the tile's
// gradients, and accumulates weight gradients over tiles. A recomputed layer runs the half once more before that, since
// it saves its input after its work (lower_recompute.c). Not modelled: the copy that concatenates the tiles' results,
// and a tile's weight gradients next to their sum.

#include "sim/step/lower_ops.h"

static OpRef tile_of(const Lowering *lowering, int32_t tensor, int tile) {
    OpRef ref = op_whole(lowering, tensor);
    ref.bytes /= lowering->plan->mlp_tiles;
    ref.offset_bytes = tile * ref.bytes;
    return ref;
}

// Sets the number of tokens of tensors and operations from here on; returns the previous one.
static int64_t count_tokens(Lowering *lowering, int64_t tokens) {
    const int64_t before = lowering->dims.tokens;
    lowering->dims.tokens = tokens;
    return before;
}

static int64_t count_tile(Lowering *lowering) {
    return count_tokens(lowering, lowering->dims.tokens / lowering->plan->mlp_tiles);
}

static void tile_forward(Lowering *lowering, const Half *half, OpRef x, OpRef y) {
    const int32_t inner = lower_mlp(lowering, x);
    const Rows rows = {op_whole(lowering, inner), y, lowering->dims.tokens, true};
    add_forward_rows(lowering, SECTION_LAYER_FORWARD, &half->out, &rows);
}

void lower_tiles(Lowering *lowering, const Half *half, int32_t x) {
    const int32_t y = tokens_by(lowering, half->sum, lowering->dims.hidden);
    const int64_t tokens = count_tile(lowering);
    for (int tile = 0; tile < lowering->plan->mlp_tiles; tile++) {
        tile_forward(lowering, half, tile_of(lowering, x, tile), tile_of(lowering, y, tile));
    }
    count_tokens(lowering, tokens);
}

// Forward's operations in backward, with a result that nothing reads.
static void make_tile_again(Lowering *lowering, const Half *half, OpRef x) {
    OpList *forward = &lowering->lists[SECTION_LAYER_FORWARD];
    const size_t first = forward->count;
    tile_forward(lowering, half, x, op_whole(lowering, tokens_by(lowering, "mlp_sum of tile", lowering->dims.hidden)));
    for (size_t i = first; i < forward->count; i++) {
        forward->ops[i]->task.phase = PHASE_RECOMPUTE;
        op_list_pass(lowering->arena, &lowering->lists[SECTION_LAYER_BACKWARD], forward->ops[i]);
    }
    forward->count = first;
}

static void tile_backward(Lowering *lowering, const Half *half, OpRef dy, const ProjectionInput *input) {
    const Section section = SECTION_LAYER_BACKWARD;
    const int64_t tokens = lowering->dims.tokens;
    const Rows made = {op_whole(lowering, mlp_inner_gradient(lowering)), dy, tokens, true};
    const Rows read = {op_whole(lowering, mlp_inner(lowering)), dy, tokens, input->first};
    make_tile_again(lowering, half, input->x);
    add_input_gradient_rows(lowering, section, &half->out, &made);
    add_weight_gradient_rows(lowering, section, &half->out, &read);
    const Projection gate_up = lower_mlp_backward(lowering);
    projection_backward(lowering, &gate_up, input, half->din_part);
}

void lower_tiles_backward(Lowering *lowering, const Half *half, const HalfGradient *gradient,
                          const NormBackward *stream) {
    const int64_t hidden = lowering->dims.hidden;
    const int32_t x = tokens_by(lowering, half->in_full, hidden), dx = tokens_by(lowering, half->din_full, hidden);
    const int64_t tokens = count_tile(lowering);
    for (int tile = 0; tile < lowering->plan->mlp_tiles; tile++) {
        const ProjectionInput input = {tile_of(lowering, x, tile), tile_of(lowering, dx, tile), tile == 0};
        tile_backward(lowering, half, tile_of(lowering, gradient->full, tile), &input);
    }
    count_tokens(lowering, tokens);
    half_bias_backward(lowering, half, gradient);
    half_enter_backward(lowering, half, stream);
}

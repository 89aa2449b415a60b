// The feed-forward half of an MoE layer: router, choice of experts, tokens permuted to expert order, grouped products
// (gate and up in one), weighted sum back, plus shared experts. With ep a rank holds part of the experts: ranks
// exchange token counts, tokens go to the ranks of their experts by an all-to-all and are permuted again there, results
// go back the same way; backward does both again in reverse (sim/SOURCES.md E1; ExpertParallel and
// MoEAlltoAllTokenDispatcher of the frameworks that have it). Rows per expert are the mean of the busiest rank, by the
// plan's imbalance, up to its capacity; our executor counts them, and has room for more. With tp alone every rank has a
// slice of each expert's width and all tokens; with ep too, experts are whole or split over separate ranks (etp), and a
// tp rank routes the tokens that it has between blocks: only shared experts gather them (Megatron-LM's MoELayer with
// sequence parallelism, and others that have both). Operations: transformers 5.23, integrations/moe.py
// grouped_mm_experts_forward; other frameworks differ in the number of kernels.

#include "sim/step/experts.h"

// Rows per expert; if all ranks gather the tokens, which token visits which and the weights: 3 bytes per expert.
static int32_t counted_by(Lowering *lowering, const char *name, int ranks) {
    const int64_t experts = lowering->model->experts.count;
    return dispatch_gathers(lowering) ? lowering_tensor(lowering, name, ROLE_ACTIVATION, DTYPE_BF16,
                                                        ranks * lowering->dims.tokens * ((3 * experts + 1) / 2))
                                      : lowering_tensor(lowering, name, ROLE_ACTIVATION, DTYPE_INT32, experts);
}

// Operands needed only in a program that is executed.
void told(Lowering *lowering, Op *op, int32_t tensor) {
    if (lowering->target->own_kernels) {
        op_operand(op, op_whole(lowering, tensor), ACCESS_READ);
    }
}

static bool has_shared(const Lowering *lowering) {
    return lowering->model->experts.shared_ffn > 0;
}

// What the half adds to the residual stream.
static int32_t half_sum(Lowering *lowering, const Half *half) {
    return tokens_by(lowering, lowering_routes_apart(lowering) ? half->sum_between : half->sum, lowering->dims.hidden);
}

static int32_t results_back(Lowering *lowering, const Half *half, int32_t out) {
    if (dispatch_sums(lowering)) {
        return has_shared(lowering) ? tokens_by(lowering, "experts_back", lowering->dims.hidden)
                                    : half_sum(lowering, half);
    }
    return dispatch_moves(lowering) ? routed_by(lowering, "experts_back", lowering->dims.hidden) : out;
}

static ExpertTensors expert_tensors(Lowering *lowering, const Half *half) {
    const Dims *d = &lowering->dims;
    const int32_t out = received_by(lowering, "experts_out", d->hidden);
    const int32_t leave = counted_by(lowering, "expert_rows", 1);
    return (ExpertTensors){.leave = leave,
                           .come =
                               lowering->ep > 1 ? counted_by(lowering, "expert_rows of ranks", lowering->ep) : leave,
                           .logits = tokens_by(lowering, "router_logits", lowering->model->experts.count),
                           .routing = row_statistics(lowering, "routing", 2 * routed_rows(lowering)),
                           .in = received_by(lowering, "experts_in", d->hidden),
                           .gate_up = received_by(lowering, "experts_gate_up", expert_up_width(lowering)),
                           .act = received_by(lowering, "experts_act", expert_ffn(lowering)),
                           .out = out,
                           .back = results_back(lowering, half, out)};
}

// Its traffic is not priced: it has only as many elements as there are experts.
static const char *router_bias(const Lowering *lowering) {
    return lowering->model->experts.router_bias && lowering->target->own_kernels ? "router_bias" : NULL;
}

static Linear router_linear(const Lowering *lowering) {
    return (Linear){.name = "router",
                    .first = "router",
                    .last = "router",
                    .first_bias = router_bias(lowering),
                    .last_bias = router_bias(lowering),
                    .backward_name = "router dgrad",
                    .weight_name = "router wgrad",
                    .unit = UNIT_LAYER,
                    .in = lowering->dims.hidden,
                    .out = lowering->model->experts.count,
                    .in_half = true};
}

// The per-token scalar that multiplies its shared expert's result.
static Linear gate_linear(const Lowering *lowering) {
    return (Linear){.name = "shared gate",
                    .first = "shared_gate",
                    .last = "shared_gate",
                    .backward_name = "shared gate dgrad",
                    .weight_name = "shared gate wgrad",
                    .unit = UNIT_LAYER,
                    .in = lowering->dims.hidden,
                    .out = 1,
                    .in_half = true};
}

static bool has_gate(const Lowering *lowering) {
    return lowering->model->experts.shared_gate;
}

static int32_t gate_of(Lowering *lowering, const char *name) {
    return tokens_by(lowering, name, 1);
}

// ---- memory-bound operations

Op *add_routed(Lowering *lowering, Section section, TaskKind kind, const char *name) {
    Op *op = op_add(lowering, section, kind, layer_phase(section), name);
    op_size(op, lowering->dims.tokens, lowering->dims.hidden);
    op->task.inner = lowering->model->experts.active;
    return op;
}

// What an eager framework keeps for a gated activation: act(gate). Without a gate Megatron keeps what its weights are
// multiplied with; with one that no kernel fuses act(gate), up with its offset (core 0.15), and their product
// (transformer/moe/experts.py, glu).
static OpRef kept_values(Lowering *lowering) {
    const bool whole = lowering->target->fused_projections && gates_experts(lowering), apart = gates_apart(lowering);
    const int64_t width = (apart ? 3 : 1) * expert_ffn(lowering);
    return whole && !apart ? op_absent() : op_whole(lowering, received_by(lowering, "experts_values", width));
}

// What autograd keeps beside that where gpt-oss's gate is Python's (_apply_gate): the gate within its limit, its
// sigmoid, and the other half within its own, plus one.
static void keep_clamped(Lowering *lowering, Op *op, Access access) {
    enum { KEPT = 3 };
    const bool written_out = indexes_experts(lowering) && lowering->plan->fused != FUSED_COMPILED;
    if (written_out && lowering->model->experts.bias) {
        const int64_t width = KEPT * expert_ffn(lowering);
        op_operand(op, op_whole(lowering, received_by(lowering, "experts_clamped", width)), access);
    }
}

static Op *add_gated(Lowering *lowering, Section section, TaskKind kind, const char *name) {
    Op *op = add_routed(lowering, section, kind, name);
    op_size(op, received_rows(lowering), expert_ffn(lowering));
    op->task.stride = expert_up_width(lowering);
    op->task.inner = 0;
    op->task.activation = lowering->model->activation;
    return op;
}

static const StoredInput stored = {"experts_gate_up_fp8", "experts_gate_up_again", "experts gate up to fp8",
                                   "experts gate up from fp8"};

static int64_t stored_elements(const Lowering *lowering) {
    return received_rows(lowering) * expert_up_width(lowering);
}

static int32_t moved_by(Lowering *lowering, const char *name) {
    return routed_by(lowering, name, lowering->dims.hidden);
}

static void route(Lowering *lowering, const ExpertTensors *tensors, int32_t x) {
    const Linear router = router_linear(lowering);
    add_forward(lowering, SECTION_LAYER_FORWARD, &router, x, tensors->logits);
    Op *op = add_routed(lowering, SECTION_LAYER_FORWARD, TASK_ROUTE, "choose experts");
    op->task.cols = lowering->model->experts.count;
    op_operand(op, op_whole(lowering, tensors->logits), ACCESS_READ);
    op_operand(op, op_whole(lowering, tensors->routing), ACCESS_WRITE);
    if ((lowering->ep > 1 && (!dispatch_sums(lowering) || dispatch_gathers(lowering))) ||
        lowering->target->own_kernels) {
        op_operand(op, op_whole(lowering, tensors->leave), ACCESS_WRITE);
    }
    told_router(lowering, op);
}

static int32_t shared_sum(Lowering *lowering) {
    return lowering_routes_apart(lowering) ? between_by_hidden(lowering, "shared_sum_between")
                                           : tokens_by(lowering, "shared_sum", lowering->dims.hidden);
}

// Sets sizes to the tokens that this rank routes, or to all tokens it has.
static void count_routed(Lowering *lowering) {
    lowering->dims.tokens = lowering_routes_apart(lowering) ? lowering->dims.tokens_between : lowering->dims.tokens;
}

static void count_all(Lowering *lowering) {
    lowering->dims.tokens = plan_local_tokens(lowering->plan);
}

static void tokens_to_experts(Lowering *lowering, const ExpertTensors *tensors, int32_t x) {
    const Section section = SECTION_LAYER_FORWARD;
    const bool spread = lowering->ep > 1, sums = dispatch_sums(lowering), moves = dispatch_moves(lowering);
    const int32_t sent = sums ? x : moves ? moved_by(lowering, "experts_sent") : tensors->in;
    if (!sums) {
        Op *op = add_routed(lowering, section, TASK_PERMUTE, "tokens to experts");
        OP_OPERANDS(op, ACCESS_READ, op_whole(lowering, x), op_whole(lowering, tensors->routing));
        op_operand(op, op_whole(lowering, sent), ACCESS_WRITE);
    }
    if (spread && ((!sums && !lowering->plan->pad_experts) || dispatch_gathers(lowering))) {
        exchange_counts(lowering, tensors);
    }
    lowering->layer_part = 0;  // what orders tokens for their exchange is replayed with the router
    if (moves) {
        dispatch(lowering, section, tensors, op_whole(lowering, sent), tensors->in);
    }
}

static void activate(Lowering *lowering, const ExpertTensors *tensors) {
    lower_stored(lowering, &stored, tensors->gate_up, stored_elements(lowering));
    Op *op = gates_experts(lowering)
                 ? add_gated(lowering, SECTION_LAYER_FORWARD, TASK_SWIGLU, "experts swiglu")
                 : add_gated(lowering, SECTION_LAYER_FORWARD, TASK_ACTIVATION, "experts activation");
    add_clamps(lowering, op, false, expert_ffn(lowering));
    weigh_plain(lowering, op, false);
    op_operand(op, op_whole(lowering, tensors->gate_up), ACCESS_READ);
    if (gates_experts(lowering)) {
        op_operand(op, column(lowering, tensors->gate_up, expert_ffn(lowering)), ACCESS_READ);
    }
    op_operand(op, op_whole(lowering, tensors->act), ACCESS_WRITE);
    op_operand(op, kept_values(lowering), ACCESS_WRITE);
    keep_clamped(lowering, op, ACCESS_WRITE);
    told(lowering, op, tensors->come);
}

// Experts' results, cast and weighted operation by operation: backward has the fp32 copy, and beside it the gradient of
// what was weighted, that times the weights, and times the copy for theirs. Of the products, whose time no operand
// changes.
static void hold_weighted(Lowering *lowering, const ExpertTensors *tensors, Op *op, bool backward) {
    enum { GRADIENTS = 3 };
    if (!lowering->target->weighs_in_fp32 || lowering->plan->fused != FUSED_EAGER) {
        return;
    }
    const int64_t elements = lowering->tensors[tensors->out].bytes / lowering->dims.element;
    op_operand(op,
               op_whole(lowering, lowering_tensor(lowering, "experts_out_fp32", ROLE_ACTIVATION, DTYPE_FP32, elements)),
               backward ? ACCESS_READ : ACCESS_WRITE);
    if (backward) {
        op_operand(op,
                   op_whole(lowering, lowering_tensor(lowering, "dexperts_out_fp32", ROLE_ACTIVATION, DTYPE_FP32,
                                                      GRADIENTS * elements)),
                   ACCESS_WRITE);
    }
}

static void routed_forward(Lowering *lowering, const ExpertTensors *tensors, int32_t x) {
    const Section section = SECTION_LAYER_FORWARD;
    const Grouped up = grouped_up(lowering), down = grouped_down(lowering);
    route(lowering, tensors, x);
    tokens_to_experts(lowering, tensors, x);
    Op *op = add_grouped_forward(lowering, &up, tensors, tensors->in, tensors->gate_up);
    add_first_biases(lowering, op, false, expert_up_width(lowering));
    if (fuses_experts(lowering)) {
        fuse_activation(lowering, op, tensors);
    } else {
        activate(lowering, tensors);
    }
    op = add_grouped_forward(lowering, &down, tensors, tensors->act, tensors->out);
    hold_weighted(lowering, tensors, op, false);
    if (!fuses_experts(lowering)) {
        add_expert_biases(lowering, op, false, lowering->dims.hidden);
    }
    if (dispatch_moves(lowering)) {
        combine(lowering, section, tensors, tensors->out, tensors->back);
    }
    page_rows(lowering, section, tensors);
}

// Shared experts are split over tp, and every tp rank needs all tokens for them.
static void shared_forward(Lowering *lowering, const Half *half, int32_t x) {
    const bool apart = lowering_routes_apart(lowering);
    lowering->layer_part |= SHARED_PART;
    count_all(lowering);
    const int32_t full = apart ? half_enter(lowering, half, x) : x;
    const int32_t sum = tokens_by(lowering, "shared_sum", lowering->dims.hidden);
    add_forward(lowering, SECTION_LAYER_FORWARD, &half->out, lower_mlp(lowering, op_whole(lowering, full)), sum);
    if (apart) {
        mark_tp(lowering, SECTION_LAYER_FORWARD, MARK_TP_LEAVE, op_whole(lowering, sum),
                op_whole(lowering, shared_sum(lowering)), "shared sum");
    }
    count_routed(lowering);
    lowering->layer_part &= ~SHARED_PART;
}

static int32_t sum_of_experts(Lowering *lowering, const Half *half, const ExpertTensors *tensors) {
    const int32_t y = half_sum(lowering, half);
    const OpRef back = op_whole(lowering, tensors->back);
    if (dispatch_sums(lowering)) {
        if (has_shared(lowering)) {
            add_sum(lowering, SECTION_LAYER_FORWARD, back, op_whole(lowering, shared_sum(lowering)),
                    op_whole(lowering, y), lowering->dims.tokens * lowering->dims.hidden);
        }
        return y;
    }
    Op *op = add_routed(lowering, SECTION_LAYER_FORWARD, TASK_UNPERMUTE, "sum of experts");
    weigh_apart(lowering, op);
    add_rows_apart(lowering, op, routed_rows(lowering));
    OP_OPERANDS(op, ACCESS_READ, back, op_whole(lowering, tensors->routing));
    op_operand(op, op_whole(lowering, y), ACCESS_WRITE);
    if (has_shared(lowering)) {
        op_operand(op, op_whole(lowering, shared_sum(lowering)), ACCESS_READ);
    }
    if (has_gate(lowering)) {
        op_operand(op, op_whole(lowering, gate_of(lowering, "shared_gate")), ACCESS_READ);
    }
    return y;
}

// Elsewhere they are beside the exchange of results, as with Megatron-core's moe_shared_expert_overlap, which recipes
// turn off where its all-to-alls do not carry the tokens (apply_flex_dispatcher_backend of Megatron-Bridge). Then they
// come before the router, autograd to them behind it, and exchanges hold the stream (moe_layer.py, custom_forward).
static bool shared_goes_first(const Lowering *lowering) {
    return lowering->target->expert_flavour == EXPERTS_PERMUTE_KERNELS && dispatch_sums(lowering);
}

void lower_experts(Lowering *lowering, const Half *half, OpRef x, OpRef sum) {
    const Section section = SECTION_LAYER_FORWARD;
    const bool apart = lowering_routes_apart(lowering);
    lowering->layer_part = GRAPHED_ROUTER;
    const int32_t in = apart ? half_norm(lowering, half, x) : half_begin(lowering, half, x);
    count_routed(lowering);
    const ExpertTensors tensors = expert_tensors(lowering, half);
    if (!shared_goes_first(lowering)) {
        routed_forward(lowering, &tensors, in);
        lowering->layer_part = GRAPHED_ROUTER;
    }
    if (has_gate(lowering)) {
        const Linear gate = gate_linear(lowering);
        add_forward(lowering, section, &gate, in, gate_of(lowering, "shared_gate"));
    }
    if (has_shared(lowering)) {
        shared_forward(lowering, half, in);
    }
    if (shared_goes_first(lowering)) {
        routed_forward(lowering, &tensors, in);
    }
    lowering->layer_part = 0;
    const int32_t y = sum_of_experts(lowering, half, &tensors);
    count_all(lowering);
    lowering->layer_part = OPEN_PART;
    if (apart) {
        half_join(lowering, half, y, x, sum);
    } else {
        half_leave(lowering, half, x, sum);
    }
    lowering->layer_part = 0;
}

// ---- backward

// Weights are applied in the activation, before the second product (Megatron-LM, weighted_bias_swiglu_impl): their
// gradient does not need the experts' results, so these do not live until backward.
static bool weighs_inputs(const Lowering *lowering) {
    return lowering->target->expert_flavour == EXPERTS_PERMUTE_KERNELS;
}

static int32_t input_gradient(Lowering *lowering, const Half *half) {
    return tokens_by(lowering, lowering_routes_apart(lowering) ? half->din : half->din_full, lowering->dims.hidden);
}

// dx of one path through the half: written by the first, added by the others.
static void add_part(Lowering *lowering, const Half *half, int32_t part, const char *name) {
    const int32_t din = input_gradient(lowering, half);
    const OpRef sum = op_whole(lowering, din), more = op_whole(lowering, part);
    mark_tp(lowering, SECTION_LAYER_BACKWARD, MARK_TP_PART_BACKWARD, more, more, name);
    if (part != din) {
        add_sum(lowering, SECTION_LAYER_BACKWARD, sum, more, sum, lowering->dims.tokens * lowering->dims.hidden);
    }
}

// In an executed program the shared expert's result has a separate gradient: its gate times the layer's. The other
// targets compute it too, but their programs leave it out.
static bool gates_gradient(const Lowering *lowering) {
    return has_gate(lowering) && lowering->target->own_kernels;
}

static int32_t dshared_sum(Lowering *lowering) {
    return tokens_by(lowering, "dshared_sum", lowering->dims.hidden);
}

static void shared_backward(Lowering *lowering, const Half *half, const HalfGradient *gradient) {
    const int64_t hidden = lowering->dims.hidden;
    const bool apart = lowering_routes_apart(lowering);
    lowering->layer_part |= SHARED_PART;
    count_all(lowering);
    int32_t part = tokens_by(lowering, apart ? "dshared_in_full" : "dshared_in", hidden);
    HalfGradient gated = *gradient;
    gated.full = gates_gradient(lowering) ? dshared_sum(lowering) : gradient->full;
    half_out_backward(lowering, half, &gated, mlp_inner(lowering), mlp_inner_gradient(lowering));
    const Projection projection = lower_mlp_backward(lowering);
    const OpRef in = op_whole(lowering, tokens_by(lowering, half->in_full, hidden));
    projection_backward(lowering, &projection, &(ProjectionInput){in, op_whole(lowering, part), true}, half->din_part);
    if (apart) {
        const int32_t own = between_by_hidden(lowering, "dshared_in");
        mark_tp(lowering, SECTION_LAYER_BACKWARD, MARK_TP_ENTER_BACKWARD, op_whole(lowering, part),
                op_whole(lowering, own), half->enter_backward);
        part = own;
    }
    count_routed(lowering);
    lowering->layer_part &= ~SHARED_PART;
    const OpRef sum = op_whole(lowering, input_gradient(lowering, half));
    add_sum(lowering, SECTION_LAYER_BACKWARD, sum, op_whole(lowering, part), sum, lowering->dims.tokens * hidden);
}

// Backward through a layer of the half's input other than the experts: the router, the shared expert's gate.
static void side_backward(Lowering *lowering, const Half *half, const Linear *linear, int32_t dy, const char *part_name,
                          int32_t x) {
    const int32_t part = tokens_by(lowering, part_name, lowering->dims.hidden);
    add_input_gradient(lowering, SECTION_LAYER_BACKWARD, linear, op_whole(lowering, dy), part);
    add_weight_gradient(lowering, SECTION_LAYER_BACKWARD, linear, op_whole(lowering, dy), x);
    add_part(lowering, half, part, linear->name);
}

static void route_backward(Lowering *lowering, const Half *half, const ExpertTensors *tensors, int32_t dweights,
                           int32_t x) {
    const Linear router = router_linear(lowering), gate = gate_linear(lowering);
    const int32_t dlogits = tokens_by(lowering, "drouter_logits", lowering->model->experts.count);
    Op *op = add_routed(lowering, SECTION_LAYER_BACKWARD, TASK_ROUTE_BACKWARD, "choose experts backward");
    op->task.cols = lowering->model->experts.count;
    OP_OPERANDS(op, ACCESS_READ, op_whole(lowering, tensors->logits), op_whole(lowering, tensors->routing),
                op_whole(lowering, dweights));
    op_operand(op, op_whole(lowering, dlogits), ACCESS_WRITE);
    told(lowering, op, tensors->leave);
    told_router_backward(lowering, op);
    side_backward(lowering, half, &router, dlogits, "drouter_in", x);
    if (lowering->model->experts.router_bias) {
        add_column_sum(lowering, "bias gradient", op_whole(lowering, dlogits), "router_bias", "router_bias",
                       lowering->dims.tokens);
    }
    if (has_gate(lowering)) {
        side_backward(lowering, half, &gate, gate_of(lowering, "dshared_gate"), "dshared_gate_in", x);
    }
}

// Rows of an expert are added one after another (cost_repeated_s). Eager index_add_ adds by atomics: not priced.
static bool adds_biases_in_turn(const Lowering *lowering) {
    return indexes_experts(lowering) ||
           (lowering->target->runtime.repeats_biases && lowering->plan->fused == FUSED_COMPILED);
}

// Each row's gradient goes to the bias of its expert.
static void add_expert_bias(Lowering *lowering, const ExpertTensors *tensors, const char *slice, int32_t dy,
                            int64_t cols) {
    if (lowering->model->experts.bias) {
        Op *op = op_add(lowering, SECTION_LAYER_BACKWARD, TASK_COLUMN_SUM, PHASE_BACKWARD, "bias gradient");
        op_size(op, received_rows(lowering), cols);
        op->task.groups = adds_biases_in_turn(lowering) ? lowering_local_experts(lowering) : 0;
        op_operand(op, op_whole(lowering, dy), ACCESS_READ);
        op_operand(op, unit_slice(lowering, lowering->gradients[lowering_expert_unit(lowering)], slice, slice),
                   ACCESS_WRITE);
        op->task.replicated = grouped_replicated_bias(lowering, slice);
        told(lowering, op, tensors->come);
    }
}

static void gradient_to_experts(Lowering *lowering, const ExpertTensors *tensors, OpRef dsum, int32_t dweights,
                                int32_t dout) {
    const Section section = SECTION_LAYER_BACKWARD;
    if (dispatch_sums(lowering)) {
        dispatch(lowering, section, tensors, dsum, dout);
        return;
    }
    const bool moves = dispatch_moves(lowering);
    const int32_t dback = moves ? moved_by(lowering, "dexperts_back") : dout;
    Op *op = add_routed(lowering, section, TASK_UNPERMUTE_BACKWARD, "sum of experts backward");
    weigh_apart(lowering, op);
    add_in_order(lowering, op, routed_rows(lowering));
    op_operand(op, dsum, ACCESS_READ);
    op_operand(op, weighs_inputs(lowering) ? op_absent() : op_whole(lowering, tensors->back), ACCESS_READ);
    op_operand(op, op_whole(lowering, tensors->routing), ACCESS_READ);
    OP_OPERANDS(op, ACCESS_WRITE, op_whole(lowering, dback), op_whole(lowering, dweights));
    if (has_gate(lowering)) {
        op_operand(op, op_whole(lowering, shared_sum(lowering)), ACCESS_READ);
        op_operand(op, op_whole(lowering, gate_of(lowering, "dshared_gate")), ACCESS_WRITE);
        told(lowering, op, gate_of(lowering, "shared_gate"));
        if (gates_gradient(lowering)) {
            op_operand(op, op_whole(lowering, dshared_sum(lowering)), ACCESS_WRITE);
        }
    }
    if (moves) {
        dispatch(lowering, section, tensors, op_whole(lowering, dback), dout);
    }
}

static void gradient_from_experts(Lowering *lowering, const ExpertTensors *tensors, int32_t drouted, int32_t din) {
    const Section section = SECTION_LAYER_BACKWARD;
    if (dispatch_sums(lowering)) {
        combine(lowering, section, tensors, drouted, din);
        return;
    }
    const bool moves = dispatch_moves(lowering);
    const int32_t dsent = moves ? moved_by(lowering, "dexperts_sent") : drouted;
    if (moves) {
        combine(lowering, section, tensors, drouted, dsent);
    }
    lowering->layer_part = GRAPHED_ROUTER;
    Op *op = add_routed(lowering, section, TASK_UNPERMUTE, "tokens to experts backward");
    op->task.backward = true;
    add_rows_apart(lowering, op, routed_rows(lowering));
    OP_OPERANDS(op, ACCESS_READ, op_whole(lowering, dsent), op_whole(lowering, tensors->routing));
    op_operand(op, op_whole(lowering, din), ACCESS_WRITE);
}

static Op *activate_backward(Lowering *lowering, const ExpertTensors *tensors, int32_t dact, int32_t dgate_up) {
    const Section section = SECTION_LAYER_BACKWARD;
    const int32_t gate_up = lower_stored_backward(lowering, &stored, tensors->gate_up, stored_elements(lowering));
    Op *op = gates_experts(lowering)
                 ? add_gated(lowering, section, TASK_SWIGLU_BACKWARD, "experts swiglu backward")
                 : add_gated(lowering, section, TASK_ACTIVATION_BACKWARD, "experts activation backward");
    add_clamps(lowering, op, true, expert_ffn(lowering));
    weigh_plain(lowering, op, true);
    OP_OPERANDS(op, ACCESS_READ, op_whole(lowering, dact), op_whole(lowering, gate_up));
    if (gates_experts(lowering)) {
        op_operand(op, column(lowering, gate_up, expert_ffn(lowering)), ACCESS_READ);
    }
    op_operand(op, kept_values(lowering), ACCESS_READ);
    keep_clamped(lowering, op, ACCESS_READ);
    op_operand(op, op_whole(lowering, dgate_up), ACCESS_WRITE);
    if (gates_experts(lowering)) {
        op_operand(op, column(lowering, dgate_up, expert_ffn(lowering)), ACCESS_WRITE);
    }
    told(lowering, op, tensors->come);
    return op;
}

// From the gradient of the sum; returns the gradient of the weights of a token's experts.
static int32_t routed_backward(Lowering *lowering, const Half *half, const ExpertTensors *tensors, OpRef dsum) {
    const int64_t hidden = lowering->dims.hidden;
    const bool fuses = fuses_experts(lowering);
    const Grouped up = grouped_up(lowering), down = grouped_down(lowering);
    const int32_t din = input_gradient(lowering, half);
    const int32_t dout = received_by(lowering, "dexperts_out", hidden);
    const int32_t dact = fuses ? -1 : received_by(lowering, "dexperts_act", expert_ffn(lowering));
    const int32_t dgate_up = received_by(lowering, "dexperts_gate_up", expert_up_width(lowering));
    const int32_t drouted = received_by(lowering, "dexperts_in", hidden);
    const int32_t dweights = row_statistics(lowering, "drouting", routed_rows(lowering));
    gradient_to_experts(lowering, tensors, dsum, dweights, dout);
    page_rows(lowering, SECTION_LAYER_BACKWARD, tensors);
    add_expert_bias(lowering, tensors, "experts_down_bias", dout, hidden);
    Op *op = add_grouped_backward(lowering, &down, tensors, tensors->act, fuses ? dgate_up : dact, dout);
    hold_weighted(lowering, tensors, op, true);
    if (fuses) {
        fuse_activation_backward(lowering, op, tensors);
    } else {
        add_expert_biases(lowering, op, true, hidden);
        op = activate_backward(lowering, tensors, dact, dgate_up);
    }
    if (dispatch_sums(lowering)) {  // where the weights are separate from the results
        op_operand(op, weighs_inputs(lowering) ? op_absent() : op_whole(lowering, tensors->out), ACCESS_READ);
        op_operand(op, op_whole(lowering, dweights), ACCESS_WRITE);
    }
    if (!fuses) {
        add_expert_bias(lowering, tensors, "experts_up_bias", dgate_up, expert_up_width(lowering));
    }
    op = add_grouped_backward(lowering, &up, tensors, tensors->in, drouted, dgate_up);
    add_first_biases(lowering, op, true, expert_up_width(lowering));
    op->task.cast_bytes += grouped_apart_bytes(lowering, hidden);
    gradient_from_experts(lowering, tensors, drouted, din);
    add_part(lowering, half, din, "experts");
    return dweights;
}

void lower_experts_backward(Lowering *lowering, const Half *half, const NormBackward *stream) {
    const OpRef g = stream->residual;
    const bool apart = lowering_routes_apart(lowering), alone = apart && !has_shared(lowering);
    const HalfGradient gradient = alone ? (HalfGradient){.between = g, .full = -1} : half_gradient(lowering, half, g);
    count_routed(lowering);
    const ExpertTensors tensors = expert_tensors(lowering, half);
    const int32_t in = tokens_by(lowering, apart ? half->in : half->in_full, lowering->dims.hidden);
    const OpRef dsum = apart ? gradient.between : op_whole(lowering, gradient.full);
    const int32_t dweights = routed_backward(lowering, half, &tensors, dsum);
    lowering->layer_part = GRAPHED_ROUTER;
    if (has_shared(lowering) && !shared_goes_first(lowering)) {
        shared_backward(lowering, half, &gradient);
    }
    route_backward(lowering, half, &tensors, dweights, in);
    if (has_shared(lowering) && shared_goes_first(lowering)) {
        shared_backward(lowering, half, &gradient);
    }
    count_all(lowering);
    if (apart) {
        half_norm_backward(lowering, half, op_whole(lowering, between_by_hidden(lowering, half->din)), stream);
    } else {
        half_enter_backward(lowering, half, stream);
    }
    lowering->layer_part = 0;
}

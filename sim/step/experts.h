// What the parts of an MoE half share: lower_experts.c, lower_dispatch.c, lower_apart.c.

#pragma once

#include "sim/step/lower_ops.h"

// Task.part of what graphs of the router hold beside it, a shared expert, whose modules are those of any MLP; and of
// what no graph of a part holds, the sum with the stream behind experts.
enum { SHARED_PART = GRAPHED_SETS, OPEN_PART = 2 * GRAPHED_SETS };

typedef struct ExpertTensors {
    int32_t logits, routing;  // routing: weight and place of each routed row, f32 and i32
    int32_t leave, come;      // rows per expert sent from here; per local expert and source rank. Gathered: which
    int32_t in, gate_up, act, out;
    int32_t back;  // the sum's input: out, or what ranks sent back, a row for every visit or token
} ExpertTensors;

int64_t routed_rows(const Lowering *lowering);    // expert rows of the local tokens, one per visit
int64_t received_rows(const Lowering *lowering);  // rows of the local experts, on the busiest rank
int32_t routed_by(Lowering *lowering, const char *name, int64_t width);
int32_t received_by(Lowering *lowering, const char *name, int64_t width);
void told(Lowering *lowering, Op *op, int32_t tensor);
void told_router(Lowering *lowering, Op *op);           // lower_router.c: the choice
void told_router_backward(Lowering *lowering, Op *op);  //   and its gradient
Op *add_routed(Lowering *lowering, Section section, TaskKind kind, const char *name);

// ---- between ranks (lower_dispatch.c): backward is forward reversed; the section says which

bool dispatch_moves(const Lowering *lowering);    // rows are moved between their order and the products
bool dispatch_sums(const Lowering *lowering);     // takes tokens and returns their summed results
bool dispatch_gathers(const Lowering *lowering);  // all tokens to every rank
void exchange_counts(Lowering *lowering, const ExpertTensors *tensors);
// Tokens, or rows in the order of the experts of all ranks -> rows of the local experts.
void dispatch(Lowering *lowering, Section section, const ExpertTensors *tensors, OpRef sent, int32_t to);
void combine(Lowering *lowering, Section section, const ExpertTensors *tensors, int32_t from, int32_t to);

// ---- products (lower_grouped.c)

typedef struct Grouped {
    const char *name, *dgrad, *wgrad, *weights, *bias;
    int64_t in, out;
    bool activated;  // the activation reads its result
} Grouped;

static inline bool fuses_experts(const Lowering *lowering) {  // with their activation
    return lowering->plan->op_fuser && lowering->model->experts.count > 0;
}
static inline bool gates_experts(const Lowering *lowering) {
    return lowering->model->mlp == MLP_GATED;
}
// Gated, weighed and cast operation by operation (bias_activation_fusion off).
static inline bool gates_apart(const Lowering *lowering) {
    const Target *target = lowering->target;
    return gates_experts(lowering) && target->gate_kept && target->expert_flavour == EXPERTS_PERMUTE_KERNELS;
}
int64_t expert_ffn(const Lowering *lowering);
int64_t expert_up_width(const Lowering *lowering);  // what the first product gives a row: gate and up, or up alone
Grouped grouped_up(const Lowering *lowering);
Grouped grouped_down(const Lowering *lowering);
Op *add_grouped_forward(Lowering *lowering, const Grouped *grouped, const ExpertTensors *tensors, int32_t x, int32_t y);
// Returns the product that computes the input's gradient.
Op *add_grouped_backward(Lowering *lowering, const Grouped *grouped, const ExpertTensors *tensors, int32_t x,
                         int32_t dx, int32_t dy);
int64_t grouped_apart_bytes(const Lowering *lowering, int64_t width);
int64_t grouped_replicated_bias(const Lowering *lowering, const char *bias);
void fuse_activation(Lowering *lowering, Op *up, const ExpertTensors *tensors);
void fuse_activation_backward(Lowering *lowering, Op *down_dgrad, const ExpertTensors *tensors);

// ---- operations of their own around the products (lower_apart.c)

void add_expert_biases(const Lowering *lowering, Op *op, bool backward, int64_t width);
void add_first_biases(const Lowering *lowering, Op *op, bool backward, int64_t width);  // of gate and up
void add_clamps(const Lowering *lowering, Op *op, bool backward, int64_t width);
void add_rows_apart(const Lowering *lowering, Op *op, int64_t rows);
void put_rows(const Lowering *lowering, Op *op, int64_t rows, bool adds);
bool indexes_experts(const Lowering *lowering);  // rows and biases are picked by an index (grouped_mm of transformers)
void add_in_order(const Lowering *lowering, Op *op, int64_t rows);  //   and rows' gradients put back so
void cast_results(const Lowering *lowering, Op *op, int64_t rows);
void weigh_apart(const Lowering *lowering, Op *op);
void weigh_plain(const Lowering *lowering, Op *op, bool backward);
void weigh_received(const Lowering *lowering, Op *op, bool backward);
void page_rows(Lowering *lowering, Section section, const ExpertTensors *tensors);

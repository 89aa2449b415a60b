// What the parts of a half of experts share: lower_experts.c and lower_dispatch.c.

#pragma once

#include "sim/step/lower_ops.h"

typedef struct ExpertTensors {
    int32_t logits, routing;  // routing: weight and place of each routed row, f32 and i32
    int32_t leave, come;      // rows of every expert from here; of the experts here from every rank. Gathered: which
    int32_t in, gate_up, act, out;
    int32_t back;  // results as the sum reads them: out, or what ranks sent back, a row for every visit or token
} ExpertTensors;

int64_t routed_rows(const Lowering *lowering);    // that experts see of the tokens here, each once for every visit
int64_t sent_rows(const Lowering *lowering);      // of these, those that the capacity leaves; padded, what it says
int64_t received_rows(const Lowering *lowering);  // that the experts here see, on the busiest rank
int64_t rows_of_room(const Lowering *lowering);
int32_t routed_by(Lowering *lowering, const char *name, int64_t width);
int32_t received_by(Lowering *lowering, const char *name, int64_t width);
void told(Lowering *lowering, Op *op, int32_t tensor);
void told_router(Lowering *lowering, Op *op);           // lower_router.c: the choice
void told_router_backward(Lowering *lowering, Op *op);  //   and its gradient
Op *add_routed(Lowering *lowering, Section section, TaskKind kind, const char *name);

// ---- between ranks (lower_dispatch.c): backward is the same in reverse, section says which

bool dispatch_sums(const Lowering *lowering);     // takes tokens, and gives their summed results back
bool dispatch_gathers(const Lowering *lowering);  // all of them to every rank
void exchange_counts(Lowering *lowering, const ExpertTensors *tensors);
// Tokens, or rows in the order of the experts of all ranks -> rows of the experts here.
void dispatch(Lowering *lowering, Section section, const ExpertTensors *tensors, OpRef sent, int32_t to);
void combine(Lowering *lowering, Section section, const ExpertTensors *tensors, int32_t from, int32_t to);

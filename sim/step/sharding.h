// Shared by the files of the sharding pass: what the units' tensors are, gathers, reductions.

#pragma once

#include "sim/step/lower_ops.h"

// ---- lower_unit_tensors.c

int32_t unit_tensor(Lowering *lowering, const char *name, BufferRole role, Dtype dtype, int64_t elements,
                    int32_t slots);
bool sharding_gathers(const Lowering *lowering);
Dtype updated_dtype(const Lowering *lowering);                  // in which the optimizer reads gradients
bool sharding_adds_half(const Lowering *lowering);              // gradients to those of a wider format
bool sharding_sums_shards(const Lowering *lowering, int unit);  // of several reductions in a step
int32_t sharding_ring_slots(const Unit *unit, int depth);

// Ranks with the same whole gradient of a unit, each of other tokens.
int16_t sharding_data_group(const Lowering *lowering, int unit);

// ---- lower_sharding.c

// Where an operation on a unit goes.
typedef struct Place {
    int unit;
    int index;  // layer offset, or the slot itself when absolute
    bool absolute;
    int guard;
    Phase phase;
    OpList *out;
    const OpRef *behind;  // a gather waits for it; NULL
} Place;

OpRef place_ref(const Lowering *lowering, const Place *place, int32_t tensor);
Op *place_append(Lowering *lowering, const Place *place, Op op);
Op *place_move(Lowering *lowering, const Place *place, LaneId lane, Op op, int32_t from, int32_t to);
Op *place_copy(Lowering *lowering, const Place *place, LaneId lane, const char *name, int32_t from, int32_t to);
Op *place_collective(Lowering *lowering, const Place *place, Op op, OpRef in, OpRef out);

// With a root unit the embedding's mark handles it: the head's does nothing.
bool sharding_is_in_root(const Lowering *lowering, const Op *mark);

// ---- lower_reduce.c

void sharding_emit_gradient(Lowering *lowering, OpList *out, const Op *mark);

// Whole gradients that are summed over micro-steps: every write after the first micro-step adds.
void sharding_accumulate(Lowering *lowering, OpList *list);

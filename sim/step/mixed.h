// Dense layers and MoE layers on one stage; private to sim/step (lower_mixed.c).

#pragma once

#include "sim/step/lower.h"

void mixed_begin(Lowering *lowering, LayerKind kind);  // everything until mixed_end belongs to layers of this kind
void mixed_end(Lowering *lowering);
const char *mixed_name(const Lowering *lowering, const char *name);  // of a tensor
const char *mixed_plain_name(const char *name);                      // the name in a model with one kind of layer
bool mixed_is_dense_name(const char *name);
bool lowering_is_mixed(const Lowering *lowering);
void mixed_choose(Lowering *lowering, ModelSpec *model);
void mixed_set_widest(Lowering *lowering, int unit, int32_t tensor);
int64_t mixed_kept_bytes(const Lowering *lowering, int64_t bytes, double share);
double mixed_share_of(const Lowering *lowering, BufferRole role, Dtype dtype);
void mixed_zero_others(Lowering *lowering);  // gradients
void mixed_drop_zeros(OpList *list);
void mixed_keep_share(const Tensor *tensor, BufferRef *ref);

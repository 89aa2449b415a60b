// Dense and MoE layers on one stage (DeepSeek's first layers, Llama 4's every second). A program has one list of
// operations for all layers, so with both kinds a layer is their mean: it has both feed-forward halves, each weighted
// by the share of layers that have it. Time, exchanges, weights, their states and what backward keeps are those shares
// of a whole one, so their sums over a stage's layers are as if each layer were of its own kind; what lives within a
// layer has room for a whole one. A stage of one kind is lowered as that kind. Our own executor runs each layer as its
// own kind, one after another: operations of a kind are in the loops of its layers alone, and a layer has room for both
// halves, with zero gradient for the other one. Not modelled: that order where layers are a mean.

#include <math.h>
#include <string.h>

#include "sim/step/lower_ops.h"
#include "sim/step/mixed.h"

#define DENSE "dense "

bool lowering_is_mixed(const Lowering *lowering) {
    return lowering->dense_share > 0;
}

bool mixed_is_dense_name(const char *name) {
    return strncmp(name, DENSE, sizeof DENSE - 1) == 0;
}

const char *mixed_plain_name(const char *name) {
    return mixed_is_dense_name(name) ? name + sizeof DENSE - 1 : name;
}

const char *mixed_name(const Lowering *lowering, const char *name) {
    return lowering->in_dense ? arena_format(lowering->arena, DENSE "%s", name) : name;
}

static int dense_layers(const ModelSpec *model) {
    int count = 0;
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        count += run.kind == LAYER_DENSE ? run.count : 0;
    }
    return count;
}

// By the stage's own layers; a model whose layers are all dense here has no experts here.
void mixed_choose(Lowering *lowering, ModelSpec *model) {
    const int dense = dense_layers(model);
    if (model->layers == 0) {
        return;
    }
    lowering->in_turn = lowering->target->own_kernels && !lowering->choice->mean && dense > 0;
    if (dense == model->layers && !lowering->in_turn) {
        model->experts = (Experts){.count = 0};
    } else {
        lowering->dense_share = (double)dense / model->layers;
    }
}

void mixed_begin(Lowering *lowering, LayerKind kind) {
    if (!lowering_is_mixed(lowering)) {
        return;
    }
    lowering->in_dense = kind == LAYER_DENSE;
    lowering->only = (int8_t)(lowering->in_turn ? 1 + kind : 0);
    lowering->share = lowering->in_turn ? 0 : kind == LAYER_DENSE ? lowering->dense_share : 1 - lowering->dense_share;
    const int ffn = kind == LAYER_DENSE ? lowering->model->ffn : lowering->model->experts.shared_ffn;
    lowering->dims.ffn = ffn / lowering->tp;
}

void mixed_end(Lowering *lowering) {
    mixed_begin(lowering, LAYER_EXPERTS);
    lowering->share = 0;
    lowering->only = 0;
}

// Zeroes gradients of slices that layers of the other kind leave untouched.
void mixed_zero_others(Lowering *lowering) {
    for (int u = 0; u < lowering->unit_count && lowering->in_turn; u++) {
        const Unit *unit = &lowering->units[u];
        for (int32_t i = unit->first_slice; i < unit->first_slice + unit->slice_count; i++) {
            const ParamSlice *slice = &lowering->slices[i];
            if (slice->only == 0 || !unit->trainable) {
                continue;
            }
            const OpRef gradient = unit_slice(lowering, lowering->gradients[u], slice->name, slice->name);
            Op *zero = op_add(lowering, SECTION_LAYER_BACKWARD, TASK_ZERO, PHASE_BACKWARD, "zero of other layers");
            zero->task.dtype = lowering->dims.gradient_dtype;
            op_size(zero, 1, gradient.bytes / dtype_bytes(zero->task.dtype));
            zero->only = (int8_t)(slice->only == 1 + LAYER_DENSE ? 1 + LAYER_EXPERTS : 1 + LAYER_DENSE);
            op_operand(zero, gradient, ACCESS_WRITE);
        }
    }
}

// For micro-steps that accumulate into existing gradients.
void mixed_drop_zeros(OpList *list) {
    size_t left = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->ops[i]->only == 0 || list->ops[i]->task.kind != TASK_ZERO) {
            list->ops[left++] = list->ops[i];
        }
    }
    list->count = left;
}

// A tensor that holds one whole layer at a time.
void mixed_set_widest(Lowering *lowering, int unit, int32_t tensor) {
    const int64_t *of_kind = lowering->widest[unit], mean = lowering->units[unit].elements;
    const int64_t widest =
        of_kind[LAYER_DENSE] > of_kind[LAYER_EXPERTS] ? of_kind[LAYER_DENSE] : of_kind[LAYER_EXPERTS];
    if (lowering_is_mixed(lowering) && widest > mean) {
        const int64_t bytes = lowering->tensors[tensor].bytes;
        lowering->tensors[tensor].widest_bytes = (int64_t)ceil((double)bytes * (double)widest / (double)mean);
    }
}

// For tensors with a slot per layer; proportional to the micro-batch, as whole ones are. Something is left of each.
int64_t mixed_kept_bytes(const Lowering *lowering, int64_t bytes, double share) {
    const int64_t sequences = lowering->plan->micro_batch;
    const int64_t each = bytes % sequences == 0 ? bytes / sequences : bytes;
    const int64_t kept = (int64_t)(share * (double)each);
    return share > 0 ? bytes / each * (kept > 0 ? kept : 1) : bytes;
}

// For sizes that depend on tokens.
double mixed_share_of(const Lowering *lowering, BufferRole role, Dtype dtype) {
    return role == ROLE_ACTIVATION && dtype != DTYPE_INT32 ? lowering->share : 0;
}

// Of a tensor that has a share.
void mixed_keep_share(const Tensor *tensor, BufferRef *ref) {
    const bool to_end = ref->offset_bytes + ref->bytes == tensor->whole_bytes;
    ref->offset_bytes = (int64_t)(tensor->share * (double)ref->offset_bytes);
    ref->rank_stride_bytes = (int64_t)(tensor->share * (double)ref->rank_stride_bytes);
    ref->bytes = to_end ? tensor->bytes - ref->offset_bytes : (int64_t)(tensor->share * (double)ref->bytes);
}

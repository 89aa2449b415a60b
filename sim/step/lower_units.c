// Units and their flat layout: what is gathered and reduced together. Norms come first, so that what every tp rank
// holds is a leading stretch; the shard is an equal contiguous slice, so a gather writes weights where a GEMM reads
// them and a reduction reads gradients where they were written.

#include <string.h>

#include "sim/step/lower.h"

enum { SHARD_ALIGN_ELEMENTS = 64 };  // 256 bytes of fp32

// Llama's published initialisation: normal, 0.02 (Touvron et al. 2023 follow GPT-2's constant).
static const double INIT_STD = 0.02;

static void add_slice(Lowering *lowering, Unit *unit, const char *name, ParamSplit split, int64_t rows, int64_t cols) {
    const int tp = lowering->tp;
    const bool norm = rows == 1;
    lowering->slices[lowering->slice_count] = (ParamSlice){
        .name = name,
        .tensor = unit->slice_count,
        .split = split,
        .trainable = true,
        .decay = !norm,
        .global_rows = rows,
        .global_cols = cols,
        .local_rows = split == SPLIT_ROWS ? rows / tp : rows,
        .local_cols = split == SPLIT_COLS ? cols / tp : cols,
        .offset_elements = unit->elements,
        .init_std = norm ? 0 : INIT_STD,
        .init_value = norm ? 1 : 0,
    };
    const ParamSlice *slice = &lowering->slices[lowering->slice_count++];
    ASSERT(lowering->slice_count <= MAX_SLICES);
    unit->slice_count++;
    unit->elements += slice->local_rows * slice->local_cols;
    if (split == SPLIT_NONE && unit->replicated_elements == slice->offset_elements) {
        unit->replicated_elements = unit->elements;
    }
}

static Unit *begin_unit(Lowering *lowering, int index, const char *name, int instances) {
    Unit *unit = &lowering->units[index];
    *unit = (Unit){.name = name,
                   .instances = instances,
                   .first_slice = lowering->slice_count,
                   .master = -1,
                   .moment1 = -1,
                   .moment2 = -1,
                   .gradient_shard = -1,
                   .working = -1,
                   .gathered = -1,
                   .gradient_full = -1};
    return unit;
}

static void end_unit(const Lowering *lowering, Unit *unit) {
    const int64_t grain = (int64_t)lowering->shards * SHARD_ALIGN_ELEMENTS;
    unit->padded_elements = (unit->elements + grain - 1) / grain * grain;
    unit->shard_elements = unit->padded_elements / lowering->shards;
}

void lower_units(Lowering *lowering) {
    const ModelSpec *model = lowering->model;
    const int64_t hidden = model->hidden;
    const int64_t q = (int64_t)model->heads * model->head_dim;
    const int64_t kv = (int64_t)model->kv_heads * model->head_dim;
    const ParamSplit vocabulary = lowering->dims.vocab_split ? SPLIT_ROWS : SPLIT_NONE;

    Unit *embedding = begin_unit(lowering, UNIT_EMBEDDING, "embedding", 1);
    add_slice(lowering, embedding, "embed", vocabulary, model->vocab, hidden);
    end_unit(lowering, embedding);

    Unit *layer = begin_unit(lowering, UNIT_LAYER, "layer", model->layers);
    add_slice(lowering, layer, "attention_norm", SPLIT_NONE, 1, hidden);
    add_slice(lowering, layer, "mlp_norm", SPLIT_NONE, 1, hidden);
    add_slice(lowering, layer, "wq", SPLIT_ROWS, q, hidden);
    add_slice(lowering, layer, "wk", SPLIT_ROWS, kv, hidden);
    add_slice(lowering, layer, "wv", SPLIT_ROWS, kv, hidden);
    add_slice(lowering, layer, "wo", SPLIT_COLS, hidden, q);
    add_slice(lowering, layer, "wgate", SPLIT_ROWS, model->ffn, hidden);
    add_slice(lowering, layer, "wup", SPLIT_ROWS, model->ffn, hidden);
    add_slice(lowering, layer, "wdown", SPLIT_COLS, hidden, model->ffn);
    end_unit(lowering, layer);

    Unit *head = begin_unit(lowering, UNIT_HEAD, "head", 1);
    add_slice(lowering, head, "final_norm", SPLIT_NONE, 1, hidden);
    if (!model->tied_embeddings) {
        add_slice(lowering, head, "lm_head", vocabulary, model->vocab, hidden);
    }
    end_unit(lowering, head);
}

static const ParamSlice *find_slice(const Lowering *lowering, const char *name) {
    for (int32_t i = 0; i < lowering->slice_count; i++) {
        if (strcmp(lowering->slices[i].name, name) == 0) {
            return &lowering->slices[i];
        }
    }
    ASSERT(!"no such parameter");
    return NULL;
}

// The stretch from one slice to another of the same unit, in a tensor with the unit's flat layout (weights or
// gradients).
OpRef unit_slice(const Lowering *lowering, int32_t tensor, const char *slice, const char *last_slice) {
    const ParamSlice *first = find_slice(lowering, slice);
    const ParamSlice *last = find_slice(lowering, last_slice);
    const int element = dtype_bytes(lowering->tensors[tensor].dtype);
    OpRef ref = op_whole(lowering, tensor);
    ref.offset_bytes = first->offset_elements * element;
    ref.bytes = (last->offset_elements + last->local_rows * last->local_cols) * element - ref.offset_bytes;
    return ref;
}

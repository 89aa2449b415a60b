// The parameters of a StepProgram: slices (a matrix, a bias) back to back in units, which are gathered, reduced and
// updated whole. Where their bytes are is in the buffers that a unit names.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/dtype.h"
#include "sim/plan/optimizers.h"

// How a parameter is cut over tp.
typedef enum { SPLIT_NONE, SPLIT_ROWS, SPLIT_COLS } ParamSplit;

typedef struct ParamSlice {
    const char *name;  // "wq"
    int32_t part;      // embedding, layer or head, whatever unit it is in
    int32_t tensor;    // stable id inside the part; with part and layer it keys initial values
    ParamSplit split;
    bool decay;  // AdamW weight decay applies (not to norms)
    int64_t global_rows, global_cols;
    int64_t local_rows, local_cols;
    int32_t blocks;           // of which the local rows are parts, each cut by itself
    int64_t block_rows;       // of a whole one
    bool spread;              // ranks of ep have other blocks
    bool unnumbered;          // not counted by ids: zeros, in another place where ep spreads experts; dense layers' own
    int64_t offset_elements;  // inside the unit's flat parameter
    double share;             // of the layers that have it, where a stage has two kinds; 0 = all
    int8_t only;              // of layers of a kind, others leave it alone: 1 + LayerKind; 0 = all
    double init_std;          // 0 = filled with init_value
    double init_value;
} ParamSlice;

// A row of a slice as a rank has it, and which of the whole parameter it is.
typedef struct SliceRow {
    int tp_index, ep_index;
    int64_t local;
} SliceRow;

static inline int64_t slice_global_row(const ParamSlice *slice, const SliceRow *row) {
    const int64_t part = slice->local_rows / slice->blocks;
    const int64_t block = row->local / part + (slice->spread ? (int64_t)row->ep_index * slice->blocks : 0);
    return block * slice->block_rows + (slice->split == SPLIT_ROWS ? row->tp_index * part : 0) + row->local % part;
}

static inline SliceRow slice_row_of(const ParamSlice *slice, int64_t global) {
    const int64_t part = slice->local_rows / slice->blocks;
    const int64_t block = global / slice->block_rows, in_block = global % slice->block_rows;
    return (SliceRow){.tp_index = slice->split == SPLIT_ROWS ? (int)(in_block / part) : 0,
                      .ep_index = slice->spread ? (int)(block / slice->blocks) : 0,
                      .local = block % slice->blocks * part + in_block % part};
}

// Order of StepProgram.units, and the parts of a model. With a root unit the first one is all of embedding, final norm
// and head: there are two, or that of the head is empty. The last one is there where ep spreads experts, or where a
// target keeps adapters apart from the layer that they are in; never both.
enum { UNIT_EMBEDDING, UNIT_LAYER, UNIT_HEAD, UNIT_EXPERTS, UNIT_COUNT, UNIT_ADAPTERS = UNIT_EXPERTS };

// A group of parameters that is gathered, reduced and updated together: embedding, one decoder layer, final norm and
// head; or the edges in one, and one decoder layer; and a layer's experts, where a rank has a part of them. All flat:
// slices back to back. Each has ranks of its own: those that share it, and those that hold the same shard. One that
// is not trainable has no gradient and no optimizer state, and no task computes, reduces or sums one.
typedef struct Unit {
    const char *name;                    // "embedding" "layer" "head", or "root" "layer"; "experts"
    bool layered;                        // an instance per layer
    bool trainable;                      // else frozen
    Dtype dtype;                         // that forward and backward read it in
    Optimizer optimizer;                 // where it is trainable; TARGET: the target's own, as it stands in its row
    int32_t instances;                   // layers where layered, else 1; 0 = other stages hold it
    int32_t shards;                      // ranks that share it; 1 = each holds the whole
    int16_t shard_group, replica_group;  // indices into groups
    int32_t first_slice, slice_count;
    int64_t elements;         // tp-local, without padding; of layers of two kinds the mean
    int64_t padded_elements;  // multiple of shards * 64
    int64_t shard_elements;   // padded_elements / shards
    // Of the leading slices that are trained, the same: all, or the adapters in front of what is frozen. Gradients,
    // moments and masters are of these.
    int64_t trained_elements, trained_padded, trained_shard;
    int32_t trained_slices;
    int64_t partial_elements;     // leading elements whose gradient every tp rank has a part of
    int64_t replicated_elements;  // leading elements that every tp rank holds (norms, positions; TP_HF: edges too)
    // Buffers (slots = instances), -1 where absent, as are states that the optimizer does not have. Working copy = what
    // forward reads when not gathered.
    int32_t master, moment1, moment2, gradient_shard, working, gathered, gradient_full;
} Unit;

// Are its matrices updated whole, by Newton-Schulz products?
static inline bool unit_is_orthogonalized(const Unit *unit) {
    return unit->layered && optimizer_rows[unit->optimizer].rule == UPDATE_MATRICES;
}

enum { SHARD_ALIGN_ELEMENTS = 64 };  // 256 bytes of fp32

static inline int64_t unit_padded(int64_t elements, int32_t shards) {
    const int64_t grain = (int64_t)shards * SHARD_ALIGN_ELEMENTS;
    return (elements + grain - 1) / grain * grain;
}

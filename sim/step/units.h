// The parameters of a StepProgram: slices (a matrix, a bias) packed back to back in units, which are gathered, reduced
// and updated as a whole. The buffers that a unit names hold their bytes.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/dtype.h"
#include "sim/plan/optimizers.h"

// How tp splits a parameter.
typedef enum { SPLIT_NONE, SPLIT_ROWS, SPLIT_COLS } ParamSplit;

typedef struct ParamSlice {
    const char *name;  // "wq"
    int32_t part;      // embedding, layer or head, whichever unit holds it
    int32_t tensor;    // stable id within the part; with part and layer it keys initial values
    ParamSplit split;
    bool decay;  // AdamW weight decay applies (not to norms)
    int64_t global_rows, global_cols;
    int64_t local_rows, local_cols;
    int32_t blocks;           // blocks that the local rows belong to, each split separately
    int64_t block_rows;       // rows of a whole block
    bool spread;              // each ep rank has different blocks
    int32_t parameters;       // that the framework has of it; 0 where it is one with the slice before it, or a buffer
    bool unnumbered;          // not counted by ids: zeros, placed elsewhere where ep shards experts; dense layers' own
    int64_t offset_elements;  // within the unit's flat parameter
    double share;             // fraction of layers that have it, where a stage has two kinds; 0 = all
    int8_t only;              // only layers of one kind have it, others skip it: 1 + LayerKind; 0 = all
    double init_std;          // 0 = filled with init_value
    double init_value;
} ParamSlice;

static inline bool slice_is_matrix(const ParamSlice *slice) {
    return slice->local_rows > 1 && slice->local_cols > 1;
}

static inline int32_t slices_parameters(const ParamSlice *slices, int32_t count) {
    int32_t parameters = 0;
    for (int32_t i = 0; i < count; i++) {
        parameters += slices[i].parameters;
    }
    return parameters;
}

// A row of a slice: which rank holds it, and at which local row.
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

// Order of StepProgram.units, and the parts of a model. With a root unit the first one holds embedding, final norm and
// head: there are two units, or the head's is empty. The last one exists where ep shards experts, or where a target
// keeps adapters separate from their layer; never both.
enum { UNIT_EMBEDDING, UNIT_LAYER, UNIT_HEAD, UNIT_EXPERTS, UNIT_COUNT, UNIT_ADAPTERS = UNIT_EXPERTS };

// A group of parameters that is gathered, reduced and updated together: embedding, one decoder layer, final norm and
// head; or the edges in one, and one decoder layer; and a layer's experts, where a rank has part of them. All flat:
// slices back to back. Each has its own groups: the ranks that shard it, and the ranks that hold the same shard. A unit
// that is not trainable has no gradient and no optimizer state, and no task computes, reduces or sums one.
typedef struct Unit {
    const char *name;                    // "embedding" "layer" "head", or "root" "layer"; "experts"
    bool layered;                        // one instance per layer
    bool trainable;                      // else frozen
    Dtype dtype;                         // dtype that forward and backward read
    Optimizer optimizer;                 // if trainable; TARGET: the target's default, as in its row
    int32_t instances;                   // layers if layered, else 1; 0 = other stages hold it
    int32_t shards;                      // ranks it is sharded over; 1 = each holds the whole
    int16_t shard_group, replica_group;  // indices into groups
    int32_t first_slice, slice_count;
    int64_t elements;         // tp-local, unpadded; the mean where a stage has two kinds of layers
    int64_t padded_elements;  // multiple of shards * 64
    int64_t shard_elements;   // padded_elements / shards
    // The same for the leading slices that are trained: all, or the adapters that precede the frozen slices. Gradients,
    // moments and masters cover these.
    int64_t trained_elements, trained_padded, trained_shard;
    int32_t trained_slices;
    int32_t hook_buckets;         // of all instances, that DDP's hook reduces one by one; 0 where it is sharded
    int64_t partial_elements;     // leading elements whose gradient is a partial sum on every tp rank
    int64_t replicated_elements;  // leading elements replicated on every tp rank (norms, positions; TP_HF: edges too)
    // Buffers (slots = instances), -1 where absent, as are states the optimizer does not have. Working copy = what
    // forward reads when not gathered.
    int32_t master, moment1, moment2, gradient_shard, working, gathered, gradient_full, gradient_half;
} Unit;

// Whether its matrices are updated as a whole, by Newton-Schulz products.
static inline bool unit_is_orthogonalized(const Unit *unit) {
    return unit->layered && optimizer_rows[unit->optimizer].rule == UPDATE_MATRICES;
}

enum { SHARD_ALIGN_ELEMENTS = 64 };  // 256 bytes of fp32

static inline int64_t unit_padded(int64_t elements, int32_t shards) {
    const int64_t grain = (int64_t)shards * SHARD_ALIGN_ELEMENTS;
    return (elements + grain - 1) / grain * grain;
}

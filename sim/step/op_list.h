// Operations of a step on tensors, before they are tasks: in one list per section of the step, with marks where
// parallelism matters. Private to sim/step.

#pragma once

#include "sim/step/step.h"

typedef enum {
    SECTION_BEGIN,           // micro-step: tokens, embedding
    SECTION_LAYER_FORWARD,   // x layers
    SECTION_TAIL,            // final norm, head, loss and their backward
    SECTION_LAYER_BACKWARD,  // x layers, descending
    SECTION_KEPT_BACKWARD,   //   for layers that are not recomputed where others are; empty where all are alike
    SECTION_END,             // embedding backward
    SECTION_TAIL_WEIGHTS,    // with a split backward: weight gradients of head, layers, kept layers, embedding
    SECTION_LAYER_WEIGHTS,
    SECTION_KEPT_WEIGHTS,
    SECTION_END_WEIGHTS,
    SECTION_NORM,          // once per step: gradient norm set to zero
    SECTION_NORM_LAYER,    //   square sums, x layers
    SECTION_UPDATE,        //   square sums of the edge units, all-reduce, clip scale, AdamW of the edge units
    SECTION_UPDATE_LAYER,  //   AdamW, x layers
    SECTION_COUNT
} Section;

// Marks are placeholders that a later pass replaces. None remain at the end.
typedef enum {
    MARK_NONE,
    MARK_TP_ENTER,           // x -> x seen by every tp rank (Megatron's g-bar or f)
    MARK_TP_LEAVE,           // partial sums -> their sum, back in the layout between blocks
    MARK_TP_PART_BACKWARD,   // one projection's input gradient, a partial sum over tp
    MARK_TP_ENTER_BACKWARD,  // input gradient of all projections, partial -> summed
    MARK_TP_LEAVE_BACKWARD,  // gradient of the summed output -> whole on every tp rank
    MARK_LOSS,               // logits -> loss and gradient
    MARK_UNIT_NEED,          // this unit's weights are read from here on
    MARK_UNIT_BACKWARD,      // backward of the section begins: where a backward prefetch is issued
    MARK_UNIT_GRADIENT,      // this unit's gradient of the micro-step is complete
} Mark;

enum { OP_MAX_OPERANDS = 13 };

// Operands of marks.
enum { AT_MARK_FROM, AT_MARK_TO, AT_MARK_SCALE };
enum { AT_MARK_LOGITS, AT_MARK_TARGETS };  // of the rows given by the mark's task

typedef struct OpRef {
    int32_t tensor;  // -1 = absent
    int16_t index;   // layer offset inside layered sections, absolute slot index elsewhere
    int16_t rank_group, rank_shift;
    int64_t rank_stride_bytes;
    int64_t offset_bytes, bytes;
    Access access;
} OpRef;

typedef struct Op {
    Mark mark;
    Task task;                 // operands and events are still in `operands`
    const struct Op *copy_of;  // NULL: of none
    int32_t place;             // after its task in the program; 0 = it has none
    int operand_count;
    bool absolute;                    // a layered section's op whose indices are absolute
    int8_t only;                      // of layers of a kind: 1 + LayerKind; 0 = of all layers
    OpRef operands[OP_MAX_OPERANDS];  // last: those from operand_count on are undefined
} Op;

// Operations are created once and passed by pointer from list to list.
typedef struct OpList {
    Op **ops;
    size_t count, capacity;
} OpList;

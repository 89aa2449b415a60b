// What fp8 changes: the layers' GEMMs read fp8 operands, everything else stays bf16. Which tensors exist in fp8 depends
// on where the framework casts:
//
//   torchao             casts inside each GEMM and saves bf16 inputs (float8_linear.py); scales per tensor: the
//                       weights' shards are cast before their gather (fsdp_utils.py), and so is what tp ranks gather
//                       (float8_tensor_parallel.py); all others (rows, MX, NVFP4): all gathers stay bf16
//   Transformer Engine  saves and gathers inputs in fp8; keeps fp8 copies of the weights, one of them transposed, made
//                       with the first micro-step (pytorch/module/linear.py); or fp8 weights alone (fp8_parameters,
//                       Megatron-core's --fp8-param-gather): the update writes its shard of them, ranks gather that,
//                       and the transposed copy is made from it, in stage 3 by each backward, which discards it
//                       (distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py, fp8_create_transpose_cache). MX has
//                       separate scales for each copy: ranks gather bf16, into the gradient buffer, and cast that
//                       twice (Megatron-core 0.19, optimizer/distrib_optimizer.py,
//                       distributed/param_and_grad_buffer.py)
//
// A per-tensor scale from current values is the maximum over all tp ranks: one number reduced before the gather, also
// for nvfp4 (NVFP4Quantizer, with_amax_reduction). Delayed scales are all reduced together after forward and after
// backward. Traffic of casts before GEMMs: fp8_casts.c. Not modelled: the first projection of layer 0, which may be
// left in bf16; reductions of scales of operands that no tp rank gathers; the pass over updated weights that finds
// their maxima. Blackwell's tensor cores need no transposed copy of what has one scale.

#include <string.h>

#include "sim/step/lower_ops.h"

// 4 bits plus a scale byte for each 16; the scales of the others are neglected.
enum { NVFP4_BYTES = 9, NVFP4_BLOCK = 16 };

static bool is_nvfp4(const Lowering *lowering) {
    return lowering->plan->fp8_recipe == FP8_NVFP4;
}

int64_t fp8_stored_bytes(const Lowering *lowering, int64_t elements) {
    return is_nvfp4(lowering) ? elements * NVFP4_BYTES / NVFP4_BLOCK : elements;
}

int64_t fp8_stored_elements(const Lowering *lowering, int64_t bytes) {
    return is_nvfp4(lowering) ? bytes * NVFP4_BLOCK / NVFP4_BYTES : bytes;
}

// Transformer Engine gathers an output's gradient in both layouts where one is not made from the other: rows for the
// input's gradient, columns for the weight's (v2.8, pytorch/distributed.py, _all_gather_mxfp8, _all_gather_nvfp4;
// pytorch/module/linear.py asks for both). Of inputs one at a time is wanted. What it gathers of blocks was not read.
int64_t fp8_gathered_bytes(const Lowering *lowering, int64_t elements, bool gradient) {
    const bool apart = lowering->plan->fp8_recipe == FP8_MX || is_nvfp4(lowering);
    return (gradient && apart && lowering->fp8 == FP8_TRANSFORMER_ENGINE ? 2 : 1) *
           fp8_stored_bytes(lowering, elements);
}

static bool copies_weights(const Lowering *lowering) {
    return lowering->fp8 == FP8_TRANSFORMER_ENGINE;
}

bool fp8_has_one_layout(const Lowering *lowering) {
    const Fp8Recipe recipe = lowering->plan->fp8_recipe;
    return lowering->target->runtime.fp8_one_layout && copies_weights(lowering) &&
           (recipe == FP8_TENSORWISE || recipe == FP8_DELAYED);
}

bool fp8_keeps_parameters(const Lowering *lowering) {
    return lowering->plan->fp8_parameters && copies_weights(lowering);
}

bool fp8_keeps_unit(const Lowering *lowering, int unit) {
    const bool experts = unit == UNIT_EXPERTS && lowering->ep > 1;
    return fp8_keeps_parameters(lowering) && (unit == UNIT_LAYER || experts);
}

// Stage 3 has neither copy of a layer's weights beyond the layer.
static bool shards_parameters(const Lowering *lowering) {
    return fp8_keeps_parameters(lowering) && lowering->plan->zero == 3;
}

static bool casts_shards(const Lowering *lowering) {
    return lowering->fp8 == FP8_TORCHAO && lowering->plan->fp8_recipe == FP8_TENSORWISE && lowering->plan->zero == 3;
}

bool fp8_gathers_weights(const Lowering *lowering) {
    return casts_shards(lowering) || shards_parameters(lowering);
}

bool fp8_gathers_half(const Lowering *lowering) {
    return fp8_keeps_parameters(lowering) && lowering->plan->fp8_recipe == FP8_MX && !lowering_adapts(lowering);
}

// Weights that no update changes were cast before training. Of one scale, and of blocks as if of one, each backward
// makes the transposed copy and discards it (disable_parameter_transpose_cache of Megatron-core; without it TE keeps
// them all); others come with both.
static bool transposes_in_backward(const Lowering *lowering) {
    const bool apart = lowering->plan->fp8_recipe == FP8_MX || is_nvfp4(lowering);
    return shards_parameters(lowering) || (fp8_keeps_parameters(lowering) && lowering_adapts(lowering) && !apart);
}

bool fp8_mixes_weights(const Lowering *lowering) {
    return fp8_gathers_weights(lowering) || fp8_keeps_parameters(lowering);
}

// Over tp: layer inputs in forward, output gradients in backward.
bool fp8_gathers_inputs(const Lowering *lowering) {
    const bool scaled = lowering->fp8 == FP8_TRANSFORMER_ENGINE || lowering->plan->fp8_recipe == FP8_TENSORWISE;
    return lowering->fp8 != FP8_NONE && scaled && lowering->tp > 1;
}

bool fp8_saves_inputs(const Lowering *lowering) {
    return lowering->fp8 == FP8_TRANSFORMER_ENGINE;
}

static bool reduces_scales(const Lowering *lowering) {
    return fp8_gathers_inputs(lowering) && (lowering->plan->fp8_recipe == FP8_TENSORWISE || is_nvfp4(lowering));
}

const Fp8Tensor fp8_tensors[] = {{"attention_in", FP8_INPUT | FP8_OF_NORM},
                                 {"attention_in_full", FP8_INPUT | FP8_OF_NORM},
                                 {"attention_out_fp8", FP8_SAVED | FP8_CAST_BY_READER},
                                 {"mlp_in", FP8_MLP_INPUT},
                                 {"mlp_in_full", FP8_MLP_INPUT},
                                 {"activation_out", FP8_SAVED | FP8_OF_ACTIVATION},
                                 {"dgate_up", FP8_OF_GRADIENTS},
                                 {"dup", FP8_OF_GRADIENTS},
                                 {"experts_in", FP8_SAVED},
                                 {"experts_act", FP8_SAVED},
                                 {"gradient_fp8", FP8_GATHERED_GRADIENT},
                                 {"gradient_full_fp8", FP8_GATHERED_GRADIENT},
                                 {NULL, 0}};

unsigned fp8_tensor_uses(const char *name) {
    const Fp8Tensor *row = fp8_tensors;
    while (row->name && strcmp(row->name, name) != 0) {
        row++;
    }
    return row->uses;
}

Dtype activation_dtype(const Lowering *lowering, const char *name) {
    const unsigned inputs = FP8_INPUT | (lowering->model->experts.count == 0 ? FP8_MLP_INPUT : 0);
    const unsigned in_fp8 = (fp8_gathers_inputs(lowering) ? inputs | FP8_GATHERED_GRADIENT : 0) |
                            (fp8_saves_inputs(lowering) ? inputs | FP8_SAVED : 0);
    const bool is_fp8 = in_fp8 != 0 && (fp8_tensor_uses(name) & in_fp8) != 0;
    return is_fp8 && !adapter_reads(lowering, name) ? DTYPE_FP8
           : is_upcast(lowering, name)              ? DTYPE_FP32
                                                    : lowering->dims.dtype;
}

static int32_t scalar_scale(Lowering *lowering, const char *name, int64_t count) {
    return lowering_tensor(lowering, name, ROLE_RUNTIME, DTYPE_FP32, count);
}

static void add_scale_reduce(Lowering *lowering, Section section, LaneId lane, int16_t group, OpRef scale) {
    const bool backward = section == SECTION_LAYER_BACKWARD || section == SECTION_END;
    Op op = op_collective(lowering, TASK_ALL_REDUCE, lane, group, "scale reduce",
                          section == SECTION_TAIL ? PHASE_LOSS
                          : backward              ? PHASE_BACKWARD
                                                  : PHASE_FORWARD);
    op.task.dtype = DTYPE_FP32;
    op.task.reduce_max = true;
    op.task.payload_bytes = scale.bytes;
    op_operand(&op, scale, ACCESS_UPDATE);
    op_list_append(lowering->arena, &lowering->lists[section], &op);
}

// The scale of an fp8 tensor that tp ranks gather, written by the tensor's producer and reduced over them.
OpRef fp8_scale_of(Lowering *lowering, Section section, Op *maker, int32_t tensor, const char *scale_name) {
    if (!reduces_scales(lowering) || adapter_reads(lowering, lowering->tensors[tensor].name)) {
        return op_absent();
    }
    const int32_t scale = scalar_scale(lowering, scale_name, 1);
    lowering->tensors[tensor].scale = scale;
    op_operand(maker, op_whole(lowering, scale), ACCESS_WRITE);
    add_scale_reduce(lowering, section, LANE_TP, lowering->tp_group, op_whole(lowering, scale));
    return op_whole(lowering, scale);
}

// x -> fp8, separate from the operation that produced x.
Op *fp8_add_cast(Lowering *lowering, Section section, OpRef x, int32_t to) {
    const Phase phase = section == SECTION_LAYER_BACKWARD ? PHASE_BACKWARD : PHASE_FORWARD;
    return op_copy(lowering, section, phase, "cast to fp8", 1, lowering->tensors[to].bytes, x, op_whole(lowering, to));
}

// ---- weights

// Norms and biases lead a unit and stay bf16; the first products of latent attention precede them.
static int64_t vector_elements(const Lowering *lowering) {
    return lowering->model->latent.kv_rank > 0 ? 0 : unit_slice_offset(lowering, "wq");
}

static int64_t fp8_matrix_elements(const Lowering *lowering) {
    return lowering->units[UNIT_LAYER].elements - vector_elements(lowering);
}

// Weights in fp8 share one buffer with the vectors, which lead it in bf16.
int64_t fp8_weight_bytes(const Lowering *lowering, int64_t elements) {
    const int64_t vectors = vector_elements(lowering);
    const int64_t leading = elements < vectors ? elements : vectors;
    return leading * dtype_bytes(lowering->dims.dtype) + fp8_stored_bytes(lowering, elements - leading);
}

// Layers that are gathered in fp8, or packed, keep their vectors in bf16: the buffer is sized in bytes.
int64_t gathered_elements(const Lowering *lowering, int u) {
    const Unit *unit = &lowering->units[u];
    const bool packed = u == UNIT_LAYER && weights_are_packed(lowering);
    const bool experts = u == UNIT_EXPERTS && fp8_keeps_unit(lowering, u);
    if (!packed && !experts && (u != UNIT_LAYER || !fp8_mixes_weights(lowering))) {
        return unit->padded_elements;
    }
    const int64_t grain = (int64_t)unit->shards * STEP_ALIGN_BYTES;
    const int64_t bytes = (packed    ? packed_bytes
                           : experts ? fp8_stored_bytes
                                     : fp8_weight_bytes)(lowering, unit->elements);
    return (bytes + grain - 1) / grain * grain;
}

// Transformer Engine's copies of a layer's matrices, the second one transposed, where products need it: the only one
// where the weights are themselves the first. Experts' are taken to have both.
void fp8_choose_weights(Lowering *lowering) {
    lowering->fp8_weights = lowering->fp8_experts = -1;
    lowering->weight_scales = -1;
    const int32_t layers = lowering->units[UNIT_LAYER].instances;
    const int copies = (fp8_has_one_layout(lowering) ? 1 : 2) - (fp8_keeps_parameters(lowering) ? 1 : 0);
    if (copies_weights(lowering) && copies > 0) {
        const bool transient = transposes_in_backward(lowering);
        lowering->fp8_weights =
            lowering_tensor(lowering, "layer fp8 weights", transient ? ROLE_GATHERED : ROLE_PARAMETER, DTYPE_FP8,
                            copies * fp8_stored_bytes(lowering, fp8_matrix_elements(lowering)));
        lowering->tensors[lowering->fp8_weights].slots = transient ? 1 : layers;
        lowering->tensors[lowering->fp8_weights].persistent = !transient;
    }
    if (copies_weights(lowering) && lowering->ep > 1) {
        const int layouts = fp8_keeps_parameters(lowering) ? 1 : 2;
        lowering->fp8_experts =
            lowering_tensor(lowering, "expert fp8 weights", ROLE_PARAMETER, DTYPE_FP8,
                            layouts * fp8_stored_bytes(lowering, lowering->units[UNIT_EXPERTS].elements));
        lowering->tensors[lowering->fp8_experts].slots = layers;
        lowering->tensors[lowering->fp8_experts].persistent = true;
    }
    if (casts_shards(lowering)) {
        const int64_t matrices = lowering->model->mlp == MLP_GATED ? 7 : 6;
        lowering->weight_scales = scalar_scale(lowering, "layer weight scales", matrices * layers);
        lowering->tensors[lowering->weight_scales].slots = 1;
        lowering->tensors[lowering->weight_scales].persistent = true;
        lowering->tensors[lowering->weights[UNIT_LAYER]].scale = lowering->weight_scales;
    }
}

OpRef fp8_weight_slice(const Lowering *lowering, const char *first, const char *last, bool transposed) {
    const OpRef whole = unit_slice(lowering, lowering->weights[UNIT_LAYER], first, last);
    if (lowering->fp8_weights < 0 || (fp8_keeps_parameters(lowering) && !transposed)) {
        return whole;
    }
    OpRef ref = op_whole(lowering, lowering->fp8_weights);
    if (fp8_keeps_parameters(lowering)) {
        ref.offset_bytes = whole.offset_bytes - vector_elements(lowering) * lowering->dims.element;
        ref.bytes = whole.bytes;
        return ref;
    }
    ref.offset_bytes = fp8_stored_bytes(
        lowering, whole.offset_bytes / lowering->dims.element - vector_elements(lowering) +
                      (transposed && !fp8_has_one_layout(lowering) ? fp8_matrix_elements(lowering) : 0));
    ref.bytes = fp8_stored_bytes(lowering, whole.bytes / lowering->dims.element);
    return ref;
}

static Op *cast_matrices(Lowering *lowering, int unit, int32_t from, int64_t first, int64_t elements, int32_t to) {
    OpRef matrices = op_whole(lowering, from);
    matrices.offset_bytes = first * lowering->dims.element;
    matrices.bytes = elements * lowering->dims.element;
    Op *op = op_copy(lowering, SECTION_LAYER_FORWARD, PHASE_FORWARD, "cast weights to fp8", 1, elements, matrices,
                     op_whole(lowering, to));
    op->task.unit = (int16_t)unit;
    return op;
}

// The transposed copy of fp8 weights that were gathered.
static void transpose_matrices(Lowering *lowering, Section section) {
    OpRef matrices = op_whole(lowering, lowering->weights[UNIT_LAYER]);
    matrices.offset_bytes = vector_elements(lowering) * lowering->dims.element;
    matrices.bytes = lowering->tensors[lowering->fp8_weights].bytes;
    Op *op = op_copy(lowering, section, layer_phase(section), "transpose fp8 weights", 1, matrices.bytes, matrices,
                     op_whole(lowering, lowering->fp8_weights));
    op->task.unit = UNIT_LAYER;
    op->task.dtype = DTYPE_FP8;
}

// Both layouts, from what was gathered in bf16.
static void cast_gathered(Lowering *lowering, int unit, int32_t copy) {
    const Unit *of = &lowering->units[unit];
    Op *op = cast_matrices(lowering, unit, of->gradient_full, 0, of->elements, lowering->weights[unit]);
    op_operand(op, op_whole(lowering, copy), ACCESS_WRITE);
}

// Once per step, before a layer's first GEMM.
void lower_fp8_weights(Lowering *lowering) {
    const bool cast_before = fp8_keeps_parameters(lowering) && lowering_adapts(lowering);
    if (lowering->fp8_weights < 0 || !lowering->first || cast_before || shards_parameters(lowering)) {
        return;
    }
    const int32_t layer = lowering->weights[UNIT_LAYER];
    if (fp8_gathers_half(lowering)) {
        cast_gathered(lowering, UNIT_LAYER, lowering->fp8_weights);
        if (lowering->fp8_experts >= 0) {
            cast_gathered(lowering, UNIT_EXPERTS, lowering->fp8_experts);
        }
        return;
    }
    if (fp8_keeps_parameters(lowering)) {
        transpose_matrices(lowering, SECTION_LAYER_FORWARD);
        return;
    }
    cast_matrices(lowering, UNIT_LAYER, layer, vector_elements(lowering), fp8_matrix_elements(lowering),
                  lowering->fp8_weights);
    if (lowering->fp8_experts >= 0) {
        cast_matrices(lowering, UNIT_EXPERTS, lowering->weights[UNIT_EXPERTS], 0,
                      lowering->units[UNIT_EXPERTS].elements, lowering->fp8_experts);
    }
}

void lower_fp8_backward_weights(Lowering *lowering) {
    if (transposes_in_backward(lowering) && lowering->fp8_weights >= 0) {
        transpose_matrices(lowering, SECTION_LAYER_BACKWARD);
    }
}

// ---- scales that are reduced separately from a tensor

// torchao's precomputed scales of all weights, from the previous update: one reduction over the ranks that shard them.
void lower_fp8_begin(Lowering *lowering) {
    if (lowering->weight_scales >= 0 && lowering->first && lowering->units[UNIT_LAYER].shards > 1) {
        add_scale_reduce(lowering, SECTION_BEGIN, LANE_CTL, lowering->units[UNIT_LAYER].shard_group,
                         op_whole(lowering, lowering->weight_scales));
    }
}

// Delayed scaling: the maxima of forward, then of backward, over the ranks that share a layer.
void lower_fp8_history(Lowering *lowering, Section section) {
    enum { TENSORS_PER_LAYER = 12 };  // four GEMMs: input, weight, output gradient
    if (lowering->fp8 == FP8_NONE || lowering->plan->fp8_recipe != FP8_DELAYED || lowering->tp == 1) {
        return;
    }
    const int32_t history =
        scalar_scale(lowering, "amax history", (int64_t)TENSORS_PER_LAYER * lowering->model->layers);
    lowering->tensors[history].slots = 1;
    lowering->tensors[history].persistent = true;
    add_scale_reduce(lowering, section, LANE_CTL, lowering->tp_group, op_whole(lowering, history));
}

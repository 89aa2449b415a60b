// Pass 5: recompute. A tensor that forward makes and does not keep is recomputed where backward first reads it, by
// repeating the forward operations that it depends on (collectives included), in forward order, starting from what is
// kept. So only what backward needs is run, as with PyTorch's early stop; a target without it repeats the whole layer
// at once, Megatron-core's experts before any of their backward. Without recompute only cheap tensors (packed copies)
// are recomputed. If some layers are recomputed and others kept, backward has a list for each; forward is the same.
// Inputs offloaded to the host are copied there by forward and back by backward.

#include <string.h>

#include "sim/step/lower_ops.h"
#include "sim/step/mixed.h"

typedef struct Rematerialiser {
    Lowering *lowering;
    Recompute mode;
    const OpList *forward;
    OpList *out;
    bool *made;      // per tensor: produced by forward
    bool *remade;    // per tensor: produced by forward and not kept
    bool *present;   // per tensor: has its value in this backward section
    bool *needed;    // scratch per tensor
    bool *repeated;  // scratch per forward operation
} Rematerialiser;

static bool touches(const OpRef *ref, Access access) {
    return ref->tensor >= 0 && (ref->access & access);
}

// What each mode keeps of a layer, by tensor name; everything else is recomputed.
static const char *const block_keeps[] = {"x", NULL};
static const char *const child_keeps[] = {"x", "attention_in", "x_mid", "mlp_in", NULL};
// Norms after the halves are separate child modules, with these as their inputs.
static const char *const post_norm_keeps[] = {"attention_sum", "attention_sum_between", "mlp_sum", "mlp_sum_between",
                                              NULL};
// SELECTIVE_OPS: every second product of q, k, v, out, gate, up, down, attention's results and the
// outputs of reduce-scatters (sim/SOURCES.md P4).
static const char *const op_keeps[] = {"x", "q", "v", "attention_out", "lse", "gate", "attention_sum_between",
                                       "mlp_sum", "mlp_sum_between",
                                       // inside attention, which is not recomputed
                                       "kv gathered", "kv ring even", "kv ring odd", NULL};
// SELECTIVE_CORE drops the attention kernel's own values (Korthikanti et al. 2022, section 5), and what other cp ranks
// sent for it.
static const char *const core_drops[] = {
    "attention_probabilities", "lse", "kv gathered", "kv ring even", "kv ring odd", NULL};
// What a separate module drops (transformer_config.py of Megatron-core, recompute_modules; transformer_layer.py,
// mlp.py, moe_layer.py and multi_latent_attention.py wrap each in a checkpoint that keeps its input).
static const char *const norm_drops[] = {"attention_in", "attention_rstd", "mlp_in", "mlp_rstd", NULL};
static const char *const mlp_drops[] = {"gate", "up", "gate_up", "gate_up_fp8", "activation_out", "activation_values",
                                        NULL};
static const char *const activation_drops[] = {"experts_act", "experts_values", "experts_gate_up_fp8", NULL};
static const char *const latent_drops[] = {
    "q", "kv_up", "k", "q_latent_normed", "q_latent_rstd", "kv_latent_normed", "kv_latent_rstd", NULL};
static const char *const expert_drops[] = {
    // shared experts have the names of an MLP
    "gate",
    "up",
    "gate_up",
    "gate_up_fp8",
    "activation_out",
    "activation_values",
    "shared_gate",
    "router_logits",
    "routing",
    "expert_rows",
    "expert_rows of ranks",
    "experts_leave",
    "experts_sent",
    "experts_came",
    "experts_values",
    "experts_clamped",
    "experts_in",
    "experts_gate_up",
    "experts_gate_up_fp8",
    "experts_act",
    "experts_out",
    "experts_back",
    "tokens_gathered",
    "results_of_all",
    NULL};
// What the MLP's half, or experts, add to the stream.
static const char *const mlp_sums[] = {"mlp_sum", "mlp_sum_between", NULL};
// Linear layers that keep their sharded input gather it again.
static const char *const gathered_inputs[] = {"attention_in_full", "mlp_in_full", NULL};

static bool listed(const char *const *names, const char *tensor) {
    return is_named(names, mixed_plain_name(tensor));
}

static bool checkpoints_children(const Lowering *lowering) {
    const RecomputeUnit unit = lowering->plan->recompute_unit;
    return unit == RECOMPUTE_UNIT_TARGET ? lowering->target->recompute_flavour == RECOMPUTE_CHILD
                                         : unit == RECOMPUTE_UNIT_CHILDREN;
}

static bool dropped_by_module(const Lowering *lowering, const char *name) {
    const unsigned modules = target_recompute_modules(lowering->target, lowering->plan);
    const bool experts = lowering->model->experts.count > 0 && !mixed_is_dense_name(name);
    const struct {
        unsigned module;
        const char *const *drops;
    } table[] = {
        {RECOMPUTE_CORE_ATTENTION, core_drops},
        {RECOMPUTE_NORMS, norm_drops},
        {experts ? 0 : RECOMPUTE_MLP, mlp_drops},
        {RECOMPUTE_EXPERT_ACTIVATION, activation_drops},
        {lowering->model->latent.kv_rank > 0 ? RECOMPUTE_LATENT_UP : 0, latent_drops},
        {experts ? RECOMPUTE_EXPERTS : 0, expert_drops},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (modules & table[i].module && listed(table[i].drops, name)) {
            return true;
        }
    }
    return false;
}

// What experts add to the stream is no product's result.
static bool sums_experts(const Lowering *lowering, const char *name) {
    return lowering->model->experts.count > 0 && !mixed_is_dense_name(name) && listed(mlp_sums, name);
}

static bool is_remade(const Lowering *lowering, Recompute mode, const Tensor *tensor) {
    const Target *target = lowering->target;
    if (tensor->persistent || tensor->role == ROLE_GATHERED || tensor->role == ROLE_GRADIENT) {
        return false;
    }
    if (mode == RECOMPUTE_FULL) {
        const bool child = checkpoints_children(lowering);
        const bool post_norm = child && model_norms_behind(lowering->model);
        return !listed(child ? child_keeps : block_keeps, tensor->name) &&
               !(post_norm && listed(post_norm_keeps, tensor->name));
    }
    const bool gathers = lowering->tp > 1 && target_tp_flavour(target, lowering->plan) == TP_SP;
    const bool regathered =
        target_regathers(target, lowering->plan) && gathers && listed(gathered_inputs, tensor->name);
    if (mode == RECOMPUTE_NONE) {
        return tensor->cheap || regathered;
    }
    if (target->selective_flavour == SELECTIVE_OPS) {
        const bool first = target->fused_qkv && strcmp(tensor->name, "qkv") == 0;  // of the products
        return (!listed(op_keeps, tensor->name) || sums_experts(lowering, tensor->name)) && !first;
    }
    return tensor->cheap || regathered || dropped_by_module(lowering, tensor->name);
}

// Per-op checkpointing: the only flavour that keeps results among recomputed operations.
static bool recomputes_by_op(const Lowering *lowering) {
    return lowering->plan->recompute == RECOMPUTE_SELECTIVE && lowering->target->selective_flavour == SELECTIVE_OPS;
}

bool recompute_keeps(const Lowering *lowering, const char *tensor) {
    return recomputes_by_op(lowering) && listed(op_keeps, tensor);
}

static void find_remade(const Rematerialiser *maker) {
    for (size_t i = 0; i < maker->forward->count; i++) {
        const Op *op = maker->forward->ops[i];
        if (op->task.unit >= 0) {
            continue;  // gathers: backward has its own
        }
        for (int k = 0; k < op->operand_count; k++) {
            const int32_t tensor = op->operands[k].tensor;
            if (touches(&op->operands[k], ACCESS_WRITE) && !maker->made[tensor]) {
                maker->made[tensor] = true;
                maker->remade[tensor] = is_remade(maker->lowering, maker->mode, &maker->lowering->tensors[tensor]);
            }
        }
    }
}

static bool missing(const Rematerialiser *maker, int32_t tensor) {
    return maker->remade[tensor] && !maker->present[tensor];
}

// Walks forward from its end: an operation that writes a needed tensor is repeated, and its inputs become needed too.
static void close_over_inputs(Rematerialiser *maker) {
    for (size_t i = maker->forward->count; i-- > 0;) {
        const Op *op = maker->forward->ops[i];
        maker->repeated[i] = false;
        for (int k = 0; k < op->operand_count && !maker->repeated[i]; k++) {
            maker->repeated[i] = touches(&op->operands[k], ACCESS_WRITE) && maker->needed[op->operands[k].tensor];
        }
        for (int k = 0; k < op->operand_count && maker->repeated[i]; k++) {
            if (touches(&op->operands[k], ACCESS_READ) && missing(maker, op->operands[k].tensor)) {
                maker->needed[op->operands[k].tensor] = true;
            }
        }
    }
}

static void note_writes(Rematerialiser *maker, const Op *op) {
    for (int k = 0; k < op->operand_count; k++) {
        if (touches(&op->operands[k], ACCESS_WRITE)) {
            maker->present[op->operands[k].tensor] = true;
        }
    }
}

// Megatron-core's CheckpointFunction runs what it keeps the input of again before autograd enters it: a layer, or its
// experts alone.
static bool repeats_first(const Lowering *lowering, Recompute mode) {
    const bool module =
        mode == RECOMPUTE_SELECTIVE && (target_recompute_modules(lowering->target, lowering->plan) & RECOMPUTE_EXPERTS);
    return lowering->target->experts_recompute_whole && lowering->model->experts.count > 0 &&
           (mode == RECOMPUTE_FULL || module);
}

// A checkpointed layer without early stop, including per-op checkpointing. A dense one beside experts stops as it does
// in a dense model.
static bool repeats_whole(const Rematerialiser *maker, const char *tensor) {
    const Lowering *lowering = maker->lowering;
    const Target *target = lowering->target;
    // Compiled around its experts, too, a layer is a graph of which what backward reads is repeated.
    const bool graph = target->runtime.indexes_rows && lowering->model->experts.count > 0 && !target->routes_eagerly &&
                       lowering->plan->fused == FUSED_COMPILED && !mixed_is_dense_name(tensor);
    const bool whole = (target->recompute_whole && !graph) ||
                       (target->stages_recompute_whole && lowering_has_stages(lowering)) ||
                       (repeats_first(lowering, maker->mode) && !mixed_is_dense_name(tensor));
    return whole && (maker->mode == RECOMPUTE_FULL || recomputes_by_op(lowering));
}

// Tiled code saves its input after its work, so a recomputed layer stops there, not before.
static void need_tiles(Rematerialiser *maker) {
    const Lowering *lowering = maker->lowering;
    for (size_t t = 0; t < lowering->tensor_count && lowering->plan->mlp_tiles > 0; t++) {
        const bool needed = maker->mode == RECOMPUTE_FULL && listed(mlp_sums, lowering->tensors[t].name);
        maker->needed[t] |= needed && missing(maker, (int32_t)t);
    }
}

static void make_present(Rematerialiser *maker, int32_t tensor) {
    for (size_t t = 0; t < maker->lowering->tensor_count; t++) {
        maker->needed[t] = missing(maker, (int32_t)t) && repeats_whole(maker, maker->lowering->tensors[t].name);
    }
    maker->needed[tensor] = true;
    need_tiles(maker);
    close_over_inputs(maker);
    for (size_t i = 0; i < maker->forward->count; i++) {
        if (maker->repeated[i]) {
            Op *copy = op_list_append(maker->lowering->arena, maker->out, maker->forward->ops[i]);
            copy->task.phase = PHASE_RECOMPUTE;
            copy->copy_of = maker->forward->ops[i];
            note_writes(maker, copy);
        }
    }
}

static void repeat_first(Rematerialiser *maker) {
    const Lowering *lowering = maker->lowering;
    if (!repeats_first(lowering, maker->mode)) {
        return;
    }
    for (size_t t = 0; t < lowering->tensor_count; t++) {
        const char *name = lowering->tensors[t].name;
        const bool first = maker->mode == RECOMPUTE_FULL ? !mixed_is_dense_name(name) : listed(expert_drops, name);
        if (missing(maker, (int32_t)t) && first) {
            make_present(maker, (int32_t)t);
        }
    }
}

// Whether recomputing one tensor writes the other.
static bool passes_through(Rematerialiser *maker, int32_t tensor, int32_t other) {
    for (size_t t = 0; t < maker->lowering->tensor_count; t++) {
        maker->needed[t] = false;
    }
    maker->needed[tensor] = true;
    close_over_inputs(maker);
    for (size_t i = 0; i < maker->forward->count; i++) {
        const Op *op = maker->forward->ops[i];
        for (int k = 0; k < op->operand_count; k++) {
            if (maker->repeated[i] && touches(&op->operands[k], ACCESS_WRITE) && op->operands[k].tensor == other) {
                return true;
            }
        }
    }
    return false;
}

// Backward sends keys and values around the ring once more, in forward's ring buffers. What later operations need and
// forward made from those buffers is recomputed before backward overwrites them.
static void make_before(Rematerialiser *maker, const OpList *backward, size_t first, int32_t overwritten) {
    for (size_t i = first; i < backward->count; i++) {
        const Op *op = backward->ops[i];
        for (int k = 0; k < op->operand_count; k++) {
            const int32_t tensor = op->operands[k].tensor;
            if (touches(&op->operands[k], ACCESS_READ) && tensor != overwritten && missing(maker, tensor) &&
                passes_through(maker, tensor, overwritten)) {
                make_present(maker, tensor);
            }
        }
    }
}

// Without a compiler every listed result is kept until its layer's backward, including the down projection's, which
// nothing reads there (torch.utils.checkpoint's cache; tests/frameworks/memory).
static void hold_unread(const Lowering *lowering, const Rematerialiser *maker, Op *op) {
    for (size_t t = 0; t < lowering->tensor_count; t++) {
        if (maker->made[t] && !maker->remade[t] && listed(mlp_sums, lowering->tensors[t].name)) {
            op_operand(op, op_whole(lowering, (int32_t)t), ACCESS_READ);
        }
    }
}

// A packed copy is no saved tensor: a framework's backward packs anew where it first sends it, whatever a recomputed
// forward packed (PyTorch's _templated_ring_attention_backward), so what it sends there, behind all kernels issued
// before, does not travel beside the layer's recompute. Our executor sends when the buffer is there.
static void pack_anew(const Rematerialiser *maker, const Op *op, bool *packed) {
    const Lowering *lowering = maker->lowering;
    for (int k = 0; k < op->operand_count && !lowering->target->own_kernels; k++) {
        const int32_t tensor = op->operands[k].tensor;
        if (touches(&op->operands[k], ACCESS_READ) && lowering->tensors[tensor].cheap && !packed[tensor]) {
            maker->present[tensor] = false;
            packed[tensor] = true;
        }
    }
}

static OpList backward_of(Lowering *lowering, OpList backward, Recompute mode) {
    const OpList *forward = &lowering->lists[SECTION_LAYER_FORWARD];
    OpList out = {0};
    Rematerialiser maker = {.lowering = lowering,
                            .mode = mode,
                            .forward = forward,
                            .out = &out,
                            .made = ARENA_ARRAY(lowering->arena, bool, lowering->tensor_count),
                            .remade = ARENA_ARRAY(lowering->arena, bool, lowering->tensor_count),
                            .present = ARENA_ARRAY(lowering->arena, bool, lowering->tensor_count),
                            .needed = ARENA_ARRAY(lowering->arena, bool, lowering->tensor_count),
                            .repeated = ARENA_ARRAY(lowering->arena, bool, forward->count)};
    find_remade(&maker);
    bool *packed = ARENA_ARRAY(lowering->arena, bool, lowering->tensor_count);
    bool holds = recomputes_by_op(lowering) && lowering->plan->fused == FUSED_EAGER;
    repeat_first(&maker);
    for (size_t i = 0; i < backward.count; i++) {
        Op *op = backward.ops[i];
        if (holds && op->task.kind == TASK_RMSNORM_BACKWARD) {
            hold_unread(lowering, &maker, op);
            holds = false;
        }
        pack_anew(&maker, op, packed);
        for (int k = 0; k < op->operand_count; k++) {
            if (touches(&op->operands[k], ACCESS_READ) && missing(&maker, op->operands[k].tensor)) {
                make_present(&maker, op->operands[k].tensor);
            }
        }
        for (int k = 0; k < op->operand_count; k++) {
            if (touches(&op->operands[k], ACCESS_WRITE) && missing(&maker, op->operands[k].tensor)) {
                make_before(&maker, &backward, i + 1, op->operands[k].tensor);
            }
        }
        note_writes(&maker, op);
        op_list_pass(lowering->arena, &out, op);
    }
    return out;
}

// Deep-copies operations, since later passes may modify them.
static OpList copy_of(Lowering *lowering, const OpList *list) {
    OpList copy = {0};
    for (size_t i = 0; i < list->count; i++) {
        const Op *op = list->ops[i];
        op_list_append(lowering->arena, &copy, op)->copy_of = op->copy_of ? op->copy_of : op;
    }
    return copy;
}

bool recompute_offloads(const Lowering *lowering) {
    return plan_offloads_activations(lowering->plan) && !lowering_offloads_saved(lowering);
}

// A copy between the accelerator and the host on the compute lane, ahead of all others in the list.
static void copy_first(Lowering *lowering, OpList *list, const char *name, int32_t from, int32_t to) {
    const Tensor *source = &lowering->tensors[from];
    const int64_t elements = source->bytes / dtype_bytes(source->dtype);
    const Phase phase = list == &lowering->lists[SECTION_LAYER_FORWARD] ? PHASE_FORWARD : PHASE_BACKWARD;
    const Op copy = op_local(TASK_COPY, phase, name, source->dtype, 1, elements);
    OpList out = {0};
    bool placed = false;
    for (size_t i = 0; i < list->count; i++) {
        if (!placed && list->ops[i]->task.unit < 0) {
            op_list_move(lowering, &out, copy, op_whole(lowering, from), op_whole(lowering, to), ACCESS_WRITE);
            placed = true;
        }
        op_list_pass(lowering->arena, &out, list->ops[i]);
    }
    *list = out;
}

// PyTorch's save_on_cpu (autograd/graph.py) copies on the compute stream, to the host and back.
static void offload_inputs(Lowering *lowering) {
    const int32_t x = residual_stream(lowering);
    const Tensor kept = lowering->tensors[x];
    const int32_t host =
        lowering_tensor(lowering, "x on host", kept.role, kept.dtype, kept.bytes / dtype_bytes(kept.dtype));
    lowering->tensors[host].slots = lowering->model->layers;
    lowering->tensors[host].host = true;
    copy_first(lowering, &lowering->lists[SECTION_LAYER_FORWARD], "input to host", x, host);
    copy_first(lowering, &lowering->lists[SECTION_LAYER_BACKWARD], "input from host", host, x);
}

void lower_recompute(Lowering *lowering) {
    OpList *backward = &lowering->lists[SECTION_LAYER_BACKWARD];
    if (plan_keeps_layers(lowering->plan)) {
        lowering->lists[SECTION_KEPT_BACKWARD] = backward_of(lowering, copy_of(lowering, backward), RECOMPUTE_NONE);
    }
    *backward = backward_of(lowering, *backward, lowering->plan->recompute);
    if (recompute_offloads(lowering)) {
        offload_inputs(lowering);
    }
}

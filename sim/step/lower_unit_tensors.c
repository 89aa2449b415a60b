// What a unit's weights and gradients are, by stage (lower_sharding.c).

#include <string.h>

#include "sim/step/mixed.h"
#include "sim/step/sharding.h"
#include "sim/step/tied.h"

int32_t unit_tensor(Lowering *lowering, const char *name, BufferRole role, Dtype dtype, int64_t elements,
                    int32_t slots) {
    const int32_t tensor = lowering_tensor(lowering, name, role, dtype, elements);
    lowering->tensors[tensor].slots = slots;
    return tensor;
}

static int32_t persistent_tensor(Lowering *lowering, const char *name, BufferRole role, Dtype dtype, int64_t elements,
                                 int32_t slots) {
    const int32_t tensor = unit_tensor(lowering, name, role, dtype, elements, slots);
    lowering->tensors[tensor].persistent = true;
    return tensor;
}

bool sharding_gathers(const Lowering *lowering) {
    return lowering->plan->zero == 3;
}

int32_t sharding_ring_slots(const Unit *unit, int depth) {
    return unit->instances > 1 ? depth : 1;  // over layers; edge units have one instance
}

// In which the optimizer reads gradients: as they were reduced where they are no .grad of a master (decoupled_grad;
// optimizer_config.py of Megatron-core, use_precision_aware_optimizer_no_fp8_or_ds_fp8).
Dtype updated_dtype(const Lowering *lowering) {
    const TrainPlan *plan = lowering->plan;
    const bool aware = optimizer_rows[plan->optimizer].remainders && lowering->target->masters_beside_remainders;
    const bool decoupled = aware && (plan->precision != DTYPE_FP8 || plan->fp8_recipe == FP8_DELAYED);
    return decoupled ? lowering->dims.reduce_dtype : lowering->master_dtype;
}

// Frozen parameters in the dtype that forward reads, next to masters of what is trained.
static bool stays_half(const Lowering *lowering) {
    return lowering_adapts(lowering) && !lowering->target->upcasts_frozen;
}

static void choose_weights(Lowering *lowering, int u) {
    Unit *unit = &lowering->units[u];
    const UnitNames *names = unit_names(lowering, u);
    const Dtype dtype = unit->dtype;
    const bool lone = stays_half(lowering) && !unit->trainable, beside = stays_half(lowering) && unit->trainable;
    const Dtype master_dtype = lone ? dtype : lowering->master_dtype;
    const bool has_master = master_dtype != dtype;
    const bool fp8 = fp8_keeps_unit(lowering, u);
    const bool halved = has_master && !fp8 && optimizer_rows[lowering->plan->optimizer].remainders &&
                        lowering->target->masters_beside_remainders;
    const int64_t master_elements =
        (beside && has_master ? unit->trained_shard : unit->shard_elements) / (halved ? 2 : 1);
    const bool packed = u == UNIT_LAYER && weights_are_packed(lowering);
    const Dtype stored = packed || fp8 ? DTYPE_FP8 : dtype;
    if (sharding_gathers(lowering)) {
        const bool kept = lowering->plan->reshard == RESHARD_NEVER;
        const int32_t slots =
            kept ? unit->instances : sharding_ring_slots(unit, lowering->target->shard_copies ? 1 : 2);
        const bool in_bytes = packed || (u == UNIT_LAYER && fp8_gathers_weights(lowering));
        lowering->weights[u] = unit->gathered =
            unit_tensor(lowering, names->weights, ROLE_GATHERED, in_bytes ? DTYPE_FP8 : dtype,
                        gathered_elements(lowering, u), slots);
        if (slots < unit->instances) {
            mixed_set_widest(lowering, u, unit->gathered);
        }
        const int64_t stored_elements =
            packed || fp8 ? gathered_elements(lowering, u) / unit->shards : unit->shard_elements;
        const bool only_packed = packed && !has_master;
        unit->master = persistent_tensor(lowering, names->master, ROLE_PARAMETER, only_packed ? stored : master_dtype,
                                         only_packed ? stored_elements : master_elements, unit->instances);
        const bool updated_elsewhere = lowering->plan->offload == OFFLOAD_OPTIMIZER;
        if (has_master && (beside || !lowering->target->shard_copies || updated_elsewhere)) {
            unit->working =
                persistent_tensor(lowering, names->working, ROLE_PARAMETER, stored, stored_elements, unit->instances);
        }
        return;
    }
    lowering->weights[u] = unit->working = persistent_tensor(lowering, names->weights, ROLE_PARAMETER, stored,
                                                             gathered_elements(lowering, u), unit->instances);
    unit->master = has_master ? persistent_tensor(lowering, names->master, ROLE_PARAMETER, master_dtype,
                                                  master_elements, unit->instances)
                              : unit->working;
}

bool sharding_adds_half(const Lowering *lowering) {
    return lowering->target->half_gradients && lowering->dims.gradient_dtype != lowering->dims.dtype;
}

bool sharding_sums_shards(const Lowering *lowering, int unit) {
    return unit_reduces_each(lowering, unit) || plan_rounds(lowering->plan) > 1;
}

static int round_steps(const Lowering *lowering) {
    return lowering->choice->alone ? lowering->plan->grad_accum : plan_round_steps(lowering->plan);
}

static void choose_gradients(Lowering *lowering, int u) {
    Unit *unit = &lowering->units[u];
    const UnitNames *names = unit_names(lowering, u);
    const bool buffered = lowering->target->gradient_buffer;
    const bool summed = !unit_reduces_each(lowering, u) && (lowering->plan->zero == 0 || round_steps(lowering) > 1);
    const bool updated = lowering->plan->update_in_backward;
    const bool kept = !updated && (buffered || summed || target_reduces_late(lowering->target, lowering->plan));
    const int32_t slots = kept ? unit->instances : sharding_ring_slots(unit, lowering->target->shard_copies ? 1 : 2);
    unit->gradient_full = unit_tensor(lowering, names->gradients, ROLE_GRADIENT, lowering->dims.gradient_dtype,
                                      unit->trained_padded, slots);
    if (slots < unit->instances) {
        mixed_set_widest(lowering, u, unit->gradient_full);
    }
    lowering->tensors[unit->gradient_full].persistent = buffered && (unit->trainable || lowering->choice->frozen);
    lowering->gradients[u] = unit->gradient_full;
    if (sharding_adds_half(lowering)) {
        lowering->gradients[u] = unit->gradient_half =
            unit_tensor(lowering, names->half_gradients, ROLE_GRADIENT, lowering->dims.dtype, unit->trained_padded,
                        unit->instances);
        lowering->tensors[unit->gradient_half].held = true;
    }
    // A gradient buffer is reduced in place: the shard is part of it.
    const bool in_place =
        (lowering->plan->zero == 0 && !sharding_sums_shards(lowering, u)) ||
        (buffered && lowering->plan->zero > 0 && updated_dtype(lowering) == lowering->dims.reduce_dtype &&
         !plan_offloads_states(lowering->plan));
    unit->gradient_shard = in_place
                               ? unit->gradient_full
                               : unit_tensor(lowering, names->shard_gradient, ROLE_GRADIENT, updated_dtype(lowering),
                                             unit->trained_shard, updated ? 1 : unit->instances);
    const bool graphed =
        lowering->target->graphs_hold_gradients && target_cuda_graphs(lowering->target, lowering->plan);
    const bool from_before = lowering->choice->alone && plan_rounds(lowering->plan) > 1;
    if (unit->trainable && (graphed || from_before)) {  // a graph writes where it did when captured
        lowering->tensors[unit->gradient_shard].persistent = true;
    }
}

int16_t sharding_data_group(const Lowering *lowering, int unit) {
    return unit == UNIT_EXPERTS && lowering->expert_data_group > 0 ? lowering->expert_data_group : lowering->data_group;
}

// Buckets of DDP, allocated with the model: a copy of every gradient that no task of the step touches.
static void keep_buckets(Lowering *lowering, int u) {
    const Unit *unit = &lowering->units[u];
    if (sharding_adds_half(lowering) && lowering->plan->zero == 0 &&
        lowering_group_size(lowering, sharding_data_group(lowering, u)) > 1) {
        const int32_t buckets = persistent_tensor(lowering, unit_names(lowering, u)->copies, ROLE_GRADIENT,
                                                  lowering->dims.dtype, unit->trained_padded, unit->instances);
        lowering->tensors[buckets].untouched = true;
    }
}

// Of a matrix that a linear layer of the engine multiplies by: not the router's, nor what rows are picked from unless
// the head reads it too.
static bool is_multiplied(const Lowering *lowering, const ParamSlice *slice) {
    static const char *const others[] = {"router", "shared_gate", "positions"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(slice->name, others[i]) == 0) {
            return false;
        }
    }
    const bool table = strcmp(slice->name, "embed") == 0;
    return slice_is_matrix(slice) && (!table || (lowering->model->tied_embeddings && lowering->held->head));
}

// The trained weights of this rank, whose slices follow each other. The buffers hold MAX_SLICES.
static int multiplied_weights(const Lowering *lowering, int64_t *rows, int64_t *cols) {
    int weights = 0;
    for (int u = 0; u < lowering->unit_count; u++) {
        const Unit *unit = &lowering->units[u];
        const int slices = unit->trainable && unit->instances > 0 ? unit->trained_slices : 0, first = weights;
        for (int k = 0; k < slices; k++) {
            const ParamSlice *slice = &lowering->slices[unit->first_slice + k];
            if (!is_multiplied(lowering, slice)) {
                continue;
            }
            if (slice->parameters == 0 && weights > first) {
                rows[weights - 1] += slice->local_rows;
            } else {
                rows[weights] = slice->local_rows / (slice->parameters > 1 ? slice->parameters : 1);
                cols[weights++] = slice->local_cols;
            }
        }
    }
    return weights;
}

// What autograd is handed in place of gradients that products have added to the buffer already (get_dummy_wgrad of
// Transformer Engine, pytorch/module/base.py since 2025-04; Megatron-core's own head too since 2025-08,
// tensor_parallel/layers.py): one for each shape that a process has, never freed.
static void keep_dummies(Lowering *lowering) {
    int64_t rows[MAX_SLICES], cols[MAX_SLICES], elements = 0;
    const bool keeps = lowering->target->dummy_gradients && !lowering->target->adds_gradients;
    const int weights = keeps ? multiplied_weights(lowering, rows, cols) : 0;
    for (int i = 0; i < weights; i++) {
        bool found = false;
        for (int j = 0; j < i && !found; j++) {
            found = rows[j] == rows[i] && cols[j] == cols[i];
        }
        elements += found ? 0 : rows[i] * cols[i];
    }
    if (elements > 0) {
        const int32_t kept =
            persistent_tensor(lowering, "dummy gradients", ROLE_GRADIENT, lowering->dims.dtype, elements, 1);
        lowering->tensors[kept].untouched = true;
    }
}

void lower_unit_tensors(Lowering *lowering) {
    for (int u = 0; u < lowering->unit_count; u++) {
        lowering->weights[u] = lowering->gradients[u] = -1;
        if (lowering->units[u].instances == 0) {
            continue;
        }
        choose_weights(lowering, u);
        near_shard(lowering, u);
        choose_gradients(lowering, u);
        if (lowering->units[u].trainable) {
            keep_buckets(lowering, u);
            lower_states(lowering, u, unit_names(lowering, u)->moment1, unit_names(lowering, u)->moment2);
        }
        lower_offload(lowering, &lowering->units[u]);
    }
    keep_dummies(lowering);
    fp8_choose_weights(lowering);
}

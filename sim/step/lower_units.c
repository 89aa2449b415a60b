// Units and their flat layout: what is gathered and reduced together. What is replicated over tp comes first, as one
// stretch: norms and the biases of row-parallel layers, starting with those whose gradient is a partial sum on each
// rank. The shard is an equal contiguous slice, so a gather writes weights where a GEMM reads them and a reduction
// reads gradients where they were written.

#include <string.h>

#include "sim/step/further.h"
#include "sim/step/lower.h"
#include "sim/step/mixed.h"

// Llama's published initialisation: normal, 0.02 (Touvron et al. 2023 follow GPT-2's constant).
static const double INIT_STD = 0.02;

enum { OF_DENSE = MAX_SLICES };  // ids of slices only dense layers have, wherever experts are placed

static int32_t slices_of_part(const Lowering *lowering) {
    int32_t count = 0;
    for (int32_t i = 0; i < lowering->slice_count; i++) {
        count += lowering->slices[i].part == lowering->part && !lowering->slices[i].unnumbered;
    }
    return count;
}

// Averaged over the layers.
static int64_t slice_elements(const ParamSlice *slice) {
    const int64_t whole = slice->local_rows * slice->local_cols;
    return slice->share > 0 ? (int64_t)(slice->share * (double)whole) : whole;
}

static void note_widest(Lowering *lowering, int unit, int64_t elements) {
    const bool both = lowering->share <= 0;
    lowering->widest[unit][LAYER_DENSE] += both || lowering->in_dense ? elements : 0;
    lowering->widest[unit][LAYER_EXPERTS] += both || !lowering->in_dense ? elements : 0;
}

// In equal blocks of rows, each split over tp; spread over ranks of ep, or all of them on each.
static void add_blocks(Lowering *lowering, Unit *unit, const SliceSpec *spec, int blocks, bool spread) {
    const int tp = spread ? lowering_expert_tp(lowering) : lowering->tp, ranks = spread ? lowering->ep : 1;
    const bool in_turn = lowering->in_turn && lowering->in_dense;
    const bool uncut = spread && lowering_routes_apart(lowering) && tp == 1;  // unsplit, whatever tp of the rest is
    const int64_t rows = spec->rows / ranks;
    ASSERT(lowering->slice_count < MAX_SLICES);
    lowering->slices[lowering->slice_count] = (ParamSlice){
        .name = spec->name,
        .part = lowering->part,
        .tensor = in_turn ? OF_DENSE + lowering->dense_slices++ : slices_of_part(lowering),
        .unnumbered = in_turn,
        .split = uncut ? SPLIT_NONE : spec->split,
        .decay = spec->fill == FILL_NORMAL || spec->fill == FILL_NOTHING,
        .global_rows = spec->rows,
        .global_cols = spec->cols,
        .local_rows = spec->split == SPLIT_ROWS ? rows / tp : rows,
        .local_cols = spec->split == SPLIT_COLS ? spec->cols / tp : spec->cols,
        .parameters = 1,
        .blocks = blocks / ranks,
        .block_rows = spec->rows / blocks,
        .spread = ranks > 1,
        .offset_elements = unit->elements,
        .share = lowering->share,
        .only = lowering->only,
        .init_std = spec->fill == FILL_NORMAL ? INIT_STD : 0,
        .init_value = spec->fill == FILL_ONE ? 1 : 0,
    };
    const ParamSlice *slice = &lowering->slices[lowering->slice_count++];
    unit->slice_count++;
    unit->elements += slice_elements(slice);
    note_widest(lowering, (int)(unit - lowering->units), slice->local_rows * slice->local_cols);
    if (spec->split == SPLIT_NONE && ranks == 1 && unit->replicated_elements == slice->offset_elements) {
        unit->replicated_elements = unit->elements;
    }
    const bool partial = spec->partial && unit->trained_slices == 0;  // nothing is reduced after what is trained
    if (partial && unit->partial_elements == slice->offset_elements) {
        unit->partial_elements = unit->elements;
    }
    ASSERT(!partial || unit->partial_elements == unit->elements);
}

void add_slice(Lowering *lowering, Unit *unit, const SliceSpec *spec) {
    add_blocks(lowering, unit, spec, 1, false);
}

// `each` blocks per expert, whose weights are parameters of their own in a grouped layer that fuses gate and up.
static void add_expert_slice(Lowering *lowering, Unit *unit, const SliceSpec *spec, int each) {
    add_blocks(lowering, unit, spec, each * lowering->model->experts.count, true);
    ParamSlice *slice = &lowering->slices[lowering->slice_count - 1];
    slice->unnumbered = spec->fill == FILL_ZERO;
    slice->parameters = lowering->fused_gate_up ? slice->blocks / each : 1;
}

// With adapters, only the unit that holds them.
static bool is_trained(const Lowering *lowering, int index) {
    return !lowering_adapts(lowering) || index == (lowering_adapters_apart(lowering) ? UNIT_ADAPTERS : UNIT_LAYER);
}

static Unit *begin_unit(Lowering *lowering, int index, const char *name, int instances) {
    Unit *unit = &lowering->units[index];
    const bool experts = index == UNIT_EXPERTS && lowering->ep > 1;
    const int16_t shard_group = experts ? lowering->expert_shard_group : lowering->shard_group;
    *unit =
        (Unit){.name = name,
               .layered = index == UNIT_LAYER || index == UNIT_EXPERTS,
               .trainable = instances > 0 && !(lowering->choice->frozen >> index & 1) && is_trained(lowering, index),
               .dtype = lowering->dims.dtype,
               .optimizer = lowering->plan->optimizer,
               .instances = instances,
               .shards = lowering->plan->zero > 0 ? lowering_group_size(lowering, shard_group) : 1,
               .shard_group = shard_group,
               .replica_group = lowering->replicate_group,
               .first_slice = lowering->slice_count,
               .master = -1,
               .moment1 = -1,
               .moment2 = -1,
               .gradient_shard = -1,
               .working = -1,
               .gathered = -1,
               .gradient_full = -1,
               .gradient_half = -1};
    return unit;
}

// DDP's hook reduces parameters together until they are that large (bucket_cap_mb 25, here of bf16).
static const double hook_bytes = 25.0 * 1024 * 1024;

// Of all instances of a unit, from its last parameter on; a parameter is never cut.
static int32_t hook_buckets(const Lowering *lowering, const Unit *unit) {
    double bytes = 0;
    int32_t buckets = 0;
    for (int32_t i = 0; i < unit->instances; i++) {
        for (int32_t k = unit->slice_count; k-- > 0;) {
            const ParamSlice *slice = &lowering->slices[unit->first_slice + k];
            bytes += (double)(slice->local_rows * slice->local_cols) * dtype_bytes(unit->dtype);
            if (bytes >= hook_bytes && slice->parameters > 0) {
                buckets++;
                bytes = 0;
            }
        }
    }
    return buckets + (bytes > 0);
}

static void end_unit(const Lowering *lowering, Unit *unit) {
    unit->hook_buckets = lowering->plan->zero == 0 ? hook_buckets(lowering, unit) : 0;
    unit->padded_elements = unit_padded(unit->elements, unit->shards);
    unit->shard_elements = unit->padded_elements / unit->shards;
    if (unit->trained_slices == 0) {
        unit->trained_slices = unit->slice_count;
        unit->trained_elements = unit->elements;
    }
    unit->trained_padded = unit_padded(unit->trained_elements, unit->shards);
    unit->trained_shard = unit->trained_padded / unit->shards;
}

static void add_vector(Lowering *lowering, Unit *unit, const char *name, Fill fill) {
    add_slice(lowering, unit,
              &(SliceSpec){name, SPLIT_NONE, 1, lowering->model->hidden, fill, lowering_splits_tokens(lowering)});
}

void add_norm_slices(Lowering *lowering, Unit *unit, const char *weight, const char *bias) {
    add_vector(lowering, unit, weight, FILL_ONE);
    if (lowering->model->norm_bias) {
        add_vector(lowering, unit, bias, FILL_ZERO);
    }
}

// Every tp rank normalizes its own heads with the same weights.
static void add_qk_norm_slices(Lowering *lowering, Unit *unit) {
    const ModelSpec *model = lowering->model;
    const bool whole = model->qk_norm == QK_NORM_WHOLE;
    if (model->qk_norm == QK_NORM_NONE) {
        return;
    }
    const int64_t q = (int64_t)model->head_dim * (whole ? model->heads : 1);
    const int64_t k = (int64_t)model->head_dim * (whole ? model->kv_heads : 1);
    add_slice(lowering, unit, &(SliceSpec){"q_norm", SPLIT_NONE, 1, q, FILL_ONE, true});
    add_slice(lowering, unit, &(SliceSpec){"k_norm", SPLIT_NONE, 1, k, FILL_ONE, true});
}

static void add_matrix(Lowering *lowering, Unit *unit, const char *name, ParamSplit split, int64_t rows, int64_t cols) {
    add_slice(lowering, unit, &(SliceSpec){name, split, rows, cols, FILL_NORMAL, false});
}

// The slice is one parameter with the one before it, or none.
static void join_slice(Lowering *lowering, bool joined) {
    lowering->slices[lowering->slice_count - 1].parameters = joined ? 0 : 1;
}

// Split by rows.
static void add_joined_matrix(Lowering *lowering, Unit *unit, const char *name, int64_t rows, int64_t cols,
                              bool joined) {
    add_matrix(lowering, unit, name, SPLIT_ROWS, rows, cols);
    join_slice(lowering, joined);
}

// The bias of a column-parallel layer is split with its rows.
static void add_split_bias(Lowering *lowering, Unit *unit, const char *name, int64_t rows) {
    add_slice(lowering, unit, &(SliceSpec){name, SPLIT_ROWS, rows, 1, FILL_ZERO, false});
}

static void add_split_biases(Lowering *lowering, Unit *unit) {
    const ModelSpec *model = lowering->model;
    const int64_t q = (int64_t)model->heads * model->head_dim, kv = (int64_t)model->kv_heads * model->head_dim;
    if (model->qkv_bias) {
        add_split_bias(lowering, unit, "bq", q);
        add_split_bias(lowering, unit, "bk", kv);
        join_slice(lowering, lowering->fused_qkv);
        add_split_bias(lowering, unit, "bv", kv);
        join_slice(lowering, lowering->fused_qkv);
    }
    if (model->mlp_bias && model->mlp == MLP_GATED) {
        add_split_bias(lowering, unit, "bgate", model->ffn);
    }
    if (model->mlp_bias) {
        add_split_bias(lowering, unit, "bup", model->ffn);
        join_slice(lowering, model->mlp == MLP_GATED && lowering->fused_gate_up);
    }
}

// What every tp rank computes for all tokens, for its heads or its columns of experts.
static void add_shared_slices(Lowering *lowering, Unit *unit) {
    const ModelSpec *model = lowering->model;
    const LatentAttention *latent = &model->latent;
    const Experts *experts = &model->experts;
    const SliceSpec slices[] = {
        {"wq_latent", SPLIT_NONE, latent->q_rank, model->hidden, FILL_NORMAL, true},
        {"q_latent_norm", SPLIT_NONE, 1, latent->q_rank, FILL_ONE, true},
        {"wkv_latent", SPLIT_NONE, latent->kv_rank + latent->rope, model->hidden, FILL_NORMAL, true},
        {"kv_latent_norm", SPLIT_NONE, 1, latent->kv_rank, FILL_ONE, true},
        {"router", SPLIT_NONE, experts->count, model->hidden, FILL_NORMAL, true},
        {"router_bias", SPLIT_NONE, 1, experts->router_bias ? experts->count : 0, FILL_ZERO, true},
        {"router_correction", SPLIT_NONE, 1, lowering_corrects(lowering) ? experts->count : 0, FILL_ZERO, true},
        {"shared_gate", SPLIT_NONE, 1, experts->shared_gate ? model->hidden : 0, FILL_NORMAL, true}};
    enum { OF_EXPERTS = 4, CORRECTION = 6 };  // from the first on
    for (size_t i = 0; i < sizeof slices / sizeof slices[0]; i++) {
        if (i == OF_EXPERTS) {
            mixed_begin(lowering, LAYER_EXPERTS);
        }
        if (slices[i].rows * slices[i].cols > 0) {
            add_slice(lowering, unit, &slices[i]);
            join_slice(lowering, i == CORRECTION);  // a buffer, to frameworks
        }
    }
    mixed_end(lowering);
}

static void add_attention_matrices(Lowering *lowering, Unit *unit) {
    const ModelSpec *model = lowering->model;
    const LatentAttention *latent = &model->latent;
    const int64_t hidden = model->hidden, heads = model->heads;
    const int64_t q = heads * model->head_dim, kv = (int64_t)model->kv_heads * model->head_dim;
    if (latent->kv_rank > 0) {
        add_matrix(lowering, unit, "wq", SPLIT_ROWS, q, latent->q_rank > 0 ? latent->q_rank : hidden);
        add_matrix(lowering, unit, "wkv", SPLIT_ROWS, heads * (model->head_dim - latent->rope + latent->value),
                   latent->kv_rank);
        add_matrix(lowering, unit, "wo", SPLIT_COLS, hidden, heads * latent->value);
        return;
    }
    add_matrix(lowering, unit, "wq", SPLIT_ROWS, q, hidden);
    add_joined_matrix(lowering, unit, "wk", kv, hidden, lowering->fused_qkv);
    add_joined_matrix(lowering, unit, "wv", kv, hidden, lowering->fused_qkv);
    add_matrix(lowering, unit, "wo", SPLIT_COLS, hidden, q);
}

static void add_mlp_matrices(Lowering *lowering, Unit *unit, int64_t ffn) {
    const int64_t hidden = lowering->model->hidden;
    const bool gated = lowering->model->mlp == MLP_GATED;
    if (gated) {
        add_matrix(lowering, unit, mixed_name(lowering, "wgate"), SPLIT_ROWS, ffn, hidden);
    }
    add_joined_matrix(lowering, unit, mixed_name(lowering, "wup"), ffn, hidden, gated && lowering->fused_gate_up);
    add_matrix(lowering, unit, mixed_name(lowering, "wdown"), SPLIT_COLS, hidden, ffn);
}

static int expert_inputs(const Lowering *lowering) {
    return lowering->model->mlp == MLP_GATED ? 2 : 1;
}

static void add_expert_bias_up(Lowering *lowering, Unit *unit) {
    const Experts *experts = &lowering->model->experts;
    if (experts->bias) {
        const int each = expert_inputs(lowering);
        const int64_t rows = (int64_t)experts->count * each * experts->ffn;
        add_expert_slice(lowering, unit, &(SliceSpec){"experts_up_bias", SPLIT_ROWS, rows, 1, FILL_ZERO, false}, each);
    }
}

static void add_expert_bias_down(Lowering *lowering, Unit *unit) {
    const ModelSpec *model = lowering->model;
    if (model->experts.bias) {
        add_expert_slice(lowering, unit,
                         &(SliceSpec){"experts_down_bias", SPLIT_NONE, model->experts.count, model->hidden, FILL_ZERO,
                                      lowering_splits_tokens(lowering) && lowering->ep == 1},
                         1);
    }
}

// Gate and up of each expert are split separately.
static void add_expert_matrices(Lowering *lowering, Unit *unit) {
    const ModelSpec *model = lowering->model;
    const Experts *experts = &model->experts;
    const int each = expert_inputs(lowering);
    const int64_t up = (int64_t)experts->count * each * experts->ffn, down = (int64_t)experts->count * model->hidden;
    add_expert_slice(lowering, unit, &(SliceSpec){"experts_up", SPLIT_ROWS, up, model->hidden, FILL_NORMAL, false},
                     each);
    add_expert_slice(lowering, unit, &(SliceSpec){"experts_down", SPLIT_COLS, down, experts->ffn, FILL_NORMAL, false},
                     1);
}

static void add_layer_slices(Lowering *lowering, Unit *unit) {
    const ModelSpec *model = lowering->model;
    if (lowering_adapts(lowering) && !lowering_adapters_apart(lowering)) {
        add_adapter_slices(lowering, unit);
        unit->trained_slices = unit->slice_count;
        unit->trained_elements = unit->elements;
    }
    add_shared_slices(lowering, unit);
    add_qk_norm_slices(lowering, unit);
    add_norm_slices(lowering, unit, "attention_norm", "attention_norm_bias");
    add_norm_slices(lowering, unit, "mlp_norm", "mlp_norm_bias");
    if (model->residual == RESIDUAL_BOTH_NORMS) {
        add_norm_slices(lowering, unit, "attention_post_norm", "attention_post_norm_bias");
        add_norm_slices(lowering, unit, "mlp_post_norm", "mlp_post_norm_bias");
    }
    if (model->out_bias) {
        add_vector(lowering, unit, "bo", FILL_ZERO);
    }
    if (model->mlp_bias) {
        add_vector(lowering, unit, "bdown", FILL_ZERO);
    }
    const bool experts_here = model->experts.count > 0 && lowering->ep == 1;
    if (experts_here) {
        add_expert_bias_down(lowering, unit);
    }
    add_split_biases(lowering, unit);
    add_attention_matrices(lowering, unit);
    if (experts_here) {
        add_expert_bias_up(lowering, unit);
    }
    if (model->sinks) {
        add_split_bias(lowering, unit, "sinks", model->heads);
    }
    const int ffn = model->experts.count > 0 ? model->experts.shared_ffn : model->ffn;
    mixed_begin(lowering, LAYER_EXPERTS);
    if (ffn > 0) {
        add_mlp_matrices(lowering, unit, ffn);
    }
    if (experts_here) {
        add_expert_matrices(lowering, unit);
    }
    if (lowering_is_mixed(lowering)) {
        mixed_begin(lowering, LAYER_DENSE);
        add_mlp_matrices(lowering, unit, model->ffn);
    }
    mixed_end(lowering);
}

static ParamSplit split_of(bool split) {
    return split ? SPLIT_ROWS : SPLIT_NONE;
}

static void add_embedding_slices(Lowering *lowering, Unit *unit) {
    const ModelSpec *model = lowering->model;
    lowering->part = UNIT_EMBEDDING;
    if (model->position == POSITION_LEARNED) {
        add_matrix(lowering, unit, "positions", SPLIT_NONE, model->max_seq, model->hidden);
    }
    add_matrix(lowering, unit, "embed", split_of(lowering->dims.embed_split), model->vocab, model->hidden);
}

// Another stage's table, copied: initially the same, whatever unit it is in.
static void mark_copy(Lowering *lowering) {
    ParamSlice *slice = &lowering->slices[lowering->slice_count - 1];
    slice->part = UNIT_EMBEDDING;
    slice->tensor = lowering->model->position == POSITION_LEARNED;
}

static void add_final_norm_slices(Lowering *lowering, Unit *unit) {
    lowering->part = UNIT_HEAD;
    add_norm_slices(lowering, unit, "final_norm", "final_norm_bias");
    add_further_vectors(lowering, unit);
}

static void add_head_slices(Lowering *lowering, Unit *unit) {
    const ModelSpec *model = lowering->model;
    lowering->part = UNIT_HEAD;
    if (!model->tied_embeddings) {
        const bool split = lowering->dims.vocab_split || head_gathers(lowering);
        if (model->head_bias) {
            add_slice(lowering, unit, &(SliceSpec){"lm_head_bias", split_of(split), model->vocab, 1, FILL_ZERO, false});
        }
        add_matrix(lowering, unit, "lm_head", split_of(split), model->vocab, model->hidden);
    }
    const bool copied = lowering->held->tied_peer >= 0, further = lowering->held->further_table;
    if (copied && !further) {
        mark_copy(lowering);
    }
    add_further_matrices(lowering, unit);
    if (copied && further) {
        mark_copy(lowering);
    }
}

// The part of a layer that is in a separate unit.
static void add_second_of_layer(Lowering *lowering) {
    const bool adapters = lowering_adapters_apart(lowering);
    Unit *unit = begin_unit(lowering, UNIT_EXPERTS, adapters ? "adapters" : "experts", lowering->model->layers);
    lowering->part = UNIT_LAYER;
    if (adapters) {
        add_adapter_slices(lowering, unit);
    } else {
        mixed_begin(lowering, LAYER_EXPERTS);
        add_expert_bias_down(lowering, unit);
        add_expert_bias_up(lowering, unit);
        add_expert_matrices(lowering, unit);
        mixed_end(lowering);
    }
    end_unit(lowering, unit);
}

void lower_units(Lowering *lowering) {
    const bool root = lowering->target->root_unit, two = lowering->ep > 1 || lowering_adapters_apart(lowering);
    lowering->unit_count = two ? UNIT_COUNT : root ? UNIT_HEAD : UNIT_EXPERTS;
    lowering->head_unit = unit_of_head(lowering->target);

    const StageLayers *held = lowering->held;
    const bool head_in_root = root && held->head;
    Unit *edge = begin_unit(lowering, UNIT_EMBEDDING, root ? "root" : "embedding", held->embedding || head_in_root);
    if (head_in_root) {
        add_final_norm_slices(lowering, edge);
    }
    if (held->embedding) {
        add_embedding_slices(lowering, edge);
    }
    if (head_in_root) {
        add_head_slices(lowering, edge);
    }
    end_unit(lowering, edge);

    Unit *layer = begin_unit(lowering, UNIT_LAYER, "layer", lowering->model->layers);
    lowering->part = UNIT_LAYER;
    add_layer_slices(lowering, layer);
    end_unit(lowering, layer);

    if (lowering->unit_count > UNIT_HEAD) {
        Unit *head = begin_unit(lowering, UNIT_HEAD, "head", held->head && !root);
        if (head->instances > 0) {
            add_final_norm_slices(lowering, head);
            add_head_slices(lowering, head);
        }
        end_unit(lowering, head);
    }
    if (lowering->unit_count > UNIT_EXPERTS) {
        add_second_of_layer(lowering);
    }
}

// In dense layers among others, their own slice if they have one.
static const ParamSlice *find_slice(const Lowering *lowering, const char *name) {
    for (int32_t i = 0; lowering->in_dense && i < lowering->slice_count; i++) {
        const char *known = lowering->slices[i].name;
        if (mixed_is_dense_name(known) && strcmp(mixed_plain_name(known), name) == 0) {
            return &lowering->slices[i];
        }
    }
    for (int32_t i = 0; i < lowering->slice_count; i++) {
        if (lowering->slices[i].name == name) {  // equal literals usually share an address
            return &lowering->slices[i];
        }
    }
    for (int32_t i = 0; i < lowering->slice_count; i++) {
        if (strcmp(lowering->slices[i].name, name) == 0) {
            return &lowering->slices[i];
        }
    }
    return NULL;
}

int64_t unit_slice_offset(const Lowering *lowering, const char *slice) {
    const ParamSlice *found = find_slice(lowering, slice);
    ASSERT(found);
    return found->offset_elements;
}

static int64_t unit_bytes(const Lowering *lowering, int32_t tensor, int64_t elements) {
    if (tensor == lowering->weights[UNIT_LAYER] && weights_are_packed(lowering)) {
        return packed_bytes(lowering, elements);
    }
    if (lowering->unit_count > UNIT_EXPERTS && tensor == lowering->weights[UNIT_EXPERTS] &&
        fp8_keeps_unit(lowering, UNIT_EXPERTS)) {
        return fp8_stored_bytes(lowering, elements);
    }
    const bool mixed = tensor == lowering->weights[UNIT_LAYER] && fp8_mixes_weights(lowering);
    return mixed ? fp8_weight_bytes(lowering, elements) : elements * dtype_bytes(lowering->tensors[tensor].dtype);
}

// The range from one slice to another of the same unit, in a tensor with the unit's flat layout (weights or gradients).
OpRef unit_slice(const Lowering *lowering, int32_t tensor, const char *slice, const char *last_slice) {
    const ParamSlice *first = find_slice(lowering, slice);
    const ParamSlice *last = find_slice(lowering, last_slice);
    ASSERT(first && last);
    const int64_t end = last->offset_elements + slice_elements(last);
    OpRef ref = op_whole(lowering, tensor);
    ref.offset_bytes = unit_bytes(lowering, tensor, first->offset_elements);
    ref.bytes = unit_bytes(lowering, tensor, end) - ref.offset_bytes;
    return ref;
}

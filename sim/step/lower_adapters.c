// Low-rank adapters alongside frozen linear layers (Hu et al. 2021): y = W x + B A x, A [rank, in], B [out, rank], with
// the factor alpha / rank in B. Under tp a column-parallel layer's A and a row-parallel layer's B are replicated, with
// gradients that are partial sums; the other one is split as the layer is (sim/SOURCES.md F2). One pass over the
// results adds the two, and another one scales where nothing is fused (peft's Linear.forward: result +
// lora_B(lora_A(x)) * scaling). Where adapters are Megatron-core layers, every A and B is split, and their outputs are
// communicated over tp (Megatron-Bridge 067f987df, peft/utils.py, ParallelLinearAdapter): rank-wide tensors, and the
// results of row-parallel layers, of which each rank then has its part of the sequence: gathered whole, or exchanged
// (a2a_experimental). As fused operations, without tp, B's product scales and adds to the layer's result, and a product
// adds both gradients of an input (NeMo 25.09, collections/llm/peft/lora.py, TEFusedLoRALinear; Transformer Engine
// v2.8, pytorch/ops/fused: forward_linear_scale_add.py, backward_linear_scale.py, backward_linear_add.py).

#include <string.h>

#include "sim/base/text.h"
#include "sim/step/lower_ops.h"

typedef struct Adapter {
    const char *of;  // first slice of its linear layer
    const char *a, *b;
    const char *base, *inner, *delta, *scaled, *inner_gradient, *input_gradient, *unpacked, *unpacked_again;
    const char *input, *input_fp32, *input_gradient_fp32, *dropped, *mask;
    const char *inner_part, *delta_part, *gradient;  // if they are Megatron-core layers
    bool row_parallel;
    unsigned targets;  // target sets that include it
} Adapter;

enum { OF_ALL = 1 << LORA_ALL, OF_ATTENTION = 1 << LORA_ATTENTION, OF_QUERY_VALUE = 1 << LORA_QUERY_VALUE };

#define NAMES(slice)                                                                                                   \
    .of = slice, .a = slice " adapter a", .b = slice " adapter b", .base = slice " frozen out",                        \
    .inner = slice " adapter inner", .delta = slice " adapter out", .scaled = slice " adapter scaled",                 \
    .inner_gradient = slice " adapter inner gradient", .input_gradient = slice " adapter input gradient",              \
    .unpacked = slice " unpacked", .unpacked_again = slice " unpacked again", .input = slice " adapter input",         \
    .input_fp32 = slice " adapter input fp32", .input_gradient_fp32 = slice " adapter input gradient fp32",            \
    .dropped = slice " adapter input dropped", .mask = slice " adapter input mask",                                    \
    .inner_part = slice " adapter inner part", .delta_part = slice " adapter out part",                                \
    .gradient = slice " adapter gradient"
static const Adapter adapters[] = {
    {NAMES("wq"), .targets = OF_ALL | OF_ATTENTION | OF_QUERY_VALUE},
    {NAMES("wk"), .targets = OF_ALL | OF_ATTENTION},
    {NAMES("wv"), .targets = OF_ALL | OF_ATTENTION | OF_QUERY_VALUE},
    {NAMES("wo"), .row_parallel = true, .targets = OF_ALL | OF_ATTENTION},
    {NAMES("wgate"), .targets = OF_ALL},
    {NAMES("wup"), .targets = OF_ALL},
    {NAMES("wdown"), .row_parallel = true, .targets = OF_ALL},
};
enum { ADAPTERS = sizeof adapters / sizeof adapters[0] };

// Unsplit sizes of the linear layer that begins with the slice; out 0 if there is none. In an MoE layer shared experts
// have linear layers; routed ones and the router are plain parameters there (transformers 5, integrations/moe.py;
// GroupedExperts elsewhere), which no list of linear layers names.
typedef struct LinearSize {
    int64_t in, out;
} LinearSize;

static LinearSize size_of(const Lowering *lowering, const Adapter *adapter) {
    const ModelSpec *model = lowering->model;
    const int64_t q = (int64_t)model->heads * model->head_dim, kv = (int64_t)model->kv_heads * model->head_dim;
    const int64_t hidden = model->hidden, ffn = model->experts.count > 0 ? model->experts.shared_ffn : model->ffn;
    const bool gated = model->mlp == MLP_GATED && ffn > 0, one_up = gated && lowering->fused_gate_up;
    const LinearSize sizes[ADAPTERS] = {
        {hidden, lowering->fused_qkv ? q + 2 * kv : q},
        {hidden, lowering->fused_qkv ? 0 : kv},
        {hidden, lowering->fused_qkv ? 0 : kv},
        {q, hidden},
        {hidden, one_up  ? 2 * ffn
                 : gated ? ffn
                         : 0},
        {hidden, one_up ? 0 : ffn},
        {ffn, ffn > 0 ? hidden : 0},
    };
    const LinearSize none = {0};
    return adapter->targets >> lowering->plan->lora_targets & 1 ? sizes[adapter - adapters] : none;
}

// Whether both of an adapter's layers are split over tp.
static bool cuts_both(const Lowering *lowering) {
    return lowering->target->adapters_of_core && lowering->tp > 1;
}

static SliceSpec slice_of(const Lowering *lowering, const Adapter *adapter, bool b) {
    const LinearSize size = size_of(lowering, adapter);
    const int64_t rank = plan_lora_rank(lowering->plan);
    const bool whole = b == adapter->row_parallel && !cuts_both(lowering);
    return b ? (SliceSpec){adapter->b, whole ? SPLIT_NONE : SPLIT_ROWS, size.out, rank, FILL_NOTHING, whole}
             : (SliceSpec){adapter->a,  whole ? SPLIT_NONE : adapter->row_parallel ? SPLIT_COLS : SPLIT_ROWS,
                           rank,        size.in,
                           FILL_NORMAL, whole};
}

void add_adapter_slices(Lowering *lowering, Unit *unit) {
    for (int first = 1; first >= 0; first--) {  // slices that may be replicated over tp come first
        for (int i = 0; i < ADAPTERS; i++) {
            if (size_of(lowering, &adapters[i]).out > 0) {
                const SliceSpec slice = slice_of(lowering, &adapters[i], adapters[i].row_parallel == (first == 1));
                add_slice(lowering, unit, &slice);
            }
        }
    }
}

// Of the linear layer of a block that begins with the slice; NULL if it has none.
static const Adapter *adapter_at(const Lowering *lowering, const char *first_slice) {
    const Adapter *adapter = lowering_adapts(lowering) ? TEXT_FIND(adapters, ADAPTERS, of, first_slice) : NULL;
    return adapter && size_of(lowering, adapter).out > 0 ? adapter : NULL;
}

bool adapter_reads(const Lowering *lowering, const char *tensor) {
    static const char *const readers[][2] = {
        {"attention_in", "wq"}, {"attention_in_full", "wq"}, {"attention_out_fp8", "wo"}, {"mlp_in", "wgate"},
        {"mlp_in", "wup"},      {"mlp_in_full", "wgate"},    {"mlp_in_full", "wup"},      {"activation_out", "wdown"}};
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (strcmp(readers[i][0], tensor) == 0 && adapter_at(lowering, readers[i][1])) {
            return true;
        }
    }
    return false;
}

static const Adapter *adapter_named(const Lowering *lowering, const Linear *linear) {
    if (!lowering_adapts(lowering) || linear->unit != UNIT_LAYER) {
        return NULL;
    }
    return TEXT_FIND(adapters, ADAPTERS, of, linear->first);
}

static const Adapter *adapter_of(const Lowering *lowering, const Linear *linear) {
    return linear->unit == UNIT_LAYER ? adapter_at(lowering, linear->first) : NULL;
}

// ---- quantized frozen weights

// Bytes per parameter: bitsandbytes' nf4 with a 4-byte scale for each 64, int8 with one for each row (Dettmers et al.
// 2023, QLoRA, 3, without double quantization; Dettmers et al. 2022, LLM.int8()).
static double bytes_per_frozen(const Lowering *lowering) {
    const double of[FINETUNE_COUNT] = {
        [FINETUNE_QLORA] = 0.5 + 4.0 / 64, [FINETUNE_LORA_INT8] = 1 + 4.0 / lowering->model->hidden};
    return of[lowering->plan->finetune];
}

bool weights_are_packed(const Lowering *lowering) {
    return bytes_per_frozen(lowering) > 0;
}

// The untrained matrices come last.
static int64_t first_packed_element(const Lowering *lowering) {
    const Unit *layer = &lowering->units[UNIT_LAYER];
    for (int32_t i = layer->trained_slices; i < layer->slice_count; i++) {
        const ParamSlice *slice = &lowering->slices[layer->first_slice + i];
        if (slice->decay) {
            return slice->offset_elements;
        }
    }
    return layer->elements;
}

int64_t packed_bytes(const Lowering *lowering, int64_t elements) {
    const int64_t first = first_packed_element(lowering), leading = elements < first ? elements : first;
    return leading * lowering->dims.element +
           (int64_t)((double)(elements - leading) * bytes_per_frozen(lowering) + 0.5);
}

OpRef unpacked_weights(Lowering *lowering, Section section, const Linear *linear, OpRef weights) {
    const Adapter *adapter = adapter_named(lowering, linear);
    if (!adapter || !weights_are_packed(lowering)) {
        return weights;
    }
    const int64_t elements = linear->in * linear->out;
    const bool forward = section == SECTION_LAYER_FORWARD;
    const OpRef unpacked =
        op_whole(lowering, lowering_tensor(lowering, forward ? adapter->unpacked : adapter->unpacked_again,
                                           ROLE_ACTIVATION, lowering->dims.dtype, elements));
    op_copy(lowering, section, layer_phase(section), "unpack weights", 1, elements, weights, unpacked);
    return unpacked;
}

// ---- the adapters

static int adapter_unit(const Lowering *lowering) {
    return lowering_adapters_apart(lowering) ? UNIT_ADAPTERS : UNIT_LAYER;
}

static OpRef adapter_weights(const Lowering *lowering, const char *slice) {
    return unit_slice(lowering, lowering->weights[adapter_unit(lowering)], slice, slice);
}

// Factor in a product where nothing else scales: for targets without a pass over the results that does.
static double scaling(const Lowering *lowering) {
    return lowering_adapters_apart(lowering) ? LORA_SCALING : 0;
}

static OpRef inner_of(Lowering *lowering, const char *name) {
    return op_whole(lowering, tokens_by(lowering, name, plan_lora_rank(lowering->plan)));
}

// ---- Megatron-core layers: communication over tp

static OpRef op_part(OpRef whole, int64_t bytes) {
    whole.bytes = bytes;
    return whole;
}

static void add_over_tp(Lowering *lowering, Section section, TaskKind kind, const char *name, OpRef from, OpRef to) {
    Op op = op_collective(lowering, kind, LANE_TP, lowering->tp_group, name, layer_phase(section));
    op.task.unhidden = true;
    op.task.payload_bytes = to.bytes;  // of an exchange: what a rank has, before and after
    if (kind != TASK_ALL_REDUCE) {
        op_operand(&op, from, ACCESS_READ);
    }
    op_operand(&op, to, kind == TASK_ALL_REDUCE ? ACCESS_UPDATE : ACCESS_WRITE);
    op_list_append(lowering->arena, &lowering->lists[section], &op);
}

// The named tensor: this rank's part of what is gathered, or all of it.
static OpRef gathered_from(Lowering *lowering, const char *name, OpRef whole) {
    const int64_t width = whole.bytes / lowering->dims.element / lowering->dims.tokens;
    return cuts_both(lowering) ? op_whole(lowering, tokens_by(lowering, name, width / lowering->tp)) : whole;
}

// What this rank computes: columns of A's result, and of B's.
static int64_t rank_made(const Lowering *lowering, const Adapter *adapter) {
    const int64_t rank = plan_lora_rank(lowering->plan);
    return cuts_both(lowering) && !adapter->row_parallel ? rank / lowering->tp : rank;
}

static int64_t out_made(const Lowering *lowering, const Adapter *adapter, const Linear *linear) {
    return cuts_both(lowering) && adapter->row_parallel ? linear->out / lowering->tp : linear->out;
}

static Op *add_product(Lowering *lowering, Section section, const char *name, const Product *product) {
    Op *op = op_add(lowering, section, TASK_GEMM, layer_phase(section), name);
    op_product(op, product);
    return op;
}

static int parts_of_result(const Lowering *lowering, const Adapter *adapter) {
    return adapter->row_parallel && cuts_both(lowering) && lowering_splits_tokens(lowering) ? lowering->tp : 1;
}

static bool exchanges(const Lowering *lowering) {
    return lowering->target->adapters_exchange && lowering_splits_tokens(lowering);
}

bool adapters_fuse(const Lowering *lowering) {
    return lowering->plan->op_fuser && lowering->target->adapters_of_core && lowering->tp == 1;
}

OpRef adapter_frozen_out(Lowering *lowering, const Linear *linear, OpRef y) {
    const Adapter *adapter = adapter_of(lowering, linear);
    const bool whole = adapter && parts_of_result(lowering, adapter) == 1 && !adapters_fuse(lowering);
    return whole ? op_whole(lowering, tokens_by(lowering, adapter->base, linear->out)) : y;
}

// Whether peft's own layers run them: kernels written for adapters come with packed weights (fms-acceleration,
// Unsloth), and a compiler leaves no copies.
static bool runs_in_peft(const Lowering *lowering) {
    const Fused fused = lowering->plan->fused;
    return lowering->target->adapters_cast && fused != FUSED_COMPILED &&
           !(fused == FUSED_FUSED && weights_are_packed(lowering));
}

// peft keeps adapters in fp32 (autocast_adapter_dtype) and casts the input of each to that, autocast casts it back for
// the product: a separate copy for each adapter, which A's gradient reads, and two passes in backward. Adapters in bf16
// read what is there.
static bool casts_inputs(const Lowering *lowering) {
    return runs_in_peft(lowering) && dtype_bytes(lowering->dims.dtype) == 2 && dtype_bytes(lowering->master_dtype) > 2;
}

// Dropout of each adapter's input, bytes per element, forward and backward. In peft's layer it runs on the fp32 copy
// and keeps a mask of a byte (peft 0.13 tuners/lora/layer.py; PyTorch's native_dropout): read, written, masked, and
// back. In kernels for packed weights it runs in the working dtype, and backward asks the dropped input where it is not
// 0 (fms-acceleration 876e2ed, fused_ops/unsloth_lora: matmul_lora, LoRA_QKV): compared, multiplied, but for the sum.
// Megatron-Bridge's, and peft's before adapters in bf16, is PyTorch's, in the working dtype; of fused operations the
// mask is of bits (Transformer Engine v2.8, common/dropout/dropout.cu). Not modelled: launches.
typedef struct DropBytes {
    int forward, backward;
} DropBytes;

static const DropBytes drop_in_fp32 = {4 + 4 + 1, 4 + 1 + 4}, drop_in_kernels = {2 + 2 + 1, 2 + 1 + 1 + 2 + 2},
                       drop_in_half = {2 + 2 + 1, 2 + 1 + 2}, drop_by_bits = {2 + 2, 2 + 2};

static bool drops_inputs(const Lowering *lowering) {
    return lowering->target->adapters_drop && lowering->plan->fused != FUSED_COMPILED;
}

static bool drops_by_torch(const Lowering *lowering) {
    return runs_in_peft(lowering) || lowering->target->adapters_of_core;
}

static int64_t drop_bytes(const Lowering *lowering, bool backward, int64_t elements) {
    if (!drops_inputs(lowering)) {
        return 0;
    }
    const bool of_torch = drops_by_torch(lowering);
    const bool wide = casts_inputs(lowering) || (of_torch && dtype_bytes(lowering->dims.dtype) > 2);
    const DropBytes *bytes = wide                      ? &drop_in_fp32
                             : adapters_fuse(lowering) ? &drop_by_bits
                             : of_torch                ? &drop_in_half
                                                       : &drop_in_kernels;
    return elements * (backward ? bytes->backward : bytes->forward);
}

// What backward reads of it: the dropped input, A's own, and PyTorch's mask, of a bit where operations are fused.
static void drop_operands(Lowering *lowering, Op *op, const Adapter *adapter, const Linear *linear, int64_t rows,
                          Access access) {
    const int64_t elements = rows * linear->in, bits = adapters_fuse(lowering) ? 8 : 1;
    if (drops_inputs(lowering) && !casts_inputs(lowering)) {
        op_operand(op, op_whole(lowering, tokens_by(lowering, adapter->dropped, linear->in)), access);
    }
    if (drops_inputs(lowering) && drops_by_torch(lowering)) {
        op_operand(
            op,
            op_whole(lowering, lowering_tensor(lowering, adapter->mask, ROLE_ACTIVATION, DTYPE_FP8, elements / bits)),
            access);
    }
}

static OpRef fp32_of(Lowering *lowering, const char *name, int64_t elements) {
    return op_whole(lowering, lowering_tensor(lowering, name, ROLE_ACTIVATION, DTYPE_FP32, elements));
}

static OpRef adapter_input(Lowering *lowering, const Adapter *adapter, const Linear *linear, OpRef x) {
    return casts_inputs(lowering) ? op_whole(lowering, tokens_by(lowering, adapter->input, linear->in)) : x;
}

// Of A's gradient.
static OpRef kept_input(Lowering *lowering, const Adapter *adapter, const Linear *linear, OpRef x) {
    const bool dropped = drops_inputs(lowering) && !casts_inputs(lowering);
    return dropped ? op_whole(lowering, tokens_by(lowering, adapter->dropped, linear->in))
                   : adapter_input(lowering, adapter, linear, x);
}

static bool is_wide(const Lowering *lowering, OpRef x) {
    return lowering->tensors[x.tensor].dtype == DTYPE_FP32;
}

static void cast_input(Lowering *lowering, const Adapter *adapter, const Linear *linear, const Rows *rows) {
    const int64_t elements = rows->count * linear->in;
    OpRef fp32 = rows->x;
    if (!is_wide(lowering, rows->x)) {
        fp32 = fp32_of(lowering, adapter->input_fp32, elements);
        cast_values(lowering, SECTION_LAYER_FORWARD, "adapter upcast", rows->x, fp32);
    }
    cast_values(lowering, SECTION_LAYER_FORWARD, "adapter autocast", fp32,
                adapter_input(lowering, adapter, linear, rows->x));
}

static OpRef scaled_out(Lowering *lowering, const Adapter *adapter, OpRef delta, int64_t elements) {
    const bool of_peft = lowering->plan->fused == FUSED_EAGER || runs_in_peft(lowering);
    if (!of_peft && !lowering->target->adapters_of_core) {
        return delta;
    }
    const OpRef scaled = op_whole(lowering, tokens_by(lowering, adapter->scaled, elements / lowering->dims.tokens));
    op_copy(lowering, SECTION_LAYER_FORWARD, PHASE_FORWARD, "adapter scale", 1, elements, delta, scaled);
    return scaled;
}

static OpRef add_inner(Lowering *lowering, Section section, const Adapter *adapter, const Linear *linear,
                       const Rows *rows) {
    const OpRef inner = inner_of(lowering, adapter->inner);
    const bool gathers = !adapter->row_parallel;
    const OpRef made = gathers ? gathered_from(lowering, adapter->inner_part, inner) : inner;
    Op *op = add_product(lowering, section, adapter->a,
                         &(Product){.a = adapter_input(lowering, adapter, linear, rows->x),
                                    .b = adapter_weights(lowering, adapter->a),
                                    .c = made,
                                    .m = rows->count,
                                    .n = rank_made(lowering, adapter),
                                    .k = linear->in,
                                    .trans_b = true});
    op->task.cast_bytes = drop_bytes(lowering, false, rows->count * linear->in);
    drop_operands(lowering, op, adapter, linear, rows->count, ACCESS_WRITE);
    if (cuts_both(lowering)) {
        add_over_tp(lowering, section, gathers ? TASK_ALL_GATHER : TASK_ALL_REDUCE, adapter->inner, made, inner);
    }
    return inner;
}

static OpRef add_delta(Lowering *lowering, Section section, const Adapter *adapter, const Linear *linear, OpRef inner,
                       const Rows *rows) {
    const bool moves = adapter->row_parallel && cuts_both(lowering), adds = adapters_fuse(lowering);
    const int64_t width = moves && exchanges(lowering) ? linear->out / lowering->tp : linear->out;
    const OpRef delta = adds ? rows->y : op_whole(lowering, tokens_by(lowering, adapter->delta, width));
    const OpRef made =
        moves ? op_whole(lowering, tokens_by(lowering, adapter->delta_part, linear->out / lowering->tp)) : delta;
    Op *op = add_product(lowering, section, adapter->b,
                         &(Product){.a = inner,
                                    .b = adapter_weights(lowering, adapter->b),
                                    .c = made,
                                    .m = rows->count,
                                    .n = out_made(lowering, adapter, linear),
                                    .k = plan_lora_rank(lowering->plan),
                                    .trans_b = true,
                                    .adds = adds});
    op->task.factor = adds ? LORA_SCALING : scaling(lowering);
    if (moves) {
        add_over_tp(lowering, section, exchanges(lowering) ? TASK_ALL_TO_ALL : TASK_ALL_GATHER, adapter->delta, made,
                    delta);
    }
    return parts_of_result(lowering, adapter) > 1 ? op_part(delta, made.bytes) : delta;
}

static void add_result(Lowering *lowering, Section section, const Adapter *adapter, const Linear *linear, OpRef delta,
                       const Rows *rows) {
    const int parts = parts_of_result(lowering, adapter);
    const int64_t elements = rows->count * linear->out / parts;
    const OpRef scaled = scaled_out(lowering, adapter, delta, elements);
    if (parts == 1) {
        add_sum(lowering, section, adapter_frozen_out(lowering, linear, rows->y), scaled, rows->y, elements);
        return;
    }
    const Op sum = op_local(TASK_ACCUMULATE, PHASE_FORWARD, "adapter sum", lowering->dims.dtype, 1, elements);
    op_list_move(lowering, &lowering->lists[section], sum, scaled, op_part(rows->y, rows->y.bytes / parts),
                 ACCESS_UPDATE);
}

void add_adapter_forward(Lowering *lowering, const Linear *linear, const Rows *rows) {
    const Adapter *adapter = adapter_of(lowering, linear);
    if (!adapter) {
        return;
    }
    const Section section = SECTION_LAYER_FORWARD;
    if (casts_inputs(lowering)) {
        cast_input(lowering, adapter, linear, rows);
    }
    const OpRef inner = add_inner(lowering, section, adapter, linear, rows);
    const OpRef delta = add_delta(lowering, section, adapter, linear, inner, rows);
    if (!adapters_fuse(lowering)) {
        add_result(lowering, section, adapter, linear, delta, rows);
    }
}

static bool is_made(const Lowering *lowering, Section section, int32_t tensor) {
    const OpList *list = &lowering->lists[section];
    for (size_t i = 0; i < list->count; i++) {
        for (int k = 0; k < list->ops[i]->operand_count; k++) {
            const OpRef *ref = &list->ops[i]->operands[k];
            if (ref->tensor == tensor && ref->access == ACCESS_WRITE) {
                return true;
            }
        }
    }
    return false;
}

// Gradient of B's output, of which a rank needs its columns. With a row-parallel layer that output was gathered or
// exchanged: the gradient needs the same of its own where its sequence is split, and is whole elsewhere.
static OpRef out_gradient(Lowering *lowering, Section section, const Adapter *adapter, const Linear *linear, OpRef dy) {
    if (!cuts_both(lowering) || !adapter->row_parallel) {
        return dy;
    }
    const int64_t columns = linear->out / lowering->tp,
                  bytes = lowering->dims.tokens * columns * lowering->dims.element;
    if (!lowering_splits_tokens(lowering)) {
        return op_part(dy, bytes);
    }
    const bool sent = exchanges(lowering);
    const OpRef own = op_whole(lowering, tokens_by(lowering, adapter->gradient, sent ? columns : linear->out));
    if (!is_made(lowering, section, own.tensor)) {
        add_over_tp(lowering, section, sent ? TASK_ALL_TO_ALL : TASK_ALL_GATHER, adapter->gradient,
                    op_part(dy, dy.bytes / lowering->tp), own);
    }
    return op_part(own, bytes);
}

// dy B, which both gradients read: computed by whichever comes first.
static OpRef inner_gradient(Lowering *lowering, Section section, const Adapter *adapter, const Linear *linear,
                            OpRef dy) {
    const OpRef inner = inner_of(lowering, adapter->inner_gradient);
    if (!is_made(lowering, section, inner.tensor)) {
        Op *op = add_product(lowering, section, adapter->inner_gradient,
                             &(Product){.a = out_gradient(lowering, section, adapter, linear, dy),
                                        .b = adapter_weights(lowering, adapter->b),
                                        .c = inner,
                                        .m = lowering->dims.tokens,
                                        .n = plan_lora_rank(lowering->plan),
                                        .k = out_made(lowering, adapter, linear)});
        op->task.factor = scaling(lowering);
        add_product_cast(lowering, op, dy);
        if (cuts_both(lowering)) {
            add_over_tp(lowering, section, TASK_ALL_REDUCE, adapter->inner_gradient, inner, inner);
        }
    }
    return rank_made(lowering, adapter) < plan_lora_rank(lowering->plan) ? op_part(inner, inner.bytes / lowering->tp)
                                                                         : inner;
}

void add_adapter_input_gradient(Lowering *lowering, Section section, const Linear *linear, const Rows *rows) {
    const Adapter *adapter = adapter_of(lowering, linear);
    if (!adapter) {
        return;
    }
    const bool adds = adapters_fuse(lowering);
    OpRef part = adds ? rows->x : op_whole(lowering, tokens_by(lowering, adapter->input_gradient, linear->in));
    Op *op = add_product(lowering, section, adapter->input_gradient,
                         &(Product){.a = inner_gradient(lowering, section, adapter, linear, rows->y),
                                    .b = adapter_weights(lowering, adapter->a),
                                    .c = part,
                                    .m = rows->count,
                                    .n = linear->in,
                                    .k = rank_made(lowering, adapter),
                                    .adds = adds});
    op->task.cast_bytes = drop_bytes(lowering, true, rows->count * linear->in);
    drop_operands(lowering, op, adapter, linear, rows->count, ACCESS_READ);
    if (adds) {
        return;
    }
    if (casts_inputs(lowering)) {
        const int64_t elements = rows->count * linear->in;
        const OpRef fp32 = fp32_of(lowering, adapter->input_gradient_fp32, elements);
        cast_values(lowering, section, "adapter autocast gradient", part, fp32);
        if (is_wide(lowering, rows->x)) {
            part = fp32;
        } else {
            cast_values(lowering, section, "adapter upcast gradient", fp32, part);
        }
    }
    add_sum(lowering, section, rows->x, part, rows->x, rows->count * linear->in);
}

void add_adapter_weight_gradient(Lowering *lowering, Section section, const Linear *linear, const Rows *rows) {
    const Adapter *adapter = adapter_of(lowering, linear);
    if (!adapter) {
        return;
    }
    const int32_t gradients = lowering->gradients[adapter_unit(lowering)];
    Op *op = add_product(lowering, section, adapter->b,
                         &(Product){.a = out_gradient(lowering, section, adapter, linear, rows->y),
                                    .b = inner_of(lowering, adapter->inner),
                                    .c = unit_slice(lowering, gradients, adapter->b, adapter->b),
                                    .m = out_made(lowering, adapter, linear),
                                    .n = plan_lora_rank(lowering->plan),
                                    .k = rows->count,
                                    .trans_a = true});
    op->task.factor = scaling(lowering);
    add_product(lowering, section, adapter->a,
                &(Product){.a = inner_gradient(lowering, section, adapter, linear, rows->y),
                           .b = kept_input(lowering, adapter, linear, rows->x),
                           .c = unit_slice(lowering, gradients, adapter->a, adapter->a),
                           .m = rank_made(lowering, adapter),
                           .n = linear->in,
                           .k = rows->count,
                           .trans_a = true});
}

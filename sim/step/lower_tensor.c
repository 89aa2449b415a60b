// Pass 2: tensor parallelism. Widths are split over tp (tensor_parallel_dims); the marks become collectives on the tp
// lane:
//
//   mark              SP                  AR              HF
//   enter             all-gather          -               -
//   leave             reduce-scatter      all-reduce      all-reduce
//   leave, backward   all-gather          -               -
//   part, backward    -                   -               all-reduce
//   enter, backward   reduce-scatter      all-reduce      -
//
// (Korthikanti et al. 2022 for SP; Shoeybi et al. 2019 for AR; sim/SOURCES.md P8 for HF.) With tp = 1 a mark
// disappears: its two tensors are one.

#include "sim/step/lower_ops.h"

Dims tensor_parallel_dims(const ModelSpec *model, const TrainPlan *plan, const Target *target) {
    const int tp = plan->mesh.size[AXIS_TP];
    const int64_t tokens = plan_local_tokens(plan);
    const Dtype dtype = plan_activation_dtype(plan);
    // No sharding policy: gradients have the masters' dtype.
    const bool whole_fp32 = plan->zero == 0 && target->master_fp32 && !plan->bf16_master;
    const bool whole_half = plan->zero == 0 && plan->bf16_master;
    const bool half = dtype == DTYPE_BF16 || dtype == DTYPE_FP16;
    const Dtype of_sharding = target_shards_itself(target, plan) ? DTYPE_FP32 : target->reduce_dtype_bf16;
    const bool whole_fp16 = dtype == DTYPE_FP16 && target->fp16_sums;
    const bool reduces_half = (of_sharding != DTYPE_FP32 && !whole_fp32) || whole_half || whole_fp16;
    const bool whole_vocab = target_has_whole_logits(target);
    const bool splits_table = target->tp_splits_embedding || (target->tp_splits_head && model->tied_embeddings);
    const bool embed_split = !whole_vocab || (splits_table && tp > 1);
    const Dtype reduces[REDUCE_DTYPE_COUNT] = {
        [REDUCE_DTYPE_TARGET] = half && reduces_half ? dtype : DTYPE_FP32,
        [REDUCE_DTYPE_FP32] = DTYPE_FP32,
        [REDUCE_DTYPE_BF16] = DTYPE_BF16,
    };
    const Dtype reduce = reduces[plan->zero > 0 ? plan->reduce_dtype : REDUCE_DTYPE_TARGET];
    const bool latent = model->latent.kv_rank > 0;
    const int mean_head = latent ? (model->head_dim + model->latent.value) / 2 : model->head_dim;
    const int kv_heads = tp > model->kv_heads ? 1 : model->kv_heads / tp;
    const int core_kv_heads = target->repeats_keys && !latent ? model->heads / tp : kv_heads;
    const int64_t value_dim = latent ? model->latent.value : model->head_dim;
    return (Dims){
        .tokens = tokens,
        .tokens_between = target_tp_flavour(target, plan) == TP_SP ? tokens / tp : tokens,
        .sequences = plan->micro_batch,
        .local_seq = plan->seq / plan->mesh.size[AXIS_CP],
        .hidden = model->hidden,
        .ffn = (model->experts.count > 0 ? model->experts.shared_ffn : model->ffn) / tp,
        .vocab = whole_vocab ? model->vocab : model->vocab / tp,
        .head_vocab = whole_vocab && !target->tp_splits_head ? model->vocab : model->vocab / tp,
        .heads = model->heads / tp,
        .kv_heads = kv_heads,
        .core_kv_heads = core_kv_heads,
        .core_k_width = (int64_t)core_kv_heads * model->head_dim,
        .core_v_width = core_kv_heads * value_dim,
        .head_dim = mean_head,
        .q_width = (int64_t)model->heads / tp * model->head_dim,
        .k_width = (int64_t)kv_heads * model->head_dim,
        .v_width = kv_heads * value_dim,
        .qkv_width = ((int64_t)(model->heads + model->kv_heads) * model->head_dim + model->kv_heads * value_dim) / tp,
        .o_width = (int64_t)model->heads / tp * value_dim,
        .vocab_split = !whole_vocab,
        .embed_split = embed_split,
        .embed_vocab = embed_split ? model->vocab / tp : model->vocab,
        .dtype = dtype,
        .gradient_dtype = !half               ? DTYPE_FP32
                          : target->half_sums ? dtype
                                              : reduce,
        .reduce_dtype = reduce,
        .element = dtype_bytes(dtype),
    };
}

// Merges two names of one tensor: every use of `from` becomes a use of `to`, `index` layers further.
static void alias_tensor(Lowering *lowering, int32_t from, int32_t to, int index) {
    for (int section = 0; section < SECTION_COUNT; section++) {
        OpList *list = &lowering->lists[section];
        for (size_t i = 0; i < list->count; i++) {
            for (int k = 0; k < list->ops[i]->operand_count; k++) {
                OpRef *ref = &list->ops[i]->operands[k];
                ref->index = (int16_t)(ref->index + (ref->tensor == from ? index : 0));
                ref->tensor = ref->tensor == from ? to : ref->tensor;
            }
        }
    }
}

static void unite(Lowering *lowering, const Op *mark) {
    const int32_t in = mark->operands[AT_MARK_FROM].tensor, out = mark->operands[AT_MARK_TO].tensor;
    if (in == out) {
        return;
    }
    const bool out_is_stream = lowering->tensors[out].slots > 0;
    alias_tensor(lowering, out_is_stream ? in : out, out_is_stream ? out : in,
                 mark->operands[out_is_stream ? AT_MARK_TO : AT_MARK_FROM].index);
}

static TaskKind mark_collective(const Lowering *lowering, Mark mark) {
    static const TaskKind table[3][5] = {
        [TP_SP] = {TASK_ALL_GATHER, TASK_REDUCE_SCATTER, TASK_KIND_COUNT, TASK_REDUCE_SCATTER, TASK_ALL_GATHER},
        [TP_AR] = {TASK_KIND_COUNT, TASK_ALL_REDUCE, TASK_KIND_COUNT, TASK_ALL_REDUCE, TASK_KIND_COUNT},
        [TP_HF] = {TASK_KIND_COUNT, TASK_ALL_REDUCE, TASK_ALL_REDUCE, TASK_KIND_COUNT, TASK_KIND_COUNT},
    };
    return lowering->tp > 1 ? table[target_tp_flavour(lowering->target, lowering->plan)][mark - MARK_TP_ENTER]
                            : TASK_KIND_COUNT;
}

static bool is_tp_mark(const Op *op) {
    return op->mark >= MARK_TP_ENTER && op->mark <= MARK_TP_LEAVE_BACKWARD;
}

// Marks whose tensors are the same are merged before anything is emitted, so that emission sees final names.
static void unite_all(Lowering *lowering) {
    for (int section = 0; section < SECTION_COUNT; section++) {
        for (size_t i = 0; i < lowering->lists[section].count; i++) {
            if (!is_tp_mark(lowering->lists[section].ops[i])) {
                continue;
            }
            const Op op = *lowering->lists[section].ops[i];
            const TaskKind kind = mark_collective(lowering, op.mark);
            if (kind == TASK_KIND_COUNT || kind == TASK_ALL_REDUCE) {
                unite(lowering, &op);
            }
        }
    }
}

// Linear layers gather what they do not keep into one buffer, and what backward hands them into another: both are there
// for good. The embedding's gradient is gathered by itself. Not modelled: inputs of layers that are recomputed, which
// are gathered once there, not for each product.
static void gather_into_buffer(Lowering *lowering, const Op *mark, Section section) {
    const bool backward = mark->mark == MARK_TP_LEAVE_BACKWARD;
    const bool again =
        target_regathers(lowering->target, lowering->plan) && lowering->plan->recompute == RECOMPUTE_NONE;
    const bool kept = !backward && !again;
    if (!lowering->target->gather_buffers || kept || section == SECTION_BEGIN || section == SECTION_END) {
        return;
    }
    const int32_t to = mark->operands[AT_MARK_TO].tensor;
    const int32_t buffer =
        lowering_tensor(lowering, backward ? "gathered gradients" : "gathered inputs", ROLE_COMMUNICATION,
                        lowering->tensors[to].dtype, lowering->dims.tokens * lowering->dims.hidden);
    lowering->tensors[buffer].persistent = true;
    lowering->tensors[to].lender = buffer;
}

void lower_gather_buffers(Lowering *lowering) {
    for (int section = 0; section < SECTION_NORM && lowering->target->gather_buffers; section++) {
        const OpList *list = &lowering->lists[section];
        for (size_t i = 0; i < list->count; i++) {
            for (int k = 0; k < list->ops[i]->operand_count; k++) {
                OpRef *ref = &list->ops[i]->operands[k];
                const int32_t lender = ref->tensor >= 0 ? lowering->tensors[ref->tensor].lender : -1;
                ref->tensor = lender >= 0 ? lender : ref->tensor;
            }
        }
    }
}

static void emit_tp(Lowering *lowering, OpList *out, const Op *mark, Section section) {
    const TaskKind kind = mark_collective(lowering, mark->mark);
    if (kind == TASK_KIND_COUNT) {
        return;
    }
    const bool backward = mark->mark >= MARK_TP_PART_BACKWARD;
    const Phase phase = section != SECTION_TAIL ? mark->task.phase : backward ? PHASE_BACKWARD : PHASE_LOSS;
    Op op = op_collective(lowering, kind, LANE_TP, lowering->tp_group, mark->task.name, phase);
    op.task.dtype = lowering->tensors[mark->operands[AT_MARK_FROM].tensor].dtype;
    op.task.share = mark->task.share;
    op.task.part = mark->task.part;
    op.task.unhidden = mark->task.unhidden;
    op.only = mark->only;
    const int64_t elements = lowering->dims.tokens * lowering->dims.hidden;
    op.task.payload_bytes = op.task.dtype == DTYPE_FP8
                                ? fp8_gathered_bytes(lowering, elements, mark->mark == MARK_TP_LEAVE_BACKWARD)
                                : elements * dtype_bytes(op.task.dtype);
    op_operand(&op, mark->operands[AT_MARK_FROM], kind == TASK_ALL_REDUCE ? ACCESS_UPDATE : ACCESS_READ);
    if (kind == TASK_ALL_GATHER) {
        gather_into_buffer(lowering, mark, section);
    }
    if (kind != TASK_ALL_REDUCE) {
        op_operand(&op, mark->operands[AT_MARK_TO], ACCESS_WRITE);
    }
    if (mark->operand_count > AT_MARK_SCALE) {  // the scale that the ranks agreed on
        op_operand(&op, mark->operands[AT_MARK_SCALE], ACCESS_READ);
    }
    op_list_append(lowering->arena, out, &op);
}

// ---- the loss

static Op loss_op(const Lowering *lowering, TaskKind kind, const char *name, int64_t rows, int64_t cols, Dtype dtype) {
    Op op = op_local(kind, PHASE_LOSS, name, dtype, rows, cols);
    op.task.vocab_split = cols != lowering->model->vocab;
    return op;
}

static void emit_loss_reduce(Lowering *lowering, OpList *out, OpRef data, bool max, const char *name) {
    if (lowering->tp == 1) {
        return;
    }
    Op op = op_collective(lowering, TASK_ALL_REDUCE, LANE_TP, lowering->tp_group, name, PHASE_LOSS);
    op.task.dtype = DTYPE_FP32;
    op.task.reduce_max = max;
    op.task.payload_bytes = data.bytes;
    op_operand(&op, data, ACCESS_UPDATE);
    op_list_append(lowering->arena, out, &op);
}

enum { MAX_KEPT = 4 };

typedef struct LossRefs {
    OpRef logits;          // in-place operand of max, sum and gradient
    OpRef kept[MAX_KEPT];  // fp32 tensors of that size that live until the gradient: log-softmax, its gradient ...
    OpRef targets;
    int64_t rows, cols;
    bool more;  // earlier rows have already added their loss
    Dtype dtype;
    bool split;  // columns are a tp slice of the vocabulary: reduce between the steps
} LossRefs;

typedef struct LossRows {
    OpRef targets, max, sums;
} LossRows;

static LossRows loss_rows(Lowering *lowering, const LossRefs *refs) {
    const int64_t rows = refs->rows;
    return (LossRows){.targets = refs->targets,
                      .max = op_whole(lowering, lowering_tensor(lowering, "row_max", ROLE_LOGITS, DTYPE_FP32, rows)),
                      .sums =
                          op_whole(lowering, lowering_tensor(lowering, "row_sums", ROLE_LOGITS, DTYPE_FP32, 2 * rows))};
}

// Logits become gradients in the last task.
static void emit_loss_end(Lowering *lowering, OpList *out, const LossRefs *refs, TaskKind kind, const char *name) {
    const LossRows rows = loss_rows(lowering, refs);
    const Access found = kind == TASK_LOSS ? ACCESS_WRITE : ACCESS_READ;
    Op op = loss_op(lowering, kind, name, refs->rows, refs->cols, refs->dtype);
    op.task.accumulate = refs->more;
    op_operand(&op, refs->logits, ACCESS_UPDATE);
    op_operand(&op, rows.targets, ACCESS_READ);
    op_operand(&op, rows.max, found);
    op_operand(&op, rows.sums, found);
    op_operand(&op, op_whole(lowering, lowering->loss_tensor), refs->more ? ACCESS_UPDATE : ACCESS_WRITE);
    for (int i = 0; i < MAX_KEPT; i++) {
        op_operand(&op, refs->kept[i], ACCESS_READ);
    }
    op_list_append(lowering->arena, out, &op);
}

// Softmax over columns that may be split over tp: row maximum, then sum of exponentials and the target's logit, then
// the gradient in place (Megatron's vocabulary-parallel cross-entropy, Shoeybi et al. 2019, section 3).
static void emit_loss_steps(Lowering *lowering, OpList *out, const LossRefs *refs) {
    const LossRows rows = loss_rows(lowering, refs);
    Op op = loss_op(lowering, TASK_LOSS_MAX, "loss max", refs->rows, refs->cols, refs->dtype);
    op_operand(&op, refs->logits, lowering->model->logit_cap > 0 ? ACCESS_UPDATE : ACCESS_READ);  // capped in place
    op_operand(&op, rows.max, ACCESS_WRITE);
    op_list_append(lowering->arena, out, &op);
    if (refs->split) {
        emit_loss_reduce(lowering, out, rows.max, true, "loss max reduce");
    }
    op = loss_op(lowering, TASK_LOSS_SUM, "loss sum", refs->rows, refs->cols, refs->dtype);
    op_operand(&op, refs->logits, ACCESS_READ);
    op_operand(&op, rows.targets, ACCESS_READ);
    op_operand(&op, rows.max, ACCESS_READ);
    op_operand(&op, rows.sums, ACCESS_WRITE);
    for (int i = 0; i < MAX_KEPT; i++) {
        op_operand(&op, refs->kept[i], ACCESS_WRITE);
    }
    op_list_append(lowering->arena, out, &op);
    if (refs->split) {
        emit_loss_reduce(lowering, out, rows.sums, false, "loss sum reduce");
    }
    emit_loss_end(lowering, out, refs, TASK_LOSS_GRADIENT, "loss gradient");
}

static void emit_copy(Lowering *lowering, OpList *out, OpRef from, OpRef to, Access access, const char *name) {
    const Op op = op_local(TASK_COPY, PHASE_LOSS, name, lowering->tensors[from.tensor].dtype, 1,
                           to.bytes / dtype_bytes(lowering->tensors[to.tensor].dtype));
    op_list_move(lowering, out, op, from, to, access);
}

// Logits get an fp32 copy, plus what else the loss keeps until its gradient (log-softmax, exponentials).
static void emit_copied_loss(Lowering *lowering, OpList *out, const LossRefs *logits, int copies) {
    const int64_t elements = logits->rows * logits->cols;
    const OpRef upcast =
        op_whole(lowering, lowering_tensor(lowering, "logits_fp32", ROLE_LOGITS, DTYPE_FP32, elements));
    static const char *const names[MAX_KEPT] = {"log_softmax", "log_softmax gradient", "loss temporary 1",
                                                "loss temporary 2"};
    ASSERT(copies - 1 <= MAX_KEPT);
    LossRefs refs = *logits;
    refs.logits = upcast;
    refs.dtype = DTYPE_FP32;
    for (int i = 0; i < copies - 1; i++) {
        refs.kept[i] = op_whole(lowering, lowering_tensor(lowering, names[i], ROLE_LOGITS, DTYPE_FP32, elements));
    }
    emit_copy(lowering, out, logits->logits, upcast, ACCESS_WRITE, "logits to fp32");
    emit_loss_steps(lowering, out, &refs);
    emit_copy(lowering, out, upcast, logits->logits, lowering->target->logits_kept ? ACCESS_UPDATE : ACCESS_WRITE,
              "logit gradient");
}

// Kernels of the fused forms read the logits directly, but Megatron-core's own.
static int loss_copies(const Lowering *lowering) {
    const Target *target = lowering->target;
    const LossForm form = target_loss(target, lowering->plan);
    const bool direct = form == LOSS_FUSED || form == LOSS_IN_PLACE;
    const int whole = direct ? 0 : form == LOSS_ONE_COPY ? 1 : target->loss_fp32_copies[lowering->plan->fused];
    return whole + (whole > 0 && lowering->dims.vocab_split && lowering->tp > 1 ? target->split_loss_fp32_copies : 0);
}

static void emit_loss(Lowering *lowering, OpList *out, const Op *mark) {
    const Dims *d = &lowering->dims;
    const int copies = loss_copies(lowering);
    const bool one_pass = lowering_fuses(lowering) || target_loss(lowering->target, lowering->plan) == LOSS_FUSED;
    lowering->loss_tensor = lowering_tensor(lowering, "loss", ROLE_RUNTIME, DTYPE_FP32, 1);
    lowering->tensors[lowering->loss_tensor].persistent = true;
    const LossRefs refs = {.logits = mark->operands[AT_MARK_LOGITS],
                           .kept = {op_absent(), op_absent(), op_absent(), op_absent()},
                           .targets = mark->operands[AT_MARK_TARGETS],
                           .rows = mark->task.rows,
                           .cols = d->vocab,
                           .more = mark->task.accumulate,
                           .dtype = d->dtype,
                           .split = d->vocab_split};
    if (copies > 0) {
        emit_copied_loss(lowering, out, &refs, copies);
    } else if (one_pass && lowering->tp == 1) {
        emit_loss_end(lowering, out, &refs, TASK_LOSS, "loss");
    } else {
        emit_loss_steps(lowering, out, &refs);
    }
}

void lower_summed_loss(Lowering *lowering) {
    const OpList *tail = &lowering->lists[SECTION_TAIL];
    for (size_t i = 0; i < tail->count; i++) {
        Op *op = tail->ops[i];
        for (int k = 0; k < op->operand_count; k++) {
            if (op->operands[k].tensor == lowering->loss_tensor) {
                op->operands[k].access = ACCESS_UPDATE;
                op->task.accumulate = true;
            }
        }
    }
}

void lower_tensor_parallel(Lowering *lowering) {
    unite_all(lowering);
    for (Section section = 0; section < SECTION_COUNT; section++) {
        const OpList in = lowering->lists[section];
        OpList out = {0};
        for (size_t i = 0; i < in.count; i++) {
            if (is_tp_mark(in.ops[i])) {
                emit_tp(lowering, &out, in.ops[i], section);
            } else if (in.ops[i]->mark == MARK_LOSS) {
                emit_loss(lowering, &out, in.ops[i]);
            } else {
                op_list_pass(lowering->arena, &out, in.ops[i]);
            }
        }
        lowering->lists[section] = out;
    }
}

// The operations that the layers pass composes, each as in the math: a linear layer y = x W^T has the input gradient dx
// = dy W and the weight gradient dW = dy^T x; weights are stored [out, in].

#include "sim/step/lower_ops.h"

#include <string.h>

// ---- tensors by name

bool is_named(const char *const *names, const char *name) {
    while (*names && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

int32_t activation(Lowering *lowering, const char *name, int64_t elements) {
    const Dtype dtype = activation_dtype(lowering, name);
    return lowering_tensor(lowering, name, ROLE_ACTIVATION, dtype,
                           dtype == DTYPE_FP8 ? fp8_stored_bytes(lowering, elements) : elements);
}

int32_t tokens_by(Lowering *lowering, const char *name, int64_t width) {
    return activation(lowering, name, lowering->dims.tokens * width);
}

int32_t between_by_hidden(Lowering *lowering, const char *name) {
    return activation(lowering, name, lowering->dims.tokens_between * lowering->dims.hidden);
}

int32_t residual_stream(Lowering *lowering) {
    const int32_t x = between_by_hidden(lowering, "x");
    lowering->tensors[x].slots = recompute_offloads(lowering) ? 2 : lowering_saved_layers(lowering) + 1;
    lowering->tensors[x].held = holds_inputs(lowering);
    return x;
}

bool gradients_apart(const Lowering *lowering) {
    return lowering_splits(lowering) || holds_inputs(lowering);
}

int32_t gradient_stream(Lowering *lowering) {
    const int32_t g = between_by_hidden(lowering, "dx");
    lowering->tensors[g].slots = gradients_apart(lowering) ? lowering->model->layers + 1 : 1;
    lowering->tensors[g].held = holds_inputs(lowering);
    return g;
}

OpRef gradient_at(Lowering *lowering, int index) {
    return stream_at(lowering, gradient_stream(lowering), gradients_apart(lowering) ? index : 0);
}

int32_t row_statistics(Lowering *lowering, const char *name, int64_t rows) {
    return lowering_tensor(lowering, name, ROLE_ACTIVATION, DTYPE_FP32, rows);
}

Phase layer_phase(Section section) {
    return section == SECTION_LAYER_FORWARD ? PHASE_FORWARD : PHASE_BACKWARD;
}

void op_size(Op *op, int64_t rows, int64_t cols) {
    op->task.rows = rows;
    op->task.cols = cols;
}

Op *op_copy(Lowering *lowering, Section section, Phase phase, const char *name, int64_t rows, int64_t cols, OpRef from,
            OpRef to) {
    Op *op = op_add(lowering, section, TASK_COPY, phase, name);
    op_size(op, rows, cols);
    op->task.stride = cols;
    op_operand(op, from, ACCESS_READ);
    op_operand(op, to, ACCESS_WRITE);
    return op;
}

Op op_local(TaskKind kind, Phase phase, const char *name, Dtype dtype, int64_t rows, int64_t cols) {
    return (Op){.task = {.name = name,
                         .kind = kind,
                         .phase = phase,
                         .lane = LANE_COMPUTE,
                         .group = -1,
                         .unit = -1,
                         .dtype = dtype,
                         .rows = rows,
                         .cols = cols,
                         .stride = kind == TASK_COPY ? cols : 0}};
}

void lowering_replace_attention(Lowering *lowering, OpReplacement forward, OpReplacement backward) {
    static const Section sections[] = {SECTION_LAYER_FORWARD, SECTION_LAYER_BACKWARD};
    for (int s = 0; s < 2; s++) {
        const OpList in = lowering->lists[sections[s]];
        OpList out = {0};
        for (size_t i = 0; i < in.count; i++) {
            Op *op = in.ops[i];
            const size_t first = out.count;
            if (op->task.kind == TASK_ATTENTION || op->task.kind == TASK_ATTENTION_BACKWARD) {
                (op->task.kind == TASK_ATTENTION ? forward : backward)(lowering, &out, op);
            } else {
                op_list_pass(lowering->arena, &out, op);
            }
            for (size_t k = first; k < out.count; k++) {
                out.ops[k]->task.part = op->task.part;
            }
        }
        lowering->lists[sections[s]] = out;
    }
}

Op *op_list_move(Lowering *lowering, OpList *list, Op op, OpRef from, OpRef to, Access access) {
    op_operand(&op, from, ACCESS_READ);
    op_operand(&op, to, access);
    return op_list_append(lowering->arena, list, &op);
}

void op_operands(Op *op, Access access, const OpRef *refs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        op_operand(op, refs[i], access);
    }
}

OpRef column(const Lowering *lowering, int32_t tensor, int64_t first_column) {
    OpRef ref = op_whole(lowering, tensor);
    ref.offset_bytes = first_column * dtype_bytes(lowering->tensors[tensor].dtype);
    ref.bytes -= ref.offset_bytes;
    return ref;
}

OpRef stream_at(const Lowering *lowering, int32_t x, int index) {
    OpRef ref = op_whole(lowering, x);
    ref.index = (int16_t)index;
    return ref;
}

// ---- operations

Op *mark_tp(Lowering *lowering, Section section, Mark mark, OpRef in, OpRef out, const char *name) {
    Op *op = op_mark(lowering, section, mark, name);
    op_operand(op, in, ACCESS_READ);
    op_operand(op, out, ACCESS_WRITE);
    return op;
}

void mark_unit(Lowering *lowering, Section section, Mark mark, int unit) {
    op_mark(lowering, section, mark, lowering->units[unit].name)->task.unit = (int16_t)unit;
}

static bool is_in_fp8(const Lowering *lowering, const Linear *linear) {
    const bool has = linear->unit == UNIT_LAYER || (lowering->target->fp8_head && linear->unit == lowering->head_unit);
    return lowering->fp8 != FP8_NONE && has && !linear->in_half;
}

void op_product(Op *op, const Product *product) {
    op->task.m = product->m;
    op->task.n = product->n;
    op->task.k = product->k;
    op->task.trans_a = product->trans_a;
    op->task.trans_b = product->trans_b;
    op->task.accumulate = product->adds;
    op->task.flops = 2.0 * (double)product->m * (double)product->n * (double)product->k;
    OP_OPERANDS(op, ACCESS_READ, product->a, product->b);
    op_operand(op, product->c, product->adds ? ACCESS_UPDATE : ACCESS_WRITE);
}

static void add_gemm(Lowering *lowering, Section section, const Linear *linear, GemmRole role, const Product *product) {
    const char *const names[] = {[GEMM_FORWARD] = linear->name,
                                 [GEMM_INPUT_GRADIENT] = linear->backward_name,
                                 [GEMM_WEIGHT_GRADIENT] = linear->weight_name};
    const Phase phase = role != GEMM_FORWARD ? PHASE_BACKWARD : section == SECTION_TAIL ? PHASE_LOSS : PHASE_FORWARD;
    Op *op = op_add(lowering, section, TASK_GEMM, phase, names[role]);
    op->task.dtype = is_in_fp8(lowering, linear) ? fp8_product_dtype(lowering, role) : lowering->dims.dtype;
    if (is_in_fp8(lowering, linear)) {
        op->task.cast_bytes =
            fp8_cast_bytes(lowering, linear, role, (const OpRef[]){product->a, product->b, product->c});
    }
    add_product_cast(lowering, op, product->a);
    add_product_cast(lowering, op, product->c);
    op_product(op, product);
    if (role == GEMM_WEIGHT_GRADIENT && linear->of_loss && lowering->units[linear->unit].trainable) {
        cast_loss_sum(lowering, op, product->m * product->n, lowering->tensors[product->c.tensor].dtype);
    }
    if (role == GEMM_FORWARD && linear->first_bias) {
        op_operand(op, unit_slice(lowering, lowering->weights[linear->unit], linear->first_bias, linear->last_bias),
                   ACCESS_READ);
    }
}

static OpRef linear_weights(const Lowering *lowering, const Linear *linear, bool transposed) {
    return is_in_fp8(lowering, linear) && linear->unit == UNIT_LAYER
               ? fp8_weight_slice(lowering, linear->first, linear->last, transposed)
               : unit_slice(lowering, lowering->weights[linear->unit], linear->first, linear->last);
}

static Rows all_rows(const Lowering *lowering, OpRef x, OpRef y) {
    return (Rows){.x = x, .y = y, .count = lowering->dims.tokens, .first = true};
}

void add_forward_rows(Lowering *lowering, Section section, const Linear *linear, const Rows *rows) {
    add_gemm(lowering, section, linear, GEMM_FORWARD,
             &(Product){.a = rows->x,
                        .b = unpacked_weights(lowering, section, linear, linear_weights(lowering, linear, false)),
                        .c = adapter_frozen_out(lowering, linear, rows->y),
                        .m = rows->count,
                        .n = linear->out,
                        .k = linear->in,
                        .trans_b = true});
    add_adapter_forward(lowering, linear, rows);
}

void add_input_gradient_rows(Lowering *lowering, Section section, const Linear *linear, const Rows *rows) {
    add_gemm(lowering, section, linear, GEMM_INPUT_GRADIENT,
             &(Product){.a = rows->y,
                        .b = unpacked_weights(lowering, section, linear, linear_weights(lowering, linear, true)),
                        .c = rows->x,
                        .m = rows->count,
                        .n = linear->in,
                        .k = linear->out});
    add_adapter_input_gradient(lowering, section, linear, rows);
}

void add_weight_gradient_rows(Lowering *lowering, Section section, const Linear *linear, const Rows *rows) {
    add_gemm(lowering, section, linear, GEMM_WEIGHT_GRADIENT,
             &(Product){.a = rows->y,
                        .b = rows->x,
                        .c = unit_slice(lowering, lowering->gradients[linear->unit], linear->first, linear->last),
                        .m = linear->out,
                        .n = linear->in,
                        .k = rows->count,
                        .trans_a = true,
                        .adds = !rows->first});
    add_adapter_weight_gradient(lowering, section, linear, rows);
}

void add_forward(Lowering *lowering, Section section, const Linear *linear, int32_t x, int32_t y) {
    const Rows rows = all_rows(lowering, op_whole(lowering, x), op_whole(lowering, y));
    add_forward_rows(lowering, section, linear, &rows);
}

void add_input_gradient(Lowering *lowering, Section section, const Linear *linear, OpRef dy, int32_t dx) {
    const Rows rows = all_rows(lowering, op_whole(lowering, dx), dy);
    add_input_gradient_rows(lowering, section, linear, &rows);
}

void add_weight_gradient(Lowering *lowering, Section section, const Linear *linear, OpRef dy, int32_t x) {
    const Rows rows = all_rows(lowering, op_whole(lowering, x), dy);
    add_weight_gradient_rows(lowering, section, linear, &rows);
}

Norm norm_of(const Lowering *lowering, int unit, const char *weight, const char *bias, const char *statistics) {
    return (Norm){unit, weight, lowering->model->norm_bias ? bias : NULL, statistics};
}

static OpRef norm_statistics(Lowering *lowering, const Norm *norm) {
    const Dims *d = &lowering->dims;
    const bool keeps = lowering->target->norms_keep && lowering->plan->fused == FUSED_EAGER;
    // 4 + 2 bytes of a number, less the 2 of its input, which nothing else keeps then.
    const int64_t per_row = (lowering->model->norm == NORM_LAYER ? 2 : 1) + (keeps ? d->hidden : 0);
    return op_whole(lowering, row_statistics(lowering, norm->statistics, per_row * d->tokens_between));
}

static OpRef slice_of(const Lowering *lowering, const int32_t tensors[UNIT_COUNT], int unit, const char *slice) {
    return slice ? unit_slice(lowering, tensors[unit], slice, slice) : op_absent();
}

Op *add_norm(Lowering *lowering, Section section, const Norm *norm, OpRef x, int32_t y) {
    const bool layer = lowering->model->norm == NORM_LAYER;
    const OpRef statistics = norm_statistics(lowering, norm);
    Op *op = op_add(lowering, section, layer ? TASK_LAYERNORM : TASK_RMSNORM,
                    section == SECTION_TAIL ? PHASE_LOSS : PHASE_FORWARD, "norm");
    op_size(op, lowering->dims.tokens_between, lowering->dims.hidden);
    op->task.dtype = is_upcast(lowering, lowering->tensors[y].name) ? DTYPE_FP32 : op->task.dtype;
    op_operand(op, x, ACCESS_READ);
    op_operand(op, slice_of(lowering, lowering->weights, norm->unit, norm->weight), ACCESS_READ);
    if (layer) {
        op_operand(op, slice_of(lowering, lowering->weights, norm->unit, norm->bias), ACCESS_READ);
    }
    OP_OPERANDS(op, ACCESS_WRITE, op_whole(lowering, y), statistics);
    return op;
}

Op *add_norm_backward(Lowering *lowering, Section section, const Norm *norm, const NormBackward *operands) {
    const bool layer = lowering->model->norm == NORM_LAYER;
    const OpRef statistics = norm_statistics(lowering, norm);
    Op *op = op_add(lowering, section, layer ? TASK_LAYERNORM_BACKWARD : TASK_RMSNORM_BACKWARD, PHASE_BACKWARD,
                    "norm backward");
    op_size(op, lowering->dims.tokens_between, lowering->dims.hidden);
    op->task.dtype = is_upcast(lowering, lowering->tensors[operands->dx.tensor].name) ? DTYPE_FP32 : op->task.dtype;
    OP_OPERANDS(op, ACCESS_READ, operands->dy, operands->x);
    op_operand(op, slice_of(lowering, lowering->weights, norm->unit, norm->weight), ACCESS_READ);
    OP_OPERANDS(op, ACCESS_READ, statistics, operands->residual);
    op_operand(op, operands->dx, ACCESS_WRITE);
    op_operand(op, slice_of(lowering, lowering->gradients, norm->unit, norm->weight), ACCESS_WRITE);
    if (layer) {
        op_operand(op, slice_of(lowering, lowering->gradients, norm->unit, norm->bias), ACCESS_WRITE);
    }
    return op;
}

// Gradient of the biases first..last of a layer.
Op *add_column_sum(Lowering *lowering, const char *name, OpRef x, const char *first, const char *last, int64_t rows) {
    const OpRef sums = unit_slice(lowering, lowering->gradients[UNIT_LAYER], first, last);
    Op *op = op_add(lowering, SECTION_LAYER_BACKWARD, TASK_COLUMN_SUM, PHASE_BACKWARD, name);
    op_size(op, rows, sums.bytes / dtype_bytes(lowering->tensors[sums.tensor].dtype));
    op_operand(op, x, ACCESS_READ);
    op_operand(op, sums, ACCESS_WRITE);
    return op;
}

static Op *sum_op(Lowering *lowering, Section section, OpRef a, OpRef b, OpRef c) {
    Op *op = op_add(lowering, section, TASK_ADD, layer_phase(section), "add");
    op->task.rows = 1;
    OP_OPERANDS(op, ACCESS_READ, a, b);
    op_operand(op, c, ACCESS_WRITE);
    take_elements_apart(lowering, op);
    return op;
}

void add_sum(Lowering *lowering, Section section, OpRef a, OpRef b, OpRef c, int64_t elements) {
    sum_op(lowering, section, a, b, c)->task.cols = elements;
}

// The bias of a row-parallel layer is added once, after its partial sums have been reduced.
Op *add_residual(Lowering *lowering, OpRef x, OpRef y, OpRef sum, const char *bias) {
    const Dims *d = &lowering->dims;
    Op *op = sum_op(lowering, SECTION_LAYER_FORWARD, x, y, sum);
    op->task.cols = d->tokens_between * d->hidden;
    if (bias) {
        op_size(op, d->tokens_between, d->hidden);
        op_operand(op, slice_of(lowering, lowering->weights, UNIT_LAYER, bias), ACCESS_READ);
    }
    return op;
}

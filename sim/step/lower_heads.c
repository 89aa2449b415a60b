// Pass 2b: sequence parallelism over heads (Jacobs et al. 2023, Ulysses, section 3). With sp > 1 attention works on all
// tokens of the group and on a subset of the heads:
//
//   forward    q, k, v: split by heads -> all-to-all -> tokens of all ranks; attention; its results go the reverse way
//   backward   the gradient of the results goes as q did, those of q, k and v as the results did; what attention read
//              and wrote is kept in that layout, so nothing of forward is sent again
//
// An all-to-all moves contiguous parts, one per rank: [ranks][sequences][rows][heads of a rank], which copies pack
// before it and unpack after it, as the implementations do (rearrange, contiguous). What attention multiplies in fp8 is
// cast before it is packed, once, which is priced with the kernel, and copied and sent so; of one scale from earlier
// steps its results and gradients are packed and sent in fp8 too, and are no longer once unpacked. Scales of blocks of
// 32 come after the exchange, of bf16 (Transformer Engine v2.8 and d0067d0d, context_parallel.py,
// AttnFuncWithCPAndQKVOA2A).

#include "sim/step/lower_ops.h"

// q, k, v, the results of attention and their gradients in transit: parts before and after the all-to-all, and what
// attention reads or writes.
typedef struct Exchanged {
    const char *packed, *moved, *whole, *task;
    bool multiplied;  // by attention, which has it in fp8 where it has anything
} Exchanged;

#define EXCHANGED(tensor, multiplied)                                                                                  \
    { tensor " for ranks", tensor " of ranks", tensor " of heads", "exchange " tensor, multiplied }
static const Exchanged query = EXCHANGED("q", true), key = EXCHANGED("k", true), value = EXCHANGED("v", true);
static const Exchanged result = EXCHANGED("attention_out", false), result_gradient = EXCHANGED("dattention_out", true);
static const Exchanged query_gradient = EXCHANGED("dq", false), key_gradient = EXCHANGED("dk", false),
                       value_gradient = EXCHANGED("dv", false);

typedef struct Heads {
    Lowering *lowering;
    OpList *out;
    const Op *attention;
    Phase phase;
} Heads;

static Dtype sent_dtype(const Heads *heads, const Exchanged *names) {
    const Lowering *lowering = heads->lowering;
    const bool in_fp8 = lowering->fp8 == FP8_TRANSFORMER_ENGINE && lowering->target->fp8_attention &&
                        lowering->plan->fp8_recipe != FP8_MX;
    const bool all = lowering->plan->fp8_recipe == FP8_DELAYED;
    return in_fp8 && (names->multiplied || all) ? DTYPE_FP8 : lowering->dims.dtype;
}

static int32_t sent_tensor(const Heads *heads, const Exchanged *names, const char *name, int64_t width) {
    return lowering_tensor(heads->lowering, name, ROLE_COMMUNICATION, sent_dtype(heads, names),
                           heads->lowering->dims.tokens * width);
}

// rows x cols in one block per rank of the group, side by side in rows of `stride` and one after another.
typedef struct Blocks {
    TaskKind kind;  // COPY: split; UNPACK: join
    Dtype dtype;
    int64_t rows, cols, stride;
} Blocks;

static void add_blocks(const Heads *heads, const Blocks *blocks, OpRef from, OpRef to, Access access) {
    Lowering *lowering = heads->lowering;
    Op op = op_local(blocks->kind, heads->phase, blocks->kind == TASK_COPY ? "parts of ranks" : "parts together",
                     blocks->dtype, blocks->rows, blocks->cols);
    op.task.inner = lowering->sp;
    op.task.stride = blocks->stride;
    op_list_move(lowering, heads->out, op, from, to, access);
}

static void add_exchange(const Heads *heads, const char *name, int32_t from, int32_t to) {
    Lowering *lowering = heads->lowering;
    Op op = op_collective(lowering, TASK_ALL_TO_ALL, LANE_CP, lowering->sp_group, name, heads->phase);
    op.task.payload_bytes = lowering->tensors[from].bytes;
    op_list_move(lowering, heads->out, op, op_whole(lowering, from), op_whole(lowering, to), ACCESS_WRITE);
}

// Elements per sequence of a part.
static int64_t part_of_sequence(const Heads *heads, int64_t width) {
    const Dims *d = &heads->lowering->dims;
    return d->tokens / d->sequences * width / heads->lowering->sp;
}

static OpRef of_heads(const Heads *heads, const Exchanged *names, int64_t width, BufferRole role) {
    Lowering *lowering = heads->lowering;
    return op_whole(lowering,
                    lowering_tensor(lowering, names->whole, role, lowering->dims.dtype, lowering->dims.tokens * width));
}

// A rank's rows of all heads -> all rows of its heads. stride: of the rows in `local`; role: of attention's input.
static OpRef to_heads(const Heads *heads, const Exchanged *names, OpRef local, int64_t width, int64_t stride,
                      BufferRole role) {
    Lowering *lowering = heads->lowering;
    const Dims *d = &lowering->dims;
    const int64_t part = part_of_sequence(heads, width);
    const int32_t packed = sent_tensor(heads, names, names->packed, width);
    const int32_t moved = sent_tensor(heads, names, names->moved, width);
    const OpRef whole = of_heads(heads, names, width, role);
    const Dtype dtype = lowering->tensors[packed].dtype;
    add_blocks(heads, &(Blocks){TASK_COPY, dtype, d->tokens, width / lowering->sp, stride}, local,
               op_whole(lowering, packed), ACCESS_WRITE);
    add_exchange(heads, names->task, packed, moved);
    add_blocks(heads, &(Blocks){TASK_UNPACK, dtype, d->sequences, part, part * lowering->sp}, op_whole(lowering, moved),
               whole, ACCESS_WRITE);
    return whole;
}

// The reverse, from attention's output.
static void from_heads(const Heads *heads, const Exchanged *names, OpRef whole, int64_t width, int64_t stride,
                       OpRef local, Access access) {
    Lowering *lowering = heads->lowering;
    const Dims *d = &lowering->dims;
    const int64_t part = part_of_sequence(heads, width);
    const int32_t packed = sent_tensor(heads, names, names->packed, width);
    const int32_t moved = sent_tensor(heads, names, names->moved, width);
    add_blocks(heads, &(Blocks){TASK_COPY, lowering->tensors[packed].dtype, d->sequences, part, part * lowering->sp},
               whole, op_whole(lowering, packed), ACCESS_WRITE);
    add_exchange(heads, names->task, packed, moved);
    add_blocks(heads, &(Blocks){TASK_UNPACK, d->dtype, d->tokens, width / lowering->sp, stride},
               op_whole(lowering, moved), local, access);
}

static void set_operand(Op *op, int at, OpRef ref) {
    ref.access = op->operands[at].access;
    op->operands[at] = ref;
}

// The attention task for a subset of the heads over all tokens.
static Op of_part(const Heads *heads) {
    const int sp = heads->lowering->sp;
    Op op = *heads->attention;
    op.task.rows *= sp;
    op.task.heads /= sp;
    op.task.kv_heads /= sp;
    op.task.flops /= sp;
    op.task.stride = heads->lowering->dims.q_width / sp;
    op.task.kv_stride = heads->lowering->dims.k_width / sp;
    return op;
}

// Values in separate rows, or next to the keys in shared rows.
static int64_t value_stride(const Heads *heads) {
    const bool latent = heads->lowering->model->latent.kv_rank > 0;
    return latent ? heads->lowering->dims.v_width : heads->attention->task.kv_stride;
}

static bool writes_cast(const Lowering *lowering, const Op *attention) {
    const OpRef *last = &attention->operands[attention->operand_count - 1];
    return last->tensor >= 0 && lowering->tensors[last->tensor].dtype == DTYPE_FP8 && lowering->fp8 != FP8_NONE;
}

static void heads_forward(const Heads *heads) {
    const Dims *d = &heads->lowering->dims;
    const Op *whole = heads->attention;
    Op part = of_part(heads);
    set_operand(
        &part, AT_ATTENTION_Q,
        to_heads(heads, &query, whole->operands[AT_ATTENTION_Q], d->q_width, whole->task.stride, ROLE_ACTIVATION));
    set_operand(
        &part, AT_ATTENTION_K,
        to_heads(heads, &key, whole->operands[AT_ATTENTION_K], d->k_width, whole->task.kv_stride, ROLE_ACTIVATION));
    set_operand(
        &part, AT_ATTENTION_V,
        to_heads(heads, &value, whole->operands[AT_ATTENTION_V], d->v_width, value_stride(heads), ROLE_ACTIVATION));
    const OpRef o = of_heads(heads, &result, d->o_width, ROLE_ACTIVATION);
    set_operand(&part, AT_ATTENTION_O, o);
    const bool casts = writes_cast(heads->lowering, &part);
    part.operand_count -= casts;
    op_list_append(heads->lowering->arena, heads->out, &part);
    from_heads(heads, &result, o, d->o_width, d->o_width, whole->operands[AT_ATTENTION_O], ACCESS_WRITE);
    if (casts) {  // the projection's input, whose cast is priced with that product
        op_operand(heads->out->ops[heads->out->count - 1], whole->operands[whole->operand_count - 1], ACCESS_WRITE);
    }
}

static void heads_backward(const Heads *heads) {
    const Dims *d = &heads->lowering->dims;
    const Op *whole = heads->attention;
    const bool fused = heads->lowering->fused_qkv && heads->lowering->model->latent.kv_rank == 0;
    Op part = of_part(heads);
    set_operand(&part, AT_ATTENTION_Q, of_heads(heads, &query, d->q_width, ROLE_ACTIVATION));
    set_operand(&part, AT_ATTENTION_K, of_heads(heads, &key, d->k_width, ROLE_ACTIVATION));
    set_operand(&part, AT_ATTENTION_V, of_heads(heads, &value, d->v_width, ROLE_ACTIVATION));
    set_operand(&part, AT_ATTENTION_O, of_heads(heads, &result, d->o_width, ROLE_ACTIVATION));
    set_operand(&part, AT_ATTENTION_BACKWARD_DO,
                to_heads(heads, &result_gradient, whole->operands[AT_ATTENTION_BACKWARD_DO], d->o_width, d->o_width,
                         ROLE_COMMUNICATION));
    const OpRef dq = of_heads(heads, &query_gradient, d->q_width, ROLE_COMMUNICATION);
    const OpRef dk = of_heads(heads, &key_gradient, d->k_width, ROLE_COMMUNICATION);
    const OpRef dv = of_heads(heads, &value_gradient, d->v_width, ROLE_COMMUNICATION);
    set_operand(&part, AT_ATTENTION_BACKWARD_DQ, dq);
    set_operand(&part, AT_ATTENTION_BACKWARD_DK, dk);
    set_operand(&part, AT_ATTENTION_BACKWARD_DV, dv);
    op_list_append(heads->lowering->arena, heads->out, &part);
    const Access more = fused ? ACCESS_UPDATE : ACCESS_WRITE;  // columns of rows started by dq
    from_heads(heads, &query_gradient, dq, d->q_width, whole->task.stride, whole->operands[AT_ATTENTION_BACKWARD_DQ],
               ACCESS_WRITE);
    from_heads(heads, &key_gradient, dk, d->k_width, whole->task.kv_stride, whole->operands[AT_ATTENTION_BACKWARD_DK],
               more);
    from_heads(heads, &value_gradient, dv, d->v_width, value_stride(heads), whole->operands[AT_ATTENTION_BACKWARD_DV],
               more);
}

static void exchange_forward(Lowering *lowering, OpList *out, const Op *attention) {
    heads_forward(&(Heads){lowering, out, attention, attention->task.phase});
}

static void exchange_backward(Lowering *lowering, OpList *out, const Op *attention) {
    heads_backward(&(Heads){lowering, out, attention, attention->task.phase});
}

void lower_heads(Lowering *lowering) {
    if (lowering->sp > 1) {
        lowering_replace_attention(lowering, exchange_forward, exchange_backward);
    }
}

// Pass 2b: sequence parallelism over heads (Jacobs et al. 2023, Ulysses, section 3). With sp > 1 attention works on all
// tokens of the group and on a subset of the heads:
//
//   forward    q, k, v: split by heads -> all-to-all -> tokens of all ranks; attention; its results go the reverse way
//   backward   the gradient of the results goes as q did, those of q, k and v as the results did; what attention read
//              and wrote is kept in that layout, so nothing of forward is sent again
//
// An all-to-all moves contiguous parts, one per rank: [ranks][sequences][rows][heads of a rank], which copies pack
// before it and unpack after it, as the implementations do (rearrange, contiguous).

#include "sim/step/lower_ops.h"

// q, k, v, the results of attention and their gradients in transit: parts before and after the all-to-all, and what
// attention reads or writes.
typedef struct Exchanged {
    const char *packed, *moved, *whole, *task;
} Exchanged;

#define EXCHANGED(tensor)                                                                                              \
    { tensor " for ranks", tensor " of ranks", tensor " of heads", "exchange " tensor }
static const Exchanged query = EXCHANGED("q"), key = EXCHANGED("k"), value = EXCHANGED("v");
static const Exchanged result = EXCHANGED("attention_out"), result_gradient = EXCHANGED("dattention_out");
static const Exchanged query_gradient = EXCHANGED("dq"), key_gradient = EXCHANGED("dk"),
                       value_gradient = EXCHANGED("dv");

typedef struct Heads {
    Lowering *lowering;
    OpList *out;
    const Op *attention;
    Phase phase;
} Heads;

static int32_t part_tensor(const Heads *heads, const char *name, BufferRole role, int64_t width) {
    Lowering *lowering = heads->lowering;
    return lowering_tensor(lowering, name, role, lowering->dims.dtype, lowering->dims.tokens * width);
}

// rows x cols in one block per rank of the group, side by side in rows of `stride` and one after another.
typedef struct Blocks {
    TaskKind kind;  // COPY: split; UNPACK: join
    int64_t rows, cols, stride;
} Blocks;

static void add_blocks(const Heads *heads, const Blocks *blocks, OpRef from, OpRef to, Access access) {
    Lowering *lowering = heads->lowering;
    Op op = op_local(blocks->kind, heads->phase, blocks->kind == TASK_COPY ? "parts of ranks" : "parts together",
                     lowering->dims.dtype, blocks->rows, blocks->cols);
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
    return op_whole(heads->lowering, part_tensor(heads, names->whole, role, width));
}

// A rank's rows of all heads -> all rows of its heads. stride: of the rows in `local`; role: of attention's input.
static OpRef to_heads(const Heads *heads, const Exchanged *names, OpRef local, int64_t width, int64_t stride,
                      BufferRole role) {
    Lowering *lowering = heads->lowering;
    const Dims *d = &lowering->dims;
    const int64_t part = part_of_sequence(heads, width);
    const int32_t packed = part_tensor(heads, names->packed, ROLE_COMMUNICATION, width);
    const int32_t moved = part_tensor(heads, names->moved, ROLE_COMMUNICATION, width);
    const OpRef whole = of_heads(heads, names, width, role);
    add_blocks(heads, &(Blocks){TASK_COPY, d->tokens, width / lowering->sp, stride}, local, op_whole(lowering, packed),
               ACCESS_WRITE);
    add_exchange(heads, names->task, packed, moved);
    add_blocks(heads, &(Blocks){TASK_UNPACK, d->sequences, part, part * lowering->sp}, op_whole(lowering, moved), whole,
               ACCESS_WRITE);
    return whole;
}

// The reverse, from attention's output.
static void from_heads(const Heads *heads, const Exchanged *names, OpRef whole, int64_t width, int64_t stride,
                       OpRef local, Access access) {
    Lowering *lowering = heads->lowering;
    const Dims *d = &lowering->dims;
    const int64_t part = part_of_sequence(heads, width);
    const int32_t packed = part_tensor(heads, names->packed, ROLE_COMMUNICATION, width);
    const int32_t moved = part_tensor(heads, names->moved, ROLE_COMMUNICATION, width);
    add_blocks(heads, &(Blocks){TASK_COPY, d->sequences, part, part * lowering->sp}, whole, op_whole(lowering, packed),
               ACCESS_WRITE);
    add_exchange(heads, names->task, packed, moved);
    add_blocks(heads, &(Blocks){TASK_UNPACK, d->tokens, width / lowering->sp, stride}, op_whole(lowering, moved), local,
               access);
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
    op_list_append(heads->lowering->arena, heads->out, &part);
    from_heads(heads, &result, o, d->o_width, d->o_width, whole->operands[AT_ATTENTION_O], ACCESS_WRITE);
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

void lower_heads(Lowering *lowering) {
    const Section sections[] = {SECTION_LAYER_FORWARD, SECTION_LAYER_BACKWARD};
    for (int s = 0; s < 2 && lowering->sp > 1; s++) {
        const OpList in = lowering->lists[sections[s]];
        OpList out = {0};
        for (size_t i = 0; i < in.count; i++) {
            const size_t first = out.count;
            const Heads heads = {lowering, &out, in.ops[i], in.ops[i]->task.phase};
            if (in.ops[i]->task.kind == TASK_ATTENTION) {
                heads_forward(&heads);
            } else if (in.ops[i]->task.kind == TASK_ATTENTION_BACKWARD) {
                heads_backward(&heads);
            } else {
                op_list_pass(lowering->arena, &out, in.ops[i]);
            }
            op_list_in_part(&out, first, in.ops[i]->task.part);
        }
        lowering->lists[sections[s]] = out;
    }
}

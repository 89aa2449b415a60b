// Pass 3: context parallelism. With cp > 1 an attention call becomes C blocks of local queries against the keys and
// values of one rank each:
//
//   ring        KV travels C-1 hops; while block j computes, hop j+1 is in flight
//   all-gather  KV of all ranks is gathered once; block 0 (the local one) need not wait
//   backward    KV again, and dKV (fp32, or as the keys) travels C hops: each rank adds its share, the last hop brings
//               it home; if the target gathers and scatters, the blocks' dKV are concatenated and one reduce-scatter
//               brings them home; if it keeps what was gathered, KV is not sent again
//
// Blocks merge by log-sum-exp in fp32 (Liu et al. 2023, Ring Attention; sim/SOURCES.md P7). Keys and values are sent as
// one packed buffer, token rows [k heads | v heads]. Zigzag or contiguous chunks only change positions, which ranks
// resolve (step_chunks).

#include "sim/step/lower_ops.h"

// Tokens that attention works on locally, and elements of a token's keys, values and both.
static int64_t kv_rows(const Lowering *lowering) {
    return lowering->dims.tokens * lowering->sp;
}

static int64_t k_width(const Lowering *lowering) {
    return lowering->dims.core_k_width / lowering->sp;
}

static int64_t v_width(const Lowering *lowering) {
    return lowering->dims.core_v_width / lowering->sp;
}

static int64_t kv_width(const Lowering *lowering) {
    return k_width(lowering) + v_width(lowering);
}

// Keys and values are columns of one GEMM's output, unless they were repeated.
static bool kv_are_columns(const Lowering *lowering) {
    return lowering->fused_qkv && lowering->sp == 1 && lowering->model->latent.kv_rank == 0 &&
           lowering->dims.core_kv_heads == lowering->dims.kv_heads;
}

typedef struct RingBuffers {
    int32_t local;       // packed KV of this rank
    int32_t hop[2];      // ring slots
    int32_t gathered;    // all ranks' KV
    OpRef keys, values;  // of the current block
} RingBuffers;

static int32_t packed_kv(Lowering *lowering, const char *name, BufferRole role, Dtype dtype, int64_t ranks) {
    return lowering_tensor(lowering, name, role, dtype, ranks * kv_rows(lowering) * kv_width(lowering));
}

static bool rotates(const Lowering *lowering) {
    return lowering->plan->cp_rotate == CP_ROTATE_RING;
}

static RingBuffers ring_buffers(Lowering *lowering) {
    const Dtype dtype = lowering->dims.dtype;
    RingBuffers ring = {.local = packed_kv(lowering, "kv", ROLE_ACTIVATION, dtype, 1), .gathered = -1};
    lowering->tensors[ring.local].cheap = true;
    if (rotates(lowering)) {
        ring.hop[0] = packed_kv(lowering, "kv ring even", ROLE_COMMUNICATION, dtype, 1);
        ring.hop[1] = packed_kv(lowering, "kv ring odd", ROLE_COMMUNICATION, dtype, 1);
    } else {
        const BufferRole role = lowering->target->cp_keeps_gathered ? ROLE_ACTIVATION : ROLE_COMMUNICATION;
        ring.gathered = packed_kv(lowering, "kv gathered", role, dtype, lowering->cp);
    }
    return ring;
}

// In a tensor with all ranks' parts, the part of the rank whose keys hop j uses.
static OpRef part_of_owner(const Lowering *lowering, int32_t tensor, int hop) {
    OpRef part = op_whole(lowering, tensor);
    part.bytes /= lowering->cp;
    part.rank_group = lowering->cp_group;
    part.rank_shift = (int16_t)hop;
    part.rank_stride_bytes = part.bytes;
    return part;
}

static OpRef values_of(const Lowering *lowering, OpRef packed, int element) {
    packed.offset_bytes += k_width(lowering) * element;
    packed.bytes -= k_width(lowering) * element;
    return packed;
}

// Keys and values of hop j in the packed layout.
static void ring_select(const Lowering *lowering, RingBuffers *ring, int hop) {
    const int32_t tensor = hop == 0 ? ring->local : rotates(lowering) ? ring->hop[hop % 2] : ring->gathered;
    const OpRef keys =
        hop > 0 && !rotates(lowering) ? part_of_owner(lowering, tensor, hop) : op_whole(lowering, tensor);
    ring->keys = keys;
    ring->values = values_of(lowering, keys, lowering->dims.element);
}

static Op copy_op(const Lowering *lowering, TaskKind kind, const char *name, Phase phase, int64_t cols,
                  int64_t stride) {
    Op op = op_local(kind, phase, name, lowering->dims.dtype, kv_rows(lowering), cols);
    op.task.stride = stride;
    return op;
}

// k and v columns -> packed rows.
static void pack_kv(Lowering *lowering, OpList *out, const Op *attention, const RingBuffers *ring) {
    const int64_t keys = k_width(lowering), values = v_width(lowering);
    const OpRef packed = op_whole(lowering, ring->local);
    if (kv_are_columns(lowering)) {
        op_list_move(
            lowering, out,
            copy_op(lowering, TASK_COPY, "pack kv", attention->task.phase, keys + values, attention->task.kv_stride),
            attention->operands[AT_ATTENTION_K], packed, ACCESS_WRITE);
        return;
    }
    op_list_move(lowering, out, copy_op(lowering, TASK_UNPACK, "pack k", attention->task.phase, keys, keys + values),
                 attention->operands[AT_ATTENTION_K], packed, ACCESS_WRITE);
    op_list_move(lowering, out, copy_op(lowering, TASK_UNPACK, "pack v", attention->task.phase, values, keys + values),
                 attention->operands[AT_ATTENTION_V], values_of(lowering, packed, lowering->dims.element),
                 ACCESS_UPDATE);
}

// Packed gradient -> dk and dv columns.
static void unpack_gradient(Lowering *lowering, OpList *out, const Op *attention, int32_t home) {
    const int64_t keys = k_width(lowering), values = v_width(lowering);
    const OpRef packed = op_whole(lowering, home);
    if (kv_are_columns(lowering)) {
        op_list_move(
            lowering, out,
            copy_op(lowering, TASK_UNPACK, "unpack dkv", PHASE_BACKWARD, keys + values, attention->task.kv_stride),
            packed, attention->operands[AT_ATTENTION_BACKWARD_DK], ACCESS_UPDATE);
        return;
    }
    op_list_move(lowering, out, copy_op(lowering, TASK_COPY, "unpack dk", PHASE_BACKWARD, keys, keys + values), packed,
                 attention->operands[AT_ATTENTION_BACKWARD_DK], ACCESS_WRITE);
    op_list_move(lowering, out, copy_op(lowering, TASK_COPY, "unpack dv", PHASE_BACKWARD, values, keys + values),
                 values_of(lowering, packed, dtype_bytes(lowering->tensors[home].dtype)),
                 attention->operands[AT_ATTENTION_BACKWARD_DV], ACCESS_WRITE);
}

typedef struct Transfer {
    const char *name;
    Phase phase;
    int32_t from, to;
    int hop;
} Transfer;

static void append_transfer(Lowering *lowering, OpList *out, const Transfer *transfer) {
    Op op = op_collective(lowering, TASK_SEND_RECV, LANE_CP, lowering->cp_group, transfer->name, transfer->phase);
    op.task.dtype = lowering->tensors[transfer->from].dtype;
    op.task.ring_step = (int16_t)transfer->hop;
    op.task.payload_bytes = lowering->tensors[transfer->from].bytes;
    op_list_move(lowering, out, op, op_whole(lowering, transfer->from), op_whole(lowering, transfer->to), ACCESS_WRITE);
}

static void append_kv_gather(Lowering *lowering, OpList *out, const RingBuffers *ring, Phase phase) {
    Op op = op_collective(lowering, TASK_ALL_GATHER, LANE_CP, lowering->cp_group, "gather kv", phase);
    op.task.payload_bytes = lowering->tensors[ring->gathered].bytes;
    op_list_move(lowering, out, op, op_whole(lowering, ring->local), op_whole(lowering, ring->gathered), ACCESS_WRITE);
}

// Starts the transfer that the next block needs, before the current block is issued.
static void append_next_kv(Lowering *lowering, OpList *out, const RingBuffers *ring, int hop, Phase phase) {
    if (!rotates(lowering)) {
        if (hop == 0) {
            append_kv_gather(lowering, out, ring, phase);
        }
        return;
    }
    if (hop + 1 < lowering->cp) {
        const int32_t from = hop == 0 ? ring->local : ring->hop[hop % 2];
        append_transfer(lowering, out, &(Transfer){"ring kv", phase, from, ring->hop[(hop + 1) % 2], hop + 1});
    }
}

// A block's share of the causal square: zigzag blocks are all half visible; with contiguous ones the busiest rank sees
// later blocks fully.
static double block_share(const Lowering *lowering, int hop) {
    return lowering->target->zigzag || hop == 0 ? 1.0 : 2.0;
}

static void set_block(const Lowering *lowering, Op *block, const RingBuffers *ring, int hop) {
    block->task.ring_step = (int16_t)hop;
    block->task.kv_stride = kv_width(lowering);
    block->task.flops *= block_share(lowering, hop);
    block->operands[AT_ATTENTION_K] = ring->keys;
    block->operands[AT_ATTENTION_V] = ring->values;
    block->operands[AT_ATTENTION_K].access = block->operands[AT_ATTENTION_V].access = ACCESS_READ;
}

// Whether kernels wait for a transfer where it is issued, not where its result is read.
static bool waits_in_place(const Lowering *lowering) {
    const Target *target = lowering->target;
    return (target->cp_compiled_waits && lowering->plan->fused == FUSED_COMPILED) ||
           (target->cp_gathers_first && !rotates(lowering));
}

// The block after it then reads what arrives. Without a next hop nothing does.
static void await_next_kv(const Lowering *lowering, Op *block, const RingBuffers *ring, int hop) {
    if (!waits_in_place(lowering) || hop + 1 == lowering->cp || (hop > 0 && !rotates(lowering))) {
        return;
    }
    const int32_t arriving = rotates(lowering) ? ring->hop[(hop + 1) % 2] : ring->gathered;
    op_operand(block, op_whole(lowering, arriving), ACCESS_READ);
}

static void ring_forward(Lowering *lowering, OpList *out, const Op *attention) {
    RingBuffers ring = ring_buffers(lowering);
    pack_kv(lowering, out, attention, &ring);
    for (int hop = 0; hop < lowering->cp; hop++) {
        append_next_kv(lowering, out, &ring, hop, attention->task.phase);
        ring_select(lowering, &ring, hop);
        Op block = *attention;
        set_block(lowering, &block, &ring, hop);
        block.operands[AT_ATTENTION_O].access = block.operands[AT_ATTENTION_LSE].access =
            hop == 0 ? ACCESS_WRITE : ACCESS_UPDATE;
        await_next_kv(lowering, &block, &ring, hop);
        op_list_append(lowering->arena, out, &block);
    }
}

// The backward block of a hop, its key and value gradients written to `gradient` (packed, of this element size).
static Op backward_block(const Lowering *lowering, const Op *attention, const RingBuffers *ring, int hop,
                         OpRef gradient) {
    Op block = *attention;
    set_block(lowering, &block, ring, hop);
    block.operands[AT_ATTENTION_BACKWARD_DQ].access = hop == 0 ? ACCESS_WRITE : ACCESS_UPDATE;
    block.operands[AT_ATTENTION_BACKWARD_DK] = gradient;
    block.operands[AT_ATTENTION_BACKWARD_DV] =
        values_of(lowering, gradient, dtype_bytes(lowering->tensors[gradient.tensor].dtype));
    block.operands[AT_ATTENTION_BACKWARD_DK].access = block.operands[AT_ATTENTION_BACKWARD_DV].access = ACCESS_WRITE;
    block.operands[AT_ATTENTION_BACKWARD_WORKSPACE].access = hop == 0 ? ACCESS_WRITE : ACCESS_READ;
    if (lowering->model->sinks && lowering->target->own_kernels) {  // which the first one computes
        block.operands[AT_ATTENTION_BACKWARD_DSINKS].access = hop == 0 ? ACCESS_WRITE : ACCESS_READ;
    }
    return block;
}

// All blocks' dKV concatenated, by owner, in the dtype of the keys; summed at their owners (ring-flash-attention's
// llama3 variant; Transformer Engine's all-gather variant; sim/SOURCES.md P4).
static void scattered_backward(Lowering *lowering, OpList *out, const Op *attention) {
    RingBuffers ring = ring_buffers(lowering);
    const Dtype dtype = lowering->dims.dtype;
    const int32_t all = packed_kv(lowering, "dkv of all", ROLE_COMMUNICATION, dtype, lowering->cp);
    const int32_t home = packed_kv(lowering, "dkv", ROLE_COMMUNICATION, dtype, 1);
    for (int hop = 0; hop < lowering->cp; hop++) {
        if (!lowering->target->cp_keeps_gathered) {
            append_next_kv(lowering, out, &ring, hop, PHASE_BACKWARD);
        }
        ring_select(lowering, &ring, hop);
        Op block = backward_block(lowering, attention, &ring, hop, part_of_owner(lowering, all, hop));
        if (!lowering->target->cp_keeps_gathered) {
            await_next_kv(lowering, &block, &ring, hop);
        }
        op_list_append(lowering->arena, out, &block);
    }
    Op reduce =
        op_collective(lowering, TASK_REDUCE_SCATTER, LANE_CP, lowering->cp_group, "scatter dkv", PHASE_BACKWARD);
    reduce.task.payload_bytes = lowering->tensors[all].bytes;
    op_list_move(lowering, out, reduce, op_whole(lowering, all), op_whole(lowering, home), ACCESS_WRITE);
    unpack_gradient(lowering, out, attention, home);
}

static void ring_backward(Lowering *lowering, OpList *out, const Op *attention) {
    RingBuffers ring = ring_buffers(lowering);
    const bool half = rotates(lowering) && lowering->target->cp_half_gradients;
    const Dtype dtype = half ? lowering->dims.dtype : DTYPE_FP32;
    const int32_t travel[2] = {packed_kv(lowering, "dkv ring even", ROLE_COMMUNICATION, dtype, 1),
                               packed_kv(lowering, "dkv ring odd", ROLE_COMMUNICATION, dtype, 1)};
    const int32_t share = packed_kv(lowering, "dkv block", ROLE_COMMUNICATION, dtype, 1);
    for (int hop = 0; hop < lowering->cp; hop++) {
        append_next_kv(lowering, out, &ring, hop, PHASE_BACKWARD);
        ring_select(lowering, &ring, hop);
        Op block = backward_block(lowering, attention, &ring, hop, op_whole(lowering, hop == 0 ? travel[0] : share));
        await_next_kv(lowering, &block, &ring, hop);
        if (hop > 0 && waits_in_place(lowering)) {
            op_operand(&block, op_whole(lowering, travel[hop % 2]), ACCESS_READ);
        }
        op_list_append(lowering->arena, out, &block);
        if (hop > 0) {
            Op sum = copy_op(lowering, TASK_ACCUMULATE, "add dkv", PHASE_BACKWARD, kv_width(lowering), 0);
            sum.task.dtype = dtype;
            op_list_move(lowering, out, sum, op_whole(lowering, share), op_whole(lowering, travel[hop % 2]),
                         ACCESS_UPDATE);
        }
        append_transfer(lowering, out,
                        &(Transfer){"ring dkv", PHASE_BACKWARD, travel[hop % 2], travel[(hop + 1) % 2], hop + 1});
    }
    unpack_gradient(lowering, out, attention, travel[lowering->cp % 2]);
}

static void context_backward(Lowering *lowering, OpList *out, const Op *attention) {
    const bool scatters = !rotates(lowering) && lowering->target->cp_scatters;
    (scatters ? scattered_backward : ring_backward)(lowering, out, attention);
}

void lower_context_parallel(Lowering *lowering) {
    if (lowering->cp > 1) {
        lowering_replace_attention(lowering, ring_forward, context_backward);
    }
}

// Pass 6: messages between stages. A chunk of layers receives its input by a message unless the embedding is local, and
// sends its output unless the head is; backward does the same with gradients. Messages land where the layers read: in
// the chunk's first slot of the residual stream, in the gradient stream. Both have room for one micro-step more than
// are being computed, so that a message can arrive concurrently. Consecutive chunks on one stage share one slot: what
// the later one leaves there stays until the earlier one has used it. What tp ranks hold whole may be sent in slices,
// which are gathered on arrival.

#include "sim/step/lower_ops.h"

static void choose_slots(Lowering *lowering, const MicroLoops *loops) {
    const bool read_by_weights = lowering_splits(lowering) && lowering->model->residual == RESIDUAL_POST_NORM;
    const int32_t all = lowering->plan->grad_accum, back = loops->spread + 1;
    const int32_t ahead = (read_by_weights ? loops->until_weights : loops->in_flight) + 1;
    lowering->tensors[residual_stream(lowering)].micro_steps = ahead < all ? ahead : all;
    lowering->tensors[gradient_stream(lowering)].micro_steps = back < all ? back : all;
}

static bool comes_from_afar(const Lowering *lowering, int peer) {  // from a stage, and not its own other chunk
    return peer >= 0 && peer != lowering->choice->stage;
}

// Buffers of what arrives beyond the slots that take turns.
static void keep_buffers(Lowering *lowering) {
    const LoweringChoice *choice = lowering->choice;
    const int32_t inputs = residual_stream(lowering), gradients = gradient_stream(lowering);
    const Tensor *x = &lowering->tensors[inputs];
    const ReceivedMessages received = schedule_received(choice->schedule->folded, mesh_stages(&lowering->plan->mesh),
                                                        lowering->held->chunk_count, choice->stage);
    const int32_t all = choice->buffered_steps > 0 ? choice->buffered_steps : plan_round_steps(lowering->plan);
    const double count =
        schedule_beyond_slots(&received, all, x->micro_steps, lowering->tensors[gradients].micro_steps);
    if (lowering->target->buffers_each_message && count > 0) {
        const int64_t elements = (int64_t)count * x->bytes / dtype_bytes(x->dtype);
        const int32_t kept = lowering_tensor(lowering, "receive buffers", ROLE_COMMUNICATION, x->dtype, elements);
        lowering->tensors[kept].persistent = lowering->tensors[kept].untouched = true;
    }
}

static bool in_slices(const Lowering *lowering) {
    return target_slices_messages(lowering->target, lowering->plan);
}

static OpRef slice_of_rank(const Lowering *lowering, OpRef whole) {
    whole.bytes /= lowering->tp;
    whole.rank_group = lowering->tp_group;
    whole.rank_stride_bytes = whole.bytes;
    return whole;
}

static void add_gather(Lowering *lowering, Stretch *stretch, Phase phase, OpRef whole) {
    Op gather = op_collective(lowering, TASK_ALL_GATHER, LANE_TP, lowering->tp_group, "gather message", phase);
    gather.task.dtype = lowering->tensors[whole.tensor].dtype;
    gather.task.payload_bytes = whole.bytes;
    op_list_move(lowering, &stretch->list, gather, slice_of_rank(lowering, whole), whole, ACCESS_WRITE);
}

static void add_message(Lowering *lowering, Stretch *stretch, TaskKind kind, int peer, Phase phase, OpRef whole) {
    static const char *const names[2][2] = {{"receive gradients", "receive activations"},
                                            {"send gradients", "send activations"}};
    const bool sends = kind == TASK_SEND;
    const bool in_turn =
        lowering->target->messages_in_turn && (lowering->held->chunk_count == 1 || lowering->plan->p2p_waits);
    if (!comes_from_afar(lowering, peer)) {
        return;
    }
    const OpRef data = in_slices(lowering) ? slice_of_rank(lowering, whole) : whole;
    const Op op = {.task = {.name = names[sends][phase == PHASE_FORWARD],
                            .kind = kind,
                            .phase = phase,
                            .lane = sends || in_turn ? LANE_SEND : LANE_RECEIVE,
                            .group = -1,
                            .peer = (int16_t)peer,
                            .unit = -1,
                            .dtype = lowering->tensors[data.tensor].dtype,
                            .payload_bytes = data.bytes}};
    op_operand(op_list_append(lowering->arena, &stretch->list, &op), data, sends ? ACCESS_READ : ACCESS_WRITE);
    if (in_slices(lowering) && !sends) {
        add_gather(lowering, stretch, phase, whole);
    }
}

static void lower_chunk(Lowering *lowering, const StageChunk *chunk, ChunkMessages *messages) {
    const int32_t x = residual_stream(lowering);
    const OpRef in = stream_at(lowering, x, chunk->first), out = stream_at(lowering, x, chunk->first + chunk->count);
    const OpRef gradient_in = gradient_at(lowering, chunk->first + chunk->count);
    const OpRef gradient_out = gradient_at(lowering, chunk->first);
    Stretch *of = messages->of;
    add_message(lowering, &of[MESSAGE_IN], TASK_RECEIVE, chunk->before, PHASE_FORWARD, in);
    add_message(lowering, &of[MESSAGE_OUT], TASK_SEND, chunk->after, PHASE_FORWARD, out);
    add_message(lowering, &of[MESSAGE_GRADIENT_IN], TASK_RECEIVE, chunk->after, PHASE_BACKWARD, gradient_in);
    add_message(lowering, &of[MESSAGE_GRADIENT_OUT], TASK_SEND, chunk->before, PHASE_BACKWARD, gradient_out);
}

ChunkMessages *lower_messages(Lowering *lowering, const MicroLoops *loops) {
    ChunkMessages *messages = ARENA_ARRAY(lowering->arena, ChunkMessages, lowering->held->chunk_count);
    for (int32_t c = 0; c < lowering->held->chunk_count; c++) {
        for (Message message = 0; message < MESSAGE_COUNT; message++) {
            messages[c].of[message] = (Stretch){.section = SECTION_BEGIN, .first_task = {-1, -1}};
        }
        if (!lowering->choice->alone) {
            lower_chunk(lowering, &lowering->held->chunks[c], &messages[c]);
        }
    }
    if (lowering_has_stages(lowering) && !lowering->choice->alone) {
        choose_slots(lowering, loops);
        keep_buffers(lowering);
    }
    return messages;
}

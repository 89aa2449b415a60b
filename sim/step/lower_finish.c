// What is derived once a task is complete: minimum memory traffic, the cost key, and the template's hash.

#include <stddef.h>
#include <string.h>

#include "sim/base/hash.h"
#include "sim/step/lower.h"

static int64_t attention_elements(const Task *task, int q_tensors, int kv_tensors) {
    return task->rows * task->head_dim * ((int64_t)q_tensors * task->heads + (int64_t)kv_tensors * task->kv_heads);
}

static int64_t element_bytes(const StepProgram *program, const Task *task, int index) {
    return dtype_bytes(program->buffers[task_operand(program, task, index)->ref.buffer].dtype);
}

static int64_t grouped_traffic(const StepProgram *program, const Task *task) {
    const int64_t element = dtype_bytes(task->dtype);
    const int64_t output = element_bytes(program, task, AT_GEMM_C);
    const int64_t weights = task->groups * task->n;  // rows of all experts' weights, or of their gradients
    return task->trans_a ? (task->m + task->n) * task->k * element + task->m * weights * output
                         : (task->m + weights) * task->k * element + task->m * task->n * output;
}

// For tasks that only MoE layers have.
static int64_t experts_traffic(const StepProgram *program, const Task *task) {
    const int64_t plane = task->rows * task->cols * dtype_bytes(task->dtype);
    switch (task->kind) {
    case TASK_GROUPED_GEMM:
        return grouped_traffic(program, task);
    case TASK_PERMUTE:
        return 2 * task->inner * plane;
    case TASK_UNPERMUTE:
        return (task->inner + (task->operand_count > AT_UNPERMUTE_MORE ? 2 : 1)) * plane;
    case TASK_UNPERMUTE_BACKWARD:
        return (2 * task->inner + 1) * plane;
    default:  // the router's choice, in fp32
        return plane + task->rows * task->cols * dtype_bytes(DTYPE_FP32);
    }
}

// Gradient and parameter in, parameter out, in the masters' width, and states in and out.
static int64_t update_traffic(const StepProgram *program, const Task *task) {
    int64_t states = 0;
    for (int i = AT_ADAMW_M; i <= AT_ADAMW_V; i++) {
        const BufferRef *state = &task_operand(program, task, i)->ref;
        states += state->buffer >= 0 ? state->bytes : 0;
    }
    return 3 * task->cols * element_bytes(program, task, AT_ADAMW_MASTER) + 2 * states;
}

// Each operand once, at its size: reads plus writes.
static int64_t gemm_traffic(const StepProgram *program, const Task *task) {
    const int64_t output = element_bytes(program, task, AT_GEMM_C) * (task->accumulate ? 2 : 1);
    return (task->m * task->k + task->k * task->n) * dtype_bytes(task->dtype) + task->m * task->n * output;
}

// Of kinds that read and write their rows so many times in all.
static const unsigned char planes_moved[TASK_KIND_COUNT] = {
    [TASK_RMSNORM] = 2,
    [TASK_LAYERNORM] = 2,
    [TASK_EMBED] = 2,
    [TASK_ACTIVATION] = 2,
    [TASK_LOSS_GRADIENT] = 2,
    [TASK_LOSS] = 2,  // a row that was summed is still in the cache
    [TASK_EMBED_BACKWARD] = 3,
    [TASK_ADD] = 3,
    [TASK_SWIGLU] = 3,
    [TASK_ACTIVATION_BACKWARD] = 3,
    [TASK_RMSNORM_BACKWARD] = 4,
    [TASK_LAYERNORM_BACKWARD] = 4,
    [TASK_SWIGLU_BACKWARD] = 5,
    [TASK_LOSS_MAX] = 1,
    [TASK_LOSS_SUM] = 1,
    [TASK_SQUARE_SUM] = 1,
    [TASK_ZERO] = 1,
    [TASK_COLUMN_SUM] = 1,
};

static int64_t task_traffic(const StepProgram *program, const Task *task) {
    const int64_t element = dtype_bytes(task->dtype);
    const int64_t plane = task->rows * task->cols * element;
    switch (task->kind) {
    case TASK_GEMM:
        return gemm_traffic(program, task);
    case TASK_GROUPED_GEMM:
    case TASK_ROUTE:
    case TASK_ROUTE_BACKWARD:
    case TASK_PERMUTE:
    case TASK_UNPERMUTE:
    case TASK_UNPERMUTE_BACKWARD:
        return experts_traffic(program, task);
    case TASK_RMSNORM:
    case TASK_LAYERNORM:
        return (planes_moved[task->kind] + (task_added_operand(task) ? 2 : 0)) * plane;
    case TASK_POSITION:  // a table row serves the same position of all sequences
        return 2 * plane + plane / task->sequences;
    case TASK_POSITION_BACKWARD:
        return plane + task->inner * task->cols * element;
    case TASK_ROPE:
        return 2 * attention_elements(task, 1, 1) * task->inner / task->head_dim * element;
    case TASK_QK_NORM:  // read, written in place, saved as they were; backward: read twice, written
    case TASK_QK_NORM_BACKWARD:
        return 3 * attention_elements(task, 1, 1) * element;
    case TASK_ATTENTION:
        return attention_elements(task, 2, 2) * element;
    case TASK_ATTENTION_BACKWARD:
        return attention_elements(task, 4, 4) * element;
    case TASK_COPY:
    case TASK_UNPACK:
        return (plane + task->rows * task->cols * element_bytes(program, task, AT_COPY_DST)) * task_blocks(task);
    case TASK_ACCUMULATE:
        return plane + 2 * task->rows * task->cols * element_bytes(program, task, AT_COPY_DST);
    case TASK_ADAMW:
    case TASK_UPDATE:
        return update_traffic(program, task);
    default:
        return planes_moved[task->kind] * plane;
    }
}

// Orders of routed rows are made there and back, forward and backward, by other kernels (sim/cost/traffic.c).
static bool is_gradients_order(const Task *task) {
    return (task->kind == TASK_PERMUTE || task->kind == TASK_UNPERMUTE) && task->phase == PHASE_BACKWARD;
}

static uint64_t task_key(const StepProgram *program, const Task *task) {
    Hash hash = hash_begin();
    const int64_t fields[] = {task->kind,
                              task->group,
                              task->ring_step > 0,
                              task->phase == PHASE_LOSS,
                              task->accumulate,
                              task->trans_a,
                              task->trans_b,
                              task->dtype,
                              task->m,
                              task->n,
                              task->k,
                              task->rows,
                              task->cols,
                              task->inner,
                              task->sequences,
                              task->heads,
                              task->kv_heads,
                              task->head_dim,
                              task->activation,
                              task->alibi,
                              task->scaled,
                              task->traffic_bytes,
                              task->cast_bytes,
                              task->payload_bytes,
                              (int64_t)task->flops,
                              task->lane};
    hash_ints(&hash, fields, sizeof fields / sizeof fields[0]);
    if (plan_graphed_parts(&program->plan)) {  // the host issues those of the other parts
        hash_int(&hash, task->part);
    }
    if (task_is_message(task)) {
        hash_int(&hash, task->peer);
    }
    hash_more(&hash, "groups", task->groups);
    hash_more(&hash, "epilogue", task->epilogue_bytes);
    hash_tag(&hash, task->kind == TASK_PERMUTE && task->backward, "back");
    hash_tag(&hash, is_gradients_order(task), "gradient");
    hash_more(&hash, "apart", task->apart_elements);
    if (task->apart_elements > 0) {
        hash_int(&hash, task->apart_bytes);
    }
    hash_more(&hash, "atomic", task->atomic_elements);
    hash_more(&hash, "sorted", task->sorted_elements);
    hash_tag(&hash, task->awaited, "awaited");
    hash_tag(&hash, task->once, "once");
    hash_tag(&hash, task->unhidden, "unhidden");
    hash_more_double(&hash, "factor", task->factor);
    hash_more_double(&hash, "share", task->share);
    hash_more(&hash, "window", task->window);
    if (task->window > 0) {
        hash_double(&hash, task->window_share);
    }
    return hash_end(&hash);
}

// Sizes and flags: all inputs of traffic and key; operands have the dtypes of those they were copied from.
static bool same_work(const Task *a, const Task *b) {
    const size_t begin = offsetof(Task, accumulate), end = offsetof(Task, traffic_bytes);
    return a->kind == b->kind && a->part == b->part && a->lane == b->lane && a->group == b->group &&
           a->ring_step == b->ring_step && (a->phase == PHASE_LOSS) == (b->phase == PHASE_LOSS) &&
           is_gradients_order(a) == is_gradients_order(b) && a->cast_bytes == b->cast_bytes &&
           a->payload_bytes == b->payload_bytes && a->operand_count == b->operand_count &&
           a->apart_elements == b->apart_elements && a->apart_bytes == b->apart_bytes &&
           a->atomic_elements == b->atomic_elements && a->sorted_elements == b->sorted_elements &&
           memcmp((const char *)a + begin, (const char *)b + begin, end - begin) == 0;
}

void task_finish(const StepProgram *program, const Task *same, Task *task) {
    if (same && same_work(same, task)) {
        task->traffic_bytes = same->traffic_bytes;
        task->key = same->key;
        return;
    }
    task->traffic_bytes = task_traffic(program, task);
    task->key = task_key(program, task);
}

static void hash_buffers(Hash *hash, const StepProgram *program) {
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        hash_text(hash, buffer->name);
        hash_int(hash, buffer->role);
        hash_int(hash, buffer->dtype);
        hash_int(hash, buffer->slots);
        hash_int(hash, buffer->slot_bytes);
        hash_int(hash, buffer->persistent);
        hash_tag(hash, buffer->host, "host");
        hash_tag(hash, buffer->held, "held");
        hash_more(hash, "micro-steps", buffer->micro_steps);
    }
}

// Indices that depend on the micro-step hash an extra tag; others hash as before this index existed.
static void hash_micro_index(Hash *hash, SlotIndex index) {
    if (index.micro_scale != 0) {
        hash_text(hash, "micro-step");
        hash_int(hash, index.micro_offset);
    }
}

static void hash_refs(Hash *hash, const StepProgram *program) {
    for (int32_t i = 0; i < program->operand_count; i++) {
        const BufferRef *ref = &program->operands[i].ref;
        const int64_t fields[] = {ref->buffer,
                                  ref->index.layer_scale,
                                  ref->index.layer_offset,
                                  ref->rank_group,
                                  ref->rank_shift,
                                  ref->rank_stride_bytes,
                                  ref->offset_bytes,
                                  ref->bytes,
                                  program->operands[i].access};
        hash_ints(hash, fields, sizeof fields / sizeof fields[0]);
        hash_micro_index(hash, ref->index);
    }
    for (int32_t i = 0; i < program->event_ref_count; i++) {
        const EventRef *ref = &program->event_refs[i];
        hash_int(hash, ref->event);
        hash_int(hash, ref->index.layer_scale);
        hash_int(hash, ref->index.layer_offset);
        hash_micro_index(hash, ref->index);
    }
}

uint64_t step_template_hash(const StepProgram *program) {
    Hash hash = hash_begin();
    hash_buffers(&hash, program);
    hash_refs(&hash, program);
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        hash_int(&hash, (int64_t)task->key);
        hash_int(&hash, task->lane);
        hash_int(&hash, task->layer_guard);
        hash_int(&hash, task->wait_count);
        hash_int(&hash, task->record_count);
    }
    for (int32_t i = 0; i < program->segment_count; i++) {
        const Segment *segment = &program->segments[i];
        const int64_t fields[] = {segment->kind,  segment->first_task, segment->task_count, segment->count,
                                  segment->first, segment->step,       segment->end};
        hash_ints(&hash, fields, sizeof fields / sizeof fields[0]);
        hash_more(&hash, "micro-step", segment->micro_offset);
    }
    return hash_end(&hash);
}

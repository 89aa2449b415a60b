// Walking a StepProgram and resolving what depends on the rank.

#include "sim/step/step.h"

#include <string.h>

#include "sim/step/slots.h"
#include "sim/step/task_counts.h"

const char *task_kind_name(TaskKind kind) {
    static const char *const names[TASK_KIND_COUNT] = {
        [TASK_LOAD_TOKENS] = "load_tokens",
        [TASK_EMBED] = "embed",
        [TASK_EMBED_BACKWARD] = "embed_backward",
        [TASK_POSITION] = "position",
        [TASK_POSITION_BACKWARD] = "position_backward",
        [TASK_RMSNORM] = "rmsnorm",
        [TASK_RMSNORM_BACKWARD] = "rmsnorm_backward",
        [TASK_LAYERNORM] = "layernorm",
        [TASK_LAYERNORM_BACKWARD] = "layernorm_backward",
        [TASK_QK_NORM] = "qk_norm",
        [TASK_QK_NORM_BACKWARD] = "qk_norm_backward",
        [TASK_COLUMN_SUM] = "column_sum",
        [TASK_GEMM] = "gemm",
        [TASK_GROUPED_GEMM] = "grouped_gemm",
        [TASK_ROUTE] = "route",
        [TASK_ROUTE_BACKWARD] = "route_backward",
        [TASK_PERMUTE] = "permute",
        [TASK_UNPERMUTE] = "unpermute",
        [TASK_UNPERMUTE_BACKWARD] = "unpermute_backward",
        [TASK_ROPE] = "rope",
        [TASK_ATTENTION] = "attention",
        [TASK_ATTENTION_BACKWARD] = "attention_backward",
        [TASK_SWIGLU] = "swiglu",
        [TASK_SWIGLU_BACKWARD] = "swiglu_backward",
        [TASK_ACTIVATION] = "activation",
        [TASK_ACTIVATION_BACKWARD] = "activation_backward",
        [TASK_ADD] = "add",
        [TASK_LOSS_MAX] = "loss_max",
        [TASK_LOSS_SUM] = "loss_sum",
        [TASK_LOSS_GRADIENT] = "loss_gradient",
        [TASK_LOSS] = "loss",
        [TASK_SQUARE_SUM] = "square_sum",
        [TASK_CLIP] = "clip",
        [TASK_ADAMW] = "adamw",
        [TASK_UPDATE] = "update",
        [TASK_COPY] = "copy",
        [TASK_UNPACK] = "unpack",
        [TASK_ACCUMULATE] = "accumulate",
        [TASK_ZERO] = "zero",
        [TASK_ALL_GATHER] = "all_gather",
        [TASK_REDUCE_SCATTER] = "reduce_scatter",
        [TASK_ALL_REDUCE] = "all_reduce",
        [TASK_SEND_RECV] = "send_recv",
        [TASK_ALL_TO_ALL] = "all_to_all",
        [TASK_SEND] = "send",
        [TASK_RECEIVE] = "receive",
    };
    return names[kind];
}

const char *phase_name(Phase phase) {
    static const char *const names[PHASE_COUNT] = {"forward", "recompute", "loss", "backward", "reduce", "optimizer"};
    return names[phase];
}

StepCursor step_cursor_begin(const StepProgram *program) {
    return (StepCursor){.program = program};
}

static void cursor_set_variable(StepCursor *cursor) {
    const Segment *loop = &cursor->program->segments[cursor->loop_segment[cursor->depth - 1]];
    const int value = loop->first + cursor->iteration[cursor->depth - 1] * loop->step;
    if (loop->kind == SEGMENT_LAYERS) {
        cursor->layer = value;
    } else {
        cursor->micro_step = value;
    }
}

static void cursor_enter_loop(StepCursor *cursor) {
    ASSERT(cursor->program->segments[cursor->segment].count > 0);
    ASSERT(cursor->depth < STEP_MAX_DEPTH);
    cursor->loop_segment[cursor->depth] = cursor->segment;
    cursor->iteration[cursor->depth] = 0;
    cursor->depth++;
    cursor_set_variable(cursor);
    cursor->segment++;
}

static void cursor_leave_variable(StepCursor *cursor) {
    if (cursor->program->segments[cursor->loop_segment[cursor->depth]].kind == SEGMENT_LAYERS) {
        cursor->layer = 0;
    } else {
        cursor->micro_step = 0;
    }
}

// After the end of a subtree: the next iteration of the innermost finished loop, or out of it.
static void cursor_close_loops(StepCursor *cursor) {
    while (cursor->depth > 0) {
        const int32_t loop_index = cursor->loop_segment[cursor->depth - 1];
        const Segment *loop = &cursor->program->segments[loop_index];
        if (cursor->segment != loop->end) {
            return;
        }
        if (++cursor->iteration[cursor->depth - 1] < loop->count) {
            cursor->segment = loop_index + 1;
            cursor_set_variable(cursor);
            return;
        }
        cursor->depth--;
        cursor_leave_variable(cursor);
    }
}

bool step_cursor_next(StepCursor *cursor, StepInstance *instance) {
    const StepProgram *program = cursor->program;
    while (cursor->segment < program->segment_count) {
        const Segment *segment = &program->segments[cursor->segment];
        if (segment->kind != SEGMENT_TASKS) {
            cursor_enter_loop(cursor);
            continue;
        }
        while (cursor->task < segment->task_count) {
            const int32_t task = segment->first_task + cursor->task++;
            if (step_guard_open(program, &program->tasks[task], cursor->layer)) {
                *instance = (StepInstance){
                    .task = task, .layer = cursor->layer, .micro_step = cursor->micro_step + segment->micro_offset};
                return true;
            }
        }
        cursor->task = 0;
        cursor->segment++;
        cursor_close_loops(cursor);
    }
    return false;
}

// The nodes begin..end, with this layer and micro-step around them.
static StepInstance *put_instances(const StepProgram *program, int32_t begin, int32_t end, int32_t layer,
                                   int32_t micro_step, StepInstance *out) {
    for (int32_t i = begin; i < end;) {
        const Segment *segment = &program->segments[i];
        if (segment->kind != SEGMENT_TASKS) {
            const bool layers = segment->kind == SEGMENT_LAYERS;
            for (int32_t k = 0; k < segment->count; k++) {
                const int32_t value = segment->first + k * segment->step;
                out = put_instances(program, i + 1, segment->end, layers ? value : layer, layers ? micro_step : value,
                                    out);
            }
            i = segment->end;
            continue;
        }
        const int32_t micro = micro_step + segment->micro_offset;
        for (int32_t t = segment->first_task; t < segment->first_task + segment->task_count; t++) {
            if (step_guard_open(program, &program->tasks[t], layer)) {
                *out++ = (StepInstance){.task = t, .layer = layer, .micro_step = micro};
            }
        }
        i++;
    }
    return out;
}

void step_instances(const StepProgram *program, StepInstance *instances) {
    put_instances(program, 0, program->segment_count, 0, 0, instances);
}

// What the nodes begin..end stand for, times over; counts: of each task, may be NULL.
static int64_t segment_counts(const StepProgram *program, int32_t begin, int32_t end, const Segment *layers,
                              int64_t times, int64_t *counts) {
    int64_t sum = 0;
    for (int32_t i = begin; i < end;) {
        const Segment *segment = &program->segments[i];
        if (segment->kind != SEGMENT_TASKS) {
            const Segment *inner = segment->kind == SEGMENT_LAYERS ? segment : layers;
            sum += segment_counts(program, i + 1, segment->end, inner,
                                  inner == segment ? times : times * segment->count, counts);
            i = segment->end;
            continue;
        }
        for (int32_t t = segment->first_task; t < segment->first_task + segment->task_count; t++) {
            int64_t open = 0;
            for (int32_t k = 0; k < (layers ? layers->count : 1); k++) {
                open += step_guard_open(program, &program->tasks[t], layers ? layers->first + k * layers->step : 0);
            }
            sum += open * times;
            if (counts) {
                counts[t] += open * times;
            }
        }
        i++;
    }
    return sum;
}

int64_t step_instance_count(const StepProgram *program) {
    return segment_counts(program, 0, program->segment_count, NULL, 1, NULL);
}

void step_task_counts(const StepProgram *program, int64_t *counts) {
    memset(counts, 0, (size_t)program->task_count * sizeof *counts);
    segment_counts(program, 0, program->segment_count, NULL, 1, counts);
}

int64_t step_ref_offset(const StepProgram *program, const BufferRef *ref, const StepInstance *instance,
                        const MeshCoordinates *at) {
    const Buffer *buffer = &program->buffers[ref->buffer];
    int64_t offset = step_slot(buffer, ref->index, instance) * buffer->slot_bytes + ref->offset_bytes;
    if (ref->rank_group >= 0) {
        const Group *group = &program->groups[ref->rank_group];
        const int index = mesh_group_index(&program->plan.mesh, group->axes, at);
        offset += ((index - ref->rank_shift) % group->size + group->size) % group->size * ref->rank_stride_bytes;
    }
    return offset;
}

void step_shard_range(const StepProgram *program, const Unit *unit, const MeshCoordinates *at, int64_t *first,
                      int64_t *count) {
    const AxisMask axes = program->groups[unit->shard_group].axes;
    const int index = unit->shards > 1 ? mesh_group_index(&program->plan.mesh, axes, at) : 0;
    *first = index * unit->shard_elements;
    const int64_t left = unit->elements - *first;
    *count = left < 0 ? 0 : left < unit->shard_elements ? left : unit->shard_elements;
}

SequenceChunks step_chunks(const StepProgram *program, int cp_index) {
    const int ranks = program->plan.mesh.size[AXIS_CP];
    const int local = program->plan.seq / ranks;
    if (ranks == 1 || !program->target->zigzag) {
        return (SequenceChunks){.count = 1, .length = local, .start = {cp_index * local, 0}};
    }
    const int length = local / 2;
    return (SequenceChunks){
        .count = 2, .length = length, .start = {cp_index * length, (2 * ranks - 1 - cp_index) * length}};
}

// The cp rank's rows in equal parts, one after another; with an odd number of parts the middle one spans both chunks.
SequenceChunks step_token_chunks(const StepProgram *program, const MeshCoordinates *at) {
    const SequenceChunks whole = step_chunks(program, at->at[AXIS_CP]);
    const int ranks = program->plan.mesh.size[AXIS_SP], index = at->at[AXIS_SP];
    if (ranks == 1) {
        return whole;
    }
    const int rows = whole.count * whole.length / ranks, first = index * rows;
    if (whole.count == 2 && first < whole.length && first + rows > whole.length) {
        return (SequenceChunks){.count = 2, .length = rows / 2, .start = {whole.start[0] + first, whole.start[1]}};
    }
    const int chunk = first / whole.length;
    return (SequenceChunks){
        .count = 1, .length = rows, .start = {whole.start[chunk] + first - chunk * whole.length, 0}};
}

// Expert row counts on the host: routers and all-to-alls count on the device, but products and exchanges need sizes.
// The first caller waits for its stream and copies; the result is valid until a task counts there again, so a layer
// waits once in forward and never in backward. Tasks that need counts are not part of graphs (issue_runs.c).

#include <stdlib.h>

#include "exec/device/cuda.h"

// The operand the task counts into, or -1.
static int counted_operand(const StepProgram *program, const Task *task) {
    if (task->kind == TASK_ROUTE) {
        return task->operand_count > AT_ROUTE_ROWS ? AT_ROUTE_ROWS : -1;
    }
    const bool counts = task->kind == TASK_ALL_TO_ALL && task->operand_count <= AT_EXCHANGE_CAME;
    const int32_t to = counts ? task_operand(program, task, AT_COLLECTIVE_TO)->ref.buffer : -1;
    return to >= 0 && program->buffers[to].dtype == DTYPE_INT32 ? AT_COLLECTIVE_TO : -1;
}

static int by_address(const void *a, const void *b) {
    const CudaCount *left = a, *right = b;
    return left->at < right->at ? -1 : left->at > right->at;
}

// Fills places, or only counts them if NULL.
static int32_t each_count(Device *cuda, CudaCount *places) {
    const StepProgram *program = cuda->setup.program;
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    int32_t count = 0;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program->tasks[instance.task];
        const int operand = counted_operand(program, task);
        if (operand < 0) {
            continue;
        }
        if (places) {
            const BufferRef *ref = &task_operand(program, task, operand)->ref;
            places[count] = (CudaCount){.at = placement_at(&cuda->placement, ref, &instance), .bytes = ref->bytes};
        }
        count++;
    }
    return count;
}

// Micro-batches and layers that share memory share its known counts.
static int64_t make_distinct(CudaCounts *counts) {
    int64_t bytes = 0;
    int32_t kept = 0;
    qsort(counts->places, (size_t)counts->count, sizeof *counts->places, by_address);
    for (int32_t i = 0; i < counts->count; i++) {
        if (kept == 0 || counts->places[kept - 1].at != counts->places[i].at) {
            counts->places[kept++] = counts->places[i];
            bytes += counts->places[i].bytes;
        }
    }
    counts->count = kept;
    return bytes;
}

Status cuda_counts_open(Device *cuda, Arena *arena, Error *error) {
    CudaCounts *counts = &cuda->counts;
    counts->count = each_count(cuda, NULL);
    if (counts->count == 0) {
        return STATUS_OK;
    }
    counts->places = ARENA_ARRAY(arena, CudaCount, counts->count);
    each_count(cuda, counts->places);
    CUDA_TRY(cudaHostAlloc((void **)&counts->area, (size_t)make_distinct(counts), cudaHostAllocDefault),
             "pinned memory for rows of experts");
    char *at = counts->area;
    for (int32_t i = 0; i < counts->count; i++) {
        counts->places[i].host = (int32_t *)(void *)at;
        at += counts->places[i].bytes;
    }
    return STATUS_OK;
}

void cuda_counts_close(Device *cuda) {
    if (cuda->counts.area) {
        cudaFreeHost(cuda->counts.area);
    }
}

static CudaCount *count_at(const CudaCounts *counts, const void *at) {
    const CudaCount key = {.at = at};
    return counts->count > 0 ? bsearch(&key, counts->places, (size_t)counts->count, sizeof key, by_address) : NULL;
}

void cuda_counts_forget(Device *cuda, const StepInstance *instance) {
    const StepProgram *program = cuda->setup.program;
    const Task *task = &program->tasks[instance->task];
    const int operand = counted_operand(program, task);
    if (operand >= 0) {
        count_at(&cuda->counts, placement_at(&cuda->placement, &task_operand(program, task, operand)->ref, instance))
            ->known = false;
    }
}

int cuda_counts_at(Device *cuda, const void *at, cudaStream_t stream, const int32_t **counts) {
    CudaCount *count = count_at(&cuda->counts, at);
    if (!count) {
        return (int)cudaErrorInvalidValue;
    }
    *counts = count->host;
    if (count->known) {
        return 0;
    }
    int code = (int)cudaMemcpyAsync(count->host, at, (size_t)count->bytes, cudaMemcpyDeviceToHost, stream);
    code = code ? code : cuda_settle(cuda, stream, NULL);
    count->known = code == 0;
    return code;
}

int cuda_groups(const TaskCall *call, cudaStream_t stream, int came, KernelGroups *groups) {
    *groups = call_groups(call, came);
    return cuda_counts_at(call->device, groups->counts, stream, &groups->counts);
}

// Data staged through the host: operands of collectives whose transport sums in host memory, and tokens. Pinned, so
// that copies are asynchronous. A lane's area is free again once its stream has passed the copy back.

#include "exec/device/cuda.h"

// An all-reduce has one buffer for both, a message has only one.
static int64_t in_bytes(const StepProgram *program, const Task *task) {
    const bool one = task->kind == TASK_ALL_REDUCE || task_is_message(task);
    return one ? 0 : step_slot_bytes(task_operand(program, task, AT_COLLECTIVE_FROM)->ref.bytes);
}

static Status pinned(int64_t bytes, const char *what, void **memory, Error *error) {
    CUDA_TRY(cudaHostAlloc(memory, (size_t)bytes, cudaHostAllocDefault), what);
    return STATUS_OK;
}

static Status areas_open(Device *cuda, Error *error) {
    const StepProgram *program = cuda->setup.program;
    CudaStages *stages = &cuda->stages;
    for (int32_t t = 0; t < program->task_count; t++) {
        const Task *task = &program->tasks[t];
        if (task_is_transfer(task)) {
            const int64_t bytes = in_bytes(program, task) + step_slot_bytes(transfer_to(program, task)->bytes);
            int64_t *most = &stages->bytes[cuda->lanes.of_lane[task->lane]];
            *most = bytes > *most ? bytes : *most;
        }
    }
    for (int i = 0; i < cuda->lanes.stream_count; i++) {
        if (stages->bytes[i] > 0) {
            TRY(pinned(stages->bytes[i], "pinned memory to stage collectives", (void **)&stages->area[i], error));
        }
    }
    return STATUS_OK;
}

Status cuda_stages_open(Device *cuda, Error *error) {
    CudaTokens *tokens = &cuda->tokens;
    tokens->rows = plan_local_tokens(&cuda->setup.program->plan);
    TRY(pinned(CUDA_TOKEN_AREAS * 2 * tokens->rows * (int64_t)sizeof(int32_t), "pinned memory for tokens",
               (void **)&tokens->area, error));
    for (int i = 0; i < CUDA_TOKEN_AREAS; i++) {
        CUDA_TRY(cudaEventCreateWithFlags(&tokens->copied[i], cudaEventDisableTiming), "an event");
    }
    return cuda->setup.staged ? areas_open(cuda, error) : STATUS_OK;
}

void cuda_stages_close(Device *cuda) {
    for (int i = 0; i < CUDA_MAX_STREAMS; i++) {
        if (cuda->stages.area[i]) {
            cudaFreeHost(cuda->stages.area[i]);
        }
    }
    for (int i = 0; i < CUDA_TOKEN_AREAS; i++) {
        if (cuda->tokens.copied[i]) {
            cudaEventDestroy(cuda->tokens.copied[i]);
        }
    }
    if (cuda->tokens.area) {
        cudaFreeHost(cuda->tokens.area);
    }
}

Status cuda_stage(Device *cuda, const StepInstance *instance, DeviceTransfer *transfer, Error *error) {
    const StepProgram *program = cuda->setup.program;
    const Task *task = &program->tasks[instance->task];
    const cudaStream_t stream = cuda_stream(cuda, task);
    const void *from = transfer->in;
    char *area = cuda->stages.area[cuda->lanes.of_lane[task->lane]];
    transfer->in = area;
    transfer->out = area + in_bytes(program, task);
    if (cuda->failure.status != STATUS_OK) {
        *error = cuda->failure;
        return error->status;
    }
    if (task->kind != TASK_RECEIVE) {
        const int64_t bytes = task_operand(program, task, AT_COLLECTIVE_FROM)->ref.bytes;
        CUDA_TRY(cudaMemcpyAsync(area, from, (size_t)bytes, cudaMemcpyDeviceToHost, stream), task->name);
    }
    CUDA_TRY(cuda_settle(cuda, stream, NULL), task->name);
    return STATUS_OK;
}

Status cuda_unstage(Device *cuda, const StepInstance *instance, const DeviceTransfer *transfer, Error *error) {
    const StepProgram *program = cuda->setup.program;
    const Task *task = &program->tasks[instance->task];
    const BufferRef *out = transfer_to(program, task);
    if (task->kind == TASK_SEND) {
        return STATUS_OK;
    }
    CUDA_TRY(cudaMemcpyAsync(placement_at(&cuda->placement, out, instance), transfer->out, (size_t)out->bytes,
                             cudaMemcpyHostToDevice, cuda_stream(cuda, task)),
             task->name);
    return STATUS_OK;
}

int cuda_load_tokens(const TaskCall *call, const KernelCuda *at) {
    CudaTokens *tokens = &call->device->tokens;
    const int area = tokens->next;
    tokens->next = (area + 1) % CUDA_TOKEN_AREAS;
    const size_t bytes = (size_t)tokens->rows * sizeof(int32_t);
    int32_t *const own = tokens->area + area * 2 * tokens->rows, *const targets = own + tokens->rows;
    int code = cuda_settle(call->device, NULL, tokens->copied[area]);  // never recorded: nothing to wait for
    if (code == 0) {
        call_load_tokens(call, own, targets);
        code = (int)cudaMemcpyAsync(call->operand[AT_LOAD_TOKENS], own, bytes, cudaMemcpyHostToDevice, at->stream);
    }
    code =
        code ? code
             : (int)cudaMemcpyAsync(call->operand[AT_LOAD_TARGETS], targets, bytes, cudaMemcpyHostToDevice, at->stream);
    return code ? code : (int)cudaEventRecord(tokens->copied[area], at->stream);
}

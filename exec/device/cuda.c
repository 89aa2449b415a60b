// The CUDA device: one allocation for all buffers, streams for lanes, a table of task functions. Nothing is allocated
// after the first step, which also loads the libraries' code. Tests run it on a stand-in for the CUDA runtime
// (tests/support/cuda_host), tests/gpu on a GPU.

#include "exec/device/cuda.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/text.h"

Status cuda_failed(Error *error, int code, const char *what) {
    return error_set(error, STATUS_ENVIRONMENT, "cuda: %s: %s", what, cudaGetErrorString((cudaError_t)code));
}

void cuda_note_failure(Device *cuda, const Task *task, const char *words) {
    if (cuda->failure.status == STATUS_OK) {
        error_set(&cuda->failure, STATUS_ENVIRONMENT, "cuda: task '%s': %s", task->name, words);
    }
}

Status cuda_take(Device *cuda, int64_t bytes, const char *what, void **memory, Error *error) {
    const cudaError_t code = cudaMalloc(memory, (size_t)(bytes > 0 ? bytes : 1));
    if (code != cudaSuccess) {
        *memory = NULL;
        return error_set(error, STATUS_ENVIRONMENT, "cuda: %s of memory for %s: %s",
                         text_bytes(UNIT_BUFFER, (double)bytes), what, cudaGetErrorString(code));
    }
    cuda->device_bytes += bytes;
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- opening

// As far as this rank can tell: collectives through the host, or NCCL allowed to try sharing (nccl_open.c).
static bool gpu_is_shared(const Device *cuda, int gpus) {
    const char *asked = getenv("NDTUNE_NCCL_SHARE_GPU");
    const bool may = cuda->setup.staged || (asked && strcmp(asked, "1") == 0);
    return may && mesh_world(&cuda->setup.program->plan.mesh) > gpus;
}

static Status gpu_choose(Device *cuda, Error *error) {
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0) {
        error_set(error, STATUS_ENVIRONMENT, "device cuda needs an NVIDIA GPU and its driver: %s",
                  code != cudaSuccess ? cudaGetErrorString(code) : "this machine has none");
        return error_hint(error, "--device cpu runs the same plan on processors");
    }
    cuda->shared = gpu_is_shared(cuda, count);
    const int gpu = cuda->setup.local_rank % count;
    CUDA_TRY(cudaSetDevice(gpu), "the GPU");
    CUDA_TRY(cudaGetDeviceProperties(&cuda->properties, gpu), "the GPU");
    if (cuda->properties.major < 8) {  // bf16 products: CUDA programming guide, compute capabilities
        return error_set(error, STATUS_ENVIRONMENT, "device cuda needs compute capability 8.0 or newer, %s has %d.%d",
                         cuda->properties.name, cuda->properties.major, cuda->properties.minor);
    }
    return STATUS_OK;
}

static Status arena_open(Device *cuda, Error *error) {
    const int64_t bytes = cuda->setup.memory->arena_bytes;
    void *memory = NULL;
    if (cuda->setup.arena) {
        memory = cuda->setup.arena;
        cuda->device_bytes += bytes;
    } else {
        TRY(cuda_take(cuda, bytes, "the arena", &cuda->arena, error));
        memory = cuda->arena;
    }
    cuda->placement.arena = memory;
    return STATUS_OK;
}

// Clears the data that products were timed on, so that a poisoned run reads poison wherever nothing was written.
static Status arena_fill(Device *cuda, Error *error) {
    CUDA_TRY(cudaMemset(cuda->placement.arena, cuda->setup.poison ? 0xFF : 0,  // 0xFF..: a NaN
                        (size_t)cuda->setup.memory->arena_bytes),
             "the arena");
    CUDA_TRY(cudaDeviceSynchronize(), "the arena");  // our streams do not wait for the default one
    return STATUS_OK;
}

static Status parts_open(Device *cuda, Arena *arena, Error *error) {
    TRY(gpu_choose(cuda, error));
    TRY(cuda_lanes_open(cuda->setup.program, arena, &cuda->lanes, error));
    TRY(arena_open(cuda, error));
    TRY(cuda_stages_open(cuda, error));
    TRY(cuda_marks_open(cuda, error));
    TRY(cuda_workspaces_open(cuda, error));
    TRY(cuda_counts_open(cuda, arena, error));
    TRY(cuda_gemms_open(cuda, arena, error));
    TRY(arena_fill(cuda, error));
    TRY(cuda_attention_open(cuda, arena, error));
    cuda_graphs_open(cuda, arena);
    TRY(cuda_trace_open(cuda, arena, error));
    return cuda_state_begin(cuda, arena, error);
}

static void cuda_close(Device *cuda) {
    cudaDeviceSynchronize();
    cuda_trace_close(cuda);
    cuda_graphs_close(cuda);
    cuda_attention_close(cuda);
    cuda_gemms_close(cuda);
    cuda_counts_close(cuda);
    cuda_stages_close(cuda);
    cuda_marks_close(cuda);
    cuda_lanes_close(&cuda->lanes);
    cudaFree(cuda->positions);
    cudaFree(cuda->gemms.shop.workspace);
    for (int i = 0; i < CUDA_MAX_STREAMS; i++) {
        cudaFree(cuda->workspace[i]);
    }
    cudaFree(cuda->arena);
    placement_close(&cuda->placement);
}

static Status cuda_open(const DeviceSetup *setup, Arena *arena, Device **device, Error *error) {
    Device *cuda = ARENA_NEW(arena, Device);
    cuda->setup = *setup;
    TRY(cuda_check(setup->program, error));
    TRY(placement_open(cuda, &cuda->setup, arena, &cuda->placement, error));
    const Status status = parts_open(cuda, arena, error);
    if (status != STATUS_OK) {
        cuda_close(cuda);
        return status;
    }
    *device = cuda;
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- running

static void cuda_begin_step(Device *cuda, int64_t step, bool timed) {
    cuda->placement.step = step;
    cuda->graphs.next = 0;
    cuda->trace.next = 0;
    cuda->trace.on = timed && cuda->trace.instances > 0;
    if (cuda->trace.on) {
        for (int i = 1; i < cuda->lanes.stream_count; i++) {  // nothing of the step comes before its origin
            cudaStreamSynchronize(cuda->lanes.streams[i]);
        }
        cudaEventRecord(cuda->trace.origin, cuda->lanes.streams[0]);
        cudaEventSynchronize(cuda->trace.origin);
    }
}

void cuda_issue(Device *cuda, const StepInstance *instance, cudaStream_t stream) {
    const TaskCall call = placement_call(&cuda->placement, instance);
    const KernelCuda at = cuda_place(&call, cuda, stream);
    int code = cuda_tasks[call.task->kind](&call, &at);
    code = code ? code : cuda_marks_add(cuda, stream, cuda_marks_work(call.task));
    if (code != 0) {
        cuda_note_failure(cuda, call.task, cudaGetErrorString((cudaError_t)code));
    }
}

// Makes the task's lane wait for its events. Call once all records it waits for have been made.
static void events_wait(Device *cuda, const StepInstance *instance) {
    const StepProgram *program = cuda->setup.program;
    const Task *task = &program->tasks[instance->task];
    const cudaStream_t stream = cuda_stream(cuda, task);
    int code = 0;
    cuda_counts_forget(cuda, instance);
    for (int32_t i = 0; i < task->wait_count; i++) {
        const EventRef *ref = &program->event_refs[task->first_wait + i];
        if (!cuda_same_stream(cuda, ref, task)) {
            code |= (int)cudaStreamWaitEvent(
                stream, cuda->lanes.events[cuda_event_slot(&cuda->lanes, program, ref, instance)], 0);
        }
    }
    if (cuda->trace.on) {
        code |= (int)cudaEventRecord(cuda->trace.begin[cuda->trace.next], stream);
    }
    if (code != 0) {
        cuda_note_failure(cuda, task, cudaGetErrorString(cudaPeekAtLastError()));
    }
}

// A record covers everything its lane was given so far.
static void events_record(Device *cuda, const StepInstance *instance) {
    const StepProgram *program = cuda->setup.program;
    const Task *task = &program->tasks[instance->task];
    const cudaStream_t stream = cuda_stream(cuda, task);
    int code = 0;
    if (cuda->trace.on) {
        code |= (int)cudaEventRecord(cuda->trace.end[cuda->trace.next++], stream);
    }
    for (int32_t i = 0; i < task->record_count; i++) {
        const EventRef *ref = &program->event_refs[task->first_record + i];
        code |= (int)cudaEventRecord(cuda->lanes.events[cuda_event_slot(&cuda->lanes, program, ref, instance)], stream);
    }
    if (code != 0) {
        cuda_note_failure(cuda, task, cudaGetErrorString(cudaPeekAtLastError()));
    }
}

static int64_t cuda_run(Device *cuda, const StepInstance *instance, int64_t ordinal) {
    const int64_t tasks = cuda_graphs_launch(cuda, ordinal);
    if (tasks > 0) {
        return tasks;
    }
    events_wait(cuda, instance);
    cuda_issue(cuda, instance, cuda_stream(cuda, &cuda->setup.program->tasks[instance->task]));
    events_record(cuda, instance);
    return 1;
}

static Status cuda_begin_transfer(Device *cuda, const StepInstance *instance, DeviceTransfer *transfer, Error *error) {
    const Task *task = &cuda->setup.program->tasks[instance->task];
    const cudaStream_t stream = cuda_stream(cuda, task);
    events_wait(cuda, instance);
    placement_transfer(&cuda->placement, instance, transfer);
    if (transfer->came) {
        CUDA_TRY(cuda_counts_at(cuda, transfer->came, stream, &transfer->came), task->name);
        CUDA_TRY(cuda_counts_at(cuda, transfer->leave, stream, &transfer->leave), task->name);
    }
    if (cuda->setup.staged) {
        return cuda_stage(cuda, instance, transfer, error);
    }
    transfer->stream = stream;
    return STATUS_OK;
}

static Status cuda_end_transfer(Device *cuda, const StepInstance *instance, const DeviceTransfer *transfer,
                                Error *error) {
    if (cuda->setup.staged) {
        TRY(cuda_unstage(cuda, instance, transfer, error));
    }
    events_record(cuda, instance);
    return STATUS_OK;
}

static Status cuda_synchronize(Device *cuda, Error *error) {
    for (int i = 0; i < cuda->lanes.stream_count; i++) {
        CUDA_TRY(cuda_settle(cuda, cuda->lanes.streams[i], NULL), "a lane");
    }
    if (cuda->failure.status != STATUS_OK) {
        *error = cuda->failure;
        return error->status;
    }
    if (cuda->placement.step == 0) {
        cuda_graphs_capture(cuda);
    }
    return STATUS_OK;
}

static Status cuda_read(Device *cuda, const BufferRef *ref, const StepInstance *instance, void *out, Error *error) {
    CUDA_TRY(cudaDeviceSynchronize(), cuda->setup.program->buffers[ref->buffer].name);
    CUDA_TRY(cudaMemcpy(out, placement_at(&cuda->placement, ref, instance), (size_t)ref->bytes, cudaMemcpyDeviceToHost),
             cuda->setup.program->buffers[ref->buffer].name);
    return STATUS_OK;
}

// Timings from ranks that share one GPU are no price of the chip, and a first algorithm is not its best.
static void cuda_account(const Device *cuda, DeviceAccount *account) {
    size_t free_bytes = 0, total_bytes = 0;
    const bool known = cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess;
    *account = (DeviceAccount){.arena = cuda->placement.arena,
                               .peak_bytes = placement_peak_bytes(&cuda->placement),
                               .spans = cuda->trace.instances > 0,
                               .chip = cuda->gemms.chip,
                               .bytes = cuda->device_bytes,
                               .memory_bytes = known ? (int64_t)free_bytes + cuda->device_bytes : 0,
                               .cache_bytes = cuda->properties.l2CacheSize,
                               .processors = cuda->properties.multiProcessorCount,
                               .prices = cuda->gemms.prices,
                               .price_count = cuda->shared || cuda->setup.deterministic ? 0 : cuda->gemms.count};
}

static Status cuda_span(Device *cuda, int64_t ordinal, double *start_s, double *end_s, Error *error) {
    float begin_ms = 0, end_ms = 0;
    CUDA_TRY(cudaEventElapsedTime(&begin_ms, cuda->trace.origin, cuda->trace.begin[ordinal]), "the time of a task");
    CUDA_TRY(cudaEventElapsedTime(&end_ms, cuda->trace.origin, cuda->trace.end[ordinal]), "the time of a task");
    *start_s = 1e-3 * (double)begin_ms;
    *end_s = 1e-3 * (double)end_ms;
    return STATUS_OK;
}

const DeviceTable device_cuda = {
    .name = "cuda",
    .own_memory = true,
    .open = cuda_open,
    .close = cuda_close,
    .begin_step = cuda_begin_step,
    .run = cuda_run,
    .begin_transfer = cuda_begin_transfer,
    .end_transfer = cuda_end_transfer,
    .synchronize = cuda_synchronize,
    .span = cuda_span,
    .moved = cuda_moved,
    .read = cuda_read,
    .measure = cuda_measure,
    .account = cuda_account,
};

// Initial parameters generated on the GPU: the same numbers a host would generate (initial.h), which would take minutes
// for billions of them. Norms start from a constant; those few come from the host.

#include "exec/device/cuda.h"
#include "sim/base/bf16.h"

enum { CONSTANTS = 1024 };  // equal numbers being copied to the device

typedef struct Initial {
    Device *cuda;
    KernelCuda at;
    KernelStore store;
    char *stretch;
    Error *error;
    Status status;
} Initial;

// Memory is already zero. The numbers stay on this stack until the copy is done.
static Status constant_send(const Initial *initial, const InitialPiece *piece, char *to, Error *error) {
    float numbers[CONSTANTS];
    uint16_t halves[CONSTANTS];
    const int64_t bytes = kernel_store_bytes(initial->store);
    for (int i = 0; i < CONSTANTS; i++) {
        numbers[i] = piece->value;
        halves[i] = bf16_of(piece->value);
    }
    const void *from = initial->store == KERNEL_BF16 ? (const void *)halves : (const void *)numbers;
    for (int64_t at = 0; at < piece->count && piece->value != 0; at += CONSTANTS) {
        const int64_t count = piece->count - at < CONSTANTS ? piece->count - at : CONSTANTS;
        CUDA_TRY(
            cudaMemcpyAsync(to + at * bytes, from, (size_t)(count * bytes), cudaMemcpyHostToDevice, initial->at.stream),
            "initial parameters");
    }
    CUDA_TRY(cudaStreamSynchronize(initial->at.stream), "initial parameters");
    return STATUS_OK;
}

static void piece_make(void *context, const InitialPiece *piece) {
    Initial *initial = context;
    char *to = initial->stretch + piece->at * kernel_store_bytes(initial->store);
    if (initial->status != STATUS_OK) {
        return;
    }
    if (!piece->random) {
        initial->status = constant_send(initial, piece, to, initial->error);
        return;
    }
    const int code = kernel_cuda_normal(&initial->at, initial->store, &piece->numbers, piece->count, to);
    initial->status = code == 0 ? STATUS_OK : cuda_failed(initial->error, code, "initial parameters");
}

static void parameters_take(void *context, int32_t buffer, const InitialStretch *stretch) {
    Initial *initial = context;
    const StepProgram *program = initial->cuda->setup.program;
    initial->store = program->buffers[buffer].dtype == DTYPE_BF16 ? KERNEL_BF16 : KERNEL_FP32;
    initial->stretch = placement_slot(&initial->cuda->placement, buffer, stretch->instance);
    initial_pieces(program, initial->cuda->setup.numbers.seed, stretch, piece_make, initial);
}

static Status buffers_zero(Device *cuda, cudaStream_t stream, Error *error) {
    const StepProgram *program = cuda->setup.program;
    for (int32_t b = 0; b < program->buffer_count; b++) {
        const Buffer *buffer = &program->buffers[b];
        if (buffer->persistent) {
            CUDA_TRY(cudaMemsetAsync(placement_slot(&cuda->placement, b, 0), 0,
                                     (size_t)(buffer->slots * buffer->slot_bytes), stream),
                     buffer->name);
        }
    }
    return STATUS_OK;
}

static Status positions_send(Device *cuda, Arena *arena, Error *error) {
    const int64_t rows = plan_local_tokens(&cuda->setup.program->plan);
    int32_t *positions = ARENA_ARRAY(arena, int32_t, rows);
    placement_positions(&cuda->placement, positions);
    TRY(cuda_take(cuda, rows * (int64_t)sizeof *positions, "positions", (void **)&cuda->positions, error));
    CUDA_TRY(cudaMemcpy(cuda->positions, positions, (size_t)rows * sizeof *positions, cudaMemcpyHostToDevice),
             "positions");
    cuda->placement.positions = cuda->positions;
    return STATUS_OK;
}

Status cuda_state_begin(Device *cuda, Arena *arena, Error *error) {
    const cudaStream_t stream = cuda->lanes.streams[0];
    Initial initial = {
        .cuda = cuda, .at = {.stream = stream, .processors = cuda->properties.multiProcessorCount}, .error = error};
    TRY(buffers_zero(cuda, stream, error));
    placement_parameters(&cuda->placement, parameters_take, &initial);
    TRY(initial.status);
    TRY(positions_send(cuda, arena, error));
    CUDA_TRY(cudaDeviceSynchronize(), "what the run starts from");
    return STATUS_OK;
}

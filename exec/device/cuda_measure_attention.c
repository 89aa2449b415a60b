// Attention for the probe: one sequence, as many keys as queries, no sharing of keys between heads, by cuDNN or by our
// own kernel. A backward pass reads what a forward pass left.

#include "exec/device/cuda_measure.h"

// q, k, v, o, lse followed by delta, d_o, dq, dk followed by dv.
enum { Q, K, V, O, LSE, D_O, DQ, DK };

int64_t measure_attention_elements(const DeviceWork *work, int buffer) {
    const int64_t rows = (int64_t)work->size[0], heads = (int64_t)work->size[2], dim = (int64_t)work->size[3];
    return buffer == LSE ? 2 * rows * heads : buffer == DK ? 2 * rows * heads * dim : rows * heads * dim;
}

static CudaAttention call_of(const DeviceWork *work, bool backward) {
    const int64_t rows = (int64_t)work->size[0], width = (int64_t)(work->size[2] * work->size[3]);
    const KernelAttention block = {.queries = rows,
                                   .keys = rows,
                                   .q_first = (int64_t)work->size[1],
                                   .heads = (int)work->size[2],
                                   .kv_heads = (int)work->size[2],
                                   .head_dim = (int)work->size[3],
                                   .q_stride = width,
                                   .kv_stride = width,
                                   .o_stride = width,
                                   .lse_stride = rows};
    return (CudaAttention){.block = block,
                           .sequences = 1,
                           .q_sequence = rows * width,
                           .kv_sequence = rows * width,
                           .o_sequence = rows * width,
                           .lse_sequence = rows * block.heads,
                           .input = KERNEL_BF16,
                           .output = KERNEL_BF16,
                           .backward = backward,
                           .gradient = KERNEL_BF16,
                           .dq_stride = width,
                           .dkv_stride = width,
                           .dq_sequence = rows * width,
                           .dkv_sequence = rows * width};
}

static float *delta_of(const MeasureBench *bench) {
    const KernelAttention *block = &bench->attention.call.block;
    return (float *)(void *)bench->buffer[LSE] + block->queries * block->heads;
}

static AttentionData data_of(const MeasureBench *bench) {
    const CudaAttention *call = &bench->attention.call;
    return (AttentionData){.q = bench->buffer[Q],
                           .k = bench->buffer[K],
                           .v = bench->buffer[V],
                           .o = bench->buffer[O],
                           .lse = (float *)(void *)bench->buffer[LSE],
                           .d_o = bench->buffer[D_O],
                           .delta = delta_of(bench),
                           .dq = bench->buffer[DQ],
                           .dk = bench->buffer[DK],
                           .dv = bench->buffer[DK] + call->kv_sequence * kernel_store_bytes(KERNEL_BF16),
                           .workspace = bench->workspace};
}

int measure_attention_run(MeasureBench *bench) {
    const AttentionData data = data_of(bench);
    return cuda_attention(&bench->attention, bench->cudnn, &data, bench->shop.stream);
}

Status measure_failed(const MeasureBench *bench, int code, Error *error) {
    return bench->cudnn ? error_set(error, STATUS_ENVIRONMENT, "%s", cudnn_attention_error(bench->cudnn))
                        : cuda_failed(error, code, "a kernel to measure");
}

static Status plan(MeasureBench *bench, bool backward, bool *served, Error *error) {
    const CudaAttention call = call_of(bench->work, backward);
    const struct cudaDeviceProp *properties = &bench->cuda->properties;
    const AttentionMeans means = {.arch = 10 * properties->major + properties->minor,
                                  .shared_bytes = (int64_t)properties->sharedMemPerBlockOptin,
                                  .cudnn = bench->cudnn != NULL};
    const AttentionTier asked = bench->work->library ? ATTENTION_TIER_CUDNN : ATTENTION_TIER_AUTO;
    char why[ATTENTION_WHY_BYTES];
    cudaFree(bench->workspace);
    bench->workspace = NULL;
    *served = cuda_attention_plan(asked, &call, &means, bench->cudnn, &bench->attention, why);
    if (!*served) {
        return STATUS_OK;
    }
    if (bench->attention.workspace_bytes > 0) {
        CUDA_TRY(cudaMalloc(&bench->workspace, (size_t)bench->attention.workspace_bytes), "attention to measure");
    }
    return STATUS_OK;
}

Status measure_attention_open(MeasureBench *bench, bool *served, Error *error) {
    char why[ATTENTION_WHY_BYTES];
    bench->cudnn = bench->work->library ? cudnn_attention_open(NULL, why) : NULL;
    *served = !bench->work->library || bench->cudnn;
    if (*served) {
        TRY(plan(bench, false, served, error));
    }
    if (!*served || bench->work->kind == DEVICE_WORK_ATTENTION) {
        return STATUS_OK;
    }
    const int code = measure_attention_run(bench);
    FAIL_WITH(code != 0, measure_failed(bench, code, error));
    const AttentionData data = data_of(bench);
    CUDA_TRY(cuda_attention_delta(&bench->attention.call, data.o, data.d_o, delta_of(bench), bench->shop.stream),
             "attention to measure");
    CUDA_TRY(cudaStreamSynchronize(bench->shop.stream), "attention to measure");  // the workspace may be freed
    return plan(bench, true, served, error);
}

void measure_attention_close(MeasureBench *bench) {
    if (bench->cudnn) {
        cudnn_attention_close(bench->cudnn);
    }
    cudaFree(bench->workspace);
}

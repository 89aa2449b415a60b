// GPU kernels at specific sizes, for the probe: random operands in temporarily allocated memory, time per call by
// events around several back-to-back calls, so that launches overlap as in a step.

#include <stdlib.h>

#include "exec/device/cuda_measure.h"
#include "kernels/philox.h"
#include "sim/base/bf16.h"
#include "sim/base/log.h"
#include "sim/base/sorted.h"

enum { STREAM_BUFFERS = 5, MOST_CALLS = 10, REPEATS = 7, PATTERN = 1 << 16, NORM_COLS = 4096 };
static const double ROW_S = 0.02;  // of back-to-back calls, for slow ones

static int64_t elements_of(const DeviceWork *work, int buffer) {
    const double *size = work->size;
    if (work->kind == DEVICE_WORK_ATTENTION || work->kind == DEVICE_WORK_ATTENTION_BACKWARD) {
        return measure_attention_elements(work, buffer);
    }
    if (work->kind == DEVICE_WORK_GEMM) {
        const double sides[MEASURE_BUFFERS] = {size[0] * size[2], size[1] * size[2], size[0] * size[1]};
        return (int64_t)sides[buffer];
    }
    return buffer < STREAM_BUFFERS ? (int64_t)size[0] : 0;
}

// Elements have at most 4 bytes, whatever type the kernel reads them as.
static Status buffers_open(MeasureBench *bench, Error *error) {
    uint16_t *pattern = malloc(PATTERN * sizeof *pattern);
    for (int i = 0; pattern && i < PATTERN; i++) {  // bf16 normal numbers; as fp32 they are pairs, still finite
        pattern[i] = bf16_of((float)(philox_normal(1, 0, (uint64_t)i) / 65536.0));
    }
    Status status = pattern ? STATUS_OK : error_set(error, STATUS_INTERNAL, "no memory for a pattern");
    for (int b = 0; b < MEASURE_BUFFERS && status == STATUS_OK; b++) {
        const int64_t bytes = 4 * elements_of(bench->work, b) + 4 * NORM_COLS;
        cudaError_t code = cudaMalloc((void **)&bench->buffer[b], (size_t)bytes);
        for (int64_t at = 0; code == cudaSuccess && at < bytes; at += PATTERN * 2) {
            const int64_t part = bytes - at < PATTERN * 2 ? bytes - at : PATTERN * 2;
            code = cudaMemcpy(bench->buffer[b] + at, pattern, (size_t)part, cudaMemcpyHostToDevice);
        }
        status = code == cudaSuccess ? STATUS_OK : cuda_failed(error, (int)code, "operands to measure with");
    }
    free(pattern);
    return status;
}

static void bench_close(MeasureBench *bench) {
    for (int b = 0; b < MEASURE_BUFFERS; b++) {
        cudaFree(bench->buffer[b]);
    }
    if (bench->plan.descriptor) {
        gemm_plan_end(&bench->shop, &bench->plan);
    }
    measure_attention_close(bench);
}

// ---------------------------------------------------------------------------------------------- kinds

static int run_gemm(MeasureBench *bench) {
    const GemmData data = {bench->buffer[0], bench->buffer[1], bench->buffer[2], NULL, 0};
    return gemm_run(&bench->shop, &bench->plan, &data, bench->shop.stream) ? (int)cudaErrorInvalidValue : 0;
}

static int run_add(MeasureBench *bench) {
    return kernel_cuda_add(&bench->at, KERNEL_BF16, (int64_t)bench->work->size[0], bench->buffer[0], bench->buffer[1],
                           bench->buffer[2]);
}

static int run_norm(MeasureBench *bench) {
    const KernelNorm norm = {.rows = (int64_t)bench->work->size[0] / NORM_COLS,
                             .cols = NORM_COLS,
                             .eps = 1e-5f,
                             .x = bench->buffer[0],
                             .w = bench->buffer[1],
                             .y = bench->buffer[2],
                             .rstd = (float *)(void *)bench->buffer[3]};
    return kernel_cuda_norm(&bench->at, KERNEL_BF16, &norm);
}

static int run_swiglu(MeasureBench *bench) {
    const KernelGated shape = {
        .rows = (int64_t)bench->work->size[0] / NORM_COLS, .cols = NORM_COLS, .stride = NORM_COLS};
    return kernel_cuda_gated(&bench->at, KERNEL_BF16, &shape, bench->buffer[0], bench->buffer[1], bench->buffer[2]);
}

static int run_adamw(MeasureBench *bench) {
    static const KernelAdamw options = {.lr = 0, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .step = 10};
    const KernelCudaUpdate update = {.gradients = KERNEL_FP32,
                                     .state = KERNEL_FP32,
                                     .count = (int64_t)bench->work->size[0],
                                     .scale = (const float *)(const void *)bench->buffer[4],
                                     .gradient = bench->buffer[0],
                                     .master = bench->buffer[1],
                                     .moment1 = bench->buffer[2],
                                     .moment2 = bench->buffer[3]};
    return kernel_cuda_adamw(&bench->at, &options, &update);
}

typedef int MeasureRun(MeasureBench *bench);

static MeasureRun *const runs[DEVICE_WORK_COUNT] = {
    [DEVICE_WORK_GEMM] = run_gemm,
    [DEVICE_WORK_ADD] = run_add,
    [DEVICE_WORK_NORM] = run_norm,
    [DEVICE_WORK_SWIGLU] = run_swiglu,
    [DEVICE_WORK_ADAMW] = run_adamw,
    [DEVICE_WORK_ATTENTION] = measure_attention_run,
    [DEVICE_WORK_ATTENTION_BACKWARD] = measure_attention_run,
};

// A timed choice among cuBLASLt's algorithms, as for a program's products.
static Status gemm_open(MeasureBench *bench, Error *error) {
    const double *size = bench->work->size;
    const GemmShape shape = {.m = (int64_t)size[0],
                             .n = (int64_t)size[1],
                             .k = (int64_t)size[2],
                             .trans_b = true,
                             .input = GEMM_BF16,
                             .output = GEMM_BF16,
                             .alignment = gemm_alignment(0)};
    const GemmData data = {bench->buffer[0], bench->buffer[1], bench->buffer[2], NULL, 0};
    char why[GEMM_WHY_BYTES];
    FAIL_IF(!gemm_plan_begin(&bench->shop, &shape, &bench->plan, why) ||
                !gemm_plan_time(&bench->shop, &data, &bench->plan, why),
            error, STATUS_ENVIRONMENT, "a product to measure: %s", why);
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- timing

static Status time_calls(MeasureBench *bench, int calls, double *seconds, Error *error) {
    const GemmWorkshop *shop = &bench->shop;
    float milliseconds = 0;
    CUDA_TRY(cudaEventRecord(shop->begin, shop->stream), "a time");
    for (int i = 0; i < calls; i++) {
        const int code = runs[bench->work->kind](bench);
        FAIL_WITH(code != 0, measure_failed(bench, code, error));
    }
    CUDA_TRY(cudaEventRecord(shop->end, shop->stream), "a time");
    CUDA_TRY(cudaEventSynchronize(shop->end), "a kernel to measure");
    CUDA_TRY(cudaEventElapsedTime(&milliseconds, shop->begin, shop->end), "a time");
    *seconds = 1e-3 * (double)milliseconds / calls;
    return STATUS_OK;
}

static Status time_few(MeasureBench *bench, DeviceTiming *timing, Error *error) {
    double seconds[REPEATS], once;
    TRY(time_calls(bench, 1, &once, error));  // warm-up: loads code
    TRY(time_calls(bench, 1, &once, error));
    const int calls = once * MOST_CALLS <= ROW_S ? MOST_CALLS : once >= ROW_S ? 1 : (int)(ROW_S / once);
    for (int i = 0; i < REPEATS; i++) {
        TRY(time_calls(bench, calls, &seconds[i], error));
    }
    sorted_doubles(seconds, REPEATS);
    timing->seconds = seconds[REPEATS / 2];
    timing->low = seconds[REPEATS / 4];
    timing->high = seconds[REPEATS - 1 - REPEATS / 4];
    timing->repeats = REPEATS;
    return STATUS_OK;
}

// The first half warms the chip up to its power-limited state.
static Status time_long(MeasureBench *bench, DeviceTiming *timing, Error *error) {
    double passed_s = 0, later_s = 0;
    *timing = (DeviceTiming){0};
    while (passed_s < bench->work->sustain_s) {
        double seconds = 0;
        TRY(time_calls(bench, MOST_CALLS, &seconds, error));
        passed_s += MOST_CALLS * seconds;
        if (passed_s > 0.5 * bench->work->sustain_s) {
            later_s += seconds;
            timing->low = timing->repeats == 0 || seconds < timing->low ? seconds : timing->low;
            timing->high = seconds > timing->high ? seconds : timing->high;
            timing->repeats++;
        }
    }
    timing->seconds = later_s / timing->repeats;
    return STATUS_OK;
}

static Status times(MeasureBench *bench, DeviceTiming *timing, Error *error) {
    return bench->work->sustain_s > 0 ? time_long(bench, timing, error) : time_few(bench, timing, error);
}

static Status attention_times(MeasureBench *bench, DeviceTiming *timing, Error *error) {
    bool served = true;
    TRY(measure_attention_open(bench, &served, error));
    if (served) {
        TRY(times(bench, timing, error));
        timing->way = attention_tier_name(bench->attention.tier);
    }
    return STATUS_OK;
}

// Where the vendor's attention is unavailable, everything else can still be measured.
static Status measure(MeasureBench *bench, DeviceTiming *timing, Error *error) {
    const DeviceWork *work = bench->work;
    *timing = (DeviceTiming){0};
    TRY(buffers_open(bench, error));
    if (work->kind == DEVICE_WORK_GEMM) {
        TRY(gemm_open(bench, error));
    }
    if (work->kind != DEVICE_WORK_ATTENTION && work->kind != DEVICE_WORK_ATTENTION_BACKWARD) {
        return times(bench, timing, error);
    }
    const Status status = attention_times(bench, timing, error);
    if (status == STATUS_OK || !work->library) {
        return status;
    }
    log_note("device cuda: attention of %.0f queries is not measured: %s", work->size[0], error->message);
    *timing = (DeviceTiming){0};
    *error = (Error){0};
    cudaGetLastError();  // sticky until read
    return STATUS_OK;
}

Status cuda_measure(Device *cuda, const DeviceWork *work, DeviceTiming *timing, Error *error) {
    MeasureBench bench = {.cuda = cuda,
                          .work = work,
                          .at = {.stream = cuda->gemms.shop.stream,
                                 .processors = cuda->properties.multiProcessorCount,
                                 .workspace = cuda->workspace[0],
                                 .workspace_bytes = cuda->workspace_bytes[0]},
                          .shop = cuda->gemms.shop};
    const Status status = measure(&bench, timing, error);
    bench_close(&bench);
    return status;
}

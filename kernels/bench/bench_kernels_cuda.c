// Checks every elementwise CUDA kernel on the first rows of an 8B-shaped layer against the CPU's, then times it on all
// rows and prints a Markdown table: bandwidth, and its share of what the memory can do by its clock and width.
//   bench_kernels_cuda [tokens, 16384 when left out]
// The time is the middle one of 21 launches, by events. Exit status: 1 when a kernel is wrong, 3 without a GPU.

#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/bench/bench_cuda.h"

enum { LAUNCHES = 21, CHECKED_ROWS = 64, TARGET_PERCENT = 85 };  // sim/SOURCES.md X4

static int by_size(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

typedef int Run(const BenchCuda *bench, int64_t rows);

// Milliseconds; negative when CUDA refuses.
static float middle_ms(const BenchCuda *bench, Run *run) {
    cudaEvent_t start, end;
    float ms[LAUNCHES];
    bool right = cudaEventCreate(&start) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess;
    right = right && run(bench, bench->tokens) == 0;
    for (int i = 0; right && i < LAUNCHES; i++) {
        right = cudaEventRecord(start, bench->at.stream) == cudaSuccess && run(bench, bench->tokens) == 0 &&
                cudaEventRecord(end, bench->at.stream) == cudaSuccess && cudaEventSynchronize(end) == cudaSuccess &&
                cudaEventElapsedTime(&ms[i], start, end) == cudaSuccess;
    }
    cudaEventDestroy(start), cudaEventDestroy(end);
    qsort(ms, LAUNCHES, sizeof *ms, by_size);
    return right ? ms[LAUNCHES / 2] : -1.0f;
}

// Bytes per second by clock and width of the memory; two transfers a clock. 0: the driver does not say.
static double memory_rate(void) {
    int clock_khz = 0, width_bits = 0;
    cudaDeviceGetAttribute(&clock_khz, cudaDevAttrMemoryClockRate, 0);
    cudaDeviceGetAttribute(&width_bits, cudaDevAttrGlobalMemoryBusWidth, 0);
    return 2.0 * 1e3 * clock_khz * width_bits / 8.0;
}

static int run_copy(const BenchCuda *bench, int64_t rows) {
    return (int)cudaMemcpyAsync(bench->m, bench->v, (size_t)(rows * bench->ffn) * sizeof(float),
                                cudaMemcpyDeviceToDevice, bench->at.stream);
}

// What the runtime's own copy reaches. The yardstick is `peak`, or this where the driver does not tell that.
static double report_copy(const BenchCuda *bench, double peak) {
    const float ms = middle_ms(bench, run_copy);
    const double rate = 2.0 * sizeof(float) * (double)(bench->tokens * bench->ffn) / (1e-3 * (double)ms);
    const double yardstick = peak > 0.0 ? peak : rate;
    printf("| copy of the runtime | bytes | %.3f | %.0f | %.0f %% | |\n", (double)ms, 1e-9 * rate,
           100.0 * rate / yardstick);
    return yardstick;
}

static bool report(const BenchCuda *bench, const BenchCudaCase *one, double peak) {
    const char *store = bench->store == KERNEL_BF16 ? "bf16" : "fp32";
    const int64_t rows = bench->tokens < CHECKED_ROWS ? bench->tokens : CHECKED_ROWS;
    const double error = bench_cuda_error(bench, one, rows);
    if (!(error <= bench_cuda_limit(bench->store))) {
        printf("| %s | %s | WRONG, off by %g ||||\n", one->name, store, error);
        return false;
    }
    const float ms = middle_ms(bench, one->run);
    if (ms < 0.0f) {
        printf("| %s | %s | FAILED: %s ||||\n", one->name, store, cudaGetErrorString(cudaGetLastError()));
        return false;
    }
    const double rate = (double)one->bytes(bench, bench->tokens) / (1e-3 * (double)ms), share = 100.0 * rate / peak;
    printf("| %s | %s | %.3f | %.0f | %.0f %%%s | %.1e |\n", one->name, store, (double)ms, 1e-9 * rate, share,
           share < TARGET_PERCENT ? " BELOW TARGET" : "", error);
    return true;
}

static bool run_store(KernelStore store, int64_t tokens, int processors, double peak) {
    BenchCuda bench = {.tokens = tokens,
                       .hidden = 4096,
                       .ffn = 14336,
                       .vocabulary = 128256,
                       .head_dim = 128,
                       .store = store,
                       .at = {.processors = processors}};
    const int error = bench_cuda_open(&bench);
    bool right = error == 0;
    if (error) {
        printf("bench_kernels_cuda: %d tokens do not fit: %s\n", (int)tokens, cudaGetErrorString((cudaError_t)error));
    }
    const double yardstick = error == 0 ? report_copy(&bench, peak) : peak;
    for (int i = 0; error == 0 && i < bench_cuda_case_count; i++) {
        right = report(&bench, &bench_cuda_cases[i], yardstick) && right;
        fflush(stdout);
    }
    bench_cuda_close(&bench);
    return right;
}

int main(int argc, char **argv) {
    const int64_t tokens = argc > 1 ? strtoll(argv[1], NULL, 10) : 16384;
    int devices = 0;
    struct cudaDeviceProp device;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0 || cudaGetDeviceProperties(&device, 0) != cudaSuccess || tokens < 1) {
        fprintf(stderr, "bench_kernels_cuda: nothing is measured: no NVIDIA GPU here (%s)\n",
                error != cudaSuccess ? cudaGetErrorString(error) : "none found");
        return 3;
    }
    const double peak = memory_rate();
    printf("%s, %d processors, memory %.0f GB/s (0: unknown, shares are of a copy), %d tokens of an 8B-shaped layer; "
           "target %d %%\n\n",
           device.name, device.multiProcessorCount, 1e-9 * peak, (int)tokens, (int)TARGET_PERCENT);
    printf("| kernel | format | ms | GB/s | of memory | error |\n|---|---|---|---|---|---|\n");
    const bool half = run_store(KERNEL_BF16, tokens, device.multiProcessorCount, peak);
    const bool whole = run_store(KERNEL_FP32, tokens, device.multiProcessorCount, peak);
    return half && whole ? 0 : 1;
}

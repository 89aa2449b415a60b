// Checks every elementwise CUDA kernel on the first rows of an 8B-shaped layer against the CPU's, then times it on all
// rows and prints a Markdown table: bandwidth, and its share of the memory's peak by clock and width.
//   bench_kernels_cuda [tokens, 16384 when left out]
// The time is the median of 21 launches, measured by events. Exit status: 1 when a kernel is wrong, 3 without a GPU.

#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/kernels/bench_cuda.h"
#include "tests/bench/kernels/bench_gpu.h"

enum { CHECKED_ROWS = 64, TARGET_PERCENT = 85 };  // sim/SOURCES.md X4

// All rows of a case.
typedef struct Timed {
    const BenchCuda *bench;
    int (*run)(const BenchCuda *bench, int64_t rows);
} Timed;

static int timed_run(const void *context) {
    const Timed *timed = context;
    return timed->run(timed->bench, timed->bench->tokens);
}

// Bytes per second by clock and width of the memory; two transfers per clock. 0: not reported by the driver.
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

// Bandwidth of the runtime's own copy. The reference is `peak`, or this where the driver does not report a peak.
static double report_copy(const BenchCuda *bench, double peak) {
    const float ms = bench_gpu_middle_ms(timed_run, &(Timed){bench, run_copy}, bench->at.stream);
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
    const float ms = bench_gpu_middle_ms(timed_run, &(Timed){bench, one->run}, bench->at.stream);
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
    struct cudaDeviceProp device;
    if (tokens < 1 || !bench_gpu_find("bench_kernels_cuda", &device)) {
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

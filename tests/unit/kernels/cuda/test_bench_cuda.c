// The CUDA benchmark checks its kernels correctly: run here on the processor, with a small shape.

#include "tests/bench/kernels/bench_cuda.h"

#include <criterion/criterion.h>
#include <cuda_runtime.h>
#include <math.h>

static BenchCuda small_bench(KernelStore store) {
    BenchCuda bench = {.tokens = 12,
                       .hidden = 128,
                       .ffn = 264,
                       .vocabulary = 515,
                       .head_dim = 64,
                       .store = store,
                       .at = {.processors = 2}};
    cr_assert_eq(bench_cuda_open(&bench), 0);
    return bench;
}

Test(bench_cuda, every_case_agrees_with_the_cpu_and_counts_bytes) {
    for (int store = 0; store < KERNEL_STORES; store++) {
        BenchCuda bench = small_bench((KernelStore)store);
        for (int i = 0; i < bench_cuda_case_count; i++) {
            const double error = bench_cuda_error(&bench, &bench_cuda_cases[i], 9);
            cr_assert_leq(error, bench_cuda_limit(bench.store), "%s is off by %g", bench_cuda_cases[i].name, error);
            cr_assert_gt(bench_cuda_cases[i].bytes(&bench, bench.tokens), 0);
        }
        bench_cuda_close(&bench);
    }
}

static int run_nothing(const BenchCuda *bench, int64_t rows) {
    (void)bench, (void)rows;
    return 0;
}

static int run_refused(const BenchCuda *bench, int64_t rows) {
    (void)bench, (void)rows;
    return (int)cudaErrorInvalidValue;
}

Test(bench_cuda, a_kernel_that_does_nothing_is_wrong_and_one_that_is_refused_too) {
    BenchCuda bench = small_bench(KERNEL_FP32);
    for (int i = 0; i < bench_cuda_case_count; i++) {
        BenchCudaCase broken = bench_cuda_cases[i];
        broken.run = run_nothing;
        cr_assert_gt(bench_cuda_error(&bench, &broken, 9), bench_cuda_limit(KERNEL_FP32), "%s", broken.name);
        broken.run = run_refused;
        cr_assert(isinf(bench_cuda_error(&bench, &broken, 9)), "%s", broken.name);
    }
    bench_cuda_close(&bench);
}

// core_rate [SECONDS]: the core whose kernels OpenBLAS runs, and the best rate of a product on one thread in GFLOP/s.
// Calls kernel_core_settle first, as the worker does.

#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "sim/base/clock.h"

enum { M = 256, N = 704, K = 512 };  // a block of a small model's feed-forward layer

int main(int argc, char **argv) {
    kernel_core_settle(argv);
    const double end_s = clock_s() + (argc > 1 ? strtod(argv[1], NULL) : 0);
    static float a[M * K], b[K * N], c[M * N];
    double best_s = 1e9;
    char words[256];
    for (int i = 0; i < M * K; i++) {
        a[i] = (float)(i % 7) * 0.1F;
    }
    for (int i = 0; i < K * N; i++) {
        b[i] = (float)(i % 5) * 0.1F;
    }
    kernel_set_threads(1);
    do {
        const double begin_s = clock_s();
        kernel_gemm(false, false, M, N, K, a, b, c, false);
        const double took_s = clock_s() - begin_s;
        best_s = took_s < best_s ? took_s : best_s;
    } while (clock_s() < end_s);
    printf("%s %.2f\n", kernel_blas_name(), 2e-9 * M * N * K / best_s);
    if (kernel_core_words(words, sizeof words)) {
        fprintf(stderr, "%s\n", words);
    }
    return 0;
}

#include "kernels/kernels.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>

typedef struct Size {
    int64_t m, n, k;
} Size;

// Odd, thin, empty and large enough to be split between threads.
static const Size sizes[] = {{1, 1, 1},    {3, 5, 7},  {33, 129, 65},  {1, 300, 40},
                             {300, 1, 40}, {17, 4, 0}, {257, 193, 101}};

static void reference(bool trans_a, bool trans_b, Size s, const float *a, const float *b, double *c) {
    for (int64_t i = 0; i < s.m; i++) {
        for (int64_t j = 0; j < s.n; j++) {
            for (int64_t t = 0; t < s.k; t++) {
                const double x = (double)a[trans_a ? t * s.m + i : i * s.k + t];
                c[i * s.n + j] += x * (double)b[trans_b ? j * s.k + t : t * s.n + j];
            }
        }
    }
}

static void check(Size s, bool trans_a, bool trans_b, bool accumulate) {
    float *a = check_floats(s.m * s.k, 1), *b = check_floats(s.k * s.n, 2), *c = check_floats(s.m * s.n, 3);
    double *want = check_doubles(c, s.m * s.n);
    for (int64_t i = 0; !accumulate && i < s.m * s.n; i++) {
        want[i] = 0.0;
    }
    reference(trans_a, trans_b, s, a, b, want);
    kernel_gemm(trans_a, trans_b, s.m, s.n, s.k, a, b, c, accumulate);
    cr_assert_lt(check_distance(c, want, s.m * s.n), 1e-6, "m %d n %d k %d", (int)s.m, (int)s.n, (int)s.k);
    free(a);
    free(b);
    free(c);
    free(want);
}

Test(kernel_gemm, equals_the_definition_for_every_transposition_and_accumulation) {
    for (int threads = 1; threads <= 3; threads++) {
        kernel_set_threads(threads);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (int mode = 0; mode < 8; mode++) {
                check(sizes[i], mode & 1, mode & 2, mode & 4);
            }
        }
    }
}

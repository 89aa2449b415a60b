// bf16 on processors: conversions for every bit pattern, products against the definition in double over the same bf16
// numbers. Where this processor or build has no products in bf16, the reason is given.

#include <criterion/criterion.h>
#include <string.h>

#include "kernels/cpu/core_type.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "sim/base/bf16.h"
#include "tests/unit/kernels/check.h"

enum { PATTERNS = 1 << 16 };

Test(kernel_half, widens_and_narrows_as_bf16_is_defined) {
    static uint16_t halves[PATTERNS], again[PATTERNS];
    static float x[PATTERNS];
    for (int i = 0; i < PATTERNS; i++) {
        halves[i] = (uint16_t)i;
    }
    kernel_widen(PATTERNS, halves, x);
    for (int i = 0; i < PATTERNS; i++) {
        const float want = bf16_value(halves[i]);
        cr_assert(memcmp(&x[i], &want, sizeof want) == 0, "%04x", (unsigned)i);
    }
    for (int rest = 0; rest < 4; rest++) {  // below, at and above the midpoint between two of them, and none
        static const uint32_t behind[] = {0x7FFF, 0x8000, 0x8001, 0};
        for (int i = 0; i < PATTERNS; i++) {
            const uint32_t bits = (uint32_t)i << 16 | behind[rest];
            memcpy(&x[i], &bits, sizeof bits);
        }
        kernel_narrow(PATTERNS, x, again);
        for (int i = 0; i < PATTERNS; i++) {
            cr_assert_eq(again[i], bf16_of(x[i]), "%04x%04x", (unsigned)i, (unsigned)behind[rest]);
        }
    }
}

typedef struct Product {
    KernelHalfGemm shape;
    uint16_t *a, *b;
    double *want;
    int64_t size;
} Product;

static uint16_t *halves_of(int64_t count, uint64_t seed, double *values) {
    float *x = check_floats(count, seed);
    uint16_t *halves = malloc(sizeof *halves * (size_t)(count + 1));
    kernel_narrow(count, x, halves);
    for (int64_t i = 0; i < count; i++) {
        values[i] = (double)bf16_value(halves[i]);
    }
    free(x);
    return halves;
}

static Product product_of(KernelHalfGemm s) {
    Product product = {.shape = s, .size = s.m * s.n};
    double *a = calloc((size_t)(s.m * s.k), sizeof *a), *b = calloc((size_t)(s.n * s.k), sizeof *b);
    product.a = halves_of(s.m * s.k, 1, a);
    product.b = halves_of(s.n * s.k, 2, b);
    product.want = calloc((size_t)product.size, sizeof *product.want);
    for (int64_t i = 0; i < product.size; i++) {
        const int64_t row = i / s.n, col = i % s.n;
        for (int64_t t = 0; t < s.k; t++) {
            product.want[i] += a[s.trans_a ? t * s.m + row : row * s.k + t] *
                               b[s.trans_b ? col * s.k + t : t * s.n + col] * (double)s.factor;
        }
    }
    free(a);
    free(b);
    return product;
}

// If the result is bf16, its own rounding error is 2^-9, relative.
static void check(KernelHalves *halves, int number, Product *product) {
    const KernelHalfGemm *s = &product->shape;
    double *before = calloc((size_t)product->size, sizeof *before);
    uint16_t *half_c = halves_of(product->size, 3, before);
    float *c = check_zeros(product->size);
    kernel_widen(product->size, half_c, c);
    for (int64_t i = 0; s->accumulate && i < product->size; i++) {
        product->want[i] += before[i];
    }
    kernel_halves_gemm(halves, number, product->a, product->b, s->half_c ? (void *)half_c : (void *)c);
    if (s->half_c) {
        kernel_widen(product->size, half_c, c);
    }
    const double off = check_distance(c, product->want, product->size);
    cr_expect(off < (s->half_c ? 4e-3 : 2e-6), "%d x %d x %d, transposed %d %d, added %d, bf16 %d: off by %.1e",
              (int)s->m, (int)s->n, (int)s->k, s->trans_a, s->trans_b, s->accumulate, s->half_c, off);
    free(before);
    free(half_c);
    free(c);
}

static void check_threads(int threads) {
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {33, 129, 65}, {1, 300, 40}, {257, 193, 101}};
    enum { SIZES = sizeof sizes / sizeof sizes[0], MODES = 16, MOST = SIZES * MODES };
    char why[KERNEL_HALF_WHY_BYTES];
    kernel_set_threads(threads);
    KernelHalves *halves = kernel_halves_open(MOST, why);
    if (!halves) {
        cr_skip_test("%s", why);
    }
    Product products[MOST];
    int number[MOST];
    for (int i = 0; i < MOST; i++) {
        const int mode = i % MODES;
        const int64_t *size = sizes[i / MODES];
        const KernelHalfGemm shape = {mode & 1, mode & 2, mode & 4, mode & 8,
                                      size[0],  size[1],  size[2],  mode & 1 ? 1 : 0.5f};
        products[i] = product_of(shape);
        number[i] = kernel_halves_prepare(halves, &shape, why);
        cr_assert(number[i] == i && kernel_halves_prepare(halves, &shape, why) == i, "%s", why);
    }
    cr_assert(kernel_halves_ready(halves));
    for (int i = 0; i < MOST; i++) {
        check(halves, number[i], &products[i]);
        free(products[i].a);
        free(products[i].b);
        free(products[i].want);
    }
    kernel_halves_close(halves);
}

Test(kernel_half, products_equal_the_definition_on_one_thread) {
    check_threads(1);
}

Test(kernel_half, products_equal_the_definition_on_three_threads) {
    check_threads(3);
}

Test(kernel_half, no_more_products_are_prepared_than_there_is_room_for) {
    char why[KERNEL_HALF_WHY_BYTES];
    KernelHalves *halves = kernel_halves_open(1, why);
    if (!halves) {
        cr_skip_test("%s", why);
    }
    cr_expect_eq(kernel_halves_prepare(halves, &(KernelHalfGemm){.m = 4, .n = 4, .k = 4, .factor = 1}, why), 0);
    cr_expect_eq(kernel_halves_prepare(halves, &(KernelHalfGemm){.m = 8, .n = 4, .k = 4, .factor = 1}, why), -1);
    kernel_halves_close(halves);
}

// ---------------------------------------------------------------------------------------------- processors

#define AVX512 (LEAF7_AVX2 | LEAF7_AVX512F | LEAF7_AVX512DQ | LEAF7_AVX512BW | LEAF7_AVX512VL)
enum { AMX = LEAF7_EDX_AMX_BF16 | LEAF7_EDX_AMX_TILE, SAVES_AVX512 = 0xe7, SAVES_AMX = 0x600e7 };

static const char *half_of(uint32_t leaf7_ebx, uint32_t leaf7_edx, uint32_t leaf71_eax, uint32_t xcr0) {
    const Cpuid cpuid = {.leaf1_ecx = LEAF1_OSXSAVE | LEAF1_AVX | LEAF1_FMA,
                         .leaf7_ebx = leaf7_ebx,
                         .leaf7_edx = leaf7_edx,
                         .leaf71_eax = leaf71_eax,
                         .xcr0 = xcr0};
    const char *found = core_half_of(&cpuid);
    return found ? found : "none";
}

Test(kernel_half, is_for_processors_whose_instructions_multiply_in_bf16) {
    cr_expect_str_eq(half_of(AVX512, AMX, LEAF71_AVX512_BF16, SAVES_AMX), "AMX-BF16");        // Sapphire Rapids
    cr_expect_str_eq(half_of(AVX512, AMX, LEAF71_AVX512_BF16, SAVES_AVX512), "AVX512_BF16");  // tiles are not saved
    cr_expect_str_eq(half_of(AVX512, 0, LEAF71_AVX512_BF16, SAVES_AVX512), "AVX512_BF16");    // Cooper Lake, Zen 4
    cr_expect_str_eq(half_of(AVX512, 0, 0, SAVES_AVX512), "none");                            // Ice Lake
    cr_expect_str_eq(half_of(LEAF7_AVX2, 0, 0, 0x7), "none");                                 // Haswell
    cr_expect_str_eq(half_of(AVX512, AMX, LEAF71_AVX512_BF16, 0x7), "none");  // an OS that does not save AVX-512 state
}

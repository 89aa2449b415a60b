#include "kernels/kernels.h"
#include "kernels/philox.h"

#include <criterion/criterion.h>

Test(kernel_normal, gives_the_numbers_of_the_definition_from_any_counter_on) {
    const uint64_t firsts[] = {0, 1, 63, UINT64_C(0x7ffffff0), UINT64_C(0x123456789abc)};
    const int64_t counts[] = {0, 1, 63, 64, 65, 1000, 40000};
    static float x[40001];
    for (int f = 0; f < 5; f++) {
        for (int c = 0; c < 7; c++) {
            const KernelNormal stream = {UINT64_C(0xfeedface12345678), UINT64_C(0x0102000300000004), firsts[f],
                                         0.02f / 65536.0f};
            x[counts[c]] = 77.0f;
            kernel_normal(&stream, counts[c], x);
            for (int64_t i = 0; i < counts[c]; i++) {
                const int32_t want = philox_normal(stream.key, stream.stream, firsts[f] + (uint64_t)i);
                cr_assert_eq(x[i], (float)want * stream.scale, "counter %d of stream %d", (int)i, f);
            }
            cr_assert_eq(x[counts[c]], 77.0f, "written behind the end");
        }
    }
}

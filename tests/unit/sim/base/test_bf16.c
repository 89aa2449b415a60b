// bf16 by its definition: rounding to nearest, ties to even.

#include <criterion/criterion.h>
#include <math.h>

#include "sim/base/bf16.h"

Test(bf16, keeps_what_has_eight_digits) {
    const float exact[] = {0.0f, -0.0f, 1.0f, -1.5f, 255.0f, 0x1p-126f, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        cr_assert_eq(bf16_value(bf16_of(exact[i])), exact[i]);
    }
    cr_assert(signbit(bf16_value(bf16_of(-0.0f))));
}

Test(bf16, rounds_to_the_nearest_and_ties_to_even) {
    cr_assert_eq(bf16_value(bf16_of(257.0f)), 256.0f);  // half-way between 256 and 258
    cr_assert_eq(bf16_value(bf16_of(259.0f)), 260.0f);  // half-way between 258 and 260
    cr_assert_eq(bf16_value(bf16_of(257.1f)), 258.0f);
    cr_assert_eq(bf16_value(bf16_of(-256.9f)), -256.0f);
    cr_assert_eq(bf16_value(bf16_of(3.4e38f)), INFINITY);  // beyond the largest, 3.39e38
}

Test(bf16, nan_stays_nan) {
    const uint32_t low_payload = 0x7F800001u;  // its payload lies in the half that is dropped
    float x;
    memcpy(&x, &low_payload, sizeof x);
    cr_assert(isnan(bf16_value(bf16_of(x))) && isnan(bf16_value(bf16_of(NAN))));
}

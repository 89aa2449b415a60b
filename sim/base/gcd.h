// The greatest common divisor of numbers of at least 0; gcd(a, 0) = a.

#pragma once

#include <stdint.h>

static inline int64_t gcd(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

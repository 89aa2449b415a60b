// Arithmetic of integers that C leaves out.

#pragma once

#include <stdint.h>

static inline int64_t int_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t int_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// The least multiple of `unit` that is not less than n; n >= 0.
static inline int64_t int_round_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

// The greatest common divisor of numbers of at least 0; gcd(a, 0) = a.
static inline int64_t gcd(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Element types of buffers, and of what products read: DTYPE_FP8_BLOCK is fp8 with a scale per block of 128 elements,
// DTYPE_NVFP4 4 bits with one per 16. No buffer has these two: their buffers are counted in bytes, as fp8.

#pragma once

#include <stdbool.h>
#include <string.h>

typedef enum {
    DTYPE_FP32,
    DTYPE_BF16,
    DTYPE_FP16,
    DTYPE_FP8,
    DTYPE_INT32,
    DTYPE_FP8_BLOCK,
    DTYPE_NVFP4,
    DTYPE_COUNT
} Dtype;

static inline int dtype_bytes(Dtype dtype) {
    static const int bytes[DTYPE_COUNT] = {4, 2, 2, 1, 4, 1, 1};
    return bytes[dtype];
}

static inline const char *dtype_name(Dtype dtype) {
    static const char *const names[DTYPE_COUNT] = {"fp32", "bf16", "fp16", "fp8", "int32", "fp8_block", "nvfp4"};
    return names[dtype];
}

// The dtype of that name; false where none has it.
static inline bool dtype_parse(const char *name, Dtype *dtype) {
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(dtype_name((Dtype)i), name) == 0) {
            *dtype = (Dtype)i;
            return true;
        }
    }
    return false;
}

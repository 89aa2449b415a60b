// The calls that the cuBLASLt stand-in has received since the start.

#pragma once

typedef struct GemmCounts {
    int products, searches;  // multiplications; algorithm searches
    int with_target;         // products with an SM target
} GemmCounts;

GemmCounts cublaslt_host_counts(void);

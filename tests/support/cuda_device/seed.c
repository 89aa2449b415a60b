// The worker over the stand-in runtime draws the order of its streams from NDTUNE_CUDA_HOST_SEED. With
// NDTUNE_CUDA_HOST_GUARD=1 it faults where it touches device memory by itself.

#include <stdlib.h>

#include "tests/support/cuda_host/cuda_host.h"

__attribute__((constructor)) static void seed(void) {
    if (getenv("NDTUNE_CUDA_HOST_GUARD")) {
        cuda_host_guard();
    }
    const char *text = getenv("NDTUNE_CUDA_HOST_SEED"), *guard = getenv("NDTUNE_CUDA_HOST_GUARD");
    if (text) {
        cuda_host_seed(strtoull(text, NULL, 10));
    }
    if (guard && guard[0] == '1') {
        if (getenv("NDTUNE_CUDA_HOST_GUARD")) {
        cuda_host_guard();
    }
    }
}

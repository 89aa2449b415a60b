// The worker over the stand-in runtime draws the order of its streams from NDTUNE_CUDA_HOST_SEED. With
// NDTUNE_CUDA_HOST_GUARD=1 it faults where it accesses device memory directly. NDTUNE_CUDA_HOST_PROCESSORS makes its
// GPU a small one.

#include <stdlib.h>

#include "tests/support/cuda_host/cuda_host.h"

__attribute__((constructor)) static void seed(void) {
    const char *text = getenv("NDTUNE_CUDA_HOST_SEED"), *guard = getenv("NDTUNE_CUDA_HOST_GUARD");
    const char *processors = getenv("NDTUNE_CUDA_HOST_PROCESSORS");
    if (processors) {
        cuda_host_processors(atoi(processors));
    }
    if (text) {
        cuda_host_seed(strtoull(text, NULL, 10));
    }
    if (guard && guard[0] == '1') {
        cuda_host_guard();
    }
}

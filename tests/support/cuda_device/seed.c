// The worker over the stand-in runtime draws the order of its streams from NDTUNE_CUDA_HOST_SEED.

#include <stdlib.h>

#include "tests/support/cuda_host/cuda_host.h"

__attribute__((constructor)) static void seed(void) {
    const char *text = getenv("NDTUNE_CUDA_HOST_SEED");
    if (text) {
        cuda_host_seed(strtoull(text, NULL, 10));
    }
}

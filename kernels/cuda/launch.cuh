// The only way to launch a kernel: launch(kernel, shape, stream, arguments...). Tests replace this header by one that
// runs the kernel on the CPU (tests/support/cuda_host). Returns a cudaError_t as int; 0: launched.

#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/launch_shape.h"

template <typename... Parameters, typename... Arguments>
static int launch(void (*kernel)(Parameters...), const LaunchShape &shape, cudaStream_t stream,
                  Arguments... arguments) {
    if (!launch_shape_is_legal(&shape)) {
        return (int)cudaErrorInvalidConfiguration;
    }
    if (shape.shared_bytes > LAUNCH_SHARED_BYTES) {
        const cudaError_t more = cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                                      cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                      (int)shape.shared_bytes);
        if (more != cudaSuccess) {
            return (int)more;
        }
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(shape.grid_x, shape.grid_y, shape.grid_z);
    config.blockDim = dim3(shape.threads, 1, 1);
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = stream;
    return (int)cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

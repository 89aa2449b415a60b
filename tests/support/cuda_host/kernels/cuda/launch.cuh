// launch() of kernels/cuda/launch.cuh for tests: puts the kernel into the stand-in's stream.

#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <tuple>

#include "kernels/cuda/launch_shape.h"

int host_launch(const LaunchShape &shape, cudaStream_t stream, std::function<void()> kernel);

template <typename... Parameters, typename... Arguments>
static int launch(void (*kernel)(Parameters...), const LaunchShape &shape, cudaStream_t stream,
                  Arguments... arguments) {
    static_assert(sizeof(std::tuple<Parameters...>) <= 4096, "a kernel takes 4096 bytes of parameters");
    const std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
    return host_launch(shape, stream, [kernel, values] { std::apply(kernel, values); });
}

// Functions shared by the CPU and GPU kernels: nvcc needs them marked for the device.

#pragma once

#if defined(__CUDACC__)
#define KERNEL_INLINE static __host__ __device__ __forceinline__
#else
#define KERNEL_INLINE static inline
#endif

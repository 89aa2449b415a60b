// Functions that both kinds of kernels call: on a GPU they must be marked for it.

#pragma once

#if defined(__CUDACC__)
#define KERNEL_INLINE static __host__ __device__ __forceinline__
#else
#define KERNEL_INLINE static inline
#endif

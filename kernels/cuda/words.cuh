// Every GPU primitive that is not plain C: shared memory, shuffles, barriers, matrix fragments, asynchronous copies,
// atomics, wide loads, bf16 rounding. Kernels use these, threadIdx, blockIdx, blockDim, gridDim, __syncthreads() and
// __syncwarp(), and nothing else of CUDA, so that tests can run them on the CPU with this header replaced
// (tests/support/cuda_host). sm_80 and newer. PTX ISA 8: sections 9.7.14 (mma, ldmatrix), 9.7.9.25 (cp.async). All
// shared memory is dynamic: its size is part of a launch's shape.

#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

static const int WARP = 32;

// The block's dynamic shared memory, 1024-byte aligned.
template <typename T>
static __device__ __forceinline__ T *word_shared() {
    extern __shared__ __align__(1024) unsigned char word_shared_bytes[];
    return reinterpret_cast<T *>(word_shared_bytes);
}

static __device__ __forceinline__ uint32_t word_shared_address(const void *shared) {
    return (uint32_t)__cvta_generic_to_shared(shared);
}

// ---- bits

static __device__ __forceinline__ float word_float(uint32_t bits) {
    return __uint_as_float(bits);
}

static __device__ __forceinline__ uint32_t word_bits(float x) {
    return __float_as_uint(x);
}

// Two floats as bf16, rounded to nearest even: low in the lower half.
static __device__ __forceinline__ uint32_t word_bf16_pair(float low, float high) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// 2^x, about 2 ulp.
static __device__ __forceinline__ float word_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// ---- 16 bytes of global memory at a 16-byte address

struct alignas(16) Word16 {
    uint32_t word[4];
};

static __device__ __forceinline__ Word16 word_load16(const void *at) {
    const uint4 x = *reinterpret_cast<const uint4 *>(at);
    return Word16{{x.x, x.y, x.z, x.w}};
}

static __device__ __forceinline__ void word_store16(void *at, Word16 x) {
    *reinterpret_cast<uint4 *>(at) = make_uint4(x.word[0], x.word[1], x.word[2], x.word[3]);
}

// ---- the 32 lanes of a warp; all of them must call these

template <typename T>
static __device__ __forceinline__ T word_shuffle_xor(T x, int lanes) {
    return __shfl_xor_sync(0xFFFFFFFFu, x, lanes);
}

template <typename T>
static __device__ __forceinline__ T word_shuffle(T x, int lane) {
    return __shfl_sync(0xFFFFFFFFu, x, lane);
}

// Four 8 x 8 matrices of 16-bit elements: lane 8 j + i gives the shared address of row i of matrix j (16 bytes, 16-byte
// aligned). x[j] of lane l: elements 2 (l % 4) and the next of row l / 4 of matrix j.
static __device__ __forceinline__ void word_ldmatrix4(uint32_t x[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(word_shared_address(row))
                 : "memory");
}

// The same for the transposed matrices: rows 2 (l % 4) and the next of column l / 4.
static __device__ __forceinline__ void word_ldmatrix4_transposed(uint32_t x[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(word_shared_address(row))
                 : "memory");
}

// c += a b in fp32: a 16 x 16, b 16 x 8, bf16. With g = lane / 4 and t = 2 (lane % 4):
//   a[0] (g, t..) a[1] (g+8, t..) a[2] (g, t+8..) a[3] (g+8, t+8..);  b[0] (t.., g) b[1] (t+8.., g);
//   c[0] (g, t) c[1] (g, t+1) c[2] (g+8, t) c[3] (g+8, t+1).
static __device__ __forceinline__ void word_mma(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// ---- products of a warpgroup (four consecutive warps) from operands in shared memory: sm_90a (PTX ISA 9.7.15)

// Whether this GPU has them: known at compile time.
static constexpr __device__ __forceinline__ bool word_has_groups() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    return true;
#else
    return false;
#endif
}

// Where an operand begins in panels of 64 columns of bf16: rows of 128 bytes, eight of them at a 1024-byte address,
// piece p of row r at p ^ (r % 8). The operand's rows and columns are those of the panel, or transposed.
static __device__ __forceinline__ uint64_t word_group_operand(const void *at) {
    const uint64_t rows8 = 8 * 128, swizzle_128 = 1;
    return swizzle_128 << 62 | (rows8 >> 4) << 32 | (uint64_t)1 << 16 | (word_shared_address(at) & 0x3FFFF) >> 4;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define WORD_16(c) WORD_8(c), WORD_8((c) + 2)
#define WORD_8(c) WORD_4((c)[0]), WORD_4((c)[1])
#define WORD_4(c) "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])
#define WORD_NUMBERS16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define WORD_NUMBERS32 \
    WORD_NUMBERS16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#endif

// Issues c[64][COLS] (+)= a b in fp32, k 16: c is valid after the wait. Warp w of the four has rows from 16 w on, in
// c[n] columns from 8 n on as in word_mma. TRANSPOSED: a is [k][row], b is [k][col], else [row][k], [col][k].
template <int COLS, bool TRANSPOSED>
static __device__ __forceinline__ void word_group_mma(float (*c)[4], uint64_t a, uint64_t b, bool add) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    if constexpr (COLS == 32) {
        asm volatile("{.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" WORD_NUMBERS16
                     "}, %16, %17, p, 1, 1, %19, %19;}\n"
                     : WORD_16(c)
                     : "l"(a), "l"(b), "r"((int)add), "n"(TRANSPOSED));
    } else {
        static_assert(COLS == 64, "of 32 or 64 columns");
        asm volatile("{.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" WORD_NUMBERS32
                     "}, %32, %33, p, 1, 1, %35, %35;}\n"
                     : WORD_16(c), WORD_16(c + 4)
                     : "l"(a), "l"(b), "r"((int)add), "n"(TRANSPOSED));
    }
#endif
}

// c[64][64] += a b with a in registers, as for word_mma in each warp, and b as [k][col].
static __device__ __forceinline__ void word_group_mma_rows(float c[][4], const uint32_t a[4], uint64_t b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" WORD_NUMBERS32
                 "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;\n"
                 : WORD_16(c), WORD_16(c + 4)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}

// Call before products: makes this thread's register writes visible to them.
static __device__ __forceinline__ void word_group_begin() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void word_group_commit() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

// Waits until at most `pending` of the latest groups of products are in flight.
template <int pending>
static __device__ __forceinline__ void word_group_wait() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
#endif
}

// Call after a wait: keeps the compiler from reading these registers earlier.
template <int TILES>
static __device__ __forceinline__ void word_group_here(float (*c)[4]) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        asm volatile("" : WORD_4(c[n])::"memory");
    }
#endif
}

// Makes this thread's writes to shared memory visible, after the next barrier, to such products.
static __device__ __forceinline__ void word_group_publish() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// ---- asynchronous copies of 16 bytes from global to shared memory, in groups

// `inside` false: nothing is read, zeros are written. The address must be inside the buffer in any case.
static __device__ __forceinline__ void word_copy16(void *shared, const void *global, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(word_shared_address(shared)),
                 "l"(__cvta_generic_to_global(global)), "r"(inside ? 16 : 0)
                 : "memory");
}

// Commits this thread's copies as a group.
static __device__ __forceinline__ void word_copy_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most `pending` of this thread's latest groups are in flight. For other threads' copies, add a barrier.
template <int pending>
static __device__ __forceinline__ void word_copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// ---- between threads and blocks

// *at += x in no fixed order: never where equal inputs must give equal bits.
static __device__ __forceinline__ void word_add(float *at, float x) {
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "f"(x) : "memory");
}

// Two adjacent elements, at[0] at an 8-byte address: one transaction on sm_90 and newer.
static __device__ __forceinline__ void word_add_pair(float *at, float x, float y) {
#if __CUDA_ARCH__ >= 900
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(at)), "f"(x), "f"(y)
                 : "memory");
#else
    word_add(at, x);
    word_add(at + 1, y);
#endif
}

// Integer sums do not depend on order. Returns the old value.
static __device__ __forceinline__ uint32_t word_add(uint32_t *at, uint32_t x) {
    return atomicAdd(at, x);
}

// The same in host memory, from any stream; the host may read it concurrently.
static __device__ __forceinline__ void word_add_for_host(uint32_t *at, uint32_t x) {
    atomicAdd_system(at, x);
}

// For waiting on another block: load until the value appears. Release after the writes that it announces: by one
// thread, after a barrier of the block.
static __device__ __forceinline__ uint32_t word_load_acquire(const uint32_t *at) {
    uint32_t x;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(__cvta_generic_to_global(at)) : "memory");
    return x;
}

static __device__ __forceinline__ void word_store_release(uint32_t *at, uint32_t x) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "r"(x) : "memory");
}

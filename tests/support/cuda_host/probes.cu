#include "tests/support/cuda_host/probes.h"

#include "kernels/cuda/bf16.cuh"
#include "kernels/cuda/launch.cuh"

__global__ void reverse(bool barrier, const float *x, float *y) {
    float *shared = word_shared<float>();
    const uint32_t at = blockIdx.x * PROBE_THREADS;
    shared[threadIdx.x] = x[at + threadIdx.x];
    if (barrier) {
        __syncthreads();
    }
    y[at + threadIdx.x] = shared[PROBE_THREADS - 1 - threadIdx.x];
}

int probe_reverse(cudaStream_t stream, int blocks, bool barrier, const float *x, float *y) {
    return launch(reverse, LaunchShape{(uint32_t)blocks, 1, 1, PROBE_THREADS, PROBE_THREADS * 4}, stream, barrier, x,
                  y);
}

__global__ void rounds(bool barrier, float *y) {
    float *room = word_shared<float>();
    const int warps = PROBE_THREADS / WARP;
    float wrong = 0.0f;
    for (int round = 1; round <= 4; round++) {
        if (word_shuffle(1u, 0) != 0 && threadIdx.x % WARP == 0) {
            room[threadIdx.x / WARP] = (float)round;
        }
        __syncthreads();
        float sum = 0.0f;
        for (int warp = 0; warp < warps; warp++) {
            sum += room[warp];
        }
        wrong += sum == (float)(warps * round) ? 0.0f : 1.0f;
        if (barrier) {
            __syncthreads();
        }
    }
    y[threadIdx.x] = wrong;
}

int probe_rounds(cudaStream_t stream, bool barrier, float *y) {
    return launch(rounds, LaunchShape{1, 1, 1, PROBE_THREADS, PROBE_THREADS / WARP * 4}, stream, barrier, y);
}

__global__ void copy_wait(bool wait, const float *x, float *y) {
    float *shared = word_shared<float>();
    word_copy16(shared + 4 * threadIdx.x, x + 4 * threadIdx.x, threadIdx.x < 16);
    word_copy_commit();
    if (wait) {
        word_copy_wait<0>();
    }
    for (int i = 0; i < 4; i++) {
        y[4 * threadIdx.x + i] = shared[4 * threadIdx.x + i] + 1.0f;
    }
}

int probe_copy(cudaStream_t stream, bool wait, const float *x, float *y) {
    return launch(copy_wait, LaunchShape{1, 1, 1, 32, 512}, stream, wait, x, y);
}

__global__ void half_warp(float *y) {
    if (threadIdx.x % 2 == 1) {
        return;
    }
    y[threadIdx.x] = word_shuffle_xor((float)threadIdx.x, 2);
}

int probe_half_warp(cudaStream_t stream, float *y) {
    return launch(half_warp, LaunchShape{1, 1, 1, 32, 0}, stream, y);
}

__global__ void overrun() {
    word_shared<float>()[threadIdx.x + 1] = 1.0f;
}

int probe_overrun(cudaStream_t stream) {
    return launch(overrun, LaunchShape{1, 1, 1, 32, 32 * 4}, stream);
}

__global__ void matrix(const uint16_t *a, const uint16_t *b, float *c) {
    uint16_t *shared_a = word_shared<uint16_t>(), *shared_b = shared_a + 256;
    const int lane = (int)threadIdx.x;
    for (int i = lane; i < 256; i += WARP) {
        shared_a[i] = a[i];
    }
    for (int i = lane; i < 128; i += WARP) {
        shared_b[i] = b[i];
    }
    __syncwarp();
    uint32_t fa[4], fb[4];
    word_ldmatrix4(fa, shared_a + (lane % 8 + lane / 8 % 2 * 8) * 16 + lane / 16 * 8);
    word_ldmatrix4_transposed(fb, shared_b + lane % 16 * 8);  // two matrices, twice
    float tile[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    word_mma(tile, fa, fb);
    for (int i = 0; i < 4; i++) {
        c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = tile[i];
    }
}

int probe_matrix(cudaStream_t stream, const uint16_t *a, const uint16_t *b, float *c) {
    return launch(matrix, LaunchShape{1, 1, 1, 32, 768}, stream, a, b, c);
}

__global__ void chain(const float *x, uint32_t *turn, float *y) {
    float sum = x[blockIdx.x * WARP + threadIdx.x];
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        sum += word_shuffle_xor(sum, lanes);
    }
    if (threadIdx.x == 0) {
        while (word_load_acquire(turn) != blockIdx.x) {
        }
        *y += sum;
        word_store_release(turn, blockIdx.x + 1);
    }
}

int probe_chain(cudaStream_t stream, int blocks, const float *x, uint32_t *turn, float *y) {
    return launch(chain, LaunchShape{(uint32_t)blocks, 1, 1, 32, 0}, stream, x, turn, y);
}

__global__ void scale_add(int64_t count, float f, const float *x, float *y) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        y[i] = f * x[i] + y[i];
    }
}

int probe_scale_add(cudaStream_t stream, int64_t count, float f, const float *x, float *y) {
    return launch(scale_add, LaunchShape{(uint32_t)((count + 63) / 64), 1, 1, 64, 0}, stream, count, f, x, y);
}

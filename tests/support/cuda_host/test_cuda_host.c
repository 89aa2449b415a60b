// The stand-in runs correct programs correctly and exposes the faults of wrong ones.

#include "tests/support/cuda_host/cuda_host.h"

#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "tests/support/cuda_host/probes.h"

enum { SIZE = 4 * PROBE_THREADS };

static float *on_device(size_t count) {
    void *x = NULL;
    cr_assert_eq(cudaMalloc(&x, count * sizeof(float)), cudaSuccess);
    return x;
}

static int wrong_reversals(bool barrier, uint64_t seed) {
    float *x = on_device(SIZE), *y = on_device(SIZE);
    cuda_host_seed(seed);
    for (int i = 0; i < SIZE; i++) {
        x[i] = (float)i;
    }
    cr_assert_eq(probe_reverse(NULL, 4, barrier, x, y), 0);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
    int wrong = 0;
    for (int i = 0; i < SIZE; i++) {
        wrong += !(y[i] == x[i / PROBE_THREADS * PROBE_THREADS + PROBE_THREADS - 1 - i % PROBE_THREADS]);
    }
    cudaFree(x), cudaFree(y);
    return wrong;
}

Test(cuda_host, a_barrier_orders_shared_memory_and_its_absence_shows) {
    for (uint64_t seed = 0; seed < 8; seed++) {
        cr_assert_eq(wrong_reversals(true, seed), 0);
        cr_assert_gt(wrong_reversals(false, seed), 0, "seed %d", (int)seed);
    }
}

static int wrong_rounds(bool barrier, uint64_t seed) {
    float *y = on_device(PROBE_THREADS);
    cuda_host_seed(seed);
    cr_assert_eq(probe_rounds(NULL, barrier, y), 0);
    cudaDeviceSynchronize();
    int wrong = 0;
    for (int i = 0; i < PROBE_THREADS; i++) {
        wrong += y[i] != 0.0f;
    }
    cudaFree(y);
    return wrong;
}

Test(cuda_host, a_warp_that_runs_ahead_shows_a_barrier_missing_after_the_reads) {
    int wrong = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        cr_assert_eq(wrong_rounds(true, seed), 0);
        wrong += wrong_rounds(false, seed);
    }
    cr_assert_gt(wrong, 0);
}

Test(cuda_host, an_asynchronous_copy_arrives_when_it_is_waited_for) {
    float *x = on_device(64), *y = on_device(128);
    for (int i = 0; i < 64; i++) {
        x[i] = (float)i;
    }
    cr_assert_eq(probe_copy(NULL, true, x, y), 0);
    cudaDeviceSynchronize();
    for (int i = 0; i < 128; i++) {
        cr_assert_eq(y[i], i < 64 ? (float)i + 1.0f : 1.0f);
    }
    cr_assert_eq(probe_copy(NULL, false, x, y), 0);
    cudaDeviceSynchronize();
    cr_assert(isnan(y[0]));
    cudaFree(x), cudaFree(y);
}

Test(cuda_host, a_warp_without_some_of_its_lanes_is_named, .signal = SIGABRT) {
    float *y = on_device(32);
    probe_half_warp(NULL, y);
    cudaDeviceSynchronize();
}

#if !defined(__SANITIZE_ADDRESS__)  // which stops the program itself
Test(cuda_host, a_write_past_shared_memory_is_named, .signal = SIGABRT) {
    probe_overrun(NULL);
    cudaDeviceSynchronize();
}
#endif

static uint16_t half_of(int x) {
    const float value = (float)x;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

Test(cuda_host, matrix_pieces_have_the_layouts_of_the_ptx_manual) {
    uint16_t a[256], b[128];
    float c[128];
    for (int i = 0; i < 256; i++) {
        a[i] = half_of(i * 7 % 23 - 11);
    }
    for (int i = 0; i < 128; i++) {
        b[i] = half_of(i * 5 % 19 - 9);
    }
    cr_assert_eq(probe_matrix(NULL, a, b, c), 0);
    cudaDeviceSynchronize();
    for (int row = 0; row < 16; row++) {
        for (int col = 0; col < 8; col++) {
            int want = 0;
            for (int k = 0; k < 16; k++) {
                want += ((row * 16 + k) * 7 % 23 - 11) * ((k * 8 + col) * 5 % 19 - 9);
            }
            cr_assert_eq(c[row * 8 + col], (float)want, "%d %d", row, col);
        }
    }
}

Test(cuda_host, blocks_that_wait_for_others_come_to_an_end) {
    enum { BLOCKS = 9 };
    float x[32 * BLOCKS], y = 0.0f;
    uint32_t turn = 0;
    for (int i = 0; i < 32 * BLOCKS; i++) {
        x[i] = 1.0f;
    }
    cuda_host_seed(5);
    cr_assert_eq(probe_chain(NULL, BLOCKS, x, &turn, &y), 0);
    cudaDeviceSynchronize();
    cr_assert_eq(y, 32.0f * BLOCKS);
}

Test(cuda_host, guarded_memory_is_the_device_s_alone) {
    cuda_host_guard();
    float *x = on_device(64), *y = on_device(64);
    float numbers[64], back[64];
    for (int i = 0; i < 64; i++) {
        numbers[i] = (float)i;
    }
    cr_assert_eq(cudaMemcpy(x, numbers, sizeof numbers, cudaMemcpyHostToDevice), cudaSuccess);
    cr_assert_eq(cudaMemcpy(y, numbers, sizeof numbers, cudaMemcpyHostToDevice), cudaSuccess);
    cr_assert_eq(probe_scale_add(NULL, 64, 2.0f, x, y), 0);
    cr_assert_eq(cudaMemcpy(back, y, sizeof back, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < 64; i++) {
        cr_assert_eq(back[i], 3.0f * (float)i);
    }
    cudaFree(x), cudaFree(y);
}

#if !defined(__SANITIZE_ADDRESS__)
Test(cuda_host, a_program_that_touches_guarded_memory_faults, .signal = SIGSEGV) {
    cuda_host_guard();
    *on_device(64) = 1.0f;
}

Test(cuda_host, a_kernel_that_writes_past_guarded_memory_faults, .signal = SIGSEGV) {
    cuda_host_guard();
    float *x = on_device(64);
    probe_scale_add(NULL, 65, 1.0f, x, x);
    cudaDeviceSynchronize();
}
#endif

// y = 2 (x = 1 on one stream) added on another, with or without an event between.
static bool is_ordered(bool wait, uint64_t seed) {
    float *one = on_device(64), *x = on_device(64), *y = on_device(64);
    cudaStream_t a, b;
    cudaEvent_t ready;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
    cuda_host_seed(seed);
    for (int i = 0; i < 64; i++) {
        one[i] = 1.0f, x[i] = 0.0f, y[i] = 0.0f;
    }
    probe_scale_add(a, 64, 1.0f, one, x);
    cudaEventRecord(ready, a);
    if (wait) {
        cudaStreamWaitEvent(b, ready, 0);
    }
    probe_scale_add(b, 64, 2.0f, x, y);
    cudaStreamSynchronize(b);
    const bool right = y[0] == 2.0f && y[63] == 2.0f;
    cudaStreamDestroy(a), cudaStreamDestroy(b), cudaEventDestroy(ready);
    cudaFree(one), cudaFree(x), cudaFree(y);
    return right;
}

Test(cuda_host, streams_keep_to_events_only) {
    int lucky = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        cr_assert(is_ordered(true, seed));
        lucky += is_ordered(false, seed);
    }
    cr_assert_lt(lucky, 20);
    cr_assert_gt(lucky, 0);
}

Test(cuda_host, a_captured_fork_runs_in_its_order_as_often_as_it_is_launched) {
    float *one = on_device(64), *x = on_device(64), *y = on_device(64);
    cudaStream_t a, b;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCreate(&a), cudaStreamCreate(&b), cudaEventCreate(&fork), cudaEventCreate(&join);
    for (int i = 0; i < 64; i++) {
        one[i] = 1.0f, x[i] = 0.0f, y[i] = 0.0f;
    }
    cr_assert_eq(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    probe_scale_add(a, 64, 1.0f, one, x);
    cudaEventRecord(fork, a);
    cudaStreamWaitEvent(b, fork, 0);
    probe_scale_add(b, 64, 1.0f, x, y);
    cudaEventRecord(join, b);
    cudaStreamWaitEvent(a, join, 0);
    probe_scale_add(a, 64, 1.0f, one, y);
    cr_assert_eq(cudaStreamEndCapture(a, &graph), cudaSuccess);
    cr_assert_eq(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    cr_assert_eq(y[0], 0.0f);
    cudaGraphLaunch(exec, a);
    cudaGraphLaunch(exec, a);
    cudaStreamSynchronize(a);
    cr_assert_eq(y[0], 1.0f + 1.0f + 2.0f + 1.0f);
    cudaGraphExecDestroy(exec), cudaGraphDestroy(graph), cudaEventDestroy(fork), cudaEventDestroy(join);
    cudaStreamDestroy(a), cudaStreamDestroy(b), cudaFree(one), cudaFree(x), cudaFree(y);
}

Test(cuda_host, an_unjoined_fork_is_refused) {
    cudaStream_t a, b;
    cudaEvent_t fork;
    cudaGraph_t graph;
    float *x = on_device(64);
    cudaStreamCreate(&a), cudaStreamCreate(&b), cudaEventCreate(&fork);
    cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal);
    cudaEventRecord(fork, a);
    cudaStreamWaitEvent(b, fork, 0);
    probe_scale_add(b, 64, 1.0f, x, x);
    cr_assert_eq(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureUnjoined);
    cudaStreamDestroy(a), cudaStreamDestroy(b), cudaEventDestroy(fork), cudaFree(x);
}

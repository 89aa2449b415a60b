// A grid on the CPU: blocks of lanes (GPU threads), each lane a fiber. Called by the replaced words.cuh.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/cuda/launch_shape.h"
#include "tests/support/cuda_host/fiber.h"

enum { HOST_WARP = 32, HOST_EXCHANGE_BYTES = 64 };

struct HostIndex {
    uint32_t x, y, z;
};

extern std::atomic<uint64_t> host_words_loaded, host_words_stored;
extern bool host_groups;  // the GPU multiplies by warpgroups

// What the 32 lanes of a warp contribute to one collective primitive, and receive from it.
struct HostWarp {
    uint32_t arrived;
    const char *word;
    uint64_t generation;
    alignas(16) unsigned char in[HOST_WARP][HOST_EXCHANGE_BYTES];
    alignas(16) unsigned char out[HOST_WARP][HOST_EXCHANGE_BYTES];
};

struct HostCopy {
    void *to;
    const void *from;
    bool inside;
    uint64_t group;
};

// A warpgroup product in flight: computed when it is waited for, from the data in memory at that time.
struct HostProduct {
    float (*c)[4];
    bool in_registers;  // the left operand: rows, else at a
    uint32_t rows[4];
    uintptr_t a, b;
    int cols;
    bool transposed, add;
    uint64_t group;
};

struct HostBlock;

struct HostLane {
    Fiber fiber;
    HostBlock *block;
    HostIndex thread;
    HostIndex index;    // of the block
    HostIndex threads;  // of a block
    HostIndex blocks;   // of the grid
    std::vector<HostCopy> copies;
    uint64_t copy_group;
    std::vector<HostProduct> products;
    uint64_t product_group;
    bool started, finished, idle;  // idle: looked at memory that another block must change
};

struct HostBarrier {
    uint32_t arrived;
    std::vector<uint32_t> waiting;
};

struct HostBlock {
    std::vector<HostLane> lanes;
    std::vector<HostWarp> warps;
    std::vector<uint32_t> runnable;
    HostBarrier barrier;
    unsigned char *shared;
    uint32_t shared_bytes;
    uint32_t live;
    int turns;       // lanes that may still go on before another block has its turn
    int64_t chosen;  // the lane that goes on next, if it has been drawn; else -1
    bool passed;     // a lane gave way to another one without the loop of the grid
    uint64_t draws;  // state of the draws of lanes
    bool eager;      // the last one woken continues: one warp runs ahead of all others; otherwise the next is drawn
};

// The lane that runs on this thread of the machine.
extern __thread HostLane *host_lane;

uint64_t host_random(void);
// Reports what is wrong, in which block and thread, and aborts.
[[noreturn]] void host_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

void host_grid_run(const LaunchShape &shape, const std::function<void()> &kernel);

void host_barrier(void);  // of all lanes that have not returned
void host_yield_idle(void);
// True for the last lane of the warp to arrive, which must fill warp->out and call host_exchange_done; the others
// return when that has happened.
bool host_exchange(const char *word, const void *in, size_t bytes, HostWarp **warp, uint32_t *lane);
void host_exchange_done(HostWarp *warp);
void host_copy(void *to, const void *from, bool inside);
void host_copy_wait(uint64_t pending);
void host_aligned(const void *at, size_t bytes, const char *word);

// Lanes run until they wait; who goes next is drawn, or one warp runs ahead. A few blocks are resident at a time, in an
// order that is drawn too. Shared memory begins as NaN; an asynchronous copy makes its target NaN and arrives when it
// is waited for.

#include "tests/support/cuda_host/grid.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tests/support/cuda_host/cuda_host.h"
#include "tests/support/splitmix.h"

enum { GUARD_BYTES = 64, IDLE_LIMIT = 1 << 22 };
static const unsigned char GUARD = 0xA5;

__thread HostLane *host_lane;
static std::atomic<uint64_t> random_state{1};
static std::atomic<uint64_t> blocks_run{0};
std::atomic<uint64_t> host_words_loaded{0}, host_words_stored{0};
static __thread const std::function<void()> *kernel_now;

void cuda_host_seed(uint64_t seed) {
    random_state = seed * 2 + 1;
}

CudaHostWords cuda_host_words(void) {
    return CudaHostWords{host_words_loaded, host_words_stored};
}

uint64_t cuda_host_blocks(void) {
    return blocks_run;
}

uint64_t host_random(void) {
    uint64_t state = random_state.fetch_add(SPLITMIX_STEP);
    return splitmix_next(&state);
}

// Below the limit, of the grid's own draws: the next lane is drawn at every switch, where an atomic and a division are
// felt. The upper half of the word, scaled (Lemire 2019).
static uint32_t draw_below(uint64_t *state, size_t limit) {
    return (uint32_t)((splitmix_next(state) >> 32) * limit >> 32);
}

void host_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "cuda_host: ");
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (host_lane) {
        const HostIndex b = host_lane->index;
        fprintf(stderr, " (block %u %u %u, thread %u)", b.x, b.y, b.z, host_lane->thread.x);
    }
    fprintf(stderr, "\n");
    abort();
}

void host_aligned(const void *at, size_t bytes, const char *word) {
    if ((uintptr_t)at % bytes != 0) {
        host_fail("%s at %p, which is no multiple of %zu", word, at, bytes);
    }
}

// ---- stacks, kept for the next lane

// A stack's top lies some cache lines from that of the one before: at one distance from a page they would all want the
// same few places of the caches, and every switch would miss them.
enum { SHIFT_BYTES = 17 * 64, SHIFTS = 61 };

struct Stacks {
    std::vector<char *> all, free;
    char *take() {
        if (free.empty()) {
            all.push_back(static_cast<char *>(malloc(FIBER_STACK_BYTES + SHIFTS * SHIFT_BYTES)));
            return all.back() + all.size() % SHIFTS * SHIFT_BYTES;
        }
        char *stack = free.back();
        free.pop_back();
        return stack;
    }
    ~Stacks() {
        for (char *stack : all) {
            ::free(stack);
        }
    }
};
static thread_local Stacks stacks;

// ---- lanes

static uint32_t draw_runnable(HostBlock *block) {
    const size_t count = block->runnable.size(), at = block->eager ? count - 1 : draw_below(&block->draws, count);
    const uint32_t lane = block->runnable[at];
    block->runnable[at] = block->runnable.back();
    block->runnable.pop_back();
    return lane;
}

// A lane that waits for others of its block gives way to the next one itself.
static void lane_leave() {
    HostLane *lane = host_lane;
    HostBlock *block = lane->block;
    HostLane *next = nullptr;
    if (FIBERS_PASS && !lane->idle && block->turns > 0 && !block->runnable.empty()) {
        block->turns--;
        block->chosen = draw_runnable(block);
        next = &block->lanes[(size_t)block->chosen];
    }
    if (next && next->started) {
        block->chosen = -1;
        block->passed = true;
        next->idle = false;
        host_lane = next;
        if (next != lane) {
            fiber_pass(&lane->fiber, &next->fiber);
        }
    } else {
        fiber_leave(&lane->fiber);
    }
    host_lane = lane;
}

static void lane_wake(HostBlock *block, uint32_t lane) {
    block->runnable.push_back(lane);
}

static void barrier_release(HostBlock *block, HostBarrier *barrier) {
    for (const uint32_t lane : barrier->waiting) {
        lane_wake(block, lane);
    }
    barrier->waiting.clear();
    barrier->arrived = 0;
}

void host_barrier(void) {
    HostBlock *block = host_lane->block;
    HostBarrier *barrier = &block->barrier;
    barrier->waiting.push_back(host_lane->thread.x);
    if (++barrier->arrived == block->live) {
        barrier_release(block, barrier);
    }
    lane_leave();
}

void host_yield_idle(void) {
    host_lane->idle = true;
    std::vector<uint32_t> &runnable = host_lane->block->runnable;
    runnable.insert(runnable.begin(), host_lane->thread.x);  // behind all others
    lane_leave();
}

bool host_exchange(const char *word, const void *in, size_t bytes, HostWarp **warp_out, uint32_t *lane_out) {
    HostBlock *block = host_lane->block;
    const uint32_t lane = host_lane->thread.x % HOST_WARP;
    HostWarp *warp = &block->warps[host_lane->thread.x / HOST_WARP];
    *warp_out = warp;
    *lane_out = lane;
    if (warp->arrived != 0 && warp->word != word && strcmp(warp->word, word) != 0) {
        host_fail("lanes of a warp are at different words: %s and %s", word, warp->word);
    }
    warp->word = word;
    memcpy(warp->in[lane], in, bytes);
    warp->arrived |= 1u << lane;
    if (warp->arrived == 0xFFFFFFFFu) {
        return true;
    }
    const uint64_t generation = warp->generation;
    lane_leave();
    if (warp->generation != generation + 1) {
        host_fail("%s: the warp went on without this lane", word);
    }
    return false;
}

void host_exchange_done(HostWarp *warp) {
    HostBlock *block = host_lane->block;
    const uint32_t self = host_lane->thread.x;
    for (uint32_t lane = self / HOST_WARP * HOST_WARP; lane < self / HOST_WARP * HOST_WARP + HOST_WARP; lane++) {
        if (lane != self) {
            lane_wake(block, lane);
        }
    }
    warp->arrived = 0;
    warp->generation++;
}

bool host_groups;

void cuda_host_groups(bool there) {
    host_groups = there;
}

// ---- asynchronous copies

void host_copy(void *to, const void *from, bool inside) {
    host_aligned(to, 16, "copy to shared memory");
    host_aligned(from, 16, "copy from global memory");
    memset(to, 0xFF, 16);
    host_lane->copies.push_back(HostCopy{to, from, inside, host_lane->copy_group});
}

void host_copy_wait(uint64_t pending) {
    std::vector<HostCopy> left;
    for (const HostCopy &copy : host_lane->copies) {
        if (copy.group + pending >= host_lane->copy_group) {
            left.push_back(copy);
        } else if (copy.inside) {
            memcpy(copy.to, copy.from, 16);
        } else {
            memset(copy.to, 0, 16);
        }
    }
    host_lane->copies.swap(left);
}

// ---- blocks

static void lane_main(void *context) {
    HostLane *lane = static_cast<HostLane *>(context);
    host_lane = lane;
    (*kernel_now)();
    lane->finished = true;
}

static HostBlock *block_new(const LaunchShape &shape, uint64_t linear) {
    HostBlock *block = new HostBlock();
    const HostIndex blocks = {shape.grid_x, shape.grid_y, shape.grid_z};
    const HostIndex index = {(uint32_t)(linear % blocks.x), (uint32_t)(linear / blocks.x % blocks.y),
                             (uint32_t)(linear / blocks.x / blocks.y)};
    block->lanes.resize(shape.threads);
    block->warps.resize((shape.threads + HOST_WARP - 1) / HOST_WARP);
    block->live = shape.threads;
    block->eager = host_random() % 2 == 0;
    block->draws = host_random();
    block->chosen = -1;
    for (uint32_t t = 0; t < shape.threads; t++) {
        HostLane *lane = &block->lanes[t];
        lane->block = block;
        lane->thread = HostIndex{t, 0, 0};
        lane->index = index;
        lane->threads = HostIndex{shape.threads, 1, 1};
        lane->blocks = blocks;
        block->runnable.push_back(t);
    }
    block->shared_bytes = shape.shared_bytes;
    void *shared = nullptr;
#if defined(__SANITIZE_ADDRESS__)
    const size_t guard = 0;  // the sanitizer sees every byte beyond
#else
    const size_t guard = GUARD_BYTES;
#endif
    if (posix_memalign(&shared, 1024, shape.shared_bytes + guard) != 0) {
        host_fail("no memory for a block");
    }
    block->shared = static_cast<unsigned char *>(shared);
    memset(block->shared, 0xFF, shape.shared_bytes);
    memset(block->shared + shape.shared_bytes, GUARD, guard);
    return block;
}

static void block_delete(HostBlock *block) {
#if !defined(__SANITIZE_ADDRESS__)
    for (int i = 0; i < GUARD_BYTES; i++) {
        if (block->shared[block->shared_bytes + i] != GUARD) {
            host_fail("a kernel wrote behind its %u bytes of shared memory", block->shared_bytes);
        }
    }
#endif
    free(block->shared);
    delete block;
    blocks_run++;
}

static HostLane *lane_run(HostBlock *block, uint32_t index) {
    HostLane *lane = &block->lanes[index];
    if (!lane->started) {
        lane->started = true;
        fiber_begin(&lane->fiber, stacks.take(), lane_main, lane);
    }
    lane->idle = false;
    host_lane = lane;
    fiber_resume(&lane->fiber);
    lane = host_lane;  // the last of those that gave way to each other
    host_lane = nullptr;
    if (!lane->finished) {
        return lane;
    }
    stacks.free.push_back(lane->fiber.stack);
    block->live--;
    HostBarrier *all = &block->barrier;
    if (all->arrived > 0 && all->arrived == block->live) {
        barrier_release(block, all);
    }
    return lane;
}

static void fail_stuck(const HostBlock *block) {
    for (const HostWarp &warp : block->warps) {
        if (warp.arrived != 0) {
            host_lane = const_cast<HostLane *>(&block->lanes[(size_t)(&warp - block->warps.data()) * HOST_WARP]);
            host_fail("a warp waits at %s for lanes that never come (here: 0x%08x)", warp.word, warp.arrived);
        }
    }
    host_lane = const_cast<HostLane *>(&block->lanes[0]);
    host_fail("%u threads wait at a barrier that the others never reach", block->live);
}

void host_grid_run(const LaunchShape &shape, const std::function<void()> &kernel) {
    kernel_now = &kernel;
    const uint64_t count = (uint64_t)shape.grid_x * shape.grid_y * shape.grid_z;
    std::vector<uint32_t> order(count);
    for (uint64_t i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
        std::swap(order[i], order[host_random() % (i + 1)]);
    }
    size_t most = 1 + host_random() % 3;
    uint64_t next = 0, idle = 0, draws = host_random();
    std::vector<HostBlock *> resident;
    while (next < count || !resident.empty()) {
        if (next < count && resident.size() < most) {
            resident.push_back(block_new(shape, order[next++]));
        }
        const size_t at = draw_below(&draws, resident.size());
        HostBlock *block = resident[at];
        block->turns = 64;
        while (block->chosen >= 0 || (block->turns > 0 && !block->runnable.empty())) {
            uint32_t next_lane = (uint32_t)block->chosen;
            if (block->chosen < 0) {
                block->turns--;
                next_lane = draw_runnable(block);
            }
            block->chosen = -1;
            block->passed = false;
            const HostLane *last = lane_run(block, next_lane);
            idle = last->idle && !block->passed ? idle + 1 : 0;
        }
        if (block->live == 0) {
            block_delete(block);
            resident[at] = resident.back();
            resident.pop_back();
        } else if (block->runnable.empty()) {
            fail_stuck(block);
        }
        if (idle > 1024 * most) {  // all that run wait for another block
            most = next < count ? most + 1 : most;
        }
        if (idle > IDLE_LIMIT) {
            host_fail("blocks wait for a value that no block writes");
        }
    }
}

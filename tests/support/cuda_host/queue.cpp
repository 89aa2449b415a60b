// Which work runs next is drawn among the streams whose first work is ready. The lock is not held while work runs, so
// that a host function may wait for another thread.

#include "tests/support/cuda_host/queue.h"

#include <chrono>

#include "tests/support/cuda_host/grid.h"

HostRuntime &host_runtime() {
    static HostRuntime *runtime = new HostRuntime();  // outlives every user
    return *runtime;
}

double host_now_ms() {
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

cudaStream_t host_stream(cudaStream_t stream) {
    return stream ? stream : &host_runtime().null_stream;
}

static bool host_step(HostLock &lock) {
    HostRuntime &runtime = host_runtime();
    std::vector<CUstream_st *> able;
    for (CUstream_st *stream : runtime.streams) {
        if (!stream->busy && !stream->queue.empty() &&
            (!stream->queue.front().ready || stream->queue.front().ready())) {
            able.push_back(stream);
        }
    }
    if (able.empty()) {
        return false;
    }
    CUstream_st *stream = able[host_random() % able.size()];
    HostWork work = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->busy = true;
    host_memory_open();
    lock.unlock();
    work.run();
    lock.lock();
    host_memory_close();
    stream->busy = false;
    stream->completed++;
    runtime.done.notify_all();
    return true;
}

void host_drain_until(HostLock &lock, const std::function<bool()> &holds) {
    HostRuntime &runtime = host_runtime();
    if (holds()) {
        return;
    }
    host_memory_open();
    while (!holds()) {
        if (host_step(lock)) {
            continue;
        }
        bool busy = false;
        for (const CUstream_st *stream : runtime.streams) {
            busy = busy || stream->busy;
        }
        if (!busy) {
            host_fail("streams wait for work that nobody submitted");
        }
        runtime.done.wait(lock);
    }
    host_memory_close();
}

void host_try(HostLock &lock) {
    host_step(lock);
}

// On the default stream: behind all that legacy streams hold; on a legacy stream: behind what the default stream holds.
static std::function<bool()> legacy_order(CUstream_st *stream) {
    HostRuntime &runtime = host_runtime();
    std::vector<std::pair<CUstream_st *, uint64_t>> before;
    for (CUstream_st *other : runtime.streams) {
        const bool one_is_default = (stream == &runtime.null_stream) != (other == &runtime.null_stream);
        if (one_is_default && stream->legacy && other->legacy && other->completed < other->submitted) {
            before.emplace_back(other, other->submitted);
        }
    }
    if (before.empty()) {
        return {};
    }
    return [before] {
        for (const auto &[other, count] : before) {
            if (other->completed < count) {
                return false;
            }
        }
        return true;
    };
}

cudaError_t host_submit(cudaStream_t handle, std::function<void()> run) {
    CUstream_st *stream = host_stream(handle);
    if (stream->capture) {
        std::vector<HostNode> &nodes = stream->capture->nodes;
        nodes.push_back(HostNode{std::move(run), stream->after});
        stream->after = {nodes.size() - 1};
        return cudaSuccess;
    }
    stream->queue.push_back(HostWork{std::move(run), legacy_order(stream)});
    stream->submitted++;
    return cudaSuccess;
}

// Streams as queues: pending work, its stream, and what it waits for.

#pragma once

#include <cuda_runtime.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

// Work of a captured graph: what it does and which nodes come before it.
struct HostNode {
    std::function<void()> run;
    std::set<size_t> after;
};

struct HostCapture {
    std::vector<HostNode> nodes;
    cudaStream_t origin;
};

struct CUevent_st {
    uint64_t recorded = 0, happened = 0;
    double at_ms = 0;
    bool timed = true;
    HostCapture *capture = nullptr;  // recorded inside this one, after these nodes
    std::set<size_t> after;
};

struct HostWork {
    std::function<void()> run;
    std::function<bool()> ready;  // empty: always
};

struct CUstream_st {
    std::deque<HostWork> queue;
    uint64_t submitted = 0, completed = 0;
    bool busy = false;   // its first work is running
    bool legacy = true;  // waits for the default stream and is waited for by it
    HostCapture *capture = nullptr;
    std::set<size_t> after;  // nodes that this stream's next one follows
};

struct CUgraph_st {
    std::vector<HostNode> nodes;
};

struct CUgraphExec_st {
    std::vector<HostNode> nodes;
};

struct HostRuntime {
    std::recursive_mutex mutex;
    std::condition_variable_any done;
    CUstream_st null_stream;
    std::vector<CUstream_st *> streams{&null_stream};
    bool guarded = false;
    int working = 0;  // calls that let work run now
};

typedef std::unique_lock<std::recursive_mutex> HostLock;

HostRuntime &host_runtime();
cudaError_t host_error(cudaError_t error);  // stores it for cudaGetLastError
cudaStream_t host_stream(cudaStream_t stream);
cudaError_t host_submit(cudaStream_t stream, std::function<void()> run);
// Runs randomly chosen work until the condition holds.
void host_drain_until(HostLock &lock, const std::function<bool()> &holds);
void host_try(HostLock &lock);  // one randomly chosen piece of work, if any can run
double host_now_ms();
// Around work that runs, with the lock held: guarded memory is accessible between them.
void host_memory_open();
void host_memory_close();

// Streams, events and graphs of the stand-in.

#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/cuda/launch.cuh"
#include "tests/support/cuda_host/grid.h"
#include "tests/support/cuda_host/queue.h"

int host_launch(const LaunchShape &shape, cudaStream_t stream, std::function<void()> kernel) {
    if (!launch_shape_is_legal(&shape) || shape.threads % HOST_WARP != 0 ||
        shape.shared_bytes > LAUNCH_MAX_SHARED_BYTES) {
        return (int)host_error(cudaErrorInvalidConfiguration);
    }
    HostLock lock(host_runtime().mutex);
    return (int)host_submit(stream, [shape, kernel = std::move(kernel)] { host_grid_run(shape, kernel); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int) {
    HostLock lock(host_runtime().mutex);
    *stream = new CUstream_st();
    (*stream)->legacy = (flags & cudaStreamNonBlocking) == 0;
    host_runtime().streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

static cudaError_t drain(HostLock &lock, CUstream_st *stream) {
    if (stream->capture) {
        return host_error(cudaErrorStreamCaptureUnsupported);
    }
    const uint64_t count = stream->submitted;
    host_drain_until(lock, [stream, count] { return stream->completed >= count; });
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    HostRuntime &runtime = host_runtime();
    HostLock lock(runtime.mutex);
    if (!stream || std::find(runtime.streams.begin(), runtime.streams.end(), stream) == runtime.streams.end()) {
        return host_error(cudaErrorInvalidResourceHandle);
    }
    // Others may look at its counters until they have run.
    host_drain_until(lock, [&runtime] {
        return std::all_of(runtime.streams.begin(), runtime.streams.end(),
                           [](const CUstream_st *s) { return s->completed == s->submitted; });
    });
    runtime.streams.erase(std::find(runtime.streams.begin(), runtime.streams.end(), stream));
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    HostLock lock(host_runtime().mutex);
    return drain(lock, host_stream(stream));
}

cudaError_t cudaDeviceSynchronize(void) {
    HostLock lock(host_runtime().mutex);
    const std::vector<CUstream_st *> streams = host_runtime().streams;
    for (CUstream_st *stream : streams) {
        const cudaError_t error = drain(lock, stream);
        if (error != cudaSuccess) {
            return error;
        }
    }
    return cudaSuccess;
}

// Asking lets one piece of work run, so that a loop that asks comes to an end.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
    HostLock lock(host_runtime().mutex);
    CUstream_st *stream = host_stream(handle);
    if (stream->capture) {
        return host_error(cudaErrorStreamCaptureUnsupported);
    }
    if (stream->completed < stream->submitted) {
        host_try(lock);
    }
    return stream->completed < stream->submitted ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *context) {
    HostLock lock(host_runtime().mutex);
    return host_submit(stream, [function, context] { function(context); });
}

// ---- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
    *event = new CUevent_st();
    (*event)->timed = (flags & cudaEventDisableTiming) == 0;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    HostLock lock(host_runtime().mutex);
    host_drain_until(lock, [event] { return event->happened >= event->recorded; });
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
    HostLock lock(host_runtime().mutex);
    CUstream_st *stream = host_stream(handle);
    event->capture = stream->capture;
    if (stream->capture) {
        event->after = stream->after;
        return cudaSuccess;
    }
    const uint64_t version = ++event->recorded;
    return host_submit(stream, [event, version] {
        HostLock inner(host_runtime().mutex);
        event->happened = std::max(event->happened, version);
        event->at_ms = host_now_ms();
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int) {
    HostLock lock(host_runtime().mutex);
    CUstream_st *stream = host_stream(handle);
    if (event->capture) {
        if (stream->capture && stream->capture != event->capture) {
            return host_error(cudaErrorStreamCaptureInvalidated);
        }
        stream->capture = event->capture;
        stream->after.insert(event->after.begin(), event->after.end());
        return cudaSuccess;
    }
    if (stream->capture) {
        return cudaSuccess;  // what was recorded outside is before the graph's launch by the launcher's own order
    }
    const uint64_t version = event->recorded;
    const cudaError_t error = host_submit(stream, [] {});
    const std::function<bool()> order = stream->queue.back().ready;
    stream->queue.back().ready = [event, version, order] {
        return event->happened >= version && (!order || order());
    };
    return error;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    HostLock lock(host_runtime().mutex);
    const uint64_t version = event->recorded;
    host_drain_until(lock, [event, version] { return event->happened >= version; });
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    HostLock lock(host_runtime().mutex);
    if (event->happened < event->recorded) {
        host_try(lock);
    }
    return event->happened < event->recorded ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    HostLock lock(host_runtime().mutex);
    if (!start->timed || !end->timed || start->recorded == 0 || end->recorded == 0) {
        return host_error(cudaErrorInvalidResourceHandle);
    }
    if (start->happened < start->recorded || end->happened < end->recorded) {
        return host_error(cudaErrorNotReady);
    }
    *ms = (float)(end->at_ms - start->at_ms);
    return cudaSuccess;
}

// ---- graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode) {
    HostLock lock(host_runtime().mutex);
    if (!stream || stream->capture) {
        return host_error(cudaErrorStreamCaptureUnsupported);
    }
    stream->capture = new HostCapture();
    stream->capture->origin = stream;
    stream->after.clear();
    return cudaSuccess;
}

// Every node comes before the origin's end, or a forked stream never joined.
static bool all_joined(const HostCapture &capture, const std::set<size_t> &last) {
    std::set<size_t> seen;
    std::vector<size_t> open(last.begin(), last.end());
    while (!open.empty()) {
        const size_t node = open.back();
        open.pop_back();
        if (seen.insert(node).second) {
            open.insert(open.end(), capture.nodes[node].after.begin(), capture.nodes[node].after.end());
        }
    }
    return seen.size() == capture.nodes.size();
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    HostLock lock(host_runtime().mutex);
    HostCapture *capture = stream ? stream->capture : nullptr;
    *graph = nullptr;
    if (!capture || capture->origin != stream) {
        return host_error(cudaErrorStreamCaptureInvalidated);
    }
    const bool joined = all_joined(*capture, stream->after);
    for (CUstream_st *other : host_runtime().streams) {
        if (other->capture == capture) {
            other->capture = nullptr;
            other->after.clear();
        }
    }
    if (joined) {
        *graph = new CUgraph_st{std::move(capture->nodes)};
    }
    delete capture;
    return joined ? cudaSuccess : host_error(cudaErrorStreamCaptureUnjoined);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
    *exec = new CUgraphExec_st{graph->nodes};
    return cudaSuccess;
}

static void run_nodes(const std::vector<HostNode> &nodes) {
    std::vector<bool> finished(nodes.size());
    for (size_t left = nodes.size(); left > 0; left--) {
        std::vector<size_t> able;
        for (size_t i = 0; i < nodes.size(); i++) {
            if (!finished[i] && std::all_of(nodes[i].after.begin(), nodes[i].after.end(),
                                            [&finished](size_t before) { return finished[before]; })) {
                able.push_back(i);
            }
        }
        const size_t chosen = able[host_random() % able.size()];
        nodes[chosen].run();
        finished[chosen] = true;
    }
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    HostLock lock(host_runtime().mutex);
    return host_submit(stream, [nodes = exec->nodes] { run_nodes(nodes); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}

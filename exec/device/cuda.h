// The CUDA device, and what its files share. One host thread issues the step in issue order; streams and events enforce
// the order the program requires, as step.h defines it after CUDA's own rule.

#pragma once

#include <cuda_runtime.h>

#include "exec/device/issue_runs.h"
#include "exec/device/placement.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/kernels_cuda.h"

extern const DeviceTable device_cuda;

// ---------------------------------------------------------------------------------------------- lanes (cuda_lanes.c)

enum { CUDA_MAX_STREAMS = 16 };

typedef struct CudaLanes {
    cudaStream_t streams[CUDA_MAX_STREAMS];
    int stream_count;
    int *of_lane;               // by lane: its stream; lanes of one communicator share one
    cudaEvent_t *events;        // by event slot
    const int32_t *first_slot;  // by event
    int32_t slot_count;
} CudaLanes;

Status cuda_lanes_open(const StepProgram *program, Arena *arena, CudaLanes *lanes, Error *error);
void cuda_lanes_close(CudaLanes *lanes);
int32_t cuda_event_slot(const CudaLanes *lanes, const StepProgram *program, const EventRef *ref,
                        const StepInstance *instance);

// ---------------------------------------------------------------------------------------------- staging (cuda_stage.c)

// Pinned memory through which a host transport sees operands: one area per stream with collectives.
typedef struct CudaStages {
    char *area[CUDA_MAX_STREAMS];
    int64_t bytes[CUDA_MAX_STREAMS];
} CudaStages;

// Tokens come from the host; an area may be refilled once its last copy is done.
enum { CUDA_TOKEN_AREAS = 4 };
typedef struct CudaTokens {
    int32_t *area;  // pinned: CUDA_TOKEN_AREAS times tokens, then targets
    cudaEvent_t copied[CUDA_TOKEN_AREAS];
    int64_t rows;  // of one micro-batch
    int next;
} CudaTokens;

// ---------------------------------------------------------------------------------------------- products (cuda_gemm.c)

typedef struct CudaGemms {
    GemmLibrary library;
    GemmWorkshop shop;
    GemmPlan *plans;
    int count;
    int32_t *of_task;  // by task: its plan, -1 where it has none
    GemmChoice *kept;  // from earlier runs, of this chip and library
    int kept_count;
    char chip[320];     // the name under which they are stored
    ChipPrice *prices;  // of all plans
} CudaGemms;

// ---------------------------------------------------------------------------------------------- rows (cuda_counts.c)

// Where the device counts expert rows, and what the host knows of them.
typedef struct CudaCount {
    const char *at;
    int32_t *host;  // pinned
    int64_t bytes;
    bool known;
} CudaCount;

typedef struct CudaCounts {
    CudaCount *places;  // sorted by address
    int32_t count;
    char *area;
} CudaCounts;

// ---------------------------------------------------------------------------------------------- graphs (cuda_graphs.c)

// What a fixed run needs around its graph: event slots of the tasks before it, and of its own.
typedef struct CudaGraphEdges {
    int32_t *waits, *records;
    int32_t wait_count, record_count;
} CudaGraphEdges;

typedef struct CudaGraphs {
    IssueRuns runs;
    CudaGraphEdges *edges;    // by run; of fixed runs that do not repeat an earlier one
    cudaGraphExec_t *graphs;  // likewise; NULL until captured
    double *work;             // likewise: what its last mark leaves to the next one
    int32_t next;             // no earlier run begins at the next place to issue
    bool off;
} CudaGraphs;

// ---------------------------------------------------------------------------------------------- life (cuda_marks.c)

typedef struct CudaMarks {
    unsigned *count;  // pinned: incremented by streams
    unsigned seen;    // by the host
    double work;      // put into streams since the last mark
} CudaMarks;

// ---------------------------------------------------------------------------------------------- spans (cuda_trace.c)

typedef struct CudaTrace {
    cudaEvent_t origin, *begin, *end;  // by place in issue order; NULL if the step is too long
    int64_t instances, next;
    bool on;
} CudaTrace;

typedef struct CudaAttentions CudaAttentions;  // cuda_attention.c

// ---------------------------------------------------------------------------------------------- the device

struct Device {
    DeviceSetup setup;
    Placement placement;
    struct cudaDeviceProp properties;
    void *arena;  // its own; NULL where the transport provided the memory
    CudaLanes lanes;
    CudaStages stages;
    CudaTokens tokens;
    CudaGemms gemms;
    CudaCounts counts;
    CudaGraphs graphs;
    CudaMarks marks;
    CudaTrace trace;
    CudaAttentions *attention;
    void *workspace[CUDA_MAX_STREAMS];  // for kernels, by stream
    int64_t workspace_bytes[CUDA_MAX_STREAMS];
    int32_t *positions;    // on the device
    int64_t device_bytes;  // memory this rank allocated
    bool shared;           // with other ranks, as far as this rank can tell
    Error failure;         // the first launch failure
};

Status cuda_failed(Error *error, int code, const char *what);
#define CUDA_TRY(call, what)                                                                                           \
    do {                                                                                                               \
        const int cuda_code_ = (int)(call);                                                                            \
        if (cuda_code_ != 0) {                                                                                         \
            return cuda_failed(error, cuda_code_, what);                                                               \
        }                                                                                                              \
    } while (0)

// Device memory that is kept until the device is closed.
Status cuda_take(Device *cuda, int64_t bytes, const char *what, void **memory, Error *error);
// Keeps the first launch failure; the next stage or synchronize reports it.
void cuda_note_failure(Device *cuda, const Task *task, const char *words);

static inline cudaStream_t cuda_stream(const Device *cuda, const Task *task) {
    return cuda->lanes.streams[cuda->lanes.of_lane[task->lane]];
}

// A task need not wait for what its own stream recorded.
static inline bool cuda_same_stream(const Device *cuda, const EventRef *ref, const Task *task) {
    const int *of_lane = cuda->lanes.of_lane;
    return of_lane[cuda->setup.program->events[ref->event].lane] == of_lane[task->lane];
}

static inline KernelStore store_of(const TaskCall *call, int index) {
    return call_dtype(call, index) == DTYPE_BF16 ? KERNEL_BF16 : KERNEL_FP32;
}

static inline KernelCuda cuda_place(const TaskCall *call, const Device *cuda, cudaStream_t stream) {
    const int at = cuda->lanes.of_lane[call->task->lane];
    return (KernelCuda){.stream = stream,
                        .processors = cuda->properties.multiProcessorCount,
                        .workspace = cuda->workspace[at],
                        .workspace_bytes = cuda->workspace_bytes[at]};
}

// Runs one compute task on a stream.
void cuda_issue(Device *cuda, const StepInstance *instance, cudaStream_t stream);

// Launches on its lane's stream; returns a cudaError_t as int.
typedef int CudaTask(const TaskCall *call, const KernelCuda *at);
extern CudaTask *const cuda_tasks[TASK_KIND_COUNT];

Status cuda_check(const StepProgram *program, Error *error);

Status cuda_stages_open(Device *cuda, Error *error);
void cuda_stages_close(Device *cuda);
// Copies what a collective reads to its lane's area, which becomes its operands; then copies back what it wrote.
Status cuda_stage(Device *cuda, const StepInstance *instance, DeviceTransfer *transfer, Error *error);
Status cuda_unstage(Device *cuda, const StepInstance *instance, const DeviceTransfer *transfer, Error *error);
int cuda_load_tokens(const TaskCall *call, const KernelCuda *at);

Status cuda_gemms_open(Device *cuda, Arena *arena, Error *error);
void cuda_gemms_close(Device *cuda);
int cuda_gemm(const TaskCall *call, const KernelCuda *at);

CudaTask cuda_grouped_gemm;

// Expert rows: products need their sizes on the host, which waits for them once after each count.
Status cuda_counts_open(Device *cuda, Arena *arena, Error *error);
void cuda_counts_close(Device *cuda);
void cuda_counts_forget(Device *cuda, const StepInstance *instance);  // before a task that counts
// Brings the counts at this arena address to the host; the stream is past the task that counted. A cudaError_t.
int cuda_counts_at(Device *cuda, const void *at, cudaStream_t stream, const int32_t **counts);
// call_groups with counts the host can read.
int cuda_groups(const TaskCall *call, cudaStream_t stream, int came, KernelGroups *groups);

// cuda_tasks_experts.c
CudaTask cuda_route, cuda_route_backward, cuda_permute, cuda_unpermute, cuda_unpermute_backward, cuda_gated,
    cuda_gated_backward, cuda_expert_bias_gradient;

Status cuda_attention_open(Device *cuda, Arena *arena, Error *error);
void cuda_attention_close(Device *cuda);
CudaTask cuda_attention_forward, cuda_attention_backward;

Status cuda_workspaces_open(Device *cuda, Error *error);            // after the arena is allocated
Status cuda_state_begin(Device *cuda, Arena *arena, Error *error);  // cuda_initial.c

Status cuda_marks_open(Device *cuda, Error *error);
void cuda_marks_close(Device *cuda);
double cuda_marks_work(const Task *task);
// Notes this much more work in the stream, and puts a mark after it once enough has accumulated.
int cuda_marks_add(Device *cuda, cudaStream_t stream, double work);
bool cuda_moved(Device *cuda);
// Waits until the event has happened, or where it is NULL until the stream is empty: a cudaError_t as int.
int cuda_settle(Device *cuda, cudaStream_t stream, cudaEvent_t event);

void cuda_graphs_open(Device *cuda, Arena *arena);
void cuda_graphs_close(Device *cuda);
// Captures every fixed run; nothing executes. Call with idle streams, after a first step.
void cuda_graphs_capture(Device *cuda);
// Task count of the run that begins at this place in issue order; 0 = none begins there, or not as a graph.
int64_t cuda_graphs_launch(Device *cuda, int64_t ordinal);

Status cuda_measure(Device *cuda, const DeviceWork *work, DeviceTiming *timing, Error *error);

Status cuda_trace_open(Device *cuda, Arena *arena, Error *error);
void cuda_trace_close(Device *cuda);

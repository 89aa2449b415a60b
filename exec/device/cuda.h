// The CUDA device, and what its files share. One host thread issues the step in issue order; streams and events keep
// the order that the program asks for, as step.h words it after CUDA's own rule.

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
    int *of_lane;               // by lane: its stream. Lanes of one communicator have one
    cudaEvent_t *events;        // by event slot
    const int32_t *first_slot;  // by event
    int32_t slot_count;
} CudaLanes;

Status cuda_lanes_open(const StepProgram *program, Arena *arena, CudaLanes *lanes, Error *error);
void cuda_lanes_close(CudaLanes *lanes);
int32_t cuda_event_slot(const CudaLanes *lanes, const StepProgram *program, const EventRef *ref,
                        const StepInstance *instance);

// ---------------------------------------------------------------------------------------------- staging (cuda_stage.c)

// Pinned memory through which a transport of the host sees operands: one area for each stream with collectives.
typedef struct CudaStages {
    char *area[CUDA_MAX_STREAMS];
    int64_t bytes[CUDA_MAX_STREAMS];
} CudaStages;

// Tokens are made by the host; an area may be filled again once its last copy is done.
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
    GemmChoice *kept;  // from before, of this chip and library
    int kept_count;
    char chip[320];     // the name by which they are kept
    ChipPrice *prices;  // of all plans
} CudaGemms;

// ---------------------------------------------------------------------------------------------- rows (cuda_counts.c)

// Where the device counts rows of experts, and what the host knows of it.
typedef struct CudaCount {
    const char *at;
    int32_t *host;  // pinned
    int64_t bytes;
    bool known;
} CudaCount;

typedef struct CudaCounts {
    CudaCount *places;  // in the order of their addresses
    int32_t count;
    char *area;
} CudaCounts;

// ---------------------------------------------------------------------------------------------- graphs (cuda_graphs.c)

// What a fixed run needs around its graph: slots of events of the tasks before it, and of its own.
typedef struct CudaGraphEdges {
    int32_t *waits, *records;
    int32_t wait_count, record_count;
} CudaGraphEdges;

typedef struct CudaGraphs {
    IssueRuns runs;
    CudaGraphEdges *edges;    // by run; of fixed ones that are not the same as an earlier one
    cudaGraphExec_t *graphs;  // likewise; NULL until captured
    double *work;             // likewise: what its last mark leaves to the next one
    int32_t next;             // no earlier run begins at what is issued next
    bool off;
} CudaGraphs;

// ---------------------------------------------------------------------------------------------- life (cuda_marks.c)

typedef struct CudaMarks {
    unsigned *count;  // pinned: streams count here
    unsigned seen;    // by the host
    double work;      // given to streams since the last mark
} CudaMarks;

// ---------------------------------------------------------------------------------------------- spans (cuda_trace.c)

typedef struct CudaTrace {
    cudaEvent_t origin, *begin, *end;  // by place in issue order; NULL where the step is too long
    int64_t instances, next;
    bool on;
} CudaTrace;

typedef struct CudaAttentions CudaAttentions;  // cuda_attention.c

// ---------------------------------------------------------------------------------------------- the device

struct Device {
    DeviceSetup setup;
    Placement placement;
    struct cudaDeviceProp properties;
    void *arena;  // of its own; NULL where the transport gave the memory
    CudaLanes lanes;
    CudaStages stages;
    CudaTokens tokens;
    CudaGemms gemms;
    CudaCounts counts;
    CudaGraphs graphs;
    CudaMarks marks;
    CudaTrace trace;
    CudaAttentions *attention;
    void *workspace[CUDA_MAX_STREAMS];  // of kernels, by stream
    int64_t workspace_bytes[CUDA_MAX_STREAMS];
    int32_t *positions;    // on the device
    int64_t device_bytes;  // of memory that this rank took
    bool shared;           // with other ranks, as far as this one can tell
    Error failure;         // the first one of a launch
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
// Keeps the first failure of a launch; the next stage or synchronize says it.
void cuda_note_failure(Device *cuda, const Task *task, const char *words);

static inline cudaStream_t cuda_stream(const Device *cuda, const Task *task) {
    return cuda->lanes.streams[cuda->lanes.of_lane[task->lane]];
}

// What its own stream recorded a task need not wait for.
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

// One compute task on a stream.
void cuda_issue(Device *cuda, const StepInstance *instance, cudaStream_t stream);

// Where its lane is; returns a cudaError_t as int.
typedef int CudaTask(const TaskCall *call, const KernelCuda *at);
extern CudaTask *const cuda_tasks[TASK_KIND_COUNT];

Status cuda_check(const StepProgram *program, Error *error);

Status cuda_stages_open(Device *cuda, Error *error);
void cuda_stages_close(Device *cuda);
// Brings what a collective reads to its lane's area, which becomes its operands; then takes what it wrote there.
Status cuda_stage(Device *cuda, const StepInstance *instance, DeviceTransfer *transfer, Error *error);
Status cuda_unstage(Device *cuda, const StepInstance *instance, const DeviceTransfer *transfer, Error *error);
int cuda_load_tokens(const TaskCall *call, const KernelCuda *at);

Status cuda_gemms_open(Device *cuda, Arena *arena, Error *error);
void cuda_gemms_close(Device *cuda);
int cuda_gemm(const TaskCall *call, const KernelCuda *at);

CudaTask cuda_grouped_gemm;

// Rows of experts: products want their sizes on the host, which waits for them once after each time they were counted.
Status cuda_counts_open(Device *cuda, Arena *arena, Error *error);
void cuda_counts_close(Device *cuda);
void cuda_counts_forget(Device *cuda, const StepInstance *instance);  // before a task that counts
// On the host what is counted at this place of the arena; the stream is behind the task that counted. A cudaError_t.
int cuda_counts_at(Device *cuda, const void *at, cudaStream_t stream, const int32_t **counts);
// call_groups with counts that the host can read.
int cuda_groups(const TaskCall *call, cudaStream_t stream, int came, KernelGroups *groups);

// cuda_tasks_experts.c
CudaTask cuda_route, cuda_route_backward, cuda_permute, cuda_unpermute, cuda_unpermute_backward, cuda_gated,
    cuda_gated_backward, cuda_expert_bias_gradient;

Status cuda_attention_open(Device *cuda, Arena *arena, Error *error);
void cuda_attention_close(Device *cuda);
CudaTask cuda_attention_forward, cuda_attention_backward;

Status cuda_workspaces_open(Device *cuda, Error *error);            // after the arena has its place
Status cuda_state_begin(Device *cuda, Arena *arena, Error *error);  // cuda_initial.c

Status cuda_marks_open(Device *cuda, Error *error);
void cuda_marks_close(Device *cuda);
double cuda_marks_work(const Task *task);
// So much more work is in the stream; a mark behind it where it has become enough.
int cuda_marks_add(Device *cuda, cudaStream_t stream, double work);
bool cuda_moved(Device *cuda);
// Until the event has happened, or the stream is empty where it is NULL: a cudaError_t as int.
int cuda_settle(Device *cuda, cudaStream_t stream, cudaEvent_t event);

void cuda_graphs_open(Device *cuda, Arena *arena);
void cuda_graphs_close(Device *cuda);
// Captures every fixed run; nothing runs. Call with idle streams, after a first step.
void cuda_graphs_capture(Device *cuda);
// The run that begins at this place in issue order: how many tasks it has; 0 = none begins there, or not as a graph.
int64_t cuda_graphs_launch(Device *cuda, int64_t ordinal);

Status cuda_measure(Device *cuda, const DeviceWork *work, DeviceTiming *timing, Error *error);

Status cuda_trace_open(Device *cuda, Arena *arena, Error *error);
void cuda_trace_close(Device *cuda);

// A graph for each distinct fixed run. Waits of its tasks for events outside the run come before the launch; their own
// event records come after it. Captured after the first step, when every library has loaded its code. A run that cannot
// be captured is reported once, and all runs are then issued task by task.

#include "exec/device/cuda.h"
#include "sim/base/log.h"

static const Task *task_of(const Device *cuda, const StepInstance *instance) {
    return &cuda->setup.program->tasks[instance->task];
}

static bool takes_graph(const IssueRuns *runs, int32_t run) {
    return runs->runs[run].kind == RUN_FIXED && runs->runs[run].same_as == run;
}

typedef struct Marks {
    uint8_t *recorded, *waited;  // by event slot: by this run so far
} Marks;

static void add_once(uint8_t *mark, int32_t slot, int32_t *list, int32_t *count) {
    if (!mark[slot]) {
        mark[slot] = 1;
        list[(*count)++] = slot;
    }
}

static void edges_find(Device *cuda, const IssueRun *run, const Marks *marks, CudaGraphEdges *edges) {
    const StepProgram *program = cuda->setup.program;
    StepCursor cursor = run->cursor;
    StepInstance instance;
    for (int32_t i = 0; i < run->count && step_cursor_next(&cursor, &instance); i++) {
        const Task *task = task_of(cuda, &instance);
        for (int32_t w = 0; w < task->wait_count; w++) {
            const EventRef *ref = &program->event_refs[task->first_wait + w];
            const int32_t slot = cuda_event_slot(&cuda->lanes, program, ref, &instance);
            if (!marks->recorded[slot] && !cuda_same_stream(cuda, ref, task)) {
                add_once(marks->waited, slot, edges->waits, &edges->wait_count);
            }
        }
        for (int32_t r = 0; r < task->record_count; r++) {
            add_once(marks->recorded,
                     cuda_event_slot(&cuda->lanes, program, &program->event_refs[task->first_record + r], &instance),
                     edges->records, &edges->record_count);
        }
    }
}

static void edges_open(Device *cuda, Arena *arena, const Marks *marks, int32_t *waits, int32_t *records) {
    CudaGraphs *graphs = &cuda->graphs;
    for (int32_t r = 0; r < graphs->runs.count; r++) {
        CudaGraphEdges *edges = &graphs->edges[r];
        if (!takes_graph(&graphs->runs, r)) {
            continue;
        }
        *edges = (CudaGraphEdges){.waits = waits, .records = records};
        edges_find(cuda, &graphs->runs.runs[r], marks, edges);
        edges->waits = ARENA_ARRAY(arena, int32_t, edges->wait_count + 1);
        edges->records = ARENA_ARRAY(arena, int32_t, edges->record_count + 1);
        for (int32_t i = 0; i < edges->wait_count; i++) {
            edges->waits[i] = waits[i];
            marks->waited[waits[i]] = 0;
        }
        for (int32_t i = 0; i < edges->record_count; i++) {
            edges->records[i] = records[i];
            marks->recorded[records[i]] = 0;
        }
    }
}

void cuda_graphs_open(Device *cuda, Arena *arena) {
    CudaGraphs *graphs = &cuda->graphs;
    const int32_t slots = cuda->lanes.slot_count + 1;
    const Marks marks = {ARENA_ARRAY(arena, uint8_t, slots), ARENA_ARRAY(arena, uint8_t, slots)};
    graphs->runs = issue_runs_cut(cuda->setup.program, arena);
    graphs->off = cuda->setup.singly;
    graphs->edges = ARENA_ARRAY(arena, CudaGraphEdges, graphs->runs.count + 1);
    graphs->graphs = ARENA_ARRAY(arena, cudaGraphExec_t, graphs->runs.count + 1);
    graphs->work = ARENA_ARRAY(arena, double, graphs->runs.count + 1);
    edges_open(cuda, arena, &marks, ARENA_ARRAY(arena, int32_t, slots), ARENA_ARRAY(arena, int32_t, slots));
}

void cuda_graphs_close(Device *cuda) {
    CudaGraphs *graphs = &cuda->graphs;
    for (int32_t r = 0; graphs->graphs && r < graphs->runs.count; r++) {
        if (graphs->graphs[r]) {
            cudaGraphExecDestroy(graphs->graphs[r]);
        }
    }
}

// ---------------------------------------------------------------------------------------------- capture and launch

static const Task *first_task(const Device *cuda, const IssueRun *run) {
    StepCursor cursor = run->cursor;
    StepInstance instance = {0};
    step_cursor_next(&cursor, &instance);
    return task_of(cuda, &instance);
}

static int capture(Device *cuda, const IssueRun *run, cudaStream_t stream, cudaGraphExec_t *exec) {
    cudaGraph_t graph = NULL;
    StepCursor cursor = run->cursor;
    StepInstance instance;
    int code = (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (code != 0) {
        return code;
    }
    for (int32_t i = 0; i < run->count && step_cursor_next(&cursor, &instance); i++) {
        cuda_issue(cuda, &instance, stream);
    }
    code = (int)cudaStreamEndCapture(stream, &graph);
    if (code == 0) {
        code = (int)cudaGraphInstantiate(exec, graph, 0);
        cudaGraphDestroy(graph);
    }
    return code;
}

static void graphs_drop(Device *cuda, const char *words) {
    CudaGraphs *graphs = &cuda->graphs;
    log_note("device cuda: a run of tasks cannot be captured as a graph (%s): steps go task by task", words);
    graphs->off = true;
    cuda->failure = (Error){0};
    cudaGetLastError();  // sticky until read
}

void cuda_graphs_capture(Device *cuda) {
    CudaGraphs *graphs = &cuda->graphs;
    for (int32_t r = 0; !graphs->off && r < graphs->runs.count; r++) {
        if (!takes_graph(&graphs->runs, r) || graphs->graphs[r]) {
            continue;
        }
        const IssueRun *run = &graphs->runs.runs[r];
        cuda->marks.work = 0;
        const int code = capture(cuda, run, cuda_stream(cuda, first_task(cuda, run)), &graphs->graphs[r]);
        graphs->work[r] = cuda->marks.work;
        if (code != 0) {
            graphs_drop(cuda, cudaGetErrorString((cudaError_t)code));
        } else if (cuda->failure.status != STATUS_OK) {
            graphs_drop(cuda, cuda->failure.message);
        }
    }
}

int64_t cuda_graphs_launch(Device *cuda, int64_t ordinal) {
    CudaGraphs *graphs = &cuda->graphs;
    while (graphs->next < graphs->runs.count - 1 && graphs->runs.runs[graphs->next].first < ordinal) {
        graphs->next++;
    }
    const IssueRun *run = &graphs->runs.runs[graphs->next];
    const int32_t first = run->same_as;
    if (graphs->off || cuda->trace.on || run->first != ordinal || !graphs->graphs[first]) {
        return 0;
    }
    const CudaGraphEdges *edges = &graphs->edges[first];
    const Task *task = first_task(cuda, run);
    const cudaStream_t stream = cuda_stream(cuda, task);
    int code = 0;
    for (int32_t i = 0; i < edges->wait_count; i++) {
        code |= (int)cudaStreamWaitEvent(stream, cuda->lanes.events[edges->waits[i]], 0);
    }
    code |= (int)cudaGraphLaunch(graphs->graphs[first], stream);
    code |= cuda_marks_add(cuda, stream, graphs->work[first]);
    for (int32_t i = 0; i < edges->record_count; i++) {
        code |= (int)cudaEventRecord(cuda->lanes.events[edges->records[i]], stream);
    }
    if (code != 0) {
        cuda_note_failure(cuda, task, cudaGetErrorString(cudaPeekAtLastError()));
    }
    return run->count;
}

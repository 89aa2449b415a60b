// What the tuner sends to its workers, and the file it travels in (schema ndtune.run-request/2). Both sides lower the
// program from model, plan and target independently; the template hash proves that they agree.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/frameworks/target.h"
#include "sim/model/model.h"
#include "sim/plan/plan.h"
#include "sim/step/chip_price.h"

typedef enum {
    LANES_SERIAL,
    LANES_ASYNC,
    LANES_COUNT
} LaneMode;  // issue order on one thread | a thread per communicator
typedef enum {
    FAULT_NONE,
    FAULT_HANG,
    FAULT_EXIT,
    FAULT_SKIP,
    FAULT_SIZE,
    FAULT_DELAY,
    FAULT_PACE,
    FAULT_COUNT
} FaultAction;

// What the workers do once all are present: train, measure the machine, check it.
typedef enum { JOB_TRAIN, JOB_PROBE, JOB_PREFLIGHT, JOB_COUNT } WorkerJob;

extern const char *const lane_mode_names[LANES_COUNT];     // "serial" "async"
extern const char *const fault_action_names[FAULT_COUNT];  // "none" "hang" ... "delay" "pace"

typedef struct RunFault {
    FaultAction action;
    int rank;
    int task;        // index into the program's tasks; strikes at its first instance
    int step;        // in this step, from 0
    double delay_s;  // FAULT_PACE: minimum duration of every kernel, on every rank and in every step
} RunFault;

typedef struct RunOptions {
    int steps;
    uint64_t seed;
    double lr, beta1, beta2, eps, weight_decay, clip;
    const char *data_path;  // tokens (exec/data/token_file.h); NULL = a chain that a model can learn
    int64_t data_tokens;    // of that file, counted by the launcher; 0 = no file
    const char *device, *transport;
    LaneMode lanes;
    uint64_t jitter_seed;      // 0 = off: random waits before and after tasks
    double timeout_s;          // longest a rank may make no progress, waiting or in a task
    int threads;               // per rank; 0 = cores / world, at least 1
    bool spans;                // return a span per task instance of one step
    bool bitwise;              // exact sums: equal bits on every mesh, slowly
    bool deterministic;        // equal bits in repeated runs on this mesh
    bool poison;               // fill the arena with NaN first
    const char *moments_path;  // rank 0 writes the first moments there after the last step; NULL = not (gather_state.h)
    const char *weights_path;  // likewise the weights
    RunFault fault;
    const ChipPrice *prices;  // already known; a device searches for those not listed
    int price_count;
} RunOptions;

// 10 steps, seed 1, lr 5e-4, betas 0.9 and 0.95, eps 1e-8, no decay, clip 1, cpu over shm, serial, 120 s.
RunOptions run_options_default(void);

typedef struct RunRequest {
    WorkerJob job;
    ModelSpec model;
    TrainPlan plan;
    const Target *target;
    RunOptions options;
    uint64_t template_hash;
    int segment_fd;            // -1: one rank, or no shared memory
    int launcher_pid;          // a worker whose parent is not this process exits; 0 = not checked
    const char *result_path;   // written by rank 0; "" where ranks join by rendezvous
    const char *failure_path;  // written by the first rank that fails; "" likewise
} RunRequest;

Status run_request_save(const RunRequest *request, const char *path, Error *error);
Status run_request_load(const char *path, Arena *arena, RunRequest *request, Error *error);
Status run_request_text(const RunRequest *request, Arena *arena, const char **text, Error *error);
Status run_request_parse(const char *text, Arena *arena, RunRequest *request, Error *error);

// Inside sim/cost: compute kernels and the components of their time. Callers outside use cost.h.

#pragma once

#include "sim/cost/cost.h"

typedef struct KernelTime {
    double seconds;
    double memory_s;      // what the operand traffic alone would take at the bandwidth that the kernel reaches
    double memory_bound;  // 0..1
} KernelTime;

typedef struct GemmShape {
    int64_t m, n, k;
    int64_t groups;         // products of that size, one kernel; 0 = one
    int output_bytes;       // traffic per element of C
    bool trans_a, trans_b;  // A is stored [k, m], B [n, k]
    Dtype output;           // with the next field, the key by which timed products are looked up
    bool accumulate;
    bool casts_input;   // fp8: A is cast first, as in the measurements of the rates
    double fp8_share;   // of the rate, for sums in full precision, as of gradients, and scales per row; 0 = whole
    bool block_scales;  // fp8: a scale for every 32 elements along K
    bool fused;         // a kernel of Transformer Engine's fused operations
    bool padded;        // rows that are no whole loads are padded, by whom what makes them is compiled
} GemmShape;

KernelTime gemm_time(const Accelerator *accelerator, Dtype dtype, const GemmShape *shape);  // running alone

typedef struct AttentionShape {
    AttentionKernel kernel;
    double sequences;               // or packed documents
    int heads, kv_heads, head_dim;  // kv_heads 0: as many as heads
    bool uneven_heads;              // head_dim is the mean of those of queries and values
    double queries, keys;
    double visible_share;
    double window;  // keys that a query of a causal block sees at most; 0 = all before it
    bool diagonal;  // the block holds the causal diagonal, where tiles are half empty
    bool drops;     // probabilities are dropped at random
    bool fills;     // eager: scores are masked by masked_fill
    bool backward;
    Fused softmax;   // of the eager kernel: scale, mask and softmax by one kernel, one by one, or compiled into one
    bool reference;  // FlexAttention where nothing compiles it: operations of their own, whatever the kernel
    bool fp8;  // products of queries, keys and values in fp8, cast first, where the profile has that kernel's rates
    bool block_scales;  //   with a scale for every 32 elements
} AttentionShape;

KernelTime attention_time(const Accelerator *accelerator, Dtype dtype, const AttentionShape *shape);

// What its formula takes of every chip, for a probe that reads it backwards.
extern const double attention_diagonal_tile, attention_query_tile, attention_backward_flops;

// Of the matrices of the unit that the task updates.
KernelTime orthogonal_time(const Accelerator *accelerator, const StepProgram *program, const Task *task);

// The profile's row for a kernel ("flash"; "ck" is one for "cudnn"), nearest in head_dim by ratio; rows of others only
// when it has none; NULL when there is no row at all.
const AttentionRate *attention_rate(const Accelerator *accelerator, const char *kernel, int head_dim);

bool attention_has_row(const Accelerator *accelerator, const char *kernel);
bool attention_lacks_cudnn(const Accelerator *accelerator);  // runs ROCm: CK's and AITER's kernels have that row

#define H100_CLOCK_HZ 1.83e9  // at which the peak rates of H100 and B200 are stated
static inline double cost_clock_hz(const Accelerator *accelerator) {
    return accelerator->clock_hz > 0 ? accelerator->clock_hz : H100_CLOCK_HZ;
}

// `kernels` streaming kernels that move `bytes` together.
KernelTime stream_time(const Accelerator *accelerator, double bytes, int kernels);

// Launches on the way to experts and back (expert_launches.c); 0 = not counted there.
int expert_launches_counted(const Target *target, const TrainPlan *plan, const Task *task);
static inline int expert_launches(const Target *target, const TrainPlan *plan, const Task *task) {
    const bool on_way = task->kind >= TASK_ROUTE && task->kind <= TASK_UNPERMUTE_BACKWARD;
    return on_way || task->kind == TASK_ALL_TO_ALL ? expert_launches_counted(target, plan, task) : 0;
}
// Of these, launches inside an operation, behind its first.
int expert_launches_in_operations(const Target *target, const TrainPlan *plan, const Task *task);
// Those of the exchange itself where it is one task with its counts; 0 = not counted.
int expert_launches_behind_counts(const Target *target, const TrainPlan *plan);
// Are rows copied to a multiple for the experts' fp8 products, and results back (expert_launches.c)?
bool expert_pads(const Target *target, const TrainPlan *plan);
// Calls of the library that a product of experts is made of (host.c); 1 for any other task.
int task_expert_calls(const Target *target, const TrainPlan *plan, const Task *task);
// Number of kernels of a task on the device, and of operations that the host issues for it (host.c).
int task_kernels(const Target *target, const TrainPlan *plan, const Task *task);
// Is it replayed as a part of a CUDA graph?
bool task_is_captured(const Target *target, const TrainPlan *plan, const Task *task);
double task_host_s(const Target *target, const TrainPlan *plan, const Task *task);
// Are layers Transformer Engine's? Those of today's Megatron-core are.
bool task_has_engine_layers(const Target *target, const TrainPlan *plan);
// An operation that the host issues, where it was counted (sim/SOURCES.md H7).
#define OPERATION_US 13.0
// Python of the host that modules and hooks were timed on to that of sim/SOURCES.md H7 (module_host.c's head).
#define TIMED_PYTHON ((115.0 - 20.3) / 67.5)

// Of a module of Megatron-core's, with its Python; 0 = as it is counted (module_host.c).
double module_host_operations(const Target *target, const TrainPlan *plan, const Task *task);
// Of a product of experts, without its calls.
double module_grouped_operations(const Task *task);

// What autocast moves beside the operation; does it cast weights (autocast.c)?
bool cost_autocasts_weights(const Target *target, const TrainPlan *plan);
double autocast_bytes(const Target *target, const TrainPlan *plan, const Task *task);

// Of Python around a module of the model that is sharded whole (hook_host.c).
double hook_operations(const Target *target, const TrainPlan *plan, const Task *task);

// Does the host wait for it, and how long is the device idle until that has read what came (host.c)?
HostStop task_host_stop(const Target *target, const TrainPlan *plan, const Task *task);
double task_read_back_s(const Target *target, const TrainPlan *plan, const Task *task);

// Idle time of the device after a task that is short relative to its launch (host.c).
double task_gap_s(const Target *target, const TrainPlan *plan, const Task *task, double device_s);

// Time of arithmetic on the slowest of that many chips over that on the profile's (slowest_chip.c); how many standard
// deviations it is below the middle.
double slowest_chip_factor(const Accelerator *accelerator, int chips);
double slowest_chip_sigmas(int chips);

// Stages of a pipeline by load, each with its chips; beyond so many different loads the next ones count as the last.
enum { STAGE_LOADS = 8 };
typedef struct StageLoads {
    double load[STAGE_LOADS], chips[STAGE_LOADS];
    int count;
} StageLoads;
void stage_loads_add(StageLoads *loads, double load, double chips);
// By how much the pace is slower than that of the heaviest load on chips of the profile.
double slowest_stage_factor(const Accelerator *accelerator, StageLoads *loads);

// Times a streaming kind's least traffic is moved, and the loss's bytes per logit (traffic.c).
double traffic_passes(const Target *target, const TrainPlan *plan, const Task *task);
double traffic_loss_bytes_per_logit(const Target *target, const TrainPlan *plan, const Task *task);
// What kernels of the loss, of q, k and v and of norms' sums take beyond their traffic, bound by instructions.
double traffic_issue_s(const Accelerator *accelerator, const Target *target, const TrainPlan *plan, const Task *task);

// CostModel: for each task, seconds in isolation on a ClusterProfile and what it occupies while it runs. One file per
// idea: compute_*.c (GEMM tile model, attention, memory-bound kernels), collective_*.c (one algorithm each, a table row
// each), cpu_sharing.c (ranks on the cores of one CPU), host.c (kernels and host time per task kind), cost.c
// (dispatch).
//
// Who counts which sharing, so that nothing is counted twice:
//   - Isolated time of a collective already contains the SIBLINGS of the same collective: in SPMD training all groups
//   of an
//     axis run it at once and divide the node's NICs (sim/SOURCES.md C2, q siblings). The engine must not divide
//     again.
//   - Isolated time of a task on a CPU profile already contains the other ranks on the same cores (cpu_sharing.c), all
//     of them busy; what a rank itself runs at the same time shares its part of the cores through use[].
//   - DIFFERENT tasks that run at the same time on a rank share through use[] and sm_share: the engine's business.

#pragma once

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/cluster/cluster.h"
#include "sim/step/step.h"

// Where a task's bytes travel. Sharing happens per resource.
typedef enum {
    RESOURCE_NODE_LINK,
    RESOURCE_NIC,
    RESOURCE_UPLINK,
    RESOURCE_HBM,
    RESOURCE_CORES,
    RESOURCE_COUNT
} Resource;

// When the host goes on behind a task that it waits for; what it issues then may begin at once on other lanes.
typedef enum { HOST_GOES_ON, HOST_WAITS_FOR_START, HOST_WAITS_FOR_END } HostStop;

typedef struct TaskCost {
    double seconds;      // alone on the machine, on the task's own lane; 0 = nothing to do (group of one)
    double host_s;       // host time to issue it
    HostStop host_stop;  // nothing more is issued until then
    float sm_share;      // of the accelerator's SMs, 0..1 (compute kernels: 1)
    float memory_bound;  // 1 = limited by memory bandwidth, 0 = by arithmetic
    // Share of each resource that it needs while running alone, 0..1, averaged over its seconds. NODE_LINK: of this
    // rank's links. NIC: of the part of the node's NICs that this rank's group may use next to its siblings. UPLINK:
    // likewise of the narrowest level of the network above the nodes that the group crosses. HBM: of
    // achievable bandwidth (datasheet x memory_efficiency), so a streaming kernel is near 1; a collective's wire bytes
    // are already multiplied by the profile's interference.hbm_factor.
    // CORES: of the CPU cores that are this rank's part of its node; on a CPU a collective is copies that a core makes,
    // and a rank that waits for others burns none. 0 on a GPU.
    float use[RESOURCE_COUNT];
    const char *algorithm;  // the name of a row of collective_table, "measured", "tile", "flash", "stream"
} TaskCost;

typedef struct CostModel {
    const ClusterProfile *profile;
    const Target *target;
    bool paired;  // with ep_overlap every exchange of experts has a partner: the caller mixes in those that have none
    double chip_factor;  // cost_chip_factor of the ranks there are; 0: of those of the program that is priced
} CostModel;

// What a step takes beyond its tasks (step_edges.c).
double cost_step_fixed_s(const CostModel *model, const ModelSpec *spec, const TrainPlan *plan);

// After which the last rank has a step's data; by which a step that asks for them earlier becomes longer.
double cost_data_s(const Node *node, const TrainPlan *plan);
double cost_wait_for_data(const CostModel *model, const TrainPlan *plan, double *step_s, double *overhead_s);

// A chunk's pass, with its messages to and from the chunk before it and the one after it, where that was timed, else 0.
typedef struct ChunkHost {
    double before_s, after_s;
} ChunkHost;

ChunkHost cost_chunk_host(const CostModel *model, const TrainPlan *plan);

// Does the host wait for the device in each layer of experts?
bool cost_host_waits_in_layers(const CostModel *model, const TrainPlan *plan);

// With ep_overlap forward of one micro-step overlaps backward of another: share of the exchanges without a partner.
double cost_unpaired_share(const TrainPlan *plan);

// Cost of one task of the program. Deterministic, no allocation.
TaskCost cost_task(const CostModel *model, const StepProgram *program, const Task *task);

// Costs of all tasks, equal keys computed once; the array lives in the arena (program->task_count rows).
TaskCost *cost_program(const CostModel *model, const StepProgram *program, Arena *arena);

// ---- pieces, for the analytic path and reports

// What waiting for the slowest chip makes of the time of a product, the same for all products of a program.
double cost_chip_factor(const CostModel *model, const Mesh *mesh);
// The same of a pipeline, from what each stage weighs in its compute (split_loads).
double cost_stages_chip_factor(const CostModel *model, const Mesh *mesh, const double *loads);
// The model that prices a pipeline's programs, all of them.
CostModel cost_of_stages(const CostModel *model, const StepProgram *programs, int count, Arena *arena);

// False where the profile has no GEMM rate for the dtype: such a plan costs infinite time and must be refused earlier
// with a message.
bool cost_supports(const Accelerator *accelerator, Dtype dtype);

// Ranks that block placement puts on a node of the profile: node.accelerators, or the whole world on a single-node
// profile (no NICs), where there is nowhere else to put them.
int cost_ranks_per_node(const ClusterProfile *profile, const Mesh *mesh);

// The machine as one of ranks_on_node ranks sees it. GPU profiles: unchanged. CPU profiles: see cpu_sharing.c.
ClusterProfile cost_shared_profile(const ClusterProfile *profile, int ranks_on_node);

// Streams of a program whose ranks hold so much on a node that operands come from memory, where its rate is known.
void cost_streams_from(Accelerator *accelerator, double held_bytes);

// Seconds that the hosts of both stages sleep at a message (TargetRuntime): from when the later one is there, and until
// then neither issues anything.
double message_sleep_s(const CostModel *model, const Mesh *mesh);

// Host time of a collective that ranks check beforehand, in addition to its own operations (TargetRuntime, checked.c).
double check_host_s(const CostModel *model, const StepProgram *program, const Task *task);

// And for the tensors that an update is of.
double update_host_s(const CostModel *model, const StepProgram *program, const Task *task);
// Of FSDP's hooks on the unit that is gathered or reduced (shard_host.c).
double shard_host_s(const CostModel *model, const StepProgram *program, const Task *task);

// What a kernel, or one thread, needs of the cores that are a rank's part of its node; 0 on a GPU.
double cost_core_share(const ClusterProfile *profile, int ranks_on_node, bool one_thread);

typedef enum {
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_SEND_RECV,
    COLLECTIVE_ALL_TO_ALL
} CollectiveKind;

// What one collective costs and occupies. payload_bytes everywhere: the full tensor (all-gather output, reduce-scatter
// input, all-reduce buffer, all parts of an all-to-all), the message for send_recv.
typedef struct CollectiveCost {
    double seconds;
    double link_s;      // of them, at full rate of this rank's node links
    double nic_s;       // of them, at full rate of its group's share of the NICs; 0 inside a node
    double uplink_s;    // of them, at full rate of its group's share of the narrowest level crossed; 0 below all levels
    double wire_bytes;  // that this rank sends
    double ctas;        // SMs that its kernel holds
} CollectiveCost;

// One algorithm: a file and a row of collective_table. Formulas: sim/SOURCES.md C1 to C7.
typedef struct CollectiveAlgorithm {
    const char *name;
    bool (*applicable)(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group);
    CollectiveCost (*cost)(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                           double payload_bytes);
} CollectiveAlgorithm;

extern const CollectiveAlgorithm *const collective_table[];  // NULL-terminated

// The fastest applicable algorithm; a group of one rank or no payload: all zero and "none". Infinite seconds where the
// profile has no way (no bandwidth). algorithm may be NULL.
CollectiveCost cost_collective(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                               double payload_bytes, const char **algorithm);
double cost_collective_s(const ClusterProfile *profile, CollectiveKind kind, const GroupPlacement *group,
                         double payload_bytes, const char **algorithm);

// ClusterProfile: the machine that a step runs on, as plain SI numbers, each with its source and grade. One field table
// (cluster_fields) drives the reader, the writer, --set and `ndtune clusters NAME`; the structs below are what the cost
// model reads. Formulas that use the fields: sim/cost/*.h.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/dtype.h"
#include "sim/base/error.h"
#include "sim/base/hash.h"

typedef enum { DEVICE_CLASS_GPU, DEVICE_CLASS_CPU, DEVICE_CLASS_COUNT } DeviceClass;

typedef enum { GRADE_MEASURED, GRADE_FITTED, GRADE_DATASHEET, GRADE_ESTIMATED, GRADE_USER, GRADE_COUNT } Grade;

// GEMM rate of one dtype: tile and wave model, sim/SOURCES.md H1. 0 burst = dtype not supported by this profile.
typedef struct GemmRate {
    double peak_flop_per_s;       // datasheet dense peak: the denominator of MFU
    double burst_flop_per_s;      // short kernels, before the power limit bites
    double sustained_flop_per_s;  // what a training step sees
    double wave_quantisation;     // q: 1 = whole waves, 0 = stream-K like
    double tile_overhead_s;       // t_w per wave
    double launch_s;              // t0 per kernel
    double bandwidth_factor;      // bw_eff: effective share of memory bandwidth for operands (L2 may lift it over 1)
    double class_efficiency[3];   // e1..e3 of the smaller tile classes; class 0 is 1
} GemmRate;

// One flash attention kernel: plateau, ramp and causal factor, sim/SOURCES.md H4.
typedef struct AttentionRate {
    char kernel[16];  // "flash" (FlashAttention 2), "flash3", "cudnn", "efficient" (memory-efficient), "cpu"; "ck":
                      // what Transformer Engine runs for cuDNN on ROCm, Composable Kernel's and AITER's
    int head_dim;
    double forward_efficiency;  // of the dtype's peak
    double forward_ramp;        // S0, in key positions
    double backward_efficiency;
    double backward_ramp;
    double causal_factor;  // cc
} AttentionRate;

// A GEMM C[m,n] (+)= op(A)[m,k] op(B)[k,n] and its time on a chip, a few back to back.
typedef struct TimedGemm {
    int64_t m, n, k;
    Dtype input, output;
    bool trans_a, trans_b;  // A lies as [k, m], B as [n, k]
    bool accumulate;
    double seconds;
} TimedGemm;

enum { CLUSTER_MAX_ATTENTION = 10, CLUSTER_MAX_GROUPS = 4, CLUSTER_TIERS = 2, CLUSTER_MAX_TARGETS = 4 };

typedef struct Accelerator {
    char name[48];
    DeviceClass device_class;
    double memory_bytes;        // usable by one process
    double memory_bytes_per_s;  // datasheet
    double memory_efficiency;   // achieved share for streaming kernels, sim/SOURCES.md H5
    double cache_bytes;  // processors: what the ranks of a node may hold in all so that streams run at the rates above
    double beyond_cache_bytes_per_s;  // achieved by streams of those that hold more; 0 = not measured
    // An element of a norm of a width that Transformer Engine has no tuned kernel for, and of a column of a block the
    // sum of its weight's gradients over all blocks; 0 = as its bytes.
    double norm_element_s, norm_backward_element_s, norm_backward_sums_s;
    double element_s;        // an element in a kernel of PyTorch that converts, broadcasts or strides; 0 = as its bytes
    double atomic_s;         // an element of two bytes that PyTorch adds by an atomic; 0 = as its bytes
    double sorted_s;         // one that it adds to its row in the order of sorted indices (sim/SOURCES.md H10)
    double norm_sums_s;      // sums of a head norm's weight gradients over all blocks; 0 = not measured
    double clock_hz;         // at which its rates are stated; 0 = that of H100
    double kernel_floor_s;   // shortest kernel in a stream
    double kernel_gap_s;     // between dependent kernels of one stream
    double power_w;          // cap that the rates belong to; 0 = unknown
    double chip_spread;      // one-sigma of arithmetic rates from chip to chip; a step waits for the slowest
    double fp8_exact_share;  // rate of fp8 GEMMs with full-precision accumulation, relative to the others
    double fp8_exact_share_cuda_13;  // by the cuBLAS of CUDA 13; 0 = the same
    double fp8_row_share;            // of those with a scale per row, by PyTorch's own kernel; 0 = as the others
    double sharded_gemm_share;       // GEMM rate under full sharding's gathers, relative to other GEMMs
    double grouped_ramp_rows;        // rows per group at which a grouped GEMM runs at half rate; 0 = by its tiles
    double attention_forward_flop_per_s, attention_backward_flop_per_s;  // kept up in 16 bits; 0 = as the kernels' own
    int sm_count;
    GemmRate gemm[DTYPE_COUNT];
    AttentionRate attention[CLUSTER_MAX_ATTENTION];
    int attention_count;
    const TimedGemm *products;  // in the order of cluster_products.c: each wins over the formula for its own shape
    int product_count;
} Accelerator;

// t = a + W/B + xy/sqrt(x^2+y^2), x = 2 g sqrt(a W/B), y = m a  (sim/SOURCES.md C1)
typedef struct LinkCurve {
    double bandwidth_bytes_per_s;  // B
    double pipelining;             // g
    double ceiling;                // m
} LinkCurve;

// Groups of up to `ranks` neighbours inside a node without a switch between all of them (PCIe boxes): their own curves.
typedef struct GroupRate {
    int ranks;
    double ring_latency_s;  // whole start-up of a ring collective of that many ranks
    LinkCurve ring;
    double p2p_latency_s;
    LinkCurve p2p;
} GroupRate;

// One domain of fast links: a server, or the rack of an NVL72. What the network connects.
typedef struct Node {
    int accelerators;  // ranks per domain
    int hosts;         // machines with an operating system of their own in the domain; 18 in an NVL72
    double cores;      // CPU cores that ranks of a cpu profile share; 0 for gpu profiles
    // Of hosts, for offload; 0 = unknown, then nothing is offloaded.
    double host_link_bytes_per_s;    // of one accelerator, each way
    double host_memory_bytes_per_s;  // of one host, which its accelerators share
    double host_memory_bytes;        // of one host
    double host_pace;        // time that one thread takes, over that on a DGX H100's Xeon 8480C; 0 = unknown, as one
    double sequence_read_s;  // after which a rank has the next sequence of its data, read ahead; 0 = before it asks
    double sequence_read_spread;  // sd of that over it, each sequence for itself: the slowest reader is waited for
    double link_latency_s;        // alpha
    double step_latency_s;        // l per ring step
    double ring_copy;             // kappa
    LinkCurve ring;
    double reduction_bytes_per_s;  // of summing what arrived, where that does not overlap the transfer (CPUs); 0 = free
    int nvls_min_ranks;            // 0 = no in-switch reduction
    double nvls_latency_s;
    LinkCurve nvls;
    double p2p_latency_s;
    LinkCurve p2p;     // send/recv and all-to-all
    double mesh;       // 1: every pair has a link of its own, which p2p is one of (xGMI); 0: a switch
    double ring_ctas;  // SMs that a ring collective occupies
    double nvls_ctas;
    double symmetric_ctas;  // of gathers and reductions in registered symmetric memory; 0 = they are not (a what-if)
    GroupRate groups[CLUSTER_MAX_GROUPS];  // by ascending ranks; none on switched nodes
    int group_count;
} Node;

// A level of the network above the nodes: `nodes` of them share uplinks with 1/oversubscription of their NIC sum.
typedef struct FabricTier {
    int nodes;  // 0 = no such level
    double oversubscription;
    double latency_s;  // that one more level adds to a hop
} FabricTier;

typedef struct Fabric {
    int nics;  // per node; 0 = single-node profile
    double nic_bytes_per_s;
    double efficiency;           // eta of the NIC sum
    double group_bytes_per_s;    // most that one group can send out of a node, by the library's channels; 0 = no limit
    double group_decay;          // share of it lost per doubling of the nodes beyond two
    double group_latency_s;      // that a collective adds per doubling of the nodes, several ranks of each taking part
    double rail_latency_s;       // the same, with one rank of each node
    double ring_step_latency_s;  // lr
    double tree_step_latency_s;  // lx
    LinkCurve ring;              // bandwidth unused: comes from the NICs
    LinkCurve tree;              // bandwidth = cap of the two-node tree
    double decay;                // share of bandwidth lost per doubling of the nodes beyond two
    double p2p_latency_s;
    double p2p_efficiency;       // share of a NIC that one flow reaches
    LinkCurve p2p;               // bandwidth unused: comes from the NICs
    double p2p_ctas;             // SMs that a send and receive across nodes occupy
    double sharp_ctas;           // that collectives summed in the switches take; 0 = they are not (a what-if)
    double exchange_efficiency;  // share of a NIC that all-to-alls reach; 0 = as InfiniBand
    double exchange_peer_s;      // start-up of an all-to-all for each rank on other nodes; 0 = as InfiniBand
    FabricTier tier[CLUSTER_TIERS];
} Fabric;

// The collectives that a curve may be measured for; the kinds of sim/cost are the same in the same order.
typedef enum {
    CURVE_ALL_GATHER,
    CURVE_REDUCE_SCATTER,
    CURVE_ALL_REDUCE,
    CURVE_SEND_RECV,
    CURVE_ALL_TO_ALL,
    CURVE_KIND_COUNT
} CurveKind;

// Measured times of one collective on one group shape. Inside the range they override every formula.
typedef struct MeasuredCurve {
    CurveKind kind;
    int nodes, per_node;
    int count;            // points, ascending in bytes
    const double *bytes;  // payload as sim/cost counts it
    const double *seconds;
} MeasuredCurve;

typedef struct Interference {
    double hbm_factor;           // HBM bytes per wire byte of a collective
    double collective_slowdown;  // of a collective that overlaps a large kernel
    double residue;              // of a kernel that overlaps any collective (power, L2)
} Interference;

// What running a target costs on this machine, fitted to its runs: replaces those numbers of the target's own row
// (sim/frameworks/target.h, TargetRuntime). autotune/predict/target_on_cluster.h applies it.
typedef struct ClusterTarget {
    char name[48];  // "name@version"
    double host_s_per_op, other_share, collective_share, crowding_share, step_fixed_s;
    double memory_passes, loss_bytes_per_logit, optimizer_bytes_per_parameter;
    double allocator_slack;
    double relative_uncertainty;
} ClusterTarget;

// How a profile's numbers were fitted, and their uncertainty. Log factors are over the parent's numbers; the
// covariance is of the log factors around the profile's own numbers (autotune/calibrate).
typedef struct ClusterCalibrated {
    const char *name, *target;  // "gemm_rate"; "ndtune@1" or NULL = the machine's
    double log_factor, sd, prior_sd;
    int plans;            // that could teach it
    bool one_set;         // of one run set
    const char *verdict;  // as a message
} ClusterCalibrated;

typedef struct ClusterCalibration {
    const char *parent, *parent_hash, *date;
    const char *const *runs;  // ids
    int run_count, shapes;
    double misfit_sd, noise_sd;              // of log step times: of a plan, of a repeat
    int held_out_shapes;                     // 0 = too few for a held-out one
    double held_out_before, held_out_after;  // median |predicted / measured - 1|
    const ClusterCalibrated *parameters;
    int count;
    const double *covariance;  // count x count
} ClusterCalibration;

typedef struct Provenance {
    const char *path;    // "accelerator.gemm.bf16.sustained_flop_per_s"
    double value;        // of a curve: how many points it has
    const char *source;  // where the number comes from
    Grade grade;
} Provenance;

typedef struct ClusterProfile {
    char name[48];
    const char *description;
    const char *extends;  // the profile it inherits its other numbers from; NULL = self-contained
    const char *stack;    // driver and library versions that the numbers belong to
    const char *date;
    Accelerator accelerator;
    Node node;
    Fabric fabric;
    Interference interference;
    const MeasuredCurve *curves;
    int curve_count;
    ClusterTarget targets[CLUSTER_MAX_TARGETS];  // runners that were calibrated on this machine
    int target_count;
    const ClusterCalibration *calibration;  // NULL = not calibrated
    double price_usd_per_accelerator_hour;  // 0 = unknown
    double relative_uncertainty;            // one-sigma of step time for uncalibrated predictions on this profile
    int whole_rack;                         // ranks, before cluster_make_racks_alike; 0 = it was not called
    const Provenance *provenance;  // one row per number in field-table order, then one per curve, one of all products
    int provenance_count;
} ClusterProfile;

// A built-in name (embedded cluster-profiles/*.json) or a path of a profile file. USAGE with a suggestion otherwise.
// Is it the path of a profile file, and not the name of a built-in one?
bool cluster_is_file(const char *name_or_path);

// The profile of an accelerator's usual node, "RTX 4090" or "A100-40GB"; NULL where it has none.
const char *cluster_usual_node(const char *chip);

// The built-in profile that a name stands for: the one called so, or a chip's usual node; NULL.
const char *cluster_built_in(const char *name);

// Times the specified rate, at most, that a chip reaches.
extern const double cluster_clock_headroom;

Status cluster_find(const char *name_or_path, Arena *arena, ClusterProfile *profile, Error *error);
const char *const *cluster_names(int *count);

// "fabric.node_gbps=800", "node.gpus=4", or any path of the field table: "KEY=VALUE". Marks the field GRADE_USER. A
// change below node or fabric drops the measured curves that it would contradict, one of GEMM rates the timed products.
Status cluster_set(ClusterProfile *profile, const char *assignment, Arena *arena, Error *error);

// Where a world takes parts of domains of several machines (NVL72), the same part of each: 64 of 72 for 256 ranks.
// Changes node.accelerators, node.hosts and fabric.nics, for another world anew. Returns how many a whole one has; 0 =
// they are whole, or the user said how large they are.
int cluster_make_racks_alike(ClusterProfile *profile, int world, Arena *arena);

// The row of a path such as "price_usd_per_accelerator_hour"; NULL = none.
const Provenance *cluster_provenance(const ClusterProfile *profile, const char *path);

// Provenance of a profile whose numbers, curves or targets were changed in place: values equal to `before` keep theirs;
// the rest get `source` and `grade`, rounded to six digits.
void cluster_record(ClusterProfile *profile, const ClusterProfile *before, const char *source, Grade grade,
                    Arena *arena);

// The time of a product among those of the chip (its seconds are not read); NULL = not timed.
const TimedGemm *cluster_product_find(const Accelerator *accelerator, const TimedGemm *wanted);
// "4096x6144x4096 nt bf16>bf16 set" at the start of a text; *rest is what follows.
bool cluster_product_parse(const char *text, TimedGemm *product, const char **rest);
// Adds times; where the profile, or an earlier one of the list, has the same product the later one counts.
void cluster_products_add(ClusterProfile *profile, const TimedGemm *products, int count, const char *source,
                          Arena *arena);

// JSON text of the profile; reading it back gives the same profile. Caller frees (free).
Status cluster_write(const ClusterProfile *profile, char **text, Error *error);

const char *grade_name(Grade grade);
void cluster_hash(const ClusterProfile *profile, Hash *hash);
// Of numbers that files may leave out, which the one above does too: stores hold it.
void cluster_hash_optional(const ClusterProfile *profile, Hash *hash);
// Of formats whose rates the first leaves out: fp8_block, nvfp4; of others nothing.
void cluster_hash_products(const ClusterProfile *profile, Dtype dtype, Hash *hash);

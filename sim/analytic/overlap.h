// How compute and collectives overlap in a micro-step: a short list of operations on a handful of clocks (compute
// blocks, gathers, copies, reductions), in the order in which the lowering issues them. Made once per key from a
// lowered program; run for each candidate with the sharding costs of its mesh. Layers repeat, so three are run and the
// clocks of the others are extrapolated at their pace.

#pragma once

#include "sim/analytic/block_memo.h"
#include "sim/analytic/contention.h"
#include "sim/analytic/once.h"
#include "sim/analytic/shard_costs.h"

typedef enum {
    OVERLAP_BEGIN,
    OVERLAP_FORWARD,
    OVERLAP_TAIL,
    OVERLAP_BACKWARD,
    OVERLAP_END,
    OVERLAP_SECTIONS
} OverlapSection;

typedef enum {
    OVERLAP_MICRO_FIRST,
    OVERLAP_MICRO_MIDDLE,
    OVERLAP_MICRO_LAST,
    OVERLAP_MICRO_ONLY,
    OVERLAP_MICRO_VARIANTS
} MicroVariant;

typedef struct OverlapOp {
    uint8_t kind;        // ShardKind, or SHARD_KINDS for a block
    uint8_t unit;        // of a block: whose weights it reads
    uint8_t ring;        // slots of the buffer that it waits for (weights or gradients); 0: it never waits
    int8_t offset;       // of the layer whose slot it uses
    bool releases;       // block: its end of reading frees a weight buffer
    bool gathers_ahead;  // block: the latest gather is of the next layer's weights
    bool replica_lane;   // casts: after the replica sum
    bool in_line;        // the same: on the compute lane
    bool guarded;        // looks at the next layer: not in the last iteration
    int32_t block;
    bool near;       // gather: among neighbours
    bool copied_in;  // gather: after a copy on its lane, issued copy_host_s earlier
    uint8_t after;   // scatter: what follows on its lane, SHARD_CAST or SHARD_ADD; SHARD_KINDS nothing
    double host_s, copy_host_s;
} OverlapOp;

typedef struct OpRange {
    int32_t first, count;
} OpRange;

// Forward or backward layers.
enum { LAYERS_FORWARD, LAYERS_BACKWARD, LAYER_PASSES };

// How many sharding kernels the compute lane runs.
typedef struct ShardKernels {
    int32_t copies_out, reduce_copies, pads, casts, adds;
} ShardKernels;

// A copy of what layers save to the host's memory or back: in what share of the layer its tensor is in use, and how
// much is copied before it. By the program's layers, one after another.
typedef struct HostCopy {
    double begins, ends;
    double before_s, seconds;
} HostCopy;

typedef struct LayerCopies {
    HostCopy *copies;      // of a layer, in the order of their lane
    int32_t count, moved;  // layers
    double seconds;        // of a layer
    double host_s;         // to issue them
} LayerCopies;

typedef struct Overlap {
    OverlapOp *ops;
    Block *blocks;
    int32_t op_count, block_count;
    OpRange sections[OVERLAP_MICRO_VARIANTS][OVERLAP_SECTIONS];
    // Sums over a micro-step that do not depend on any clock:
    double busy_s[OVERLAP_MICRO_VARIANTS][LAYER_PASSES + 1];  // blocks, by pass; the last one outside of the layers
    double exposed_s[OVERLAP_MICRO_VARIANTS][LAYER_PASSES + 1][AXIS_COUNT];
    ShardKernels kernels_run[OVERLAP_MICRO_VARIANTS][LAYER_PASSES + 1][UNIT_COUNT];
    LayerCopies copied[LAYER_PASSES];
    FluidBlock fluid[LAYER_PASSES];
    double isolated_s[LAYER_PASSES];
    double before_gradient_s;  // of a layer backward, where its gradients have one buffer for all layers; else 0
    // Collectives overlapping the layers of a pass, in units of one per layer: its own, and edge units' spread over the
    // layers.
    int8_t beside[OVERLAP_MICRO_VARIANTS][LAYER_PASSES][BACKGROUNDS];
    int8_t experts_beside[OVERLAP_MICRO_VARIANTS][LAYER_PASSES][BACKGROUNDS];  // of the layers' experts
    int8_t edge_beside[OVERLAP_MICRO_VARIANTS][LAYER_PASSES][UNIT_COUNT][BACKGROUNDS];
    int32_t layers;
    bool guarded;     // some operation is guarded
    bool experts;     // a layer's experts are a unit
    bool sums_whole;  // replicas sum whole gradients inside the micro-step: nothing is scattered
    bool shared_communicator, copies;
    unsigned late_units;  // whose reductions run after the last backward, as bits
    bool in_line;         // kernels wait for each
    bool gathers_wait;    // each is issued when they have come to it, and they wait for it
    bool near_gathers;    // of all but the first forward
    Axis reduce_axis;     // of waits for the last reduction
} Overlap;

// Blocks of a structure, compiled: programs that differ in sizes only share them.
enum { PATTERN_BLOCKS = 32 };  // of a section; further ones are compiled each time

typedef struct OverlapPatterns {
    Arena *arena;                                                                    // where they live
    BlockPattern *blocks[OVERLAP_MICRO_VARIANTS][OVERLAP_SECTIONS][PATTERN_BLOCKS];  // NULL: not compiled yet
} OverlapPatterns;

// program: lowered with grad_accum 1 fills OVERLAP_MICRO_ONLY, with 3 the others. Later calls add to what is there.
// What it needs to keep goes to the known blocks' arena. patterns of its structure, NULL = none are kept.
void overlap_add(Overlap *overlap, const StepProgram *program, const TaskCost *costs, OverlapPatterns *patterns,
                 BlockMemo *known, Arena *scratch);

// No block waits for such a copy: those that it would wait for are of layers far from it.
bool overlap_is_host_copy(const Task *task);

// Those of the layers whose loop begins at the segment.
void overlap_add_copies(Overlap *overlap, int pass, const StepProgram *program, const TaskCost *costs, int32_t loop,
                        Arena *arena);

typedef struct OverlapTimes {
    double step_s, compute_s, optimizer_s;
    double exposed_s[AXIS_COUNT];
    double forward_lead_s, lead_s;  // by which the host has issued the last forward, and all, before they end
    OnceTimes once;                 // of two micro-steps and more
    UpdateTimes update;
} OverlapTimes;

// How concurrent tasks slow each other down on one mesh: per pass and kind of collective.
typedef struct OverlapContention {
    LayerResponse response[LAYER_PASSES];
    BackgroundRates rates;              // of the collectives alone
    double update_slow, regather_slow;  // AdamW overlapping the gather of updated weights
} OverlapContention;

void overlap_contention_make(const Overlap *overlap, const ShardCosts *costs, const Interference *interference,
                             FluidMemo *known, OverlapContention *contention);

// Factors of the variant's layers, forward and backward; of OVERLAP_MICRO_MIDDLE and OVERLAP_MICRO_LAST after those
// of the variant before. contention NULL: none.
void overlap_factors(const Overlap *overlap, const ShardCosts *costs, const OverlapContention *contention,
                     MicroVariant variant, LayerFactors factors[OVERLAP_MICRO_VARIANTS][LAYER_PASSES]);

// After which sections the host issues nothing until the compute lane has done what it has: a message follows there.
typedef struct HostStops {
    bool after[OVERLAP_SECTIONS];
} HostStops;

// One step of `micro_steps`; without the target's fixed time. contention NULL: every task takes its isolated time.
void overlap_run(const Overlap *overlap, const ShardCosts *costs, const OverlapContention *contention,
                 const HostStops *stops, int micro_steps, OverlapTimes *times);

static inline int overlap_instances(const Overlap *overlap, int unit) {
    return unit == UNIT_LAYER ? overlap->layers : unit == UNIT_EXPERTS ? (overlap->experts ? overlap->layers : 0) : 1;
}

// first_s: by which the sections of the first micro-step, whose backward reduces nothing, advanced the compute lane;
// last_s: those of the last one, which gathers nothing.
OnceTimes overlap_once(const Overlap *overlap, const ShardCosts *costs,
                       const LayerFactors factors[OVERLAP_MICRO_VARIANTS][OVERLAP_SECTIONS],
                       const double first_s[OVERLAP_SECTIONS], const double last_s[OVERLAP_SECTIONS]);

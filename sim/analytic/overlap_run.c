// Runs a micro-step's operations: clocks of the lanes, of buffers and of the accumulated terms, advanced operation by
// operation with the rules of sim/step/step.h (lane free, communicator free, events, host). All in doubles and without
// branches on data where it is hot. Layers are run until two in a row advance the lanes equally and no lane that the
// others wait for is slower than compute; then the rest are extrapolated at that pace.

#include <math.h>
#include <string.h>

#include "sim/analytic/overlap_clocks.h"

enum { LEAST_LAYERS = 3, MOST_MIDDLE_STEPS = 6 };
static const double pace_tolerance_s = 1e-9, step_tolerance = 1e-4;  // the second of a micro-step

// With which slot of a two-slot ring was used latest, so that the history can be read by slot.
typedef struct Run {
    Clocks clocks;
    int released_slot[UNIT_COUNT], scattered_slot[UNIT_COUNT];
    int layer;
    const LayerFactors *factors;         // of the section at hand
    double section_s[OVERLAP_SECTIONS];  // of the latest micro-step: by which each advanced the compute lane
    double lead_s[OVERLAP_SECTIONS];     // and by which the host had issued it before its end
} Run;

enum { CLOCK_COUNT = sizeof(Clocks) / sizeof(double) };

static inline void set_released(int unit, double time_s, Run *run) {
    run->clocks.released_before[unit] = run->clocks.released[unit];
    run->released_slot[unit] = run->layer & 1;
    run->clocks.released[unit] = time_s;
}

static inline void set_scattered(int unit, double time_s, Run *run) {
    run->clocks.scattered_before[unit] = run->clocks.scattered[unit];
    run->scattered_slot[unit] = run->layer & 1;
    run->clocks.scattered[unit] = time_s;
}

static inline bool is_other_slot(const OverlapOp *op, int layer, int latest_slot) {
    return op->ring == 2 && ((layer + op->offset) & 1) != latest_slot;
}

// Latest use of the slot that the operation is about to use.
static inline double released_s(const OverlapOp *op, const Run *run) {
    const bool other = is_other_slot(op, run->layer, run->released_slot[op->unit]);
    const double *used = &(other ? run->clocks.released_before : run->clocks.released)[op->unit];
    return op->ring == 0 ? block_never_s : *used;
}

static inline double scattered_s(const OverlapOp *op, const Run *run) {
    const bool other = is_other_slot(op, run->layer, run->scattered_slot[op->unit]);
    const double *used = &(other ? run->clocks.scattered_before : run->clocks.scattered)[op->unit];
    return op->ring == 0 ? block_never_s : *used;
}

// When an output of the block happens as far as the compute lane, the block before and the host have a say.
static inline double block_own(const double *delay, const Clocks *clocks, double issue_s, double slow) {
    const double followed =
        later(clocks->compute + delay[BLOCK_COMPUTE] * slow, clocks->block_end + delay[BLOCK_BEFORE] * slow);
    return later(followed, issue_s + delay[BLOCK_HOST]);
}

static inline OfSharding of_sharding(const Overlap *overlap, const OverlapOp *op, const Run *run) {
    const double *ready = op->gathers_ahead ? run->clocks.ready_before : run->clocks.ready;
    const bool experts = overlap->experts && op->unit == UNIT_LAYER;
    return (OfSharding){ready[op->unit], experts ? ready[UNIT_EXPERTS] : block_never_s, scattered_s(op, run)};
}

static inline void run_block(const Overlap *overlap, const OverlapOp *op, double issue_s, Run *run) {
    Clocks *clocks = &run->clocks;
    const Block *block = &overlap->blocks[op->block];
    const double slow = run->factors->block;
    const double *compute = block->delay_s[BLOCK_COMPUTE_FREE], *gradient = block->delay_s[BLOCK_WRITTEN];
    const double own = block_own(compute, clocks, issue_s, slow);
    const double followed =
        later(clocks->compute + compute[BLOCK_COMPUTE] * slow, clocks->block_end + compute[BLOCK_BEFORE] * slow);
    clocks->hidden += clocks->compute + block->length_s * slow - followed;
    double end = own, complete = block_own(gradient, clocks, issue_s, slow);
    if (!overlap->copies || overlap->sums_whole) {  // otherwise copies on the compute lane do the waiting
        const OfSharding of = of_sharding(overlap, op, run);
        if (later(later(of.weights_s, of.experts_s), of.gradients_s) > block_never_s / 2) {
            end = later(end, block_sharded(compute, &of, slow));
            complete = later(complete, block_sharded(gradient, &of, slow));
        }
        if (op->releases) {
            const double read = later(block_own(block->delay_s[BLOCK_READ], clocks, issue_s, slow),
                                      block_sharded(block->delay_s[BLOCK_READ], &of, slow));
            set_released(op->unit, read, run);
        }
        clocks->exposed += end - own;
    }
    if (block->stops_host) {
        const double *issued = block->delay_s[BLOCK_ISSUED];
        const OfSharding of = of_sharding(overlap, op, run);
        clocks->host = later(block_own(issued, clocks, issue_s, slow), block_sharded(issued, &of, slow));
    }
    clocks->compute = clocks->block_end = end;
    clocks->gradient[op->unit] = complete;
    if (overlap->experts && op->unit == UNIT_LAYER) {
        clocks->gradient[UNIT_EXPERTS] = complete;
        if (op->releases) {
            set_released(UNIT_EXPERTS, clocks->released[UNIT_LAYER], run);
        }
    }
}

static inline void run_scatter(const Overlap *overlap, const OverlapOp *op, const double *unit_s, Run *run) {
    Clocks *clocks = &run->clocks;
    const double source = overlap->copies ? clocks->reduce_input[op->unit] : clocks->gradient[op->unit];
    const double free_s = later(later(clocks->rs, clocks->host), source);
    const double start = overlap->shared_communicator ? later(free_s, clocks->shard_comm) : free_s;
    const double end = start + unit_s[SHARD_SCATTER] * run->factors->collective[BACKGROUND_SCATTER];
    clocks->shard_comm = end;
    clocks->rs = op->after < SHARD_KINDS ? end + unit_s[op->after] : end;
    clocks->reduced[op->unit] = clocks->rs;
    set_scattered(op->unit, end, run);
}

static inline void run_gather(const Overlap *overlap, const OverlapOp *op, const double *unit_s, double issue_s,
                              Run *run) {
    Clocks *clocks = &run->clocks;
    double start = overlap->gathers_wait ? later(clocks->ag, clocks->compute) : clocks->ag;
    if (op->copied_in) {
        start = later(start, issue_s + op->copy_host_s) + unit_s[SHARD_COPY_IN];
    }
    start = later(start, clocks->host);
    if (overlap->shared_communicator) {
        start = later(start, clocks->shard_comm);
    }
    start = later(start, released_s(op, run));
    clocks->ag =
        start + unit_s[op->near ? SHARD_NEAR_GATHER : SHARD_GATHER] * run->factors->collective[BACKGROUND_GATHER];
    clocks->shard_comm = overlap->shared_communicator ? clocks->ag : clocks->shard_comm;
    clocks->ready_before[op->unit] = clocks->ready[op->unit];
    clocks->ready[op->unit] = clocks->ag;
}

// A kernel of the compute lane that also waits for a sharding lane.
static inline void run_copy(double awaited_s, double seconds, Clocks *clocks) {
    const double free_s = later(clocks->compute, clocks->host);
    const double start = later(free_s, awaited_s);
    clocks->exposed += start - free_s;
    clocks->compute = start + seconds;
}

static inline void run_padding(const Overlap *overlap, const OverlapOp *op, const ShardCosts *costs, Clocks *clocks) {
    const double seconds = costs->seconds[op->unit][SHARD_PAD];
    if (seconds > 0) {
        clocks->host += costs->host_s[op->unit][SHARD_PAD];
        run_copy(block_never_s, seconds, clocks);
        clocks->gradient[op->unit] = overlap->copies ? clocks->gradient[op->unit] : clocks->compute;
    }
}

// Over replicas: of the shard after a scatter, or of whole gradients, whose buffer it then keeps.
static inline void run_sum(const Overlap *overlap, const OverlapOp *op, double seconds, Run *run) {
    Clocks *clocks = &run->clocks;
    const double source = later(clocks->reduced[op->unit], clocks->gradient[op->unit]);
    clocks->rep =
        later(later(clocks->rep, clocks->host), source) + seconds * run->factors->collective[BACKGROUND_REPLICA];
    clocks->reduced[op->unit] = clocks->rep;
    if (overlap->sums_whole) {
        set_scattered(op->unit, clocks->rep, run);
    }
}

static inline void run_op(const Overlap *overlap, const OverlapOp *op, const ShardCosts *costs, Run *run) {
    Clocks *clocks = &run->clocks;
    const double issue_s = clocks->host;
    clocks->host += op->host_s;
    if (op->kind == SHARD_KINDS) {
        run_block(overlap, op, issue_s, run);
        return;
    }
    const double *unit_s = costs->seconds[op->unit];
    const double seconds = unit_s[op->kind];
    switch ((ShardKind)op->kind) {
    case SHARD_COPY_IN:
        clocks->ag = later(clocks->ag, clocks->host) + seconds;
        break;
    case SHARD_GATHER:
        run_gather(overlap, op, unit_s, issue_s, run);
        break;
    case SHARD_COPY_OUT:
        run_copy(clocks->ready[op->unit], seconds * run->factors->block, clocks);
        set_released(op->unit, clocks->compute, run);
        break;
    case SHARD_REDUCE_COPY:
        run_padding(overlap, op, costs, clocks);
        run_copy(clocks->scattered[op->unit], seconds * run->factors->block, clocks);
        clocks->reduce_input[op->unit] = clocks->compute;
        break;
    case SHARD_SCATTER:
        if (!overlap->copies) {
            run_padding(overlap, op, costs, clocks);
        }
        run_scatter(overlap, op, unit_s, run);
        break;
    case SHARD_REPLICA:
        run_sum(overlap, op, seconds, run);
        break;
    default: {  // cast, add
        if (op->in_line) {
            run_copy(clocks->reduced[op->unit], seconds, clocks);
            clocks->reduced[op->unit] = clocks->compute;
            break;
        }
        double *lane = op->replica_lane ? &clocks->rep : &clocks->rs;
        *lane = later(*lane, clocks->host) + seconds;
        clocks->reduced[op->unit] = *lane;
        if (overlap->sums_whole && op->replica_lane) {
            clocks->scattered[op->unit] = *lane;  // it reads what was summed
        }
    }
    }
}

static void run_section(const Overlap *overlap, OpRange range, const ShardCosts *costs, Run *run) {
    const OverlapOp *op = &overlap->ops[range.first];
    for (const OverlapOp *end = op + range.count; op < end; op++) {
        run_op(overlap, op, costs, run);
    }
}

static void keep_pace(Clocks *clocks, const Clocks *before, double times) {
    double *now = (double *)clocks;
    const double *old = (const double *)before;
    for (int i = 0; i < (int)CLOCK_COUNT; i++) {
        now[i] += (now[i] - old[i]) * times;
    }
}

enum { PACE_COMPUTE, PACE_HOST, PACE_AG, PACE_RS, PACE_RELEASED, PACE_SCATTERED, PACE_COUNT };

typedef struct Pace {
    double s[PACE_COUNT];  // what the next layers wait for: when it was, or by how much a layer advanced it
} Pace;

static inline Pace pace_marks(const Clocks *clocks) {
    return (Pace){{clocks->compute, clocks->host, clocks->ag, clocks->rs, clocks->released_before[UNIT_LAYER],
                   clocks->scattered_before[UNIT_LAYER]}};
}

static inline Pace pace_between(const Pace *now, const Pace *before) {
    Pace pace;
    for (int i = 0; i < PACE_COUNT; i++) {
        pace.s[i] = now->s[i] - before->s[i];
    }
    return pace;
}

static inline bool is_steady(const Pace *now, const Pace *before) {
    double moved = 0, ahead = 0;
    for (int i = 0; i < PACE_COUNT; i++) {
        moved = later(moved, fabs(now->s[i] - before->s[i]));
        ahead = later(ahead, now->s[i] - now->s[PACE_COMPUTE]);  // sooner or later compute waits for it
    }
    return moved < pace_tolerance_s && ahead < pace_tolerance_s;
}

static void run_last_layer(const Overlap *overlap, OpRange range, const ShardCosts *costs, Run *run) {
    for (int32_t i = range.first; i < range.first + range.count; i++) {
        if (!overlap->ops[i].guarded) {
            run_op(overlap, &overlap->ops[i], costs, run);
        }
    }
}

// A lane that was catching up ends with the last layer's gradient at the earliest.
static void catch_up(const Overlap *overlap, OpRange range, const ShardCosts *costs, Run *run) {
    Clocks *clocks = &run->clocks;
    double source = clocks->gradient[UNIT_LAYER];
    for (int32_t i = range.first; i < range.first + range.count; i++) {
        const int unit = overlap->ops[i].unit;
        const double *layer_s = costs->seconds[unit];
        if (overlap->ops[i].kind == SHARD_SCATTER) {
            source = (overlap->copies ? clocks->reduce_input[unit] : later(source, clocks->gradient[unit])) +
                     layer_s[SHARD_SCATTER] * run->factors->collective[BACKGROUND_SCATTER];
            clocks->rs = later(clocks->rs, source);
            source = clocks->rs;
        } else if (overlap->ops[i].kind == SHARD_REPLICA) {
            source += layer_s[SHARD_REPLICA] * run->factors->collective[BACKGROUND_REPLICA];
            clocks->rep = later(clocks->rep, source);
            source = clocks->rep;
        } else {
            continue;
        }
        clocks->reduced[unit] = later(clocks->reduced[unit], source);
    }
}

static void skip_layers(Run *run, const Clocks *before, int count, int step) {
    keep_pace(&run->clocks, before, count);
    run->layer += count * step;
    for (int unit = 0; unit < UNIT_COUNT; unit++) {
        run->released_slot[unit] ^= count & 1;
        run->scattered_slot[unit] ^= count & 1;
    }
}

static void run_layers(const Overlap *overlap, OpRange range, int step, const ShardCosts *costs, Run *run) {
    const int alike = overlap->layers - (overlap->guarded ? 1 : 0);
    Pace marks = pace_marks(&run->clocks), pace = {0};
    Clocks before = {0};
    run->layer = step > 0 ? 0 : overlap->layers - 1;
    for (int count = 1; count <= alike; count++) {
        if (count >= LEAST_LAYERS) {
            before = run->clocks;
        }
        run_section(overlap, range, costs, run);
        run->layer += step;
        const Pace marks_now = pace_marks(&run->clocks), pace_now = pace_between(&marks_now, &marks);
        if (count >= LEAST_LAYERS && is_steady(&pace_now, &pace)) {
            skip_layers(run, &before, alike - count, step);
            catch_up(overlap, range, costs, run);
            break;
        }
        marks = marks_now;
        pace = pace_now;
    }
    if (overlap->guarded) {
        run_last_layer(overlap, range, costs, run);
    }
}

typedef struct Step {
    const Overlap *overlap;
    const ShardCosts *costs;
    const OverlapContention *contention;  // NULL: none
    const HostStops *stops;
    LayerFactors layers[OVERLAP_MICRO_VARIANTS][LAYER_PASSES];
    LayerFactors factors[OVERLAP_MICRO_VARIANTS][OVERLAP_SECTIONS];
} Step;

// Between two micro-steps the last reductions of one overlap the first gathers of the other, unless they alternate.
static LayerFactors edge_factors(const Step *step, MicroVariant variant, bool begins) {
    LayerFactors factors = no_factors;
    const bool meets = begins ? variant == OVERLAP_MICRO_MIDDLE || variant == OVERLAP_MICRO_LAST
                              : variant == OVERLAP_MICRO_FIRST || variant == OVERLAP_MICRO_MIDDLE;
    const bool reduces = step->overlap->beside[variant][LAYERS_BACKWARD][BACKGROUND_SCATTER] &&
                         step->overlap->beside[variant][LAYERS_FORWARD][BACKGROUND_GATHER];
    if (step->contention && meets && reduces && !step->overlap->shared_communicator) {
        const double *rates = step->contention->rates[GATHERS | SCATTERS];
        factors.collective[BACKGROUND_GATHER] = 1 / rates[BACKGROUND_GATHER];
        factors.collective[BACKGROUND_SCATTER] = 1 / rates[BACKGROUND_SCATTER];
    }
    return factors;
}

// Of all sections, once per variant. At the step's ends the first layer's gather comes before all compute and the last
// reductions come after it. (The last layer's gather for backward overlaps the head.)
static void set_factors(Step *step, MicroVariant variant) {
    overlap_factors(step->overlap, step->costs, step->contention, variant, step->layers);
    const LayerFactors *layers = step->layers[variant];
    LayerFactors *factors = step->factors[variant];
    factors[OVERLAP_BEGIN] = edge_factors(step, variant, true);
    factors[OVERLAP_FORWARD] = layers[LAYERS_FORWARD];
    factors[OVERLAP_TAIL] = layers[LAYERS_BACKWARD];  // of its collectives: they still overlap the layers of backward
    factors[OVERLAP_TAIL].block = 1;
    factors[OVERLAP_TAIL].collective[BACKGROUND_GATHER] = layers[LAYERS_FORWARD].collective[BACKGROUND_GATHER];
    factors[OVERLAP_BACKWARD] = layers[LAYERS_BACKWARD];
    factors[OVERLAP_END] = edge_factors(step, variant, false);
    if (variant == OVERLAP_MICRO_FIRST || variant == OVERLAP_MICRO_ONLY) {
        factors[OVERLAP_FORWARD].block -= layers[LAYERS_FORWARD].spare;
    }
    if (variant == OVERLAP_MICRO_LAST || variant == OVERLAP_MICRO_ONLY) {
        factors[OVERLAP_BACKWARD].block -= layers[LAYERS_BACKWARD].spare;
    }
}

static void run_micro_step(const Step *step, MicroVariant variant, Run *run) {
    for (int section = 0; section < OVERLAP_SECTIONS; section++) {
        const OpRange range = step->overlap->sections[variant][section];
        const double before_s = run->clocks.compute;
        run->layer = 0;
        run->factors = &step->factors[variant][section];
        if (section == OVERLAP_FORWARD || section == OVERLAP_BACKWARD) {
            const int pass = section == OVERLAP_FORWARD ? LAYERS_FORWARD : LAYERS_BACKWARD;
            run_layers(step->overlap, range, section == OVERLAP_FORWARD ? 1 : -1, step->costs, run);
            if (overlap_wait_copies(step->overlap, pass, before_s, &run->clocks)) {
                catch_up(step->overlap, range, step->costs, run);
            }
        } else {
            run_section(step->overlap, range, step->costs, run);
        }
        run->section_s[section] = run->clocks.compute - before_s;
        run->lead_s[section] = run->clocks.compute - run->clocks.host;
        if (step->stops->after[section]) {
            run->clocks.host = later(run->clocks.host, run->clocks.compute);
        }
    }
}

static Clocks clocks_at_zero(void) {
    Clocks clocks = {0};
    for (int unit = 0; unit < UNIT_COUNT; unit++) {
        clocks.ready[unit] = clocks.ready_before[unit] = clocks.reduced[unit] = block_never_s;
        clocks.reduce_input[unit] = clocks.gradient[unit] = clocks.released[unit] = block_never_s;
        clocks.scattered[unit] = clocks.released_before[unit] = clocks.scattered_before[unit] = block_never_s;
    }
    clocks.block_end = block_never_s;
    return clocks;
}

static void add_sums(const Step *step, MicroVariant variant, int count, OverlapTimes *times) {
    const Overlap *overlap = step->overlap;
    for (int pass = 0; pass <= LAYER_PASSES; pass++) {
        static const OverlapSection sections[LAYER_PASSES] = {OVERLAP_FORWARD, OVERLAP_BACKWARD};
        const double weight = count * (pass < LAYER_PASSES ? step->factors[variant][sections[pass]].block : 1);
        times->compute_s += overlap->busy_s[variant][pass] * weight;
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            times->exposed_s[axis] += overlap->exposed_s[variant][pass][axis] * weight;
        }
        for (int unit = 0; unit < UNIT_COUNT; unit++) {
            const ShardKernels *kernels = &overlap->kernels_run[variant][pass][unit];
            const double *seconds = step->costs->seconds[unit];
            times->compute_s += weight * (kernels->copies_out * seconds[SHARD_COPY_OUT] +
                                          kernels->reduce_copies * seconds[SHARD_REDUCE_COPY] +
                                          kernels->casts * seconds[SHARD_CAST] + kernels->adds * seconds[SHARD_ADD]);
            times->compute_s += count * kernels->pads * seconds[SHARD_PAD];
        }
    }
}

static bool is_still_or(double moved_s, double period_s) {
    return moved_s == 0 || fabs(moved_s - period_s) < step_tolerance * period_s;
}

// A micro-step repeats when whatever the next one waits for has moved as far as the compute lane, or not at all. If the
// host has not, the compute lane may only be lagging it: its own advance must equal the previous step's.
static bool step_repeats(const Clocks *now, const Clocks *before, double period_before_s) {
    const double period_s = now->compute - before->compute;
    bool repeats = is_still_or(now->ag - before->ag, period_s) && is_still_or(now->rs - before->rs, period_s) &&
                   is_still_or(now->rep - before->rep, period_s);
    for (int unit = 0; unit < UNIT_COUNT; unit++) {
        repeats &= is_still_or(now->released[unit] - before->released[unit], period_s) &&
                   is_still_or(now->scattered[unit] - before->scattered[unit], period_s);
    }
    return repeats && (fabs(now->host - before->host - period_s) < step_tolerance * period_s ||
                       fabs(period_before_s - period_s) < step_tolerance * period_s);
}

static void run_middle_steps(const Step *step, int count, Run *run) {
    double period_s = 0;
    for (int done = 1; done <= count; done++) {
        const Clocks before = run->clocks;
        run_micro_step(step, OVERLAP_MICRO_MIDDLE, run);
        if (done == MOST_MIDDLE_STEPS || step_repeats(&run->clocks, &before, period_s)) {
            keep_pace(&run->clocks, &before, count - done);
            return;
        }
        period_s = run->clocks.compute - before.compute;
    }
}

// Of the axes whose collectives are on the way of a micro-step.
static Axis most_exposed(const OverlapTimes *times) {
    static const Axis critical[] = {AXIS_TP, AXIS_SP};
    Axis most = AXIS_CP;
    for (size_t i = 0; i < sizeof critical / sizeof critical[0]; i++) {
        most = times->exposed_s[critical[i]] > times->exposed_s[most] ? critical[i] : most;
    }
    return most;
}

void overlap_run(const Overlap *overlap, const ShardCosts *costs, const OverlapContention *contention,
                 const HostStops *stops, int micro_steps, OverlapTimes *times) {
    Step step = {.overlap = overlap, .costs = costs, .contention = contention, .stops = stops};
    Run run = {.clocks = clocks_at_zero(), .factors = &no_factors};
    const Clocks *clocks = &run.clocks;
    *times = (OverlapTimes){0};
    if (micro_steps == 1) {
        set_factors(&step, OVERLAP_MICRO_ONLY);
        run_micro_step(&step, OVERLAP_MICRO_ONLY, &run);
        add_sums(&step, OVERLAP_MICRO_ONLY, 1, times);
    } else {
        for (MicroVariant variant = OVERLAP_MICRO_FIRST; variant <= OVERLAP_MICRO_LAST; variant++) {
            set_factors(&step, variant);
        }
        double first_s[OVERLAP_SECTIONS];
        run_micro_step(&step, OVERLAP_MICRO_FIRST, &run);
        memcpy(first_s, run.section_s, sizeof first_s);
        run_middle_steps(&step, micro_steps - 2, &run);
        run_micro_step(&step, OVERLAP_MICRO_LAST, &run);
        times->once = overlap_once(overlap, costs, step.factors, first_s, run.section_s);
        add_sums(&step, OVERLAP_MICRO_FIRST, 1, times);
        add_sums(&step, OVERLAP_MICRO_MIDDLE, micro_steps - 2, times);
        add_sums(&step, OVERLAP_MICRO_LAST, 1, times);
    }
    const double sharding_s = clocks->exposed;
    times->forward_lead_s = run.lead_s[OVERLAP_FORWARD];
    times->lead_s = run.lead_s[OVERLAP_END];
    times->exposed_s[most_exposed(times)] -= clocks->hidden;
    overlap_run_update(overlap, costs, contention, &run.clocks, times);
    times->exposed_s[AXIS_DP_SHARD] += sharding_s;
    times->exposed_s[overlap->reduce_axis] += clocks->exposed - sharding_s;
}

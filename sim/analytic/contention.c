// The rate rules are those of sim/cost/interference.c, shared with the engine. A layer and the collectives that go
// with it begin together, as in the steady state of a prefetched pipeline; each proceeds at the mean rate over whatever
// still runs. Not modelled: which part of the layer a collective overlaps; edges of the step.

#include "sim/analytic/contention.h"

#include <math.h>
#include <string.h>

static int fluid_lane(int lane) {
    return lane == LANE_COMPUTE ? 0 : lane == LANE_TP ? 1 : 2;
}

static bool is_fluid(int lane) {
    return lane == LANE_COMPUTE || lane == LANE_TP || lane == LANE_CP;
}

// Demands that differ, each by the first task that has it.
typedef struct Distinct {
    int32_t *tasks;
    int32_t count;
} Distinct;

static int32_t first_like(Distinct *distinct, const FluidTask *tasks, int32_t task) {
    const ShareDemand *demand = &tasks[task].demand;
    for (int32_t i = 0; i < distinct->count; i++) {
        const ShareDemand *other = &tasks[distinct->tasks[i]].demand;
        if (other->memory_bound == demand->memory_bound && share_demand_equal(other, demand)) {
            return distinct->tasks[i];
        }
    }
    distinct->tasks[distinct->count++] = task;
    return task;
}

// Events become counts of ended tasks, as in the engine; what other lanes record is left to the operations' clocks.
FluidBlock fluid_of(const BlockCode *code, Arena *arena, Arena *scratch) {
    FluidBlock fluid = {.tasks = ARENA_UNCLEARED(arena, FluidTask, code->count), .count = code->count};
    int32_t counts[FLUID_LANES] = {0};
    int32_t *recorded = ARENA_ARRAY(scratch, int32_t, code->slot_count + 1);
    Distinct distinct = {.tasks = ARENA_UNCLEARED(scratch, int32_t, code->count)};
    const int16_t *refs = code->refs;
    for (int32_t i = 0; i < code->count; i++) {
        const BlockStep *step = &code->steps[i];
        FluidTask *out = &fluid.tasks[i];
        const int lane = fluid_lane(step->lane);
        *out = (FluidTask){
            .seconds = step->seconds, .demand = code->demands[i], .lane = (int8_t)lane, .own = i >= code->before};
        for (int k = 0; k < step->waits; k++) {
            if (refs[k] >= 0 && is_fluid(code->slot_lane[refs[k]])) {
                int32_t *need = &out->need[fluid_lane(code->slot_lane[refs[k]])];
                *need = recorded[refs[k]] > *need ? recorded[refs[k]] : *need;
            }
        }
        out->like = first_like(&distinct, fluid.tasks, i);
        counts[lane]++;
        for (int k = step->waits; k < step->waits + step->records; k++) {
            if (refs[k] >= 0) {
                recorded[refs[k]] = counts[lane];
            }
        }
        refs += step->waits + step->records;
    }
    return fluid;
}

// Rates of what runs together, by the tasks that stand for it: a layer meets few combinations, each many times.
enum { KNOWN_RATES_BITS = 6, KNOWN_RATES = 1 << KNOWN_RATES_BITS, LIKE_BITS = 20 };
typedef struct KnownRates {
    uint64_t key[KNOWN_RATES];  // 0: none yet
    double rates[KNOWN_RATES][FLUID_LANES + BACKGROUNDS];
} KnownRates;

typedef struct Fluid {
    const FluidBlock *block;
    KnownRates *known;
    int32_t next[FLUID_LANES];  // index of the lane's task at hand; count when done
    int32_t ended[FLUID_LANES];
    double left_s[FLUID_LANES];
    bool running[FLUID_LANES];
} Fluid;

static int32_t next_of_lane(const FluidBlock *block, int32_t from, int lane) {
    while (from < block->count && block->tasks[from].lane != lane) {
        from++;
    }
    return from;
}

static bool ready(const Fluid *fluid, const FluidTask *task) {
    bool met = true;
    for (int lane = 0; lane < FLUID_LANES; lane++) {
        met &= fluid->ended[lane] >= task->need[lane];
    }
    return met;
}

// Starts what can start; tasks of no length end at once.
static void start_ready(Fluid *fluid) {
    bool moved = true;
    while (moved) {
        moved = false;
        for (int lane = 0; lane < FLUID_LANES; lane++) {
            const int32_t at = fluid->next[lane];
            if (at == fluid->block->count || fluid->running[lane] || !ready(fluid, &fluid->block->tasks[at])) {
                continue;
            }
            fluid->left_s[lane] = fluid->block->tasks[at].seconds;
            fluid->running[lane] = fluid->left_s[lane] > 0;
            if (!fluid->running[lane]) {
                fluid->ended[lane]++;
                fluid->next[lane] = next_of_lane(fluid->block, at + 1, lane);
                moved = true;
            }
        }
    }
}

// Of what runs, in the order of its lanes, and then of the set.
static const double *rates_of(const Fluid *fluid, const ShareDemand demands[BACKGROUNDS], int set,
                              const Interference *interference) {
    const ShareDemand *active[FLUID_LANES + BACKGROUNDS];
    int count = 0;
    uint64_t key = 0;
    for (int lane = 0; lane < FLUID_LANES; lane++) {
        key <<= LIKE_BITS;
        if (fluid->running[lane]) {
            const FluidTask *task = &fluid->block->tasks[fluid->next[lane]];
            active[count++] = &task->demand;
            key |= (uint64_t)task->like + 1;
        }
    }
    const uint64_t row = key * 0x9e3779b97f4a7c15u >> (64 - KNOWN_RATES_BITS);
    double *rates = fluid->known->rates[row];
    if (fluid->known->key[row] != key) {
        for (int i = 0; i < BACKGROUNDS; i++) {
            if (set >> i & 1) {
                active[count++] = &demands[i];
            }
        }
        share_rates(active, count, interference, rates);
        fluid->known->key[row] = key;
    }
    return rates;
}

// Advances to the next end. Returns the time it took; progress[]: of the collectives that overlap it.
static double advance(Fluid *fluid, const ShareDemand demands[BACKGROUNDS], int set, const Interference *interference,
                      double progress[BACKGROUNDS]) {
    int lanes[FLUID_LANES];
    int count = 0;
    for (int lane = 0; lane < FLUID_LANES; lane++) {
        if (fluid->running[lane]) {
            lanes[count++] = lane;
        }
    }
    if (count == 0) {
        return 0;
    }
    const double *rates = rates_of(fluid, demands, set, interference);
    double step_s = INFINITY;
    for (int i = 0; i < count; i++) {
        step_s = fmin(step_s, fluid->left_s[lanes[i]] / rates[i]);
    }
    for (int i = 0; i < count; i++) {
        const int lane = lanes[i];
        const bool ends = fluid->left_s[lane] / rates[i] <= step_s;
        fluid->left_s[lane] -= step_s * rates[i];
        if (ends) {
            fluid->running[lane] = false;
            fluid->ended[lane]++;
            fluid->next[lane] = next_of_lane(fluid->block, fluid->next[lane] + 1, lane);
        }
    }
    for (int i = 0; i < BACKGROUNDS; i++) {
        progress[i] = set >> i & 1 ? step_s * rates[count++] : 0;
    }
    return step_s;
}

static int32_t compute_tasks(const FluidBlock *block, bool own) {
    int32_t count = 0;
    for (int32_t i = 0; i < block->count; i++) {
        count += block->tasks[i].lane == 0 && block->tasks[i].own == own;
    }
    return count;
}

FluidResponse fluid_run(const FluidBlock *block, const ShareDemand demands[BACKGROUNDS], int set,
                        const Interference *interference) {
    const int32_t before = compute_tasks(block, false), all = before + compute_tasks(block, true);
    KnownRates known;
    memset(known.key, 0, sizeof known.key);
    Fluid fluid = {.block = block, .known = &known};
    FluidResponse response = {0};
    for (int lane = 0; lane < FLUID_LANES; lane++) {
        fluid.next[lane] = next_of_lane(block, 0, lane);
    }
    start_ready(&fluid);
    while (fluid.ended[0] < all) {
        const bool own = fluid.ended[0] >= before;
        double progress[BACKGROUNDS];
        const double step_s = advance(&fluid, demands, set, interference, progress);
        if (step_s <= 0) {
            break;
        }
        response.seconds += own ? step_s : 0;
        for (int i = 0; i < BACKGROUNDS; i++) {
            response.rate[i] += own ? progress[i] : 0;
        }
        start_ready(&fluid);
    }
    for (int i = 0; i < BACKGROUNDS; i++) {
        response.rate[i] = response.seconds > 0 ? response.rate[i] / response.seconds : 1;
    }
    return response;
}

uint64_t fluid_demand_number(FluidMemo *memo, const ShareDemand *demand) {
    for (size_t i = 0; i < memo->demand_count; i++) {
        if (share_demand_equal(&memo->demands[i], demand)) {
            return i;
        }
    }
    memo->demands = arena_grow(memo->arena, memo->demands, memo->demand_count, &memo->demand_capacity, sizeof *demand);
    memo->demands[memo->demand_count] = *demand;
    return memo->demand_count++;
}

FluidResponse fluid_run_known(FluidMemo *memo, const FluidBlock *block, const uint64_t numbers[BACKGROUNDS], int set,
                              const Interference *interference) {
    ShareDemand demands[BACKGROUNDS];
    MemoKey key = {.words = {(uint64_t)(uintptr_t)block->tasks, (uint64_t)set}};
    for (int i = 0; i < BACKGROUNDS; i++) {
        if (set >> i & 1) {
            demands[i] = memo->demands[numbers[i]];
            key.words[2 + i] = numbers[i];
        }
    }
    FluidResponse *known = memo_find(&memo->runs, &key);
    if (!known) {
        known = ARENA_NEW(memo->runs_arena, FluidResponse);
        *known = fluid_run(block, demands, set, interference);
        memo_add(&memo->runs, &key, known, memo->runs_arena);
    }
    return *known;
}

void background_rates(const ShareDemand demands[BACKGROUNDS], int set, const Interference *interference,
                      double rates[BACKGROUNDS]) {
    const ShareDemand *active[BACKGROUNDS];
    double shared[BACKGROUNDS];
    int count = 0;
    for (int i = 0; i < BACKGROUNDS; i++) {
        rates[i] = 1;
        if (set >> i & 1) {
            active[count++] = &demands[i];
        }
    }
    share_rates(active, count, interference, shared);
    count = 0;
    for (int i = 0; i < BACKGROUNDS; i++) {
        rates[i] = set >> i & 1 ? shared[count++] : 1;
    }
}

// Those of `left` that run now. Where gather and scatter alternate, the scatter of the previous layer was issued first.
// A layer's replica sum follows its scatter, but overlaps the next one's when the layer does not hide both.
static int running_set(int left, bool take_turns, bool hidden) {
    int set = take_turns && (left & SCATTERS) ? left & ~GATHERS : left;
    if (hidden && (left & SCATTERS)) {
        set &= ~REPLICA_SUMS;
    }
    return set;
}

// hidden: the layer is taken to hide its collectives. *left_over: it does not.
static LayerFactors run_layer(const LayerResponse *response, const BackgroundRates rates, const LayerWork *work,
                              bool hidden, bool *left_over) {
    const double alone_s = response->beside[0].seconds;
    LayerFactors factors = {.block = 1, .collective = {1, 1, 1}};
    double layer_s = alone_s + work->copies_s, now_s = 0, left_s[BACKGROUNDS], began_s[BACKGROUNDS] = {0};
    int left = 0;
    for (int i = 0; i < BACKGROUNDS; i++) {
        left_s[i] = work->collective_s[i];
        left |= left_s[i] > 0 ? 1 << i : 0;
    }
    while (left || layer_s > 0) {
        const int set = running_set(left, work->take_turns, hidden && layer_s > 0);
        for (int i = 0; i < BACKGROUNDS; i++) {
            began_s[i] = set >> i & 1 && left_s[i] == work->collective_s[i] ? now_s : began_s[i];
        }
        const FluidResponse *beside = &response->beside[set];
        const double pace = alone_s > 0 ? alone_s / beside->seconds : 1;
        const double *rate = layer_s > 0 ? beside->rate : rates[set];
        double step_s = layer_s > 0 ? layer_s / pace : INFINITY;
        int first = BACKGROUNDS;
        for (int i = 0; i < BACKGROUNDS; i++) {
            const double needed_s = set >> i & 1 ? left_s[i] / rate[i] : INFINITY;
            first = needed_s < step_s ? i : first;
            step_s = needed_s < step_s ? needed_s : step_s;
        }
        now_s += step_s;
        for (int i = 0; i < BACKGROUNDS; i++) {
            left_s[i] -= set >> i & 1 ? step_s * rate[i] : 0;
        }
        if (first == BACKGROUNDS) {
            layer_s = 0;
            *left_over = left != 0;
            const double delay_s = work->lane_kernels_s * response->kernel_delay;
            factors.block = response->isolated_s > 0 ? (now_s + delay_s) / (response->isolated_s + work->copies_s) : 1;
            continue;
        }
        layer_s = layer_s > step_s * pace ? layer_s - step_s * pace : 0;
        left &= ~(1 << first);
        factors.collective[first] = (now_s - began_s[first]) / work->collective_s[first];
    }
    return factors;
}

LayerFactors layer_factors(const LayerResponse *response, const BackgroundRates rates, const LayerWork *work) {
    bool left_over = false;
    LayerFactors factors = run_layer(response, rates, work, true, &left_over);
    if (left_over) {
        factors = run_layer(response, rates, work, false, &left_over);
    }
    return factors;
}

// The rules of rates are sim/cost/interference.c's, the same that the engine uses. Here one collective at a time runs beside the
// layer, for as long as its work lasts; what is left of either then runs alone.
// Not modelled: two sharding collectives at once (their work is laid one after the other), the tail of the step.

#include "sim/analytic/contention.h"

#include <math.h>

typedef struct Fluid {
    const FluidBlock *block;
    int32_t next[FLUID_LANES];         // index of the lane's task at hand; count when done
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

// Advances to the next end. Returns the time it took; *background_rate until then.
static double advance(Fluid *fluid, const ShareDemand *background, const Interference *interference, double *background_rate) {
    const ShareDemand *active[FLUID_LANES + 1];
    int lanes[FLUID_LANES];
    double rates[FLUID_LANES + 1];
    int count = 0;
    for (int lane = 0; lane < FLUID_LANES; lane++) {
        if (fluid->running[lane]) {
            lanes[count] = lane;
            active[count++] = &fluid->block->tasks[fluid->next[lane]].demand;
        }
    }
    if (count == 0) {
        return 0;
    }
    active[count] = background;
    share_rates(active, count + (background != NULL), interference, rates);
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
    *background_rate = background ? rates[count] : 0;
    return step_s;
}

static int32_t compute_tasks(const FluidBlock *block, bool own) {
    int32_t count = 0;
    for (int32_t i = 0; i < block->count; i++) {
        count += block->tasks[i].lane == 0 && block->tasks[i].own == own;
    }
    return count;
}

FluidResponse fluid_run(const FluidBlock *block, const ShareDemand *background, const Interference *interference) {
    const int32_t before = compute_tasks(block, false), all = before + compute_tasks(block, true);
    Fluid fluid = {.block = block};
    FluidResponse response = {0};
    for (int lane = 0; lane < FLUID_LANES; lane++) {
        fluid.next[lane] = next_of_lane(block, 0, lane);
    }
    start_ready(&fluid);
    while (fluid.ended[0] < all) {
        const bool own = fluid.ended[0] >= before;
        double rate = 0;
        const double step_s = advance(&fluid, background, interference, &rate);
        if (step_s <= 0) {
            break;
        }
        response.seconds += own ? step_s : 0;
        response.background += own ? step_s * rate : 0;
        start_ready(&fluid);
    }
    response.background /= response.seconds > 0 ? response.seconds : 1;
    return response;
}

LayerFactors layer_factors(const LayerResponse *response, const double work_s[BACKGROUNDS]) {
    LayerFactors factors = {.block = 1, .collective = {1, 1, 1}};
    double left_s = response->alone_s, spent_s = 0;    // of the layer's own time, and of the clock
    for (int i = 0; i < BACKGROUNDS; i++) {
        if (work_s[i] <= 0 || left_s <= 0 || response->beside[i].background <= 0) {
            continue;
        }
        const double pace = response->alone_s / response->beside[i].seconds;    // of the layer beside it
        const double whole_s = work_s[i] / response->beside[i].background;      // if it ran beside the layer to its end
        const double beside_s = fmin(whole_s, left_s / pace);
        left_s -= beside_s * pace;
        spent_s += beside_s;
        factors.collective[i] = (beside_s + work_s[i] - beside_s * response->beside[i].background) / work_s[i];
    }
    if (response->isolated_s > 0) {
        factors.block = (spent_s + left_s) / response->isolated_s;
    }
    return factors;
}

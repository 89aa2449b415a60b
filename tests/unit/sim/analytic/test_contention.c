// A layer concurrent with its collectives, computed by hand.

#include "sim/analytic/contention.h"

#include <criterion/criterion.h>
#include <math.h>

static const Interference ideal = {.hbm_factor = 1, .collective_slowdown = 1, .residue = 1};

static void same(double actual, double expected) {
    cr_assert(fabs(actual - expected) < 1e-9, "%.12g, expected %.12g", actual, expected);
}

// A kernel of 4, a tp collective of 2 that takes the whole link, a kernel of 4; concurrently a gather that needs the
// whole link and half of the SMs: kernels at half rate 8 + 8, the collective at half rate 4: 20. The gather ran 16 at
// full rate and 4 at half: 0.9.
static FluidTask tasks[3] = {{.seconds = 4, .demand = {.sm_share = 1}, .own = true},
                             {.seconds = 2,
                              .demand = {.collective = true, .use = {1, 0, 0}},
                              .lane = 1,
                              .own = true,
                              .like = 1,
                              .need = {1, 0, 0}},
                             {.seconds = 4, .demand = {.sm_share = 1}, .own = true, .need = {1, 1, 0}}};
static const FluidBlock layer = {tasks, 3};
static const ShareDemand demands[BACKGROUNDS] = {{.collective = true, .sm_share = 0.5f, .use = {1, 0, 0}},
                                                 {.collective = true, .sm_share = 0.5f, .use = {1, 0, 0}}};

Test(contention, a_layer_beside_nothing_takes_its_isolated_time) {
    same(fluid_run(&layer, demands, 0, &ideal).seconds, 10);
}

Test(contention, a_layer_and_a_gather_slow_each_other_down) {
    const FluidResponse response = fluid_run(&layer, demands, 1, &ideal);
    same(response.seconds, 20);
    same(response.rate[0], 0.9);
}

static LayerResponse response_of(BackgroundRates rates) {
    LayerResponse response = {.isolated_s = 10};
    for (int set = 0; set < 4; set++) {
        response.beside[set] = fluid_run(&layer, demands, set, &ideal);
        background_rates(demands, set, &ideal, rates[set]);
    }
    return response;
}

// Work 0.9: overlaps the layer for 1 second, in which the layer does half a second of its own; 9.5 left: 10.5 in all.
Test(contention, a_short_gather_costs_the_layer_what_they_overlap) {
    BackgroundRates rates = {0};
    const LayerResponse response = response_of(rates);
    const LayerFactors factors =
        layer_factors(&response, rates, &(LayerWork){.collective_s = {0.9, 0, 0}, .take_turns = true});
    same(factors.block, 1.05);
    same(factors.collective[0], 1 / 0.9);
}

// Work 30: 18 of it overlap the layer in 20 seconds, 12 alone: 32.
Test(contention, a_long_gather_goes_on_alone) {
    BackgroundRates rates = {0};
    const LayerResponse response = response_of(rates);
    const LayerFactors factors =
        layer_factors(&response, rates, &(LayerWork){.collective_s = {30, 0, 0}, .take_turns = true});
    same(factors.block, 2);
    same(factors.collective[0], 32.0 / 30);
}

// Both want the whole link when the layer is done: at half rate each they end together.
Test(contention, collectives_that_do_not_take_turns_share_the_link) {
    double rates[BACKGROUNDS];
    background_rates(demands, 3, &ideal, rates);
    same(rates[0], 0.5);
    same(rates[1], 0.5);
}

// Chips of one kind differ, and a synchronous step waits for the slowest of them: of n chips whose rates scatter by the
// profile's chip_spread around the profile's rate, the slowest is expected (n - 3/8)/(n + 1/4) of the way down a normal
// distribution (Blom 1958). One chip is a chip of the middle. A pipeline keeps the pace of the stage whose load on its
// slowest chip takes longest: where one stage has more to do, mostly that stage's, and only its chips count. Not
// modelled: which chip it is, drifting clocks, that a step's fill and drain go at the pace of all stages.

#include <math.h>

#include "sim/cost/compute.h"

static const double half_sqrt = 0.70710678118654752;       // sqrt(1/2)
static const double normal_density = 0.39894228040143268;  // 1/sqrt(2 pi)

static const double blom = 0.375;  // the slowest of n is (n - blom)/(n + 1 - 2 blom) of the way down

static const double precise_sigmas = 1e-9;

enum { NEWTON_STEPS = 32 };  // seven or so are usual

double slowest_chip_sigmas(int chips) {
    if (chips < 2) {
        return 0;
    }
    const double share = (chips - blom) / (chips + 1 - 2 * blom);
    double sigmas = 1;
    for (int i = 0; i < NEWTON_STEPS; i++) {
        const double above = share - 0.5 * (1 + erf(sigmas * half_sqrt));
        const double step = above / (normal_density * exp(-0.5 * sigmas * sigmas));
        sigmas += fmin(step, 0.5);  // the tail is flat: no long jumps
        if (fabs(step) < precise_sigmas) {
            break;
        }
    }
    return sigmas;
}

double slowest_chip_factor(const Accelerator *accelerator, int chips) {
    return accelerator->chip_spread > 0 ? 1 / (1 - accelerator->chip_spread * slowest_chip_sigmas(chips)) : 1;
}

enum { HALVINGS = 30 };

// Chips that are slower than their stage's load lets them be, where the heaviest load may take that much longer.
static double chips_beyond(const StageLoads *loads, double spread, double factor) {
    double beyond = 0;
    for (int i = 0; i < loads->count; i++) {
        const double sigmas = (1 - loads->load[i] / factor) / spread;
        beyond += loads->chips[i] * 0.5 * erfc(sigmas * half_sqrt);
    }
    return beyond;
}

void stage_loads_add(StageLoads *loads, double load, double chips) {
    int at = 0;
    while (at < loads->count && loads->load[at] != load) {
        at++;
    }
    at = at < STAGE_LOADS ? at : STAGE_LOADS - 1;
    loads->load[at] = at == loads->count ? load : fmax(load, loads->load[at]);
    loads->chips[at] = chips + (at == loads->count ? 0 : loads->chips[at]);
    loads->count = at == loads->count ? at + 1 : loads->count;
}

double slowest_stage_factor(const Accelerator *accelerator, StageLoads *loads) {
    double most = 0, chips = 0;
    for (int i = 0; i < loads->count; i++) {
        most = fmax(most, loads->load[i]);
        chips += loads->chips[i];
    }
    double low = 1, high = slowest_chip_factor(accelerator, (int)chips);
    if (loads->count < 2 || most <= 0 || high <= 1) {
        return high;
    }
    for (int i = 0; i < loads->count; i++) {
        loads->load[i] /= most;
    }
    const double as_many = chips * (1 - blom) / (chips + 1 - 2 * blom);  // beyond the slowest of equal loads
    for (int i = 0; i < HALVINGS; i++) {
        const double factor = 0.5 * (low + high);
        if (chips_beyond(loads, accelerator->chip_spread, factor) > as_many) {
            low = factor;
        } else {
            high = factor;
        }
    }
    return high;
}

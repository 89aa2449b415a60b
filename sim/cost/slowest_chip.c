// Chips of one kind differ, and a synchronous step waits for the slowest of them: of n chips whose rates scatter by the
// profile's chip_spread around the profile's rate, the slowest is expected (n - 3/8)/(n + 1/4) of the way down a normal
// distribution (Blom 1958). One chip is a chip of the middle. Not modelled: which chip it is, drifting clocks.

#include <math.h>

#include "sim/cost/compute.h"

static const double half_sqrt = 0.70710678118654752;       // sqrt(1/2)
static const double normal_density = 0.39894228040143268;  // 1/sqrt(2 pi)

static const double precise_sigmas = 1e-9;

enum { NEWTON_STEPS = 32 };  // seven or so are usual

double slowest_chip_sigmas(int chips) {
    if (chips < 2) {
        return 0;
    }
    const double share = (chips - 0.375) / (chips + 0.25);
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

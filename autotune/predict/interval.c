// The 80 % interval of a step time, in one place. Log-normal with one tail longer than the other: uncalibrated
// predictions were judged to lie within -20 % and +45 % of the run for 80 % of runs, the slow tail being the long one
// (held-out residuals of 1,115 published runs, per target -10..+12 % to -25..+27 %). Not modelled: that error shrinks
// where a shape resembles a measured one: a calibrated profile knows (autotune/calibrate).

#include "autotune/predict/interval.h"

#include <math.h>
#include <string.h>

#include "autotune/predict/evidence.h"

static const double Z_80 = 1.2815515655446004;  // normal quantile of 0.9: an 80 % interval leaves 10 % on either side

// ln(1/0.80) and ln(1.45) are Z_80 * s times 0.75 and 1.25 for s = 0.232: the asymmetry and the spread of -20/+45 %.
static const double FAST_TAIL = 0.75;
static const double SLOW_TAIL = 1.25;
static const double UNVALIDATED_SPREAD = 0.232;

// Of 48 published runs of one sweep on more ranks than that a fifth take more than twice their time, of those below a
// fiftieth; taken for all who say nothing of their own (widths of a framework).
enum { FAR_RANKS = 256 };
static const double FAR_SPREAD = 0.25;

// A guess: for each doubling beyond the largest world that was measured of the framework on this accelerator, as much
// as the spread of chips of a well measured profile.
static const double BEYOND_SPREAD = 0.05;

// Judged, where no run of the framework has experts: the width used for a framework without runs.
static const double EXPERTS_SPREAD = 0.232;

// Judged: fits that left a source out erred by 11.3 % in the middle, those that left groups of a source out by 5.2 %
// (sim/SOURCES.md A1); half of that is the model's misfit, which is counted apart.
static const double ONE_SET = 1.5;

static double experts_spread(const Target *target) {
    const Framework *framework = evidence_framework(target);
    return framework && framework->experts.runs > 0 ? framework->experts.spread : EXPERTS_SPREAD;
}

// NULL: no runs on this accelerator were left out of a fit; or the machine was calibrated, which is more informative.
static const ChipWidth *width_of(const Target *target, const ClusterProfile *cluster) {
    const Framework *framework = evidence_framework(target);
    const ChipWidth *width = framework && target->runtime.relative_uncertainty > 0 ? framework->widths : NULL;
    while (width && width->accelerator && strcmp(width->accelerator, cluster->accelerator.name) != 0) {
        width++;
    }
    return width && width->accelerator ? width : NULL;
}

void interval_of(double step_s, const ClusterProfile *cluster, const Target *target, const ModelSpec *model, int ranks,
                 double *low_s, double *high_s) {
    const ChipWidth *width = width_of(target, cluster);
    double spread = hypot(cluster->relative_uncertainty, target->runtime.relative_uncertainty);
    spread *= width ? width->width : 1;
    if (strcmp(target->evidence, "unvalidated") == 0) {
        spread = fmax(spread, UNVALIDATED_SPREAD);
    }
    if (model->experts.count > 0) {
        spread = hypot(spread, experts_spread(target));
    }
    if (ranks > FAR_RANKS) {
        spread = hypot(spread, width ? width->far_spread : FAR_SPREAD);
    }
    const Evidence evidence = evidence_of(target, cluster, ranks);
    if (evidence.beyond) {
        spread = hypot(spread, BEYOND_SPREAD * log2((double)ranks / evidence.here->largest_world));
    }
    interval_around(step_s, spread, low_s, high_s);
}

void interval_around(double step_s, double log_sd, double *low_s, double *high_s) {
    *low_s = step_s * exp(-Z_80 * FAST_TAIL * log_sd);
    *high_s = step_s * exp(Z_80 * SLOW_TAIL * log_sd);
}

void interval_widen(double step_s, double log_sd, double *low_s, double *high_s) {
    *low_s = step_s * exp(-hypot(log(step_s / *low_s), Z_80 * FAST_TAIL * log_sd));
    *high_s = step_s * exp(hypot(log(*high_s / step_s), Z_80 * SLOW_TAIL * log_sd));
}

double interval_one_set(bool one_set) {
    return one_set ? ONE_SET : 1;
}

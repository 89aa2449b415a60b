// Efficiency of a world is tokens per second and accelerator over that of the smallest world that runs anything.

#include "autotune/explain/scaling.h"

static const double SECONDS_PER_HOUR = 3600;

double scaling_seconds(const Prediction *prediction, double tokens) {
    return prediction->tokens_per_s > 0 ? tokens / prediction->tokens_per_s : 0;
}

double scaling_usd(const TuneRequest *request, const Prediction *prediction, double tokens) {
    return scaling_seconds(prediction, tokens) / SECONDS_PER_HOUR * request->world *
           request->cluster.price_usd_per_accelerator_hour;
}

// More is better.
static double score(const ScalingPoint *point, Objective objective) {
    switch (objective) {
    case OBJECTIVE_MEMORY:
        return -point->best.memory.reserved_bytes;
    case OBJECTIVE_COST:
        return point->best.tokens_per_s / point->request->world;
    case OBJECTIVE_THROUGHPUT:
    case OBJECTIVE_COUNT:
        break;
    }
    return point->best.tokens_per_s;
}

void scaling_finish(ScalingCurve *curve, Objective objective) {
    const ScalingPoint *smallest = NULL;
    curve->best = -1;
    for (int i = 0; i < curve->count; i++) {
        const ScalingPoint *point = &curve->points[i];
        if (point->feasible && (!smallest || point->request->world < smallest->request->world)) {
            smallest = point;
        }
    }
    const double first = smallest ? smallest->best.tokens_per_s / smallest->request->world : 0;
    for (int i = 0; i < curve->count; i++) {
        ScalingPoint *point = &curve->points[i];
        if (!point->feasible) {
            continue;
        }
        const double each = point->best.tokens_per_s / point->request->world;
        point->efficiency = first > 0 ? each / first : 0;
        if (curve->best < 0 || score(point, objective) > score(&curve->points[curve->best], objective)) {
            curve->best = i;
        }
    }
}

// Measured curves: where a profile has one for the collective on the group's shape, its times win over every formula.
// Between two points log-log interpolation; outside its range the formula, scaled to meet the curve's end, so that time
// has no jump there. Groups that share NICs or cores with siblings are not what was measured.

#include "sim/cost/collective.h"

#include <math.h>

_Static_assert((int)COLLECTIVE_ALL_GATHER == CURVE_ALL_GATHER && (int)COLLECTIVE_ALL_TO_ALL == CURVE_ALL_TO_ALL,
               "a curve's kind is a collective's");

static bool alone(const ClusterProfile *profile, const GroupPlacement *group) {
    const bool switched = profile->accelerator.device_class == DEVICE_CLASS_GPU && profile->node.group_count == 0;
    return group->siblings <= 1 || (group->nodes == 1 && switched);
}

const MeasuredCurve *collective_curve_of(const ClusterProfile *profile, CollectiveKind kind,
                                         const GroupPlacement *group) {
    for (int i = 0; i < profile->curve_count; i++) {
        const MeasuredCurve *curve = &profile->curves[i];
        if ((int)curve->kind == (int)kind && curve->nodes == group->nodes && curve->per_node == group->per_node &&
            group->size == group->nodes * group->per_node && alone(profile, group)) {
            return curve;
        }
    }
    return NULL;
}

double collective_curve_clamp(const MeasuredCurve *curve, double bytes) {
    return fmin(fmax(bytes, curve->bytes[0]), curve->bytes[curve->count - 1]);
}

double collective_curve_interpolate_s(const MeasuredCurve *curve, double bytes) {
    int low = 0, high = curve->count - 1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        *(curve->bytes[middle] <= bytes ? &low : &high) = middle;
    }
    const double share = log(bytes / curve->bytes[low]) / log(curve->bytes[high] / curve->bytes[low]);
    return curve->seconds[low] * pow(curve->seconds[high] / curve->seconds[low], share);
}

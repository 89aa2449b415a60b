// Levels of the network above the nodes: pods of nodes on uplinks with less bandwidth than the nodes below them have
// together. Formula: sim/SOURCES.md C3: a second stage of W_t / U_t next to that of the NICs. W_t of rings
// and trees is what one node sends (ordered ranks cross a pod's edge once per ring and rail), so a group that covers
// whole pods only notices more than `nodes`-fold oversubscription; of an all-to-all it is all that goes to other pods.
// Groups that lie interleaved in a pod, as replicas do, cross its edge side by side and divide it. Not modelled:
// collisions of flows, adaptive routing.

#include "sim/cost/collective.h"

#include <math.h>

// Nodes from the first of the group to its last.
static double node_span(const ClusterProfile *profile, const GroupPlacement *group) {
    const double covered = ceil((double)group->span / profile->node.accelerators);
    return fmax(covered, group->nodes);
}

// What a group of `nodes` nodes in a pod sends over its edge; `bytes` as the caller gave it.
typedef double PodBytes(const GroupPlacement *group, double nodes, double bytes);

static double slowest_tier_s(const ClusterProfile *profile, const GroupPlacement *group, PodBytes *pod_bytes,
                             double bytes) {
    const Fabric *fabric = &profile->fabric;
    const double nodes = node_span(profile, group);
    const double spacing = group->nodes > 1 ? (nodes - 1) / (group->nodes - 1) : 1;
    const double siblings = group->siblings > 0 ? group->siblings : 1;
    double seconds = 0;
    for (int i = 0; i < CLUSTER_TIERS; i++) {
        const FabricTier *tier = &fabric->tier[i];
        if (tier->nodes > 0 && nodes > tier->nodes) {
            const double uplink = tier->nodes * fabric->nics * fabric->nic_bytes_per_s * fabric->efficiency;
            const double side_by_side = siblings * fmin(spacing, tier->nodes);  // groups with a member in the pod
            const double leaving = pod_bytes(group, fmax(1, floor(tier->nodes / spacing)), bytes);
            seconds = smooth_max(seconds, leaving * side_by_side / (uplink / tier->oversubscription));
        }
    }
    return seconds;
}

static double ordered_bytes(const GroupPlacement *group, double nodes, double bytes) {
    (void)group;
    (void)nodes;
    return bytes;
}

// From each rank in the pod to each outside.
static double exchanged_bytes(const GroupPlacement *group, double nodes, double bytes) {
    const double inside = fmin(nodes * group->per_node, group->size);
    return inside * (group->size - inside) * bytes;
}

double collective_tiers_s(const ClusterProfile *profile, const GroupPlacement *group, double bytes) {
    return slowest_tier_s(profile, group, ordered_bytes, bytes);
}

double collective_tiers_exchange_s(const ClusterProfile *profile, const GroupPlacement *group, double part) {
    return slowest_tier_s(profile, group, exchanged_bytes, part);
}

double collective_tiers_latency_s(const ClusterProfile *profile, const GroupPlacement *group,
                                  double (*hops)(CollectiveKind kind, int pods), CollectiveKind kind) {
    const double nodes = node_span(profile, group);
    double seconds = 0;
    for (int i = 0; i < CLUSTER_TIERS; i++) {
        const FabricTier *tier = &profile->fabric.tier[i];
        if (tier->nodes > 0 && nodes > tier->nodes) {
            const double pods = fmin(ceil(nodes / tier->nodes), group->nodes);
            seconds += tier->latency_s * hops(kind, (int)pods);
        }
    }
    return seconds;
}

double collective_one_hop(CollectiveKind kind, int pods) {
    (void)kind;
    return pods > 1 ? 1 : 0;
}

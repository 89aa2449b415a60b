// Inside sim/cost: the curve and the geometry that every collective algorithm shares. Formulas: sim/SOURCES.md C1
// and C2.

#pragma once

#include "sim/cost/cost.h"

extern const CollectiveAlgorithm collective_ring, collective_tree, collective_nvls, collective_p2p, collective_exchange,
    collective_symmetric, collective_sharp;

// start + transfer + the pipelining loss between them: T of sim/SOURCES.md C1 with W/B = transfer_s.
double collective_curve_s(double start_s, double transfer_s, const LinkCurve *curve);

// (a^4 + b^4)^(1/4): the slower of two stages that overlap, rounded where they are equal.
double smooth_max(double a, double b);

// The links between the ranks of one node as a group sees them: the node's, or those of its size on a machine without a
// switch, divided by the groups that lie between its members.
typedef struct NodeLinks {
    double ring_start_s;  // of n - 1 steps
    LinkCurve ring;
    double p2p_start_s;
    LinkCurve p2p;
} NodeLinks;

NodeLinks collective_node_links(const ClusterProfile *profile, const GroupPlacement *group);

// What one rank reaches: its own NIC, or all of its NICs where a node has more of them than ranks (sim/SOURCES.md C2).
double collective_rail_bytes_per_s(const ClusterProfile *profile);

// What the cards of a node give a group next to its siblings: min(p x b_rail, K x b_nic / q).
double collective_cards_bytes_per_s(const ClusterProfile *profile, const GroupPlacement *group);

// What a ring or a tree of the group reaches of it: eta of it, less what large fabrics lose, and no more than the
// library's channels carry.
double collective_fabric_bytes_per_s(const ClusterProfile *profile, const GroupPlacement *group);

// Start-up beyond that of the steps: what software and congestion add as a group covers more nodes.
double collective_between_nodes_s(const ClusterProfile *profile, const GroupPlacement *group);

// Levels of the network above the nodes (collective_tiers.c). Seconds that `bytes` leaving a node need where the
// slowest level is the only limit; 0 when the group crosses none.
double collective_tiers_s(const ClusterProfile *profile, const GroupPlacement *group, double bytes);
// The same for an all-to-all whose ranks have `part` bytes for each other.
double collective_tiers_exchange_s(const ClusterProfile *profile, const GroupPlacement *group, double part);
// What the levels that the group crosses add to a collective that passes `hops(pods)` of them in a row.
double collective_tiers_latency_s(const ClusterProfile *profile, const GroupPlacement *group,
                                  double (*hops)(CollectiveKind kind, int pods), CollectiveKind kind);
double collective_one_hop(CollectiveKind kind, int pods);  // of a message, where pods differ

// Ring steps: 2(n-1) for all-reduce, n-1 for all-gather and reduce-scatter.
double collective_steps(CollectiveKind kind, int members);

// Measured curves (collective_curve.c): the one of this group or NULL, the size nearest to bytes inside its range, and
// the time of a size inside its range.
const MeasuredCurve *collective_curve_of(const ClusterProfile *profile, CollectiveKind kind,
                                         const GroupPlacement *group);
double collective_curve_clamp(const MeasuredCurve *curve, double bytes);
double collective_curve_interpolate_s(const MeasuredCurve *curve, double bytes);

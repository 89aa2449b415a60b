// Inside sim/cost: the curve and the geometry that every collective algorithm shares. Formulas: collectives.md 6.1
// and 6.2.

#pragma once

#include "sim/cost/cost.h"

extern const CollectiveAlgorithm collective_ring, collective_tree, collective_nvls, collective_p2p;

// start + transfer + the pipelining loss between them: T of collectives.md 6.1 with W/B = transfer_s.
double collective_curve_s(double start_s, double transfer_s, const LinkCurve *curve);

// (a^4 + b^4)^(1/4): the slower of two stages that overlap, rounded where they are equal.
double smooth_max(double a, double b);

// Bandwidth of the group across its node's NICs beside its siblings: eta x min(p x b_rail, K x b_nic / q).
double collective_fabric_bytes_per_s(const ClusterProfile *profile, const GroupPlacement *group);

// Ring steps: 2(n-1) for all-reduce, n-1 for all-gather and reduce-scatter.
double collective_steps(CollectiveKind kind, int members);

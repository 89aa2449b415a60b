// An order changes nothing but where the groups of a step land on the nodes, so two orders whose groups land alike cost
// the same, and one whose every group touches more nodes, or shares them with more siblings, costs more: both are left
// out. The default order always stays, to compare with. What groups there are: sim/step/lower.c.

#include "autotune/rank_orders.h"

#include <string.h>

#include "sim/cost/cost.h"

static const AxisMask masks[] = {AXIS_BIT(AXIS_TP),
                                 AXIS_BIT(AXIS_CP),
                                 AXIS_SHARD_GROUP,
                                 AXIS_BIT(AXIS_DP_REPLICATE),
                                 AXIS_BIT(AXIS_DP_REPLICATE) | AXIS_SHARD_GROUP,
                                 AXIS_SHARD_GROUP | AXIS_BIT(AXIS_TP)};
enum { MASKS = sizeof masks / sizeof masks[0] };

typedef struct Footprint {
    GroupPlacement of[MASKS];
} Footprint;

// Spans count where links or pods between the members do: in nodes above a node, in ranks where a node has no switch.
static int span_that_counts(const ClusterProfile *cluster, const GroupPlacement *placement) {
    if (cluster->node.group_count > 0) {
        return placement->span;
    }
    return cluster->fabric.tier[0].nodes > 0
               ? (placement->span + cluster->node.accelerators - 1) / cluster->node.accelerators
               : 0;
}

static Footprint footprint_of(const TuneRequest *request, const Mesh *mesh) {
    Footprint footprint;
    const int per_node = cost_ranks_per_node(&request->cluster, mesh);
    for (int i = 0; i < MASKS; i++) {
        footprint.of[i] = mesh_group_placement(mesh, masks[i], per_node);
        footprint.of[i].span = span_that_counts(&request->cluster, &footprint.of[i]);
    }
    return footprint;
}

// No group of a is better off than in b.
static bool no_better(const Footprint *a, const Footprint *b) {
    for (int i = 0; i < MASKS; i++) {
        const GroupPlacement *left = &a->of[i], *right = &b->of[i];
        if (left->nodes < right->nodes || left->per_node > right->per_node || left->siblings < right->siblings ||
            left->span < right->span) {
            return false;
        }
    }
    return true;
}

// Every order that the target can run; once each.
static int legal_orders(const TuneRequest *request, const Mesh *shape, AxisOrder orders[AXIS_ORDERS]) {
    AxisOrder every[AXIS_ORDERS];
    axis_orders(every);
    int count = 0;
    for (int i = 0; i < AXIS_ORDERS; i++) {
        Mesh mesh = *shape, canonical = *shape;
        mesh.order = canonical.order = every[i];
        mesh_canonical_order(&canonical);
        if (memcmp(&mesh.order, &canonical.order, sizeof mesh.order) == 0 &&
            target_takes_order(request->target, &mesh)) {
            orders[count++] = mesh.order;
        }
    }
    return count;
}

int rank_orders_find(const TuneRequest *request, const Mesh *shape, AxisOrder orders[AXIS_ORDERS]) {
    if (!request->any_order || request->target->rank_order_rule == RANK_ORDER_FIXED) {
        Mesh mesh = *shape;
        mesh.order = request->order;
        mesh_canonical_order(&mesh);
        orders[0] = mesh.order;
        return 1;
    }
    const int count = legal_orders(request, shape, orders);
    Footprint footprints[AXIS_ORDERS];
    bool kept[AXIS_ORDERS];
    for (int i = 0; i < count; i++) {
        Mesh mesh = *shape;
        mesh.order = orders[i];
        footprints[i] = footprint_of(request, &mesh);
        kept[i] = true;
    }
    for (int i = count - 1; i > 0; i--) {  // of equals the first stays
        for (int j = 0; j < count && kept[i]; j++) {
            kept[i] = j == i || !kept[j] || !no_better(&footprints[i], &footprints[j]);
        }
    }
    int found = 0;
    for (int i = 0; i < count; i++) {
        if (kept[i]) {
            orders[found++] = orders[i];
        }
    }
    return found;
}

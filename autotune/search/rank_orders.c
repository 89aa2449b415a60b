// An order only changes the placement of a step's groups on the nodes, so two orders whose groups land alike cost the
// same, and one whose every group touches more nodes, or shares them with more siblings, costs more: both are left out.
// The default order always stays, to compare with. What groups there are: sim/step/lower.c.

#include "autotune/search/rank_orders.h"

#include "sim/cost/cost.h"

static const AxisMask masks[] = {AXES_TENSOR,     AXES_SEQUENCE,   AXES_SHARD_GROUP, AXES_REPLICATE,
                                 AXES_DATA_GROUP, AXES_NORM_GROUP, AXES_STAGE};
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

// Orders kept so far, each with its footprint, the default one first.
typedef struct Kept {
    AxisOrder *orders;
    Footprint *footprints;
    int count;
    size_t order_room, footprint_room;
} Kept;

// Keeps an order that no other is as good as, instead of those that are no better. Of equals the first stays.
static void keep(Kept *kept, const AxisOrder *order, const Footprint *footprint, Arena *arena) {
    for (int i = 0; i < kept->count; i++) {
        if (no_better(footprint, &kept->footprints[i])) {
            return;
        }
    }
    int left = kept->count < 1 ? kept->count : 1;
    for (int i = left; i < kept->count; i++) {
        if (!no_better(&kept->footprints[i], footprint)) {
            kept->orders[left] = kept->orders[i];
            kept->footprints[left++] = kept->footprints[i];
        }
    }
    kept->orders = arena_grow(arena, kept->orders, (size_t)left, &kept->order_room, sizeof *kept->orders);
    kept->footprints =
        arena_grow(arena, kept->footprints, (size_t)left, &kept->footprint_room, sizeof *kept->footprints);
    kept->orders[left] = *order;
    kept->footprints[left] = *footprint;
    kept->count = left + 1;
}

// Frameworks lay the stages of a pipeline slowest, where a boundary has all links of its nodes: no other place is
// tried.
static bool has_stages_slowest(const Mesh *mesh) {
    int place = 0;
    while (mesh->size[mesh_axis_at(mesh, place)] == 1 && place < AXIS_COUNT - 1) {
        place++;
    }
    return !mesh_has_stages(mesh) || (AXIS_BIT(mesh_axis_at(mesh, place)) & AXES_STAGE);
}

const AxisOrder *rank_orders_find(const TuneRequest *request, const Mesh *shape, Arena *arena, int *count) {
    Mesh mesh = *shape;
    if (!request->any_order || request->target->rank_order_rule == RANK_ORDER_FIXED) {
        mesh.order = request->order;
        mesh_canonical_order(&mesh);
        AxisOrder *asked = ARENA_NEW(arena, AxisOrder);
        *asked = mesh.order;
        *count = 1;
        return asked;
    }
    Kept kept = {0};
    mesh.order = (AxisOrder){{0}};
    do {
        if (has_stages_slowest(&mesh) && target_takes_order(request->target, &mesh)) {
            const Footprint footprint = footprint_of(request, &mesh);
            keep(&kept, &mesh.order, &footprint, arena);
        }
    } while (mesh_next_order(&mesh));
    *count = kept.count;
    return kept.orders;
}

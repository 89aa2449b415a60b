// Where the members of a group land when ranks fill nodes in order (collectives.md 6.2: n ranks, p on each of N nodes,
// q sibling groups in the same node; uneven groups use the largest p). When every axis boundary divides or is divided
// by the node size, one node is a sub-block of the mesh and the answer is a product; otherwise (tp=3 on 8 per node)
// every node is looked at.

#include "sim/mesh/mesh.h"

static bool divides_either_way(int64_t a, int64_t b) {
    return a % b == 0 || b % a == 0;
}

// True when each axis's stride and extent nest with the node size.
static bool is_nested(const Mesh *mesh, int ranks_per_node) {
    int64_t stride = 1;
    for (int axis = AXIS_COUNT - 1; axis >= 0; axis--) {
        stride *= mesh->size[axis];
        if (!divides_either_way(stride, ranks_per_node)) {
            return false;
        }
    }
    return true;
}

static GroupPlacement placement_nested(const Mesh *mesh, AxisMask mask, int ranks_per_node) {
    GroupPlacement placement = {.size = mesh_group_size(mesh, mask), .per_node = 1, .siblings = 1};
    int left = ranks_per_node;  // node size over the stride of the axis: how many steps along it stay in the node
    for (int axis = AXIS_COUNT - 1; axis >= 0; axis--) {
        const int inside = mesh->size[axis] < left ? mesh->size[axis] : left;
        *(mask & AXIS_BIT(axis) ? &placement.per_node : &placement.siblings) *= inside;
        left /= inside;
    }
    placement.nodes = placement.size / placement.per_node;
    return placement;
}

// Rank of the first member of the group that `rank` belongs to: the group's name.
static int group_leader(const Mesh *mesh, AxisMask mask, int rank) {
    const MeshCoordinates at = mesh_coordinates(mesh, rank);
    return mesh_group_member(mesh, mask, &at, 0);
}

enum { MAX_RANKS_PER_NODE = 1024 };  // as the profile's field table

// Counts one node's groups: how many there are and how many members the largest has.
static void count_node(const Mesh *mesh, AxisMask mask, int first, int end, GroupPlacement *placement) {
    int leaders[MAX_RANKS_PER_NODE];
    const int count = end - first;
    for (int i = 0; i < count; i++) {
        leaders[i] = group_leader(mesh, mask, first + i);
    }
    int groups = 0;
    for (int i = 0; i < count; i++) {
        int members = 0;
        bool seen = false;
        for (int j = 0; j < count; j++) {
            members += leaders[j] == leaders[i];
            seen = seen || (leaders[j] == leaders[i] && j < i);
        }
        groups += !seen;
        placement->per_node = members > placement->per_node ? members : placement->per_node;
    }
    placement->siblings = groups > placement->siblings ? groups : placement->siblings;
}

// Members of a group are ascending ranks, so the nodes it touches are the changes of rank / ranks_per_node along it.
static int nodes_touched(const Mesh *mesh, AxisMask mask, int leader, int ranks_per_node) {
    const MeshCoordinates at = mesh_coordinates(mesh, leader);
    const int size = mesh_group_size(mesh, mask);
    int nodes = 0;
    int node_before = -1;
    for (int index = 0; index < size; index++) {
        const int node = mesh_group_member(mesh, mask, &at, index) / ranks_per_node;
        nodes += node != node_before;
        node_before = node;
    }
    return nodes;
}

static GroupPlacement placement_counted(const Mesh *mesh, AxisMask mask, int ranks_per_node) {
    GroupPlacement placement = {.size = mesh_group_size(mesh, mask), .nodes = 1, .per_node = 1, .siblings = 1};
    const int world = mesh_world(mesh);
    ASSERT(ranks_per_node <= MAX_RANKS_PER_NODE);
    for (int first = 0; first < world; first += ranks_per_node) {
        count_node(mesh, mask, first, first + ranks_per_node < world ? first + ranks_per_node : world, &placement);
    }
    for (int rank = 0; rank < world; rank++) {
        if (group_leader(mesh, mask, rank) == rank) {
            const int nodes = nodes_touched(mesh, mask, rank, ranks_per_node);
            placement.nodes = nodes > placement.nodes ? nodes : placement.nodes;
        }
    }
    return placement;
}

// Last member minus first, plus one: every axis of the mask at its far end.
static int group_span(const Mesh *mesh, AxisMask mask) {
    int span = 1, stride = 1;
    for (int axis = AXIS_COUNT - 1; axis >= 0; axis--) {
        span += mask & AXIS_BIT(axis) ? (mesh->size[axis] - 1) * stride : 0;
        stride *= mesh->size[axis];
    }
    return span;
}

GroupPlacement mesh_group_placement(const Mesh *mesh, AxisMask mask, int ranks_per_node) {
    const int world = mesh_world(mesh);
    const int node_size = ranks_per_node < world ? ranks_per_node : world;
    GroupPlacement placement =
        is_nested(mesh, node_size) ? placement_nested(mesh, mask, node_size) : placement_counted(mesh, mask, node_size);
    placement.span = group_span(mesh, mask);
    return placement;
}

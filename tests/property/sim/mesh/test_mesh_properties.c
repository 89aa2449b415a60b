// What must hold for every mesh of a world and every set of axes: rank <-> coordinates, groups partition the world,
// placement agrees with counting on a drawn-out node map, text and back. Worlds are exhaustive, so there is no seed.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/mesh/mesh.h"

static const int worlds[] = {1, 2, 6, 7, 24, 32, 56, 96};
enum { WORLD_COUNT = sizeof worlds / sizeof worlds[0], MAX_MESHES = 512, MAX_RANKS = 128 };

typedef void (*MeshCheck)(const Mesh *mesh);

static void for_every_mesh(MeshCheck check) {
    static Mesh meshes[MAX_MESHES];
    for (int i = 0; i < WORLD_COUNT; i++) {
        const int count = mesh_enumerate(worlds[i], meshes, MAX_MESHES);
        cr_assert_leq(count, MAX_MESHES);
        for (int j = 0; j < count; j++) {
            check(&meshes[j]);
        }
    }
}

static bool same_mesh(const Mesh *a, const Mesh *b) {
    return memcmp(a->size, b->size, sizeof a->size) == 0;
}

Test(mesh_property, enumeration_has_the_product_no_duplicates_and_a_stable_order) {
    static Mesh meshes[MAX_MESHES];
    static Mesh again[MAX_MESHES];
    const int all[] = {6, 7, 24, 32, 96, 1000};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const int count = mesh_enumerate(all[i], meshes, MAX_MESHES);
        cr_assert_eq(mesh_enumerate(all[i], again, MAX_MESHES), count);
        for (int j = 0; j < count; j++) {
            cr_assert_eq(mesh_world(&meshes[j]), all[i]);
            cr_assert(same_mesh(&meshes[j], &again[j]));
            for (int k = 0; k < j; k++) {
                cr_assert_not(same_mesh(&meshes[j], &meshes[k]), "meshes %d and %d of world %d", j, k, all[i]);
            }
        }
    }
}

static void check_round_trip(const Mesh *mesh) {
    const int world = mesh_world(mesh);
    for (int rank = 0; rank < world; rank++) {
        const MeshCoordinates at = mesh_coordinates(mesh, rank);
        cr_assert_eq(mesh_rank(mesh, &at), rank);
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            cr_assert(at.at[axis] >= 0 && at.at[axis] < mesh->size[axis]);
        }
    }
}

Test(mesh_property, rank_and_coordinates_are_inverse) {
    for_every_mesh(check_round_trip);
}

static void check_partition(const Mesh *mesh) {
    const int world = mesh_world(mesh);
    for (AxisMask mask = 0; mask <= AXIS_ALL; mask++) {
        const int size = mesh_group_size(mesh, mask);
        int times_seen[MAX_RANKS] = {0};
        for (int rank = 0; rank < world; rank++) {
            const MeshCoordinates at = mesh_coordinates(mesh, rank);
            const int index = mesh_group_index(mesh, mask, &at);
            cr_assert(index >= 0 && index < size);
            cr_assert_eq(mesh_group_member(mesh, mask, &at, index), rank, "a rank is the member of its own index");
            for (int i = 0; index == 0 && i < size; i++) {  // walk each group once, from its first member
                const int member = mesh_group_member(mesh, mask, &at, i);
                times_seen[member]++;
                cr_assert(i == 0 || member > mesh_group_member(mesh, mask, &at, i - 1), "members ascend");
            }
        }
        for (int rank = 0; rank < world; rank++) {
            cr_assert_eq(times_seen[rank], 1, "mask %u rank %d", mask, rank);
        }
    }
}

Test(mesh_property, groups_of_any_axes_partition_the_world) {
    for_every_mesh(check_partition);
}

// The placement by definition, with nothing clever: who is on which node.
static GroupPlacement placement_drawn(const Mesh *mesh, AxisMask mask, int ranks_per_node) {
    static int members[MAX_RANKS][MAX_RANKS];  // [group leader][node]
    const int world = mesh_world(mesh);
    const int nodes = (world + ranks_per_node - 1) / ranks_per_node;
    memset(members, 0, sizeof members);
    for (int rank = 0; rank < world; rank++) {
        const MeshCoordinates at = mesh_coordinates(mesh, rank);
        members[mesh_group_member(mesh, mask, &at, 0)][rank / ranks_per_node]++;
    }
    GroupPlacement placement = {.size = mesh_group_size(mesh, mask), .siblings = 1};
    for (int leader = 0; leader < world; leader++) {
        int touched = 0;
        for (int node = 0; node < nodes; node++) {
            touched += members[leader][node] > 0;
            placement.per_node =
                members[leader][node] > placement.per_node ? members[leader][node] : placement.per_node;
        }
        placement.nodes = touched > placement.nodes ? touched : placement.nodes;
    }
    for (int node = 0; node < nodes; node++) {
        int groups = 0;
        for (int leader = 0; leader < world; leader++) {
            groups += members[leader][node] > 0;
        }
        placement.siblings = groups > placement.siblings ? groups : placement.siblings;
    }
    return placement;
}

static void check_placement(const Mesh *mesh) {
    const int node_sizes[] = {1, 4, 8, 6};
    for (size_t i = 0; i < sizeof node_sizes / sizeof node_sizes[0]; i++) {
        for (AxisMask mask = 0; mask <= AXIS_ALL; mask++) {
            const GroupPlacement drawn = placement_drawn(mesh, mask, node_sizes[i]);
            const GroupPlacement found = mesh_group_placement(mesh, mask, node_sizes[i]);
            char text[MESH_TEXT_BYTES];
            cr_assert(found.size == drawn.size && found.nodes == drawn.nodes && found.per_node == drawn.per_node &&
                          found.siblings == drawn.siblings,
                      "%s mask %u on %d per node: n N p q %d %d %d %d, drawn %d %d %d %d", mesh_text(mesh, text), mask,
                      node_sizes[i], found.size, found.nodes, found.per_node, found.siblings, drawn.size, drawn.nodes,
                      drawn.per_node, drawn.siblings);
        }
    }
}

Test(mesh_property, placement_equals_counting_on_a_node_map) {
    for_every_mesh(check_placement);
}

static void check_text(const Mesh *mesh) {
    char text[MESH_TEXT_BYTES];
    Mesh parsed;
    Error error = {0};
    cr_assert_eq(mesh_parse(mesh_text(mesh, text), &parsed, &error), STATUS_OK, "%s", error.message);
    cr_assert(same_mesh(mesh, &parsed));
}

Test(mesh_property, text_parses_back) {
    for_every_mesh(check_text);
}

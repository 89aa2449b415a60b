// Invariants of every mesh of a world, in every order of its axes, and every set of axes: rank <-> coordinates, groups
// partition the world, placement agrees with counting on an explicit node map, text round trip. Small worlds are
// exhaustive; beyond them placement is checked on random cases (NDTUNE_SEED repeats them).

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sim/axes/mesh.h"
#include "tests/support/orders.h"
#include "tests/support/seed.h"
#include "tests/support/sizes.h"

static const int worlds[] = {1, 2, 6, 7, 24, 32, 56, 96};
enum { WORLD_COUNT = sizeof worlds / sizeof worlds[0], MAX_MESHES = 512, MAX_RANKS = 128 };

typedef void (*MeshCheck)(const Mesh *mesh);

static void for_every_mesh(MeshCheck check) {
    static Mesh meshes[MAX_MESHES];
    for (int i = 0; i < WORLD_COUNT; i++) {
        const int count = mesh_enumerate(worlds[i], AXES_FIRST, meshes, MAX_MESHES);
        cr_assert_leq(count, MAX_MESHES);
        for (int j = 0; j < count; j++) {
            check(&meshes[j]);
        }
    }
}

static AxisOrder order_number(int number) {
    AxisOrder orders[FIRST_ORDERS];
    first_orders(orders);
    return orders[number];
}

static MeshCheck check_of_orders;

// Every order that arranges the ranks of the shape differently.
static void in_every_order(const Mesh *shape) {
    for (int number = 0; number < FIRST_ORDERS; number++) {
        Mesh mesh = *shape;
        mesh.order = order_number(number);
        Mesh canonical = mesh;
        mesh_canonical_order(&canonical);
        if (memcmp(&mesh.order, &canonical.order, sizeof mesh.order) == 0) {
            check_of_orders(&mesh);
        }
    }
}

static void for_every_order(MeshCheck check) {
    check_of_orders = check;
    for_every_mesh(in_every_order);
}

static bool same_mesh(const Mesh *a, const Mesh *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

Test(mesh_property, enumeration_has_the_product_no_duplicates_and_a_stable_order) {
    static Mesh meshes[MAX_MESHES];
    static Mesh again[MAX_MESHES];
    const int all[] = {6, 7, 24, 32, 96, 1000};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const int count = mesh_enumerate(all[i], AXES_FIRST, meshes, MAX_MESHES);
        cr_assert_eq(mesh_enumerate(all[i], AXES_FIRST, again, MAX_MESHES), count);
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
    for_every_order(check_round_trip);
}

// Of every rank, once for all sets of axes.
static const MeshCoordinates *every_coordinate(const Mesh *mesh) {
    static MeshCoordinates at[MAX_RANKS];
    const int world = mesh_world(mesh);
    for (int rank = 0; rank < world; rank++) {
        at[rank] = mesh_coordinates(mesh, rank);
    }
    return at;
}

static void check_partition(const Mesh *mesh) {
    const int world = mesh_world(mesh);
    const MeshCoordinates *all = every_coordinate(mesh);
    for (AxisMask mask = 0; mask <= AXIS_ALL; mask++) {
        const int size = mesh_group_size(mesh, mask);
        int times_seen[MAX_RANKS] = {0};
        for (int rank = 0; rank < world; rank++) {
            const MeshCoordinates *at = &all[rank];
            const int index = mesh_group_index(mesh, mask, at);
            cr_assert(index >= 0 && index < size);
            cr_assert_eq(mesh_group_member(mesh, mask, at, index), rank, "a rank is the member of its own index");
            for (int i = 0, before = -1; index == 0 && i < size; i++) {  // walk each group once, from its first member
                const int member = mesh_group_member(mesh, mask, at, i);
                times_seen[member]++;
                cr_assert(member > before, "members ascend");
                before = member;
            }
        }
        for (int rank = 0; rank < world; rank++) {
            cr_assert_eq(times_seen[rank], 1, "mask %u rank %d", mask, rank);
        }
    }
}

Test(mesh_property, groups_of_any_axes_partition_the_world) {
    for_every_order(check_partition);
}

static bool arrange_alike(const Mesh *a, const Mesh *b) {
    for (int rank = 0; rank < mesh_world(a); rank++) {
        const MeshCoordinates left = mesh_coordinates(a, rank), right = mesh_coordinates(b, rank);
        if (memcmp(&left, &right, sizeof left) != 0) {
            return false;
        }
    }
    return true;
}

static void check_canonical(const Mesh *shape) {
    Mesh canonical[FIRST_ORDERS];
    for (int i = 0; i < FIRST_ORDERS; i++) {
        Mesh mesh = *shape;
        mesh.order = order_number(i);
        canonical[i] = mesh;
        mesh_canonical_order(&canonical[i]);
        cr_assert(arrange_alike(&mesh, &canonical[i]), "the canonical order moves ranks");
        cr_assert_eq(mesh_has_default_order(&mesh), arrange_alike(&mesh, shape));
        for (int j = 0; j < i; j++) {
            cr_assert_eq(same_mesh(&canonical[i], &canonical[j]), arrange_alike(&canonical[i], &canonical[j]));
        }
    }
}

Test(mesh_property, orders_that_arrange_the_ranks_alike_have_one_canonical_form) {
    for_every_mesh(check_canonical);
}

// A group is known by its first member: that of each rank's.
static void leaders_of(const Mesh *mesh, AxisMask mask, const MeshCoordinates all[], int leaders[MAX_RANKS]) {
    const int world = mesh_world(mesh);
    for (int rank = 0; rank < world; rank++) {
        leaders[rank] = mesh_group_member(mesh, mask, &all[rank], 0);
    }
}

// The placement by definition, computed naively: which rank is on which node.
static GroupPlacement placement_drawn(const Mesh *mesh, AxisMask mask, const int leaders[], int ranks_per_node) {
    static int members[MAX_RANKS][MAX_RANKS];  // [group][node]
    int groups = 0, group_of[MAX_RANKS];
    const int world = mesh_world(mesh);
    const int nodes = (world + ranks_per_node - 1) / ranks_per_node;
    for (int rank = 0; rank < world; rank++) {
        const int leader = leaders[rank];
        if (leader == rank) {
            memset(members[groups], 0, (size_t)nodes * sizeof members[groups][0]);
            group_of[rank] = groups++;
        }
        members[group_of[leader]][rank / ranks_per_node]++;
    }
    GroupPlacement placement = {.size = mesh_group_size(mesh, mask), .siblings = 1};
    for (int group = 0; group < groups; group++) {
        int touched = 0;
        for (int node = 0; node < nodes; node++) {
            touched += members[group][node] > 0;
            placement.per_node = members[group][node] > placement.per_node ? members[group][node] : placement.per_node;
        }
        placement.nodes = touched > placement.nodes ? touched : placement.nodes;
    }
    for (int node = 0; node < nodes; node++) {
        int here = 0;
        for (int group = 0; group < groups; group++) {
            here += members[group][node] > 0;
        }
        placement.siblings = here > placement.siblings ? here : placement.siblings;
    }
    return placement;
}

// An axis of size one splits nothing.
static AxisMask mask_of_cut(const Mesh *mesh) {
    AxisMask mask = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        mask |= mesh->size[axis] > 1 ? AXIS_BIT(axis) : 0;
    }
    return mask;
}

static void check_placement(const Mesh *mesh) {
    enum { NODE_SIZES = 4 };
    static const int node_sizes[NODE_SIZES] = {1, 4, 8, 6};
    const AxisMask cut = mask_of_cut(mesh);
    const MeshCoordinates *all = every_coordinate(mesh);
    GroupPlacement of_cut[AXIS_ALL + 1][NODE_SIZES];
    for (AxisMask mask = 0; mask <= AXIS_ALL; mask++) {  // from fewer axes to more
        int leaders[MAX_RANKS] = {0};
        if (!(mask & ~cut)) {
            leaders_of(mesh, mask, all, leaders);
        }
        for (int i = 0; i < NODE_SIZES; i++) {
            of_cut[mask][i] = mask & ~cut ? of_cut[mask & cut][i] : placement_drawn(mesh, mask, leaders, node_sizes[i]);
            const GroupPlacement drawn = of_cut[mask][i], found = mesh_group_placement(mesh, mask, node_sizes[i]);
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
    for_every_order(check_placement);
}

// By counting, without the tables of placement_drawn: node by node and group by group over the whole world.
static GroupPlacement placement_counted(const Mesh *mesh, AxisMask mask, int ranks_per_node) {
    enum { LARGE = 1 << 14 };
    static int last_node[LARGE], touched[LARGE], here[LARGE];
    GroupPlacement placement = {.size = mesh_group_size(mesh, mask)};
    const int world = mesh_world(mesh);
    cr_assert_lt(world, LARGE);
    memset(touched, 0, sizeof touched);
    int groups = 0;
    for (int rank = 0; rank < world; rank++) {
        const int node = rank / ranks_per_node;
        groups = rank % ranks_per_node == 0 ? 0 : groups;
        const MeshCoordinates at = mesh_coordinates(mesh, rank);
        const int leader = mesh_group_member(mesh, mask, &at, 0);
        const bool first_here = touched[leader] == 0 || last_node[leader] != node;
        touched[leader] += first_here;
        here[leader] = first_here ? 1 : here[leader] + 1;
        groups += first_here;
        last_node[leader] = node;
        placement.nodes = touched[leader] > placement.nodes ? touched[leader] : placement.nodes;
        placement.per_node = here[leader] > placement.per_node ? here[leader] : placement.per_node;
        placement.siblings = groups > placement.siblings ? groups : placement.siblings;
    }
    return placement;
}

static uint64_t seed_next(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

Test(mesh_property, placement_of_larger_worlds_equals_counting) {
    uint64_t seed = seed_of_run("placement", 20261119);
    for (int round = 0; round < 1500; round++) {
        Mesh mesh = {.size = SIZES(1, 1, 1, 1), .order = order_number((int)(seed_next(&seed) % FIRST_ORDERS))};
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 16, 25, 33, 127, 500};
            const int size = sizes[seed_next(&seed) % (sizeof sizes / sizeof *sizes)];
            mesh.size[axis] = mesh_world(&mesh) * size < 1 << 14 ? size : 1;
        }
        mesh.size[AXIS_EP] = mesh_lends_evenly(&mesh) ? mesh.size[AXIS_EP] : 1;
        static const int node_sizes[] = {2, 3, 4, 6, 8, 8, 8, 16, 18, 36, 72};
        const int per_node = node_sizes[seed_next(&seed) % (sizeof node_sizes / sizeof *node_sizes)];
        AxisMask mask = (AxisMask)(seed_next(&seed) % (AXIS_ALL + 1));
        mask = round % 2 ? mask : (mask & ~AXIS_BIT(AXIS_EP)) | AXES_LEFT_BY_EP;
        const GroupPlacement counted = placement_counted(&mesh, mask, per_node);
        const GroupPlacement found = mesh_group_placement(&mesh, mask, per_node);
        char text[MESH_TEXT_BYTES], order[MESH_TEXT_BYTES];
        cr_assert(found.size == counted.size && found.nodes == counted.nodes && found.per_node == counted.per_node &&
                      found.siblings == counted.siblings,
                  "%s order %s mask %u on %d per node: n N p q %d %d %d %d, counted %d %d %d %d",
                  mesh_text(&mesh, text), mesh_order_text(&mesh, order), mask, per_node, found.size, found.nodes,
                  found.per_node, found.siblings, counted.size, counted.nodes, counted.per_node, counted.siblings);
    }
}

static void check_text(const Mesh *mesh) {
    char text[MESH_TEXT_BYTES];
    Mesh parsed;
    Error error = {0};
    cr_assert_eq(mesh_parse(mesh_text(mesh, text), &parsed, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(axis_order_parse(mesh_order_text(mesh, text), &parsed.order, &error), STATUS_OK, "%s", error.message);
    mesh_canonical_order(&parsed);
    cr_assert(same_mesh(mesh, &parsed), "%s", text);
}

Test(mesh_property, text_parses_back) {
    for_every_order(check_text);
}

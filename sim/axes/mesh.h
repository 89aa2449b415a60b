// Mesh: how ranks are arranged over the axes of axes.h, which lie from slow to fast in the table's order unless an
// order says otherwise, so rank = (((p*R + r)*S + s)*C + c)*T + t.

#pragma once

#include "sim/axes/axes.h"
#include "sim/base/error.h"
#include "sim/base/hash.h"

#define AXIS_TEXT_BYTES(symbol, name, role, lenders) +sizeof #name "=1048576,"
enum { MESH_TEXT_BYTES = 56 AXIS_LIST(AXIS_TEXT_BYTES), MESH_MAX_WORLD = 1 << 20 };
#define MESH_BUFFER ((char[MESH_TEXT_BYTES]){0})  // room for one text: lives as long as the block around it

// The axes from slow to fast: place p holds axis (p + shift[p]) modulo their number, so all zero is the default order.
typedef struct AxisOrder {
    uint8_t shift[AXIS_COUNT];
} AxisOrder;

typedef struct Mesh {
    int size[AXIS_COUNT];
    AxisOrder order;
} Mesh;

typedef struct MeshCoordinates {
    int at[AXIS_COUNT];  // of a borrowed axis: the place in its group
} MeshCoordinates;

Mesh mesh_of_one(void);  // one rank: every axis is 1

int mesh_world(const Mesh *mesh);                              // ranks
MeshCoordinates mesh_coordinates(const Mesh *mesh, int rank);  // ranks count up along the fastest axis first
int mesh_rank(const Mesh *mesh, const MeshCoordinates *at);    // the inverse

static inline Axis mesh_axis_at(const Mesh *mesh, int place) {  // place 0 is the slowest
    return (Axis)((place + mesh->order.shift[place]) % AXIS_COUNT);
}

// Ranks along the axis: 1 for a borrowed one, whose ranks are its lenders'.
static inline int mesh_extent(const Mesh *mesh, Axis axis) {
    return AXES_OWN & AXIS_BIT(axis) ? mesh->size[axis] : 1;
}

// Can each borrowed axis take its ranks from its lenders, the fastest first, in whole parts? This many ranks?
bool mesh_lends_evenly(const Mesh *mesh);
bool mesh_lends_ranks(const Mesh *mesh, AxisMask lenders, int ranks);

// The next order of the axes larger than 1, in lexicographic order: from the default one on, in which a new Mesh is.
// False after the last, with the default order again.
bool mesh_next_order(Mesh *mesh);

// Axes of size 1 do not affect rank order: they go to their default places, so meshes that arrange all ranks alike are
// equal, and all zero where that is the default arrangement.
void mesh_canonical_order(Mesh *mesh);
bool mesh_has_default_order(const Mesh *mesh);       // arranges the ranks so
bool mesh_same_shape(const Mesh *a, const Mesh *b);  // equal sizes, in any order

// A group is the ranks that differ only along the axes of mask, ordered as the mesh orders them (slow axis first). The
// group of a borrowed axis is the part of its lenders' group that is nearest: dp_shard 4, cp 2 and an axis of 4 that
// borrows from both give groups of two neighbouring dp_shard coordinates with their cp ranks.
int mesh_lent_extent(const Mesh *mesh, AxisMask mask, Axis axis);  // ranks along an axis not in mask, borrowed by it

// The same for the given number of the lenders' nearest ranks.
int mesh_nearest_extent(const Mesh *mesh, AxisMask lenders, int ranks, Axis axis);

// How far neighbours along the axis lie apart in a group: as far as what is left out of it takes ranks of the axis.
static inline int mesh_group_step(const Mesh *mesh, AxisMask mask, Axis axis) {
    if (axes_apart_ranks(mask) > 0) {
        return mask & AXES_OWN & AXIS_BIT(axis)
                   ? mesh_nearest_extent(mesh, mask & AXES_OWN, axes_apart_ranks(mask), axis)
                   : 1;
    }
    return mask & AXES_LEFT_BY_EP ? mesh_lent_extent(mesh, AXIS_BIT(AXIS_EP), axis) : 1;
}

static inline int mesh_group_extent(const Mesh *mesh, AxisMask mask, Axis axis) {
    if (axes_nearest_ranks(mask) > 0 && !(AXES_STAGE & AXIS_BIT(axis))) {  // stages lend none
        return mask & AXES_OWN & AXIS_BIT(axis)
                   ? mesh_nearest_extent(mesh, mask & AXES_OWN, axes_nearest_ranks(mask), axis) /
                         mesh_group_step(mesh, mask, axis)
                   : 1;
    }
    return mask & AXIS_BIT(axis)  ? mesh_extent(mesh, axis) / mesh_group_step(mesh, mask, axis)
           : mask & AXES_BORROWED ? mesh_lent_extent(mesh, mask, axis)
                                  : 1;
}

static inline int mesh_group_size(const Mesh *mesh, AxisMask mask) {
    int size = 1;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        size *= mesh_group_extent(mesh, mask, (Axis)axis);
    }
    return size;
}

int mesh_group_index(const Mesh *mesh, AxisMask mask, const MeshCoordinates *at);  // of this rank in its group
int mesh_group_member(const Mesh *mesh, AxisMask mask, const MeshCoordinates *at, int index);  // rank of a member

static inline int mesh_stages(const Mesh *mesh) {  // of the pipeline; 1 where no axis has that role
    return mesh_group_size(mesh, AXES_STAGE);
}

static inline bool mesh_has_stages(const Mesh *mesh) {
    return mesh_stages(mesh) > 1;
}

static inline int mesh_stage_of(const Mesh *mesh, int rank) {
    const MeshCoordinates at = mesh_coordinates(mesh, rank);
    return mesh_group_index(mesh, AXES_STAGE, &at);
}

// Is a rank of a stage on another node than the rank of the other stage with the same place on the other axes?
bool mesh_stages_cross(const Mesh *mesh, int stage, int other, int ranks_per_node);

AxisMask mesh_real_axes(const Mesh *mesh, AxisMask axes);  // the axes among them larger than 1
AxisMask mesh_named_axes(const Mesh *mesh);                // AXES_FIRST and those larger than 1: what texts name

// Block placement: node = rank / ranks_per_node. What a group's traffic sees (sim/SOURCES.md C2):
typedef struct GroupPlacement {
    int size;      // n
    int nodes;     // N: nodes that one group touches
    int per_node;  // p: members on the fullest node
    int siblings;  // q: groups of the same mask with members on one node, at least 1
    int span;      // ranks from a group's first member to its last, both counted; above n = others in between; 0 = n
    double
        merged;  // of an all-to-all by DeepEP's kernels: parts for a node's ranks that travel to it as one; 0 = NCCL's
} GroupPlacement;

GroupPlacement mesh_group_placement(const Mesh *mesh, AxisMask mask, int ranks_per_node);

// All ordered factorizations of world over the axes of mask, the others 1, in a stable order (dp_replicate slowest,
// descending last): writes at most capacity meshes, returns how many exist. A borrowed axis takes every size that its
// lenders can lend evenly.
int mesh_enumerate(int world, AxisMask axes, Mesh *meshes, int capacity);

// Sizes as they are stored: the axes of AXES_FIRST, of the others those larger than 1 with their names. The order by
// the axes' numbers, without axes that are not of AXES_FIRST and are in their default places.
void mesh_hash_sizes(const Mesh *mesh, Hash *hash);
void axis_order_hash(const AxisOrder *order, Hash *hash);

// "dp_shard=8,tp=2" (axes not named are 1) and back, with all axes of AXES_FIRST and those larger than 1, without the
// order. Errors name the word and what is allowed.
Status mesh_parse(const char *text, Mesh *mesh, Error *error);
char *mesh_text(const Mesh *mesh, char out[MESH_TEXT_BYTES]);

// "dp_shard=16,tp=2": the axes that are not 1, as --mesh takes them; "dp_shard=1" for one rank.
char *mesh_short_text(const Mesh *mesh, char out[MESH_TEXT_BYTES]);

// "dp_replicate 0, dp_shard 3, cp 1, tp 0", the axes that mesh_text names.
char *mesh_coordinates_text(const Mesh *mesh, const MeshCoordinates *at, char out[MESH_TEXT_BYTES]);

const char *mesh_axes_words(AxisMask axes, Arena *arena);  // "dp_shard x tp"

// "tp,dp_shard": slow to fast, the axes larger than 1; "default" where that is the arrangement. Read back, axes that
// are not named come before the named ones, in their default order.
char *mesh_order_text(const Mesh *mesh, char out[MESH_TEXT_BYTES]);
Status axis_order_parse(const char *text, AxisOrder *order, Error *error);

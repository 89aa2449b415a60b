// Mesh: how ranks are arranged. Axes from slow to fast, unless an order says otherwise: dp_replicate, dp_shard, cp, tp,
// so rank = ((r*S + s)*C + c)*T + t. An axis is a row here; nothing else knows how many there are.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"

typedef enum { AXIS_DP_REPLICATE, AXIS_DP_SHARD, AXIS_CP, AXIS_TP, AXIS_COUNT } Axis;

typedef uint32_t AxisMask;  // bit 1 << axis
#define AXIS_BIT(axis) ((AxisMask)1 << (axis))
#define AXIS_SHARD_GROUP (AXIS_BIT(AXIS_DP_SHARD) | AXIS_BIT(AXIS_CP))  // the FSDP group
#define AXIS_ALL ((AxisMask)((1u << AXIS_COUNT) - 1))

enum { MESH_TEXT_BYTES = 96, MESH_MAX_WORLD = 1 << 20 };

// The axes from slow to fast: place p holds axis (p + shift[p]) modulo their number, so all zero is the default order.
typedef struct AxisOrder {
    uint8_t shift[AXIS_COUNT];
} AxisOrder;

typedef struct Mesh {
    int size[AXIS_COUNT];
    AxisOrder order;
} Mesh;

typedef struct MeshCoordinates {
    int at[AXIS_COUNT];
} MeshCoordinates;

extern const char *const axis_names[AXIS_COUNT];  // "dp_replicate" ...
Axis axis_find(const char *word);                 // AXIS_COUNT where there is none of that name

int mesh_world(const Mesh *mesh);
MeshCoordinates mesh_coordinates(const Mesh *mesh, int rank);
int mesh_rank(const Mesh *mesh, const MeshCoordinates *at);

static inline Axis mesh_axis_at(const Mesh *mesh, int place) {  // place 0 is the slowest
    return (Axis)((place + mesh->order.shift[place]) % AXIS_COUNT);
}

AxisOrder axis_order(const Axis slow_to_fast[AXIS_COUNT]);

enum { AXIS_ORDERS = 24 };                        // permutations of the axes
void axis_orders(AxisOrder orders[AXIS_ORDERS]);  // all, in lexicographic order, so the default one first

// Axes of size 1 move no rank: they go to their default places, so meshes that arrange all ranks alike are equal, and
// all zero where that is the default arrangement.
void mesh_canonical_order(Mesh *mesh);
bool mesh_has_default_order(const Mesh *mesh);       // arranges the ranks so
bool mesh_same_shape(const Mesh *a, const Mesh *b);  // equal sizes, in whatever order

// A group is the ranks that differ only along the axes of mask, ordered as the mesh orders them (slow axis first).
int mesh_group_size(const Mesh *mesh, AxisMask mask);
int mesh_group_index(const Mesh *mesh, AxisMask mask, const MeshCoordinates *at);  // of this rank in its group
int mesh_group_member(const Mesh *mesh, AxisMask mask, const MeshCoordinates *at, int index);  // rank of a member

// Block placement: node = rank / ranks_per_node. What a group's traffic sees (collectives.md 6.2):
typedef struct GroupPlacement {
    int size;      // n
    int nodes;     // N: nodes that one group touches
    int per_node;  // p: members on the fullest node
    int siblings;  // q: groups of the same mask with members on one node, at least 1
    int span;      // ranks from a group's first member to its last, both counted; above n = others in between; 0 = n
} GroupPlacement;

GroupPlacement mesh_group_placement(const Mesh *mesh, AxisMask mask, int ranks_per_node);

// All ordered factorizations of world, in a stable order (dp_replicate slowest, descending last): writes at most
// capacity meshes, returns how many exist.
int mesh_enumerate(int world, Mesh *meshes, int capacity);

// "dp_shard=8,tp=2" (axes not named are 1) and back, all four axes named, without the order. Errors name the word and
// what is allowed.
Status mesh_parse(const char *text, Mesh *mesh, Error *error);
char *mesh_text(const Mesh *mesh, char out[MESH_TEXT_BYTES]);

// "dp_shard=16,tp=2": the axes that are not 1, as --mesh takes them; "dp_shard=1" for one rank.
char *mesh_short_text(const Mesh *mesh, char out[MESH_TEXT_BYTES]);

const char *mesh_axes_words(AxisMask axes, Arena *arena);  // "dp_shard x tp"

// "tp,dp_shard": slow to fast, the axes larger than 1; "default" where that is the arrangement. Read back, axes that
// are not named come before the named ones, in their default order.
char *mesh_order_text(const Mesh *mesh, char out[MESH_TEXT_BYTES]);
Status axis_order_parse(const char *text, AxisOrder *order, Error *error);

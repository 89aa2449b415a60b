// Mesh: how ranks are arranged. Axes from slow to fast: dp_replicate, dp_shard, cp, tp, so
// rank = ((r*S + s)*C + c)*T + t. An axis is a row here; nothing else knows how many there are.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/error.h"

typedef enum { AXIS_DP_REPLICATE, AXIS_DP_SHARD, AXIS_CP, AXIS_TP, AXIS_COUNT } Axis;

typedef uint32_t AxisMask;  // bit 1 << axis
#define AXIS_BIT(axis) ((AxisMask)1 << (axis))
#define AXIS_SHARD_GROUP (AXIS_BIT(AXIS_DP_SHARD) | AXIS_BIT(AXIS_CP))  // the FSDP group
#define AXIS_ALL ((AxisMask)((1u << AXIS_COUNT) - 1))

enum { MESH_TEXT_BYTES = 96, MESH_MAX_WORLD = 1 << 20 };

typedef struct Mesh {
    int size[AXIS_COUNT];
} Mesh;

typedef struct MeshCoordinates {
    int at[AXIS_COUNT];
} MeshCoordinates;

extern const char *const axis_names[AXIS_COUNT];  // "dp_replicate" ...

int mesh_world(const Mesh *mesh);
MeshCoordinates mesh_coordinates(const Mesh *mesh, int rank);
int mesh_rank(const Mesh *mesh, const MeshCoordinates *at);

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

// "dp_shard=8,tp=2" (axes not named are 1) and back, all four axes named. Errors name the word and what is allowed.
Status mesh_parse(const char *text, Mesh *mesh, Error *error);
char *mesh_text(const Mesh *mesh, char out[MESH_TEXT_BYTES]);

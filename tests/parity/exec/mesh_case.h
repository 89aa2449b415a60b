// Plans of our own program on all shapes of a world, compared with one rank.

#pragma once

#include "tests/parity/exec/exec_case.h"

// A model and a batch that every shape of some worlds divides.
typedef struct MeshFamily {
    int heads, kv_heads, ffn, vocab, seq, batch, steps;
    Finetune finetune;
    Experts experts;  // mixtral's where there are any
} MeshFamily;

extern const MeshFamily mesh_twos, mesh_twos_short;      // worlds 1, 2, 4 and 8
extern const MeshFamily mesh_twos_adapters;              // the same, adapters of rank 4
extern const MeshFamily mesh_twos_experts;               // and with 8 experts per layer, 2 per token
extern const MeshFamily mesh_threes, mesh_threes_short;  // worlds 1, 2, 3, 4, 6 and 12

RunRequest mesh_request(const MeshFamily *family, const TrainPlan *plan);

// The family's batch on this mesh. False when it cannot be split that way.
bool mesh_plan(const MeshFamily *family, const Mesh *mesh, int grad_accum, TrainPlan *plan);

RunResult mesh_one_rank(const MeshFamily *family, Arena *arena);

// A plan of the shape whose stage, accumulation, reshard and recompute walk through their values as the index grows.
TrainPlan mesh_spread_plan(const MeshFamily *family, const Mesh *mesh, int index);

// Stages 0 to 3, reshard always and never, recompute none and full, one and two micro-steps on every shape of a world:
// canonical plans, once each. Each is expected to train as one rank.
void mesh_plans_train(const MeshFamily *family, int world);
// The same for shapes of all of `axes` in which `cut` is above 1; AXIS_COUNT: of all.
void mesh_plans_train_with(const MeshFamily *family, int world, AxisMask axes, Axis cut);

// From the plans of several worlds (a list ended by 0), a few that cover every pair of axis size and choice. Worlds
// above 8 cost most: their shapes have one choice each.
void mesh_pairs_train(const MeshFamily *family, const int *worlds);

// The same for shapes of all of `axes` in which `cut` is above 1.
void mesh_pairs_train_with(const MeshFamily *family, const int *worlds, AxisMask axes, Axis cut);

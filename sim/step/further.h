// Layers that predict further tokens (MTP), around the last stage's head (lower_further.c); no-ops without any.

#pragma once

#include "sim/step/lower_ops.h"

// Slices of the head's unit: norms, then projections and the embedding's table where it is a copy.
void add_further_vectors(Lowering *lowering, Unit *unit);
void add_further_matrices(Lowering *lowering, Unit *unit);
void add_norm_slices(Lowering *lowering, Unit *unit, const char *weight, const char *bias);  // lower_units.c

// From the stage's last stream to the loss of each; backward, to what is added to the stream's gradient.
void lower_further(Lowering *lowering, const Linear *head, OpRef x_last);
OpRef lower_further_backward(Lowering *lowering, const Linear *head, OpRef x_last);
Op *add_embedding(Lowering *lowering, Section section, TaskKind kind, Phase phase, const char *name);  // lower_edges.c

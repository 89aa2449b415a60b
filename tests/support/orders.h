// The orders of the axes common to all meshes, to draw from.

#pragma once

#include "sim/axes/mesh.h"

// As --rank-order reads it: axes that are not named come before.
static inline AxisOrder order_of(const char *slow_to_fast) {
    AxisOrder order;
    Error error = {0};
    ASSERT(axis_order_parse(slow_to_fast, &order, &error) == STATUS_OK);
    return order;
}

enum { FIRST_ORDERS = 4 * 3 * 2 };  // of the axes of AXES_FIRST

// All, in lexicographic order, so the default one first.
static inline void first_orders(AxisOrder orders[FIRST_ORDERS]) {
    Mesh mesh = mesh_of_one();
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        mesh.size[axis] += AXES_FIRST & AXIS_BIT(axis) ? 1 : 0;
    }
    int count = 0;
    do {
        orders[count++] = mesh.order;
    } while (mesh_next_order(&mesh));
}

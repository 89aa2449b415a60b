// The shape of a launch: blocks, threads per block, dynamic shared memory. Pure numbers, from functions that tests can
// call without a GPU.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" (8.0 and newer).
#define LAUNCH_MAX_GRID_X INT32_MAX
enum {
    LAUNCH_MAX_GRID_YZ = 65535,
    LAUNCH_MAX_THREADS = 1024,
    LAUNCH_SHARED_BYTES = 48 * 1024,      // without opting in to more
    LAUNCH_MAX_SHARED_BYTES = 163 * 1024  // per block on sm_80; sm_90 and sm_100 have 227 KB
};

typedef struct LaunchShape {
    uint32_t grid_x, grid_y, grid_z;
    uint32_t threads;  // per block, in one dimension
    uint32_t shared_bytes;
} LaunchShape;

static inline bool launch_shape_is_legal(const LaunchShape *shape) {
    return shape->grid_x >= 1 && shape->grid_x <= (uint32_t)LAUNCH_MAX_GRID_X && shape->grid_y >= 1 &&
           shape->grid_y <= LAUNCH_MAX_GRID_YZ && shape->grid_z >= 1 && shape->grid_z <= LAUNCH_MAX_GRID_YZ &&
           shape->threads >= 1 && shape->threads <= LAUNCH_MAX_THREADS;
}

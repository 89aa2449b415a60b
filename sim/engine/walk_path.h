// What is issued after a stretch of the program, in order: layer loops by their first iterations, then the rest of them
// at once. Private to sim/engine.

#pragma once

#include "sim/engine/engine_program.h"

// What is walked before the simulation goes on: a layer loop or a segment of tasks.
typedef struct WalkStretch {
    int32_t segment, end;
    int32_t repeat;  // the micro-step loop around it, or -1
    bool last;       // iteration of that loop; true where there is none
} WalkStretch;

struct PathStep {
    int32_t segment;     // of tasks
    int32_t layer_loop;  // around it, or -1
    int32_t layer;       // of the iteration; 0 outside of layer loops
    bool rest;           // all iterations after the first PATH_ITERATIONS
    int32_t micro_loop;  // after the stretch, of which this is the first iteration; or -1
    uint32_t again;      // lanes of a loop that ends with this step, but goes round first
    uint32_t lanes;      // of the segment
};

enum { PATH_ITERATIONS = 4 };

// Steps in the micro-step loop of the stretch, where there is one, and then an end of the program's path.
typedef struct WalkPath {
    PathStep *in_loop;
    const PathStep *behind;
    int32_t loop_count, count;  // in the loop; of all
} WalkPath;

static inline const PathStep *walk_path_step(const WalkPath *path, int32_t index) {
    return index < path->loop_count ? &path->in_loop[index] : &path->behind[index - path->loop_count];
}

// Lists the path of the whole program, with whose end the path behind any stretch ends.
void walk_path_compile(EngineProgram *compiled, Arena *arena);

// With room for any path of the program.
WalkPath walk_path_new(const EngineProgram *compiled, Arena *arena);
void walk_path_make(const EngineProgram *compiled, const WalkStretch *stretch, WalkPath *path);

typedef struct PathPlace {
    int32_t step, task;  // step -1: the lane has no further task
    bool known;          // false: it is in the rest of a layer loop, or a loop goes round before it
} PathPlace;

// The task of the lane after `passed` others.
PathPlace walk_path_find(const EngineProgram *compiled, const WalkPath *path, int lane, int32_t passed);

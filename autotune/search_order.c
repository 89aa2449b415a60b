// Who is looked at first: by the estimate, in the order of the objective.

#include <math.h>
#include <stdlib.h>

#include "autotune/search_internal.h"

// Within a shape: what seems to fit, best first, then the rest by how little it lacks; pruned candidates last.
typedef struct Promise {
    Candidate *candidate;
    int class;     // 0 seems to fit, 1 does not, 2 pruned
    double score;  // more is better
} Promise;

static int promise_compare(const void *a, const void *b) {
    const Promise *left = a, *right = b;
    const Candidate *l = left->candidate, *r = right->candidate;
    if (l->shape != r->shape) {
        return l->shape - r->shape;
    }
    if (left->class != right->class) {
        return left->class - right->class;
    }
    if (left->score != right->score) {
        return left->score > right->score ? -1 : 1;
    }
    return l < r ? -1 : l > r;  // the space's own order
}

typedef struct ShapePromise {
    double score;
    int shape;
} ShapePromise;

static int shape_compare(const void *a, const void *b) {
    const ShapePromise *left = a, *right = b;
    if (left->score != right->score) {
        return left->score > right->score ? -1 : 1;
    }
    return left->shape - right->shape;
}

static Promise promise_of(const Search *search, Candidate *candidate) {
    const bool by_memory = search->request->objective == OBJECTIVE_MEMORY;
    const int class = candidate->state == CANDIDATE_REJECTED ? 2 : search_seems_to_fit(search, candidate) ? 0 : 1;
    const bool by_speed = class == 0 && !by_memory;
    return (Promise){candidate, class, by_speed ? candidate->tokens_per_s : -candidate->reserved_bytes};
}

void search_order(Search *search) {
    const int count = search->space.candidate_count, shapes = search->space.mesh_count;
    Promise *promises = ARENA_ARRAY(search->arena, Promise, count);
    for (int i = 0; i < count; i++) {
        promises[i] = promise_of(search, &search->space.candidates[i]);
    }
    qsort(promises, (size_t)count, sizeof *promises, promise_compare);
    search->order = ARENA_ARRAY(search->arena, Candidate *, count);
    for (int i = 0; i < count; i++) {
        search->order[i] = promises[i].candidate;
    }
    ShapePromise *ranked = ARENA_ARRAY(search->arena, ShapePromise, shapes);
    for (int shape = 0; shape < shapes; shape++) {
        const Promise *best = &promises[search->first_of_shape[shape]];
        ranked[shape] = (ShapePromise){best->class == 0 ? best->score : -INFINITY, shape};
    }
    qsort(ranked, (size_t)shapes, sizeof *ranked, shape_compare);
    search->shape_order = ARENA_ARRAY(search->arena, int, shapes);
    for (int i = 0; i < shapes; i++) {
        search->shape_order[i] = ranked[i].shape;
    }
}

// Which candidates are evaluated first: by estimate, in the order of the objective.

#include <stdlib.h>

#include "autotune/search/best.h"
#include "autotune/search/search_internal.h"

// Within a shape: what seems to fit, with room before without, best first; then the rest by how little it lacks; pruned
// candidates last.
typedef enum { PROMISE_ROOMY, PROMISE_TIGHT, PROMISE_TOO_LARGE, PROMISE_PRUNED } PromiseClass;

typedef struct Promise {
    int at;  // which candidate, or which shape
    PromiseClass class;
    double score;  // more is better
} Promise;

static int promise_compare(const void *a, const void *b) {
    const Promise *left = a, *right = b;
    if (left->class != right->class) {
        return (int)left->class - (int)right->class;
    }
    if (left->score != right->score) {
        return left->score > right->score ? -1 : 1;
    }
    return left->at - right->at;  // the space's own order
}

static Promise promise_of(const Search *search, int at) {
    const Candidate *candidate = &search->space.candidates[at];
    const TuneRequest *request = search->request;
    const bool by_memory = request->objective == OBJECTIVE_MEMORY;
    const bool room = by_memory || best_leaves_room(request, candidate->reserved_bytes);
    const bool pruned = candidate->state == CANDIDATE_REJECTED || search_is_far(search, candidate);
    const PromiseClass class = pruned                                    ? PROMISE_PRUNED
                               : !search_seems_to_fit(search, candidate) ? PROMISE_TOO_LARGE
                               : room                                    ? PROMISE_ROOMY
                                                                         : PROMISE_TIGHT;
    const bool by_speed = class <= PROMISE_TIGHT && !by_memory;
    return (Promise){at, class, by_speed ? candidate->tokens_per_s : -candidate->reserved_bytes};
}

void search_order(Search *search) {
    const int count = search->space.candidate_count, shapes = search->space.mesh_count;
    Promise *promises = ARENA_UNCLEARED(search->arena, Promise, count);
    for (int i = 0; i < count; i++) {
        promises[i] = promise_of(search, i);
    }
    for (int shape = 0; shape < shapes; shape++) {  // they are in the order of the shapes
        const int first = search->first_of_shape[shape], end = search->first_of_shape[shape + 1];
        qsort(&promises[first], (size_t)(end - first), sizeof *promises, promise_compare);
    }
    search->order = ARENA_UNCLEARED(search->arena, Candidate *, count);
    for (int i = 0; i < count; i++) {
        search->order[i] = &search->space.candidates[promises[i].at];
    }
    Promise *ranked = ARENA_ARRAY(search->arena, Promise, shapes);
    for (int shape = 0; shape < shapes; shape++) {
        const Promise *best = &promises[search->first_of_shape[shape]];
        const bool fits = best->class <= PROMISE_TIGHT;
        ranked[shape] = (Promise){shape, fits ? best->class : PROMISE_TOO_LARGE, fits ? best->score : 0};
    }
    qsort(ranked, (size_t)shapes, sizeof *ranked, promise_compare);
    search->shape_order = ARENA_ARRAY(search->arena, int, shapes);
    for (int i = 0; i < shapes; i++) {
        search->shape_order[i] = ranked[i].at;
    }
}

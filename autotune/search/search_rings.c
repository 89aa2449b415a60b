// Rings that do not pay. Twice the ranks on a sequence leave half the ranks for batches: the pipelines get twice the
// micro-steps and wait half as long, activations halve, and nothing else gets less. So a shape bounds the throughput of
// the one with the ring twice as long; if that is clearly slower than the best known plan, that shape and all with
// longer rings are listed, not priced: their programs are the longest of all. Shapes are screened ring by ring, the
// short ones first, so what is left out does not depend on which thread was faster. Left out: shapes without stages.

#include <math.h>
#include <string.h>

#include "autotune/search/search_internal.h"

enum { SHORT_RING = 8 };            // up to here all are priced, as by the rule of slices (prune.c)
static const double BEHIND = 0.06;  // possible relative error between two estimates (search_settle.c)

// Shapes that differ only in their data ranks.
struct RingGroup {
    int size[AXIS_COUNT];  // of the data axes: 0
    double hope;           // tokens per second that a ring twice as long may reach; it reaches any where none fits
};

static void key_of(const Mesh *mesh, int cp, int size[AXIS_COUNT]) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        size[axis] = AXES_BATCH >> axis & 1 ? 0 : mesh->size[axis];
    }
    size[AXIS_CP] = cp;
}

static RingGroup *find_group(const Search *search, const Mesh *mesh, int cp) {
    int size[AXIS_COUNT];
    key_of(mesh, cp, size);
    for (int i = 0; i < search->ring_count; i++) {
        if (memcmp(search->rings[i].size, size, sizeof size) == 0) {
            return &search->rings[i];
        }
    }
    return NULL;
}

static bool is_asked_for(const Search *search, const Mesh *mesh) {
    return mesh_same_shape(mesh, &search->request->baseline) ||
           (search->reference && mesh_same_shape(mesh, search->reference));
}

// A query about a plan's gap to the best also gets similar plans that are no slower, however far from the best.
static bool passes_over(const Search *search) {
    return search->near && !search->who;
}

// Does it say what a longer ring may reach?
bool search_ring_speaks(const Mesh *mesh) {
    return 2 * mesh->size[AXIS_CP] > SHORT_RING;
}

static const RingGroup *outdone_by(const Search *search, int shape) {
    const TuneRequest *request = search->request;
    const Mesh *mesh = &search->space.meshes[shape];
    const int cp = mesh->size[AXIS_CP];
    if (cp <= SHORT_RING || cp % 2 != 0 || !mesh_has_stages(mesh) || request->objective == OBJECTIVE_MEMORY ||
        !search_takes(request, SHORTCUT_RINGS) || is_asked_for(search, mesh)) {
        return NULL;
    }
    const RingGroup *half = find_group(search, mesh, cp / 2);
    const double behind = passes_over(search) ? CLEARLY_BEHIND : BEHIND;
    return half && half->hope > 0 && half->hope < (1 - behind) * search->best_estimate ? half : NULL;
}

const char *search_ring_outdone(const Search *search, SearchWorker *worker, int shape) {
    const RingGroup *half = outdone_by(search, shape);
    return half ? arena_format(&worker->arena,
                               "%swith cp=%d, pp=%d and tp=%d this is at most %.0f %% of the best: longer rings only "
                               "add hops, use cp %d or less",
                               passes_over(search) ? "not priced: " : "", half->size[AXIS_CP], half->size[AXIS_PP],
                               half->size[AXIS_TP], 100 * half->hope / search->best_estimate, half->size[AXIS_CP])
                : NULL;
}

static double hope_of(const Search *search, const Candidate *candidate) {
    const Estimate *estimate = search_estimate_of(search, candidate);
    return candidate->tokens_per_s * estimate->step_s / (estimate->step_s - estimate->bubble_s / 2);
}

static RingGroup *take_group(Search *search, const Mesh *mesh) {
    RingGroup *group = find_group(search, mesh, mesh->size[AXIS_CP]);
    if (!group) {
        search->rings = arena_grow(search->arena, search->rings, (size_t)search->ring_count, &search->ring_capacity,
                                   sizeof *search->rings);
        group = &search->rings[search->ring_count++];
        *group = (RingGroup){0};
        key_of(mesh, mesh->size[AXIS_CP], group->size);
    }
    return group;
}

// Before the best estimate takes note of the shape's wave. What the shape has no memory for, as recomputing less, there
// may be memory for in a longer ring; what is passed over is so whatever it needs.
void search_note_ring(Search *search, int shape) {
    const Mesh *mesh = &search->space.meshes[shape];
    if (!mesh_has_stages(mesh)) {
        return;
    }
    const RingGroup *half = outdone_by(search, shape);
    double hope = half ? half->hope : 0;
    bool fits = half != NULL, timed = false, lacks = false;
    for (int i = search->first_of_shape[shape]; i < search->first_of_shape[shape + 1]; i++) {
        const Candidate *candidate = &search->space.candidates[i];
        if (candidate->state == CANDIDATE_ESTIMATED) {
            hope = fmax(hope, hope_of(search, candidate));
            fits |= search_seems_to_fit(search, candidate) && !search_is_passed_over(search, candidate);
            timed |= passes_over(search) && search_is_passed_over(search, candidate);
            lacks |= !search_seems_to_fit(search, candidate);
        }
    }
    if (fits || (timed && !lacks)) {
        RingGroup *group = take_group(search, mesh);
        group->hope = fmax(group->hope, hope);
    }
}

int search_ring_wave(const Mesh *mesh) {
    int wave = 0;
    for (int cp = mesh->size[AXIS_CP]; cp > SHORT_RING; cp = (cp + 1) / 2) {
        wave++;
    }
    return wave;
}

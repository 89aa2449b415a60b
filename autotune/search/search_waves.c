// The order in which shapes are screened, in waves: threads take them by their (tp, cp), the part of a plan that the
// memoised pieces of the estimate are keyed by, so nothing is computed twice and every estimate uses the same pieces
// regardless of the number of threads. What is screened of a shape: search_screen.c.

#include <math.h>

#include "autotune/search/search_internal.h"

// Shapes of equal (tp, cp), one after another; the pieces of a wave (search_rings.c) too.
typedef struct ScreenPieces {
    Search *search;
    int *shapes;       // in the order of their pieces
    int *first;        // into shapes; count + 1 entries
    int count, begin;  // of what is done: its first one
    Status (*do_shape)(const Search *search, SearchWorker *worker, int shape, Error *error);
    const char *label;
} ScreenPieces;

static bool same_inner(const Mesh *a, const Mesh *b) {
    return a->size[AXIS_TP] == b->size[AXIS_TP] && a->size[AXIS_CP] == b->size[AXIS_CP] &&
           a->size[AXIS_SP] == b->size[AXIS_SP] && a->size[AXIS_EP] == b->size[AXIS_EP];
}

static void cut_wave(ScreenPieces *pieces, int wave, int foremost, bool *taken) {
    const Space *space = &pieces->search->space;
    int placed = pieces->first[pieces->count];
    for (int at = foremost < 0 ? 0 : -1; at < space->mesh_count; at++) {
        const int shape = at < 0 ? foremost : at;
        if (taken[shape] || search_ring_wave(&space->meshes[shape]) != wave) {
            continue;
        }
        pieces->shapes[placed++] = shape;
        taken[shape] = true;
        for (int other = 0; other < space->mesh_count; other++) {
            if (!taken[other] && same_inner(&space->meshes[shape], &space->meshes[other])) {
                taken[other] = true;
                pieces->shapes[placed++] = other;
            }
        }
        pieces->first[++pieces->count] = placed;
    }
}

static Status do_piece(void *context, int worker, int index, Error *error) {
    const ScreenPieces *pieces = context;
    Search *search = pieces->search;
    const int piece = pieces->begin + index;
    for (int i = pieces->first[piece]; i < pieces->first[piece + 1]; i++) {
        TRY(pieces->do_shape(search, &search->workers[worker], pieces->shapes[i], error));
    }
    return STATUS_OK;
}

static Status do_pieces(ScreenPieces *pieces, Error *error) {
    const Search *search = pieces->search;
    const int workers = search->near ? 1 : search->worker_count;
    const ParallelWork work = {workers,      pieces->count - pieces->begin, do_piece, pieces, search->progress,
                               pieces->label};
    return parallel_run(&work, error);
}

static void find_best_estimate(Search *search) {
    search->best_estimate = 0;
    for (int room = 1; room >= 0 && search->best_estimate == 0; room--) {
        for (int i = 0; i < search->worker_count; i++) {
            search->best_estimate = fmax(search->best_estimate, search->workers[i].best_tokens_per_s[room]);
        }
    }
}

static void find_shapes(Search *search) {
    const Space *space = &search->space;
    search->first_of_shape = ARENA_ARRAY(search->arena, int, space->mesh_count + 1);
    for (int i = space->candidate_count - 1; i >= 0; i--) {
        search->first_of_shape[space->candidates[i].shape] = i;
    }
    search->first_of_shape[space->mesh_count] = space->candidate_count;
}

static Status screen_waves(Search *search, ScreenPieces *pieces, Error *error) {
    const int shapes = search->space.mesh_count;
    bool *taken = ARENA_ARRAY(search->arena, bool, shapes);
    int foremost;
    TRY(search_probe(search, &search->workers[0], &foremost, error));
    for (int wave = 0; pieces->first[pieces->count] < shapes; wave++) {
        pieces->begin = pieces->count;
        cut_wave(pieces, wave, foremost, taken);
        TRY(do_pieces(pieces, error));
        for (int i = pieces->first[pieces->begin]; i < pieces->first[pieces->count]; i++) {
            search_note_ring(search, pieces->shapes[i]);
        }
        find_best_estimate(search);
    }
    return STATUS_OK;
}

// What is tried in screened shapes in addition to their candidates.
static Status screen_more(Search *search, ScreenPieces *pieces, Error *error) {
    static const struct {
        bool (*tries)(const TuneRequest *request);
        Status (*do_shape)(const Search *search, SearchWorker *worker, int shape, Error *error);
        const char *label;
    } passes[] = {{search_tries_modules, search_modules_shape, "recomputing modules"},
                  {search_tries_cuts, search_cuts_shape, "cutting experts"}};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        if (passes[i].tries(search->request)) {
            pieces->begin = 0;
            pieces->do_shape = passes[i].do_shape;
            pieces->label = passes[i].label;
            TRY(do_pieces(pieces, error));
            find_best_estimate(search);
        }
    }
    return STATUS_OK;
}

Status search_screen(Search *search, Error *error) {
    const int shapes = search->space.mesh_count;
    find_shapes(search);
    search->partial = ARENA_UNCLEARED(search->arena, PartialPlan, PARTIAL_PER_SHAPE * shapes);
    search->partial_count = ARENA_ARRAY(search->arena, int, shapes);
    ScreenPieces pieces = {.search = search,
                           .shapes = ARENA_ARRAY(search->arena, int, shapes),
                           .first = ARENA_ARRAY(search->arena, int, shapes + 1),
                           .do_shape = search_screen_shape,
                           .label = "screening shapes"};
    TRY(screen_waves(search, &pieces, error));
    TRY(screen_more(search, &pieces, error));
    search_partial_join(search);
    return STATUS_OK;
}

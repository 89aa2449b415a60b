// Which pipelines are simulated. One takes the engine as long as dozens of other shapes, for it goes through all stages
// and all micro-steps; the estimate is within 4 % of it, mostly 1 % (test_analytic_stages). So the best choice of each
// such shape is estimated, and only those that may be the best of all are simulated, the most promising first.

#include <math.h>

#include "autotune/search/best.h"
#include "autotune/search/search_internal.h"

enum { AT_A_TIME = 3, ROUNDS = 4 };
static const double MARGIN = 0.03;

typedef struct Pipelines {
    Search *search;
    Prediction **best;  // by place
    int places[AT_A_TIME];
    int count;
} Pipelines;

static bool is_open(const Prediction *found) {
    return found && plan_has_stages(&found->plan) && found->origin == ORIGIN_ESTIMATE;
}

// The fastest that leaves room, or of those that do not; *simulated: of those that are.
static double fastest(const Pipelines *pipelines, bool room, double *simulated) {
    double best = *simulated = 0;
    for (int place = 0; place < pipelines->search->space.mesh_count; place++) {
        const Prediction *found = pipelines->best[place];
        if (found && best_leaves_room(pipelines->search->request, found->memory.reserved_bytes) == room) {
            best = fmax(best, found->tokens_per_s);
            *simulated = is_open(found) ? *simulated : fmax(*simulated, found->tokens_per_s);
        }
    }
    return best;
}

static bool comes_before(const Prediction *a, const Prediction *b) {
    return !b || a->tokens_per_s > b->tokens_per_s;
}

// Takes the places of the fastest ones that are at least so fast, in order.
static void find_open(Pipelines *pipelines, bool room, double least) {
    pipelines->count = 0;
    while (pipelines->count < AT_A_TIME) {
        int next = -1;
        for (int place = 0; place < pipelines->search->space.mesh_count; place++) {
            const Prediction *found = pipelines->best[place];
            bool taken = !is_open(found) || found->tokens_per_s < least ||
                         best_leaves_room(pipelines->search->request, found->memory.reserved_bytes) != room;
            for (int i = 0; i < pipelines->count; i++) {
                taken |= pipelines->places[i] == place;
            }
            if (!taken && comes_before(found, next < 0 ? NULL : pipelines->best[next])) {
                next = place;
            }
        }
        if (next < 0) {
            return;
        }
        pipelines->places[pipelines->count++] = next;
    }
}

static Candidate *candidate_of(const Search *search, int shape, const Prediction *prediction) {
    int at = search->first_of_shape[shape];
    while (search->order[at]->content_hash != prediction->content_hash) {
        at++;
        ASSERT(at < search->first_of_shape[shape + 1]);
    }
    return search->order[at];
}

// All stages may need more than the one that the estimate took for the largest: then the shape's next choice is taken.
static Status simulate(void *context, int worker, int index, Error *error) {
    const Pipelines *pipelines = context;
    Search *search = pipelines->search;
    const int place = pipelines->places[index], shape = search->shape_order[place];
    SearchWorker *by = &search->workers[worker];
    Candidate *candidate = candidate_of(search, shape, pipelines->best[place]);
    Prediction *prediction = ARENA_NEW(&by->arena, Prediction);
    TRY(predict_plan(&by->predictor, &candidate->plan, true, &by->arena, prediction, error));
    if (!prediction->fits) {
        search_reject(search, by, candidate, &prediction->memory);
        pipelines->best[place] = NULL;
        return search_settle_shape(search, by, shape, 0, &pipelines->best[place], error);
    }
    search_take_simulated(by, candidate, prediction);
    pipelines->best[place] = prediction;
    return STATUS_OK;
}

Status search_simulate_pipelines(Search *search, Prediction **best, Error *error) {
    Pipelines pipelines = {.search = search, .best = best};
    if (search->request->effort == EFFORT_ESTIMATE || search->request->objective == OBJECTIVE_MEMORY) {
        return STATUS_OK;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double simulated, with_room = 0;
        const bool room = fastest(&pipelines, true, &with_room) > 0;
        const double top = fastest(&pipelines, room, &simulated);
        find_open(&pipelines, room, round == 0 ? (1 - MARGIN) * top : simulated);
        if (pipelines.count == 0) {
            return STATUS_OK;
        }
        const ParallelWork work = {search->worker_count, pipelines.count,  simulate,
                                   &pipelines,           search->progress, "simulating pipelines"};
        TRY(parallel_run(&work, error));
    }
    return STATUS_OK;
}

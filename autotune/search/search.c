// The search in order: enumerate, screen (search_waves.c), order (search_order.c), settle (search_settle.c), rank.
// Every candidate is screened with the closed form (within about 3 % of the engine where nothing contends); the
// promising ones are simulated, but fewer pipelines (search_pipelines.c). Worlds with more than 200 shapes keep the
// closed form's times below that rank, unless ranks or links are slow: how many wait for them only the engine knows, so
// every shape is simulated. The closed form then takes all ranks to be as slow, which is what most steps come to.

#include "autotune/search/search.h"

#include <math.h>

#include "autotune/search/batch.h"
#include "autotune/search/best.h"
#include "autotune/search/rank.h"
#include "autotune/search/search_internal.h"
#include "sim/base/clock.h"
#include "sim/base/text.h"

static bool find_locked(void *state, uint64_t content_hash, Arena *arena, Prediction *prediction) {
    LockedCache *locked = state;
    pthread_mutex_lock(&locked->lock);
    const bool found = locked->cache.find(locked->cache.state, content_hash, arena, prediction);
    pthread_mutex_unlock(&locked->lock);
    return found;
}

static void keep_locked(void *state, const TuneRequest *request, const Prediction *prediction) {
    LockedCache *locked = state;
    pthread_mutex_lock(&locked->lock);
    locked->cache.keep(locked->cache.state, request, prediction);
    pthread_mutex_unlock(&locked->lock);
}

// Of factors per rank; NULL = all 1.
static double largest(const float *factors, int world) {
    double most = 1;
    for (int rank = 0; factors && rank < world; rank++) {
        most = fmax(most, (double)factors[rank]);
    }
    return most;
}

static void workers_begin(Search *search, const PredictionCache *cache) {
    search->worker_count = search->analytic ? 1 : parallel_workers(search->request->threads);
    pthread_mutex_init(&search->cache.lock, NULL);
    search->cache.cache = cache ? *cache : (PredictionCache){0};
    const PredictionCache locked = {.find = search->cache.cache.find ? find_locked : NULL,
                                    .keep = search->cache.cache.keep ? keep_locked : NULL,
                                    .state = &search->cache};
    for (int i = 0; i < search->worker_count; i++) {
        SearchWorker *worker = &search->workers[i];
        predictor_init(&worker->predictor, search->request, &locked);
        worker->analytic = search->analytic;
        if (!worker->analytic) {
            Arena *arena = i == 0 && search->known ? &search->known->arena : &worker->arena;
            worker->analytic = analytic_new(&search->request->model, &worker->predictor.cost, arena);
            analytic_share_traces(worker->analytic, &worker->predictor.traces);
        }
        if (search->request->handicap_count > 0) {
            const int world = search->request->world;
            analytic_set_slowdowns(worker->analytic, largest(worker->predictor.rank_slowdown, world),
                                   largest(worker->predictor.link_slowdown, world));
        }
    }
}

// The traces go with the form that learnt them.
static void keep_known(SearchWorker *worker, SearchKnown *known) {
    known->analytic = worker->analytic;
    known->traces = worker->predictor.traces;
    worker->predictor.traces = (LiveTraces){0};
    analytic_share_traces(known->analytic, &known->traces);
}

void search_known_free(SearchKnown *known) {
    if (known->analytic) {
        analytic_free(known->analytic);
    }
    live_traces_free(&known->traces);
    arena_free(&known->arena);
    *known = (SearchKnown){0};
}

// What the workers found stays in the caller's arena.
static void workers_end(Search *search) {
    SearchCounts *counts = &search->result->search;
    for (int i = 0; i < search->worker_count; i++) {
        SearchWorker *worker = &search->workers[i];
        counts->pruned += worker->counts.pruned;
        counts->estimated += worker->counts.estimated;
        counts->simulated += worker->counts.simulated;
        counts->cached += worker->counts.cached;
        if (i == 0 && search->known) {
            keep_known(worker, search->known);
        } else if (!search->analytic) {
            analytic_free(worker->analytic);
        }
        predictor_free(&worker->predictor);
        arena_adopt(search->arena, &worker->arena);
    }
    pthread_mutex_destroy(&search->cache.lock);
}

// Of a pipeline one choice is looked at as long as it fits: another one may fit too although its estimate does not. So
// may what a replayed allocator holds with less than the slack that estimates have for it.
static bool may_still_fit(const Search *search, const Candidate *candidate) {
    const bool is_open = plan_has_stages(&candidate->plan) || search->request->target->replayed_slack > 0;
    return is_open && search_seems_to_fit(search, candidate);
}

// Candidates left over because they need more memory than available: rejected with the estimate's message.
static void reject_the_rest(Search *search) {
    for (int i = 0; i < search->space.candidate_count; i++) {
        Candidate *candidate = &search->space.candidates[i];
        if (candidate->state == CANDIDATE_ESTIMATED &&
            candidate->reserved_bytes > search->request->memory_limit_bytes && !may_still_fit(search, candidate)) {
            char needs[TEXT_UNIT_BYTES], limit[TEXT_UNIT_BYTES];
            text_bytes(needs, candidate->reserved_bytes);
            text_bytes(limit, search->request->memory_limit_bytes);
            candidate->state = CANDIDATE_REJECTED;
            candidate->rule = "memory";
            candidate->reason = arena_format(search->arena, "needs %s of %s (estimated)", needs, limit);
            search->result->search.pruned++;
        }
    }
}

static double chosen_tokens_per_s(const Search *search) {
    double best[2] = {0};
    for (int i = 0; i < search->worker_count; i++) {
        for (int room = 0; room < 2; room++) {
            best[room] = fmax(best[room], search->workers[i].chosen_tokens_per_s[room]);
        }
    }
    return best[true] > 0 ? best[true] : best[false];
}

static Status run_stages(Search *search, Error *error) {
    TuneResult *result = search->result;
    TRY(search_screen(search, error));
    search_order(search);
    TRY(search_settle(search, error));
    reject_the_rest(search);
    rank_entries(result->entries, result->entry_count, search->request->objective);
    const bool by_memory = search->request->objective == OBJECTIVE_MEMORY && result->entry_count > 0;
    result->chosen_tokens_per_s = by_memory ? result->entries[0].tokens_per_s : chosen_tokens_per_s(search);
    best_choose(result, search->arena);
    rank_mark_pareto(result->entries, result->entry_count);
    if (search->near && search->who) {
        search_near_forget(search);
    }
    for (int i = 0; i < result->entry_count; i++) {
        search_warn_of_batch(search, &result->entries[i]);
    }
    return STATUS_OK;
}

static void begin_space(Search *search) {
    const TuneRequest *request = search->request;
    TuneResult *result = search->result;
    *result = (TuneResult){.request = request};
    space_enumerate_near(request, search->around, search->arena, &search->space);
    search->estimates = ARENA_ARRAY(search->arena, Estimate *, search->space.candidate_count);
    result->candidates = search->space.candidates;
    result->candidate_count = search->space.candidate_count;
    result->search.shapes = search->space.mesh_count;
    result->search.candidates = search->space.candidate_count;
}

static void search_begin(Search *search, const PredictionCache *cache) {
    search->request = batch_settle(search->request, search->arena);
    begin_space(search);
    workers_begin(search, cache);
}

static Status run(Search *search, const PredictionCache *cache, Error *error) {
    const double start_s = clock_s();
    search_begin(search, cache);
    if (!search->who && search_near_of_all(search)) {
        search->near = search->best_only = true;
    }
    Status status = run_stages(search, error);
    if (status == STATUS_OK && search->near && !search_near_holds(search)) {
        search_near_widen(search);
        begin_space(search);
        status = run_stages(search, error);
    }
    workers_end(search);
    search->result->search.elapsed_s = clock_s() - start_s;
    return status;
}

Status search_run_keeping(const TuneRequest *request, const PredictionCache *cache, const Progress *progress,
                          SearchKnown *known, Arena *arena, TuneResult *result, Error *error) {
    Search search = {.request = request, .progress = progress, .arena = arena, .result = result, .known = known};
    return run(&search, cache, error);
}

Status search_near(const TuneRequest *request, const SearchNear *near, const PredictionCache *cache,
                   const Progress *progress, Arena *arena, TuneResult *result, Error *error) {
    const bool enough = search_near_is_enough(request);
    Search search = {.request = request,
                     .progress = progress,
                     .arena = arena,
                     .result = result,
                     .near = enough,
                     .who = near,
                     .best_only = enough};
    return run(&search, cache, error);
}

static void take_best(const TuneResult *result, const Mesh *reference, SearchBest *best) {
    best->feasible = result->entry_count > 0;
    best->best = best->feasible ? result->entries[0] : (Prediction){0};
    for (int i = 0; i < result->entry_count; i++) {
        const bool same = reference && mesh_same_shape(&result->entries[i].plan.mesh, reference);
        best->reference_tokens_per_s = same ? result->entries[i].tokens_per_s : best->reference_tokens_per_s;
    }
}

static Status settle_best(Search *search, SearchBest *best, Error *error) {
    *best = (SearchBest){0};
    TRY(search_screen(search, error));
    search_order(search);
    return search_settle_best(search, best, error);
}

static Status find_best(Search *search, SearchBest *best, Error *error) {
    const TuneRequest *request = search->request;
    TuneResult result;
    const bool by_estimate = request->handicap_count == 0 && request->objective != OBJECTIVE_MEMORY;
    *best = (SearchBest){0};
    search->result = &result;
    search->best_only = by_estimate;
    search->near = search->around && request->effort != EFFORT_EXHAUSTIVE && search_may_be_bounded(request);
    search_begin(search, NULL);
    Status status;
    if (by_estimate) {
        status = settle_best(search, best, error);
        if (status == STATUS_OK && !search_around_holds(search, best)) {
            search_near_widen(search);
            begin_space(search);
            status = settle_best(search, best, error);
        }
    } else {
        status = run_stages(search, error);
        if (status == STATUS_OK) {
            take_best(&result, search->reference, best);
        }
    }
    best->shapes = search->space.mesh_count;
    workers_end(search);
    return status;
}

Status search_best(const TuneRequest *request, Analytic *analytic, const Mesh *reference, Arena *arena,
                   SearchBest *best, Error *error) {
    Search search = {.request = request, .arena = arena, .analytic = analytic, .reference = reference};
    return find_best(&search, best, error);
}

Status search_best_above(const TuneRequest *request, Analytic *analytic, double tokens_per_s, const Mesh *mesh,
                         Arena *arena, SearchBest *best, Error *error) {
    Search search = {
        .request = request, .arena = arena, .analytic = analytic, .above_tokens_per_s = tokens_per_s, .around = mesh};
    return find_best(&search, best, error);
}

Status search_best_alone(const TuneRequest *request, Arena *arena, SearchBest *best, Error *error) {
    const CostModel cost = {.profile = &request->cluster, .target = request->target};
    Analytic *analytic = analytic_new(&request->model, &cost, arena);
    const Status status = search_best(request, analytic, NULL, arena, best, error);
    analytic_free(analytic);
    return status;
}

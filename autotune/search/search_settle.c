// Exact evaluation: the best few choices of each shape, and all whose estimate lies within a margin of the best one,
// are predicted in full, so that the winner is the engine's; memory verdicts of shapes always come from the full
// breakdown.

#include <limits.h>
#include <math.h>
#include <string.h>

#include "autotune/search/batch.h"
#include "autotune/search/best.h"
#include "autotune/search/prune.h"
#include "autotune/search/search_internal.h"

enum { BEST_PER_SHAPE = 2, SIMULATED_MAX = 200, HANDICAPPED_TWICE = 32 };
static const double MARGIN = 0.06;  // twice the closed form's error of 3 %: two candidates err against each other

void search_reject(const Search *search, SearchWorker *worker, Candidate *candidate, const MemoryBreakdown *memory) {
    const PruneRule *rule = prune(search->request, &candidate->plan, memory, &worker->arena, &candidate->reason);
    candidate->state = CANDIDATE_REJECTED;
    candidate->rule = rule ? rule->name : "memory";
    worker->counts.pruned++;
}

void search_take_simulated(SearchWorker *worker, Candidate *candidate, const Prediction *prediction) {
    candidate->state = CANDIDATE_SIMULATED;
    candidate->step_s = prediction->step_s;
    candidate->tokens_per_s = prediction->tokens_per_s;
    candidate->prediction = prediction;
    worker->counts.cached += prediction->cached;
    worker->counts.simulated += !prediction->cached;
}

static Status predict_candidate(const Search *search, SearchWorker *worker, Candidate *candidate, bool with_engine,
                                Prediction *prediction, Error *error) {
    if (with_engine) {
        TRY(predict_plan(&worker->predictor, &candidate->plan, true, &worker->arena, prediction, error));
    } else {
        TRY(search_complete(search, worker, candidate, error));
        const Estimate *estimate = search_estimate_of(search, candidate);
        TRY(predict_from_estimate(&worker->predictor, &candidate->plan, estimate, &worker->arena, prediction, error));
    }
    candidate->peak_bytes = prediction->memory.peak_bytes;
    candidate->reserved_bytes = prediction->memory.reserved_bytes;
    if (!prediction->fits) {
        search_reject(search, worker, candidate, &prediction->memory);
        return STATUS_OK;
    }
    if (with_engine) {
        search_take_simulated(worker, candidate, prediction);
    }
    return STATUS_OK;
}

// The estimate of how many layers may be kept has a small error: a twentieth more of them is recomputed where it was
// too many, a few times.
static Status predict_fitting(const Search *search, SearchWorker *worker, Candidate *candidate, bool with_engine,
                              Prediction *prediction, Error *error) {
    enum { TRIES = 4, PART = 20 };
    TRY(predict_candidate(search, worker, candidate, with_engine, prediction, error));
    for (int i = 1; i < TRIES && !prediction->fits && search_partial_less(search->request, &candidate->plan, PART);
         i++) {
        candidate->content_hash = predictor_content_hash(&worker->predictor, &candidate->plan);
        candidate->state = CANDIDATE_ESTIMATED;  // another plan, not yet evaluated
        candidate->rule = candidate->reason = NULL;
        worker->counts.pruned--;
        TRY(predict_candidate(search, worker, candidate, with_engine, prediction, error));
    }
    return STATUS_OK;
}

// May it still win although enough of its shape were looked at?
static bool is_close(const Search *search, const Candidate *candidate) {
    const bool exact = search->request->effort != EFFORT_ESTIMATE && search->request->objective != OBJECTIVE_MEMORY;
    return exact && search_seems_to_fit(search, candidate) &&
           candidate->tokens_per_s >= (1 - MARGIN) * search->best_estimate;
}

// How many fitting choices of the shape at this place of the order are simulated; 0 = the estimate's word is taken,
// which is never so where something is slow: the closed form takes all ranks to be. Simulating one choice of all 133
// shapes of 70b on 1024 ranks with one slow instead of four found the same best plan in all but two, at places 78 and
// 86 and within 1 %; two choices of each found the same in all.
static int choices_to_simulate(const TuneRequest *request, int place, bool is_pipeline) {
    if (request->effort == EFFORT_ESTIMATE) {
        return request->handicap_count > 0;
    }
    if (request->serial_lanes) {
        return INT_MAX;  // the closed form lets lanes overlap
    }
    if (is_pipeline && search_takes(request, SHORTCUT_BEHIND)) {
        return 0;  // search_pipelines.c
    }
    const bool promising = place < SIMULATED_MAX || !search_takes(request, SHORTCUT_FAR_SHAPES);
    if (promising && !search_takes(request, SHORTCUT_BEHIND)) {
        return INT_MAX;
    }
    if (request->handicap_count > 0) {
        return promising && place < HANDICAPPED_TWICE ? BEST_PER_SHAPE : 1;
    }
    return promising ? BEST_PER_SHAPE : 0;
}

// A choice that seems to leave no room, of a shape that has one that does, is looked at only where it would be faster.
static bool is_worth_more(const Search *search, const Candidate *candidate, const Prediction *best) {
    const TuneRequest *request = search->request;
    return is_close(search, candidate) &&
           (!best || best_leaves_room(request, candidate->reserved_bytes) ||
            !best_leaves_room(request, best->memory.reserved_bytes) || candidate->tokens_per_s > best->tokens_per_s);
}

// A pipeline's bytes are the same in any rank order: a rejection by a full breakdown holds for the other orders.
static const Candidate *thrown_out_alike(const Search *search, int place, const Candidate *candidate) {
    const PlanKey choices = plan_key(&candidate->plan, 0);
    if (!plan_has_stages(&candidate->plan) || plan_keeps_layers(&candidate->plan)) {
        return NULL;
    }
    for (int i = search->first_of_shape[candidate->shape]; i < place; i++) {
        const Candidate *other = search->order[i];
        const PlanKey others = plan_key(&other->plan, 0);
        if (other->state == CANDIDATE_REJECTED && other->plan.micro_batch == candidate->plan.micro_batch &&
            other->plan.grad_accum == candidate->plan.grad_accum && plan_keys_equal(&others, &choices)) {
            return other;
        }
    }
    return NULL;
}

static void reject_alike(SearchWorker *worker, Candidate *candidate, const Candidate *other) {
    candidate->state = CANDIDATE_REJECTED;
    candidate->rule = other->rule;
    candidate->reason = other->reason;
    candidate->peak_bytes = other->peak_bytes;
    candidate->reserved_bytes = other->reserved_bytes;
    worker->counts.pruned++;
}

// A shape's first choice that fits: a search by estimate takes it, unless a later one leaves the room that it does not.
// Alternatives are compared with the best such choice.
static void note_chosen(const Search *search, SearchWorker *worker, const Candidate *candidate,
                        const Prediction *prediction) {
    const double step_s = search_estimate_of(search, candidate)->step_s;
    const double tokens_per_s = (double)plan_tokens_per_step(&prediction->plan) / step_s;
    double *chosen = &worker->chosen_tokens_per_s[best_leaves_room(search->request, prediction->memory.reserved_bytes)];
    *chosen = tokens_per_s > *chosen ? tokens_per_s : *chosen;
}

// Where the estimate promised room that the breakdown did not find, the shape may have another choice that leaves it.
static bool may_leave_room(const Search *search, const Candidate *candidate, const Prediction *best) {
    return best && !best_leaves_room(search->request, best->memory.reserved_bytes) &&
           best_leaves_room(search->request, candidate->reserved_bytes);
}

// The best choice of a shape that fits, or none.
Status search_settle_shape(const Search *search, SearchWorker *worker, int shape, int simulated, Prediction **best,
                           Error *error) {
    const TuneRequest *request = search->request;
    const bool with_engine = simulated > 0;
    const int enough = with_engine ? simulated : 1;
    int fitting = 0;
    for (int i = search->first_of_shape[shape]; i < search->first_of_shape[shape + 1]; i++) {
        Candidate *candidate = search->order[i];
        if (candidate->state != CANDIDATE_ESTIMATED || search_is_far(search, candidate)) {
            continue;
        }
        const bool hopeful = search_seems_to_fit(search, candidate);
        const bool may_more =
            with_engine ? is_worth_more(search, candidate, *best) : hopeful && may_leave_room(search, candidate, *best);
        if (fitting >= enough && !may_more) {
            if (!hopeful) {
                break;
            }
            continue;
        }
        const Candidate *alike = thrown_out_alike(search, i, candidate);
        if (alike) {
            reject_alike(worker, candidate, alike);
            continue;
        }
        Prediction *prediction = ARENA_NEW(&worker->arena, Prediction);
        TRY(predict_fitting(search, worker, candidate, with_engine, prediction, error));
        if (prediction->fits) {
            if (fitting++ == 0) {
                note_chosen(search, worker, candidate, prediction);
            }
            if (!*best || best_prefers(request, prediction, *best)) {
                *best = prediction;
            }
        } else if (!hopeful && search_takes(search->request, SHORTCUT_NEAREST)) {
            break;  // the one with the smallest shortfall does not fit: none of the rest will
        }
    }
    return STATUS_OK;
}

// The shape's reason: that it is far slower, else the memory of the choice with the smallest shortfall, else what its
// first choice was told.
static void add_rejection(Search *search, int shape) {
    const Candidate *nearest = NULL;
    for (int i = search->first_of_shape[shape]; i < search->first_of_shape[shape + 1]; i++) {
        const Candidate *candidate = search->order[i];
        if (candidate->state != CANDIDATE_REJECTED) {
            continue;
        }
        if (candidate->rule && strcmp(candidate->rule, RULE_BEHIND) == 0) {
            nearest = candidate;
            break;
        }
        const bool first_of_all = !nearest;
        const bool lacks_memory = candidate->reserved_bytes > 0;
        if (first_of_all ||
            (lacks_memory && (nearest->reserved_bytes <= 0 || candidate->reserved_bytes < nearest->reserved_bytes))) {
            nearest = candidate;
        }
    }
    ASSERT(nearest);
    TuneResult *result = search->result;
    result->rejected[result->rejected_count++] = (Rejection){nearest->plan, nearest->rule, nearest->reason};
}

// The default batch is only a target: with many data ranks, one sequence each exceeds it.
void search_warn_of_batch(const Search *search, Prediction *entry) {
    const int64_t wanted = batch_default(search->request->seq);
    const int64_t batch = plan_global_batch(&entry->plan);
    if (!search->request->batch_assumed || 2 * batch <= 3 * wanted) {
        return;
    }
    ASSERT(entry->warning_count < PREDICTION_MAX_WARNINGS);
    entry->warnings[entry->warning_count++] =
        arena_format(search->arena, "a step takes %lld sequences, %.1f times the %lld assumed: give --global-batch",
                     (long long)batch, (double)batch / (double)wanted, (long long)wanted);
}

typedef struct SettlePieces {
    Search *search;
    Prediction **best;  // by place in shape_order
} SettlePieces;

static Status settle_piece(void *context, int worker, int index, Error *error) {
    const SettlePieces *pieces = context;
    Search *search = pieces->search;
    const int shape = search->shape_order[index];
    const bool is_pipeline = mesh_has_stages(&search->space.meshes[shape]);
    return search_settle_shape(search, &search->workers[worker], shape,
                               choices_to_simulate(search->request, index, is_pipeline), &pieces->best[index], error);
}

Status search_settle(Search *search, Error *error) {
    TuneResult *result = search->result;
    const int shapes = search->space.mesh_count;
    SettlePieces pieces = {search, ARENA_ARRAY(search->arena, Prediction *, shapes)};
    const ParallelWork work = {search->worker_count, shapes, settle_piece, &pieces, search->progress,
                               "simulating shapes"};
    TRY(parallel_run(&work, error));
    TRY(search_simulate_pipelines(search, pieces.best, error));
    result->entries = ARENA_ARRAY(search->arena, Prediction, shapes);
    result->rejected = ARENA_ARRAY(search->arena, Rejection, shapes);
    for (int i = 0; i < shapes; i++) {
        const bool of_all = search->near && !search->who;
        if (of_all) {
            search_near_name(search, search->shape_order[i], pieces.best[i] != NULL);
        }
        if (pieces.best[i]) {
            result->entries[result->entry_count++] = *pieces.best[i];
        } else if (!search->near || of_all) {
            add_rejection(search, search->shape_order[i]);
        }
    }
    return STATUS_OK;
}

Status search_settle_best(Search *search, SearchBest *best, Error *error) {
    const TuneRequest *request = search->request;
    for (int place = 0; place < search->space.mesh_count; place++) {
        const int shape = search->shape_order[place];
        const bool is_reference = search->reference && mesh_same_shape(&search->space.meshes[shape], search->reference);
        const Candidate *first = search->order[search->first_of_shape[shape]];
        const double known = best->feasible ? fmax(best->best.tokens_per_s, search->above_tokens_per_s) : 0;
        const bool hopeless =
            first->tokens_per_s < known && best_leaves_room(request, best->best.memory.reserved_bytes);
        if (hopeless && !is_reference) {
            continue;
        }
        Prediction *found = NULL;
        TRY(search_settle_shape(search, &search->workers[0], shape, 0, &found, error));
        if (found && (!best->feasible || best_prefers(request, found, &best->best))) {
            best->best = *found;
            best->feasible = true;
        }
        best->reference_tokens_per_s = found && is_reference ? found->tokens_per_s : best->reference_tokens_per_s;
    }
    return STATUS_OK;
}

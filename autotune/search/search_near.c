// The search for how much slower a plan is than the best (ndtune check), and of all shapes where there are many. What
// is clearly slower than the best so far is not evaluated further: no bytes, bubble or simulation. Estimate and engine
// are as in the full search, and so is the best plan: if it proves slower than the others' reference, all is searched.
// One thread screens, so what is left out does not depend on their number. Left out: results of the other shapes, and
// choices with more headroom in shapes whose fastest one has little.

#include <math.h>

#include "autotune/search/best.h"
#include "autotune/search/search_internal.h"
#include "sim/base/text.h"
#include "sim/frameworks/target_choices.h"

// Twice the closed form's error of 3 % (search_settle.c), less than CLEARLY_BEHIND: what was left out remains slower.
static const double HOLDS = 0.95;

// Where the best of all is asked for, and nothing else: more than a breakdown of memory mostly costs, after which a
// layer or two more are recomputed. Where it costs more all is looked at again.
static const double AROUND_BEHIND = 0.02;

static double best_with_room(const Search *search) {
    return search->workers[0].best_tokens_per_s[true];
}

// How much slower than the best what is left out is at least.
static double behind(const Search *search) {
    return search->around && !search->widened ? AROUND_BEHIND : CLEARLY_BEHIND;
}

// Anything slower is clearly worse than the best, or irrelevant to a caller that wants something faster.
static double least_tokens_per_s(const Search *search) {
    return fmax((1 - behind(search)) * best_with_room(search), search->above_tokens_per_s);
}

bool search_may_be_bounded(const TuneRequest *request) {
    return request->objective != OBJECTIVE_MEMORY && request->handicap_count == 0 && !request->serial_lanes &&
           request->without == 0;
}

bool search_near_is_enough(const TuneRequest *request) {
    return request->effort == EFFORT_SIMULATE && search_may_be_bounded(request);
}

bool search_near_of_all(const Search *search) {
    return search->space.mesh_count > SEARCH_MANY_SHAPES && search->request->effort != EFFORT_EXHAUSTIVE &&
           search_may_be_bounded(search->request);
}

static const TrainPlan *plan_asked(const Search *search) {
    return search->near && search->who ? search->who->like : NULL;
}

// Its rank is requested, however slow it is.
static bool is_baseline(const Search *search, const TrainPlan *plan) {
    return !search->who && !search->around && mesh_same_shape(&plan->mesh, &search->request->baseline);
}

bool search_is_like(const Search *search, const TrainPlan *plan) {
    const TrainPlan *like = plan_asked(search);
    if (!like || plan->micro_batch != like->micro_batch || plan->recompute != like->recompute) {
        return false;
    }
    TrainPlan moved = *like;
    moved.mesh = plan->mesh;
    moved.grad_accum = plan->grad_accum;
    moved.zero = plan->zero;
    target_canonical(search->request->target, &moved);
    const PlanKey choices = plan_key(&moved, 0), others = plan_key(plan, 0);
    return plan_keys_equal(&choices, &others);
}

// A plan that recomputes all layers speaks for those that keep some of them, one with whole experts for those that cut
// them: how much faster those may be.
static double speed_spoken_for(const Search *search, const TrainPlan *plan) {
    const TuneRequest *request = search->request;
    const bool keeps =
        plan->recompute == RECOMPUTE_FULL && (search_partial_is_open(request) || search_tries_modules(request));
    const bool cuts = plan->mesh.size[AXIS_EP] > 1 && search_tries_cuts(request);
    return (keeps ? FULL_OVER_LESS : 1) / (cuts ? 1 - CUTS_SAVE : 1);
}

double search_near_tokens_per_s(const Search *search, const TrainPlan *plan) {
    const double best = least_tokens_per_s(search);
    if (is_baseline(search, plan)) {
        return 0;
    }
    if (search_is_like(search, plan)) {
        return fmin(best, (1 - CLEARLY_BEHIND) * search->workers[0].like_tokens_per_s);
    }
    return best / speed_spoken_for(search, plan);
}

bool search_can_be_had(const Search *search, const TrainPlan *plan) {
    const Prediction bare = {.plan = *plan};
    return !search->who || search->who->takes(search->who->state, &bare);
}

bool search_is_far(const Search *search, const Candidate *candidate) {
    return search->near && candidate->tokens_per_s < least_tokens_per_s(search) &&
           !is_baseline(search, &candidate->plan);
}

bool search_is_passed_over(const Search *search, const Candidate *candidate) {
    return search->near && search_estimate_of(search, candidate)->is_bound;
}

void search_near_note(const Search *search, SearchWorker *worker, const Candidate *candidate) {
    if (search_is_like(search, &candidate->plan) && candidate->plan.zero == search->who->like->zero &&
        best_leaves_room(search->request, candidate->reserved_bytes) &&
        mesh_same_shape(&candidate->plan.mesh, &search->who->like->mesh)) {
        worker->like_tokens_per_s = fmax(worker->like_tokens_per_s, candidate->tokens_per_s);
    }
}

int search_near_shape(const Search *search) {
    const TrainPlan *like = plan_asked(search);
    const Mesh *first = like ? &like->mesh : search->around;
    int shape = first ? search->space.mesh_count - 1 : -1;
    while (shape >= 0 && !mesh_same_shape(&search->space.meshes[shape], first)) {
        shape--;
    }
    return shape;
}

bool search_near_holds(const Search *search) {
    const Prediction *found = best_fastest(search->result, true);
    return best_with_room(search) == 0 || (found && found->tokens_per_s >= HOLDS * best_with_room(search));
}

// Nothing left out is faster than what was found.
bool search_around_holds(const Search *search, const SearchBest *best) {
    const double fastest = best_with_room(search);
    return !search->around || fastest == 0 || fastest < search->above_tokens_per_s ||
           (best->feasible && best_leaves_room(search->request, best->best.memory.reserved_bytes) &&
            best->best.tokens_per_s >= (1 - AROUND_BEHIND) * fastest);
}

void search_near_widen(Search *search) {
    search->widened = true;
    search->near &= search->around != NULL;
    search->best_only &= search->around != NULL;
    search->ring_count = 0;
    search->best_estimate = 0;
    for (int i = 0; i < search->worker_count; i++) {
        SearchWorker *worker = &search->workers[i];
        worker->best_tokens_per_s[false] = worker->best_tokens_per_s[true] = 0;
        worker->chosen_tokens_per_s[false] = worker->chosen_tokens_per_s[true] = 0;
        worker->counts = (SearchCounts){0};
    }
}

void search_near_name(Search *search, int shape, bool has_entry) {
    Candidate *candidates = search->space.candidates;
    const int first = search->first_of_shape[shape], end = search->first_of_shape[shape + 1];
    double fastest = 0, least_s = 0;
    for (int i = first; i < end; i++) {
        const bool is_behind = candidates[i].state == CANDIDATE_ESTIMATED && search_is_far(search, &candidates[i]);
        if (is_behind && candidates[i].tokens_per_s > fastest) {
            fastest = candidates[i].tokens_per_s;
            least_s = candidates[i].step_s;
        }
    }
    if (fastest == 0) {
        return;
    }
    const char *reason = arena_format(search->arena, "not priced: at least %s, %.2f times the best",
                                      text_seconds(UNIT_BUFFER, least_s), best_with_room(search) / fastest);
    for (int i = first; i < end; i++) {
        Candidate *candidate = &candidates[i];
        const bool is_bound = search_is_passed_over(search, candidate);
        if (candidate->state == CANDIDATE_ESTIMATED && (is_bound || (!has_entry && search_is_far(search, candidate)))) {
            candidate->state = CANDIDATE_REJECTED;
            candidate->rule = RULE_BEHIND;
            candidate->reason = reason;
            candidate->step_s = is_bound ? 0 : candidate->step_s;
            candidate->tokens_per_s = is_bound ? 0 : candidate->tokens_per_s;
            search->result->search.pruned++;
        }
    }
}

void search_near_forget(Search *search) {
    for (int i = 0; i < search->space.candidate_count; i++) {
        Candidate *candidate = &search->space.candidates[i];
        if (search_is_passed_over(search, candidate)) {
            candidate->step_s = candidate->tokens_per_s = 0;
        }
    }
}

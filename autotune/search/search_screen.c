// Screening a shape: every candidate is pruned or estimated with the closed form. In which order shapes are taken:
// search_waves.c.

#include <math.h>

#include "autotune/search/best.h"
#include "autotune/search/choices.h"
#include "autotune/search/prune.h"
#include "autotune/search/search_internal.h"
#include "sim/base/text.h"
#include "sim/frameworks/target_choices.h"

static const double MEMORY_MARGIN =
    0.02;  // the closed form's memory was seen within 1.2 % of the breakdown (7b, world 32)

// The closed form adds a slack to what lives. Where the allocator is replayed in full, it may hold none of that.
static double spare_slack(const Search *search, const TrainPlan *plan) {
    return !plan_has_stages(plan) ? search->request->target->replayed_slack : 0;
}

static bool seems_to_fit(const Search *search, const TrainPlan *plan, double reserved_bytes) {
    const double over = MEMORY_MARGIN + spare_slack(search, plan);
    return reserved_bytes <= (1 + over) * search->request->memory_limit_bytes;
}

bool search_seems_to_fit(const Search *search, const Candidate *candidate) {
    return seems_to_fit(search, &candidate->plan, candidate->reserved_bytes);
}

// The choices that save memory whatever the others are; plans that differ in them only are compared.
#define THRIFT (PLAN_RECOMPUTE_CHOICES | PLAN_BIT(PLAN_RESHARD))

// choices: that the one in the slot has besides, in words.
static void reject_larger(SearchWorker *worker, Candidate *candidate, ChoiceSlot *slot, const char *choices) {
    const Candidate *smaller = slot->candidate;
    if (!slot->reason) {
        slot->reason = arena_format(&worker->arena, "micro-batch %d%s already needs %s", smaller->plan.micro_batch,
                                    choices, text_bytes(UNIT_BUFFER, smaller->reserved_bytes));
    }
    candidate->rule = "memory";
    candidate->reason = slot->reason;
    worker->counts.pruned++;
}

static const double WITH_ROOM = 0.85;  // of the limit; above it an allocator begins to retry

static bool reduces_once(const Target *target, const TrainPlan *plan) {
    return target_grad_sync(target, plan) == GRAD_SYNC_LAST;
}

static bool keeps_logits(const Target *target, const TrainPlan *plan) {
    return target_loss(target, plan) == LOSS_WHOLE;
}

static bool replays_graphs(const Target *target, const TrainPlan *plan) {
    return target_cuda_graphs(target, plan);
}

static bool overlaps_tp(const Target *target, const TrainPlan *plan) {
    (void)target;
    return plan->tp_overlap;
}

static bool fills_own_buckets(const Target *target, const TrainPlan *plan) {
    (void)target;
    return plan->reduce_bucket == 0;
}

static bool keeps_all(const Target *target, const TrainPlan *plan) {
    (void)target;
    return plan->recompute == RECOMPUTE_NONE;
}

// Choices of which one value needs memory and nothing else: reducing once moves the least, a whole loss has the fewest
// and largest products, graphs leave nothing to the host, tp collectives overlapped with GEMMs expose less, larger
// buckets start up less often, what is kept is not recomputed. Where the memory is there, the other values are at best
// as fast. tests/property/autotune says by how much this errs.
typedef struct Spender {
    PlanFieldId id;
    bool (*spends)(const Target *target, const TrainPlan *plan);
    const char *rule, *reason;  // no rule of prune.c: it could run
    bool only_stages;           // other shapes have few such values: estimated, and available to callers
} Spender;

enum { SPENDERS = 6 };
static const Spender spenders[SPENDERS] = {
    {PLAN_GRAD_SYNC, reduces_once, "sync",
     "gradients that are reduced once, with the last micro-step, fit with room to spare", false},
    {PLAN_LOSS, keeps_logits, "loss", "the logits of all tokens fit with room to spare", false},
    {PLAN_CUDA_GRAPHS, replays_graphs, "graphs", "gradients that CUDA graphs hold fit with room to spare", false},
    {PLAN_TP_OVERLAP, overlaps_tp, "tp overlap", "buffers of tp collectives beside GEMMs fit with room to spare",
     false},
    {PLAN_REDUCE_BUCKET, fills_own_buckets, "bucket", "buckets of the target's own size fit with room to spare", false},
    {PLAN_RECOMPUTE, keeps_all, "recompute", "the activations of all layers fit with room to spare", true},
};

static void begin_spending(ByChoices known[SPENDERS]) {
    for (int i = 0; i < SPENDERS; i++) {
        const PlanFieldId id = spenders[i].id;
        known[i] = by_choices_but(id == PLAN_RECOMPUTE ? PLAN_RECOMPUTE_CHOICES : PLAN_BIT(id));
    }
}

static bool has_room(const Search *search, double reserved_bytes) {
    return reserved_bytes <= WITH_ROOM * search->request->memory_limit_bytes;
}

static bool is_spared(const Candidate *candidate) {
    bool spared = false;
    for (int i = 0; i < SPENDERS; i++) {
        spared |= candidate->rule == spenders[i].rule;
    }
    return spared;
}

// *fits: does the candidate before it that spends, and is the same but for the rank order, fit with room? Takes note of
// those that spend.
static Status fits_spending(const Search *search, SearchWorker *worker, const Spender *spender, ByChoices *known,
                            const Candidate *candidate, const PlanKey *choices, bool *fits, Error *error) {
    const TrainPlan *plan = &candidate->plan;
    *fits = false;
    if (!plan_field_matters(plan, spender->id) || (spender->only_stages && !plan_has_stages(plan))) {
        return STATUS_OK;
    }
    const Candidate **same = &choice_slot(&worker->arena, known, choices)->candidate;
    if (spender->spends(search->request->target, plan)) {
        *same = candidate;
        return STATUS_OK;
    }
    if (!*same || (*same)->plan.micro_batch != plan->micro_batch) {
        return STATUS_OK;
    }
    if (search->near && is_spared(*same) && !search_is_like(search, plan)) {  // what saves more is so too
        *fits = true;
        return STATUS_OK;
    }
    if ((*same)->state != CANDIDATE_ESTIMATED) {
        return STATUS_OK;
    }
    if (search_is_passed_over(search, *same) &&
        search_is_like(search, plan)) {  // else it is no faster: passed over too
        TRY(search_complete(search, worker, &search->space.candidates[*same - search->space.candidates], error));
    }
    *fits = has_room(search, (*same)->reserved_bytes);
    return STATUS_OK;
}

// *spared: the choice by which the candidate saves memory that is there; NULL.
static Status find_spared(const Search *search, SearchWorker *worker, ByChoices known[SPENDERS],
                          const Candidate *candidate, const PlanKey *choices, const Spender **spared, Error *error) {
    *spared = NULL;
    if (search->request->objective == OBJECTIVE_MEMORY || !search_takes(search->request, SHORTCUT_ROOM)) {
        return STATUS_OK;
    }
    for (int i = 0; i < SPENDERS; i++) {
        bool fits = false;
        if (target_has_choice(search->request->target, spenders[i].id)) {
            TRY(fits_spending(search, worker, &spenders[i], &known[i], candidate, choices, &fits, error));
        }
        *spared = fits ? &spenders[i] : *spared;
    }
    return STATUS_OK;
}

static bool is_open(const Search *search, PlanFieldId id) {
    return search->request->asked[id] == TUNE_ANY && target_has_choice(search->request->target, id);
}

// The same pipeline with nothing recomputed fits with room: the thriftiest choice will not be asked for.
static Status needs_no_thrift(const Search *search, SearchWorker *worker, const TrainPlan *plan, bool *fits,
                              Error *error) {
    *fits = false;
    if (!plan_has_stages(plan) || search->request->objective == OBJECTIVE_MEMORY ||
        !search_takes(search->request, SHORTCUT_ROOM) || !is_open(search, PLAN_RECOMPUTE) ||
        !target_offers(search->request->target, plan, PLAN_RECOMPUTE, RECOMPUTE_NONE)) {
        return STATUS_OK;
    }
    TrainPlan kept = *plan;
    Estimate bytes;
    kept.recompute = RECOMPUTE_NONE;
    target_canonical(search->request->target, &kept);
    TRY(analytic_estimate_bytes(worker->analytic, &kept, &bytes, error));
    *fits = has_room(search, bytes.reserved_bytes);
    return STATUS_OK;
}

// It may have been estimated, as the thriftiest choice.
static void reject(SearchWorker *worker, Candidate *candidate, const char *rule, const char *reason) {
    candidate->state = CANDIDATE_REJECTED;
    candidate->rule = rule;
    candidate->reason = reason;
    worker->counts.pruned++;
}

void search_note(const Search *search, SearchWorker *worker, const Candidate *candidate) {
    if (candidate->reserved_bytes <= search->request->memory_limit_bytes) {
        double *best = &worker->best_tokens_per_s[best_leaves_room(search->request, candidate->reserved_bytes)];
        *best = fmax(*best, candidate->tokens_per_s);
        search_near_note(search, worker, candidate);
    }
}

// Tokens per second below which nothing matters; 0 = all does.
static double least_tokens_per_s(const Search *search, const SearchWorker *worker) {
    const double with_room = worker->best_tokens_per_s[true];
    return search->best_only && with_room > 0 ? fmax((1 - CLEARLY_BEHIND) * with_room, search->above_tokens_per_s) : 0;
}

double search_hopeless_s(const Search *search, const SearchWorker *worker, const TrainPlan *plan) {
    const double least = search->near ? search_near_tokens_per_s(search, plan) : least_tokens_per_s(search, worker);
    return least > 0 ? (double)plan_tokens_per_step(plan) / least : 0;
}

bool search_less_matters(const Search *search, const SearchWorker *worker, const Candidate *full) {
    return !search_is_passed_over(search, full) &&
           full->tokens_per_s * FULL_OVER_LESS >= least_tokens_per_s(search, worker);
}

static void take_estimate(const Search *search, SearchWorker *worker, Candidate *candidate) {
    const Estimate *estimate = search_estimate_of(search, candidate);
    candidate->peak_bytes = estimate->peak_bytes;
    candidate->reserved_bytes = estimate->reserved_bytes;
    if (estimate->is_too_large) {
        return;
    }
    candidate->state = CANDIDATE_ESTIMATED;
    candidate->step_s = estimate->step_s;
    candidate->tokens_per_s = (double)plan_tokens_per_step(&candidate->plan) / estimate->step_s;
    if (!estimate->is_bound) {
        search_note(search, worker, candidate);
    }
}

// Where not even the thriftiest choices fit by far, the others are not worth an estimate each.
static const double FAR_OVER = 1.10;  // beyond every error of the estimate's memory

// What interests of a plan. Nobody asks for the time of what needs far too much, unless it says what a longer ring of
// its shape may reach.
static EstimateLimits limits_of(const Search *search, const SearchWorker *worker, const TrainPlan *plan) {
    EstimateLimits limits = {.step_s = search_hopeless_s(search, worker, plan), .time_only = search->near};
    if (search->near && limits.step_s > 0 && !search_is_like(search, plan) && !search_ring_speaks(&plan->mesh)) {
        limits.bytes = (FAR_OVER + spare_slack(search, plan)) * search->request->memory_limit_bytes;
    }
    return limits;
}

static Estimate *room_for_estimate(const Search *search, SearchWorker *worker, const Candidate *candidate) {
    Estimate **estimate = &search->estimates[candidate - search->space.candidates];
    *estimate = *estimate ? *estimate : ARENA_NEW(&worker->arena, Estimate);
    return *estimate;
}

static Status price_candidate(const Search *search, SearchWorker *worker, Candidate *candidate,
                              const EstimateLimits *limits, Error *error) {
    Estimate *estimate = room_for_estimate(search, worker, candidate);
    TRY(analytic_estimate_within(worker->analytic, &candidate->plan, limits, estimate, error));
    take_estimate(search, worker, candidate);
    return STATUS_OK;
}

// Nothing that recomputes is faster than what keeps all layers, else alike: where that is passed over so is this, and
// what keeps some.
static Status find_kept(const Search *search, SearchWorker *worker, const TrainPlan *plan, bool may_lower,
                        Estimate *kept, Error *error) {
    *kept = (Estimate){0};
    if (!search->near || !plan_has_stages(plan) || plan->recompute == RECOMPUTE_NONE ||
        !is_open(search, PLAN_RECOMPUTE) ||
        !target_offers(search->request->target, plan, PLAN_RECOMPUTE, RECOMPUTE_NONE) || search_is_like(search, plan)) {
        return STATUS_OK;
    }
    TrainPlan keeps = *plan;
    keeps.recompute = RECOMPUTE_NONE;
    target_canonical(search->request->target, &keeps);
    const EstimateLimits limits = limits_of(search, worker, &keeps);
    if (may_lower) {
        return analytic_estimate_within(worker->analytic, &keeps, &limits, kept, error);
    }
    kept->is_bound =
        limits.step_s > 0 && analytic_bound(worker->analytic, &keeps, kept) && kept->step_s > limits.step_s;
    return STATUS_OK;
}

static Status estimate_candidate(const Search *search, SearchWorker *worker, Candidate *candidate, Error *error) {
    Estimate kept;
    TRY(find_kept(search, worker, &candidate->plan, false, &kept, error));
    if (kept.is_bound) {
        *room_for_estimate(search, worker, candidate) = kept;
        take_estimate(search, worker, candidate);
        return STATUS_OK;
    }
    const EstimateLimits limits = limits_of(search, worker, &candidate->plan);
    TRY(price_candidate(search, worker, candidate, &limits, error));
    worker->counts.estimated += candidate->state == CANDIDATE_ESTIMATED && !search_is_passed_over(search, candidate);
    return STATUS_OK;
}

Status search_complete(const Search *search, SearchWorker *worker, Candidate *candidate, Error *error) {
    const bool is_bound = search_estimate_of(search, candidate)->is_bound;
    const EstimateLimits limits = {.time_only = search->near};
    return is_bound ? price_candidate(search, worker, candidate, &limits, error) : STATUS_OK;
}

static bool is_too_large(const Search *search, const Candidate *candidate) {
    return search_estimate_of(search, candidate)->is_too_large;
}

static bool is_thriftiest(const TrainPlan *plan) {
    return plan->recompute == RECOMPUTE_FULL && plan->reshard == RESHARD_ALWAYS;
}

// Estimates the thriftiest choice, with each value of the other choices, at the smallest micro-batch, with and without
// accumulation. *far: those that exceed memory by far.
static Status screen_thriftiest(const Search *search, SearchWorker *worker, int shape, ByChoices *far, Error *error) {
    int smallest[ACCUMULATIONS] = {0};
    ByChoices looked = by_choices_but(THRIFT), spending[SPENDERS];
    begin_spending(spending);
    for (int i = search->first_of_shape[shape]; i < search->first_of_shape[shape + 1]; i++) {
        Candidate *candidate = &search->space.candidates[i];
        const TrainPlan *plan = &candidate->plan;
        int *micro_batch = &smallest[accumulation_of(plan)];
        *micro_batch = *micro_batch > 0 ? *micro_batch : plan->micro_batch;
        const char *reason = NULL;
        const bool follows = accumulation_of(plan) == FEW_MICRO_STEPS && smallest[ACCUMULATES] > 0;
        if (plan->micro_batch != *micro_batch || !is_thriftiest(plan) || follows) {
            continue;
        }
        const PlanKey choices = choices_of(plan);
        const Candidate **looked_at = &choice_slot(&worker->arena, &looked, &choices)->candidate;
        if (*looked_at || prune(search->request, plan, NULL, &worker->arena, &reason) ||
            !search_can_be_had(search, plan)) {
            continue;
        }
        const Spender *spender;
        TRY(find_spared(search, worker, spending, candidate, &choices, &spender, error));
        if (spender) {
            candidate->rule = spender->rule;
            continue;
        }
        *looked_at = candidate;  // other rank orders need as much
        bool fits = false;
        Estimate kept;
        TRY(find_kept(search, worker, plan, true, &kept, error));
        if (!search->near) {  // which asks for times first
            TRY(needs_no_thrift(search, worker, plan, &fits, error));
        }
        if (fits || kept.is_bound || (kept.reserved_bytes > 0 && has_room(search, kept.reserved_bytes))) {
            candidate->rule = spenders[SPENDERS - 1].rule;  // until it is screened itself
            continue;
        }
        TRY(estimate_candidate(search, worker, candidate, error));
        if (candidate->reserved_bytes > (FAR_OVER + spare_slack(search, plan)) * search->request->memory_limit_bytes &&
            search_takes(search->request, SHORTCUT_THRIFTIEST)) {
            choice_slot(&worker->arena, far, &choices)->candidate = candidate;
        }
    }
    return STATUS_OK;
}

static void reject_too_large(const Search *search, SearchWorker *worker, Candidate *candidate) {
    reject(worker, candidate, "memory",
           arena_format(&worker->arena, "needs %s of %s (estimated)",
                        text_bytes(UNIT_BUFFER, candidate->reserved_bytes),
                        text_bytes(UNIT_BUFFER, search->request->memory_limit_bytes)));
}

// What few micro-steps need at least where the slot's plans, with a smaller micro-batch, accumulate: no gradients that
// are whole, and activations that grow as those did; of the orders that run ahead, (v + 1) x pp - 1 chunks at most are
// in flight where there were v x pp at least: half as many.
static double least_bytes(const Search *search, const ChoiceSlot *slot, int micro_batch) {
    const Candidate *too_large = slot->candidate, *fits = slot->fits;
    const Estimate *estimate = search_estimate_of(search, too_large);
    const double gradients = estimate->growing_bytes + estimate->first_growing_bytes + estimate->last_growing_bytes;
    const int at = too_large->plan.micro_batch;
    const double more = fits ? (too_large->reserved_bytes - fits->reserved_bytes) / (at - fits->plan.micro_batch)
                             : estimate->carried_bytes / at;
    return too_large->reserved_bytes - gradients + fmax(0, more * (micro_batch / 2 - at));
}

// The slot of a smaller micro-batch because of which the candidate is known to be too large; NULL = it is not.
static ChoiceSlot *outgrown(const Search *search, SearchWorker *worker, ByChoices *by, const Candidate *candidate) {
    const PlanKey choices = choices_of(&candidate->plan);
    ChoiceSlot *slot = choice_slot(&worker->arena, by, &choices);
    if (slot->candidate || accumulation_of(&candidate->plan) != FEW_MICRO_STEPS) {
        return slot->candidate && slot->candidate != candidate ? slot : NULL;
    }
    const PlanKey accumulating = choices_that(&candidate->plan, ACCUMULATES);
    slot = choice_slot(&worker->arena, by, &accumulating);
    return slot->candidate &&
                   !seems_to_fit(search, &candidate->plan, least_bytes(search, slot, candidate->plan.micro_batch))
               ? slot
               : NULL;
}

typedef struct ShapeScreen {
    const char *outdone;  // by another shape, why; NULL
    ByChoices too_large;  // the smallest micro-batch that was too large for memory
    ByChoices far, spending[SPENDERS];
} ShapeScreen;

// By what a plan says alone.
static bool is_ruled_out(const Search *search, SearchWorker *worker, const ShapeScreen *screen, Candidate *candidate) {
    const PruneRule *rule = prune(search->request, &candidate->plan, NULL, &worker->arena, &candidate->reason);
    candidate->rule = rule ? rule->name : NULL;
    if (rule) {
        worker->counts.pruned++;
    } else if (screen->outdone) {
        reject(worker, candidate, search->near && !search->who ? RULE_BEHIND : "rings", screen->outdone);
    } else if (!search_can_be_had(search, &candidate->plan)) {
        reject(worker, candidate, SEARCH_NOT_HAD, "who asks cannot have it");
    }
    return candidate->rule != NULL;
}

// By what came of the shape's candidates before it.
static Status find_spared_or_larger(const Search *search, SearchWorker *worker, ShapeScreen *screen,
                                    Candidate *candidate, const PlanKey *choices, Error *error) {
    const Spender *spender;
    TRY(find_spared(search, worker, screen->spending, candidate, choices, &spender, error));
    if (spender) {
        reject(worker, candidate, spender->rule, spender->reason);
        return STATUS_OK;
    }
    ChoiceSlot *smaller = outgrown(search, worker, &screen->far, candidate);
    if (smaller) {
        reject_larger(worker, candidate, smaller, " with recompute full, reshard always");
        return STATUS_OK;
    }
    smaller = outgrown(search, worker, &screen->too_large, candidate);
    if (smaller) {
        reject_larger(worker, candidate, smaller, "");
    }
    return STATUS_OK;
}

static Status screen_candidate(const Search *search, SearchWorker *worker, ShapeScreen *screen, Candidate *candidate,
                               Error *error) {
    candidate->content_hash = predictor_content_hash(&worker->predictor, &candidate->plan);
    if (is_ruled_out(search, worker, screen, candidate)) {
        return STATUS_OK;
    }
    const PlanKey choices = choices_of(&candidate->plan);
    TRY(find_spared_or_larger(search, worker, screen, candidate, &choices, error));
    if (candidate->rule) {
        return STATUS_OK;
    }
    if (candidate->state != CANDIDATE_ESTIMATED && !is_too_large(search, candidate)) {
        TRY(estimate_candidate(search, worker, candidate, error));
    }
    if (is_too_large(search, candidate)) {
        reject_too_large(search, worker, candidate);
    }
    ChoiceSlot *own = choice_slot(&worker->arena, &screen->too_large, &choices);
    const bool fits = search_seems_to_fit(search, candidate) || !search_takes(search->request, SHORTCUT_SMALLER);
    if (!fits) {
        own->candidate = candidate;
    } else if (candidate->reserved_bytes > 0) {  // else passed over without a look at its bytes
        own->fits = candidate;
    }
    return STATUS_OK;
}

// Micro-batches of a shape come in rising order, so what follows one that is too large is not even estimated.
Status search_screen_shape(const Search *search, SearchWorker *worker, int shape, Error *error) {
    ShapeScreen screen = {.outdone = search_ring_outdone(search, worker, shape),
                          .too_large = by_choices_but(0),
                          .far = by_choices_but(THRIFT)};
    begin_spending(screen.spending);
    if (!screen.outdone) {
        TRY(screen_thriftiest(search, worker, shape, &screen.far, error));
    }
    for (int i = search->first_of_shape[shape]; i < search->first_of_shape[shape + 1]; i++) {
        TRY(screen_candidate(search, worker, &screen, &search->space.candidates[i], error));
    }
    return screen.outdone ? STATUS_OK : search_partial_shape(search, worker, shape, error);
}

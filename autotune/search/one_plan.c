// One plan as the result of a search.

#include "autotune/search/one_plan.h"

void one_plan_result(const TuneRequest *request, const OnePlan *one, Arena *arena, TuneResult *result) {
    const bool runs = !one->rule;
    Prediction *prediction = ARENA_NEW(arena, Prediction);
    *prediction = one->prediction;
    const MemoryBreakdown *memory = &prediction->memory;
    Candidate *candidate = ARENA_NEW(arena, Candidate);
    *candidate = (Candidate){.plan = prediction->plan,
                             .state = runs ? CANDIDATE_SIMULATED : CANDIDATE_REJECTED,
                             .rule = runs ? NULL : one->rule->name,
                             .reason = one->reason,
                             .step_s = prediction->step_s,
                             .tokens_per_s = prediction->tokens_per_s,
                             .peak_bytes = memory->peak_bytes,
                             .reserved_bytes = memory->reserved_bytes,
                             .content_hash = prediction->content_hash,
                             .prediction = runs ? prediction : NULL};
    Rejection *rejection = ARENA_NEW(arena, Rejection);
    *rejection = (Rejection){prediction->plan, candidate->rule, one->reason};
    *result = (TuneResult){.request = request,
                           .entries = prediction,
                           .entry_count = runs,
                           .rejected = rejection,
                           .rejected_count = !runs,
                           .candidates = candidate,
                           .candidate_count = 1,
                           .search = {.shapes = 1, .candidates = 1, .pruned = !runs, .simulated = runs}};
}

// Among plans with headroom the fastest, but for ties, which are as wide as ratios of predictions err: a plan that does
// without an axis, and has no more of any but the batch's, is simpler and wins where it is level. Then, within 1 %, the
// least memory of that shape. If none has headroom, the same rule applies to all that fit.

#include "autotune/search/best.h"

#include <string.h>

#include "autotune/search/rank.h"
#include "sim/base/text.h"

static const double USABLE = 0.92;  // of the memory: its prediction errs by 5.5 % in the middle (ACCURACY.md), and a
                                    // run's fragments grow

// How far ahead of a simpler plan one is level with it. Counted: pairs of a group of runs in which it was measured
// faster (tests/accuracy/runs/ties.py; "Ties" in its RESULTS.md). There are none of rings: runs with cp take 5 to 30 %
// longer than those without it, both against what is predicted.
static const double LEVEL = 0.01;         // choices of a shape: 10 of 16, and 20 of 64 at 1 to 3 %
static const double TENSOR_LEVEL = 0.02;  // without tp: 18 of 26, and 7 of 22 at 2 to 5 %
// Without stages: 69 of 104 (of one framework 58 of 74, of others 11 of 30), and 18 of 37 at 5 to 8 %.
static const double PIPELINE_LEVEL = 0.05;

double best_usable_bytes(const TuneRequest *request) {
    const bool given = request->memory_limit_bytes != request->cluster.accelerator.memory_bytes;
    return request->memory_limit_bytes * (given ? 1 : USABLE);
}

bool best_leaves_room(const TuneRequest *request, double reserved_bytes) {
    return reserved_bytes <= best_usable_bytes(request);
}

bool best_prefers(const TuneRequest *request, const Prediction *first, const Prediction *second) {
    const bool room = best_leaves_room(request, first->memory.reserved_bytes);
    if (request->objective != OBJECTIVE_MEMORY && room != best_leaves_room(request, second->memory.reserved_bytes)) {
        return room;
    }
    return rank_order(request->objective)(first, second) < 0;
}

static AxisMask axes_of(const Prediction *prediction) {
    AxisMask axes = AXES_NONE;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        axes |= prediction->plan.mesh.size[axis] > 1 ? AXES_OWN & AXIS_BIT(axis) : AXES_NONE;
    }
    return axes;
}

// Axes that the plan does without.
static AxisMask gone_from(const Prediction *plan, const Prediction *than) {
    return axes_of(than) & ~axes_of(plan);
}

// Cuts the model and its sequences into no more parts along any axis.
static bool cuts_no_more(const Prediction *plan, const Prediction *than) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (!(AXES_BATCH & AXIS_BIT(axis)) && plan->plan.mesh.size[axis] > than->plan.mesh.size[axis]) {
            return false;
        }
    }
    return true;
}

static bool cuts_alike(const Prediction *plan, const Prediction *other) {
    return cuts_no_more(plan, other) && cuts_no_more(other, plan);
}

// Without a cut of the model, whichever way the batch is, or without an axis of the batch.
static bool is_simpler(const Prediction *plan, const Prediction *than) {
    const AxisMask gone = gone_from(plan, than), more = gone_from(than, plan);
    return cuts_no_more(plan, than) && ((gone & ~AXES_BATCH) || (gone && !more && cuts_alike(plan, than)));
}

static double level_of(AxisMask gone) {
    return gone & (AXES_STAGE | AXES_SEQUENCE) ? PIPELINE_LEVEL : gone & AXES_TENSOR ? TENSOR_LEVEL : LEVEL;
}

static bool is_level(const Prediction *plan, const Prediction *with) {
    return with->tokens_per_s <= (1 + level_of(gone_from(plan, with))) * plan->tokens_per_s;
}

// All fully evaluated plans, the entries and any others that were simulated, that leave room or that do not.
typedef struct Plans {
    const TuneResult *result;
    bool with_room;
    int next;
} Plans;

static const Prediction *next_plan(Plans *plans) {
    const TuneResult *result = plans->result;
    while (plans->next < result->entry_count + result->candidate_count) {
        const int at = plans->next++;
        const Candidate *candidate = at < result->entry_count ? NULL : &result->candidates[at - result->entry_count];
        const Prediction *plan = !candidate                                ? &result->entries[at]
                                 : candidate->state == CANDIDATE_SIMULATED ? candidate->prediction
                                                                           : NULL;
        if (plan && best_leaves_room(result->request, plan->memory.reserved_bytes) == plans->with_room) {
            return plan;
        }
    }
    return NULL;
}

static bool is_faster(const Prediction *plan, const Prediction *than) {
    return !than || rank_order(OBJECTIVE_THROUGHPUT)(plan, than) < 0;
}

const Prediction *best_fastest(const TuneResult *result, bool with_room) {
    const Prediction *found = NULL;
    Plans plans = {result, with_room, 0};
    for (const Prediction *plan = next_plan(&plans); plan; plan = next_plan(&plans)) {
        found = is_faster(plan, found) ? plan : found;
    }
    return found;
}

// One step from `than`, level with the fastest of all too; NULL = there is none.
static const Prediction *fastest_simpler(const TuneResult *result, const Prediction *than, const Prediction *top,
                                         bool with_room) {
    const Prediction *found = NULL;
    Plans plans = {result, with_room, 0};
    for (const Prediction *plan = next_plan(&plans); plan; plan = next_plan(&plans)) {
        if (is_simpler(plan, than) && is_level(plan, than) && is_level(plan, top) && is_faster(plan, found)) {
            found = plan;
        }
    }
    return found;
}

static bool is_thriftier(const Prediction *plan, const Prediction *than) {
    const double bytes = plan->memory.reserved_bytes, more = than->memory.reserved_bytes;
    return bytes != more ? bytes < more : is_faster(plan, than);
}

static const Prediction *thriftiest_of_level(const TuneResult *result, const Prediction *top, bool with_room) {
    const Prediction *found = top;
    Plans plans = {result, with_room, 0};
    for (const Prediction *plan = next_plan(&plans); plan; plan = next_plan(&plans)) {
        if (cuts_alike(plan, top) && !is_simpler(top, plan) && is_level(plan, top) && is_thriftier(plan, found)) {
            found = plan;
        }
    }
    return found;
}

static const Prediction *simplest_of_level(const TuneResult *result, const Prediction *top, bool with_room) {
    const Prediction *found = top;
    for (const Prediction *next = top; next; next = fastest_simpler(result, found, top, with_room)) {
        found = next;
    }
    return thriftiest_of_level(result, found, with_room);
}

static void put_in_front(TuneResult *result, Prediction best) {
    int own = 0;
    while (!mesh_same_shape(&result->entries[own].plan.mesh, &best.plan.mesh)) {
        own++;
    }
    memmove(result->entries + 1, result->entries, (size_t)own * sizeof best);
    best.pareto = false;  // to be marked again
    result->entries[0] = best;
}

static const char *reason_of(const Prediction *best, const Prediction *top, bool with_room, const TuneRequest *request,
                             Arena *arena) {
    char mesh[MESH_TEXT_BYTES];
    const bool margin = best_usable_bytes(request) < request->memory_limit_bytes;
    const char *whose = !with_room ? "; no plan leaves 8 % of the memory free"
                        : margin   ? " of the plans that leave 8 % of the memory free"
                                   : " of the plans that fit";
    if (best == top || mesh_same_shape(&best->plan.mesh, &top->plan.mesh)) {
        return best == top
                   ? arena_format(arena, "the fastest%s", whose)
                   : arena_format(arena, "level with the fastest%s, with %s less memory", whose,
                                  text_bytes(UNIT_BUFFER, top->memory.reserved_bytes - best->memory.reserved_bytes));
    }
    mesh_short_text(&top->plan.mesh, mesh);
    if (is_simpler(best, top)) {
        const AxisMask gone = gone_from(best, top) & ~(gone_from(top, best) ? AXES_BATCH : AXES_NONE);
        return arena_format(
            arena, "level with %s, the fastest%s (%.1f %% ahead, too close to call), and simpler: no %s", mesh, whose,
            100 * (top->tokens_per_s / best->tokens_per_s - 1), axes_text(gone, ", no ", AXES_BUFFER));
    }
    return arena_format(arena, "level (within 1 %%) with %s, the fastest%s, with %s less memory", mesh, whose,
                        text_bytes(UNIT_BUFFER, top->memory.reserved_bytes - best->memory.reserved_bytes));
}

void best_choose(TuneResult *result, Arena *arena) {
    if (result->entry_count == 0) {
        return;
    }
    if (result->request->objective == OBJECTIVE_MEMORY) {
        result->best_reason = "the least memory";
        return;
    }
    const Prediction *roomy = best_fastest(result, true), *tight = best_fastest(result, false);
    const Prediction *top = roomy ? roomy : tight;
    const Prediction *best = simplest_of_level(result, top, roomy != NULL);
    result->best_reason = reason_of(best, top, roomy != NULL, result->request, arena);
    if (roomy && tight && tight->tokens_per_s > best->tokens_per_s) {
        Prediction *copy = ARENA_NEW(arena, Prediction);
        *copy = *tight;  // entries move
        result->fastest_if_it_fits = copy;
    }
    put_in_front(result, *best);
}

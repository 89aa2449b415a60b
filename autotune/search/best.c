// Among plans with headroom, those within 1 % of the fastest are tied: fewest axes win, then least memory. If none has
// headroom, the same rule applies to all that fit.

#include "autotune/search/best.h"

#include <string.h>

#include "autotune/search/rank.h"
#include "sim/base/text.h"

static const double USABLE = 0.92;  // of the memory: its prediction errs by 5.5 % in the middle (ACCURACY.md), and a
                                    // run's fragments grow
static const double LEVEL = 0.01;   // of the speed: far less than the interval of a prediction is wide

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

static int axes_of(const Prediction *prediction) {
    int axes = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        axes += (AXES_OWN & AXIS_BIT(axis)) && prediction->plan.mesh.size[axis] > 1;
    }
    return axes;
}

// All fully evaluated plans: the entries, and any others that were simulated.
typedef struct Plans {
    const TuneResult *result;
    int next;
} Plans;

static const Prediction *next_plan(Plans *plans) {
    const TuneResult *result = plans->result;
    while (plans->next < result->entry_count + result->candidate_count) {
        const int at = plans->next++;
        if (at < result->entry_count) {
            return &result->entries[at];
        }
        const Candidate *candidate = &result->candidates[at - result->entry_count];
        if (candidate->state == CANDIDATE_SIMULATED) {
            return candidate->prediction;
        }
    }
    return NULL;
}

// Of those that leave room, or of those that do not; NULL = there is none.
static const Prediction *fastest(const TuneResult *result, bool with_room) {
    const Prediction *found = NULL;
    Plans plans = {result, 0};
    for (const Prediction *plan = next_plan(&plans); plan; plan = next_plan(&plans)) {
        if (best_leaves_room(result->request, plan->memory.reserved_bytes) == with_room &&
            (!found || rank_order(OBJECTIVE_THROUGHPUT)(plan, found) < 0)) {
            found = plan;
        }
    }
    return found;
}

static bool is_simpler(const Prediction *plan, const Prediction *than) {
    const int axes = axes_of(plan), other = axes_of(than);
    if (axes != other) {
        return axes < other;
    }
    const double bytes = plan->memory.reserved_bytes, more = than->memory.reserved_bytes;
    return bytes != more ? bytes < more : rank_order(OBJECTIVE_THROUGHPUT)(plan, than) < 0;
}

static const Prediction *simplest_of_level(const TuneResult *result, const Prediction *top, bool with_room) {
    const Prediction *found = top;
    Plans plans = {result, 0};
    for (const Prediction *plan = next_plan(&plans); plan; plan = next_plan(&plans)) {
        if (best_leaves_room(result->request, plan->memory.reserved_bytes) == with_room &&
            plan->tokens_per_s >= (1 - LEVEL) * top->tokens_per_s && is_simpler(plan, found)) {
            found = plan;
        }
    }
    return found;
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
    const int axes = axes_of(best), more = axes_of(top);
    if (axes < more) {
        return arena_format(arena, "level (within 1 %%) with %s, the fastest%s, and simpler: %d %s instead of %d", mesh,
                            whose, axes, axes == 1 ? "axis" : "axes", more);
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
    const Prediction *roomy = fastest(result, true), *tight = fastest(result, false);
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

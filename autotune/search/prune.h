// The rules that reject a candidate, each a table row with its message. Rows are in the order that is most useful to a
// user.

#pragma once

#include "autotune/result.h"
#include "sim/base/arena.h"

typedef struct PruneRule {
    const char *name;  // stable: stored, and the key by which reports group
    // Returns the reason (arena text, one sentence), or NULL to let the candidate pass. memory is NULL before it is
    // known.
    const char *(*check)(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory,
                         Arena *arena);
    SearchShortcut shortcut;  // that it is; SHORTCUT_COUNT = a bound: what it throws out is no answer
} PruneRule;

// The first rule that rejects the plan, with *reason; NULL when none does.
const PruneRule *prune(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory, Arena *arena,
                       const char **reason);

// The same for a plan that a user supplies: being slow, which a search may skip, is no reason to reject it.
const PruneRule *prune_given(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory,
                             Arena *arena, const char **reason);

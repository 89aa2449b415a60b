// The terms in which the best shape is compared with the next. Times are per million tokens, because two shapes need
// not take the same number of tokens in a step.

#pragma once

#include <jansson.h>

#include "autotune/explain/explain.h"
#include "reports/format.h"
#include "reports/memory_terms.h"

enum { EXPLAIN_TIME_TERMS = 4 + AXIS_COUNT, EXPLAIN_MEMORY_TERMS = MEMORY_TERMS + 2 };

typedef struct ExplainTerm {
    const char *name;
    double best, next;  // seconds per million tokens, or bytes
} ExplainTerm;

ExplainTerm explain_time_term(const Explanation *explanation, int index);    // the last one is the sum
ExplainTerm explain_memory_term(const Explanation *explanation, int index);  // the last two: peak (their sum), reserved

// A list of name, best, the other plan under `next`, and the difference; null where there is no other plan.
json_t *explain_terms_json(const Explanation *explanation, int count, ExplainTerm (*term)(const Explanation *, int),
                           const char *next);

// The time term in which the best saves most over the next; no name where it saves in none.
ExplainTerm explain_most_saved(const Explanation *explanation);

// Tokens per second of the best relative to the next, minus one.
double explain_lead(const Explanation *explanation);

// The best compared with the best of the other kind, with stages or without; there must be one.
Explanation explain_beside_stages(const Explanation *explanation);

// "etp=2: 4.1 % slower, 75.3 GiB"
char *explain_cut(const struct OtherCut *other, char out[FORMAT_BYTES]);

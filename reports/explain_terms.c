// Rows of the comparison, shared by table, JSON and CSV.

#include "reports/explain_terms.h"

#include <math.h>
#include <string.h>

#include "reports/json_objects.h"
#include "sim/base/text.h"

static const double MILLION = 1e6;

enum {
    TERM_COMPUTE,
    TERM_EXPOSED,  // one per axis
    TERM_OPTIMIZER = TERM_EXPOSED + AXIS_COUNT,
    TERM_OVERHEAD,
    TERM_STEP
};

static double time_of(const Prediction *prediction, int index) {
    double terms[EXPLAIN_TIME_TERMS] = {[TERM_COMPUTE] = prediction->compute_s,
                                        [TERM_OPTIMIZER] = prediction->optimizer_s,
                                        [TERM_OVERHEAD] = prediction->overhead_s + prediction->bubble_s,
                                        [TERM_STEP] = prediction->step_s};
    memcpy(&terms[TERM_EXPOSED], prediction->exposed_s, sizeof prediction->exposed_s);
    return terms[index] * MILLION / (double)plan_tokens_per_step(&prediction->plan);
}

ExplainTerm explain_time_term(const Explanation *explanation, int index) {
#define EXPOSED_NAME(symbol, name, role, lenders) [TERM_EXPOSED + AXIS_##symbol] = "exposed " #name " communication",
    static const char *const names[EXPLAIN_TIME_TERMS] = {
        AXIS_LIST(EXPOSED_NAME)[TERM_COMPUTE] = "compute", [TERM_OPTIMIZER] = "optimizer", [TERM_OVERHEAD] = "overhead",
        [TERM_STEP] = "together"};
    const bool waits =
        explanation->best->bubble_s > 0 || (explanation->runner_up && explanation->runner_up->bubble_s > 0);
    const char *name = waits && index == TERM_OVERHEAD ? "overhead and bubble" : names[index];
    return (ExplainTerm){name, time_of(explanation->best, index),
                         explanation->runner_up ? time_of(explanation->runner_up, index) : 0};
}

ExplainTerm explain_most_saved(const Explanation *explanation) {
    ExplainTerm most = {0};
    for (int i = 0; i + 1 < EXPLAIN_TIME_TERMS; i++) {  // the last is the sum
        const ExplainTerm term = explain_time_term(explanation, i);
        most = term.next - term.best > most.next - most.best ? term : most;
    }
    return most;
}

Explanation explain_beside_stages(const Explanation *explanation) {
    Explanation beside = *explanation;
    beside.runner_up = explanation->stages.other;
    return beside;
}

json_t *explain_terms_json(const Explanation *explanation, int count, ExplainTerm (*term)(const Explanation *, int),
                           const char *next) {
    json_t *list = json_array();
    const bool known = explanation->runner_up;
    for (int i = 0; i < count; i++) {
        const ExplainTerm of = term(explanation, i);
        json_array_append_new(list, json_pack("{s:s, s:f, s:o, s:o}", "name", of.name, "best", of.best, next,
                                              json_known(known, of.next), "difference",
                                              json_known(known, of.next - of.best)));
    }
    return list;
}

static MemoryTerm memory_of(const MemoryBreakdown *memory, int index) {
    MemoryTerm terms[EXPLAIN_MEMORY_TERMS];
    memory_terms(memory, terms);
    terms[MEMORY_TERMS] = (MemoryTerm){"peak_bytes", "peak", memory->peak_bytes};
    terms[MEMORY_TERMS + 1] = (MemoryTerm){"reserved_bytes", "reserved", memory->reserved_bytes};
    return terms[index];
}

ExplainTerm explain_memory_term(const Explanation *explanation, int index) {
    const MemoryTerm best = memory_of(&explanation->best->memory, index);
    return (ExplainTerm){best.words, best.bytes,
                         explanation->runner_up ? memory_of(&explanation->runner_up->memory, index).bytes : 0};
}

double explain_lead(const Explanation *explanation) {
    return explanation->runner_up ? explanation->best->tokens_per_s / explanation->runner_up->tokens_per_s - 1 : 0;
}

char *explain_cut(const struct OtherCut *other, char out[FORMAT_BYTES]) {
    const double percent = 100 * other->step;
    snprintf(out, FORMAT_BYTES, "etp=%d: %.1f %% %s, %s%s", other->cut, fabs(percent),
             percent < 0 ? "faster" : "slower", text_bytes(UNIT_BUFFER, other->reserved_bytes),
             other->fits ? "" : ", which does not fit");
    return out;
}

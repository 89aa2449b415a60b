// What would change the answer: the search is run again, estimates only, under a changed request; where ranks or links
// are slow, which estimates do not know, with the most promising choice of each shape simulated. The break-even is
// found by doubling the factor until another shape wins, then by bisection; it is the least such factor where the
// winner changes once, which is the usual case. Questions run in parallel; the searches of one question share what its
// change does not affect. The network is what the shapes of this world travel over: the cards between the nodes, or the
// links of a node when there is only one. Measured curves of a profile contradict a changed network and are left out of
// all searches of that question.

#include "autotune/explain/explain.h"

#include <math.h>
#include <string.h>

#include "autotune/parallel.h"
#include "autotune/search/best.h"
#include "autotune/search/search.h"
#include "sim/analytic/analytic.h"

enum { ASKED_FACTOR = 2, SEARCHED_TO = 8, SEQUENCE_GRAIN = 256, SEQUENCE_LEAST = 256 };
static const double CLOSE_ENOUGH = 1.05;  // bisection ends when the factor is known within 5 %

typedef struct Asking {
    const TuneRequest *request;
    WhatIfKind kind;
    Arena lasting;    // of what the closed form knows about the request as it is
    Analytic *known;  // NULL = nothing yet
    Arena scratch;    // of one search
    Mesh reference;
    bool referred;  // reference is known
} Asking;

static void scale_curve(LinkCurve *curve, double factor) {
    curve->bandwidth_bytes_per_s *= factor;
}

static void scale_network(ClusterProfile *cluster, int world, double factor) {
    cluster->curves = NULL;
    cluster->curve_count = 0;
    if (world > cluster->node.accelerators) {
        cluster->fabric.nic_bytes_per_s *= factor;
        scale_curve(&cluster->fabric.tree, factor);
        return;
    }
    scale_curve(&cluster->node.ring, factor);
    scale_curve(&cluster->node.nvls, factor);
    scale_curve(&cluster->node.p2p, factor);
    for (int i = 0; i < cluster->node.group_count; i++) {
        scale_curve(&cluster->node.groups[i].ring, factor);
        scale_curve(&cluster->node.groups[i].p2p, factor);
    }
}

// Sequences stay whole multiples that context parallelism can cut, and tokens per step stay what they were.
static void shorten(TuneRequest *request, double factor) {
    const int wanted = (int)(request->seq / factor);
    const int grain = request->seq % SEQUENCE_GRAIN == 0 ? SEQUENCE_GRAIN : 1;
    const int seq = wanted >= grain ? wanted / grain * grain : wanted;
    const int64_t tokens = request->global_batch * request->seq;
    request->seq = seq > 0 ? seq : 1;
    request->global_batch = request->global_batch > 0 ? tokens / request->seq : 0;
}

static TuneRequest changed(const Asking *asking, double factor) {
    TuneRequest request = *asking->request;
    request.effort = EFFORT_ESTIMATE;
    if (asking->kind == WHAT_IF_NETWORK) {
        scale_network(&request.cluster, request.world, factor);
    } else if (asking->kind == WHAT_IF_MEMORY) {
        request.memory_limit_bytes *= factor;
    } else {
        shorten(&request, factor);
    }
    return request;
}

// What the closed form may keep from search to search: all of it where only the memory limit changes, memory where only
// the network does.
static Analytic *analytic_for(Asking *asking, const CostModel *cost) {
    const TuneRequest *request = asking->request;
    if (!asking->known) {
        const CostModel own = {.profile = &request->cluster, .target = request->target};
        asking->known = analytic_new(&request->model, &own, &asking->lasting);
    }
    if (asking->kind == WHAT_IF_MEMORY) {
        return asking->known;
    }
    Analytic *analytic = analytic_new(&request->model, cost, &asking->scratch);
    if (asking->kind == WHAT_IF_NETWORK) {
        analytic_share_memory(analytic, asking->known);
    }
    return analytic;
}

// One search; best->best is copied out of the scratch arena.
static Status ask(Asking *asking, double factor, SearchBest *best, Error *error) {
    const TuneRequest request = changed(asking, factor);
    const CostModel cost = {.profile = &request.cluster, .target = request.target};
    Analytic *analytic = analytic_for(asking, &cost);
    const Status status = search_best(&request, analytic, &asking->reference, &asking->scratch, best, error);
    best->best.warning_count = 0;  // their texts go with the arena
    best->best.memory.peak_phase = best->best.memory.top_name = "";
    if (analytic != asking->known) {
        analytic_free(analytic);
    }
    arena_reset(&asking->scratch);
    return status;
}

static bool is_reference(const Asking *asking, const SearchBest *best) {
    return best->feasible && mesh_same_shape(&best->best.plan.mesh, &asking->reference);
}

// Between low, where the reference wins, and high, where *at_high does.
static Status bisect(Asking *asking, double low, double high, Mesh at_high, WhatIf *question, Error *error) {
    while (high / low > CLOSE_ENOUGH) {
        const double middle = sqrt(low * high);
        SearchBest best;
        TRY(ask(asking, middle, &best, error));
        if (is_reference(asking, &best)) {
            low = middle;
        } else {
            high = middle;
            at_high = best.best.plan.mesh;
        }
    }
    question->break_even = high;
    question->break_even_mesh = at_high;
    return STATUS_OK;
}

// Shorter sequences end where nothing is left to cut.
static double most_factor(const Asking *asking) {
    const double longest = (double)asking->request->seq / SEQUENCE_LEAST;
    return asking->kind == WHAT_IF_SEQUENCE && longest < SEARCHED_TO ? longest : SEARCHED_TO;
}

static Status answer(Asking *asking, WhatIf *question, Error *error) {
    SearchBest best;
    double low = 1;
    if (!asking->referred) {
        TRY(ask(asking, 1, &best, error));
        asking->reference = best.best.plan.mesh;
        asking->referred = true;
    }
    for (double factor = ASKED_FACTOR; factor <= most_factor(asking); factor *= 2) {
        TRY(ask(asking, factor, &best, error));
        const double old = best.reference_tokens_per_s;
        if (factor == ASKED_FACTOR) {
            question->best = best.best;
            question->feasible = best.feasible;
            question->same_shape = is_reference(asking, &best);
            question->gain = old > 0 ? best.best.tokens_per_s / old - 1 : 0;
        }
        question->searched_to = factor;
        if (!is_reference(asking, &best)) {
            return bisect(asking, low, factor, best.best.plan.mesh, question, error);
        }
        low = factor;
    }
    return STATUS_OK;
}

// The network is a piece of its own, because measured curves are left out of it; the others have one answer at factor
// 1.
enum { PIECE_NETWORK, PIECE_OTHERS, PIECE_COUNT };

static Status answer_piece(void *context, int worker, int index, Error *error) {
    Explanation *explanation = context;
    (void)worker;
    Asking asking = {.request = explanation->result->request};
    const int first = index == PIECE_NETWORK ? WHAT_IF_NETWORK : WHAT_IF_MEMORY;
    const int end = index == PIECE_NETWORK ? WHAT_IF_MEMORY : WHAT_IF_COUNT;
    Status status = STATUS_OK;
    for (int kind = first; kind < end && status == STATUS_OK; kind++) {
        asking.kind = (WhatIfKind)kind;
        status = answer(&asking, &explanation->questions[kind], error);
    }
    if (index == PIECE_OTHERS) {
        explanation->estimated_best = asking.reference;
    }
    if (asking.known) {
        analytic_free(asking.known);
    }
    arena_free(&asking.scratch);
    arena_free(&asking.lasting);
    return status;
}

static WhyStages why_stages(const TuneResult *result) {
    const Prediction *best = &result->entries[0];
    WhyStages why = {.offered = result->request->world > 1 && result->request->target->axes & AXES_STAGE,
                     .used = plan_has_stages(&best->plan)};
    for (int i = 1; i < result->entry_count; i++) {
        const Prediction *entry = &result->entries[i];
        if (plan_has_stages(&entry->plan) != why.used) {
            why.other = !why.other || entry->tokens_per_s > why.other->tokens_per_s ? entry : why.other;
            why.shapes++;
        }
    }
    for (int i = 0; i < result->rejected_count; i++) {
        const Rejection *rejected = &result->rejected[i];
        if (plan_has_stages(&rejected->plan) != why.used) {
            const bool nearer =
                !why.rejected || (strcmp(rejected->rule, "memory") == 0 && strcmp(why.rejected->rule, "memory") != 0);
            why.rejected = nearer ? rejected : why.rejected;
            why.shapes++;
        }
    }
    return why;
}

Status explain_run(const TuneResult *result, const Progress *progress, Explanation *explanation, Error *error) {
    static const char *const sentences[WHAT_IF_COUNT] = {
        "twice the network between nodes", "twice the memory per accelerator", "sequences of half the length"};
    *explanation = (Explanation){.result = result,
                                 .best = &result->entries[0],
                                 .stages = why_stages(result),
                                 .runner_up = result->entry_count > 1 ? &result->entries[1] : NULL};
    const bool one_node = result->request->world <= result->request->cluster.node.accelerators;
    for (int kind = 0; kind < WHAT_IF_COUNT; kind++) {
        WhatIf *question = &explanation->questions[kind];
        *question = (WhatIf){.kind = (WhatIfKind)kind, .sentence = sentences[kind], .factor = ASKED_FACTOR};
        if (kind == WHAT_IF_NETWORK && one_node) {
            question->sentence = "twice the links inside the node";
        }
    }
    const ParallelWork work = {
        parallel_workers(result->request->threads), PIECE_COUNT, answer_piece, explanation, progress, "asking what if"};
    TRY(parallel_run(&work, error));
    TRY(expert_cuts_explain(result, &explanation->cuts, error));
    return sensitivity_run(result->request, &explanation->best->plan, progress, &explanation->sensitivities, error);
}

bool explain_leaves_room(const TuneRequest *request, const Prediction *prediction) {
    return best_leaves_room(request, prediction->memory.reserved_bytes);
}

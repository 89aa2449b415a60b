// What an MoE layer does in addition to its products: routing, permuting rows into the order of their experts, and the
// weighted sum back. Rows are split over threads; places are computed by one thread, in order.

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"
#include "kernels/routing.h"
#include "kernels/shared_expert.h"

#include <math.h>
#include <string.h>

typedef struct Route {
    KernelRoute shape;
    const float *logits, *dweights;
    float *weights, *dlogits;
    int32_t *places;
    const int32_t *ends;  // ends of the experts' ranges of rows
} Route;

// ---------------------------------------------------------------------------------------------- routing

// The next choice after the last one: the largest remaining logit, and for equal logits the lower expert.
static int32_t next_choice(const float *logits, int experts, int32_t last) {
    const float above = last < 0 ? INFINITY : routing_rank(logits[last]);
    int32_t best = -1;
    float highest = -INFINITY;
    for (int32_t e = 0; e < experts; e++) {
        const float rank = routing_rank(logits[e]);
        const bool left = rank < above || (rank == above && e > last);
        if (left && (best < 0 || rank > highest)) {
            best = e;
            highest = rank;
        }
    }
    return best;
}

// ---- sigmoid scores

// Experts of groups that were not selected cannot be chosen.
static void close_groups(const KernelRoute *shape, float *values) {
    const int width = shape->experts / shape->groups;
    float sums[KERNEL_MAX_EXPERTS];
    bool open[KERNEL_MAX_EXPERTS] = {false};
    for (int g = 0; g < shape->groups; g++) {
        sums[g] = routing_two_largest(values + g * width, width);
    }
    for (int32_t i = 0, last = -1; i < shape->active_groups; i++) {
        last = next_choice(sums, shape->groups, last);
        open[last] = true;
    }
    for (int e = 0; e < shape->experts; e++) {
        values[e] = open[e / width] ? values[e] : -INFINITY;
    }
}

static void choose_by_scores(const Route *r, int64_t row) {
    const int experts = r->shape.experts, active = r->shape.active;
    const float *logits = r->logits + row * experts;
    int32_t *chosen = r->places + row * active;
    float values[KERNEL_MAX_EXPERTS];
    for (int e = 0; e < experts; e++) {
        values[e] = routing_sigmoid(logits[e]) + (r->shape.correction ? r->shape.correction[e] : 0.0f);
    }
    if (r->shape.groups > 0) {
        close_groups(&r->shape, values);
    }
    double sum = 0;
    for (int i = 0; i < active; i++) {
        chosen[i] = next_choice(values, experts, i > 0 ? chosen[i - 1] : -1);
        sum += (double)routing_sigmoid(logits[chosen[i]]);
    }
    for (int i = 0; i < active; i++) {
        const double share = (double)routing_sigmoid(logits[chosen[i]]) / (r->shape.unscaled ? 1.0 : sum);
        r->weights[row * active + i] = (float)(r->shape.factor * share);
    }
}

// ---- softmax scores

static double exp_sum(const float *logits, const int32_t *chosen, int count, float largest) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += exp((double)logits[chosen ? chosen[i] : i] - largest);
    }
    return sum;
}

static void choose_rows(const void *context, int64_t begin, int64_t end) {
    const Route *r = context;
    const int experts = r->shape.experts, active = r->shape.active;
    for (int64_t row = begin; row < end; row++) {
        if (r->shape.sigmoid) {
            choose_by_scores(r, row);
            continue;
        }
        const float *logits = r->logits + row * experts;
        int32_t *chosen = r->places + row * active;
        for (int i = 0; i < active; i++) {
            chosen[i] = next_choice(logits, experts, i > 0 ? chosen[i - 1] : -1);
        }
        const float largest = logits[chosen[0]];
        const double sum =
            r->shape.unscaled ? exp_sum(logits, NULL, experts, largest) : exp_sum(logits, chosen, active, largest);
        for (int i = 0; i < active; i++) {
            r->weights[row * active + i] = (float)(exp((double)logits[chosen[i]] - largest) / sum);
        }
    }
}

void kernel_route(const KernelRoute *shape, const float *logits, float *weights, int32_t *places, int32_t *counts) {
    const Route route = {.shape = *shape, .logits = logits, .weights = weights, .places = places};
    parallel_rows(shape->rows, (int64_t)shape->experts * shape->active, choose_rows, &route);
    int32_t next[KERNEL_MAX_EXPERTS], at = 0;
    memset(counts, 0, sizeof *counts * (size_t)shape->experts);
    for (int64_t i = 0; i < shape->rows * shape->active; i++) {
        counts[places[i]]++;
    }
    for (int e = 0; e < shape->experts; e++) {
        next[e] = at;
        at += counts[e];
    }
    for (int64_t i = 0; i < shape->rows * shape->active; i++) {
        places[i] = next[places[i]]++;
    }
}

// Where the range of rows of each expert ends.
static void ends_of(const KernelRoute *shape, const int32_t *counts, int32_t *ends) {
    for (int32_t e = 0, at = 0; e < shape->experts; e++) {
        ends[e] = at += counts[e];
    }
}

// For sigmoids s, w = factor s / sum of s: gradient w (1 - s) (dw - sum of w dw / factor); unscaled: w (1 - s) dw.
static void back_to_scores(const Route *r, int64_t row, double mean) {
    const int experts = r->shape.experts, active = r->shape.active;
    for (int64_t i = row * active; i < (row + 1) * active; i++) {
        const int expert = routing_range_at(r->ends, experts, r->places[i]);
        const double closed = 1.0 - (double)routing_sigmoid(r->logits[row * experts + expert]);
        const double through = r->shape.unscaled ? r->dweights[i] : r->dweights[i] - mean / (double)r->shape.factor;
        r->dlogits[row * experts + expert] += (float)(r->weights[i] * closed * through);
    }
}

// For a softmax p over the chosen or over all experts: p (dp - sum of p dp); experts that are not visited have dp 0.
static void route_backward_rows(const void *context, int64_t begin, int64_t end) {
    const Route *r = context;
    const int experts = r->shape.experts, active = r->shape.active;
    for (int64_t row = begin; row < end; row++) {
        const float *logits = r->logits + row * experts, *weights = r->weights + row * active;
        const float *dweights = r->dweights + row * active;
        const int32_t *places = r->places + row * active;
        float *dlogits = r->dlogits + row * experts;
        double mean = 0;
        for (int i = 0; i < active; i++) {
            mean += (double)weights[i] * dweights[i];
        }
        memset(dlogits, 0, sizeof *dlogits * (size_t)experts);
        if (r->shape.sigmoid) {
            back_to_scores(r, row, mean);
            continue;
        }
        if (r->shape.unscaled) {
            const float first = logits[routing_range_at(r->ends, experts, places[0])];
            const double sum = exp_sum(logits, NULL, experts, first);
            for (int e = 0; e < experts; e++) {
                dlogits[e] = (float)(-mean * exp((double)logits[e] - first) / sum);
            }
        }
        for (int i = 0; i < active; i++) {
            const double through = r->shape.unscaled ? dweights[i] : dweights[i] - mean;
            dlogits[routing_range_at(r->ends, experts, places[i])] += (float)(weights[i] * through);
        }
    }
}

void kernel_route_backward(const KernelRoute *shape, const float *logits, const float *weights, const int32_t *places,
                           const int32_t *counts, const float *dweights, float *dlogits) {
    int32_t ends[KERNEL_MAX_EXPERTS];
    ends_of(shape, counts, ends);
    const Route route = {.shape = *shape,
                         .logits = logits,
                         .dweights = dweights,
                         .weights = (float *)(uintptr_t)weights,
                         .dlogits = dlogits,
                         .places = (int32_t *)(uintptr_t)places,
                         .ends = ends};
    parallel_rows(shape->rows, shape->experts, route_backward_rows, &route);
}

// ---------------------------------------------------------------------------------------------- load-balancing loss

void kernel_count_visits(const KernelRoute *shape, int64_t sequence, const int32_t *places, const int32_t *counts,
                         float *visits) {
    int32_t ends[KERNEL_MAX_EXPERTS];
    ends_of(shape, counts, ends);
    memset(visits, 0, sizeof *visits * (size_t)(shape->rows / sequence * shape->experts));
    for (int64_t i = 0; i < shape->rows * shape->active; i++) {
        visits[i / shape->active / sequence * shape->experts + routing_range_at(ends, shape->experts, places[i])] +=
            1.0f;
    }
}

typedef struct Balance {
    KernelRoute shape;
    int64_t sequence;
    float factor;
    const float *visits, *logits;
    float *dlogits;
} Balance;

static void balance_rows(const void *context, int64_t begin, int64_t end) {
    const Balance *b = context;
    const int experts = b->shape.experts;
    for (int64_t row = begin; row < end; row++) {
        const float *logits = b->logits + row * experts, *visits = b->visits + row / b->sequence * experts;
        float *dlogits = b->dlogits + row * experts;
        double sum = 0, mean = 0, chances[KERNEL_MAX_EXPERTS];
        float largest = -INFINITY;
        for (int e = 0; e < experts; e++) {
            largest = fmaxf(largest, logits[e]);
        }
        for (int e = 0; e < experts; e++) {
            chances[e] = b->shape.sigmoid ? (double)routing_sigmoid(logits[e]) : exp((double)logits[e] - largest);
            sum += chances[e];
            mean += chances[e] * visits[e];
        }
        for (int e = 0; e < experts; e++) {
            const double slope = b->shape.sigmoid ? 1.0 - chances[e] : 1.0;
            dlogits[e] += (float)(b->factor * (chances[e] / sum) * slope * (visits[e] - mean / sum));
        }
    }
}

void kernel_balance_backward(const KernelRoute *shape, int64_t sequence, float factor, const float *visits,
                             const float *logits, float *dlogits) {
    const Balance balance = {*shape, sequence, factor, visits, logits, dlogits};
    parallel_rows(shape->rows, shape->experts, balance_rows, &balance);
}

// ---------------------------------------------------------------------------------------------- rows and places

typedef struct Spread {
    KernelSpread shape;
    const float *weights, *x, *y, *more;
    float *to, *dweights;
} Spread;

static size_t row_bytes(const Spread *s) {
    return sizeof(float) * (size_t)s->shape.cols;
}

static void spread_rows(const void *context, int64_t begin, int64_t end) {
    const Spread *s = context;
    const int active = s->shape.active;
    for (int64_t i = begin * active; i < end * active; i++) {
        memcpy(s->to + s->shape.places[i] * s->shape.cols, s->x + i / active * s->shape.cols, row_bytes(s));
    }
}

void kernel_spread(const KernelSpread *shape, const float *x, float *y) {
    const Spread spread = {.shape = *shape, .x = x, .to = y};
    parallel_rows(shape->rows, shape->active * shape->cols, spread_rows, &spread);
}

static void collect_rows(const void *context, int64_t begin, int64_t end) {
    const Spread *s = context;
    const int64_t active = s->shape.active, cols = s->shape.cols;
    for (int64_t row = begin; row < end; row++) {
        float *restrict x = s->to + row * cols;
        if (s->more) {
            memcpy(x, s->more + row * cols, row_bytes(s));
        } else {
            memset(x, 0, row_bytes(s));
        }
        for (int64_t i = row * active; i < (row + 1) * active; i++) {
            const float *restrict y = s->y + s->shape.places[i] * cols;
            const float weight = s->weights ? s->weights[i] : 1.0f;
            for (int64_t col = 0; col < cols; col++) {
                x[col] += weight * y[col];
            }
        }
    }
}

void kernel_collect(const KernelSpread *shape, const float *weights, const float *y, const float *more, float *x) {
    const Spread spread = {.shape = *shape, .weights = weights, .y = y, .more = more, .to = x};
    parallel_rows(shape->rows, shape->active * shape->cols, collect_rows, &spread);
}

static void collect_backward_rows(const void *context, int64_t begin, int64_t end) {
    const Spread *s = context;
    const int64_t active = s->shape.active, cols = s->shape.cols;
    for (int64_t i = begin * active; i < end * active; i++) {
        const float *restrict dx = s->x + i / active * cols, *restrict y = s->y + s->shape.places[i] * cols;
        float *restrict dy = s->to + s->shape.places[i] * cols;
        s->dweights[i] = lanes_dot(dx, y, cols);
        for (int64_t col = 0; col < cols; col++) {
            dy[col] = s->weights[i] * dx[col];
        }
    }
}

void kernel_collect_backward(const KernelSpread *shape, const float *weights, const float *dx, const float *y,
                             float *dy, float *dweights) {
    const Spread spread = {.shape = *shape, .weights = weights, .x = dx, .y = y, .to = dy, .dweights = dweights};
    parallel_rows(shape->rows, shape->active * shape->cols, collect_backward_rows, &spread);
}

void kernel_regroup(const KernelGroups *groups, int64_t cols, bool back, const float *from, float *to) {
    int64_t by_group = 0;
    for (int g = 0; g < groups->count; g++) {
        int64_t by_part = 0;
        for (int p = 0; p < groups->parts; p++) {
            const int32_t *counts = groups->counts + (int64_t)p * groups->count;
            int64_t before = by_part;
            for (int other = 0; other < groups->count; other++) {
                before += other < g ? counts[other] : 0;
                by_part += counts[other];
            }
            const int64_t source = back ? by_group : before, target = back ? before : by_group;
            memcpy(to + target * cols, from + source * cols, sizeof(float) * (size_t)(counts[g] * cols));
            by_group += counts[g];
        }
    }
}

// ---------------------------------------------------------------------------------------------- the shared expert

typedef struct Shared {
    KernelShared of;
    const float *dx;
    float *x, *dy, *dgate;
} Shared;

static void shared_rows(const void *context, int64_t begin, int64_t end) {
    const Shared *s = context;
    const int64_t cols = s->of.cols;
    for (int64_t row = begin; row < end; row++) {
        const float open = routing_sigmoid(s->of.gate[row]);
        const float *restrict y = s->of.y + row * cols;
        float *restrict x = s->x + row * cols;
        for (int64_t col = 0; col < cols; col++) {
            x[col] += open * y[col];
        }
    }
}

void kernel_shared(const KernelShared *shared, float *x) {
    const Shared work = {.of = *shared, .x = x};
    parallel_rows(shared->rows, shared->cols, shared_rows, &work);
}

static void shared_backward_rows(const void *context, int64_t begin, int64_t end) {
    const Shared *s = context;
    const int64_t cols = s->of.cols;
    for (int64_t row = begin; row < end; row++) {
        const float open = routing_sigmoid(s->of.gate[row]);
        const float *restrict dx = s->dx + row * cols;
        float *restrict dy = s->dy + row * cols;
        s->dgate[row] = open * (1.0f - open) * lanes_dot(dx, s->of.y + row * cols, cols);
        for (int64_t col = 0; col < cols; col++) {
            dy[col] = open * dx[col];
        }
    }
}

void kernel_shared_backward(const KernelShared *shared, const float *dx, float *dy, float *dgate) {
    const Shared work = {.of = *shared, .dx = dx, .dy = dy, .dgate = dgate};
    parallel_rows(shared->rows, shared->cols, shared_backward_rows, &work);
}

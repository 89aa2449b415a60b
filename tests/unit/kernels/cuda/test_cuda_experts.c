// MoE layers, and latent attention's keys and norms: routing, rows to experts and back, groups and clamped gates of
// kernels/cuda on the processor against kernels/cpu. Choices, places and counts are equal; everything else is as close
// as its format allows.

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/latent.h"
#include "kernels/shared_expert.h"
#include "tests/support/cuda_host/cuda_host.h"
#include "tests/unit/kernels/check.h"
#include "tests/unit/kernels/cuda/held.h"

static Held held_ints(int64_t count) {
    Draw none = {0};
    return held_draw(&none, KERNEL_FP32, count);  // four bytes each
}

static bool same_ints(const Held *held, const int32_t *want) {
    return memcmp(held->at, want, sizeof *want * (size_t)held->count) == 0;
}

// ---------------------------------------------------------------------------------------------- routing

typedef struct RouteCase {
    KernelRoute shape;
    Held logits, correction, weights, places, counts;  // of the device
    float *logits_f, *correction_f, *weights_f;        // and of the processor
    int32_t *places_i, *counts_i;
    int64_t choices;
} RouteCase;

static KernelRoute draw_route(Draw *draw) {
    static const int64_t many[] = {2, 6, 8, 24, 60, 130}, some[] = {1, 3, 16, 70, 150};
    KernelRoute shape = {.rows = draw_one(draw, some, 5), .experts = (int)draw_one(draw, many, 6), .factor = 2.5f};
    shape.sigmoid = draw_below(draw, 2) == 1;
    shape.unscaled = draw_below(draw, 2) == 1;
    const bool groups = shape.sigmoid && shape.experts % 4 == 0 && draw_below(draw, 2) == 1;
    shape.groups = groups ? 2 * (1 + (int)draw_below(draw, 2)) : 0;
    shape.active_groups = groups ? 1 + (int)draw_below(draw, shape.groups) : 0;
    const int open = groups ? shape.experts / shape.groups * shape.active_groups : shape.experts;
    shape.active = 1 + (int)draw_below(draw, open < 8 ? open : 8);
    return shape;
}

static RouteCase route_case(Draw *draw, KernelStore store) {
    RouteCase c = {.shape = draw_route(draw)};
    c.choices = c.shape.rows * c.shape.active;
    c.logits = held_draw(draw, store, c.shape.rows * c.shape.experts);
    c.correction = held_draw(draw, store, c.shape.experts);
    c.weights = held_draw(draw, KERNEL_FP32, c.choices);
    c.places = held_ints(c.choices);
    c.counts = held_ints(c.shape.experts);
    c.logits_f = held_floats(&c.logits);
    if (store == KERNEL_FP32 && draw_below(draw, 3) == 0) {  // ties and NaN
        for (int64_t i = 0; i < c.logits.count; i++) {
            c.logits_f[i] = i % 7 == 3 ? NAN : (float)(i % 3);
        }
        memcpy(c.logits.at, c.logits_f, sizeof(float) * (size_t)c.logits.count);
    }
    c.correction_f = held_floats(&c.correction);
    c.weights_f = check_zeros(c.choices);
    c.places_i = calloc((size_t)c.choices, sizeof(int32_t));
    c.counts_i = calloc((size_t)c.shape.experts, sizeof(int32_t));
    return c;
}

static void route_free(RouteCase *c) {
    held_free(&c->logits), held_free(&c->correction), held_free(&c->weights), held_free(&c->places);
    held_free(&c->counts);
    free(c->logits_f), free(c->correction_f), free(c->weights_f), free(c->places_i), free(c->counts_i);
}

static void route_on_both(Draw *draw, KernelStore store, RouteCase *c, bool corrects) {
    KernelCuda at = place_open(draw, kernel_cuda_route_workspace(&c->shape));
    cr_assert_eq(kernel_cuda_route(&at, store, &c->shape, c->logits.at, corrects ? c->correction.at : NULL,
                                   c->weights.at, c->places.at, c->counts.at),
                 0);
    place_close(&at);
    c->shape.correction = corrects ? c->correction_f : NULL;
    kernel_route(&c->shape, c->logits_f, c->weights_f, c->places_i, c->counts_i);
}

static void check_route(Draw *draw, KernelStore store) {
    RouteCase c = route_case(draw, store);
    route_on_both(draw, store, &c, c.shape.sigmoid && draw_below(draw, 2) == 1);
    cr_assert(same_ints(&c.counts, c.counts_i), "seed %d: counts", (int)draw->seed);
    cr_assert(same_ints(&c.places, c.places_i), "seed %d: places", (int)draw->seed);
    bool numbers = true;
    for (int64_t i = 0; i < c.choices; i++) {
        numbers = numbers && isfinite(c.weights_f[i]);
    }
    if (numbers) {
        held_near(draw, &c.weights, c.weights_f, held_limit(KERNEL_FP32), "weights");
    }
    route_free(&c);
}

Test(kernel_cuda_experts, a_row_visits_the_experts_that_it_visits_on_the_cpu_in_the_same_places) {
    each_case(30, check_route);
}

// More choices than one chunk of a block, and the maximum number of experts.
Test(kernel_cuda_experts, places_go_on_from_chunk_to_chunk_and_over_all_experts) {
    Draw draw = {1, 1};
    RouteCase c = {.shape = {.rows = 300, .experts = KERNEL_MAX_EXPERTS, .active = 3}};
    c.choices = 900;
    c.logits = held_draw(&draw, KERNEL_FP32, 300 * KERNEL_MAX_EXPERTS);
    c.correction = held_draw(&draw, KERNEL_FP32, 1);
    c.weights = held_draw(&draw, KERNEL_FP32, c.choices);
    c.places = held_ints(c.choices);
    c.counts = held_ints(KERNEL_MAX_EXPERTS);
    c.logits_f = held_floats(&c.logits);
    c.correction_f = NULL;
    c.weights_f = check_zeros(c.choices);
    c.places_i = calloc((size_t)c.choices, sizeof(int32_t));
    c.counts_i = calloc(KERNEL_MAX_EXPERTS, sizeof(int32_t));
    route_on_both(&draw, KERNEL_FP32, &c, false);
    cr_expect(same_ints(&c.counts, c.counts_i) && same_ints(&c.places, c.places_i));
    route_free(&c);
}

// With a load-balancing loss, and without.
static void check_route_backward(Draw *draw, KernelStore store) {
    RouteCase c = route_case(draw, store);
    const bool spreads = draw_below(draw, 2) == 1;
    const int64_t sequence = c.shape.rows % 2 == 0 ? c.shape.rows / 2 : c.shape.rows,
                  sequences = c.shape.rows / sequence;
    for (int64_t i = 0; i < c.logits.count; i++) {
        c.logits_f[i] = isnan(c.logits_f[i]) ? -1 : c.logits_f[i];
    }
    held_free(&c.logits);
    c.logits = held_of(draw, store, c.logits_f, c.shape.rows * c.shape.experts);
    c.shape.unscaled = c.shape.unscaled || c.shape.active == 1;  // a share of one out of one has no gradient
    route_on_both(draw, store, &c, false);
    Held dweights = held_draw(draw, KERNEL_FP32, c.choices), dlogits = held_copy(&c.logits);
    Held visits = held_draw(draw, KERNEL_FP32, sequences * c.shape.experts);
    float *dweights_f = held_floats(&dweights), *want = check_zeros(dlogits.count),
          *visits_f = check_zeros(visits.count);
    const KernelCudaRouteBackward back = {
        c.logits.at, c.weights.at, dweights.at, c.places.at, c.counts.at, dlogits.at, spreads ? visits.at : NULL,
        sequence,    0.25f};
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_count_visits(&at, &c.shape, sequence, c.places.at, c.counts.at, visits.at), 0);
    cr_assert_eq(kernel_cuda_route_backward(&at, store, &c.shape, &back), 0);
    place_close(&at);
    kernel_count_visits(&c.shape, sequence, c.places_i, c.counts_i, visits_f);
    cr_assert(memcmp(visits.at, visits_f, sizeof(float) * (size_t)visits.count) == 0, "seed %d", (int)draw->seed);
    kernel_route_backward(&c.shape, c.logits_f, c.weights_f, c.places_i, c.counts_i, dweights_f, want);
    if (spreads) {
        kernel_balance_backward(&c.shape, sequence, 0.25f, visits_f, c.logits_f, want);
    }
    held_near(draw, &dlogits, want, 4 * held_limit(store), "dlogits");
    free(dweights_f), free(want), free(visits_f), held_free(&dweights), held_free(&dlogits), held_free(&visits);
    route_free(&c);
}

Test(kernel_cuda_experts, gradients_of_choices_and_of_the_spreading_loss_equal_the_cpu) {
    each_case(15, check_route_backward);
}

// ---------------------------------------------------------------------------------------------- rows and places

static int32_t *draw_places(Draw *draw, int64_t count, Held *held) {
    *held = held_ints(count);
    int32_t *places = held->at;
    for (int64_t i = 0; i < count; i++) {
        const int64_t other = draw_below(draw, i + 1);
        places[i] = places[other];
        places[other] = (int32_t)i;
    }
    return places;
}

static void check_spread(Draw *draw, KernelStore store) {
    Held places;
    KernelSpread shape = {draw_rows(draw), draw_cols(draw), 1 + (int)draw_below(draw, 4), NULL};
    const int64_t wide = shape.rows * shape.active;
    shape.places = draw_places(draw, wide, &places);
    Held x = held_draw(draw, store, shape.rows * shape.cols), y = held_draw(draw, store, wide * shape.cols);
    Held weights = held_draw(draw, KERNEL_FP32, wide), more = held_draw(draw, store, shape.rows * shape.cols);
    Held gate = held_draw(draw, store, shape.rows);
    float *xf = held_floats(&x), *yf = check_zeros(wide * shape.cols), *wf = held_floats(&weights);
    float *moref = held_floats(&more), *gatef = held_floats(&gate);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_spread(&at, store, &shape, x.at, y.at), 0);
    place_wait(&at);
    kernel_spread(&shape, xf, yf);
    held_near(draw, &y, yf, 0, "rows in their places");
    const int kind = (int)draw_below(draw, 4);  // nothing more, unweighted; more; more with a gate
    const KernelCudaCollect collect = {
        shape, kind == 0 ? NULL : weights.at, y.at, kind > 1 ? more.at : NULL, kind > 2 ? gate.at : NULL, x.at};
    cr_assert_eq(kernel_cuda_collect(&at, store, &collect), 0);
    place_close(&at);
    kernel_collect(&shape, kind == 0 ? NULL : wf, yf, kind == 2 ? moref : NULL, xf);
    if (kind > 2) {
        kernel_shared(&(KernelShared){shape.rows, shape.cols, gatef, moref}, xf);
    }
    held_near(draw, &x, xf, held_limit(store), "their sum");
    free(xf), free(yf), free(wf), free(moref), free(gatef);
    held_free(&x), held_free(&y), held_free(&weights), held_free(&more), held_free(&gate), held_free(&places);
}

Test(kernel_cuda_experts, rows_go_to_their_places_and_come_back_weighted) {
    each_case(15, check_spread);
}

// The rungs that permutation and sum stand on, in accesses of 16 bytes of bf16, eight elements each: a kernel of one
// element at a time makes eight times as many, one that takes visits apart reads a row once for each, and one that adds
// visit by visit reads and writes the sum each time.
Test(kernel_cuda_experts, a_row_is_read_once_for_all_its_visits_and_its_sum_written_once) {
    enum { ROWS = 20, COLS = 64, VISITS = 3, PACKS = COLS / 8 };
    Draw draw = {7, 7};
    float *zeros = check_zeros(ROWS * VISITS * COLS);
    Held places, x, y;
    for (;;) {  // at 16-byte addresses
        x = held_of(&draw, KERNEL_BF16, zeros, ROWS * COLS);
        y = held_of(&draw, KERNEL_BF16, zeros, ROWS * VISITS * COLS);
        if (((uintptr_t)x.at | (uintptr_t)y.at) % 16 == 0) {
            break;
        }
        held_free(&x), held_free(&y);
    }
    const KernelSpread shape = {ROWS, COLS, VISITS, draw_places(&draw, ROWS * VISITS, &places)};
    KernelCuda at = place_open(&draw, 0);
    const CudaHostWords begin = cuda_host_words();
    cr_assert_eq(kernel_cuda_spread(&at, KERNEL_BF16, &shape, x.at, y.at), 0);
    place_wait(&at);
    const CudaHostWords there = cuda_host_words();
    const KernelCudaCollect collect = {.shape = shape, .y = y.at, .x = x.at};
    cr_assert_eq(kernel_cuda_collect(&at, KERNEL_BF16, &collect), 0);
    place_close(&at);
    const CudaHostWords back = cuda_host_words();
    cr_expect_eq(there.loads - begin.loads, ROWS * PACKS);
    cr_expect_eq(there.stores - begin.stores, ROWS * VISITS * PACKS);
    cr_expect_eq(back.loads - there.loads, ROWS * VISITS * PACKS);
    cr_expect_eq(back.stores - there.stores, ROWS * PACKS);
    free(zeros), held_free(&x), held_free(&y), held_free(&places);
}

static void check_collect_backward(Draw *draw, KernelStore store) {
    Held places;
    KernelSpread shape = {draw_rows(draw), draw_cols(draw), 1 + (int)draw_below(draw, 4), NULL};
    const int64_t wide = shape.rows * shape.active;
    shape.places = draw_places(draw, wide, &places);
    Held dx = held_draw(draw, store, shape.rows * shape.cols), y = held_draw(draw, store, wide * shape.cols);
    Held weights = held_draw(draw, KERNEL_FP32, wide), dweights = held_copy(&weights), dy = held_copy(&y);
    float *dxf = held_floats(&dx), *yf = held_floats(&y), *wf = held_floats(&weights), *dyf = held_floats(&dy);
    float *dwf = check_zeros(wide);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_collect_backward(&at, store, &shape, weights.at, dx.at, y.at, dy.at, dweights.at), 0);
    place_close(&at);
    kernel_collect_backward(&shape, wf, dxf, yf, dyf, dwf);
    held_near(draw, &dy, dyf, held_limit(store), "dy");
    held_near(draw, &dweights, dwf, 4 * held_limit(KERNEL_FP32), "dweights");
    free(dxf), free(yf), free(wf), free(dyf), free(dwf);
    held_free(&dx), held_free(&y), held_free(&weights), held_free(&dweights), held_free(&dy), held_free(&places);
}

Test(kernel_cuda_experts, gradients_of_results_and_weights_equal_the_cpu) {
    each_case(12, check_collect_backward);
}

static void check_shared_backward(Draw *draw, KernelStore store) {
    const int64_t rows = draw_rows(draw), cols = draw_cols(draw);
    Held gate = held_draw(draw, store, rows), y = held_draw(draw, store, rows * cols), dx = held_copy(&y);
    Held dy = held_copy(&y), dgate = held_copy(&gate);
    float *gatef = held_floats(&gate), *yf = held_floats(&y), *dxf = held_floats(&dx), *dyf = held_floats(&dy);
    float *dgatef = check_zeros(rows);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_shared_backward(&at, store, rows, cols, gate.at, y.at, dx.at, dy.at, dgate.at), 0);
    place_close(&at);
    kernel_shared_backward(&(KernelShared){rows, cols, gatef, yf}, dxf, dyf, dgatef);
    held_near(draw, &dy, dyf, held_limit(store), "dy");
    held_near(draw, &dgate, dgatef, 4 * held_limit(store), "dgate");
    free(gatef), free(yf), free(dxf), free(dyf), free(dgatef);
    held_free(&gate), held_free(&y), held_free(&dx), held_free(&dy), held_free(&dgate);
}

Test(kernel_cuda_experts, a_gate_and_what_it_lets_through_have_the_cpu_s_gradients) {
    each_case(10, check_shared_backward);
}

static void check_regroup(Draw *draw, KernelStore store) {
    KernelGroups groups = {1 + (int)draw_below(draw, 4), 1 + (int)draw_below(draw, 6), NULL};
    Held counts = held_ints(groups.parts * groups.count);
    int32_t *rows = counts.at;
    int64_t all = 0;
    for (int i = 0; i < groups.parts * groups.count; i++) {
        all += rows[i] = (int32_t)draw_below(draw, 6);
    }
    groups.counts = rows;
    const int64_t cols = draw_cols(draw), room = all + draw_below(draw, 9) + 1;
    const bool back = draw_below(draw, 2) == 1;
    Held from = held_draw(draw, store, room * cols), to = held_draw(draw, store, room * cols);
    float *fromf = held_floats(&from), *want = held_floats(&to);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_regroup(&at, store, &groups, room, cols, back, from.at, to.at), 0);
    place_close(&at);
    kernel_regroup(&groups, cols, back, fromf, want);
    held_near(draw, &to, want, 0, "rows by group");  // nothing after them is touched
    free(fromf), free(want), held_free(&from), held_free(&to), held_free(&counts);
}

Test(kernel_cuda_experts, rows_of_groups_are_put_together_and_taken_apart) {
    each_case(20, check_regroup);
}

// ---------------------------------------------------------------------------------------------- latent attention

static KernelKeys draw_keys(Draw *draw) {
    const int grain = draw_below(draw, 2) == 1 ? 8 : 3;
    return (KernelKeys){.rows = draw_rows(draw),
                        .heads = 1 + (int)draw_below(draw, 4),
                        .still = grain * (1 + (int)draw_below(draw, 3)),
                        .turning = grain * (1 + (int)draw_below(draw, 2)),
                        .value = grain * (1 + (int)draw_below(draw, 4)),
                        .shared_stride = grain * (2 + draw_below(draw, 4))};
}

static void check_keys(Draw *draw, KernelStore store) {
    const KernelKeys keys = draw_keys(draw);
    const int64_t heads = keys.rows * keys.heads;
    Held up = held_draw(draw, store, heads * (keys.still + keys.value));
    Held shared = held_draw(draw, store, keys.rows * keys.shared_stride);
    Held k = held_draw(draw, store, heads * (keys.still + keys.turning)),
         dv = held_draw(draw, store, heads * keys.value);
    float *upf = held_floats(&up), *sharedf = held_floats(&shared), *kf = held_floats(&k), *dvf = held_floats(&dv);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_join_keys(&at, store, &keys, up.at, shared.at, k.at), 0);
    place_wait(&at);
    kernel_join_keys(&keys, upf, sharedf, kf);
    held_near(draw, &k, kf, 0, "keys");
    cr_assert_eq(kernel_cuda_part_keys(&at, store, &keys, k.at, dv.at, up.at, shared.at), 0);
    place_close(&at);
    kernel_part_keys(&keys, kf, dvf, upf, sharedf);
    held_near(draw, &up, upf, 0, "dup");
    held_near(draw, &shared, sharedf, held_limit(store), "dshared, and what lies beside it");
    free(upf), free(sharedf), free(kf), free(dvf);
    held_free(&up), held_free(&shared), held_free(&k), held_free(&dv);
}

Test(kernel_cuda_latent, keys_are_put_together_and_taken_apart_as_on_the_cpu) {
    each_case(15, check_keys);
}

// Latent rows inside wider rows: the elements around them stay unchanged.
static void check_latent_norm(Draw *draw, KernelStore store) {
    const int64_t rows = draw_rows(draw), cols = draw_cols(draw), stride = cols + 8 * draw_below(draw, 3);
    Held x = held_draw(draw, store, rows * stride), w = held_draw(draw, store, cols), dx = held_copy(&x);
    Held y = held_draw(draw, store, rows * cols), dy = held_copy(&y), rstd = held_draw(draw, KERNEL_FP32, rows);
    Held dw = held_draw(draw, KERNEL_FP32, cols);
    float *xf = held_floats(&x), *wf = held_floats(&w), *dxf = held_floats(&dx), *yf = held_floats(&y);
    float *dyf = held_floats(&dy), *rstdf = check_zeros(rows), *dwf = held_floats(&dw);
    const KernelNorm norm = {
        .rows = rows, .cols = cols, .eps = 1e-6f, .x = x.at, .w = w.at, .y = y.at, .rstd = rstd.at, .x_stride = stride};
    const KernelNormBackward back = {.rows = rows,
                                     .cols = cols,
                                     .dy = dy.at,
                                     .x = x.at,
                                     .w = w.at,
                                     .rstd = rstd.at,
                                     .dx = dx.at,
                                     .dw = dw.at,
                                     .accumulate = true,
                                     .x_stride = stride};
    KernelCuda at = {.processors = 3};
    const int64_t room = kernel_cuda_norm_backward_workspace(&at, &back);
    at = place_open(draw, room);
    cr_assert_eq(kernel_cuda_norm(&at, store, &norm), 0);
    cr_assert_eq(kernel_cuda_norm_backward(&at, store, KERNEL_FP32, &back), 0);
    place_close(&at);
    kernel_norm(&(KernelNorm){rows, cols, 1e-6f, xf, NULL, wf, NULL, NULL, yf, NULL, rstdf, stride});
    kernel_norm_backward(&(KernelNormBackward){rows, cols, dyf, xf, wf, NULL, rstdf, NULL, dxf, dwf, true, stride});
    held_near(draw, &y, yf, held_limit(store), "y");
    held_near(draw, &dx, dxf, 4 * held_limit(store), "dx");
    held_near(draw, &dw, dwf, 4e-5, "dw");
    free(xf), free(wf), free(dxf), free(yf), free(dyf), free(rstdf), free(dwf);
    held_free(&x), held_free(&w), held_free(&dx), held_free(&y), held_free(&dy), held_free(&rstd), held_free(&dw);
}

Test(kernel_cuda_latent, norms_of_leading_columns_equal_the_cpu) {
    each_case(10, check_latent_norm);
}

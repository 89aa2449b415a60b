// Which experts a row visits, and with what weights: one warp per row, whose values are in shared memory. Then places,
// by counting: how many of each chunk's choices go to each expert, where those of a chunk begin, and the order within a
// chunk, so that the result does not depend on the order of blocks. As in kernels/cpu/experts.c, the lower expert comes
// first for equal values.

#include "kernels/cuda/pack.cuh"
#include "kernels/routing.h"

// ---------------------------------------------------------------------------------------------- routing

struct Best {
    float value;
    uint32_t index;  // UINT32_MAX: none
};

static __device__ __forceinline__ Best better(Best a, Best b) {
    return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}

// Over a warp, for all lanes: the next choice after the last one.
static __device__ __forceinline__ int next_choice(const float *values, int count, int last) {
    const float above = last < 0 ? INFINITY : routing_rank(values[last]);
    Best best = {-INFINITY, UINT32_MAX};
    for (int e = (int)(threadIdx.x % WARP); e < count; e += WARP) {
        const float value = routing_rank(values[e]);
        if (value < above || (value == above && e > last)) {
            best = better(best, Best{value, (uint32_t)e});
        }
    }
#pragma unroll
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        best = better(best, Best{word_shuffle_xor(best.value, lanes), word_shuffle_xor(best.index, lanes)});
    }
    return (int)best.index;
}

// Experts of other groups cannot be chosen: the selected groups are those at or above the last one selected.
static __device__ __forceinline__ void close_groups(const KernelRoute &shape, float *values, float *sums) {
    const int lane = (int)(threadIdx.x % WARP), width = shape.experts / shape.groups;
    for (int g = lane; g < shape.groups; g += WARP) {
        sums[g] = routing_rank(routing_two_largest(values + g * width, width));
    }
    __syncwarp();
    int last = -1;
    for (int i = 0; i < shape.active_groups; i++) {
        last = next_choice(sums, shape.groups, last);
    }
    for (int e = lane; e < shape.experts; e += WARP) {
        const int g = e / width;
        values[e] = sums[g] > sums[last] || (sums[g] == sums[last] && g <= last) ? values[e] : -INFINITY;
    }
    __syncwarp();
}

// A row's values and logits in shared memory, and the chosen experts: three words per expert.
struct RouteRoom {
    float *values, *logits;
    int32_t *chosen;
};

static __device__ __forceinline__ RouteRoom route_room(int experts) {
    float *room = word_shared<float>() + (int64_t)(threadIdx.x / WARP) * 3 * experts;
    return RouteRoom{room, room + experts, (int32_t *)(room + 2 * experts)};
}

static __device__ __forceinline__ void choose(const KernelRoute &shape, const RouteRoom &room, int32_t *chosen) {
    if (shape.groups > 0) {  // sums use the space of choices that do not exist yet
        close_groups(shape, room.values, (float *)room.chosen);
    }
    for (int i = 0, last = -1; i < shape.active; i++) {
        last = next_choice(room.values, shape.experts, last);
        if (threadIdx.x % WARP == 0) {
            room.chosen[i] = last;
            chosen[i] = last;
        }
    }
    __syncwarp();
}

// The denominator of the weights; `largest` is the logit of the first choice.
static __device__ __forceinline__ float route_sum(const KernelRoute &shape, const RouteRoom &room, float largest) {
    const bool all = shape.unscaled && !shape.sigmoid;
    float sum = 0;
    for (int i = (int)(threadIdx.x % WARP); i < (all ? shape.experts : shape.active); i += WARP) {
        const float logit = room.logits[all ? i : room.chosen[i]];
        sum += shape.sigmoid ? routing_sigmoid(logit) : expf(logit - largest);
    }
    sum = warp_sum(sum);
    return shape.sigmoid && shape.unscaled ? 1.0f : sum;
}

static __global__ void __launch_bounds__(ROUTE_WARPS *WARP_THREADS)
    route_kernel(KernelRoute shape, KernelStore store, const void *logits, const void *correction, float *weights,
                 int32_t *places) {
    const RouteRoom room = route_room(shape.experts);
    const int lane = (int)(threadIdx.x % WARP);
    const int64_t warps = blockDim.x / WARP;
    for (int64_t row = blockIdx.x * warps + threadIdx.x / WARP; row < shape.rows; row += gridDim.x * warps) {
        for (int e = lane; e < shape.experts; e += WARP) {
            const float logit = stored_load(logits, store, row * shape.experts + e);
            room.logits[e] = logit;
            room.values[e] = logit;
            if (shape.sigmoid) {
                room.values[e] = routing_sigmoid(logit) + (correction ? stored_load(correction, store, e) : 0);
            }
        }
        __syncwarp();
        choose(shape, room, places + row * shape.active);
        const float largest = room.logits[room.chosen[0]], sum = route_sum(shape, room, largest);
        for (int i = lane; i < shape.active; i += WARP) {
            const float logit = room.logits[room.chosen[i]];
            weights[row * shape.active + i] =
                shape.sigmoid ? shape.factor * (routing_sigmoid(logit) / sum) : expf(logit - largest) / sum;
        }
        __syncwarp();
    }
}

// ---------------------------------------------------------------------------------------------- places

// by_chunk[expert][chunk]: a chunk's choices that go to the expert.
static __global__ void __launch_bounds__(CHOICE_CHUNK)
    route_count_kernel(int64_t choices, int experts, const int32_t *chosen, int32_t *by_chunk) {
    uint32_t *counts = word_shared<uint32_t>();
    const int64_t choice = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (int e = (int)threadIdx.x; e < experts; e += (int)blockDim.x) {
        counts[e] = 0;
    }
    __syncthreads();
    if (choice < choices) {
        word_add(&counts[chosen[choice]], 1u);
    }
    __syncthreads();
    for (int e = (int)threadIdx.x; e < experts; e += (int)blockDim.x) {
        by_chunk[(int64_t)e * gridDim.x + blockIdx.x] = (int32_t)counts[e];
    }
}

// The sum over the lanes before this one; *sum becomes the total.
static __device__ __forceinline__ uint32_t before_in_warp(uint32_t x, uint32_t *sum) {
    const int lane = (int)(threadIdx.x % WARP);
    uint32_t upto = x;
    for (int lanes = 1; lanes < WARP; lanes *= 2) {
        const uint32_t other = word_shuffle(upto, lane >= lanes ? lane - lanes : lane);
        upto += lane >= lanes ? other : 0;
    }
    *sum = word_shuffle(upto, WARP - 1);
    return upto - x;
}

// One warp per expert: where those of a chunk begin among its rows.
static __global__ void __launch_bounds__(WARP_THREADS)
    route_begin_kernel(int64_t chunks, int32_t *by_chunk, int32_t *counts) {
    int32_t *const own = by_chunk + blockIdx.x * chunks;
    uint32_t at = 0;
    for (int64_t first = 0; first < chunks; first += WARP) {
        const int64_t chunk = first + threadIdx.x;
        uint32_t sum;
        const uint32_t before = before_in_warp(chunk < chunks ? (uint32_t)own[chunk] : 0, &sum);
        if (chunk < chunks) {
            own[chunk] = (int32_t)(at + before);
        }
        at += sum;
    }
    if (threadIdx.x == 0) {
        counts[blockIdx.x] = (int32_t)at;
    }
}

// Replaces chosen[choice] by its place.
static __global__ void __launch_bounds__(CHOICE_CHUNK)
    route_place_kernel(int64_t choices, int experts, const int32_t *by_chunk, const int32_t *counts, int32_t *chosen) {
    int32_t *const of_chunk = word_shared<int32_t>(), *const rows = of_chunk + CHOICE_CHUNK;
    const int64_t choice = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int32_t own = choice < choices ? chosen[choice] : -1;
    of_chunk[threadIdx.x] = own;
    for (int e = (int)threadIdx.x; e < experts; e += (int)blockDim.x) {
        rows[e] = counts[e];
    }
    __syncthreads();
    int32_t place = own < 0 ? 0 : by_chunk[(int64_t)own * gridDim.x + blockIdx.x];
    for (int e = 0; e < own; e++) {
        place += rows[e];
    }
    for (int i = 0; i < (int)threadIdx.x; i++) {
        place += of_chunk[i] == own;
    }
    if (own >= 0) {
        chosen[choice] = place;
    }
}

static int64_t chunks_of(const KernelRoute *shape) {
    return launch_parts(launch_at_least(shape->rows * shape->active, 1), CHOICE_CHUNK);
}

int64_t kernel_cuda_route_workspace(const KernelRoute *shape) {
    return chunks_of(shape) * shape->experts * (int64_t)sizeof(int32_t);
}

int kernel_cuda_route(const KernelCuda *at, KernelStore store, const KernelRoute *shape, const void *logits,
                      const void *correction, float *weights, int32_t *places, int32_t *counts) {
    const int missing = workspace_missing(at, kernel_cuda_route_workspace(shape));
    const int64_t choices = shape->rows * shape->active, chunks = chunks_of(shape);
    int32_t *by_chunk = (int32_t *)at->workspace;
    if (missing) {
        return missing;
    }
    int error = launch(route_kernel, launch_route(shape->rows, shape->experts, at->processors), at->stream, *shape,
                       store, logits, correction, weights, places);
    error = error ? error
                  : launch(route_count_kernel, launch_choices(chunks, shape->experts), at->stream, choices,
                           shape->experts, (const int32_t *)places, by_chunk);
    error = error ? error
                  : launch(route_begin_kernel, launch_experts(shape->experts), at->stream, chunks, by_chunk, counts);
    return error ? error
                 : launch(route_place_kernel, launch_choices(chunks, shape->experts), at->stream, choices,
                          shape->experts, (const int32_t *)by_chunk, (const int32_t *)counts, places);
}

// ---------------------------------------------------------------------------------------------- rows of each expert

// Where the range of rows of each expert ends, for the block.
static __device__ __forceinline__ void ends_of(int experts, const int32_t *counts, int32_t *ends) {
    for (int e = (int)threadIdx.x; e < experts; e += (int)blockDim.x) {
        int32_t end = 0;
        for (int other = 0; other <= e; other++) {
            end += counts[other];
        }
        ends[e] = end;
    }
    __syncthreads();
}

// One block per sequence.
static __global__ void __launch_bounds__(CHOICE_CHUNK)
    visits_kernel(KernelRoute shape, int64_t sequence, const int32_t *places, const int32_t *counts, float *visits) {
    int32_t *const ends = word_shared<int32_t>();
    uint32_t *const here = (uint32_t *)(ends + shape.experts);
    for (int e = (int)threadIdx.x; e < shape.experts; e += (int)blockDim.x) {
        here[e] = 0;
    }
    ends_of(shape.experts, counts, ends);
    const int64_t choices = sequence * shape.active;
    for (int64_t i = threadIdx.x; i < choices; i += blockDim.x) {
        word_add(&here[routing_range_at(ends, shape.experts, places[blockIdx.x * choices + i])], 1u);
    }
    __syncthreads();
    for (int e = (int)threadIdx.x; e < shape.experts; e += (int)blockDim.x) {
        visits[(int64_t)blockIdx.x * shape.experts + e] = (float)here[e];
    }
}

int kernel_cuda_count_visits(const KernelCuda *at, const KernelRoute *shape, int64_t sequence, const int32_t *places,
                             const int32_t *counts, float *visits) {
    return launch(visits_kernel, launch_visits(shape->rows / sequence, shape->experts), at->stream, *shape, sequence,
                  places, counts, visits);
}

// ---------------------------------------------------------------------------------------------- the gradient

// What the gradient needs of a row's logits: the largest, the inverse of the sum of probabilities, and their mean of
// visits; what is subtracted from each choice's gradient, and from all logits.
struct RowSums {
    float largest, part, mean, pull, all;
};

static __device__ __forceinline__ float chance_of(const KernelRoute &shape, float logit, float largest) {
    return shape.sigmoid ? routing_sigmoid(logit) : expf(logit - largest);
}

static __device__ __forceinline__ void sum_chances(const KernelRoute &shape, const float *logits, const float *visits,
                                                   RowSums &sums) {
    float largest = -INFINITY, sum = 0, mean = 0;
    for (int e = (int)(threadIdx.x % WARP); e < shape.experts; e += WARP) {
        largest = fmaxf(largest, logits[e]);
    }
    largest = warp_max(largest);
    for (int e = (int)(threadIdx.x % WARP); e < shape.experts; e += WARP) {
        const float chance = chance_of(shape, logits[e], largest);
        sum += chance;
        mean += visits ? chance * visits[e] : 0.0f;
    }
    sums.largest = largest;
    sums.part = 1.0f / warp_sum(sum);
    sums.mean = warp_sum(mean) * sums.part;
}

// For softmaxes w (dw - sum of w dw), over all experts -p times that sum for every logit and w dw for a choice; for
// sigmoids, over their sum, w (1 - s) (dw - sum of w dw / factor). Chosen experts go to shared memory.
static __device__ __forceinline__ void sum_choices(const KernelRoute &shape, const KernelCudaRouteBackward &back,
                                                   const int32_t *ends, int64_t row, int32_t *chosen, RowSums &sums) {
    float mean = 0;
    for (int i = (int)(threadIdx.x % WARP); i < shape.active; i += WARP) {
        chosen[i] = routing_range_at(ends, shape.experts, back.places[row * shape.active + i]);
        mean += back.weights[row * shape.active + i] * back.dweights[row * shape.active + i];
    }
    __syncwarp();
    mean = warp_sum(mean);
    sums.pull = shape.unscaled ? 0.0f : shape.sigmoid ? mean / shape.factor : mean;
    sums.all = shape.unscaled && !shape.sigmoid ? mean : 0.0f;
}

static __device__ __forceinline__ float logit_gradient(const KernelRoute &shape, const KernelCudaRouteBackward &back,
                                                       const RowSums &sums, const int32_t *chosen, int64_t row, int e,
                                                       float chance) {
    const float slope = shape.sigmoid ? 1.0f - chance : 1.0f, share = chance * sums.part;
    float gradient = -sums.all * share;
    for (int i = 0; i < shape.active; i++) {
        if (chosen[i] == e) {
            const int64_t choice = row * shape.active + i;
            gradient += back.weights[choice] * slope * (back.dweights[choice] - sums.pull);
        }
    }
    if (back.visits) {
        const float visits = back.visits[row / back.sequence * shape.experts + e];
        gradient += back.factor * share * slope * (visits - sums.mean);
    }
    return gradient;
}

static __global__ void __launch_bounds__(ROUTE_WARPS *WARP_THREADS)
    route_backward_kernel(KernelRoute shape, KernelStore store, KernelCudaRouteBackward back) {
    const RouteRoom room = route_room(shape.experts);
    int32_t *const ends = word_shared<int32_t>() + (int64_t)(blockDim.x / WARP) * 3 * shape.experts;
    const int lane = (int)(threadIdx.x % WARP);
    const int64_t warps = blockDim.x / WARP;
    ends_of(shape.experts, back.counts, ends);
    for (int64_t row = blockIdx.x * warps + threadIdx.x / WARP; row < shape.rows; row += gridDim.x * warps) {
        for (int e = lane; e < shape.experts; e += WARP) {
            room.logits[e] = stored_load(back.logits, store, row * shape.experts + e);
        }
        __syncwarp();
        RowSums sums;
        sum_choices(shape, back, ends, row, room.chosen, sums);
        sum_chances(shape, room.logits, back.visits ? back.visits + row / back.sequence * shape.experts : NULL, sums);
        for (int e = lane; e < shape.experts; e += WARP) {
            const float chance = chance_of(shape, room.logits[e], sums.largest);
            stored_store(back.dlogits, store, row * shape.experts + e,
                         logit_gradient(shape, back, sums, room.chosen, row, e, chance));
        }
        __syncwarp();
    }
}

int kernel_cuda_route_backward(const KernelCuda *at, KernelStore store, const KernelRoute *shape,
                               const KernelCudaRouteBackward *back) {
    return launch(route_backward_kernel, launch_route(shape->rows, shape->experts, at->processors), at->stream, *shape,
                  store, *back);
}

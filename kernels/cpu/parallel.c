// The only file that knows OpenMP. Always a whole team or none: libgomp keeps a team of constant size between regions
// and allocates when the size changes. The thread count is state of the process, because kernel_set_threads speaks for
// every kernel of the process and OpenMP's own setting would hold for the calling thread only.

#include "kernels/cpu/parallel.h"

#include <stdatomic.h>
#include <stdbool.h>

#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_thread_num(void) {
    return 0;
}
static int omp_get_num_threads(void) {
    return 1;
}
#endif

static atomic_int process_threads = 1;

int parallel_threads(void) {
    return atomic_load_explicit(&process_threads, memory_order_relaxed);
}

void parallel_set_threads(int threads) {
    atomic_store_explicit(&process_threads, threads < 1 ? 1 : threads, memory_order_relaxed);
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

void parallel_ranges(int64_t count, int64_t unit, int64_t grain, RangeBody *body, const void *context) {
    const int threads = parallel_threads();
    const int64_t parts = smaller(threads, count / (grain > 0 ? grain : 1));
    if (parts <= 1) {
        if (count > 0) {
            body(context, 0, count);
        }
        return;
    }
    const int64_t part_size = ((count + parts - 1) / parts + unit - 1) / unit * unit;
#pragma omp parallel num_threads(threads)
    for (int64_t part = omp_get_thread_num(); part * part_size < count; part += omp_get_num_threads()) {
        body(context, part * part_size, smaller(count, (part + 1) * part_size));
    }
}

void parallel_rows(int64_t rows, int64_t cols, RangeBody *body, const void *context) {
    parallel_ranges(rows, 1, PARALLEL_GRAIN / (cols > 0 ? cols : 1) + 1, body, context);
}

void parallel_items(int64_t count, int64_t grain, RangeBody *body, const void *context) {
    const int threads = parallel_threads();
    if (threads == 1 || count < grain || count < 2) {
        for (int64_t item = 0; item < count; item++) {
            body(context, item, item + 1);
        }
        return;
    }
    atomic_llong next = 0;
#pragma omp parallel num_threads(threads)
    for (int64_t item = atomic_fetch_add(&next, 1); item < count; item = atomic_fetch_add(&next, 1)) {
        body(context, item, item + 1);
    }
}

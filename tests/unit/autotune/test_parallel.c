// Each piece runs exactly once, on any thread, and the failure with the lowest index is reported.

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>

#include "autotune/parallel.h"

enum { PIECES = 500 };

typedef struct Pieces {
    atomic_int times[PIECES];
    int fails_from;
} Pieces;

static Status piece(void *context, int worker, int index, Error *error) {
    Pieces *pieces = context;
    atomic_fetch_add(&pieces->times[index], 1);
    if (index >= pieces->fails_from) {
        return error_set(error, STATUS_INTERNAL, "piece %d of worker %d", index, worker < PARALLEL_MAX_WORKERS);
    }
    return STATUS_OK;
}

Test(parallel, every_piece_is_done_once) {
    for (int workers = 1; workers <= 8; workers++) {
        Pieces pieces = {.fails_from = PIECES};
        const ParallelWork work = {workers, PIECES, piece, &pieces, NULL, "counting"};
        Error error = {0};
        cr_assert_eq(parallel_run(&work, &error), STATUS_OK);
        for (int i = 0; i < PIECES; i++) {
            cr_assert_eq(atomic_load(&pieces.times[i]), 1, "%d workers, piece %d", workers, i);
        }
    }
}

Test(parallel, the_lowest_failure_is_the_one_reported) {
    for (int workers = 1; workers <= 4; workers++) {
        Pieces pieces = {.fails_from = 7};
        const ParallelWork work = {workers, PIECES, piece, &pieces, NULL, "counting"};
        Error error = {0};
        cr_assert_eq(parallel_run(&work, &error), STATUS_INTERNAL);
        cr_assert_str_eq(error.message, "piece 7 of worker 1");  // pieces begin in order, and 7 is begun before 8
    }
}

Test(parallel, nothing_to_do_is_done) {
    Pieces pieces = {.fails_from = 0};
    const ParallelWork work = {4, 0, piece, &pieces, NULL, "counting"};
    Error error = {0};
    cr_assert_eq(parallel_run(&work, &error), STATUS_OK);
}

static bool refuse(void *context, const char *label, int64_t done, int64_t total) {
    (void)label, (void)done, (void)total;
    ++*(int *)context;
    return false;
}

Test(parallel, an_interruption_names_what_was_done) {
    int asked = 0;
    const Progress progress = {.update = refuse, .context = &asked};
    Pieces pieces = {.fails_from = PIECES};
    const ParallelWork work = {2, PIECES, piece, &pieces, &progress, "counting"};
    Error error = {0};
    cr_assert_eq(parallel_run(&work, &error), STATUS_ENVIRONMENT);
    cr_assert_str_eq(error.message, "interrupted while counting");
    cr_assert_eq(asked, 1);
}

Test(parallel, a_wish_for_no_number_is_at_least_one_worker) {
    cr_assert_geq(parallel_workers(0), 1);
    cr_assert_eq(parallel_workers(3), 3);
    cr_assert_eq(parallel_workers(1000), PARALLEL_MAX_WORKERS);
}

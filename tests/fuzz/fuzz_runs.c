// Arbitrary bytes as a file of measured runs and as one of groups. A refusal is one sentence that names a place; an
// accepted row is either skipped with a reason or a legal plan with positive sizes.

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/accuracy/run_case.h"
#include "sim/frameworks/target.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_ROWS = 8 };

static void check_row(RunMapper *mapper, const RunRow *row, Arena *arena) {
    RunCase run;
    run_case_build(mapper, row, &run);
    if (run.skipped) {
        ASSERT(run.skipped[0] != '\0' && !strchr(run.skipped, '\n'));
        return;
    }
    const char *reason = NULL;
    target_check(run.request.target, &run.request.model, &run.plan, arena, &reason);
    ASSERT(!reason);
    ASSERT(model_parameters(&run.request.model) > 0 && plan_global_batch(&run.plan) > 0);
    ASSERT(run.measured_step_s >= 0 && isfinite(run.measured_step_s));
}

static void check_runs(const RunFile *runs, const char *path, Arena *arena) {
    RunMapper *mapper = run_mapper_new(arena);
    for (int i = 0; i < runs->count && i < MOST_ROWS; i++) {
        check_row(mapper, &runs->rows[i], arena);
    }
    RunGroups groups = {0};
    Error error = {0};
    if (run_groups_read(path, runs, arena, &groups, &error) != STATUS_OK) {
        fuzz_refused(&error);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena arena = {0};
    char path[64];
    snprintf(path, sizeof path, "/tmp/ndtune-fuzz-%d.csv", (int)getpid());
    fuzz_write_file(path, data, size);
    RunFile runs;
    Error error = {0};
    if (run_file_read(path, &arena, &runs, &error) == STATUS_OK) {
        check_runs(&runs, path, &arena);
    } else {
        fuzz_refused(&error);
    }
    remove(path);
    arena_free(&arena);
    return 0;
}

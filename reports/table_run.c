// The table of `ndtune run`: the loss curve, measured beside predicted per task, and the memory plan beside what was
// touched.

#include <math.h>
#include <string.h>

#include "reports/grid.h"
#include "reports/reports.h"
#include "reports/run_tables.h"
#include "reports/schemas.h"
#include "reports/words.h"
#include "sim/base/text.h"

// A framework of one's own tells step times only.
static void number_cell(Grid *grid, double value) {
    if (isnan(value)) {
        grid_cell(grid, "-");
    } else {
        grid_cell(grid, "%.6f", value);
    }
}

Status table_run_steps(const RunRecord *run, FILE *out, Error *error) {
    static const GridColumn columns[] = {{"step", true}, {"loss", true}, {"grad norm", true}, {"time", true}};
    Grid *grid = grid_new(columns, 4);
    char time[TEXT_UNIT_BYTES];
    for (int i = 0; i < run->steps; i++) {
        grid_row(grid);
        grid_cell(grid, "%d", i + 1);
        number_cell(grid, run->losses[i]);
        number_cell(grid, run->grad_norms[i]);
        grid_cell(grid, "%s", text_seconds(time, run->step_times_s[i]));
    }
    return grid_print(grid, out, error);
}

void table_waiting(FILE *out) {
    fputs("measured on another lane than compute is a rank's stay in the collective, the wait for the slowest rank\n"
          "included; predicted is what the bytes take\n",
          out);
}

Status table_run_tasks(const RunRecord *run, FILE *out, Error *error) {
    bool collectives = false;
    for (int i = 0; i < run->task_count; i++) {
        collectives = collectives || strcmp(run->tasks[i].lane, "compute") != 0;
    }
    TRY(record_table(&schema_tasks, run->tasks, run->task_count, out, error));
    if (collectives) {
        table_waiting(out);
    }
    return STATUS_OK;
}

static void print_summary(const RunRecord *run, FILE *out) {
    char measured[TEXT_UNIT_BYTES], peak[TEXT_UNIT_BYTES], planned[TEXT_UNIT_BYTES], interval[WORDS_BYTES];
    fprintf(out, "\nstep time: measured %s (median after the first), predicted %s on profile %s\n",
            text_seconds(measured, run->measured_step_s), words_interval(&run->prediction, interval),
            run->request->cluster.name);
    words_far_off(run->measured_step_s, run->prediction.step_s, run->request->cluster.name, &run->core_use, out);
    fprintf(out, "memory: %s touched of %s planned (%lld and %lld bytes per rank)\n",
            text_bytes(peak, (double)run->peak_bytes), text_bytes(planned, (double)run->planned_peak_bytes),
            (long long)run->peak_bytes, (long long)run->planned_peak_bytes);
    if (run->expert_load.measured) {
        const int capacity = run->prediction.plan.capacity;
        fprintf(out,
                "experts: the busiest rank got %.0f %% more tokens than the mean (%.0f %% in one layer; room is for "
                "%d %%); predicted with %d %%: --imbalance\n",
                run->expert_load.over, run->expert_load.most, (capacity > 0 ? capacity : PLAN_USUAL_CAPACITY) - 100,
                run->prediction.plan.imbalance);
    }
    fprintf(out, "state: %s%s%s\n", run->state, run->failure ? ": " : "", run->failure ? run->failure : "");
}

Status table_run(const RunRecord *run, FILE *out, Error *error) {
    char plan[PLAN_TEXT_BYTES];
    fprintf(out, "%s, %d ranks on %s%s%s over %s, lanes %s, seed %lld\n%s\n\n", run->request->model.name,
            run->request->world, run->device, run->core_type ? " with OpenBLAS' kernels for " : "",
            run->core_type ? run->core_type : "", run->transport, run->lanes, (long long)run->seed,
            plan_text(&run->prediction.plan, plan));
    TRY(table_run_steps(run, out, error));
    fputc('\n', out);
    TRY(table_run_tasks(run, out, error));
    print_summary(run, out);
    fprintf(out, "\nBatch\n");
    words_batch(run->request->target, &run->prediction.plan, out);
    words_assumptions(run->request, out);
    return STATUS_OK;
}

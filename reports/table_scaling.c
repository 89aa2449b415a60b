// The scaling curve: one line for each world, and what training to a number of tokens takes.

#include "reports/colour.h"
#include "reports/grid.h"
#include "reports/reports.h"
#include "reports/words.h"
#include "sim/base/text.h"

static void add_training(Grid *grid, const ScalingPoint *point) {
    const TuneRequest *request = point->request;
    char text[WORDS_BYTES];
    grid_cell(grid, "%s", words_duration(scaling_seconds(&point->best, request->tokens), text));
    const double usd = scaling_usd(request, &point->best, request->tokens);
    grid_cell(grid, usd > 0 ? "$%.0f" : "-", usd);
}

static void add_point(Grid *grid, const ScalingPoint *point) {
    const TuneRequest *request = point->request;
    const Prediction *best = &point->best;
    char text[WORDS_BYTES], number[TEXT_UNIT_BYTES];
    grid_row(grid);
    grid_cell(grid, "%d", request->world);
    if (!point->feasible) {
        grid_cell(grid, "nothing runs");
        return;
    }
    grid_cell(grid, "%s", words_layout(&best->plan.mesh, text));
    grid_cell(grid, "%d x %d", best->plan.micro_batch, best->plan.grad_accum);
    grid_cell(grid, "%lld", (long long)plan_global_batch(&best->plan));
    grid_cell(grid, "%s", words_interval(best, text));
    grid_cell(grid, "%s", text_count(number, best->tokens_per_s));
    grid_cell(grid, "%.1f %%", 100 * best->mfu);
    grid_cell(grid, "%.1f %%", 100 * point->efficiency);
    if (request->tokens > 0) {
        add_training(grid, point);
    }
}

static void print_best(const ScalingCurve *curve, FILE *out) {
    const ScalingPoint *best = &curve->points[curve->best];
    static const char *const praise[OBJECTIVE_COUNT] = {"fastest", "least memory", "least cost per token"};
    char mesh[WORDS_BYTES];
    fprintf(out, "\n%sBest (%s): world %d, %s%s\n", colour(out, COLOUR_GOOD), praise[best->request->objective],
            best->request->world, words_mesh_options(&best->best.plan.mesh, mesh), colour(out, COLOUR_END));
}

// What a smaller world loses against the one before it: a node that fails, or is left out.
static void print_losses(const ScalingCurve *curve, FILE *out) {
    for (int i = 1; i < curve->count; i++) {
        const ScalingPoint *before = &curve->points[i - 1], *now = &curve->points[i];
        if (before->feasible && now->feasible && now->request->world < before->request->world) {
            fprintf(out, "%d instead of %d: %.1f %% fewer accelerators, %.1f %% fewer tokens per second\n",
                    now->request->world, before->request->world,
                    100 * (1 - (double)now->request->world / before->request->world),
                    100 * (1 - now->best.tokens_per_s / before->best.tokens_per_s));
        }
    }
}

Status table_scaling(const ScalingCurve *curve, FILE *out, Error *error) {
    static const GridColumn columns[] = {{"world", true},
                                         {"best mesh", false},
                                         {"micro x accum", true},
                                         {"global batch", true},
                                         {"step (80 % interval)", false},
                                         {"tokens/s", true},
                                         {"MFU", true},
                                         {"efficiency", true},
                                         {"time", true},
                                         {"cost", true}};
    const TuneRequest *first = curve->points[0].request;
    char tokens[TEXT_UNIT_BYTES];
    fprintf(out, "%s on %s (%s), for %s %s", first->model.name, first->cluster.accelerator.name, first->cluster.name,
            first->target->name, first->target->version);
    if (first->tokens > 0) {
        fprintf(out, ", to %s tokens", text_count(tokens, first->tokens));
    }
    fputs("\n\n", out);
    Grid *grid = grid_new(columns, first->tokens > 0 ? 10 : 8);
    for (int i = 0; i < curve->count; i++) {
        add_point(grid, &curve->points[i]);
    }
    TRY(grid_print(grid, out, error));
    for (int i = 0; i < curve->count; i++) {
        if (!curve->points[i].feasible) {
            fprintf(out, "world %d: %s\n", curve->points[i].request->world, curve->points[i].reason);
        }
    }
    if (curve->best >= 0) {
        print_best(curve, out);
    }
    print_losses(curve, out);
    fprintf(out, "Efficiency is tokens/s per accelerator over that of the smallest world that runs.\n");
    words_assumptions(first, out);
    return STATUS_OK;
}

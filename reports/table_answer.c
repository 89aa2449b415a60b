// The answer of `ndtune plan` on one screen: at most 25 lines of 80 columns. What is left out here stands in
// plan.c (--verbose).

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/explain/cures.h"
#include "autotune/predict/evidence.h"
#include "reports/colour.h"
#include "reports/export/export.h"
#include "reports/format.h"
#include "reports/reports.h"
#include "reports/wrap.h"
#include "sim/base/text.h"

enum { COLUMNS = 7, CELL_BYTES = 128, SCREEN_LINES = 25, MOST_ROWS = 10, LEAST_ROWS = 2 };

static const double LEVEL = 0.01;  // less decides nothing

static const char *const headings[COLUMNS] = {"", "mesh", "batch", "recomp.", "step", "tokens/s", "memory"};
static const bool right[COLUMNS] = {[0] = true, [4] = true, [5] = true, [6] = true};

static void print_title(const TuneRequest *request, FILE *out) {
    wrap_line(out, 2, "%s (%s) on %d x %s (%s), for %s %s", request->model.name,
              text_count(UNIT_BUFFER, (double)model_parameters(&request->model)), request->world,
              request->cluster.accelerator.name, request->cluster.name, request->target->name,
              request->target->version);
    wrap_line(out, 2, "batch %lld sequences of %d tokens, %s tokens%s", (long long)request->global_batch, request->seq,
              text_count(UNIT_BUFFER, (double)request->global_batch * request->seq),
              request->batch_assumed ? " (assumed: --global-batch)" : "");
}

static void fill_row(const TuneResult *result, int entry, bool short_memory, char cells[COLUMNS][CELL_BYTES]) {
    const Prediction *plan = &result->entries[entry];
    const double share = 100 * plan->memory.reserved_bytes / result->request->memory_limit_bytes;
    snprintf(cells[0], CELL_BYTES, "%d%s", entry + 1, plan->pareto ? "*" : " ");
    snprintf(cells[1], CELL_BYTES, "%s", format_layout(&plan->plan.mesh, FORMAT_BUFFER));
    snprintf(cells[2], CELL_BYTES, "%dx%d", plan->plan.micro_batch, plan->plan.grad_accum);
    snprintf(cells[3], CELL_BYTES, "%s", plan_recompute_text(&plan->plan, RECOMPUTE_BUFFER));
    text_seconds(cells[4], plan->step_s);
    text_count(cells[5], plan->tokens_per_s);
    if (short_memory) {
        snprintf(cells[6], CELL_BYTES, "%.0f %%", share);
    } else {
        snprintf(cells[6], CELL_BYTES, "%s (%.0f %%)", text_bytes(UNIT_BUFFER, plan->memory.reserved_bytes), share);
    }
}

static int widths_of(const TuneResult *result, int rows, bool short_memory, int widths[COLUMNS]) {
    char cells[COLUMNS][CELL_BYTES];
    int sum = COLUMNS - 1;
    for (int i = 0; i < COLUMNS; i++) {
        widths[i] = (int)strlen(headings[i]);
    }
    for (int row = 0; row < rows; row++) {
        fill_row(result, row, short_memory, cells);
        for (int i = 0; i < COLUMNS; i++) {
            widths[i] = (int)fmax(widths[i], (double)strlen(cells[i]));
        }
    }
    for (int i = 0; i < COLUMNS; i++) {
        sum += widths[i];
    }
    return sum;
}

static void print_cells(char cells[COLUMNS][CELL_BYTES], const int widths[COLUMNS], int spare, FILE *out) {
    for (int i = 0; i < COLUMNS; i++) {
        fprintf(out, "%*s", right[i] ? widths[i] : -widths[i], cells[i]);
        fprintf(out, "%*s", i == COLUMNS - 1 ? 0 : 1 + (i > 0 && i <= spare), "");
    }
    fputc('\n', out);
}

static void print_rows(const TuneResult *result, int rows, FILE *out) {
    int widths[COLUMNS];
    char cells[COLUMNS][CELL_BYTES];
    int width = widths_of(result, rows, false, widths);
    const bool short_memory = width > WRAP_COLUMNS;
    if (short_memory) {
        width = widths_of(result, rows, true, widths);
    }
    const int spare = WRAP_COLUMNS - width;
    for (int i = 0; i < COLUMNS; i++) {
        snprintf(cells[i], CELL_BYTES, "%s", headings[i]);
    }
    fputc('\n', out);
    print_cells(cells, widths, spare, out);
    for (int row = 0; row < rows; row++) {
        fill_row(result, row, short_memory, cells);
        print_cells(cells, widths, spare, out);
    }
}

// "grad sync each: 1, 2, 4": choices that have no column, each with the rows that make it.
static void print_choices(const TuneResult *result, int rows, FILE *out) {
    char choices[FORMAT_BYTES];
    for (int row = 0; row < rows; row++) {
        format_choices(result->request->target, &result->entries[row].plan, choices);
        bool told = choices[0] == '\0';
        for (int before = 0; before < row && !told; before++) {
            told = strcmp(format_choices(result->request->target, &result->entries[before].plan, FORMAT_BUFFER),
                          choices) == 0;
        }
        if (told) {
            continue;
        }
        char list[FORMAT_BYTES] = "";
        int alike = 0;
        for (int same = row; same < rows; same++) {
            const size_t used = strlen(list);
            if (strcmp(format_choices(result->request->target, &result->entries[same].plan, FORMAT_BUFFER), choices) ==
                0) {
                alike++;
                snprintf(list + used, sizeof list - used, "%s%d", used ? ", " : "", same + 1);
            }
        }
        wrap_line(out, 2, "with %s: %s", choices, alike == rows && rows > 1 ? "all" : list);
    }
}

static int count_behind(const TuneResult *result) {
    int behind = 0;
    for (int i = 0; i < result->rejected_count; i++) {
        behind += strcmp(result->rejected[i].rule, RULE_BEHIND) == 0;
    }
    return behind;
}

static void print_rest(const TuneResult *result, int rows, FILE *out) {
    const int more = result->entry_count - rows, behind = count_behind(result);
    const int rejected = result->rejected_count - behind;
    char fit[FORMAT_BYTES] = "", slow[FORMAT_BYTES] = "", cannot[FORMAT_BYTES] = "";
    if (more > 0) {
        snprintf(fit, sizeof fit, "; %d more fit (--top 0)", more);
    }
    if (rejected > 0) {
        snprintf(cannot, sizeof cannot, "; %d cannot (--verbose)", rejected);
    }
    if (behind > 0) {
        snprintf(slow, sizeof slow, "; %d are behind by 10 %% or more, not priced", behind);
    }
    wrap_line(out, 2, "* none as fast with less memory%s%s%s", fit, slow, cannot);
}

static void print_best(const TuneResult *result, FILE *out) {
    const Prediction *best = &result->entries[0], *faster = result->fastest_if_it_fits;
    char text[FORMAT_BYTES];
    format_mesh_options(&best->plan.mesh, text);
    fprintf(out, "\n%s", colour(out, COLOUR_GOOD));
    wrap_line(out, 6, "Best: %s%s", text, format_choice_options(result->request->target, &best->plan, FORMAT_BUFFER));
    fprintf(out, "%s", colour(out, COLOUR_END));
    wrap_line(out, 2, "  step %s, MFU %.1f %%%s", format_interval(best, text), 100 * best->mfu,
              format_peak(&best->plan));
    wrap_line(out, 2, "  %s", result->best_reason);
    if (*format_close_shapes(result, text)) {
        wrap_line(out, 2, "  %s: measure them (ndtune validate)", text);
    }
    const double gain = faster ? faster->tokens_per_s / best->tokens_per_s - 1 : 0;
    if (gain >= LEVEL) {
        wrap_line(out, 4, "  %.1f %% faster if it fits: %s, %.0f %% of the memory", 100 * gain,
                  format_changes(result->request->target, &best->plan, &faster->plan, text),
                  100 * faster->memory.reserved_bytes / result->request->memory_limit_bytes);
    }
}

// The product, without the axes that are 1, and what the framework calls its parts.
static void print_batch(const Target *target, const TrainPlan *plan, FILE *out) {
    const int sharing = mesh_group_size(&plan->mesh, AXES_OWN & ~AXES_BATCH);
    char product[FORMAT_BYTES], shared[FORMAT_BYTES] = "";
    int used = snprintf(product, sizeof product, "%lld = micro-batch %d", (long long)plan_global_batch(plan),
                        plan->micro_batch);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if ((AXES_BATCH & AXIS_BIT(axis)) && plan->mesh.size[axis] > 1) {
            used += snprintf(product + used, sizeof product - (size_t)used, " x %d %s", plan->mesh.size[axis],
                             axis_names[axis]);
        }
    }
    if (sharing > 1) {
        snprintf(shared, sizeof shared, "; %d ranks share each sequence", sharing);
    }
    char batch[FORMAT_BYTES];
    wrap_line(out, 2, "Batch: %s x %d accumulation%s%s", product, plan->grad_accum, format_rounds(plan, batch), shared);
    if (format_batch_in(target, plan, batch)[0]) {
        wrap_line(out, 4, "  %s", batch);
    }
}

static void print_baseline(const TuneResult *result, FILE *out) {
    char mesh[FORMAT_BYTES];
    if (mesh_world(&result->request->baseline) == 0) {
        return;
    }
    const Baseline baseline = baseline_chosen(result);
    format_mesh(&result->request->baseline, mesh);
    if (!baseline.entry) {
        wrap_line(out, 2, "Baseline %s cannot run: %s", mesh, baseline.reason ? baseline.reason : "not a shape");
        return;
    }
    wrap_line(out, 2, "Baseline %s: place %d; the best makes %.1f %% %s tokens per second", mesh, baseline.place,
              fabs(100 * baseline.gain), baseline.gain < 0 ? "fewer" : "more");
}

static void print_next(const TuneResult *result, FILE *out) {
    const TuneRequest *request = result->request;
    if (request->default_count > 0) {
        char text[1024] = "";
        size_t used = 0;
        for (int i = 0; i < request->default_count && used < sizeof text; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used, " %s", request->defaults[i]);
        }
        wrap_line(out, 2, "Assumed:%s", text);
    }
    const ExportFormat *format;
    const bool exports = export_usual(request->target, &format, NULL) == STATUS_OK;
    if (exports) {
        fprintf(out, "Next: ndtune export           the best as a config file of %s\n", request->target->name);
    }
    fprintf(out, "%s ndtune report --open    why, where time and memory go, all assumptions\n",
            exports ? "     " : "Next:");
}

static void print_answer(const TuneResult *result, int shown, FILE *out) {
    char training[FORMAT_BYTES];
    const Prediction *best = &result->entries[0];
    print_title(result->request, out);
    print_rows(result, shown, out);
    print_choices(result, shown, out);
    print_rest(result, shown, out);
    print_best(result, out);
    print_batch(result->request->target, &best->plan, out);
    print_baseline(result, out);
    if (*format_training_text(result->request, best, training)) {
        wrap_line(out, 2, "%s", training);
    }
    if (best->warning_count == 1) {
        wrap_line(out, 2, "Warning: %s", best->warnings[0]);
    } else if (best->warning_count > 1) {
        wrap_line(out, 2, "Warning: %s; %d more: --verbose", best->warnings[0], best->warning_count - 1);
    }
    wrap_line(out, 2, "Evidence: %s", evidence_text(result->request, EVIDENCE_BUFFER));
    print_next(result, out);
}

// How many lines the answer takes; 0 where there is no memory to count them in.
static int lines_of(const TuneResult *result, int shown) {
    char *text = NULL;
    size_t bytes = 0;
    int lines = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) {
        return 0;
    }
    print_answer(result, shown, out);
    fclose(out);
    for (size_t i = 0; i < bytes; i++) {
        lines += text[i] == '\n';
    }
    free(text);
    return lines;
}

static void print_cures(const TuneResult *result, CureKind from, CureKind to, const char *heading, FILE *out) {
    bool first = true;
    for (int i = 0; i < result->cure_count; i++) {
        if (result->cures[i].kind >= from && result->cures[i].kind <= to) {
            fprintf(out, "%s", first ? heading : "");
            wrap_line(out, 4, "  %s", cure_text(&result->cures[i], CURE_BUFFER));
            first = false;
        }
    }
}

static void print_nothing(const TuneResult *result, FILE *out) {
    print_title(result->request, out);
    const int shapes = result->rejected_count;
    fputs("\nNo shape can run; --verbose gives the reason", out);
    fprintf(out, shapes > 1 ? " of each of the %d\n" : "\n", shapes);
    if (result->cure_count > 0) {
        wrap_line(out, 0,
                  "What lets one run, by estimate, the nearest first; slower: per accelerator, than if memory "
                  "had no limit.");
    }
    print_cures(result, CURE_PLAN, CURE_WORLD, "The same training:\n", out);
    print_cures(result, CURE_TRAINING, CURE_ADAPTERS, "Another training:\n", out);
}

void table_answer(const TuneResult *result, int rows, FILE *out) {
    if (result->entry_count == 0) {
        print_nothing(result, out);
        return;
    }
    const bool any = rows == ANSWER_ROWS_THAT_FIT;
    int shown = any ? MOST_ROWS : rows;
    shown = shown == 0 || shown > result->entry_count ? result->entry_count : shown;
    while (any && shown > LEAST_ROWS && lines_of(result, shown) > SCREEN_LINES) {
        shown--;
    }
    print_answer(result, shown, out);
}

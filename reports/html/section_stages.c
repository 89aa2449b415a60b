// The best plan by pipeline stage: what the compute lane does when, how long it waits, and the memory of the stage.
// Time that is neither compute nor the stage's own communication is waiting for another stage: the bubble.

#include <math.h>

#include "autotune/predict/stage_waits.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/json_objects.h"

enum { WAITING = -1 };  // in place of a phase

// An interval in which a compute lane does one thing.
typedef struct StageInterval {
    int phase, micro_batch;
    double start_s, end_s;
} StageInterval;

typedef struct StageLine {
    StageInterval *intervals;
    int64_t count;
    double busy_s, optimizer_s, waits_s;
} StageLine;

// Copies around collectives belong to the phase of these collectives, recomputation to its backward.
static int shown_phase(const StageStep *stage, const Span *span, const StageLine *line) {
    const Phase phase = stage->program->tasks[span->task].phase;
    if (phase == PHASE_RECOMPUTE) {
        return PHASE_BACKWARD;
    }
    return phase == PHASE_REDUCE && line->count > 0 && line->intervals[line->count - 1].phase >= 0
               ? line->intervals[line->count - 1].phase
               : (int)phase;
}

static void add_interval(StageLine *line, int phase, int micro_batch, double start_s, double end_s) {
    StageInterval *last = line->count > 0 ? &line->intervals[line->count - 1] : NULL;
    if (last && last->phase == phase && last->micro_batch == micro_batch) {
        last->end_s = end_s;
    } else {
        line->intervals[line->count++] = (StageInterval){phase, micro_batch, start_s, end_s};
    }
}

// Waits that begin before this moment. Shorter ones than can be seen are counted, not drawn.
static int64_t add_waits(StageLine *line, const StageWaits *all, int64_t next, double before_s, double step_s) {
    const double seen_s = 1e-4 * step_s;
    for (; next < all->count && all->waits[next].start_s < before_s; next++) {
        const StageWait *wait = &all->waits[next];
        if (wait->end_s - wait->start_s > seen_s) {
            add_interval(line, WAITING, 0, wait->start_s, wait->end_s);
        }
    }
    return next;
}

static StageLine line_of(const StageStep *stage, double step_s, Arena *arena) {
    const Timeline *timeline = &stage->timeline;
    const StageWaits all = stage_waits(stage->program, timeline->spans, timeline->span_count, step_s, arena);
    StageLine line = {.intervals = ARENA_ARRAY(arena, StageInterval, timeline->span_count + all.count + 1),
                      .busy_s = all.busy_s,
                      .optimizer_s = all.optimizer_s,
                      .waits_s = all.waits_s};
    int64_t next = 0;
    for (int64_t i = 0; i < timeline->span_count; i++) {
        const Span *span = &timeline->spans[i];
        if (stage->program->tasks[span->task].lane == LANE_COMPUTE) {
            next = add_waits(&line, &all, next, span->start_s, step_s);
            const int phase = shown_phase(stage, span, &line);
            add_interval(&line, phase, phase == PHASE_OPTIMIZER ? 0 : span->micro_step, span->start_s, span->end_s);
        }
    }
    add_waits(&line, &all, next, step_s, step_s);
    return line;
}

static json_t *intervals_object(const StageLine *line) {
    json_t *phase = json_array(), *micro_batch = json_array(), *start = json_array(), *length = json_array();
    for (int64_t i = 0; i < line->count; i++) {
        const StageInterval *one = &line->intervals[i];
        json_array_append_new(phase, json_integer(one->phase));
        json_array_append_new(micro_batch, json_integer(one->micro_batch));
        json_array_append_new(start, json_integer(llround(1e9 * one->start_s)));
        json_array_append_new(length, json_integer(llround(1e9 * (one->end_s - one->start_s))));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "phase", phase, "micro_batch", micro_batch, "start_ns", start, "length_ns",
                     length);
}

json_t *stages_data(const HtmlReport *report) {
    const StageSteps *steps = &report->stages;
    if (steps->count < 2) {
        return json_null();
    }
    json_t *array = json_array();
    for (int i = 0; i < steps->count; i++) {
        const StageStep *stage = &steps->of[i];
        const StageLine line = line_of(stage, steps->step_s, report->arena);
        json_array_append_new(array,
                              json_pack("{s:i, s:i, s:f, s:f, s:o, s:o}", "stage", i, "layers", stage->program->layers,
                                        "busy_s", line.busy_s, "bubble_s", line.waits_s, "memory",
                                        json_memory(&stage->memory, report->result->request->memory_limit_bytes),
                                        "blocks", intervals_object(&line)));
    }
    return json_pack("{s:f, s:i, s:o}", "step_s", steps->step_s, "micro_batches", steps->micro_batches, "of", array);
}

void section_stages(const HtmlReport *report, FILE *out) {
    const StageSteps *steps = &report->stages;
    if (steps->count < 2) {
        return;
    }
    const int all = report_best(report)->plan.grad_accum;
    if (steps->micro_batches < all) {
        markup_format(out, "Shown is a step of %d micro-batches; the plan has %d, and its bubble is a smaller share.",
                      steps->micro_batches, all);
    }
    MarkupTable table = table_begin("table-stages", "The stages of the pipeline",
                                    "#stage|#layers|#computes|#waits|#share of the step|#optimizer|#reserves", out);
    for (int i = 0; i < steps->count; i++) {
        const StageStep *stage = &steps->of[i];
        const StageLine line = line_of(stage, steps->step_s, report->arena);
        table_row(&table, NULL);
        table_cells(&table, "ddtt%tb", i, stage->program->layers, line.busy_s, line.waits_s,
                    line.waits_s / steps->step_s, line.optimizer_s, stage->memory.reserved_bytes);
    }
    table_end(&table);
}

// Every instance of the step at the time that it takes alone. Not modelled: ranks that wait for each other because
// their work or their time slices on a core differ.

#include "autotune/predict/predict_serial.h"

#include <string.h>

#include "autotune/predict/step_terms.h"

bool predict_is_serial(const TuneRequest *request, bool async_lanes) {
    return request->cluster.accelerator.device_class == DEVICE_CLASS_CPU && !async_lanes &&
           request->handicap_count == 0;  // who waits for a slow rank is the engine's to say
}

void predict_serial(const CostModel *cost, const StepProgram *program, Arena *arena, Prediction *prediction,
                    TaskTotal *totals) {
    const TaskCost *costs = cost_program(cost, program, arena);
    double terms[TERM_COUNT] = {0};
    if (totals) {
        memset(totals, 0, (size_t)program->task_count * sizeof *totals);
    }
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        const double seconds = costs[instance.task].seconds;
        terms[step_term(program, &program->tasks[instance.task])] += seconds;
        if (totals) {
            totals[instance.task].count++;
            totals[instance.task].seconds += seconds;
        }
    }
    prediction->compute_s = terms[TERM_COMPUTE];
    prediction->optimizer_s = terms[TERM_OPTIMIZER];
    prediction->overhead_s = terms[TERM_OVERHEAD] + cost->target->runtime.step_fixed_s;
    prediction->step_s = prediction->compute_s + prediction->optimizer_s + prediction->overhead_s;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        prediction->exposed_s[axis] = terms[axis];
        prediction->step_s += terms[axis];
    }
}

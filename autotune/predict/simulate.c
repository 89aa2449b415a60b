// Which of the two simulations a request asks for.

#include "autotune/predict/simulate.h"

#include "autotune/predict/handicap.h"
#include "autotune/predict/predict_serial.h"

EngineOptions simulate_options(const TuneRequest *request, Arena *arena) {
    return (EngineOptions){.keep_spans = true,
                           .rank_slowdown = handicap_factors(request, false, arena),
                           .link_slowdown = handicap_factors(request, true, arena)};
}

Status simulate_stages(const TuneRequest *request, const StepPrograms *programs, const CostModel *cost,
                       const EngineOptions *options, Arena *arena, const StepProgram **busiest, EngineResult *result,
                       Error *error) {
    return request->serial_lanes
               ? predict_serial(programs->of, programs->count, cost, options->keep_spans, arena, busiest, result, error)
               : engine_run_stages(programs, cost, options, arena, busiest, result, error);
}

// Who runs the programs of a request, and one run among others.

#include "autotune/measure/measuring.h"

#include <string.h>

#include "autotune/measure/run_stages.h"
#include "autotune/predict/predict_serial.h"
#include "autotune/predict/target_on_cluster.h"
#include "sim/base/log.h"

Status measuring_takes(TuneRequest *request, LaneMode lanes, Arena *arena, const Target **target, Error *error) {
    const Target *executor;
    TRY(target_find(TARGET_EXECUTOR, &executor, error));
    executor = target_on_cluster(executor, &request->cluster, arena);
    Target *mixed = ARENA_NEW(arena, Target);
    *target = target_executed(request->target, arena);
    *mixed = target_run_by(*target, executor);
    request->target = mixed;
    request->runner = executor;
    request->serial_lanes = predict_is_serial(request, lanes == LANES_ASYNC);
    return STATUS_OK;
}

uint64_t measuring_hash(const Measuring *measuring, const TrainPlan *plan) {
    MeasuredRun run = measuring->like;
    return run.target && measured_run_prepare(&run, plan, &measuring->options, NULL) == STATUS_OK
               ? run.record.measurement_hash
               : 0;
}

Status measuring_find_prices(const Measuring *measuring, MeasuredRun *run, Error *error) {
    RunOptions *options = &run->run.options;
    return strcmp(options->device, "cpu") == 0
               ? STATUS_OK
               : store_prices(measuring->store, run->arena, &options->prices, &options->price_count, error);
}

Status measuring_execute(const Measuring *measuring, MeasuredRun *run, const char *words, Error *error) {
    const Progress progress = measuring->begin(measuring->context, run, words);
    TRY(measured_run_execute(run, &progress, error));
    Error unknown = {0};  // a run that ended well is kept
    if (run_stages_take(run, &unknown) != STATUS_OK) {
        log_note("what its stages took is not known: %s", unknown.message);
    }
    return STATUS_OK;
}

// What the commands that search or predict share: both backed by the store, and the message when nothing runs.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autotune/calibrate/calibrate.h"
#include "autotune/cli/cli.h"
#include "autotune/explain/alternatives.h"
#include "autotune/explain/cures.h"
#include "autotune/predict/host_interval.h"
#include "autotune/predict/predict.h"
#include "autotune/search/search.h"
#include "reports/wrap.h"
#include "sim/base/text.h"

Status cli_one_world(Cli *cli, Error *error) {
    FAIL_WITH(cli->options.list_count > 1, cli_refuse(cli, OPTION_WORLD, error, "ndtune %s takes one world, not a list",
                                                      command_names[cli->command]));
    return STATUS_OK;
}

Status cli_search_near(Cli *cli, const TuneRequest *request, const SearchNear *near, SearchKnown *keeping,
                       TuneResult *result, Error *error) {
    TRY(cli_open_store_to_ask(cli, error));
    const PredictionCache cache = store_cache(cli->store), *known = cli_given(cli, OPTION_NO_CACHE) ? NULL : &cache;
    const Progress progress = cli_progress(cli);
    const Status status = near ? search_near(request, near, known, &progress, &cli->arena, result, error)
                               : search_run_keeping(request, known, &progress, keeping, &cli->arena, result, error);
    cli_progress_clear(cli);
    TRY(status);
    TRY(host_intervals(request, result->entries, result->entry_count, error));
    return calibrated_intervals(request, result->entries, result->entry_count, error);
}

Status cli_search(Cli *cli, const TuneRequest *request, TuneResult *result, Error *error) {
    TRY(cli_search_near(cli, request, NULL, NULL, result, error));
    return store_save_result(cli->store, result, error);
}

Status cli_predict(Cli *cli, const TuneRequest *request, const TrainPlan *plan, bool own, OnePlan *one, Error *error) {
    const PruneRule *(*judge)(const TuneRequest *, const TrainPlan *, const MemoryBreakdown *, Arena *, const char **) =
        own ? prune_given : prune;
    *one = (OnePlan){.prediction = {.plan = *plan}};
    one->rule = judge(request, plan, NULL, &cli->arena, &one->reason);
    one->legal = !one->rule;
    if (one->legal) {
        TRY(cli_open_store_to_ask(cli, error));
        const PredictionCache cache = store_cache(cli->store);
        TRY(predict_once(request, cli_given(cli, OPTION_NO_CACHE) ? NULL : &cache, plan, &cli->arena, &one->prediction,
                         error));
        one->rule = judge(request, plan, &one->prediction.memory, &cli->arena, &one->reason);
    }
    return STATUS_OK;
}

// Of the shape that asks least of a framework, plain sharding: what refuses it refuses the job. A batch comes before
// that, which is changed more easily than a model.
static const Rejection *strongest_rejection(const TuneResult *result) {
    const Rejection *strongest = &result->rejected[0];
    for (int i = 0; i < result->rejected_count; i++) {
        const Rejection *rejection = &result->rejected[i];
        if (strcmp(rejection->rule, "batch") == 0) {
            return rejection;
        }
        if (rejection->plan.mesh.size[AXIS_DP_SHARD] > strongest->plan.mesh.size[AXIS_DP_SHARD]) {
            strongest = rejection;
        }
    }
    return strongest;
}

// The reason of the shape that came closest to being possible, memory before the other rules.
Status cli_nothing_feasible(const TuneResult *result, Error *error) {
    const Rejection *strongest = strongest_rejection(result);
    const Candidate *nearest = NULL;
    for (int i = 0; i < result->candidate_count; i++) {
        const Candidate *candidate = &result->candidates[i];
        if (candidate->reserved_bytes > 0 && (!nearest || candidate->reserved_bytes < nearest->reserved_bytes)) {
            nearest = candidate;
        }
    }
    FAIL_IF(result->search.shapes == 1, error, STATUS_INFEASIBLE, "the only shape, %s, cannot run: %s",
            mesh_short_text(nearest ? &nearest->plan.mesh : &strongest->plan.mesh, MESH_BUFFER),
            nearest ? nearest->reason : strongest->reason);
    FAIL_IF(nearest, error, STATUS_INFEASIBLE, "none of the %d shapes can run; the nearest, %s, %s",
            result->search.shapes, mesh_short_text(&nearest->plan.mesh, MESH_BUFFER), nearest->reason);
    return error_set(error, STATUS_INFEASIBLE, "none of the %d shapes can run; %s: %s", result->search.shapes,
                     mesh_short_text(&strongest->plan.mesh, MESH_BUFFER), strongest->reason);
}

Status cli_say_what_fits(Cli *cli, TuneResult *result, Error *error) {
    if (!result->cures) {
        TRY(cures_find(result->request, &cli->arena, &result->cures, &result->cure_count, error));
    }
    const Status status = cli_nothing_feasible(result, error);
    return result->cure_count > 0
               ? error_hint(error, "by estimate something fits with %s", cure_text(&result->cures[0], CURE_BUFFER))
               : status;
}

Status cli_find_formats(Cli *cli, TuneResult *result, Error *error) {
    FormatAlternative formats[ALTERNATIVE_FORMATS];
    int count = 0;
    const char *line = "";
    TRY(alternative_formats(result, &cli->arena, formats, &count, error));
    for (int i = 0; i < count; i++) {
        const bool alike = fabs(formats[i].step) < 0.0005;
        const char *time = alike ? "the same" : arena_format(&cli->arena, "%+.1f %%", 100 * formats[i].step);
        const char *sign = formats[i].saved_bytes < 0 ? "+" : formats[i].saved_bytes > 0 ? "-" : "";
        line = arena_format(&cli->arena, "%s%s%s: %s time, %s%s (%s)", line, i == 0 ? "" : "; ", formats[i].words, time,
                            sign, text_bytes(UNIT_BUFFER, fabs(formats[i].saved_bytes)), formats[i].option);
    }
    result->if_allowed = count > 0 ? line : NULL;
    return STATUS_OK;
}

Status cli_say_better_batch(Cli *cli, const TuneResult *result, const SearchKnown *known, Error *error) {
    BatchAlternative better = {0};
    if (cli_format(cli) == FORMAT_TABLE && result->cure_count == 0) {
        TRY(alternative_batch(result, known, &cli->arena, &better, error));
    }
    if (better.global_batch == 0) {
        return STATUS_OK;
    }
    char mesh[MESH_TEXT_BYTES], gain[TEXT_UNIT_BYTES] = "", tried[TEXT_UNIT_BYTES + 24] = "";
    if (better.gain > 0) {
        snprintf(gain, sizeof gain, ", %.0f %% faster by estimate", 100 * better.gain);
    }
    if (better.shapes_near > 0) {
        snprintf(tried, sizeof tried, " (of %d shapes near the best)", better.shapes_near);
    }
    wrap_line(stdout, 2, "A global batch of %lld instead of %lld lets %s run%s%s.", (long long)better.global_batch,
              (long long)result->request->global_batch, mesh_short_text(&better.mesh, mesh), gain, tried);
    return STATUS_OK;
}

Status cli_say_idle(Cli *cli, const TuneResult *result, Error *error) {
    IdleAlternative better = {0};
    if (cli_format(cli) == FORMAT_TABLE) {
        TRY(alternative_idle(result, &cli->arena, &better, error));
    }
    if (better.idle == 0) {
        return STATUS_OK;
    }
    char mesh[MESH_TEXT_BYTES], gain[TEXT_UNIT_BYTES] = "";
    if (better.gain > 0) {
        snprintf(gain, sizeof gain, "%.0f %% faster", 100 * better.gain);
    }
    wrap_line(stdout, 2, "Leave %d idle: --world %d is %s by estimate (%s).", better.idle,
              result->request->world - better.idle, better.gain > 0 ? gain : "what can run",
              mesh_short_text(&better.mesh, mesh));
    return STATUS_OK;
}

// Other frameworks with a file format, each with the best plan as it would run it.

#include "autotune/cli/other_frameworks.h"

#include "autotune/explain/other_target.h"
#include "reports/export/export.h"
#include "sim/base/text.h"

static Status predict_other(Cli *cli, TuneRequest *request, const TrainPlan *best, HtmlOther *other, Error *error) {
    TrainPlan plan;
    other_target_plan(request, best, &plan);
    OnePlan one;
    TRY(cli_predict(cli, request, &plan, false, &one, error));
    *other = (HtmlOther){other->name, request, one.prediction, one.reason};
    return STATUS_OK;
}

Status other_frameworks(Cli *cli, const TuneResult *result, HtmlOther **others, int *count, Error *error) {
    const ExportFormat *format;
    *others = ARENA_ARRAY(&cli->arena, HtmlOther, export_format_count());
    *count = 0;
    for (int i = 0; result->entry_count > 0 && (format = export_format_at(i)); i++) {
        if (export_is_of(format, result->request->target) || TEXT_FIND(*others, *count, name, format->target)) {
            continue;
        }
        TuneRequest *request = ARENA_NEW(&cli->arena, TuneRequest);
        *request = *result->request;
        export_narrow(format, request);
        TRY(other_target_take(format->target, &cli->arena, request, error));
        HtmlOther *other = &(*others)[(*count)++];
        *other = (HtmlOther){.name = format->target};
        TRY(predict_other(cli, request, &result->entries[0].plan, other, error));
    }
    return STATUS_OK;
}

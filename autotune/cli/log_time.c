// Reads a log as calibrate and predict take it: any of the formats of autotune/validate/step_log.c.

#include "autotune/cli/log_time.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "autotune/validate/measurement.h"
#include "autotune/validate/step_log.h"
#include "sim/base/open.h"

enum { LOG_MOST_BYTES = 256 << 20 };

static Status read_text(const char *option, const char *path, Arena *arena, const char **text, Error *error) {
    const char *why = NULL;
    char *bytes = NULL;
    size_t count = 0;
    FILE *file = open_to_read(path, &why);
    why = file ? read_and_close(file, LOG_MOST_BYTES - 1, arena, &bytes, &count) : why;
    why = !why && count >= LOG_MOST_BYTES ? "it is larger than 256 MiB" : why;
    *text = bytes;
    return why ? error_set(error, STATUS_ENVIRONMENT, "--%s %s cannot be read: %s", option, path, why) : STATUS_OK;
}

Status log_step_time(const Cli *cli, OptionId id, const char *path, const TrainPlan *plan, Arena *arena, double *step_s,
                     Error *error) {
    enum { WARM_UP = 2 };
    const char *option = option_row(id).name;
    const char *text = "";
    StepLog log;
    char formats[STEP_LOG_FORMATS_BYTES];
    TRY(read_text(option, path, arena, &text, error));
    step_log_read(text, (double)plan_tokens_per_step(plan) / mesh_world(&plan->mesh), arena, &log);
    FAIL_IF(log.count == 0, error, STATUS_USAGE, "--%s %s holds no step time: %s%s", option, path,
            log.nothing ? log.nothing : "there are ", log.nothing ? "" : step_log_formats(formats));
    const int warm_up = log.average ? 0 : cli_integer_or(cli, OPTION_WARM_UP, WARM_UP);
    FAIL_IF(log.count <= warm_up, error, STATUS_USAGE, "--%s %s holds %d step times (%s), and %d are warm-up", option,
            path, log.count, log.format, warm_up);
    *step_s = measurement_median(log.step_s, log.count, warm_up, arena);
    return STATUS_OK;
}

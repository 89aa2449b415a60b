// Reads a log as calibrate and predict accept it: any of the formats of autotune/validate/step_log.c.

#include "autotune/validate/step_log_file.h"

#include <stdio.h>

#include "autotune/validate/measurement.h"
#include "autotune/validate/step_log.h"
#include "sim/base/open.h"

enum { LOG_MOST_BYTES = 256 << 20 };

static Status read_text(const char *name, const char *path, Arena *arena, const char **text, Error *error) {
    const char *why = NULL;
    char *bytes = NULL;
    size_t count = 0;
    FILE *file = open_to_read(path, &why);
    why = file ? read_and_close(file, LOG_MOST_BYTES - 1, arena, &bytes, &count) : why;
    why = !why && count >= LOG_MOST_BYTES ? "it is larger than 256 MiB" : why;
    *text = bytes;
    return why ? error_set(error, STATUS_ENVIRONMENT, "%s cannot be read: %s", name, why) : STATUS_OK;
}

Status step_log_file_time(const char *name, const char *path, const TrainPlan *plan, int warm_up, Arena *arena,
                          double *step_s, Error *error) {
    const char *text = "";
    StepLog log;
    char formats[STEP_LOG_FORMATS_BYTES];
    TRY(read_text(name, path, arena, &text, error));
    step_log_read(text, (double)plan_tokens_per_step(plan) / mesh_world(&plan->mesh), arena, &log);
    FAIL_IF(log.count == 0, error, STATUS_USAGE, "%s holds no step time: %s%s", name,
            log.nothing ? log.nothing : "there are ", log.nothing ? "" : step_log_formats(formats));
    warm_up = log.average ? 0 : warm_up;
    FAIL_IF(log.count <= warm_up, error, STATUS_USAGE, "%s holds %d step time%s (%s), and %d are warm-up", name,
            log.count, log.count == 1 ? "" : "s", log.format, warm_up);
    *step_s = measurement_median(log.step_s, log.count, warm_up, arena);
    return STATUS_OK;
}

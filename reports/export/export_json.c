// The file as JSON, for programs that want it together with its inputs (schema ndtune.export/1).

#include <stdlib.h>

#include "reports/export/export.h"
#include "reports/json_objects.h"

Status export_json(const ExportFormat *format, const ExportJob *job, FILE *out, Error *error) {
    char *text = NULL;
    TRY(export_text(format, job, &text, error));
    const Status status = json_print(
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "schema", "ndtune.export/1", "format", format->name, "file_name",
                  job->file_name ? job->file_name : format->file_name, "versions", format->versions, "content", text,
                  "prediction", json_prediction_object(job->request, job->prediction, true, NULL)),
        out, error);
    free(text);
    return status;
}

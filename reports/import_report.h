// Reports of ndtune explain --from: a config file, its prediction, what to change.

#pragma once

#include "autotune/explain/advice.h"
#include "autotune/import/import.h"
#include "reports/answer.h"
#include "reports/record.h"

typedef struct ImportReport {
    const Import *import;
    const TuneRequest *request;
    const char *asked_words;  // model and cluster, as options of a command line
    const AdviceReport *advice;
} ImportReport;

extern const RecordSchema schema_changes;  // Advice, about its ImportReport

extern const Answer answer_import;  // ImportReport; ndtune.explain-from/1

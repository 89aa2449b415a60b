// Fills an answer's page: asks, simulates and looks up what HtmlReport holds beyond the answer.

#pragma once

#include "autotune/measure/recall.h"
#include "reports/html/html.h"
#include "sim/base/progress.h"

// Why the page does not ask what would change its answer, as a sentence; NULL: it does.
const char *page_unasked(const HtmlReport *report);

// Asks.
Status page_explain(HtmlReport *report, const Progress *progress, Error *error);

typedef struct PageRuns {
    const Measuring *measuring;  // as validate would run the plans; its store
    NamedRun named;              // whose step is shown under the simulated one; of none that of the newest of the best
} PageRuns;

// Everything else: what the store has of the answer, steps of the best plan, what the charts divide further.
Status page_gather(HtmlReport *report, const PageRuns *runs, Error *error);

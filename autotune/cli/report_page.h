// The HTML page of an answer: computes, simulates and looks up what the page shows in addition to the answer itself.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/measure/recall.h"
#include "autotune/tune/tune.h"
#include "autotune/validate/validate.h"

typedef struct ReportPage {
    const TuneResult *result;
    const Validation *validation;  // NULL = what the store has measured for the entries
    const Tuning *tuning;          // the session that found the answer; NULL
    const Target *executed;        // the target whose programs our executor runs for this request; NULL = none
    NamedRun run;       // whose step is shown under the simulated one; of none that of the newest of the best
    bool one_plan;      // no search was requested
    const char *again;  // the command that regenerates the page; NULL = the request's, with --html
    const char *path;
} ReportPage;

// *validation: what the page shows as measured; NULL = not wanted.
Status report_page_write(Cli *cli, const ReportPage *page, const Validation **validation, Error *error);

// For --html in commands that already have their answer: does nothing without that option.
Status report_page_option(Cli *cli, const ReportPage *page, Error *error);

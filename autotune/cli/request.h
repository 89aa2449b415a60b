// The options of a call as a TuneRequest (autotune/request).

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/request/request.h"

// Fills *request (texts in cli->arena). Errors point at the offending arguments.
Status request_build(Cli *cli, const RequestDefaults *defaults, TuneRequest *request, Error *error);

// The same in two steps: what the options say, which the caller may change, and the request.
Asked request_asked(Cli *cli);
Status request_of(Cli *cli, Asked *asked, const RequestDefaults *defaults, TuneRequest *request, Error *error);

// What validate and tune run, of this command line or the last request; opens the store. *executed: the target whose
// programs our executor runs; NULL = a command does (--with).
Status request_executed(Cli *cli, TuneRequest *request, const Target **executed, Error *error);

// request_check_world, for another world than that of the command line.
Status request_check(Cli *cli, const TuneRequest *request, Error *error);

extern const RequestDefaults search_defaults;   // of plan and explain
extern const RequestDefaults predict_defaults;  // of predict and export: one plan
extern const RequestDefaults run_defaults;
extern const RequestDefaults preflight_defaults;
extern const RequestDefaults validate_defaults;

// Runs task instances of a session: a single one, or a whole step in issue order on the calling thread.

#pragma once

#include "exec/worker/session.h"

// Runs one instance and records it. ordinal: its place in issue order.
Status interpreter_run_instance(Session *session, const StepInstance *instance, int64_t ordinal, Error *error);

Status interpreter_run_serial(Session *session, Error *error);

// Records the timings of a device with its own clock for the step that has just been synchronized.
Status interpreter_take_spans(Session *session, Error *error);

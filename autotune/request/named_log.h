// A log of a run, which may say in its name what it ran: run.log@dp_shard=8,tp=2,micro_batch=2.

#pragma once

#include "autotune/request/asked.h"

typedef struct NamedLog {
    const char *path, *own;  // own: what follows the @; NULL = nothing
} NamedLog;

NamedLog named_log(const char *text, Arena *arena);

// What it says of itself, in place of what was asked.
Status named_log_ask(const NamedLog *log, Asked *asked, Arena *arena, Error *error);

// Messages between neighbouring stages of a pipeline, over the links that the run will use.

#pragma once

#include <jansson.h>

#include "exec/worker/session.h"

// Appends a row for each direction to rows; every rank calls it. Does nothing without stages.
Status preflight_links(Session *session, Arena *arena, json_t *rows, Error *error);

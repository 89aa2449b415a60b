// What a preflight found.

#pragma once

#include "autotune/measure/preflight.h"
#include "reports/answer.h"

extern const Answer answer_preflight;  // of a Preflight

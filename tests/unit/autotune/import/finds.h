// What reading a config file found.

#pragma once

#include <string.h>

#include "autotune/import/import.h"

// Is there a finding of that kind whose sentence has these words?
static inline bool finds(const Import *import, FindingKind kind, const char *words) {
    bool found = false;
    for (int i = 0; i < import->finding_count; i++) {
        found |= import->findings[i].kind == kind && strstr(import->findings[i].sentence, words);
    }
    return found;
}

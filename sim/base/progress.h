// How long calls report and are cancelled. The cli draws one line on a terminal; elsewhere it stays quiet.

#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Progress {
    // Returns false to cancel. label is valid only during the call. NULL update = no reporting.
    bool (*update)(void *context, const char *label, int64_t done, int64_t total);
    void *context;
} Progress;

static inline bool progress_update(const Progress *progress, const char *label, int64_t done, int64_t total) {
    return !progress || !progress->update || progress->update(progress->context, label, done, total);
}

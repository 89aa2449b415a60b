// Log lines: "ndtune: warning: ..." on stderr, one write per line so that lines of several processes do not mix.

#include "sim/base/log.h"

#include <stdio.h>

#include "sim/base/error.h"
#include "sim/base/hash.h"

enum { SAID_MOST = 16 };  // different lines; more are written each time

static uint64_t log_said[SAID_MOST];  // 0 = free

void log_warn_once(const char *line) {
    Hash hash = hash_begin();
    hash_text(&hash, line);
    const uint64_t id = hash_end(&hash) | 1;
    for (int i = 0; i < SAID_MOST; i++) {
        if (log_said[i] == id) {
            return;
        }
        if (log_said[i] == 0) {
            log_said[i] = id;
            break;
        }
    }
    fprintf(stderr, "ndtune: warning: %.1023s\n", line);
}

void log_note(const char *format, ...) {
    char line[1024];
    WITH_VALUES(format, vsnprintf(line, sizeof line, format, values));
    fprintf(stderr, LOG_NOTE "%s\n", line);
}

// Arbitrary bytes as the output of a training framework. Every step time found is a positive, finite number and has a
// format; a file of a known format without one gives a reason.

#include <math.h>
#include <string.h>

#include "autotune/validate/step_log.h"
#include "sim/base/error.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena arena = {0};
    char *text = arena_alloc(&arena, size + 1);
    memcpy(text, data, size);
    StepLog log;
    step_log_read(text, 4096, &arena, &log);
    ASSERT(log.count >= 0 && (log.count == 0 || log.format));
    ASSERT(log.count > 0 || !log.format || (log.nothing && log.nothing[0] != '\0'));
    for (int i = 0; i < log.count; i++) {
        ASSERT(log.step_s[i] > 0 && isfinite(log.step_s[i]));
    }
    arena_free(&arena);
    return 0;
}

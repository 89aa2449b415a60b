// One fuzz target: called with arbitrary bytes; returns 0, or ends the process where a guarantee does not hold.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void fuzz_write_file(const char *path, const uint8_t *data, size_t size);

// Checks a refusal: the input's fault, in one sentence and a hint that fit their buffers.
void fuzz_refused(const Error *error);

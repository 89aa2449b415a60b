// One fuzz target: called with any bytes; returns 0, or ends the process where a promise does not hold.

#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The seed of generated cases: NDTUNE_SEED, else the test's usual one, so that what passed once passes again and a red
// run has a cause in its change; NDTUNE_SEED=new draws by the time of day, as the tests named *_new_seeds do (label
// long). The seed is printed: given as NDTUNE_SEED it repeats the run.

#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline uint64_t seed_of_run(const char *what, uint64_t usual) {
    const char *given = getenv("NDTUNE_SEED");
    const uint64_t seed = !given ? usual : strcmp(given, "new") == 0 ? (uint64_t)time(NULL) : strtoull(given, NULL, 10);
    fprintf(stderr, "%s: NDTUNE_SEED=%llu\n", what, (unsigned long long)seed);
    return seed;
}

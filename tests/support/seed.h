// The seed of generated cases: NDTUNE_SEED, else a fixed one, so that what passed once passes again and a red run has a
// cause in its change; NDTUNE_SEED=new draws by the time of day, as the tests named *_new_seeds do (label long). The
// seed is printed: given as NDTUNE_SEED it repeats the run.

#ifndef NDTUNE_TESTS_SUPPORT_SEED_H
#define NDTUNE_TESTS_SUPPORT_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline uint64_t seed_of_run(const char *what) {
    const char *given = getenv("NDTUNE_SEED");
    const uint64_t seed = !given                      ? 20261129
                          : strcmp(given, "new") == 0 ? (uint64_t)time(NULL)
                                                      : strtoull(given, NULL, 10);
    fprintf(stderr, "%s: NDTUNE_SEED=%llu\n", what, (unsigned long long)seed);
    return seed;
}

#endif

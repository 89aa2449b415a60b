// The version recorded with stored predictions: derived from the sources of sim/ and of the search.

#include "autotune/engine_version.h"
#include "autotune/result.h"

const char *tune_engine_version(void) {
    return ENGINE_VERSION;
}

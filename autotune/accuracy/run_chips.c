// By the names that profiles have.

#include "autotune/accuracy/run_chips.h"

#include <stddef.h>
#include <string.h>

enum { MAX_NAMES = 4 };

static const char *const names[CHIPS_COUNT][MAX_NAMES] = {
    [CHIPS_HOPPER] = {"H100", "H200", "H800"},
    [CHIPS_CDNA3] = {"MI300X", "MI325X"},
};

bool chip_is_of(const Accelerator *accelerator, ChipFamily family) {
    bool is = false;
    for (int i = 0; i < MAX_NAMES && names[family][i]; i++) {
        is = is || strstr(accelerator->name, names[family][i]);
    }
    return is;
}

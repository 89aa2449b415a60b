// Names of accelerators are as long as profiles hold.

#include "autotune/probe/chip_name.h"

#include <string.h>

enum { NAME_CHARACTERS = 40 };  // of Accelerator.name

const char *chip_name(const char *chip, Arena *arena) {
    const size_t length = strcspn(chip, ",");
    return arena_format(arena, "%.*s", (int)(length < NAME_CHARACTERS ? length : NAME_CHARACTERS), chip);
}

// The list of frameworks.

#include "sim/frameworks/framework.h"

// The folders, in the order in which people are told of them; the first is the default.
#define FRAMEWORKS(ROW)                                                                                                \
    ROW(accelerate)                                                                                                    \
    ROW(ndtune)                                                                                                        \
    ROW(axolotl)                                                                                                       \
    ROW(torchtitan)                                                                                                    \
    ROW(megatron)                                                                                                      \
    ROW(nanotron)                                                                                                      \
    ROW(deepspeed)                                                                                                     \
    ROW(fsdp1)

#define DECLARE(name) extern const Framework framework_##name;
FRAMEWORKS(DECLARE)

#define POINT(name) &framework_##name,
static const Framework *const frameworks[] = {FRAMEWORKS(POINT)};

const Framework *const *framework_list(int *count) {
    *count = (int)(sizeof frameworks / sizeof frameworks[0]);
    return frameworks;
}

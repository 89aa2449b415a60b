// The list of frameworks.

#include <stdio.h>
#include <string.h>

#include "sim/frameworks/framework.h"

// The folders, in the order in which people are told of them; the first is the default.
#define FRAMEWORKS(ROW)                                                                                                \
    ROW(accelerate)                                                                                                    \
    ROW(trainer)                                                                                                       \
    ROW(trl)                                                                                                           \
    ROW(ndtune)                                                                                                        \
    ROW(axolotl)                                                                                                       \
    ROW(torchtitan)                                                                                                    \
    ROW(megatron)                                                                                                      \
    ROW(automodel)                                                                                                     \
    ROW(nanotron)                                                                                                      \
    ROW(deepspeed)                                                                                                     \
    ROW(fsdp1)                                                                                                         \
    ROW(aleph_scaling)                                                                                                 \
    ROW(prime_rl)

#define DECLARE(name) extern const Framework framework_##name;
FRAMEWORKS(DECLARE)

#define POINT(name) &framework_##name,
static const Framework *const frameworks[] = {FRAMEWORKS(POINT)};

enum { COUNT = sizeof frameworks / sizeof frameworks[0] };

const Framework *const *framework_list(int *count) {
    *count = COUNT;
    return frameworks;
}

const Framework *framework_of(const char *name) {
    for (int i = 0; i < COUNT; i++) {
        if (frameworks[i]->name[0] == name[0] && strcmp(frameworks[i]->name, name) == 0) {  // asked for every plan
            return frameworks[i];
        }
    }
    return NULL;
}

const FrameworkSynonym *framework_synonym(const Framework *framework, const char *text,
                                          bool (*matches)(const char *text, const char *word)) {
    for (const FrameworkSynonym *row = framework->synonyms; row && row->word; row++) {
        if (matches(text, row->word)) {
            return row;
        }
    }
    return NULL;
}

char *framework_names(bool (*holds)(const Framework *framework), char *out, size_t bytes) {
    const int last = COUNT - 1;
    int more = 0;
    out[0] = '\0';
    for (int i = 0; i <= last; i++) {
        more += holds(frameworks[i]);
    }
    for (int i = 0; i <= last; i++) {
        const size_t used = strlen(out);
        if (holds(frameworks[i])) {
            snprintf(out + used, bytes - used, "%s%s", frameworks[i]->name,
                     --more > 1  ? ", "
                     : more == 1 ? " or "
                                 : "");
        }
    }
    return out;
}

// A framework is a folder beside this file and a row of frameworks.c. Its versions are rows of settings: each extends
// another version, of the same framework or of one that it trains by, and says only what it changes. Where a version
// runs otherwise, one row changes.

#pragma once

#include <stddef.h>

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"
#include "sim/frameworks/target.h"

// One field of Target with its value: a number of any kind, or a text. Ends at a setting of nothing.
typedef struct TargetSetting {
    size_t at;  // offsetof(Target, ..); 0 = the end
    double number;
    const char *text;
} TargetSetting;

#define SET(field, value)                                                                                              \
    { .at = offsetof(Target, field), .number = (value) }
#define SET_TEXT(field, words)                                                                                         \
    { .at = offsetof(Target, field), .text = (words) }
#define SETTINGS(...)                                                                                                  \
    (const TargetSetting[]) {                                                                                          \
        __VA_ARGS__, {                                                                                                 \
            0                                                                                                          \
        }                                                                                                              \
    }

typedef struct TargetVersion TargetVersion;
struct TargetVersion {
    const char *version;           // "1.14"; NULL = none of a framework, only to be extended
    const TargetVersion *extends;  // NULL = all off and 0
    const char *until;             // as of Target, not inherited
    const char *evidence;          // the same
    const TargetSetting *settings;
};

typedef struct Framework {
    const char *name;                      // "accelerate"
    const TargetVersion *const *versions;  // the default one first; ends at NULL. None: it trains by another's
    const ExportFormat *const *formats;    // of its config files, the usual one first; ends at NULL; NULL = none
    const ImportFormat *config;            // the file of it that can be read; NULL = none
} Framework;

const Framework *const *framework_list(int *count);

// "accelerate, axolotl or deepspeed": those for which it holds.
char *framework_names(bool (*holds)(const Framework *framework), char *out, size_t bytes);

// ---- the fields of Target

typedef enum { FIELD_BOOL, FIELD_INT, FIELD_REAL, FIELD_TEXT } TargetFieldKind;

typedef struct TargetField {
    const char *name;  // "runtime.host_s_per_op"
    size_t at;
    TargetFieldKind kind;
    bool hashed;
} TargetField;

// All that a version may set, in the order in which they are hashed.
const TargetField *target_fields(int *count);
const TargetField *target_field_at(size_t at);

// Of a field that is no text.
double target_field_number(const Target *target, const TargetField *field);

// The row: its base's with its settings.
Target target_of_version(const Framework *framework, const TargetVersion *version);

// The keys of a config file as a table: a row is spelled once, for reading and for writing. Rows stand in the order of
// the file. What is not a plain value of the plan is read by the folder's own code, by the path of its row.

#pragma once

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

typedef enum {
    KEY_WRITTEN,  // no value of the plan: written as literal or text, skipped when read
    KEY_AXIS,     // id: Axis
    KEY_SEQ,
    KEY_MICRO_BATCH,
    KEY_ACCUMULATION,
    KEY_BATCH,   // the global one
    KEY_CHOICE,  // id: PlanFieldId; a word for each value, of several for one the first is written
    KEY_NUMBER,  // id: PlanFieldId, which has its range
    KEY_SWITCH   // id: PlanFieldId; true is `on`, false is `off`
} ConfigMeaning;

typedef struct ConfigKey {
    const char *path;  // "training.seq_len"; NULL = the end
    ConfigMeaning means;
    int id;
    const ImportWord *words;
    int on, off;
    int least;                                  // of a number that is read; 0 = 1
    const char *literal;                        // the value written when the plan has none
    const char *(*text)(const ConfigJob *job);  // the same
    bool quoted;                                // the value is written in quotes
    bool (*when)(const ConfigJob *job);         // NULL = always written
} ConfigKey;

// What the file says of each row that means something, into import->said; the others that are always written become
// known.
Status config_read(Import *import, const ConfigKey *keys, Error *error);

// TOML: [section] and key = value. YAML: section: and key: value below it.
typedef enum { CONFIG_TOML, CONFIG_YAML } ConfigStyle;
void config_write(const ConfigJob *job, const ConfigKey *keys, ConfigStyle style, FILE *out);

// The members of a JSON object, a section on one line; the braces around them are the caller's.
void config_write_json(const ConfigJob *job, const ConfigKey *keys, FILE *out);

// What a framework's folder needs to read its config file as a plan: what the file sets, what it omits, and what
// is wrong with it. Loading files and resolving what they set is done by autotune/import.

#pragma once

#include "sim/frameworks/config_tree.h"
#include "sim/frameworks/target.h"
#include "sim/plan/plan_fields.h"

enum { IMPORT_UNSAID = PLAN_ANY };

// What a file or a command line sets; 0 = not set, for choices IMPORT_UNSAID.
typedef struct ImportChoices {
    int world;
    int size[AXIS_COUNT];
    int seq, micro_batch, grad_accum;
    int round_steps;  // of grad_accum, in each run of a pipeline's schedule; 0 = it runs once
    int64_t global_batch;
    int choice[PLAN_FIELD_COUNT];  // of the plan's other fields
} ImportChoices;

ImportChoices import_nothing_said(void);

typedef enum {
    FINDING_REFUSED,     // the framework does not start with this
    FINDING_TRAP,        // it starts, but does not do what the file seems to say
    FINDING_UNKNOWN,     // a key that the framework, or ndtune, does not know
    FINDING_UNMODELLED,  // the framework does it, but the prediction omits it
    FINDING_ASSUMED,     // the file does not say it
    FINDING_KIND_COUNT
} FindingKind;

extern const char *const finding_names[FINDING_KIND_COUNT];  // "refused" "trap" "ignored" "not modelled" "assumed"

typedef struct ImportFinding {
    FindingKind kind;
    const char *key;  // "fsdp_config.fsdp_version"; NULL
    int line;         // 0 = none
    const char *sentence;
} ImportFinding;

typedef struct Import Import;

// Where the file, or the user's script, holds what a change touches.
typedef struct ImportKeys {
    const char *mesh, *micro_batch, *reshard, *recompute, *rotate, *zero, *sync, *kernels, *overlap, *loss, *tp_overlap;
} ImportKeys;

// A program whose options have names of this format's and mean others.
typedef struct ImportOther {
    const char *program;  // as SHELL_PROGRAM has it with a blank before: " NAME ", "folder/"; NULL = the end
    const char *name;
} ImportOther;

typedef struct ImportFormat {
    const char *name;   // of --from-format
    const char *marks;  // keys by which such a file is known, with blanks between
    ImportKeys keys;
    Status (*read)(Import *import, Error *error);
    const ImportOther *others;  // NULL: none
} ImportFormat;

struct Import {
    const char *path;
    const ImportFormat *format;
    bool recognised;         // the format follows from the keys
    const ImportKeys *keys;  // as of the format, where this flavour has no others
    const char *flavour;     // "config of this, version 2"
    const char *target;      // whose plans it is predicted for: "name@version"
    const char *successor;   // the same framework with what replaces this; NULL
    const char *writes;      // the format of a file like it; NULL = its target's usual one
    ConfigNode *root;
    Arena *arena;
    ImportChoices said;
    const char *order_path, *order_key;  // a file of a pipeline's actions that the file names, and where; NULL
    const PpOrder *pp_order;             // what it says, where no schedule has its order
    struct {
        FindingKind kind;
        const char *words;
    } unknown, unknown_below;  // how a key that no reader takes is treated, at the top and inside a map
    ImportFinding *findings;
    int finding_count;
    size_t finding_capacity;
    const char *stages_beside;      // what the script holds where the batch leaves ranks for stages; NULL: no stages
    const char *refusal;            // why no plan follows from it; NULL
    bool refusal_is_ours;           // the framework would train it
    const char *model, *model_key;  // that the file names, and where; NULL
    const char *preset;             // the model of ndtune's own list that this is; NULL
    bool preset_by_sizes;           // which nothing else says
    const char **asked;             // paths that its reader looked up: candidates for suggestions
    int asked_count;
    size_t asked_capacity;
    bool is_read;         // the reader is done
    const char *left_to;  // the file that the reader refuses this one for; NULL
};

// ---- values

// The node at "a.b.c", marked as used; NULL.
ConfigNode *import_at(Import *import, const char *path);

// Each leaves *value alone where the key is absent, null or "auto"; *value is changed within low..high. A value of
// another type is an error "file:line: key: ...".
Status import_int(Import *import, const char *path, int64_t low, int64_t high, int *value, Error *error);
void import_note_default(Import *import, const char *path);  // that it is a script's default: each of these does
Status import_big(Import *import, const char *path, int64_t low, int64_t high, int64_t *value, Error *error);
Status import_number(Import *import, const char *path, double low, double high, double *value, Error *error);
Status import_bool(Import *import, const char *path, int *value, Error *error);
Status import_word(Import *import, const char *path, const char **value, Error *error);

// One of the words, case-insensitive; the list ends at NULL.
typedef struct ImportWord {
    const char *word;
    int value;
} ImportWord;
Status import_choice(Import *import, const char *path, const ImportWord *words, int *value, Error *error);
// The error of a value that is not what its key takes: "a whole number from 1 to 8". What only the running script knows
// is none, but said, and the key as if it was absent.
Status import_wrong(Import *import, const ConfigNode *node, const char *path, const char *what, Error *error);
bool import_same_word(const char *a, const char *b);  // but for case
bool import_has(Import *import, const char *path);    // and it is not null; marks nothing
bool import_is_on(Import *import, const char *path);  // as Python's bool(): not null, false, 0, empty; marks nothing

void import_find(Import *import, FindingKind kind, const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// No plan follows, as ndtune does not model it: the first such sentence is the refusal.
void import_refuse(Import *import, const char *path, const char *format, ...) __attribute__((format(printf, 3, 4)));

// A rule of a file: what is found where the condition holds, and else not looked at.
#define FIND_IF(condition, import, kind, ...)                                                                          \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            import_find(import, kind, __VA_ARGS__);                                                                    \
        }                                                                                                              \
    } while (0)
#define IMPORT_REFUSE_IF(condition, import, ...)                                                                       \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            import_refuse(import, __VA_ARGS__);                                                                        \
        }                                                                                                              \
    } while (0)

// A switch of the framework that changes time or memory and that no plan holds: named where the file switches it on.
typedef struct ImportLeftOut {
    const char *path;      // NULL = the end
    const char *quiet;     // its value that changes nothing, besides null, false, 0, "none" and "auto"; NULL
    const char *sentence;  // what it changes
} ImportLeftOut;
void import_leave_out(Import *import, const ImportLeftOut *rows);

// What the file keeps in the host's memory; that it is elsewhere is said.
void import_take_offload(Import *import, const char *path, Offload offload, const char *to);
// In the host's memory, where the file's switch for it is on.
void import_switch_offload(Import *import, bool on, const char *path, Offload offload);

// Names the preset that has these sizes, where there is one and the file names no model. 0 = not said.
typedef struct ImportSizes {
    int layers, hidden, ffn, heads, experts;
    double rope_theta;  // tells models of the same sizes apart
} ImportSizes;
void import_name_model(Import *import, const ImportSizes *sizes);

// Marks keys with everything below them as known and irrelevant to a plan. A row is one key or several with blanks
// between; NULL ends them. The other puts `above` before each.
void import_known(Import *import, const char *const *rows);
void import_known_below(Import *import, const char *above, const char *const *rows);

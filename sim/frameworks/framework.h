// A framework is a folder next to this file and a row of frameworks.c. Its versions are rows of settings: each extends
// another version, of the same framework or of one it builds on, and states only what it changes. Where a version
// runs otherwise, one row changes.

#pragma once

#include <stddef.h>

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"
#include "sim/frameworks/target.h"

// One field of Target with its value: a number of any kind, or a text. Ends at an empty setting.
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

// What a version's axes are named by: never by their roles, so it has an added axis where it says so only.
#define AXES_DP (AXIS_BIT(AXIS_DP_REPLICATE) | AXIS_BIT(AXIS_DP_SHARD))
#define AXES_CP AXIS_BIT(AXIS_CP)
#define AXES_SP AXIS_BIT(AXIS_SP)
#define AXES_TP AXIS_BIT(AXIS_TP)
#define AXES_PP AXIS_BIT(AXIS_PP)
#define AXES_EP AXIS_BIT(AXIS_EP)

typedef struct TargetVersion TargetVersion;
struct TargetVersion {
    const char *version;           // "1.14"; NULL = none of a framework, only to be extended
    const TargetVersion *extends;  // NULL = all off and 0
    const char *until;             // as of Target, not inherited
    const char *evidence;          // the same
    const TargetSetting *settings;
};

// Other names for it, or tools built on it. Rows with the same sentence are listed as one.
typedef struct FrameworkSynonym {
    const char *word;      // NULL = the end
    const char *sentence;  // "this or that is built on it"; NULL = just another spelling
} FrameworkSynonym;

// What publications call its runs, in small letters without what stands between words; the longest in a text counts.
typedef struct SourceName {
    const char *name;  // NULL = the end
    bool whole;        // an everyday word: the text is no more than that
    bool maker;        // its maker's: only where nothing else in the text is a name
} SourceName;

// How its log reports step time: an extended regular expression with the number as its second group, and its
// unit, where there is one, as its fourth.
typedef enum { STEP_SECONDS, STEP_MILLISECONDS, STEP_TOKENS_PER_S, STEP_STEPS_PER_S, STEP_BAR } StepQuantity;

typedef struct LogPattern {
    const char *name;  // NULL = the end
    const char *pattern;
    StepQuantity quantity;
    const char *words;  // for the list of formats: "tps:"; NULL = told with another
    bool average;       // one number for the whole run, its warm-up included
    bool anybodys;      // other programs print such lines too: tried after all others
} LogPattern;

#define LOG_NUMBER "([0-9][0-9,]*\\.?[0-9]*([eE][-+]?[0-9]+)?)"

// Published runs of it on one accelerator and the accuracy of their predictions: medians of the errors (predicted /
// measured - 1). tests/accuracy/runs holds them to the runs.
typedef struct MeasuredChip {
    const char *accelerator;  // as cluster profiles call it; NULL = the end
    int runs;
    int largest_world;
    double error, bias;
} MeasuredChip;

// How wide intervals are on one accelerator: times what profile and framework say together, so that they hold 80 % of
// runs whose source had no part in any constant (tests/accuracy/leave_out prints it).
typedef struct ChipWidth {
    const char *accelerator;  // NULL = the end
    double width;
    double far_spread;  // one-sigma, on top, of the ranks beyond those of autotune/predict/interval.c
} ChipWidth;

// Its published runs of models with experts, and how wide intervals are for them: one-sigma, on top of the above.
typedef struct MeasuredExperts {
    int runs;  // 0 = none, and the width is of autotune/predict/interval.c
    double error, bias;
    double spread;
} MeasuredExperts;

// Of a pipeline: the fullest stage, where its logs are of all of them.
typedef enum { LOGS_FULLEST, LOGS_FIRST, LOGS_LAST } LoggedStage;

typedef struct Framework {
    const char *name;                      // of the folder
    const TargetVersion *const *versions;  // the default one first; ends at NULL. None: it trains by another's
    const ExportFormat *const *formats;    // of its config files, the usual one first; ends at NULL; NULL = none
    // Why its packages cannot run a plan that its row allows: one sentence, arena text; NULL. NULL = no check.
    const char *(*refuse)(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
    // The same of ranks of experts, before the axis rules are checked; NULL = these are enough.
    const char *(*refuse_mesh)(const ModelSpec *model, const TrainPlan *plan, Arena *arena);
    const ImportFormat *config;        // the file of it that can be read; NULL = none
    const FrameworkSynonym *synonyms;  // NULL = none
    const SourceName *sources;         // NULL = its name and synonyms
    bool name_is_word;                 // an everyday one: no text means it by that
    const LogPattern *logs;            // NULL = none
    const char *log_name;              // whose logs they are, as text
    // What it calls micro-batch and accumulation, or the batch that takes its place; NULL = nothing of its own.
    const char *micro_batch, *accumulation;
    const char *compile;           // the setting that compiles its layers; NULL = none needed
    const char *fuse_loss;         // the setting that fuses head and loss; NULL = none needed
    const MeasuredChip *measured;  // NULL = no published run
    const ChipWidth *widths;       // NULL = as profile and framework say
    MeasuredExperts experts;       // on any accelerator
    const char *sync_each;         // the setting to reduce gradients on every micro-step; NULL = none needed
    bool accumulation_is_batch;    // the latter is the global batch
    const char *of_stages[2];  // in a pipeline: the micro-batch, and the batch that is cut into them; NULL = as above
    bool has_pipelines;        // its users would consider pipeline stages once a model spans nodes
    LoggedStage logged_stage;  // whose memory its logs hold
    bool logs_reserved;        // and what the allocator holds, not what lives
} Framework;

const Framework *const *framework_list(int *count);

// The one of that name; NULL.
const Framework *framework_of(const char *name);

// Its first synonym that a text is, or has; NULL.
const FrameworkSynonym *framework_synonym(const Framework *framework, const char *text,
                                          bool (*matches)(const char *text, const char *word));

// "this, that or another": those for which it holds.
char *framework_names(bool (*holds)(const Framework *framework), char *out, size_t bytes);

// ---- the fields of Target

typedef enum { FIELD_BOOL, FIELD_INT, FIELD_REAL, FIELD_AXES, FIELD_TEXT } TargetFieldKind;

typedef struct TargetField {
    const char *name;  // "runtime.host_s_per_op"
    size_t at;
    TargetFieldKind kind;
    bool hashed;
    const char *hashed_as;  // of one newer than stored hashes, which is hashed where it is set; NULL: by place
} TargetField;

// All that a version may set, in the order in which they are hashed.
const TargetField *target_fields(int *count);
const TargetField *target_field_at(size_t at);

// Of a field that is not text.
double target_field_number(const Target *target, const TargetField *field);

// What a version's settings do, in their order.
void target_set(Target *target, const TargetSetting *settings);

// The row: its base's with its settings.
Target target_of_version(const Framework *framework, const TargetVersion *version);

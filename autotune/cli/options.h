// The command line as data. Every option is one row; the parser, --help, the suggestions, the value checks and the echo
// of resolved options all read the same rows. The rows for the plan's choices are derived from the table of its fields.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/error.h"
#include "sim/plan/plan_fields.h"

// Commands of this version; a bitmask of these says which ones take an option.
typedef enum {
    COMMAND_PLAN,
    COMMAND_PREDICT,
    COMMAND_EXPLAIN,
    COMMAND_CHECK,
    COMMAND_RUN,
    COMMAND_VALIDATE,
    COMMAND_CALIBRATE,
    COMMAND_TUNE,
    COMMAND_EXPORT,
    COMMAND_REPORT,
    COMMAND_PROBE,
    COMMAND_PREFLIGHT,
    COMMAND_BLAME,
    COMMAND_RUNS,
    COMMAND_MODELS,
    COMMAND_CLUSTERS,
    COMMAND_ACCURACY,
    COMMAND_HELP,
    COMMAND_COUNT
} CommandId;

#define COMMAND_BIT(command) (1u << (command))

typedef enum {
    OPTION_WORLD,
    OPTION_NODES,
    OPTION_GPUS_PER_NODE,
    OPTION_MESH,
    OPTION_MODEL,
    OPTION_CLUSTER,
    OPTION_SET,
    OPTION_TARGET,
    OPTION_SEQ,
    OPTION_GLOBAL_BATCH,
    OPTION_MICRO_BATCH,
    OPTION_GRAD_ACCUM,
    OPTION_PRECISION,
    OPTION_FP8_RECIPE,
    OPTION_MASTER_WEIGHTS,
    OPTION_REDUCE_DTYPE,
    OPTION_ZERO,
    OPTION_RESHARD,
    OPTION_RECOMPUTE,
    OPTION_CP_ROTATE,
    OPTION_ATTENTION,
    OPTION_FUSED,
    OPTION_TP_OVERLAP,
    OPTION_RANK_ORDER,
    OPTION_MAX_TP,
    OPTION_MEMORY_LIMIT,
    OPTION_OBJECTIVE,
    OPTION_TOKENS,
    OPTION_MEASURED,
    OPTION_BASELINE,
    OPTION_EFFORT,
    OPTION_FROM,
    OPTION_FROM_FORMAT,
    OPTION_TOLERANCE,
    OPTION_LAYERS,
    OPTION_STEPS,
    OPTION_SEED,
    OPTION_LR,
    OPTION_DATA,
    OPTION_DEVICE,
    OPTION_TRANSPORT,
    OPTION_LAUNCHER,
    OPTION_HOSTS,
    OPTION_HOSTFILE,
    OPTION_LANES,
    OPTION_BITWISE,
    OPTION_DETERMINISTIC,
    OPTION_WARM_UP,
    OPTION_REPEATS,
    OPTION_SPREAD,
    OPTION_PROBABILITY,
    OPTION_WITHIN,
    OPTION_MAX_RUNS,
    OPTION_MAX_TIME,
    OPTION_WITH,
    OPTION_TIMEOUT,
    OPTION_TOP,
    OPTION_VERBOSE,
    OPTION_EXPLAIN,
    OPTION_FORMAT,
    OPTION_RUNS,
    OPTION_LOG,
    OPTION_OOM,
    OPTION_GROUPS,
    OPTION_LEAVE_ONE_SOURCE_OUT,
    OPTION_CSV,
    OPTION_HTML,
    OPTION_RUN,
    OPTION_OPEN,
    OPTION_TRACE,
    OPTION_SPANS,
    OPTION_MEMORY_SNAPSHOT,
    OPTION_AS,
    OPTION_OUT,
    OPTION_DB,
    OPTION_NO_CACHE,
    OPTION_MAN,
    OPTION_MARKDOWN,
    OPTION_COMPLETION,
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_OF_PLAN,  // for plan fields other than those named above
    OPTION_COUNT = OPTION_OF_PLAN + PLAN_FIELD_COUNT - (PLAN_REDUCE_DTYPE + 1)
} OptionId;

typedef enum {
    VALUE_FLAG,    // present or not
    VALUE_INT,     // low..high; "auto" where the words allow it
    VALUE_INTS,    // a list of distinct such numbers: "8,16,32"; or a product: "4x8"
    VALUE_NUMBER,  // low..high
    VALUE_ABOVE,   // a number above low, at most high
    VALUE_BYTES,   // "80e9" "64GiB", or into number "90%"
    VALUE_COUNT,   // "300e9" "2T"
    VALUE_WORD,    // one of words
    VALUE_SET,     // one of words, or several joined by + or commas
    VALUE_TEXT,
    VALUE_LIST,     // repeatable, and takes following words that contain '='
    VALUE_REPEATED  // repeatable
} ValueType;

typedef enum { GROUP_WHAT, GROUP_CHOICES, GROUP_RUN, GROUP_OUTPUT, GROUP_COUNT } OptionGroup;

typedef struct OptionRow {
    const char *name;  // without the leading dashes
    ValueType type;
    const char *value;     // the placeholder in help: "N" "FILE"; words separated by | are the allowed values
    int64_t low, high;     // VALUE_INT and VALUE_NUMBER, inclusive; VALUE_ABOVE excludes low
    const char *unit;      // "tokens"; NULL
    const char *fallback;  // the default as text; NULL = none or "required"
    const char *help;
    OptionGroup group;
    unsigned commands;  // COMMAND_BITs of the commands that take it
} OptionRow;

OptionRow option_row(OptionId id);
OptionRow option_row_of(OptionId id, CommandId command);  // with the first words only, where it takes no more
OptionId option_of(PlanFieldId id);                       // for every field
extern const char *const command_names[COMMAND_COUNT];
enum { COMMAND_NAMES_BYTES = 256, EVERY_COMMAND = (1u << COMMAND_COUNT) - 1 };
#define COMMANDS_BUFFER ((char[COMMAND_NAMES_BYTES]){0})  // room for one text: lives as long as the block around it
char *command_names_of(unsigned commands, char out[COMMAND_NAMES_BYTES]);  // from COMMAND_BITs: "plan, predict"
extern const char *const option_groups[GROUP_COUNT];                       // headings of the help text

typedef struct OptionValue {
    bool given;
    const char *text;  // as typed
    int64_t integer;   // VALUE_INT (0 = "auto"), VALUE_BYTES; VALUE_INTS: the first; VALUE_WORD: index among the words
    double number;     // VALUE_NUMBER, VALUE_ABOVE, VALUE_COUNT
    int argument;      // index in argv of the value (or of the option, for flags)
} OptionValue;

// One value of an option that may be repeated.
typedef struct RepeatedValue {
    OptionId id;
    const char *text;
    int argument;
} RepeatedValue;

enum { OPTIONS_MAX_SETS = 256, OPTIONS_MAX_WORDS = 24, OPTIONS_MAX_LIST = 64, OPTIONS_MAX_REPEATED = 256 };

typedef struct Options {
    OptionValue values[OPTION_COUNT];
    const char *sets[OPTIONS_MAX_SETS];  // of --set, in order
    int set_argument[OPTIONS_MAX_SETS];
    int set_count;
    RepeatedValue repeated[OPTIONS_MAX_REPEATED];  // of all VALUE_REPEATED options, in order
    int repeated_count;
    int64_t list[OPTIONS_MAX_LIST];  // of the VALUE_INTS option, ascending
    int list_count;
    const char *words[OPTIONS_MAX_WORDS];  // after the command, not options
    int word_argument[OPTIONS_MAX_WORDS];
    int word_count;
    char *const *tail;  // after "--": another program's command line
    int tail_count;
} Options;

// The error, and the arguments to underline: argv[blame] alone, -1 = none.
typedef struct ParseContext {
    int argc;
    char *const *argv;
    int first;  // first argument to parse
    CommandId command;
    int blame;
} ParseContext;

Status options_parse(ParseContext *context, Options *options, Error *error);

// Finds an option by its name without dashes; false where there is none. '-' and '_' are equivalent.
bool option_find(const char *name, OptionId *id);

// A hint for an option name from another program; NULL where nothing is known.
const char *option_called(const char *name);
const char *option_of_letter(const char *letter);  // of what follows a single dash, the whole hint

// The part of a help text or default for one command: "10; validate: 3" is "3" for validate, "10" for others.
char *option_words_of(const char *text, CommandId command, char *out, size_t bytes);

// The at-th value of a repeatable option, as given; NULL where there are fewer.
const RepeatedValue *options_repeated(const Options *options, OptionId id, int at);

// Copies the index-th of "a|b|c" into out; false when there is none.
bool option_word(const char *words, int index, char *out, size_t bytes);
// "FILE.csv", "LAYOUT": listed after the literal words.
bool option_stands_for_others(const char *word);

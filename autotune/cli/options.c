// Parses argv against the option table: --name VALUE, --name=VALUE, flags, and the words of a command. Errors state
// what is allowed; the argument to underline goes into context->blame.

#include "autotune/cli/options.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/text.h"
#include "sim/model/model.h"

enum { WORD_BYTES = 64 };

bool option_word(const char *words, int index, char *out, size_t bytes) {
    for (; index > 0 && words; index--) {
        words = strchr(words, '|');
        words = words ? words + 1 : NULL;
    }
    if (!words) {
        return false;
    }
    snprintf(out, bytes, "%.*s", (int)strcspn(words, "|"), words);
    return true;
}

bool option_stands_for_others(const char *word) {
    return isupper((unsigned char)word[0]) && isupper((unsigned char)word[1]);
}

// A usage error that points at the argument.
#define refuse(context, argument, error, ...)                                                                          \
    ((context)->blame = (argument), error_set(error, STATUS_USAGE, __VA_ARGS__))

// " (tokens)" or nothing.
static const char *unit_text(const OptionRow *row, char out[WORD_BYTES]) {
    out[0] = '\0';
    if (row->unit) {
        snprintf(out, WORD_BYTES, " (%s)", row->unit);
    }
    return out;
}

// "8k" is 8192 tokens and "1M" 1048576, as sequence lengths are called.
static bool parse_length(const char *text, int64_t *value) {
    const size_t length = strlen(text);
    const int64_t unit = length < 2                       ? 1
                         : strchr("kK", text[length - 1]) ? 1 << 10
                         : text[length - 1] == 'M'        ? 1 << 20
                                                          : 1;
    char digits[WORD_BYTES];
    if (unit == 1 || length >= sizeof digits) {
        return text_parse_int(text, value);
    }
    snprintf(digits, sizeof digits, "%.*s", (int)length - 1, text);
    const bool whole = text_parse_int(digits, value) && *value >= 0 && *value <= INT32_MAX;
    *value *= whole ? unit : 1;
    return whole;
}

static Status parse_int(ParseContext *context, const OptionRow *row, OptionValue *value, Error *error) {
    const bool may_be_auto = strncmp(row->value, "auto|", 5) == 0;
    if (may_be_auto && strcmp(value->text, "auto") == 0) {
        return STATUS_OK;
    }
    const bool tokens = row->unit && strcmp(row->unit, "tokens") == 0, plain = value->text[0] != '+';
    const bool whole =
        plain && (tokens ? parse_length(value->text, &value->integer) : text_parse_int(value->text, &value->integer));
    if (whole && value->integer >= row->low && value->integer <= row->high) {
        return STATUS_OK;
    }
    char unit[WORD_BYTES], range[WORD_BYTES];
    if (row->high == INT64_MAX) {
        snprintf(range, sizeof range, "of at least %" PRId64, row->low);
    } else {
        snprintf(range, sizeof range, "from %" PRId64 " to %" PRId64, row->low, row->high);
    }
    return refuse(context, value->argument, error, "--%s takes %sa whole number %s%s, not \"%s\"", row->name,
                  may_be_auto ? "auto or " : "", range, unit_text(row, unit), value->text);
}

// "4x8" as nodes and their accelerators, which then count as given.
static Status parse_product(ParseContext *context, Options *options, OptionValue *value, bool *found, Error *error) {
    const size_t digits = strspn(value->text, "0123456789");
    const char *rest = value->text + digits;
    const bool parted = digits > 0 && digits < WORD_BYTES && rest[0] && strchr("xX*", rest[0]);
    *found = parted && value->text[0] != '0' && rest[1] && rest[1 + strspn(rest + 1, "0123456789")] == '\0';  // no 0x8
    if (!*found) {
        return STATUS_OK;
    }
    static const OptionId ids[] = {OPTION_NODES, OPTION_GPUS_PER_NODE};
    char nodes[WORD_BYTES];
    snprintf(nodes, sizeof nodes, "%.*s", (int)digits, value->text);
    const char *texts[] = {nodes, rest + 1};
    for (int i = 0; i < 2; i++) {
        const OptionRow row = option_row(ids[i]);
        OptionValue one = {.given = true, .text = texts[i], .argument = value->argument};
        TRY(parse_int(context, &row, &one, error));
        one.text = value->text;
        options->values[ids[i]] = one;
    }
    value->given = false;  // settle_nodes multiplies
    return STATUS_OK;
}

// "8,16,32": each in the range, none twice; or "4x8".
static Status parse_ints(ParseContext *context, Options *options, const OptionRow *row, OptionValue *value,
                         Error *error) {
    options->list_count = 0;
    bool product;
    TRY(parse_product(context, options, value, &product, error));
    if (product) {
        return STATUS_OK;
    }
    const char *text = value->text;
    for (bool more = true; more;) {
        char item[WORD_BYTES];
        const size_t length = strcspn(text, ",");
        snprintf(item, sizeof item, "%.*s", (int)length, text);
        OptionValue one = {.text = length < sizeof item ? item : text, .argument = value->argument};
        TRY(parse_int(context, row, &one, error));
        FAIL_WITH(
            options->list_count == OPTIONS_MAX_LIST,
            refuse(context, value->argument, error, "--%s takes at most %d numbers", row->name, OPTIONS_MAX_LIST));
        for (int i = 0; i < options->list_count; i++) {
            FAIL_WITH(options->list[i] == one.integer,
                      refuse(context, value->argument, error, "--%s names %" PRId64 " twice", row->name, one.integer));
        }
        options->list[options->list_count++] = one.integer;
        more = text[length] == ',';
        text += length + more;
    }
    value->integer = options->list[0];
    return STATUS_OK;
}

// A plain number, or one with a suffix K, M, B or T.
static Status parse_count(ParseContext *context, const OptionRow *row, OptionValue *value, Error *error) {
    static const char letters[] = "KMBT";
    char digits[WORD_BYTES];
    const size_t length = strlen(value->text);
    const char *letter = length > 1 ? strchr(letters, value->text[length - 1]) : NULL;
    snprintf(digits, sizeof digits, "%.*s", (int)(letter ? length - 1 : length), value->text);
    double factor = 1;
    for (const char *at = letters; letter && at <= letter; at++) {
        factor *= 1000;
    }
    const double most = 1e18;  // beyond every data set, and exact in 64 bits
    if (length < sizeof digits && text_parse_double(digits, &value->number)) {
        value->number *= factor;
        if (value->number >= (double)row->low && value->number <= most) {
            return STATUS_OK;
        }
    }
    char unit[WORD_BYTES];
    return refuse(context, value->argument, error, "--%s takes a number such as 300e9 or 2T%s, not \"%s\"", row->name,
                  unit_text(row, unit), value->text);
}

static Status parse_number(ParseContext *context, const OptionRow *row, OptionValue *value, Error *error) {
    const bool above = row->type == VALUE_ABOVE;
    if (text_parse_double(value->text, &value->number) && value->number <= (double)row->high &&
        (value->number > (double)row->low || (!above && value->number >= (double)row->low))) {
        return STATUS_OK;
    }
    char unit[WORD_BYTES];
    return refuse(context, value->argument, error, "--%s takes a number %s %" PRId64 "%s %" PRId64 "%s, not \"%s\"",
                  row->name, above ? "above" : "from", row->low, above ? ", at most" : " to", row->high,
                  unit_text(row, unit), value->text);
}

// "90%", into value->number.
static bool parse_percent(OptionValue *value) {
    const size_t length = strlen(value->text);
    char digits[WORD_BYTES];
    if (length < 2 || length >= sizeof digits || value->text[length - 1] != '%') {
        return false;
    }
    snprintf(digits, sizeof digits, "%.*s", (int)length - 1, value->text);
    const bool read = text_parse_double(digits, &value->number) && value->number > 0 && value->number <= 100;
    value->number *= 0.01;
    return read;
}

static Status parse_bytes(ParseContext *context, const OptionRow *row, OptionValue *value, Error *error) {
    enum { LEAST_BYTES = 1000000 };
    if (parse_percent(value)) {
        return STATUS_OK;
    }
    value->number = 0;
    FAIL_WITH(text_parse_bytes(value->text, &value->integer) && value->integer > 0 && value->integer < LEAST_BYTES &&
                  strspn(value->text, "0123456789.") == strlen(value->text),
              refuse(context, value->argument, error, "--%s %s would be %s bytes: say %sGiB", row->name, value->text,
                     value->text, value->text));
    if (!text_parse_bytes(value->text, &value->integer) || value->integer <= 0) {
        return refuse(context, value->argument, error,
                      "--%s takes a size such as 70GiB, 80GB, 80e9 or 90%% (100%% at most), not \"%s\"", row->name,
                      value->text);
    }
    return STATUS_OK;
}

// Where a word may be a file or a layout, who takes the option reads it.
static bool is_read_later(const char *words, const char *text) {
    static const char suffix[] = ".csv";
    const size_t length = strlen(text), end = sizeof suffix - 1;
    return (strstr(words, "|FILE.csv") && length > end && strcmp(text + length - end, suffix) == 0) ||
           (strstr(words, "|LAYOUT") && strchr(text, '|'));
}

static Status parse_word(ParseContext *context, const OptionRow *row, OptionValue *value, Error *error) {
    char words[OPTIONS_MAX_WORDS][WORD_BYTES];
    const char *candidates[OPTIONS_MAX_WORDS];
    size_t count = 0;
    if (is_read_later(row->value, value->text)) {
        return STATUS_OK;
    }
    while (count < OPTIONS_MAX_WORDS && option_word(row->value, (int)count, words[count], WORD_BYTES) &&
           !option_stands_for_others(words[count])) {
        if (text_same_word(value->text, words[count])) {
            value->integer = (int64_t)count;
            return STATUS_OK;
        }
        candidates[count] = words[count];
        count++;
    }
    for (size_t i = 0; i < count; i++) {  // the first of those that go on with a dash
        const size_t length = strlen(value->text);
        if (length > 0 && strncmp(words[i], value->text, length) == 0 && words[i][length] == '-') {
            value->integer = (int64_t)i;
            return STATUS_OK;
        }
    }
    refuse(context, value->argument, error, "--%s takes %s, not \"%s\"", row->name, row->value, value->text);
    const char *nearest = text_nearest(value->text, candidates, count);
    return nearest ? error_hint(error, "did you mean %s?", nearest) : STATUS_USAGE;
}

static Status parse_set(ParseContext *context, const OptionRow *row, OptionValue *value, Error *error) {
    static const char between[] = "+,";
    const char *whole = value->text;
    for (const char *at = whole; *at; at += strspn(at, between)) {
        char member[WORD_BYTES];
        const size_t length = strcspn(at, between);
        snprintf(member, sizeof member, "%.*s", (int)length, at);
        OptionValue one = *value;
        one.text = member;
        TRY(parse_word(context, row, &one, error));
        value->integer = one.integer;
        at += length;
    }
    return *whole ? STATUS_OK : parse_word(context, row, value, error);
}

static Status parse_value(ParseContext *context, Options *options, const OptionRow *row, OptionValue *value,
                          Error *error) {
    typedef Status Parser(ParseContext * context, const OptionRow *row, OptionValue *value, Error *error);
    static Parser *const parsers[] = {
        [VALUE_INT] = parse_int,      [VALUE_COUNT] = parse_count, [VALUE_NUMBER] = parse_number,
        [VALUE_ABOVE] = parse_number, [VALUE_BYTES] = parse_bytes, [VALUE_WORD] = parse_word,
        [VALUE_SET] = parse_set,      [VALUE_REPEATED] = NULL};
    return row->type == VALUE_INTS ? parse_ints(context, options, row, value, error)
           : parsers[row->type]    ? parsers[row->type](context, row, value, error)
                                   : STATUS_OK;
}

static Status unknown_option(ParseContext *context, int argument, const char *name, Error *error) {
    const char *names[OPTION_COUNT];
    size_t count = 0;
    for (int i = 0; i < OPTION_COUNT; i++) {
        const OptionRow row = option_row((OptionId)i);
        if (row.commands & COMMAND_BIT(context->command)) {
            names[count++] = row.name;
        }
    }
    const char *command = command_names[context->command];
    refuse(context, argument, error, "unknown option --%s", name);
    const char *known = option_called(name);
    if (known) {
        return error_hint(error, "%s (ndtune help %s lists all options)", known, command);
    }
    const char *nearest = text_nearest(name, names, count);
    if (nearest) {
        return error_hint(error, "did you mean --%s? (ndtune help %s lists all options)", nearest, command);
    }
    return error_hint(error, "ndtune help %s lists all options", command);
}

// Checks that the command takes the option; --mesh on plan and --world on predict have an answer of their own.
static Status check_command(ParseContext *context, int argument, OptionId id, Error *error) {
    const OptionRow row = option_row(id);
    if (row.commands & COMMAND_BIT(context->command)) {
        return STATUS_OK;
    }
    refuse(context, argument, error, "ndtune %s does not take --%s; it belongs to %s", command_names[context->command],
           row.name, command_names_of(row.commands, COMMANDS_BUFFER));
    const bool one_shape = id == OPTION_WORLD || id == OPTION_NODES;
    if (id == OPTION_AS) {
        return error_hint(error, "--target NAME predicts for a framework; ndtune export --as NAME writes its config");
    }
    return one_shape ? error_hint(error, "--mesh says the shape, such as --mesh dp_shard=32; ndtune --world 32 ranks "
                                         "all shapes")
           : id == OPTION_MESH
               ? error_hint(error, "ndtune predict --mesh ... is one shape; --baseline compares one with the "
                                   "best")
               : STATUS_USAGE;
}

static Status add_set(ParseContext *context, Options *options, const char *text, int argument, Error *error) {
    if (options->set_count == OPTIONS_MAX_SETS) {
        context->blame = argument;
        return error_set(error, STATUS_USAGE, "more than %d overrides", OPTIONS_MAX_SETS);
    }
    options->sets[options->set_count] = text;
    options->set_argument[options->set_count++] = argument;
    return STATUS_OK;
}

static Status add_repeated(ParseContext *context, Options *options, OptionId id, const OptionValue *value,
                           Error *error) {
    if (options->repeated_count == OPTIONS_MAX_REPEATED) {
        context->blame = value->argument;
        return error_set(error, STATUS_USAGE, "more than %d values of options that may be repeated",
                         OPTIONS_MAX_REPEATED);
    }
    options->repeated[options->repeated_count++] = (RepeatedValue){id, value->text, value->argument};
    return STATUS_OK;
}

const RepeatedValue *options_repeated(const Options *options, OptionId id, int at) {
    for (int i = 0; i < options->repeated_count; i++) {
        if (options->repeated[i].id == id && at-- == 0) {
            return &options->repeated[i];
        }
    }
    return NULL;
}

static Status store_value(ParseContext *context, Options *options, OptionId id, Error *error) {
    OptionValue *value = &options->values[id];
    const OptionRow row = option_row_of(id, context->command);
    FAIL_WITH(id == OPTION_FORMAT && context->command != COMMAND_CHECK && strcmp(value->text, "github") == 0,
              refuse(context, value->argument, error,
                     "--format github is of ndtune check; %s prints table, json or csv",
                     command_names[context->command]));
    value->given = true;
    return row.type == VALUE_LIST       ? add_set(context, options, value->text, value->argument, error)
           : row.type == VALUE_REPEATED ? add_repeated(context, options, id, value, error)
                                        : parse_value(context, options, &row, value, error);
}

// The name of an option, which is never another option's value.
static bool is_option(const char *word) {
    OptionId id;
    char name[WORD_BYTES];
    if (strncmp(word, "--", 2) != 0 || word[2] == '\0') {
        return false;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    return option_find(name, &id);
}

// Reads the option at argv[*at] and its values; *at moves to the last argument used.
static Status parse_option(ParseContext *context, Options *options, int *at, Error *error) {
    const char *word = context->argv[*at] + 2;
    const size_t length = strcspn(word, "=");
    char name[WORD_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    OptionId id;
    if (length >= sizeof name || !option_find(name, &id)) {
        return unknown_option(context, *at, name, error);
    }
    const OptionRow row = option_row_of(id, context->command);
    TRY(check_command(context, *at, id, error));
    OptionValue *value = &options->values[id];
    FAIL_WITH(value->given && row.type != VALUE_LIST && row.type != VALUE_REPEATED && row.type != VALUE_FLAG,
              refuse(context, *at, error, "--%s is given twice", row.name));
    if (row.type == VALUE_FLAG && word[length] == '=') {
        return refuse(context, *at, error, "--%s takes no value", row.name);
    }
    FAIL_WITH(row.type != VALUE_FLAG && word[length] != '=' && *at + 1 >= context->argc,
              refuse(context, *at, error, "--%s needs a value: %s", row.name, row.value));
    if (row.type != VALUE_FLAG && word[length] != '=') {
        (*at)++;
        FAIL_WITH(is_option(context->argv[*at]),
                  refuse(context, *at - 1, error, "--%s needs a value: %s", row.name, row.value));
    }
    value->text = row.type == VALUE_FLAG ? "" : word[length] == '=' ? word + length + 1 : context->argv[*at];
    value->argument = *at;
    TRY(store_value(context, options, id, error));
    while (row.type == VALUE_LIST && *at + 1 < context->argc && context->argv[*at + 1][0] != '-' &&
           strchr(context->argv[*at + 1], '=')) {
        (*at)++;
        TRY(add_set(context, options, context->argv[*at], *at, error));
    }
    return STATUS_OK;
}

static Status parse_word_argument(ParseContext *context, Options *options, int at, Error *error) {
    const char *word = context->argv[at];
    if (word[0] == '-' && word[1] != '\0') {
        OptionId id;
        char name[WORD_BYTES];
        snprintf(name, sizeof name, "%s", word + 1);
        refuse(context, at, error, "options start with two dashes, not %s", word);
        const char *meant = option_of_letter(name);
        return option_find(name, &id) ? error_hint(error, "did you mean --%s?", name)
               : meant                ? error_hint(error, "%s", meant)
                       : error_hint(error, "ndtune help %s lists all options", command_names[context->command]);
    }
    const unsigned takes_words = COMMAND_BIT(COMMAND_MODELS) | COMMAND_BIT(COMMAND_CLUSTERS) |
                                 COMMAND_BIT(COMMAND_RUNS) | COMMAND_BIT(COMMAND_HELP) | COMMAND_BIT(COMMAND_BLAME) |
                                 COMMAND_BIT(COMMAND_CHECK);
    const int most_words = context->command == COMMAND_CHECK ? 2 : 1;
    const OptionRow model = option_row(OPTION_MODEL);
    if ((model.commands & COMMAND_BIT(context->command) & ~takes_words) && !options->values[OPTION_MODEL].given &&
        model_is_known(word)) {
        options->values[OPTION_MODEL] = (OptionValue){.given = true, .text = word, .argument = at};
        return STATUS_OK;
    }
    FAIL_WITH(
        !(COMMAND_BIT(context->command) & takes_words) || options->word_count == most_words,
        refuse(context, at, error, "ndtune %s does not expect the word %s", command_names[context->command], word));
    options->words[options->word_count] = word;
    options->word_argument[options->word_count++] = at;
    return STATUS_OK;
}

// World, nodes and accelerators of a node: two of them give the third.
static Status settle_nodes(ParseContext *context, Options *options, Error *error) {
    OptionValue *world = &options->values[OPTION_WORLD], *each = &options->values[OPTION_GPUS_PER_NODE];
    const OptionValue *nodes = &options->values[OPTION_NODES];
    if (!nodes->given) {
        return STATUS_OK;
    }
    if (world->given && !each->given && world->integer % nodes->integer == 0) {
        *each = (OptionValue){.given = true, .text = nodes->text, .argument = nodes->argument};
        each->integer = world->integer / nodes->integer;
    }
    const int64_t product = nodes->integer * each->integer;
    FAIL_WITH(world->given && (options->list_count > 1 || product != world->integer),
              refuse(context, nodes->argument, error,
                     "--nodes %" PRId64 " does not go with --world %s; one of them is enough", nodes->integer,
                     world->text));
    const OptionRow row = option_row(OPTION_WORLD);
    FAIL_WITH(product > row.high, refuse(context, nodes->argument, error,
                                         "%" PRId64 " accelerators are more than %" PRId64, product, row.high));
    if (each->given && !world->given) {
        *world = (OptionValue){.given = true, .text = nodes->text, .argument = nodes->argument, .integer = product};
        options->list[0] = product;
        options->list_count = 1;
    }
    return STATUS_OK;
}

Status options_parse(ParseContext *context, Options *options, Error *error) {
    *options = (Options){0};
    context->blame = -1;
    for (int at = context->first; at < context->argc; at++) {
        const char *word = context->argv[at];
        if (strcmp(word, "--") == 0 && context->command == COMMAND_VALIDATE) {
            options->tail = context->argv + at + 1;
            options->tail_count = context->argc - at - 1;
            break;
        }
        if (strcmp(word, "-h") == 0) {
            options->values[OPTION_HELP].given = true;
        } else if (strncmp(word, "--", 2) == 0 && word[2] != '\0') {
            TRY(parse_option(context, options, &at, error));
        } else {
            TRY(parse_word_argument(context, options, at, error));
        }
    }
    return settle_nodes(context, options, error);
}

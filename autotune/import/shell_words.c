// Shell expansion.

#include "autotune/import/shell_words.h"

#include <ctype.h>
#include <string.h>

#include "sim/base/text.h"

typedef struct Building {
    Shell *shell;
    ShellList *into;
    char *text;
    size_t length, capacity;
    int line;
    bool open;  // a word has begun, even if only an empty pair of quotes
    bool split;
} Building;

void shell_push(Shell *shell, ShellList *list, const char *text, int line) {
    ARENA_PUSH(shell->source->arena, list->words, list->count, &list->capacity) = (ShellWord){text, line};
}

ShellVariable *shell_variable(const Shell *shell, const char *name, size_t length) {
    for (int i = 0; i < shell->variable_count; i++) {
        const char *known = shell->variables[i].name;
        if (strncmp(known, name, length) == 0 && known[length] == '\0') {
            return &shell->variables[i];
        }
    }
    return NULL;
}

void shell_set(Shell *shell, const char *name, ShellList value) {
    ShellVariable *known = shell_variable(shell, name, strlen(name));
    if (!known) {
        known = &ARENA_PUSH(shell->source->arena, shell->variables, shell->variable_count, &shell->variable_capacity);
        known->name = name;
    }
    known->value = value;
}

// ---- one word after the other

static void begin(Building *word, int line) {
    if (!word->open) {
        word->open = true;
        word->line = line;
        word->length = word->capacity = 0;
        word->text = NULL;
    }
}

static void put(Building *word, char letter, int line) {
    begin(word, line);
    ARENA_PUSH(word->shell->source->arena, word->text, word->length, &word->capacity) = letter;
    ++*word->shell->made;
}

static void end(Building *word) {
    if (word->open) {
        const char *text =
            word->length ? arena_format(word->shell->source->arena, "%.*s", (int)word->length, word->text) : "";
        shell_push(word->shell, word->into, text, word->line);
        *word->shell->made += sizeof(ShellWord);
    }
    word->open = false;
}

// How deep a command or a sum that was left as it is, $( ), goes on behind this letter of a text.
static int depth_behind(const char *text, const char *at, int depth) {
    const bool opens = *at == '(' && (depth > 0 || (at > text && at[-1] == '$'));
    return depth + (opens ? 1 : *at == ')' && depth > 0 ? -1 : 0);
}

// An unquoted value is split at its spaces, but not within $( ); a line end in it counts as a line of the file.
static void put_value(Building *word, const ShellWord *value, bool quoted) {
    int line = value->line, depth = 0;
    for (const char *at = value->text; *at; at++) {
        depth = depth_behind(value->text, at, depth);
        const bool space = depth == 0 && isspace((unsigned char)*at);
        if (space && !quoted && word->split) {
            end(word);
        } else {
            put(word, *at == '\n' ? ' ' : *at, quoted && word->open ? word->line : line);
        }
        line += *at == '\n';
    }
}

static void put_raw(Building *word, const char *from, const char *to) {
    for (; from < to; from++) {
        put(word, *from == '\n' ? ' ' : *from, word->shell->line);
    }
}

// The position after the bracket that closes the one at `open`; NULL where there is none.
static const char *closing(const char *open, char left, char right) {
    int depth = 0;
    for (const char *at = open; *at; at++) {
        depth += *at == left ? 1 : *at == right ? -1 : 0;
        if (depth == 0) {
            return at + 1;
        }
    }
    return NULL;
}

// ---- integer arithmetic

typedef struct Sum {
    const Shell *shell;
    const char *at;
    int depth;
    bool failed;
} Sum;

static int64_t sum_of(Sum *sum);

static int64_t value_of(Sum *sum) {
    sum->at += strspn(sum->at, " \t\n");
    int64_t number = 0;
    const size_t digits = strspn(sum->at, "0123456789");
    char text[24];
    if (*sum->at == '(' && sum->depth++ < SHELL_DEPTH_MOST) {
        sum->at++;
        number = sum_of(sum);
        sum->failed |= *sum->at != ')';
        sum->at += *sum->at == ')';
    } else if (digits > 0 && digits < sizeof text) {
        memcpy(text, sum->at, digits);
        text[digits] = '\0';
        sum->failed |= !text_parse_int(text, &number);
        sum->at += digits;
    } else {
        const size_t brace = *sum->at == '$' ? 1 + (sum->at[1] == '{') : 0;
        const size_t length = name_length(sum->at + brace);
        const ShellVariable *known = length ? shell_variable(sum->shell, sum->at + brace, length) : NULL;
        const bool plain = known && known->value.count == 1;
        sum->failed |= !plain || !text_parse_int(known->value.words[0].text, &number);
        sum->at += brace + length + (brace == 2 && sum->at[brace + length] == '}');
    }
    sum->at += strspn(sum->at, " \t\n");
    return number;
}

static int64_t product_of(Sum *sum) {
    int64_t product = value_of(sum);
    while (!sum->failed && *sum->at && strchr("*/%", *sum->at)) {
        const char sign = *sum->at++;
        const int64_t other = value_of(sum);
        sum->failed |= sign != '*' && (other == 0 || other == -1);
        if (!sum->failed && sign == '*') {
            sum->failed |= __builtin_mul_overflow(product, other, &product);
        } else if (!sum->failed) {
            product = sign == '/' ? product / other : product % other;
        }
    }
    return product;
}

static int64_t sum_of(Sum *sum) {
    int64_t total = product_of(sum);
    while (!sum->failed && (*sum->at == '+' || *sum->at == '-')) {
        const char sign = *sum->at++;
        const int64_t other = product_of(sum);
        sum->failed |=
            sign == '+' ? __builtin_add_overflow(total, other, &total) : __builtin_sub_overflow(total, other, &total);
    }
    return total;
}

static bool arithmetic(const Shell *shell, const char *from, const char *to, int64_t *number) {
    char *text = arena_format(shell->source->arena, "%.*s", (int)(to - from), from);
    Sum sum = {.shell = shell, .at = text};
    *number = sum_of(&sum);
    return !sum.failed && *sum.at == '\0';
}

// ---- $

// Up to the end of the text, as if quoted: a variable's default.
static Status shell_text(Shell *shell, const char *text, const char **value) {
    Shell below = *shell;
    ShellList list = {0};
    below.at = text;
    below.sets = false;
    below.depth++;
    const char *all = "";
    enum { DEFAULT_WORDS_MOST = 1000 };
    FAIL_WITH(
        below.depth > SHELL_DEPTH_MOST,
        config_malformed(shell->source, shell->line, "defaults within defaults, deeper than %d", SHELL_DEPTH_MOST));
    while (*below.at) {
        const char *before = below.at;
        TRY(shell_word(&below, &list, false));
        below.at += below.at == before;  // a character that ends words: skipped
        FAIL_WITH(list.count > DEFAULT_WORDS_MOST,
                  config_malformed(shell->source, shell->line, "a default of more than %d words", DEFAULT_WORDS_MOST));
    }
    for (int i = 0; i < list.count; i++) {
        all = arena_format(shell->source->arena, "%s%s%s", all, i > 0 ? " " : "", list.words[i].text);
    }
    *value = all;
    return STATUS_OK;
}

static bool is_list(const char *text) {
    return strncmp(text, "[@]", 3) == 0 || strncmp(text, "[*]", 3) == 0;
}

typedef enum { TAKE_FIRST, TAKE_ALL, TAKE_JOINED } Take;  // NAME, NAME[@], NAME[*]

// "${NAME[*]}" is one word, as each is behind "=".
static void put_variable(Building *word, const ShellVariable *known, Take take, bool quoted) {
    const bool all = take != TAKE_FIRST, joined = !word->split || (quoted && take == TAKE_JOINED);
    for (int i = 0; i < known->value.count && (all || i == 0); i++) {
        if (i > 0 && joined) {
            put(word, ' ', word->line);
        } else if (i > 0) {
            end(word);
        }
        if (quoted && all) {
            begin(word, known->value.words[i].line);
        }
        put_value(word, &known->value.words[i], quoted);
    }
}

// ${NAME}, ${NAME[@]}, ${NAME:-default}, ${NAME-default}, ${NAME:=default}, ${1:-default}, ${NAME:+words where it is
// set}; other forms stay as text.
static Status put_braces(Building *word, bool quoted) {
    Shell *shell = word->shell;
    const char *open = shell->at + 1, *close = closing(open, '{', '}');
    FAIL_WITH(!close, config_malformed(shell->source, shell->line, "a brace that does not end"));
    const char *name = open + 1;
    const size_t length = name_length(name);
    const char *rest = name + (length ? length : strspn(name, "0123456789"));  // ${1:-default}
    const bool all = is_list(rest);
    const Take take = !all ? TAKE_FIRST : rest[1] == '*' ? TAKE_JOINED : TAKE_ALL;
    rest += all ? 3 : 0;
    const ShellVariable *known = length ? shell_variable(shell, name, length) : NULL;
    const size_t sign = *rest == ':' && rest[1] && strchr("-=+", rest[1]) ? 2 : *rest && strchr("-=+", *rest) ? 1 : 0;
    const bool plain = *rest == '}', instead = sign && rest[sign - 1] == '+';
    const bool empty = !known || (sign == 2 && known->value.count == 1 && known->value.words[0].text[0] == '\0');
    if (known && (plain || (sign && !empty && !instead))) {
        put_variable(word, known, take, quoted);
    } else if (sign && instead == !empty) {
        const char *value = "";
        TRY(shell_text(shell, arena_format(shell->source->arena, "%.*s", (int)(close - 1 - (rest + sign)), rest + sign),
                       &value));
        const ShellWord made = {value, shell->line};
        put_value(word, &made, quoted);
        if (shell->sets && length && !all && rest[sign - 1] == '=') {
            ShellList set = {0};
            shell_push(shell, &set, value, shell->line);
            shell_set(shell, arena_format(shell->source->arena, "%.*s", (int)length, name), set);
        }
    } else if (!instead && !(all && plain)) {  // an unset array is empty
        put_raw(word, shell->at, close);
    }
    for (const char *at = shell->at; at < close; at++) {
        shell->line += *at == '\n';
    }
    shell->at = close;
    return STATUS_OK;
}

static Status put_quoted(Building *word, char quote);

// $'...', in which a backslash speaks for the next letter too.
static Status put_escaped(Building *word) {
    Shell *shell = word->shell;
    const int line = shell->line;
    begin(word, line);
    for (shell->at += 2; *shell->at && *shell->at != '\''; shell->at++) {
        if (*shell->at == '\\' && shell->at[1]) {
            shell->at++;
            put(word, *shell->at == 'n' || *shell->at == 't' ? ' ' : *shell->at, line);
        } else {
            put(word, *shell->at, line);
        }
        shell->line += *shell->at == '\n';
    }
    FAIL_WITH(!*shell->at, config_malformed(shell->source, line, "a quote that does not end"));
    shell->at++;
    return STATUS_OK;
}

static Status put_dollar(Building *word, bool quoted) {
    Shell *shell = word->shell;
    const char next = shell->at[1];
    if (!quoted && next == '\'') {
        return put_escaped(word);
    }
    if (!quoted && next == '"') {
        shell->at++;
        return put_quoted(word, '"');
    }
    const size_t length = name_length(shell->at + 1);
    int64_t number;
    if (next == '{') {
        return put_braces(word, quoted);
    }
    if (next == '(') {
        const char *close = closing(shell->at + 1, '(', ')');
        FAIL_WITH(!close, config_malformed(shell->source, shell->line, "a bracket that does not end"));
        if (shell->at[2] == '(' && close[-2] == ')' && arithmetic(shell, shell->at + 3, close - 2, &number)) {
            const ShellWord made = {arena_format(shell->source->arena, "%lld", (long long)number), shell->line};
            put_value(word, &made, true);
        } else {
            put_raw(word, shell->at, close);
        }
        for (; shell->at < close; shell->at++) {
            shell->line += *shell->at == '\n';
        }
        return STATUS_OK;
    }
    const ShellVariable *known = length ? shell_variable(shell, shell->at + 1, length) : NULL;
    const size_t signs = length > 0                                                      ? 1 + length
                         : (next == '\0' || isspace((unsigned char)next) || next == '"') ? 1
                                                                                         : 2;
    if (known) {
        put_variable(word, known, TAKE_FIRST, quoted);
    } else {
        put_raw(word, shell->at, shell->at + signs);
    }
    shell->at += signs;
    return STATUS_OK;
}

// ---- quotes

// Up to the closing quote, which is consumed.
static Status put_quoted(Building *word, char quote) {
    Shell *shell = word->shell;
    const int line = shell->line;
    begin(word, line);
    for (shell->at++; *shell->at && *shell->at != quote;) {
        const char letter = *shell->at;
        if (quote == '"' && letter == '\\' && shell->at[1]) {
            shell->at++;
            put(word, *shell->at, shell->line);  // a line end is kept, so that lines are counted
        } else if (quote == '"' && letter == '$') {
            TRY(put_dollar(word, true));
            continue;
        } else {
            put(word, letter, shell->line);
        }
        shell->line += *shell->at == '\n';
        shell->at++;
    }
    FAIL_WITH(*shell->at != quote, config_malformed(shell->source, line, "a quote that does not end"));
    shell->at++;
    return STATUS_OK;
}

Status shell_word(Shell *shell, ShellList *list, bool split) {
    Building word = {.shell = shell, .into = list, .split = split};
    while (*shell->at && !strchr(" \t\r\n;&|<>()", *shell->at)) {
        FAIL_WITH(list->count > SHELL_WORDS_MOST || *shell->made > SHELL_BYTES_MOST,
                  config_malformed(shell->source, shell->line, "variables within variables make more than %d words",
                                   SHELL_WORDS_MOST));
        if (*shell->at == '"' || *shell->at == '\'') {
            TRY(put_quoted(&word, *shell->at));
        } else if (*shell->at == '$') {
            TRY(put_dollar(&word, false));
        } else if (*shell->at == '\\') {
            shell->line += shell->at[1] == '\n';
            if (shell->at[1] && shell->at[1] != '\n') {
                put(&word, shell->at[1], shell->line);
            }
            shell->at += 1 + (shell->at[1] != '\0');
        } else {
            put(&word, *shell->at++, shell->line);
        }
    }
    end(&word);
    return STATUS_OK;
}

// Quotes mean nothing there; a backslash is one but before $, `, itself and a line end.
Status shell_document(Shell *shell, const char *body, const char **text) {
    Shell below = *shell;
    ShellList list = {0};
    Building word = {.shell = &below, .into = &list};
    below.at = body;
    for (begin(&word, below.line); *below.at; begin(&word, below.line)) {
        FAIL_WITH(*shell->made > SHELL_BYTES_MOST,
                  config_malformed(shell->source, shell->line, "variables within variables make more than %d letters",
                                   SHELL_BYTES_MOST));
        if (*below.at == '$') {
            TRY(put_dollar(&word, true));
            continue;
        }
        if (*below.at == '\\' && below.at[1] == '\n') {
            below.at += 2;
            continue;
        }
        below.at += *below.at == '\\' && below.at[1] && strchr("$`\\", below.at[1]);
        put(&word, *below.at++, below.line);
    }
    end(&word);
    *text = "";
    for (int i = 0; i < list.count; i++) {
        *text = i == 0 ? list.words[0].text : arena_format(shell->source->arena, "%s %s", *text, list.words[i].text);
    }
    return STATUS_OK;
}

bool shell_is_one_of(const char *word, const char *const *words) {
    while (*words && strcmp(word, *words) != 0) {
        words++;
    }
    return *words != NULL;
}

void shell_split(Shell *shell, const ShellWord *value, ShellList *words) {
    int line = value->line;
    for (const char *at = value->text; *at;) {
        const size_t blank = strspn(at, " \t\r\n");
        const char *word = at + blank, *end = word;
        for (int depth = 0; *end && (depth > 0 || !strchr(" \t\r\n", *end)); end++) {
            depth = depth_behind(word, end, depth);
        }
        for (size_t i = 0; i < blank; i++) {
            line += at[i] == '\n';
        }
        if (end > word) {
            shell_push(shell, words, arena_format(shell->source->arena, "%.*s", (int)(end - word), word), line);
        }
        at = end;
    }
}

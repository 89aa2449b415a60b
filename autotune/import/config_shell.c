// A bash launch script as a tree: the command with the most options, with variables and arrays expanded. "--name value"
// is the key "--name", with several values a list, with none "true"; a.b=value, as in Hydra, is b in the map a; what
// precedes the program is in the map "launcher". A script that only sets variables is read as if all of them were
// given. Of `if` the branch that the script itself decides; what only the environment decides counts as unset. Bodies
// of loops and of `case` are left out.

#include <string.h>

#include "autotune/import/shell_starts.h"
#include "sim/base/text.h"

typedef enum { FRAME_IF, FRAME_SKIPPED } FrameKind;

typedef struct Frame {
    FrameKind kind;
    const char *end;            // the word that ends it
    bool outer, taken, active;  // outer: the enclosing block is read
} Frame;

enum { FRAMES_MOST = 64 };

typedef struct Script {
    Shell shell;
    size_t made_bytes;
    Frame frames[FRAMES_MOST];
    int frame_count;
    bool testing, truth;  // between `if` and `then`; the result of its commands so far
    char joined;          // '&' or '|' before the command; 0 = none
    ShellList best;
    int best_options;
    ShellWord config;   // that a command is given; text NULL: none is
    ShellList sourced;  // other scripts, which are not read
} Script;

static bool is_active(const Script *script) {
    return script->frame_count == 0 || script->frames[script->frame_count - 1].active;
}

// ---- conditions of `if`

static bool is_unknown(const char *word) {
    return word[0] == '\0' || strchr(word, '$') || strchr(word, '`');
}

static bool compare(const char *left, const char *sign, const char *right) {
    static const char *const signs[] = {"-eq", "-ne", "-gt", "-ge", "-lt", "-le"};
    if (strcmp(sign, "=") == 0 || strcmp(sign, "==") == 0 || strcmp(sign, "!=") == 0) {
        left = is_unknown(left) ? "" : left;
        return (strcmp(left, is_unknown(right) ? "" : right) == 0) == (sign[0] == '=');
    }
    int64_t a, b;
    if (!text_parse_int(left, &a) || !text_parse_int(right, &b)) {
        return false;
    }
    const bool truths[] = {a == b, a != b, a > b, a >= b, a < b, a <= b};
    const int at = text_index(signs, 6, sign);
    return at >= 0 && truths[at];
}

// [ a = b ], [[ -z a ]]; false for every other command.
static bool is_true(const ShellList *command) {
    int first = 0, last = command->count;
    const ShellWord *words = command->words;
    bool truth = true;
    for (; first < last; first++) {
        const char *word = words[first].text;
        if (strcmp(word, "!") == 0) {
            truth = !truth;
        } else if (strcmp(word, "[") != 0 && strcmp(word, "[[") != 0) {
            break;
        }
    }
    last -= last > first && words[last - 1].text[0] == ']';
    const int count = last - first;
    if (count == 3) {
        return compare(words[first].text, words[first + 1].text, words[first + 2].text) == truth;
    }
    if (count == 2 && (strcmp(words[first].text, "-z") == 0 || strcmp(words[first].text, "-n") == 0)) {
        return (is_unknown(words[first + 1].text) == (words[first].text[1] == 'z')) == truth;
    }
    return !truth && count == 2 && words[first].text[0] == '-';  // no file exists
}

static void take_test(Script *script, const ShellList *command) {
    const bool truth = is_true(command);
    script->truth = script->joined == '&'   ? script->truth && truth
                    : script->joined == '|' ? script->truth || truth
                                            : truth;
}

// ---- words that introduce a command

static Status enter(Script *script, FrameKind kind, const char *end) {
    FAIL_WITH(script->frame_count == FRAMES_MOST,
              config_malformed(script->shell.source, script->shell.line, "nested deeper than %d", FRAMES_MOST));
    const bool outer = is_active(script);
    script->frames[script->frame_count++] = (Frame){kind, end, outer, false, false};
    script->testing = kind == FRAME_IF;
    script->joined = 0;
    return STATUS_OK;
}

// Whether the word is a shell keyword, which is then consumed.
static Status take_keyword(Script *script, const char *word, bool *taken) {
    static const char *const loops[] = {"for", "while", "until", "select", "case", NULL};
    static const char *const plain[] = {"do", "{", "}", "time", "exec", "function", NULL};
    Frame *frame = script->frame_count ? &script->frames[script->frame_count - 1] : NULL;
    *taken = true;
    if (shell_is_one_of(word, loops)) {
        return enter(script, FRAME_SKIPPED, strcmp(word, "case") == 0 ? "esac" : "done");
    }
    if (strcmp(word, "if") == 0) {
        return enter(script, FRAME_IF, "fi");
    }
    if (frame && strcmp(word, frame->end) == 0) {
        script->frame_count--;
        script->testing = false;
        return STATUS_OK;
    }
    if (frame && frame->kind == FRAME_IF && strcmp(word, "then") == 0) {
        frame->active = frame->outer && !frame->taken && script->truth;
        frame->taken |= frame->active;
        script->testing = false;
        return STATUS_OK;
    }
    if (frame && frame->kind == FRAME_IF && (strcmp(word, "elif") == 0 || strcmp(word, "else") == 0)) {
        script->testing = word[2] == 'i';
        script->joined = 0;
        frame->active = !script->testing && frame->outer && !frame->taken;
        return STATUS_OK;
    }
    *taken = shell_is_one_of(word, plain);
    return STATUS_OK;
}

// ---- NAME=value, NAME+=value, NAME=( values )

static void skip_blank(Shell *shell, bool lines) {
    for (;;) {
        shell->at += strspn(shell->at, " \t\r");
        if (shell->at[0] == '\\' && shell->at[1] == '\n') {
            shell->line++;
            shell->at += 2;
        } else if (lines && *shell->at == '#') {
            shell->at += strcspn(shell->at, "\n");
        } else if (lines && *shell->at == '\n') {
            shell->line++;
            shell->at++;
        } else {
            return;
        }
    }
}

static Status read_array(Shell *shell, ShellList *value) {
    const int line = shell->line;
    for (shell->at++;;) {
        skip_blank(shell, true);
        if (*shell->at == ')') {
            shell->at++;
            return STATUS_OK;
        }
        FAIL_WITH(!*shell->at, config_malformed(shell->source, line, "an array that does not end"));
        const char *before = shell->at;
        TRY(shell_word(shell, value, true));
        shell->at += shell->at == before;
    }
}

static void push_all(Shell *shell, const ShellList *from, ShellList *into) {
    for (int i = 0; i < from->count; i++) {
        shell_push(shell, into, from->words[i].text, from->words[i].line);
    }
}

static void append(Script *script, const ShellVariable *known, bool is_array, ShellList *value) {
    ShellList all = {0};
    if (known) {
        push_all(&script->shell, &known->value, &all);
    }
    for (int i = 0; i < value->count; i++) {
        if (!is_array && all.count > 0) {
            ShellWord *last = &all.words[all.count - 1];
            last->text = arena_format(script->shell.source->arena, "%s%s", last->text, value->words[i].text);
            script->made_bytes += strlen(last->text);
        } else {
            shell_push(&script->shell, &all, value->words[i].text, value->words[i].line);
        }
    }
    *value = all;
}

// Whether an assignment is next, which is then read.
static Status take_assignment(Script *script, bool *taken) {
    Shell *shell = &script->shell;
    const size_t length = name_length(shell->at);
    const bool adds = shell->at[length] == '+' && shell->at[length + 1] == '=';
    *taken = length > 0 && (adds || shell->at[length] == '=');
    if (!*taken) {
        return STATUS_OK;
    }
    const char *name = arena_format(shell->source->arena, "%.*s", (int)length, shell->at);
    ShellList value = {0};
    shell->at += length + (adds ? 2 : 1);
    const int line = shell->line;
    const bool is_array = *shell->at == '(';
    TRY(is_array ? read_array(shell, &value) : shell_word(shell, &value, false));
    if (!is_array && value.count == 0) {
        shell_push(shell, &value, "", line);
    }
    if (is_active(script) && !script->testing) {
        if (adds) {
            append(script, shell_variable(shell, name, length), is_array, &value);
        }
        shell_set(shell, name, value);
    }
    return STATUS_OK;
}

// ---- commands

static int options_in(const ShellList *command) {
    int count = 0;
    for (int i = 0; i < command->count; i++) {
        count += strncmp(command->words[i].text, "--", 2) == 0 || strstr(command->words[i].text, "_parallel_size=");
    }
    return count;
}

static Status read_script(Script *script);

// A quoted command, bash -c "...", is a script of its own: of its commands the one with the most options. Where bash
// would not take it as one, it is words.
static void push_quoted(Script *script, const ShellWord *word, ShellList *words) {
    Shell *shell = &script->shell;
    Error unread = {0};
    ConfigSource source = *shell->source;
    source.error = &unread;
    Script quoted = {.shell = *shell};
    quoted.shell.source = &source;
    quoted.shell.at = word->text;
    quoted.shell.line = word->line;
    quoted.shell.depth++;
    const bool is_read = quoted.shell.depth < SHELL_DEPTH_MOST && read_script(&quoted) == STATUS_OK;
    if (!is_read || quoted.best_options == 0) {
        shell_split(shell, word, words);
    } else {
        push_all(shell, &quoted.best, words);
    }
}

// {"a": 1}, not { a; }
static bool is_json(const char *text) {
    return text[0] == '[' || (text[0] == '{' && !strchr(" \t\r\n", text[1]));
}

// eval takes quotes and backslashes that are left in a word; those of several words stay.
static void push_evaluated(Shell *shell, const ShellWord *word, ShellList *words) {
    Error unread = {0};
    ConfigSource source = *shell->source;
    source.error = &unread;
    Shell below = *shell;
    ShellList read = {0};
    below.source = &source;
    below.at = word->text;
    below.line = word->line;
    if (!strpbrk(word->text, "\\'\"") || shell_word(&below, &read, true) != STATUS_OK || *below.at) {
        shell_push(shell, words, word->text, word->line);
        return;
    }
    for (int i = 0; i < read.count; i++) {
        shell_push(shell, words, read.words[i].text, word->line);
    }
}

static ShellList flat(Script *script, const ShellList *command) {
    ShellList words = {0};
    const bool evaluates = strcmp(command->words[0].text, "eval") == 0;
    for (int i = 0; i < command->count; i++) {
        const ShellWord *word = &command->words[i];
        if (i > 0 && strstr(word->text, " --") && !is_json(word->text)) {
            push_quoted(script, word, &words);
        } else if (evaluates) {
            push_evaluated(&script->shell, word, &words);
        } else {
            shell_push(&script->shell, &words, word->text, word->line);
        }
    }
    return words;
}

static void take_command(Script *script, const ShellList *command) {
    static const char *const printers[] = {"echo", "printf", "cat", NULL};
    static const char *const of_files[] = {"cp",   "mv",  "rm", "ln", "ls",   "sed",    "jq", "yq",
                                           "wget", "git", "[",  "[[", "test", "source", ".",  NULL};
    if (command->count == 0 || !is_active(script) || shell_is_one_of(command->words[0].text, printers)) {
        return;
    }
    const ShellWord *sourced = shell_sourced(command);
    if (sourced) {
        shell_push(&script->shell, &script->sourced, sourced->text, sourced->line);
    }
    const ShellList words = flat(script, command);
    if (!shell_is_one_of(words.words[0].text, of_files)) {
        shell_config(&words, &script->config);
    }
    const int options = options_in(&words);
    if (options > 0 && options >= script->best_options) {
        script->best = words;
        script->best_options = options;
    }
}

// After a character that ends a word but not the command. *more false: the command ends here.
static Status goes_on(Script *script, const ShellList *command, bool *more) {
    static const char *const writers[] = {"cat", "tee", NULL};
    Shell *shell = &script->shell;
    ShellList file = {0};
    *more = false;
    if (*shell->at == '<' || *shell->at == '>') {
        const bool document = shell->at[0] == '<' && shell->at[1] == '<';
        shell->at += strspn(shell->at, "<>&-");
        skip_blank(shell, false);
        TRY(shell_word(shell, &file, false));
        *more = true;
        if (document && file.count == 1 && command->count > 0 && shell_is_one_of(command->words[0].text, writers)) {
            for (const char *end = file.words[0].text; *shell->at;) {  // an output file
                shell->at += strcspn(shell->at, "\n") + (strchr(shell->at, '\n') != NULL);
                shell->line++;
                const size_t length = strcspn(shell->at, "\n");
                if (strlen(end) == length && strncmp(shell->at, end, length) == 0) {
                    break;
                }
            }
        }
    } else if (*shell->at == '(' || *shell->at == ')') {
        shell->at++;
        *more = true;
    }
    return STATUS_OK;
}

static Status read_command(Script *script) {
    Shell *shell = &script->shell;
    static const char *const leads[] = {"export", "local", "declare", "readonly", "-x", "-a", NULL};
    ShellList command = {0};
    bool more = true;
    while (more) {
        skip_blank(shell, false);
        const size_t length = strcspn(shell->at, " \t\r\n;&|()<>");
        const char *word = command.count == 0 ? arena_format(shell->source->arena, "%.*s", (int)length, shell->at) : "";
        if (*shell->at == '#') {
            shell->at += strcspn(shell->at, "\n");
        }
        bool taken = length > 0 && shell_is_one_of(word, leads);
        if (!taken && length > 0 && command.count == 0) {
            TRY(take_keyword(script, word, &taken));
        }
        if (taken) {
            shell->at += length;
            continue;
        }
        if (command.count == 0) {
            TRY(take_assignment(script, &taken));
        }
        const char *before = shell->at;
        shell->sets = is_active(script);
        if (!taken) {
            TRY(shell_word(shell, &command, true));
            const char *last = command.count ? command.words[command.count - 1].text : "";
            const bool of_file = shell->at > before && (*shell->at == '<' || *shell->at == '>');
            command.count -= of_file && last[0] && last[strspn(last, "0123456789")] == '\0';  // 2> log
        }
        if (!taken && shell->at == before) {
            TRY(goes_on(script, &command, &more));
        }
    }
    if (script->testing && command.count > 0) {
        take_test(script, &command);
    } else if (!script->testing) {
        take_command(script, &command);
    }
    return STATUS_OK;
}

static Status read_script(Script *script) {
    Shell *shell = &script->shell;
    while (*shell->at) {
        const char *before = shell->at;
        TRY(read_command(script));
        const char sign = *shell->at;
        script->joined = (sign == '&' || sign == '|') && shell->at[1] == sign ? sign : script->joined;
        if (sign && strchr("\n;&|", sign)) {
            shell->line += sign == '\n';
            shell->at++;
        } else if (shell->at == before && sign) {
            shell->at++;
        }
        shell->at += *shell->at == sign && (sign == '&' || sign == '|' || sign == ';');
    }
    return STATUS_OK;
}

// ---- the tree

// "model.tensor_model_parallel_size=8": a dotted path before the sign.
static bool is_override(const char *word) {
    word += strspn(word, "+~");
    const size_t length = strcspn(word, "=");
    bool dotted = false;
    for (size_t i = 0; i < length; i++) {
        dotted |= word[i] == '.';
        if (word[i] != '.' && word_length(&word[i]) == 0) {
            return false;
        }
    }
    return dotted && word[length] == '=' && word[0] != '.';
}

static Status add_override(const ConfigSource *source, ConfigNode *map, const ShellWord *word) {
    const char *at = word->text + strspn(word->text, "+~");
    for (int depth = 0;; depth++) {
        const size_t length = strcspn(at, ".=");
        const char *key = arena_format(source->arena, "%.*s", (int)length, at);
        const bool last = at[length] == '=';
        ConfigNode *child = config_child(map, key);
        FAIL_WITH(depth == CONFIG_MAX_DEPTH, config_malformed(source, word->line, "a key of too many words"));
        if (last || !child || child->kind != NODE_MAP) {
            child = last ? config_scalar(source->arena, key, at + length + 1, word->line)
                         : config_node(source->arena, NODE_MAP, word->line);
            child->key = key;
            config_append(source->arena, map, child);
        }
        if (last) {
            return STATUS_OK;
        }
        map = child;
        at += length + 1;
    }
}

// A variable and nothing else, which no line of the script sets: bash has no word there.
static bool is_unset(const char *word) {
    const size_t brace = strncmp(word, "${", 2) == 0, length = word[0] == '$' ? word_length(word + 1 + brace) : 0;
    return length > 0 ? strcmp(word + 1 + brace + length, brace ? "}" : "") == 0
                      : strcmp(word, "$@") == 0 || strcmp(word, "$*") == 0;
}

// --name, --name=value, --name value value; returns how many words.
static int add_option(Arena *arena, ConfigNode *map, const ShellList *words, int at, int end) {
    const ShellWord *word = &words->words[at];
    const size_t length = strcspn(word->text, "=");
    const char *key = arena_format(arena, "%.*s", (int)length, word->text);
    ConfigNode *value = NULL, *unset = NULL;
    int used = 1;
    if (word->text[length] == '=') {
        value = config_scalar(arena, key, word->text + length + 1, word->line);
    } else {
        for (; at + used < end; used++) {
            const char *next = words->words[at + used].text;
            if (strncmp(next, "--", 2) == 0 || is_override(next)) {
                break;
            }
            if (value && (is_unset(next) || value == unset)) {  // which may hold the option of this value
                continue;
            }
            ConfigNode *item = config_scalar(arena, NULL, next, words->words[at + used].line);
            unset = !value && is_unset(next) ? item : unset;
            if (value && value->kind == NODE_SCALAR) {
                ConfigNode *list = config_node(arena, NODE_LIST, word->line);
                config_append(arena, list, value);
                value = list;
            }
            if (value) {
                config_append(arena, value, item);
            } else {
                value = item;
            }
        }
    }
    if (!value) {
        value = config_scalar(arena, key, "true", word->line);
        value->alone = true;
    }
    value->key = key;
    value->line = word->line;
    const ConfigNode *there = config_child(map, key);
    if (!there || !config_same(there, value)) {
        config_append(arena, map, value);
    }
    return used;
}

static void add_word(Arena *arena, ConfigNode *root, const char *key, const char *text, int line) {
    ConfigNode *node = config_scalar(arena, key, text, line);
    node->used = true;  // it is no key of the script
    config_append(arena, root, node);
}

// The variables of a script without such a command, as if passed to one.
static ShellList given_by_variables(Script *script) {
    ShellList words = {0};
    for (int i = 0; i < script->shell.variable_count; i++) {
        const ShellList *value = &script->shell.variables[i].value;
        const char *first = value->count ? value->words[0].text + strspn(value->words[0].text, " \t\r\n") : "";
        for (int j = 0; j < value->count && strncmp(first, "--", 2) == 0; j++) {
            shell_split(&script->shell, &value->words[j], &words);
        }
    }
    return words;
}

static const char *without_dashes(const char *key, Arena *arena) {
    if (strncmp(key, "--", 2) != 0) {
        return NULL;
    }
    char *plain = arena_text(arena, key + 2);
    for (char *at = plain; *at; at++) {
        *at = *at == '-' ? '_' : *at;
    }
    return plain;
}

// Options that HfArgumentParser makes of dataclasses are their fields, as in a file of them.
static void take_arguments(const ConfigSource *source, ConfigNode *root) {
    static const char *const marks[] = {"--per_device_train_batch_size", "--per-device-train-batch-size",
                                        "--model_name_or_path", "--finetuning_type"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (config_child(root, marks[i])) {
            config_rename_keys(source->arena, root, without_dashes);
            return;
        }
    }
}

Status config_shell(const ConfigSource *source, ConfigNode **root) {
    Script script = {.shell = {.source = source, .at = source->text, .line = 1}};
    script.shell.made = &script.made_bytes;
    TRY(read_script(&script));
    *root = config_node(source->arena, NODE_MAP, 1);
    const ShellList words = script.best_options > 0 ? script.best : given_by_variables(&script);
    const int program = shell_behind_program(&words);
    ConfigNode *launcher = config_node(source->arena, NODE_MAP, words.count ? words.words[0].line : 1);
    launcher->key = "launcher";
    for (int i = 0; i < words.count;) {
        ConfigNode *map = i < program ? launcher : *root;
        if (strncmp(words.words[i].text, "--", 2) == 0 && words.words[i].text[2]) {
            i += add_option(source->arena, map, &words, i, i < program ? program - 1 : words.count);
        } else {
            if (i >= program && is_override(words.words[i].text)) {
                TRY(add_override(source, *root, &words.words[i]));
            }
            i++;
        }
    }
    take_arguments(source, *root);
    const char *runs = shell_program(&words, program, source->arena);
    if (runs) {
        add_word(source->arena, *root, SHELL_PROGRAM, runs, words.words[0].line);
    }
    if (script.config.text) {
        add_word(source->arena, *root, SHELL_CONFIG, script.config.text, script.config.line);
    }
    if (script.sourced.count) {
        ConfigNode *list = config_node(source->arena, NODE_LIST, script.sourced.words[0].line);
        list->key = SHELL_SOURCED;
        list->used = true;
        for (int i = 0; i < script.sourced.count; i++) {
            const ShellWord *word = &script.sourced.words[i];
            config_append(source->arena, list, config_scalar(source->arena, NULL, word->text, word->line));
        }
        config_append(source->arena, *root, list);
    }
    if (launcher->first) {
        config_append(source->arena, *root, launcher);
    }
    return STATUS_OK;
}

Status config_shell_document(const ConfigSource *source, const char *body, const char **text) {
    Script script = {.shell = {.source = source, .at = source->text, .line = 1}};
    script.shell.made = &script.made_bytes;
    TRY(read_script(&script));
    return shell_document(&script.shell, body, text);
}

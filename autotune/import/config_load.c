// Loads a config file.

#include "autotune/import/config_load.h"

#include <ctype.h>
#include <string.h>

#include "autotune/import/python_recipe.h"

#include "sim/base/escape.h"
#include "sim/base/open.h"
#include "sim/base/text.h"

Status config_malformed(const ConfigSource *source, int line, const char *format, ...) {
    char sentence[ERROR_MESSAGE_BYTES];
    WITH_VALUES(format, vsnprintf(sentence, sizeof sentence, format, values));
    return error_set(source->error, STATUS_USAGE, "%s:%d: %s", source->path, line, sentence);
}

size_t word_length(const char *text) {
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') {
        length++;
    }
    return length;
}

size_t name_length(const char *text) {
    return isdigit((unsigned char)text[0]) ? 0 : word_length(text);
}

static Status read_whole(const char *path, Arena *arena, char **text, Error *error) {
    const char *why = NULL, *recipe = python_recipe_named(path);
    path = recipe ? arena_format(arena, "%.*s", (int)(recipe - 1 - path), path) : path;
    FILE *file = open_to_read(path, &why);
    FAIL_IF(!file, error, STATUS_ENVIRONMENT, "%s cannot be read: %s", path, why);
    size_t bytes;
    why = read_and_close(file, CONFIG_MAX_BYTES, arena, text, &bytes);
    FAIL_IF(why, error, STATUS_ENVIRONMENT, "%s cannot be read: %s", path, why);
    FAIL_IF(bytes > CONFIG_MAX_BYTES, error, STATUS_USAGE, "%s is larger than %d MiB: no config file", path,
            CONFIG_MAX_BYTES >> 20);
    const char *zero = memchr(*text, '\0', bytes);
    return zero ? error_set(error, STATUS_USAGE, "%s holds a zero byte: no config file", path) : STATUS_OK;
}

// By its name; false: it has none of these endings.
static bool syntax_of_name(const char *path, ConfigSyntax *syntax) {
    static const struct {
        const char *ending;
        ConfigSyntax syntax;
    } endings[] = {{".json", SYNTAX_JSON},    {".toml", SYNTAX_TOML},   {".yaml", SYNTAX_YAML},
                   {".yml", SYNTAX_YAML},     {".sh", SYNTAX_SHELL},    {".bash", SYNTAX_SHELL},
                   {".sbatch", SYNTAX_SHELL}, {".slurm", SYNTAX_SHELL}, {".py", SYNTAX_PYTHON}};
    *syntax = SYNTAX_PYTHON;
    if (python_recipe_named(path)) {
        return true;
    }
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (text_ends_in(path, endings[i].ending)) {
            *syntax = endings[i].syntax;
            return true;
        }
    }
    return false;
}

static ConfigSyntax syntax_of(const char *path, const char *text) {
    ConfigSyntax named;
    if (syntax_of_name(path, &named)) {
        return named;
    }
    const char *first = text + strspn(text, " \t\r\n");
    return *first == '{'                                                  ? SYNTAX_JSON
           : *first == '['                                                ? SYNTAX_TOML
           : strncmp(first, "#!", 2) == 0 || strncmp(first, "--", 2) == 0 ? SYNTAX_SHELL
                                                                          : SYNTAX_YAML;
}

Status config_parse(const char *text, const char *path, ConfigSyntax syntax, Arena *arena, ConfigNode **root,
                    Error *error) {
    static Status (*const parsers[])(const ConfigSource *, ConfigNode **) = {[SYNTAX_YAML] = config_yaml,
                                                                             [SYNTAX_JSON] = config_json,
                                                                             [SYNTAX_TOML] = config_toml,
                                                                             [SYNTAX_SHELL] = config_shell,
                                                                             [SYNTAX_PYTHON] = config_python};
    const char *recipe = python_recipe_named(path);
    ConfigSource source = {.text = text, .path = path, .arena = arena, .error = error};
    if (recipe && syntax == SYNTAX_PYTHON) {
        source.path = arena_format(arena, "%.*s", (int)(recipe - 1 - path), path);
        TRY(python_recipe_cut(&source, recipe));
    }
    TRY(parsers[syntax](&source, root));
    return (*root)->kind == NODE_MAP
               ? STATUS_OK
               : config_malformed(&source, (*root)->line, "a config file is a map of keys, and this is none");
}

Status config_load(const char *path, Arena *arena, ConfigNode **root, Error *error) {
    char *text = NULL;
    TRY(read_whole(path, arena, &text, error));
    const char *body = text_behind_mark(text);
    return config_parse(body, path, syntax_of(path, body), arena, root, error);
}

// ---- a file that a script writes

enum { DOCUMENTS_MOST = 256 };

typedef struct Document {
    const char *name, *body;
    size_t body_length;
    int line;           // of the body
    bool expands;       // variables are replaced: its end is not quoted
    const char *after;  // what follows in the script, plain
} Document;

// The word that follows a sign: END of "<<-'END'"; without its quotes. NULL: none.
static const char *word_behind(const char *line, const char *sign, Arena *arena) {
    const char *at = strstr(line, sign);
    if (!at) {
        return NULL;
    }
    at += strlen(sign);
    at += strspn(at, " \t");
    const size_t length = strcspn(at, " \t<>;&|\r");
    char *word = arena_alloc(arena, length + 1), *out = word;
    for (size_t i = 0; i < length; i++) {
        *out = at[i];
        out += !strchr("'\"\\", at[i]);
    }
    *out = '\0';
    return word[0] ? word : NULL;
}

// "cat > NAME <<END", "cat <<END | tee NAME", "sudo tee NAME <<END".
static const char *written_file(const char *line, Arena *arena) {
    const char *tee = strncmp(line, "tee ", 4) == 0 ? line : strstr(line, " tee ");
    tee = tee ? tee : strstr(line, "|tee ");
    const char *name = tee                             ? word_behind(tee, "tee ", arena)
                       : strncmp(line, "cat ", 4) == 0 ? word_behind(line, ">", arena)
                                                       : NULL;
    return name && name[0] != '-' ? name : NULL;
}

static bool is_line(const char *at, size_t length, const char *word) {
    const size_t tabs = strspn(at, "\t"), kept = length > 0 && at[length - 1] == '\r' ? length - 1 : length;
    return tabs + strlen(word) == kept && strncmp(at + tabs, word, strlen(word)) == 0;
}

// The next one from *at on; *at moves past it.
static bool next_document(const char **at, int *line, Arena *arena, Document *document) {
    for (const char *text = *at; *text;) {
        const size_t length = strcspn(text, "\n"), spaces = strspn(text, " \t"),
                     blank = spaces < length ? spaces : length;
        const char *start = arena_format(arena, "%.*s", (int)(length - blank), text + blank);
        const char *sign = strstr(start, "<<"), *end = NULL;
        if (sign && sign[2] != '<') {  // "<<<" is a string's
            document->name = written_file(start, arena);
            sign += sign[2] == '-' ? 3 : 2;
            end = document->name ? word_behind(sign, "", arena) : NULL;
            sign += strspn(sign, " \t");
        }
        text += length + (text[length] == '\n');
        ++*line;
        if (!end) {
            continue;
        }
        *document = (Document){document->name, text, 0, *line, !strchr("'\"\\", *sign), document->after};
        while (*text && !is_line(text, strcspn(text, "\n"), end)) {
            const size_t bytes = strcspn(text, "\n");
            text += bytes + (text[bytes] == '\n');
            ++*line;
        }
        document->body_length = (size_t)(text - document->body);
        *at = text;
        return true;
    }
    return false;
}

// The same text with as many empty lines before it as precede it in the script, so that lines keep their numbers.
static char *with_lines(const Document *document, const char *body, Arena *arena) {
    const size_t before = (size_t)document->line - 1, length = strlen(body);
    char *text = arena_alloc(arena, before + length + 1);
    memset(text, '\n', before);
    memcpy(text + before, body, length + 1);
    return text;
}

#define PLAIN_WITHOUT "{}\"'"

// Without what $D/x.json and "${D}/x.json" differ in.
static char *plain(const char *text, Arena *arena) {
    char *out = arena_alloc(arena, strlen(text) + 1);
    size_t length = 0;
    for (; *text; text++) {
        out[length] = *text;
        length += !strchr(PLAIN_WITHOUT, *text);
    }
    out[length] = '\0';
    return out;
}

static bool in_a_name(char letter) {
    return isalnum((unsigned char)letter) || letter == '_' || letter == '-';
}

// Whether `text` has `word` as a word of its own.
static bool is_in(const char *text, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = text; length > 0 && (at = strstr(at, word)); at += length) {
        if ((at == text || !in_a_name(at[-1])) && !in_a_name(at[length])) {
            return true;
        }
    }
    return false;
}

// By its name in its folder, which scripts write in several ways; a module is named without its ending.
static bool is_named(const Document *document, Arena *arena) {
    const char *slash = strrchr(document->name, '/'), *name = slash && slash[1] ? slash + 1 : document->name;
    const int length = (int)strlen(name) - (text_ends_in(name, ".py") ? 3 : 0);
    return is_in(document->after, plain(arena_format(arena, "%.*s", length, name), arena));
}

// By its ending, or as JSON begins: not notes, a list of hosts.
static bool is_meant_as_config(const Document *document) {
    ConfigSyntax syntax;
    return syntax_of_name(document->name, &syntax) || document->body[strspn(document->body, " \t\r\n")] == '{';
}

static Status read_document(const Document *document, const char *script, const char *path, Arena *arena,
                            ConfigNode **root, Error *error) {
    const char *body = arena_format(arena, "%.*s", (int)document->body_length, document->body);
    const ConfigSource before = {.text = arena_format(arena, "%.*s", (int)(document->body - script), script),
                                 .path = path,
                                 .arena = arena,
                                 .error = error};
    TRY(document->expands ? config_shell_document(&before, body, &body) : STATUS_OK);
    return config_parse(with_lines(document, body, arena), path, syntax_of(document->name, body), arena, root, error);
}

Status config_load_written(const char *path, Arena *arena, ConfigNode **root, Error *error) {
    char *text = NULL;
    Document document;
    int line = 1;
    *root = NULL;
    TRY(read_whole(path, arena, &text, error));
    const char *at = text_behind_mark(text);
    if (syntax_of(path, at) != SYNTAX_SHELL) {
        return STATUS_OK;
    }
    const char *script = at, *counted = at;
    Error first = {0};  // of what is named as a config and is none; others may be, such as one after a list of hosts
    document.after = plain(script, arena);
    for (int i = 0; i < DOCUMENTS_MOST && !*root && next_document(&at, &line, arena, &document); i++) {
        for (; counted < at; counted++) {
            document.after += !strchr(PLAIN_WITHOUT, *counted);
        }
        Error wrong = {0};
        if (is_named(&document, arena) && read_document(&document, script, path, arena, root, &wrong) != STATUS_OK) {
            first = first.status == STATUS_OK && is_meant_as_config(&document) ? wrong : first;
            *root = NULL;
        }
    }
    if (!*root && first.status != STATUS_OK) {
        *error = first;
        return first.status;
    }
    return STATUS_OK;
}

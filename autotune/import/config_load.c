// Loads a config file.

#include "autotune/import/config_load.h"

#include <string.h>

#include "sim/base/escape.h"
#include "sim/base/open.h"

Status config_malformed(const ConfigSource *source, int line, const char *format, ...) {
    char sentence[ERROR_MESSAGE_BYTES];
    WITH_VALUES(format, vsnprintf(sentence, sizeof sentence, format, values));
    return error_set(source->error, STATUS_USAGE, "%s:%d: %s", source->path, line, sentence);
}

static Status read_whole(const char *path, Arena *arena, char **text, Error *error) {
    const char *why = NULL;
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

static bool ends_in(const char *path, const char *ending) {
    const size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcmp(path + length - tail, ending) == 0;
}

static ConfigSyntax syntax_of(const char *path, const char *text) {
    static const struct {
        const char *ending;
        ConfigSyntax syntax;
    } endings[] = {{".json", SYNTAX_JSON},    {".toml", SYNTAX_TOML},   {".yaml", SYNTAX_YAML},
                   {".yml", SYNTAX_YAML},     {".sh", SYNTAX_SHELL},    {".bash", SYNTAX_SHELL},
                   {".sbatch", SYNTAX_SHELL}, {".slurm", SYNTAX_SHELL}, {".py", SYNTAX_PYTHON}};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (ends_in(path, endings[i].ending)) {
            return endings[i].syntax;
        }
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
    const ConfigSource source = {.text = text, .path = path, .arena = arena, .error = error};
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

typedef struct Document {
    const char *name, *body;
    size_t body_length;
    int line;           // of the body
    const char *after;  // what follows in the script
} Document;

// The word behind a sign: NAME of "> NAME", END of "<<-'END'". NULL: none.
static const char *word_behind(const char *line, size_t length, const char *sign, Arena *arena) {
    const char *at = strstr(line, sign), *end = line + length;
    if (!at || at >= end) {
        return NULL;
    }
    at += strlen(sign);
    at += strspn(at, "- \t'\"\\");
    const size_t word = strcspn(at, " \t'\"<>;&|\r\n");
    return at < end && word > 0 ? arena_format(arena, "%.*s", (int)word, at) : NULL;
}

static bool is_line(const char *at, size_t length, const char *word) {
    const size_t tabs = strspn(at, "\t"), kept = length > 0 && at[length - 1] == '\r' ? length - 1 : length;
    return tabs + strlen(word) == kept && strncmp(at + tabs, word, strlen(word)) == 0;
}

// The next one from *at on, which then is behind it.
static bool next_document(const char **at, int *line, Arena *arena, Document *document) {
    for (const char *text = *at; *text;) {
        const size_t length = strcspn(text, "\n");
        const char *start = text + strspn(text, " \t");
        const char *name =
            strncmp(start, "cat ", 4) == 0 ? word_behind(start, length - (size_t)(start - text), ">", arena) : NULL;
        const char *end = name ? word_behind(start, length - (size_t)(start - text), "<<", arena) : NULL;
        text += length + (text[length] == '\n');
        ++*line;
        if (!end) {
            continue;
        }
        *document = (Document){.name = name, .body = text, .line = *line};
        while (*text && !is_line(text, strcspn(text, "\n"), end)) {
            const size_t bytes = strcspn(text, "\n");
            text += bytes + (text[bytes] == '\n');
            ++*line;
        }
        document->body_length = (size_t)(text - document->body);
        document->after = text;
        *at = text;
        return true;
    }
    return false;
}

// The same text with as many empty lines before it as precede it in the script, so that lines keep their numbers.
static char *with_lines(const Document *document, Arena *arena) {
    const size_t before = (size_t)document->line - 1;
    char *text = arena_alloc(arena, before + document->body_length + 1);
    memset(text, '\n', before);
    memcpy(text + before, document->body, document->body_length);
    text[before + document->body_length] = '\0';
    return text;
}

// A module is named without its ending.
static bool is_named(const Document *document, Arena *arena) {
    const size_t length = strlen(document->name);
    const char *module =
        ends_in(document->name, ".py") ? arena_format(arena, "%.*s", (int)length - 3, document->name) : document->name;
    return strstr(document->after, module) != NULL;
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
    while (!*root && next_document(&at, &line, arena, &document)) {
        if (is_named(&document, arena)) {
            TRY(config_parse(with_lines(&document, arena), path, syntax_of(document.name, document.body), arena, root,
                             error));
        }
    }
    return STATUS_OK;
}

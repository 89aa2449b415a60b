// Loads a config file.

#include "autotune/import/config_load.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "sim/base/escape.h"
#include "sim/base/open.h"

Status config_malformed(const ConfigSource *source, int line, const char *format, ...) {
    char sentence[ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
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

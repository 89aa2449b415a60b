// Loading a config file as a tree, one file per syntax.

#pragma once

#include "sim/frameworks/config_tree.h"

typedef enum { SYNTAX_YAML, SYNTAX_JSON, SYNTAX_TOML, SYNTAX_SHELL, SYNTAX_PYTHON } ConfigSyntax;

enum { CONFIG_MAX_BYTES = 4 << 20, CONFIG_MAX_DEPTH = 32 };

// ENVIRONMENT where the file cannot be read, USAGE with "path:line: " where it is malformed or not a map. The syntax is
// chosen by the file name, else by the first character. FILE.py:NAME is that function.
Status config_load(const char *path, Arena *arena, ConfigNode **root, Error *error);
// Of a script the config file that it writes (cat > FILE <<WORD, tee FILE <<WORD) and names afterwards, with what the
// script's variables are there; *root NULL: there is none. Lines are those of the script.
Status config_load_written(const char *path, Arena *arena, ConfigNode **root, Error *error);
Status config_parse(const char *text, const char *path, ConfigSyntax syntax, Arena *arena, ConfigNode **root,
                    Error *error);

// The key of a script that is given its arguments when it starts: by which parser.
#define PYTHON_PARSER "parsed by"
// The key of a launch script for the config file that a command of it is given.
#define SHELL_CONFIG "runs with"
// Of the scripts that it sources, which are not read.
#define SHELL_SOURCED "sources"

// ---- for the parsers, one file per syntax

typedef struct ConfigSource {
    const char *text, *path;
    Arena *arena;
    Error *error;
    const ConfigNode *followed;  // functions of Python that are read; NULL: all
} ConfigSource;

Status config_yaml(const ConfigSource *source, ConfigNode **root);
Status config_json(const ConfigSource *source, ConfigNode **root);
Status config_toml(const ConfigSource *source, ConfigNode **root);
Status config_shell(const ConfigSource *source, ConfigNode **root);
Status config_python(const ConfigSource *source, ConfigNode **root);

// A here-document that follows the script `source`, with the variables that it has set.
Status config_shell_document(const ConfigSource *source, const char *body, const char **text);

// Of letters, digits and '_' that begin here; the other is 0 where the first is a digit, which begins no name.
size_t word_length(const char *text);
size_t name_length(const char *text);

Status config_malformed(const ConfigSource *source, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

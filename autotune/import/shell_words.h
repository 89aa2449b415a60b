// Words of a shell script as bash would expand them: quotes, variables, arrays, defaults, integer arithmetic. What only
// a running shell knows (commands in $( ), the environment, arguments) is kept as written.

#pragma once

#include "autotune/import/config_load.h"

typedef struct ShellWord {
    const char *text;
    int line;
} ShellWord;

typedef struct ShellList {
    ShellWord *words;
    int count;
    size_t capacity;
} ShellList;

typedef struct ShellVariable {
    const char *name;
    ShellList value;  // a plain variable is one word, with the file's line ends kept
} ShellVariable;

enum { SHELL_WORDS_MOST = 1 << 15, SHELL_BYTES_MOST = 1 << 22, SHELL_DEPTH_MOST = 8 };

typedef struct Shell {
    const ConfigSource *source;
    const char *at;
    int line;
    int depth;
    bool sets;                 // ${NAME:=value} does: what is read is run
    size_t made_bytes, *made;  // over all words so far: a few lines could expand to any number
    ShellVariable *variables;
    int variable_count;
    size_t variable_capacity;
} Shell;

void shell_push(Shell *shell, ShellList *list, const char *text, int line);

// NULL = it has not been set.
ShellVariable *shell_variable(const Shell *shell, const char *name, size_t length);
void shell_set(Shell *shell, const char *name, ShellList value);

// The word at shell->at, none, or several where a variable holds several; `split` false: no splitting, as after "=".
Status shell_word(Shell *shell, ShellList *list, bool split);

// A here-document's text with its variables, line ends kept.
Status shell_document(Shell *shell, const char *body, const char **text);

// words: NULL at their end.
bool shell_is_one_of(const char *word, const char *const *words);

// A value that holds several words, at its blanks but for those within $( ).
void shell_split(Shell *shell, const ShellWord *value, ShellList *words);

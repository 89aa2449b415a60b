// Which assignment a name stands for: all of the file are noted first, each in its function, as Python has it. A branch
// is as good as any other, and so is a change (BATCH //= 4, sizes["tp"] = 8): a name with several is not read.

#include "autotune/import/python_names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "autotune/import/config_load.h"

typedef struct Scope Scope;
struct Scope {
    Scope *outer;
    const char *at, *end;  // from its `def`
    const char *more;      // its parameter **more; NULL
    size_t column;
    int depth;
    bool is_class;
};

// Names are not read where they are longer, or functions nest deeper.
enum { NAME_LONGEST = 128, KEY_BYTES = NAME_LONGEST + 32, SCOPES_MOST = 32 };

struct PythonNames {
    Arena *arena;
    const char *text;
    ConfigNode *set;  // the names of each scope, as "scope name": text = where, used = in several places
    Scope **scopes;
    int count, reached;
    size_t capacity;
};

size_t dotted_length(const char *text) {
    size_t length = 0;
    while (
        isalnum((unsigned char)text[length]) || text[length] == '_' ||
        (text[length] == '.' && length > 0 && (isalpha((unsigned char)text[length + 1]) || text[length + 1] == '_'))) {
        length++;
    }
    return length > 0 && !isdigit((unsigned char)text[0]) ? length : 0;
}

const char *behind_string(const char *at) {
    const size_t quotes = strncmp(at, "\"\"\"", 3) == 0 || strncmp(at, "'''", 3) == 0 ? 3 : 1;
    for (const char *end = at + quotes; *end; end += *end == '\\' && end[1] ? 2 : 1) {
        if (strncmp(end, at, quotes) == 0) {
            return end + quotes;
        }
        if (quotes == 1 && *end == '\n') {
            return end;
        }
    }
    return at + strlen(at);
}

const char *behind_value(const char *at) {
    int depth = 0;
    while (*at) {
        if (*at == '"' || *at == '\'') {
            at = behind_string(at);
            continue;
        }
        if (depth == 0 && (strchr("\n,)]}#;", *at) || (*at == '=' && at[1] != '=' && !strchr("=!<>", at[-1])))) {
            return at;
        }
        depth += strchr("([{", *at) ? 1 : strchr(")]}", *at) ? -1 : 0;
        if (*at == '#') {
            at += strcspn(at, "\n");
        } else {
            at++;
        }
    }
    return at;
}

const char *behind_brackets(const char *at) {
    int depth = 0;
    do {
        depth += *at && strchr("([{", *at) ? 1 : *at && strchr(")]}", *at) ? -1 : 0;
        at = *at == '"' || *at == '\'' ? behind_string(at) : *at == '#' ? at + strcspn(at, "\n") : at + (*at != '\0');
    } while (*at && depth > 0);
    return at;
}

// ---- noting

typedef struct Walk {
    PythonNames *names;
    const char *at, *line;
    Scope *scope;
    int depth;           // of brackets
    bool first;          // nothing of the statement is read
    bool binds, shares;  // each word is a name that is set (for, import, as), or the file's (global)
} Walk;

// The key of a name in `set`, in `key`.
static void write_key(const PythonNames *names, const Scope *scope, const char *name, size_t length, char *key) {
    snprintf(key, KEY_BYTES, "%td %.*s", scope ? scope->at - names->text : (ptrdiff_t)-1, (int)length, name);
}

static void bind(PythonNames *names, const Scope *scope, const char *name, size_t length, bool unknown) {
    char key[KEY_BYTES];
    write_key(names, scope, name, length, key);
    ConfigNode *node = config_child(names->set, key);
    if (!node) {
        node = config_scalar(names->arena, arena_text(names->arena, key), name, 0);
        node->used = unknown;
        config_append(names->arena, names->set, node);
    } else {
        node->used = true;
    }
}

// (a, b: int = 8, *, c=None, **more)
static void bind_parameters(PythonNames *names, Scope *scope, const char *at) {
    while (*at && *at != ')') {
        at += strspn(at, "( \t\r\n,/=");
        const size_t stars = strspn(at, "*"), length = dotted_length(at + stars);
        if (length > 0) {
            bind(names, scope, at + stars, length, true);
            scope->more = stars == 2 ? arena_format(names->arena, "%.*s", (int)length, at + 2) : scope->more;
        }
        for (at += stars + length; *at && *at != ',' && *at != ')';) {
            const char *end = behind_value(at);
            at = *end == '#' ? end + strcspn(end, "\n") : end + (end == at && *end != ',' && *end != ')');
        }
    }
}

static void leave_scopes(Walk *walk, size_t column) {
    while (walk->scope && column <= walk->scope->column) {
        walk->scope->end = walk->at;
        walk->scope = walk->scope->outer;
    }
}

// def name(...) and class name.
static void enter_scope(Walk *walk, bool is_class) {
    PythonNames *names = walk->names;
    const char *name = walk->at + (is_class ? strlen("class") : strlen("def"));
    name += strspn(name, " ");
    const size_t length = dotted_length(name);
    const int depth = walk->scope ? walk->scope->depth + 1 : 0;
    bind(names, walk->scope, name, length, true);
    if (depth == SCOPES_MOST) {
        return;
    }
    Scope *scope = ARENA_NEW(names->arena, Scope);
    *scope = (Scope){.outer = walk->scope,
                     .at = walk->at,
                     .column = strspn(walk->line, " \t"),
                     .depth = depth,
                     .is_class = is_class};
    ARENA_PUSH(names->arena, names->scopes, names->count, &names->capacity) = scope;
    walk->scope = scope;
    if (!is_class && name[length] == '(') {
        bind_parameters(names, scope, name + length);
    }
}

static bool is_set(const Walk *walk, const char *word, size_t length) {
    const char *sign = word + length + strspn(word + length, " ");
    const size_t changes = strspn(sign, "+-*/%@&|^<>:");
    if (word > walk->names->text && word[-1] == '.') {
        return false;
    }
    if (walk->depth > 0) {
        return strncmp(sign, ":=", 2) == 0;
    }
    if (walk->first && (*sign == '.' || *sign == '[')) {
        return *behind_value(word) == '=';
    }
    return (walk->first && (*sign == ',' || *sign == ':')) ||
           (changes <= 2 && sign[changes] == '=' && sign[changes + 1] != '=' && !(changes == 1 && strchr("<>", *sign)));
}

static bool is_word(const char *at, size_t length, const char *const *words) {
    bool found = false;
    for (; *words; words++) {
        found |= strlen(*words) == length && strncmp(at, *words, length) == 0;
    }
    return found;
}

static void note_word(Walk *walk, size_t length) {
    static const char *const scopes[] = {"def", "class", NULL}, *const shares[] = {"global", "nonlocal", NULL},
                             *const binds[] = {"for", "import", "as", "del", NULL}, *const ends[] = {"in", NULL};
    const char *at = walk->at;
    if (walk->first) {
        leave_scopes(walk, (size_t)(at - walk->line));
    }
    if (walk->depth == 0 && is_word(at, length, scopes)) {
        enter_scope(walk, *at == 'c');
    } else if (walk->depth == 0 && is_word(at, length, shares)) {
        walk->shares = true;
    } else if (walk->depth == 0 && is_word(at, length, binds)) {
        walk->binds = true;
    } else if (is_word(at, length, ends)) {
        walk->binds = false;
    } else if (walk->shares) {
        bind(walk->names, walk->scope ? walk->scope->outer : NULL, at, length, true);
        bind(walk->names, NULL, at, length, true);
    } else if (walk->binds || is_set(walk, at, length)) {
        bind(walk->names, walk->scope, at, length, false);
        walk->binds |= walk->first && at[length + strspn(at + length, " ")] == ',';
    }
}

static void note_sign(Walk *walk) {
    const char sign = *walk->at++;
    if (sign == '\\' && *walk->at == '\n') {
        walk->at++;
    } else if (sign == '\n' && walk->depth == 0) {
        walk->line = walk->at;
        walk->first = true;
        walk->binds = walk->shares = false;
    } else if (strchr("([{", sign)) {
        walk->depth++;
    } else if (strchr(")]}", sign)) {
        walk->depth -= walk->depth > 0;
    } else if (strchr("=:", sign)) {
        walk->binds = false;
    } else if (sign == ';') {
        walk->binds = walk->shares = false;
    }
    walk->first &= isspace((unsigned char)sign) != 0;
}

PythonNames *python_names(const char *text, Arena *arena) {
    PythonNames *names = ARENA_NEW(arena, PythonNames);
    *names = (PythonNames){.arena = arena, .text = text, .set = config_node(arena, NODE_MAP, 1)};
    Walk walk = {.names = names, .at = text, .line = text, .first = true};
    while (*walk.at) {
        const size_t length = word_length(walk.at);
        if (*walk.at == '#') {
            walk.at += strcspn(walk.at, "\n");
        } else if (length == 0 && *walk.at != '"' && *walk.at != '\'') {
            note_sign(&walk);
        } else {
            if (length > 0 && !isdigit((unsigned char)*walk.at)) {
                note_word(&walk, length);
            }
            walk.at = length > 0 ? walk.at + length : behind_string(walk.at);
            walk.first = false;
        }
    }
    leave_scopes(&walk, 0);
    return names;
}

// ---- asking

static const Scope *scope_at(PythonNames *names, const char *at) {
    while (at && names->reached < names->count && names->scopes[names->reached]->at <= at) {
        names->reached++;
    }
    const Scope *scope = at && names->reached > 0 ? names->scopes[names->reached - 1] : NULL;
    while (scope && at >= scope->end) {
        scope = scope->outer;
    }
    return scope;
}

const char *python_set_at(PythonNames *names, const char *at, const char *name) {
    const Scope *inner = scope_at(names, at);
    const size_t length = strlen(name);
    if (length > NAME_LONGEST) {
        return NULL;
    }
    for (const Scope *scope = inner;; scope = scope->outer) {
        char key[KEY_BYTES];
        write_key(names, scope, name, length, key);
        const bool is_seen = !scope || scope == inner || !scope->is_class;
        const ConfigNode *node = is_seen ? config_child(names->set, key) : NULL;
        if (node || !scope) {
            return node && !node->used ? node->text : NULL;
        }
    }
}

bool python_takes_more(PythonNames *names, const char *at, const char *name) {
    const Scope *scope = scope_at(names, at);
    return scope && scope->more && strcmp(scope->more, name) == 0;
}

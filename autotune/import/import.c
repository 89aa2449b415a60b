// Detects the format of a config file, and handles the keys that its reader did not use. The formats are those of the
// frameworks (sim/frameworks).

#include "autotune/import/import.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "sim/base/text.h"
#include "sim/frameworks/framework.h"
#include "sim/step/schedules/order_file.h"

const char *import_key_of(const Import *import, AdviceKind kind) {
    static const size_t places[ADVICE_KIND_COUNT] = {[ADVICE_MESH] = offsetof(ImportKeys, mesh),
                                                     [ADVICE_MICRO_BATCH] = offsetof(ImportKeys, micro_batch),
                                                     [ADVICE_RESHARD] = offsetof(ImportKeys, reshard),
                                                     [ADVICE_RECOMPUTE] = offsetof(ImportKeys, recompute),
                                                     [ADVICE_ROTATE] = offsetof(ImportKeys, rotate),
                                                     [ADVICE_ZERO] = offsetof(ImportKeys, zero),
                                                     [ADVICE_SYNC] = offsetof(ImportKeys, sync),
                                                     [ADVICE_KERNELS] = offsetof(ImportKeys, kernels),
                                                     [ADVICE_OVERLAP] = offsetof(ImportKeys, overlap),
                                                     [ADVICE_LOSS] = offsetof(ImportKeys, loss),
                                                     [ADVICE_TP_OVERLAP] = offsetof(ImportKeys, tp_overlap)};
    const char *key = NULL;
    memcpy(&key, (const char *)import->keys + places[kind], sizeof key);
    return key;
}

// ---- unused keys

// Among the keys of that map that the reader looked for and the file does not have; not for floods of unknown keys.
static const char *meant(Import *import, const ConfigNode *map, const char *above, const char *key) {
    enum { FINDINGS_MOST = 50 };
    if (import->finding_count > FINDINGS_MOST) {
        return NULL;
    }
    const char **words = ARENA_ARRAY(import->arena, const char *, import->asked_count);
    const size_t skipped = above[0] ? strlen(above) + 1 : 0;
    size_t count = 0;
    for (int i = 0; i < import->asked_count; i++) {
        const char *path = import->asked[i];
        const bool below = skipped == 0 || (strncmp(path, above, skipped - 1) == 0 && path[skipped - 1] == '.');
        if (below && path[skipped]) {
            const char *word = arena_format(import->arena, "%.*s", (int)strcspn(path + skipped, "."), path + skipped);
            words[count] = word;
            count += config_child(map, word) == NULL;
        }
    }
    return text_nearest(key, words, count);
}

static void say_unread(Import *import, const ConfigNode *map, const char *above) {
    for (const ConfigNode *node = map->first; node; node = node->next) {
        if (!node->key) {
            continue;
        }
        const char *path = arena_format(import->arena, "%s%s%s", above, above[0] ? "." : "", node->key);
        if (config_child(map, node->key) != node) {
            import_find(import, FINDING_TRAP, path, "%s stands twice, from line %d on: the last one counts", path,
                        node->line);
        } else if (!node->used && node->key[0] != '_') {  // "_comment" is the usual comment in JSON
            const char *near = meant(import, map, above, node->key);
            import_find(import, above[0] ? import->unknown_below.kind : import->unknown.kind, path, "%s%s%s%s",
                        above[0] ? import->unknown_below.words : import->unknown.words, near ? "; did you mean " : "",
                        near ? near : "", near ? "?" : "");
        } else if (node->used && node->kind == NODE_MAP) {
            say_unread(import, node, path);
        }
    }
}

// ---- format detection

// A mark is a key, or a nested one: "bf16.enabled".
static bool has_mark(const ConfigNode *root, const char *mark) {
    char above[ERROR_HINT_BYTES];
    const char *dot = strchr(mark, '.');
    snprintf(above, sizeof above, "%.*s", dot ? (int)(dot - mark) : (int)strlen(mark), mark);
    const ConfigNode *node = config_child(root, above);
    return node && (!dot || (node->kind == NODE_MAP && config_child(node, dot + 1)));
}

// The next mark; false at their end.
static bool next_mark(const char **at, char mark[ERROR_HINT_BYTES]) {
    const size_t length = strcspn(*at, " ");
    snprintf(mark, ERROR_HINT_BYTES, "%.*s", (int)length, *at);
    *at += length + strspn(*at + length, " ");
    return length > 0;
}

// The class of a script's object, as SFTConfig is, says more than any number of keys, which others may have as well.
static int marks_in(const ImportFormat *format, const ConfigNode *root) {
    enum { KEYS_OF_A_CLASS = 64 };
    int count = 0;
    char mark[ERROR_HINT_BYTES];
    for (const char *at = format->marks; next_mark(&at, mark);) {
        count += !has_mark(root, mark) ? 0 : isupper((unsigned char)mark[0]) ? KEYS_OF_A_CLASS : 1;
    }
    return count;
}

static bool is_mark_of(const ImportFormat *format, const char *key) {
    bool found = false;
    char mark[ERROR_HINT_BYTES];
    for (const char *at = format->marks; next_mark(&at, mark);) {
        found |= strcmp(mark, key) == 0;
    }
    return found;
}

// Every mark of the one is a mark of the other: both can read the file.
static bool same_marks(const ImportFormat *format, const ImportFormat *other, const ConfigNode *root) {
    bool same = true;
    char mark[ERROR_HINT_BYTES];
    for (const char *at = format->marks; next_mark(&at, mark);) {
        same &= !has_mark(root, mark) || is_mark_of(other, mark);
    }
    return same;
}

// A launch script's program that is none of the frameworks', whatever its options are named.
static Status refuse_others(const char *path, const ConfigNode *root, Error *error) {
    int count = 0;
    const Framework *const *frameworks = framework_list(&count);
    const ConfigNode *program = config_child(root, SHELL_PROGRAM);
    char text[ERROR_HINT_BYTES];
    snprintf(text, sizeof text, " %s", program ? program->text : "");
    for (int i = 0; program && i < count; i++) {
        const ImportFormat *config = frameworks[i]->config;
        for (const ImportOther *other = config ? config->others : NULL; other && other->program; other++) {
            if (strstr(text, other->program)) {
                error_set(error, STATUS_USAGE, "%s:%d: this starts %s (%s), whose arguments are not read", path,
                          program->line, other->name, program->text);
                return error_hint(error,
                                  "ndtune predict --target %s --mesh ... prices a shape of it, ndtune plan --target %s "
                                  "finds one",
                                  frameworks[i]->name, frameworks[i]->name);
            }
        }
    }
    return STATUS_OK;
}

static bool has_config(const Framework *framework) {
    return framework->config;
}

static Status recognise(const char *path, const ConfigNode *root, const ImportFormat **format, Error *error) {
    int count = 0, most = 0;
    bool twice = false;
    const Framework *const *frameworks = framework_list(&count);
    for (int i = 0; i < count; i++) {
        const ImportFormat *config = frameworks[i]->config;
        const int marks = config ? marks_in(config, root) : 0;
        const bool again = marks == most && marks > 0 && !same_marks(config, *format, root);
        twice = marks > most ? false : twice || again;
        if (marks > most) {
            most = marks;
            *format = config;
        }
    }
    if (most > 0 && !twice) {
        return STATUS_OK;
    }
    char names[ERROR_HINT_BYTES];
    framework_names(has_config, names, sizeof names);
    const ConfigNode *parser = config_child(root, PYTHON_PARSER);
    if (parser) {
        return error_set(error, STATUS_USAGE,
                         "the arguments of %s are those that it is started with (%s): give their YAML, or the shell "
                         "script that starts it",
                         path, parser->text);
    }
    const ConfigNode *config = config_child(root, SHELL_CONFIG);
    if (most == 0 && config) {
        return error_set(error, STATUS_USAGE, "%s:%d: this starts a run of %s: give that file to --from", path,
                         config->line, config->text);
    }
    if (most > 0) {
        error_set(error, STATUS_USAGE, "%s could be the config of more than one framework", path);
    } else {
        error_set(error, STATUS_USAGE, "%s has no key of %s", path, names);
    }
    const ConfigNode *sourced = config_child(root, SHELL_SOURCED);
    if (most == 0 && sourced) {
        return error_hint(error, "line %d sources %s, which is not read: put both into one script", sourced->line,
                          sourced->first->text);
    }
    return error_hint(error, "--from-format %s says which it is", names);
}

static Status choose_format(const char *path, const ConfigNode *root, const char *name, const ImportFormat **format,
                            Error *error) {
    int count = 0;
    const Framework *const *frameworks = framework_list(&count);
    for (int i = 0; name && i < count; i++) {
        if (frameworks[i]->config && strcmp(frameworks[i]->name, name) == 0) {
            *format = frameworks[i]->config;
            return STATUS_OK;
        }
    }
    return recognise(path, root, format, error);
}

// The schedule with the same order, else the order itself.
static void read_order(Import *import) {
    PpOrder *order = ARENA_NEW(import->arena, PpOrder);
    Error why = {0};
    ImportChoices *said = &import->said;
    if (!import->order_path) {
        return;
    }
    if (order_file_read(import->order_path, import->arena, order, &why) != STATUS_OK) {
        import_refuse(import, import->order_key, "%s", why.message);
        return;
    }
    const Schedule *known = order_file_named(order, import->arena);
    import->pp_order = known ? NULL : order;
    said->choice[PLAN_PP_SCHEDULE] = known ? plan_field_value(PLAN_PP_SCHEDULE, known->name) : PP_FILE;
    said->choice[PLAN_VIRTUAL_STAGES] = order->chunks;
}

static void say_sourced(Import *import) {
    const ConfigNode *list = config_child(import->root, SHELL_SOURCED);
    for (const ConfigNode *node = list ? list->first : NULL; node; node = node->next) {
        import_find(import, FINDING_ASSUMED, NULL,
                    "line %d sources %s, which is not read: what it sets is not known here", node->line, node->text);
    }
}

Status import_tree(ConfigNode *root, const char *path, const char *format, Arena *arena, Import *import, Error *error) {
    *import = (Import){.path = path, .root = root, .arena = arena, .said = import_nothing_said()};
    TRY(refuse_others(path, root, error));
    TRY(choose_format(path, root, format, &import->format, error));
    import->keys = &import->format->keys;
    import->recognised = !format || strcmp(format, import->format->name) != 0;
    TRY(import->format->read(import, error));
    read_order(import);
    import->is_read = true;
    say_sourced(import);
    say_unread(import, root, "");
    return STATUS_OK;
}

static bool is_known(const ConfigNode *root) {
    int count = 0, marks = 0;
    const Framework *const *frameworks = framework_list(&count);
    for (int i = 0; i < count; i++) {
        marks += frameworks[i]->config ? marks_in(frameworks[i]->config, root) : 0;
    }
    return marks > 0;
}

Status import_load_tree(const char *path, Arena *arena, ConfigNode **root, Error *error) {
    ConfigNode *written = NULL;
    TRY(config_load(path, arena, root, error));
    if (!is_known(*root)) {
        TRY(config_load_written(path, arena, &written, error));
        *root = written ? written : *root;
    }
    return STATUS_OK;
}

// A script that leaves its plan to another file may write that one itself.
Status import_load(const char *path, const char *format, Arena *arena, Import *import, Error *error) {
    ConfigNode *root = NULL, *written = NULL;
    Error refused = {0}, unread = {0};
    TRY(import_load_tree(path, arena, &root, error));
    const Status status = import_tree(root, path, format, arena, import, &refused);
    const bool is_left = status != STATUS_OK && import->left_to;
    if (is_left && config_load_written(path, arena, &written, &unread) == STATUS_OK && written &&
        import_tree(written, path, format, arena, import, &unread) == STATUS_OK) {
        return STATUS_OK;
    }
    if (status != STATUS_OK && error) {
        *error = refused;
    }
    return status;
}

// Values as a script has them (import_python.h): what a call calls, and what only the running script knows.

#include "sim/frameworks/import_python.h"

#include <ctype.h>
#include <string.h>

const char *python_class(const ConfigNode *node) {
    const ConfigNode *class = node->kind == NODE_MAP ? config_child(node, "_target_") : NULL;
    return class ? class->text : NULL;
}

bool python_is_made_by(const ConfigNode *node, const char *name) {
    const char *class = python_class(node), *dot = class ? strrchr(class, '.') : NULL;
    return class && strncmp(dot ? dot + 1 : class, name, strlen(name)) == 0;
}

// On one line, not endless.
static const char *folded(const Import *import, const char *text) {
    enum { LONGEST = 100 };
    char *line = arena_text(import->arena, text), *out = line;
    for (const char *at = text; *at && out < line + LONGEST; at++) {
        const bool blank = isspace((unsigned char)*at);
        if (!blank || (out > line && out[-1] != ' ')) {
            *out++ = blank ? ' ' : *at;
        }
    }
    *out = '\0';
    return out < line + LONGEST ? line : arena_format(import->arena, "%s...", line);
}

const char *python_written(const Import *import, const ConfigNode *node) {
    const char *class = python_class(node);
    return node->kind == NODE_SCALAR ? folded(import, node->text)
           : class                   ? arena_format(import->arena, "%s(...)", class)
           : node->kind == NODE_MAP  ? "a dict"
                                     : "a list";
}

void python_forget(ConfigNode *node) {
    node->kind = NODE_SCALAR;
    node->text = "";
    node->of_run = false;
    node->option = NULL;
}

bool python_leave(Import *import, const char *path, const char *words) {
    ConfigNode *node = import_at(import, path);
    if (!node || !node->of_run) {
        return false;
    }
    import_find(import, FINDING_ASSUMED, path, "%s is known when the script runs: %s", python_written(import, node),
                words);
    python_forget(node);
    return true;
}

bool python_leave_to(Import *import, const char *path, const char *option) {
    return python_leave(import, path, arena_format(import->arena, "say it with --%s", option));
}

bool python_leave_choice(Import *import, const char *path, PlanFieldId choice) {
    return python_leave_to(import, path, plan_fields[choice].option.name);
}

// Shared by all readers of config files: typed values, findings, known keys.

#include "sim/frameworks/import.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sim/base/escape.h"
#include "sim/base/text.h"
#include "sim/frameworks/import_python.h"
#include "sim/model/model.h"

ImportChoices import_nothing_said(void) {
    ImportChoices nothing = {0};
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        nothing.choice[id] = IMPORT_UNSAID;
    }
    return nothing;
}

const char *const finding_names[FINDING_KIND_COUNT] = {"refused", "trap", "ignored", "not modelled", "assumed"};

// ---- findings

void import_find(Import *import, FindingKind kind, const char *path, const char *format, ...) {
    char sentence[ERROR_MESSAGE_BYTES];
    WITH_VALUES(format, vsnprintf(sentence, sizeof sentence, format, values));
    const ConfigNode *node = path ? import_at(import, path) : NULL;
    ARENA_PUSH(import->arena, import->findings, import->finding_count, &import->finding_capacity) =
        (ImportFinding){kind, path ? escape_line_text(path, import->arena) : NULL, node ? node->line : 0,
                        escape_line_text(sentence, import->arena)};
}

void import_refuse(Import *import, const char *path, const char *format, ...) {
    char sentence[ERROR_MESSAGE_BYTES];
    WITH_VALUES(format, vsnprintf(sentence, sizeof sentence, format, values));
    import_find(import, FINDING_UNMODELLED, path, "%s", sentence);
    if (!import->refusal) {
        import->refusal = import->findings[import->finding_count - 1].sentence;
        import->refusal_is_ours = true;
    }
}

void import_take_offload(Import *import, const char *path, Offload offload, const char *to) {
    int *said = &import->said.choice[PLAN_OFFLOAD];
    *said = *said < (int)offload ? (int)offload : *said;
    FIND_IF(!import_same_word(to, "cpu"), import, FINDING_UNMODELLED, path,
            "offloading to %s: the prediction has it in the host's memory, so it takes less time than your run", to);
}

void import_switch_offload(Import *import, bool on, const char *path, Offload offload) {
    if (on) {
        import_take_offload(import, path, offload, "cpu");
    }
}

// ---- values

static void remember(Import *import, const char *path) {
    if (!import->is_read) {
        ARENA_PUSH(import->arena, import->asked, import->asked_count, &import->asked_capacity) = path;
    }
}

static ConfigNode *find(Import *import, const char *path, bool uses) {
    remember(import, path);
    ConfigNode *node = import->root;
    char word[96];
    while (node && *path) {
        const size_t length = strcspn(path, ".");
        snprintf(word, sizeof word, "%.*s", (int)length, path);
        node = config_child(node, word);
        if (node && uses) {
            node->used = true;
        }
        path += length + (path[length] == '.');
    }
    return node;
}

ConfigNode *import_at(Import *import, const char *path) {
    return find(import, path, true);
}

static bool says_nothing(const ConfigNode *node) {
    return !node || (node->kind == NODE_SCALAR && (node->text[0] == '\0' || strcmp(node->text, "auto") == 0));
}

// What a launch script leaves to who runs it: "$TP", "$((GPUS / 2))".
static bool is_left_open(const ConfigNode *node) {
    return node->kind == NODE_SCALAR && strchr(node->text, '$');
}

Status import_wrong(Import *import, const ConfigNode *node, const char *path, const char *what, Error *error) {
    import_at(import, path)->of_run |= is_left_open(node);
    if (python_leave(import, path, "read as if nothing was said")) {
        return STATUS_OK;
    }
    FAIL_IF(node->alone, error, STATUS_USAGE, "%s:%d: %s stands without a value: it takes %s", import->path, node->line,
            path, what);
    return error_set(error, STATUS_USAGE, "%s:%d: %s takes %s, not %s%s%s", import->path, node->line, path, what,
                     node->kind == NODE_SCALAR ? "\"" : "",
                     node->kind == NODE_SCALAR ? node->text
                     : node->kind == NODE_MAP  ? "a map"
                                               : "a list",
                     node->kind == NODE_SCALAR ? "\"" : "");
}

void import_note_default(Import *import, const char *path) {
    ConfigNode *node = import_at(import, path);
    if (node && node->option) {
        import_find(import, FINDING_ASSUMED, path, "%s, the script's default of %s", node->text, node->option);
        node->option = NULL;
    }
}

// A number as YAML and TOML spell it may be 500_000.
static const char *without_strokes(const Import *import, const char *text) {
    char *plain = arena_text(import->arena, text), *out = plain;
    for (const char *at = text; *at; at++) {
        const bool between = *at == '_' && at > text && isdigit((unsigned char)at[-1]) && isdigit((unsigned char)at[1]);
        *out = *at;
        out += !between;
    }
    *out = '\0';
    return plain;
}

Status import_big(Import *import, const char *path, int64_t low, int64_t high, int64_t *value, Error *error) {
    import_note_default(import, path);
    const ConfigNode *node = import_at(import, path);
    int64_t number;
    if (says_nothing(node)) {
        return STATUS_OK;
    }
    FAIL_WITH(
        node->kind != NODE_SCALAR || !text_parse_int(without_strokes(import, node->text), &number) || number < low ||
            number > high,
        import_wrong(import, node, path,
                     arena_format(import->arena, "a whole number from %lld to %lld", (long long)low, (long long)high),
                     error));
    *value = number;
    return STATUS_OK;
}

Status import_int(Import *import, const char *path, int64_t low, int64_t high, int *value, Error *error) {
    int64_t number = *value;
    TRY(import_big(import, path, low, high, &number, error));
    *value = (int)number;
    return STATUS_OK;
}

Status import_number(Import *import, const char *path, double low, double high, double *value, Error *error) {
    import_note_default(import, path);
    const ConfigNode *node = import_at(import, path);
    double number;
    if (says_nothing(node)) {
        return STATUS_OK;
    }
    FAIL_WITH(
        node->kind != NODE_SCALAR || !text_parse_double(without_strokes(import, node->text), &number) || number < low ||
            number > high,
        import_wrong(import, node, path, arena_format(import->arena, "a number from %g to %g", low, high), error));
    *value = number;
    return STATUS_OK;
}

Status import_bool(Import *import, const char *path, int *value, Error *error) {
    static const char *const words[2][8] = {{"false", "False", "no", "No", "off", "0", "FALSE", NULL},
                                            {"true", "True", "yes", "Yes", "on", "1", "TRUE", NULL}};
    import_note_default(import, path);
    const ConfigNode *node = import_at(import, path);
    if (says_nothing(node)) {
        return STATUS_OK;
    }
    if (strncmp(path, "--", 2) == 0 && is_left_open(node)) {  // a switch, and words of its own behind it
        *value = true;
        return STATUS_OK;
    }
    for (int truth = 0; truth < 2 && node->kind == NODE_SCALAR; truth++) {
        for (int i = 0; words[truth][i]; i++) {
            if (strcmp(node->text, words[truth][i]) == 0) {
                *value = truth;
                return STATUS_OK;
            }
        }
    }
    return import_wrong(import, node, path, "true or false", error);
}

Status import_word(Import *import, const char *path, const char **value, Error *error) {
    import_note_default(import, path);
    const ConfigNode *node = import_at(import, path);
    if (says_nothing(node)) {
        return STATUS_OK;
    }
    FAIL_WITH(node->kind != NODE_SCALAR, import_wrong(import, node, path, "a word", error));
    *value = node->text;
    return STATUS_OK;
}

bool import_same_word(const char *a, const char *b) {
    return strcasecmp(a, b) == 0;
}

Status import_choice(Import *import, const char *path, const ImportWord *words, int *value, Error *error) {
    const char *word = NULL;
    const char *list = "";
    TRY(import_word(import, path, &word, error));
    for (int i = 0; word && words[i].word; i++) {
        if (import_same_word(word, words[i].word)) {
            *value = words[i].value;
            return STATUS_OK;
        }
        list = arena_format(import->arena, "%s%s%s", list, i > 0 ? ", " : "", words[i].word);
    }
    return word ? import_wrong(import, import_at(import, path), path, list, error) : STATUS_OK;
}

bool import_has(Import *import, const char *path) {
    const ConfigNode *node = find(import, path, false);
    return node && (node->kind != NODE_SCALAR || node->text[0] != '\0');
}

bool import_is_on(Import *import, const char *path) {
    static const char *const off[] = {"", "false", "no", "off", "0", "0.0"};
    const ConfigNode *node = find(import, path, false);
    if (!node || node->kind != NODE_SCALAR) {
        return node && node->first;
    }
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++) {
        if (import_same_word(node->text, off[i])) {
            return false;
        }
    }
    return true;
}

// torch.float32 is fp32.
static bool is_quiet(const char *text, const char *quiet) {
    static const char *const dtypes[][2] = {
        {"torch.float32", "fp32"}, {"torch.bfloat16", "bf16"}, {"torch.float16", "fp16"}};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        text = strcmp(text, dtypes[i][0]) == 0 ? dtypes[i][1] : text;
    }
    return import_same_word(text, quiet);
}

void import_leave_out(Import *import, const ImportLeftOut *rows) {
    for (; rows->path; rows++) {
        ConfigNode *node = find(import, rows->path, false);
        if (node && node->of_run) {
            python_leave(import, rows->path, arena_format(import->arena, "where that is on, %s", rows->sentence));
        }
        const char *text = node && node->kind == NODE_SCALAR ? node->text : NULL;
        const bool quiet = text && (import_same_word(text, "none") || import_same_word(text, "auto") ||
                                    (rows->quiet && is_quiet(text, rows->quiet)));
        FIND_IF(node && !node->used && !quiet && import_is_on(import, rows->path), import, FINDING_UNMODELLED,
                rows->path, "%s", rows->sentence);
        import_known(import, (const char *const[]){rows->path, NULL});
    }
}

static bool has_sizes(const ModelSpec *model, const ImportSizes *sizes) {
    return model->layers == sizes->layers && model->hidden == sizes->hidden && model->heads == sizes->heads &&
           (model->ffn == sizes->ffn || sizes->experts > 0) && model->experts.count == sizes->experts;
}

void import_name_model(Import *import, const ImportSizes *sizes) {
    int count = 0;
    const ModelPreset *presets = model_presets(&count), *found = NULL;
    for (int i = 0; i < count && sizes->layers > 0 && !import->preset; i++) {
        const bool nearer = sizes->rope_theta > 0 && presets[i].spec.rope_theta == sizes->rope_theta;
        if (has_sizes(&presets[i].spec, sizes) && (!found || (nearer && found->spec.rope_theta != sizes->rope_theta))) {
            found = &presets[i];
        }
    }
    if (found) {
        import->preset = found->spec.name;
        import->preset_by_sizes = true;
    }
}

// ---- keys without effect

static void mark_below(ConfigNode *node) {
    node->used = true;
    for (ConfigNode *child = node->first; child; child = child->next) {
        mark_below(child);
    }
}

void import_known_below(Import *import, const char *above, const char *const *rows) {
    for (; *rows; rows++) {
        for (const char *at = *rows; *at; at += strcspn(at, " \n"), at += *at != '\0') {
            ConfigNode *node =
                import_at(import, arena_format(import->arena, "%s%.*s", above, (int)strcspn(at, " \n"), at));
            if (node) {
                mark_below(node);
            }
        }
    }
}

void import_known(Import *import, const char *const *rows) {
    import_known_below(import, "", rows);
}

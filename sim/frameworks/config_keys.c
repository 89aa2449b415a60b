// Reading and writing config files by their tables of keys.

#include "sim/frameworks/config_keys.h"

#include <string.h>

#include "sim/base/escape.h"
#include "sim/frameworks/import_python.h"

enum { MOST_OF_A_BATCH = 1 << 20, LONGEST_SEQUENCE = 1 << 24, LARGEST_BATCH = 1000000000 };

static Status read_switch(Import *import, const ConfigKey *key, Error *error) {
    int truth = IMPORT_UNSAID;
    TRY(import_bool(import, key->path, &truth, error));
    if (truth != IMPORT_UNSAID) {
        import->said.choice[key->id] = truth ? key->on : key->off;
    }
    return STATUS_OK;
}

// The option that says what the row does; NULL.
static const char *option_of(const ConfigKey *key) {
    static const char *const of_batch[] = {[KEY_SEQ] = "seq",
                                           [KEY_MICRO_BATCH] = "micro-batch",
                                           [KEY_ACCUMULATION] = "grad-accum",
                                           [KEY_BATCH] = "global-batch"};
    const bool of_plan = key->means == KEY_CHOICE || key->means == KEY_NUMBER || key->means == KEY_SWITCH;
    return of_plan ? plan_fields[key->id].option.name : key->means <= KEY_BATCH ? of_batch[key->means] : NULL;
}

static Status read_key(Import *import, const ConfigKey *key, Error *error) {
    ImportChoices *said = &import->said;
    const int least = key->least ? key->least : 1;
    const char *option = option_of(key);
    if (option) {
        python_leave_to(import, key->path, option);
    }
    switch (key->means) {
    case KEY_WRITTEN:
        if (!key->when) {
            import_known(import, (const char *const[]){key->path, NULL});
        }
        break;
    case KEY_AXIS:
        return import_int(import, key->path, least, MESH_MAX_WORLD, &said->size[key->id], error);
    case KEY_SEQ:
        return import_int(import, key->path, least, LONGEST_SEQUENCE, &said->seq, error);
    case KEY_MICRO_BATCH:
        return import_int(import, key->path, least, MOST_OF_A_BATCH, &said->micro_batch, error);
    case KEY_ACCUMULATION:
        return import_int(import, key->path, least, MOST_OF_A_BATCH, &said->grad_accum, error);
    case KEY_BATCH:
        return import_big(import, key->path, least, LARGEST_BATCH, &said->global_batch, error);
    case KEY_CHOICE:
        return import_choice(import, key->path, key->words, &said->choice[key->id], error);
    case KEY_NUMBER:
        return import_int(import, key->path, plan_fields[key->id].low, plan_fields[key->id].high,
                          &said->choice[key->id], error);
    case KEY_SWITCH:
        return read_switch(import, key, error);
    }
    return STATUS_OK;
}

Status config_read(Import *import, const ConfigKey *keys, Error *error) {
    for (const ConfigKey *key = keys; key->path; key++) {
        TRY(read_key(import, key, error));
    }
    return STATUS_OK;
}

static const char *word_of(const ImportWord *words, int value) {
    while (words->word && words->value != value) {
        words++;
    }
    return words->word ? words->word : "";
}

// What the row is in this plan.
static const char *value_of(const ConfigJob *job, const ConfigKey *key) {
    const TrainPlan *plan = job->plan;
    switch (key->means) {
    case KEY_WRITTEN:
        break;
    case KEY_AXIS:
        return arena_format(job->arena, "%d", plan->mesh.size[key->id]);
    case KEY_SEQ:
        return arena_format(job->arena, "%d", plan->seq);
    case KEY_MICRO_BATCH:
        return arena_format(job->arena, "%d", plan->micro_batch);
    case KEY_ACCUMULATION:
        return arena_format(job->arena, "%d", plan->grad_accum);
    case KEY_BATCH:
        return arena_format(job->arena, "%lld", (long long)plan_global_batch(plan));
    case KEY_CHOICE:
        return word_of(key->words, plan_get(plan, (PlanFieldId)key->id));
    case KEY_NUMBER:
        return arena_format(job->arena, "%d", plan_get(plan, (PlanFieldId)key->id));
    case KEY_SWITCH:
        return export_bool(plan_get(plan, (PlanFieldId)key->id) == key->on);
    }
    return key->literal;
}

// Length of the path of its section; 0 = none.
static size_t section_length(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : 0;
}

static bool same_section(const char *path, const char *above) {
    const size_t length = section_length(path);
    return section_length(above) == length && strncmp(above, path, length) == 0;
}

static void write_value(const ConfigJob *job, const ConfigKey *key, FILE *out) {
    const char *value = key->text ? key->text(job) : value_of(job, key);
    if (key->quoted) {
        escape_quoted(value, out);
    } else {
        fputs(value, out);
    }
}

void config_write_json(const ConfigJob *job, const ConfigKey *keys, FILE *out) {
    const char *above = NULL;
    for (const ConfigKey *key = keys; key->path; key++) {
        const int length = (int)section_length(key->path);
        if (key->when && !key->when(job)) {
            continue;
        }
        const bool goes_on = above && length > 0 && same_section(key->path, above);
        if (above) {
            fputs(goes_on ? ", " : section_length(above) > 0 ? "},\n" : ",\n", out);
        }
        PRINT_IF(!goes_on, out, length > 0 ? "    \"%.*s\": {" : "    %.*s", length, key->path);
        fprintf(out, "\"%s\": ", key->path + length + (length > 0));
        write_value(job, key, out);
        above = key->path;
    }
    fputs(above && section_length(above) > 0 ? "}\n" : "\n", out);
}

void config_write(const ConfigJob *job, const ConfigKey *keys, ConfigStyle style, FILE *out) {
    const char *above = "";
    for (const ConfigKey *key = keys; key->path; key++) {
        const size_t length = section_length(key->path);
        if (key->when && !key->when(job)) {
            continue;
        }
        PRINT_IF(length > 0 && !same_section(key->path, above), out,
                 style == CONFIG_TOML ? "%s[%.*s]\n" : "%.0s%.*s:\n", above[0] ? "\n" : "", (int)length, key->path);
        above = key->path;
        fprintf(out, style == CONFIG_TOML ? "%.0s%s = " : "%s%s: ", length > 0 ? "  " : "",
                key->path + length + (length > 0));
        write_value(job, key, out);
        fputc('\n', out);
    }
}

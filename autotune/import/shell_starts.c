// The program of a command and its config file.

#include "autotune/import/shell_starts.h"

#include <string.h>

#include "sim/base/text.h"

static bool ends_as_config(const char *word) {
    static const char *const endings[] = {".yaml", ".yml", ".toml", ".json"};
    bool ends = false;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        ends |= text_ends_in(word, endings[i]);
    }
    return ends;
}

// --config, --job.config_file=...: of this many letters.
static bool names_config(const char *option, size_t length) {
    static const char *const names[] = {"config", "config_file",      "config-file", "cfg",
                                        "c",      "deepspeed_config", "ds_config"};
    const char *name = option + strspn(option, "-");
    for (const char *at = name; at < option + length; at++) {
        name = *at == '.' ? at + 1 : name;
    }
    bool is_one = false;
    for (size_t i = 0; option[0] == '-' && i < sizeof names / sizeof names[0]; i++) {
        is_one |=
            strlen(names[i]) == (size_t)(option + length - name) && strncmp(name, names[i], strlen(names[i])) == 0;
    }
    return is_one;
}

// Without the folder that only a command knows, $(dirname "$0")/FILE.
static const char *without_command(const char *file) {
    const char *close = strrchr(file, ')'), *tick = strrchr(file, '`'),
               *end = !close || (tick && tick > close) ? tick : close;
    return !end ? file : end[1] == '/' ? end + 2 : end + 1;
}

void shell_config(const ShellList *words, ShellWord *config) {
    for (int i = 1; i < words->count; i++) {
        const char *word = words->words[i].text, *option = words->words[i - 1].text, *sign = strchr(word, '=');
        const bool alone = option[0] == '-' ? names_config(option, strlen(option)) : !sign;
        if (sign && names_config(word, (size_t)(sign - word)) && ends_as_config(sign)) {
            *config = (ShellWord){without_command(sign + 1), words->words[i].line};
        } else if (alone && ends_as_config(word)) {
            *config = (ShellWord){without_command(word), words->words[i].line};
        }
    }
}

// "NAME sft": a program and what it is to do, in words that are neither a path nor left to the environment; not where
// it is to start another.
static bool is_program_and_verb(const ShellList *words) {
    static const char *const starters[] = {"python", "python3", "torchrun", "srun", "mpirun", "mpiexec", "nohup",
                                           "env",    "bash",    "sh",       "eval", "sudo",   "numactl", NULL};
    static const char *const starts[] = {"launch", "run", "exec", "job", NULL};
    const char *first = words->count > 1 ? words->words[0].text : "",
               *second = words->count > 1 ? words->words[1].text : "";
    return !shell_is_one_of(first, starters) && !shell_is_one_of(second, starts) && first[0] && second[0] &&
           !strpbrk(first, "$=`") && !strpbrk(second, "$=`-./");
}

int shell_behind_program(const ShellList *words) {
    if (is_program_and_verb(words)) {
        return 0;
    }
    for (int i = 0; i < words->count; i++) {
        if (text_ends_in(words->words[i].text, ".py")) {
            return i + 1;
        }
    }
    return 0;
}

const char *shell_program(const ShellList *words, int behind, Arena *arena) {
    if (behind > 0) {
        return words->words[behind - 1].text;
    }
    for (int i = 0; i + 1 < words->count; i++) {
        if (strcmp(words->words[i].text, "-m") == 0 || strcmp(words->words[i].text, "--module") == 0) {
            return arena_format(arena, "-m %s", words->words[i + 1].text);
        }
    }
    return is_program_and_verb(words) ? arena_format(arena, "%s %s", words->words[0].text, words->words[1].text) : NULL;
}

const ShellWord *shell_sourced(const ShellList *words) {
    static const char *const commands[] = {"source", ".", NULL};
    static const char *const quiet[] = {"activate",   ".bashrc",    ".profile", "conda.sh",
                                        "set_env.sh", "modules.sh", NULL};
    if (words->count < 2 || !shell_is_one_of(words->words[0].text, commands)) {
        return NULL;
    }
    const char *file = words->words[1].text, *slash = strrchr(file, '/');
    return shell_is_one_of(slash ? slash + 1 : file, quiet) ? NULL : &words->words[1];
}

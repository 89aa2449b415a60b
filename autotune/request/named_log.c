// Micro-batch, accumulation and sequence length by their keys; every other word is the mesh.

#include "autotune/request/named_log.h"

#include <string.h>

#include "sim/base/text.h"

NamedLog named_log(const char *text, Arena *arena) {
    const char *at = strrchr(text, '@');
    if (!at || !strchr(at, '=')) {
        return (NamedLog){.path = text};
    }
    return (NamedLog){.path = arena_format(arena, "%.*s", (int)(at - text), text), .own = at + 1};
}

Status named_log_ask(const NamedLog *log, Asked *asked, Arena *arena, Error *error) {
    const struct {
        const char *key;
        int *number;
    } keys[] = {{"micro_batch", &asked->micro_batch}, {"grad_accum", &asked->grad_accum}, {"seq", &asked->seq}};
    const char *mesh = "";
    char *text = arena_text(arena, log->own ? log->own : ""), *rest = NULL;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        const size_t length = strcspn(word, "=");
        bool taken = false;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            if (strlen(keys[i].key) == length && strncmp(keys[i].key, word, length) == 0) {
                int64_t number;
                FAIL_IF(!text_parse_int(word + length + 1, &number) || number < 1, error, STATUS_USAGE,
                        "--log %s: %s is no count", log->path, word);
                *keys[i].number = (int)number;
                taken = true;
            }
        }
        mesh = taken ? mesh : arena_format(arena, "%s%s%s", mesh, mesh[0] ? "," : "", word);
    }
    asked->mesh = mesh[0] ? mesh : asked->mesh;
    return STATUS_OK;
}

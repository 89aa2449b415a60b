// Batches, accumulation and sequence length by their keys; every other word is the mesh.

#include "autotune/request/named_log.h"

#include <limits.h>
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
    int64_t global_batch = 0, micro_batch = asked->micro_batch, grad_accum = 0, seq = asked->seq;
    const struct {
        const char *key;
        int64_t *number;
    } keys[] = {
        {"micro_batch", &micro_batch}, {"grad_accum", &grad_accum}, {"seq", &seq}, {"global_batch", &global_batch}};
    const char *mesh = "";
    char *text = arena_text(arena, log->own ? log->own : ""), *rest = NULL;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        const size_t length = strcspn(word, "=");
        bool taken = false;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            if (strlen(keys[i].key) == length && strncmp(keys[i].key, word, length) == 0) {
                taken = text_parse_int(word + length + 1, keys[i].number) && *keys[i].number > 0 &&
                        *keys[i].number <= INT_MAX;
                FAIL_IF(!taken, error, STATUS_USAGE, "--log %s: %s is no count", log->path, word);
            }
        }
        mesh = taken ? mesh : arena_format(arena, "%s%s%s", mesh, mesh[0] ? "," : "", word);
    }
    asked->mesh = mesh[0] ? mesh : asked->mesh;
    asked->micro_batch = (int)micro_batch;
    asked->seq = (int)seq;
    if (global_batch > 0 || grad_accum > 0) {  // either says the batch
        asked->global_batch = global_batch;
        asked->grad_accum = (int)grad_accum;
    }
    return STATUS_OK;
}

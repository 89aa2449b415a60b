// Lines "COMM LANE RANK/SIZE WORDS key=value ...".

#include "tests/parity/exec/nccl_log.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 512, CALLS_MOST = 20000 };

static int value_of(const char *line, const char *key) {
    const char *at = strstr(line, key);
    int value = -9;
    return at && sscanf(at + strlen(key), "%d", &value) == 1 ? value : -9;
}

static void line_read(char *line, NcclCall *call) {
    int used = 0;
    line[strcspn(line, "\n")] = '\0';
    const int read = sscanf(line, "%95s %31s %d/%d %n", call->comm, call->lane, &call->rank, &call->size, &used);
    cr_assert(read == 4, "%s", line);
    const char *words = line + used, *settings = strchr(words, '=');
    size_t length = strlen(words);
    if (settings) {
        length = (size_t)(settings - words);
        while (length > 0 && words[length - 1] != ' ') {
            length--;
        }
    }
    while (length > 0 && words[length - 1] == ' ') {
        length--;
    }
    snprintf(call->words, sizeof call->words, "%.*s", (int)length, words);
    call->count = (size_t)value_of(line, " count=");
    call->type = value_of(line, " type=");
    call->op = value_of(line, " op=");
    call->depth = value_of(line, " depth=");
    call->to = value_of(line, " to=");
    call->from = value_of(line, " from=");
    call->color = value_of(line, " color=");
    call->share = value_of(line, " share=");
}

NcclLog nccl_log_read(const char *directory, int rank, Arena *arena) {
    NcclLog log = {.calls = ARENA_ARRAY(arena, NcclCall, CALLS_MOST)};
    char path[LINE_BYTES], line[LINE_BYTES];
    snprintf(path, sizeof path, "%s/calls-%d.log", directory, rank);
    FILE *file = fopen(path, "r");
    cr_assert(file, "no %s", path);
    while (fgets(line, sizeof line, file)) {
        cr_assert_lt(log.count, CALLS_MOST);
        line_read(line, &log.calls[log.count++]);
    }
    fclose(file);
    return log;
}

bool nccl_log_has(const NcclLog *log, const char *words) {
    for (int i = 0; i < log->count; i++) {
        if (strncmp(log->calls[i].words, words, strlen(words)) == 0) {
            return true;
        }
    }
    return false;
}

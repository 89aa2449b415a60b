// Lines "COMM LANE RANK/SIZE WORDS key=value ...".

#include "tests/parity/exec/nccl_log.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "exec/protocol/program_words.h"

enum { LINE_BYTES = 512, CALLS_MOST = 20000, FP32 = 7, BYTES = 0 };  // the last two of ncclDataType_t

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

// ---------------------------------------------------------------------------------------------- held against the
// program

// Calls of the program's lanes: not those of the start, nor the run's own.
static const NcclCall *next_call(const NcclLog *log, int *at) {
    while (*at < log->count) {
        const NcclCall *call = &log->calls[(*at)++];
        const bool own = strcmp(call->lane, "start") != 0 && strcmp(call->lane, "run") != 0;
        if (own && strncmp(call->words, "call ", 5) == 0) {
            return call;
        }
    }
    return NULL;
}

static const char *words_of(TaskKind kind) {
    return kind == TASK_ALL_GATHER       ? "call all_gather"
           : kind == TASK_REDUCE_SCATTER ? "call reduce_scatter"
           : kind == TASK_ALL_REDUCE     ? "call all_reduce"
           : kind == TASK_ALL_TO_ALL     ? "call all_to_all"
                                         : "call send_recv";
}

static void call_is(const NcclCall *call, const StepProgram *program, const Task *task, int rank) {
    const MeshCoordinates at = mesh_coordinates(&program->plan.mesh, rank);
    const Group *group = &program->groups[task->group];
    const bool parts = task->kind == TASK_ALL_TO_ALL;
    const bool whole = task->kind == TASK_ALL_GATHER || task->kind == TASK_SEND_RECV || parts;
    const int64_t bytes = program_collective_bytes(program, task);
    const int index = mesh_group_index(&program->plan.mesh, group->axes, &at);
    cr_expect_str_eq(call->words, words_of(task->kind), "'%s'", task->name);
    cr_expect_str_eq(call->lane, program->lanes[task->lane].name, "'%s'", task->name);
    cr_expect(call->size == group->size && call->rank == index, "'%s': %d of %d", task->name, call->rank, call->size);
    const bool told = parts && task->operand_count > AT_EXCHANGE_CAME;  // sizes are the router's
    cr_expect(told || call->count == (size_t)(whole ? bytes : bytes / 4), "'%s': %zu of %lld bytes", task->name,
              call->count, (long long)bytes);
    cr_expect(call->type == (whole ? BYTES : FP32), "'%s': type %d", task->name, call->type);
    if (task->kind == TASK_SEND_RECV) {
        cr_expect(call->depth == 1 && call->to == (index + 1) % group->size &&
                      call->from == (index + group->size - 1) % group->size,
                  "'%s': to %d, from %d", task->name, call->to, call->from);
    } else {
        cr_expect(call->depth == parts && (whole || call->op == (task->reduce_max ? 2 : 0)), "'%s'", task->name);
    }
}

void nccl_log_is_the_programs(const NcclLog *log, const StepProgram *program, int rank, int steps) {
    int at = 0;
    for (int step = 0; step < steps; step++) {
        StepCursor cursor = step_cursor_begin(program);
        StepInstance instance;
        while (step_cursor_next(&cursor, &instance)) {
            const Task *task = &program->tasks[instance.task];
            if (!task_is_collective(task) || program->groups[task->group].size == 1) {
                continue;
            }
            const NcclCall *call = next_call(log, &at);
            cr_assert(call, "rank %d: no call for '%s' of step %d", rank, task->name, step);
            call_is(call, program, task, rank);
        }
    }
    cr_expect(!next_call(log, &at), "rank %d: more calls than the program has", rank);
}

void nccl_log_has_partners(const NcclLog *log, const NcclLog *other) {
    int at = 0, there = 0;
    for (; at < log->count; at++) {
        const NcclCall *call = &log->calls[at], *match = NULL;
        bool member = false;
        for (int i = 0; i < other->count; i++) {
            member = member || strcmp(other->calls[i].comm, call->comm) == 0;
        }
        if (!member || strncmp(call->words, "call", 4) != 0) {
            continue;
        }
        // Both logs name the communicators that both are in, in one order.
        while (there < other->count && (strcmp(other->calls[there].comm, call->comm) != 0 ||
                                        strncmp(other->calls[there].words, "call", 4) != 0)) {
            there++;
        }
        match = there < other->count ? &other->calls[there++] : NULL;
        const bool parts = strcmp(call->words, "call all_to_all") == 0;  // what leaves is each member's own
        cr_expect(match && strcmp(match->words, call->words) == 0 && (parts || match->count == call->count) &&
                      match->type == call->type && match->op == call->op,
                  "%s: %s of %zu has no partner", call->comm, call->words, call->count);
    }
}

int nccl_log_aborts(const char *directory, int ranks, Arena *arena) {
    int aborted = 0;
    for (int rank = 0; rank < ranks; rank++) {
        const NcclLog log = nccl_log_read(directory, rank, arena);
        bool over = false;
        for (int i = 0; i < log.count; i++) {
            over = over || strcmp(log.calls[i].words, "abort") == 0;
            cr_expect(!over || strcmp(log.calls[i].words, "abort") == 0, "rank %d: %s after an abort", rank,
                      log.calls[i].words);
        }
        aborted += over;
        cr_expect(!nccl_log_has(&log, "VIOLATION"), "rank %d", rank);
    }
    return aborted;
}

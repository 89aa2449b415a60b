// The memory snapshot, read back with only the opcodes that PyTorch's viewer supports: the live blocks at each time are
// those of memory_breakdown.

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "reports/trace.h"
#include "sim/memory/memory.h"
#include "tests/support/lowered.h"

enum { STACK = 64, MEMO = 256 };

typedef struct Reader {
    const unsigned char *at;
    json_t *stack[1 << 12];
    int depth, marks[STACK], mark_count;
    json_t *memo[MEMO];
} Reader;

static int64_t little(Reader *reader, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint64_t)*reader->at++ << (8 * i);
    }
    return (int64_t)value;
}

static void push(Reader *reader, json_t *value) {
    cr_assert_lt(reader->depth, (int)(sizeof reader->stack / sizeof reader->stack[0]));
    reader->stack[reader->depth++] = value;
}

// Moves everything above the last mark into the list or dictionary below it.
static void close_mark(Reader *reader, bool dict) {
    const int mark = reader->marks[--reader->mark_count];
    json_t *holder = reader->stack[mark - 1];
    for (int i = mark; i < reader->depth; i += dict ? 2 : 1) {
        if (dict) {
            json_object_set_new(holder, json_string_value(reader->stack[i]), reader->stack[i + 1]);
            json_decref(reader->stack[i]);
        } else {
            json_array_append_new(holder, reader->stack[i]);
        }
    }
    reader->depth = mark;
}

static bool read_one(Reader *reader) {
    const int opcode = *reader->at++;
    switch (opcode) {
    case '}':
        push(reader, json_object());
        break;
    case ']':
        push(reader, json_array());
        break;
    case '(':
        cr_assert_lt(reader->mark_count, STACK);
        reader->marks[reader->mark_count++] = reader->depth;
        break;
    case 'u':
    case 'e':
        close_mark(reader, opcode == 'u');
        break;
    case 'X': {
        const int64_t bytes = little(reader, 4);
        push(reader, json_stringn((const char *)reader->at, (size_t)bytes));
        reader->at += bytes;
        break;
    }
    case 'q':
        reader->memo[*reader->at++] = json_incref(reader->stack[reader->depth - 1]);
        break;
    case 'h':
        push(reader, json_incref(reader->memo[*reader->at++]));
        break;
    case 'K':
    case 'M':
        push(reader, json_integer(little(reader, opcode == 'K' ? 1 : 2)));
        break;
    case 'J':
        push(reader, json_integer((int32_t)little(reader, 4)));
        break;
    case 0x8a:
        cr_assert_eq(*reader->at++, 8);
        push(reader, json_integer(little(reader, 8)));
        break;
    case '.':
        return false;
    default:
        cr_assert_fail("opcode %d", opcode);
    }
    return true;
}

static json_t *unpickled(const char *bytes) {
    Reader *reader = calloc(1, sizeof *reader);
    reader->at = (const unsigned char *)bytes;
    cr_assert_eq(*reader->at++, 0x80);
    cr_assert_eq(*reader->at++, 2);
    while (read_one(reader)) {
    }
    cr_assert_eq(reader->depth, 1);
    json_t *root = reader->stack[0];
    for (int i = 0; i < MEMO; i++) {
        json_decref(reader->memo[i]);
    }
    free(reader);
    return root;
}

static json_t *snapshot_of(const StepProgram *program, Arena *arena) {
    char *bytes = NULL;
    size_t count = 0;
    Error error = {0};
    const MemorySnapshot snapshot = {.program = program, .arena = arena};
    FILE *out = open_memstream(&bytes, &count);
    cr_assert_eq(memory_snapshot(&snapshot, out, &error), STATUS_OK, "%s", error.message);
    fclose(out);
    json_t *root = unpickled(bytes);
    free(bytes);
    return root;
}

static int64_t integer(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_integer(value), "%s is no integer", key);
    return json_integer_value(value);
}

typedef struct Walk {
    int64_t live, peak;
    json_t *held;  // by address
} Walk;

static void take_event(Walk *walk, const json_t *event) {
    const char *action = json_string_value(json_object_get(event, "action"));
    char address[32];
    snprintf(address, sizeof address, "%lld", (long long)integer(event, "addr"));
    if (strcmp(action, "alloc") == 0) {
        cr_assert_null(json_object_get(walk->held, address), "%s is alive already", address);
        json_object_set_new(walk->held, address, json_integer(integer(event, "size")));
        walk->live += integer(event, "size");
        walk->peak = walk->live > walk->peak ? walk->live : walk->peak;
    } else if (strcmp(action, "free_completed") == 0) {
        cr_assert_eq(json_integer_value(json_object_get(walk->held, address)), integer(event, "size"));
        json_object_del(walk->held, address);
        walk->live -= integer(event, "size");
    }
}

static void check_program(const StepProgram *program, Arena *arena) {
    json_t *root = snapshot_of(program, arena);
    const json_t *trace = json_array_get(json_object_get(root, "device_traces"), 0);
    const json_t *segment = json_array_get(json_object_get(root, "segments"), 0), *event, *block;
    size_t index;
    Walk walk = {.held = json_object()};
    int64_t last_us = 0, end = integer(segment, "address");
    json_array_foreach(trace, index, event) {
        take_event(&walk, event);
        cr_assert(json_is_string(json_object_get(event, "category")));
        if (index > 0) {
            cr_assert_geq(integer(event, "time_us"), last_us);
            last_us = integer(event, "time_us");
        }
    }
    MemoryBreakdown breakdown;
    Error error = {0};
    cr_assert_eq(memory_breakdown(program, arena, &breakdown, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq((double)walk.peak, breakdown.peak_bytes);
    cr_expect_eq(walk.live, integer(segment, "allocated_size"));
    json_array_foreach(json_object_get(segment, "blocks"), index, block) {  // without gaps
        cr_assert_eq(integer(block, "address"), end);
        end += integer(block, "size");
        const bool active = strcmp(json_string_value(json_object_get(block, "state")), "active_allocated") == 0;
        char address[32];
        snprintf(address, sizeof address, "%lld", (long long)integer(block, "address"));
        cr_assert_eq(active, json_object_get(walk.held, address) != NULL);
    }
    cr_expect_eq(end, integer(segment, "address") + integer(segment, "total_size"));
    json_decref(walk.held);
    json_decref(root);
}

Test(memory_snapshot, live_bytes_peak_where_the_prediction_does) {
    static const LoweredRequest requests[] = {
        {.target = "accelerate", .mesh = "dp_shard=2,tp=2", .grad_accum = 2, .bf16 = true},
        {.target = "torchtitan",
         .cp_rotate = CP_ROTATE_ALLGATHER,
         .mesh = "dp_shard=2,cp=2",
         .seq = 128,
         .bf16 = true,
         .recompute = RECOMPUTE_FULL,
         .layers = 9},
        {.target = "megatron", .mesh = "dp_replicate=2,tp=2", .grad_accum = 3, .bf16 = true},
        {.target = "deepspeed", .mesh = "dp_shard=4", .grad_accum = 2, .bf16 = true, .layers = 24},
    };
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        Arena arena = {0};
        const StepProgram program = lowered(&arena, requests[i]);
        check_program(&program, &arena);
        arena_free(&arena);
    }
}

Test(memory_snapshot, every_allocation_names_its_buffer_and_its_task) {
    Arena arena = {0};
    const StepProgram program =
        lowered(&arena, (LoweredRequest){.target = "accelerate", .mesh = "dp_shard=2", .bf16 = true});
    json_t *root = snapshot_of(&program, &arena);
    const json_t *event;
    size_t index;
    json_array_foreach(json_array_get(json_object_get(root, "device_traces"), 0), index, event) {
        const json_t *frames = json_object_get(event, "frames");
        const json_t *frame = json_array_get(frames, 0);
        if (index == 0) {
            continue;  // the viewer's own
        }
        cr_assert_eq(json_array_size(frames), 2);
        bool known = false;
        for (int32_t i = 0; i < program.buffer_count && !known; i++) {
            known = strcmp(program.buffers[i].name, json_string_value(json_object_get(frame, "name"))) == 0;
        }
        cr_assert(known);
    }
    json_decref(root);
    arena_free(&arena);
}

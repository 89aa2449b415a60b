// Python's pickle as data: a stack of values, marks and a memo. What a table of opcodes does not do is refused. The
// opcodes are those of CPython's Lib/pickletools.py.

#include <string.h>

#include "autotune/blame/dump_value.h"
#include "sim/base/text.h"

enum {
    MOST_MARKS = 256,       // containers that are open at once; a dump of torch has 7
    MOST_VALUES = 1 << 24,  // of the 64 MiB that a file may have at most; 1 GiB of memory
    MOST_MEMOS = 1 << 24,
    LINE_BYTES = 64,  // of a number in protocol 0
    NEWEST_PROTOCOL = 5
};

typedef struct Unpickler {
    const uint8_t *bytes;
    size_t size, at, opcode_at;
    Arena *arena;
    DumpValue **stack, **memo;
    size_t depth, stack_capacity, memo_count, memo_size, memo_capacity, values;
    size_t marks[MOST_MARKS];
    int mark_count;
    bool stopped;
    Error *error;
} Unpickler;

static Status fail(Unpickler *reader, const char *what) {
    return error_set(reader->error, STATUS_USAGE, "byte %zu: %s", reader->opcode_at, what);
}

// ---------------------------------------------------------------------------------------------- bytes

static Status take(Unpickler *reader, uint64_t count, const uint8_t **bytes) {
    if (count > reader->size - reader->at) {
        return fail(reader, "the pickle ends in the middle of a value");
    }
    *bytes = reader->bytes + reader->at;
    reader->at += (size_t)count;
    return STATUS_OK;
}

static Status take_unsigned(Unpickler *reader, int width, uint64_t *value) {
    const uint8_t *bytes = NULL;
    TRY(take(reader, (uint64_t)width, &bytes));
    *value = 0;
    for (int i = width - 1; i >= 0; i--) {
        *value = *value << 8 | bytes[i];
    }
    return STATUS_OK;
}

// Up to the end of the line, which is left out.
static Status take_line(Unpickler *reader, const uint8_t **bytes, size_t *length) {
    const uint8_t *end = memchr(reader->bytes + reader->at, '\n', reader->size - reader->at);
    if (!end) {
        return fail(reader, "the pickle ends in the middle of a line");
    }
    *length = (size_t)(end - (reader->bytes + reader->at));
    TRY(take(reader, *length + 1, bytes));
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- the stack

static Status push_value(Unpickler *reader, DumpValue *value) {
    reader->stack =
        arena_grow(reader->arena, reader->stack, reader->depth, &reader->stack_capacity, sizeof *reader->stack);
    reader->stack[reader->depth++] = value;
    return STATUS_OK;
}

static Status push_new(Unpickler *reader, DumpType type, DumpValue **value) {
    if (++reader->values > MOST_VALUES) {
        return fail(reader, "more values than a dump has");
    }
    *value = ARENA_NEW(reader->arena, DumpValue);
    (*value)->type = type;
    return push_value(reader, *value);
}

static size_t floor_of(const Unpickler *reader) {  // what is below the last mark is not the current container's
    return reader->mark_count > 0 ? reader->marks[reader->mark_count - 1] : 0;
}

static Status need(Unpickler *reader, size_t count) {
    return reader->depth - floor_of(reader) < count ? fail(reader, "an opcode finds too few values") : STATUS_OK;
}

static Status pop_mark(Unpickler *reader, size_t *from) {
    if (reader->mark_count == 0) {
        return fail(reader, "an opcode finds no mark");
    }
    *from = reader->marks[--reader->mark_count];
    return STATUS_OK;
}

// The container below the mark, or below the last `count` values, that takes what is above it.
static Status add_to_top(Unpickler *reader, size_t from, DumpType type) {
    if (from <= floor_of(reader)) {
        return fail(reader, "nothing is there to be filled");
    }
    DumpValue *container = reader->stack[from - 1];
    if (container->type != type || (type == DUMP_DICT && (reader->depth - from) % 2 != 0)) {
        return fail(reader, type == DUMP_DICT ? "keys and values for what is no dictionary, or a key without a value"
                                              : "items for what is no list");
    }
    for (size_t i = from; i < reader->depth; i++) {
        dump_value_append(container, reader->stack[i], reader->arena);
    }
    reader->depth = from;
    return STATUS_OK;
}

// The values from there on become one container.
static Status gather(Unpickler *reader, size_t from, DumpType type) {
    const size_t end = reader->depth;
    DumpValue *container = NULL;
    if (type == DUMP_DICT && (end - from) % 2 != 0) {
        return fail(reader, "a key without a value");
    }
    TRY(push_new(reader, type, &container));
    for (size_t i = from; i < end; i++) {
        dump_value_append(container, reader->stack[i], reader->arena);
    }
    reader->stack[from] = container;
    reader->depth = from + 1;
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- values

static Status push_integer(Unpickler *reader, int64_t integer) {
    DumpValue *value = NULL;
    TRY(push_new(reader, DUMP_INT, &value));
    value->integer = integer;
    return STATUS_OK;
}

static Status push_truth(Unpickler *reader, bool truth) {
    DumpValue *value = NULL;
    TRY(push_new(reader, DUMP_BOOL, &value));
    value->truth = truth;
    return STATUS_OK;
}

static Status push_text(Unpickler *reader, const uint8_t *bytes, size_t length) {
    DumpValue *value = NULL;
    TRY(push_new(reader, DUMP_TEXT, &value));
    char *text = arena_alloc(reader->arena, length + 1);
    memcpy(text, bytes, length);
    value->text = text;
    value->count = length;
    return STATUS_OK;
}

static Status op_none(Unpickler *reader) {
    DumpValue *value = NULL;
    return push_new(reader, DUMP_NONE, &value);
}

static Status op_true(Unpickler *reader) {
    return push_truth(reader, true);
}

static Status op_false(Unpickler *reader) {
    return push_truth(reader, false);
}

static Status op_bin_int(Unpickler *reader) {
    uint64_t bits = 0;
    TRY(take_unsigned(reader, 4, &bits));
    return push_integer(reader, (int32_t)(uint32_t)bits);
}

static Status op_bin_int1(Unpickler *reader) {
    uint64_t bits = 0;
    TRY(take_unsigned(reader, 1, &bits));
    return push_integer(reader, (int64_t)bits);
}

static Status op_bin_int2(Unpickler *reader) {
    uint64_t bits = 0;
    TRY(take_unsigned(reader, 2, &bits));
    return push_integer(reader, (int64_t)bits);
}

// Two's complement of any length; numbers beyond 64 bits are nothing that a dump has.
static Status push_long(Unpickler *reader, uint64_t length) {
    const uint8_t *bytes = NULL;
    TRY(take(reader, length, &bytes));
    if (length > sizeof(int64_t)) {
        return fail(reader, "an integer of more than 64 bits");
    }
    uint64_t bits = length > 0 && bytes[length - 1] >= 0x80 ? UINT64_MAX : 0;
    for (uint64_t i = length; i > 0; i--) {
        bits = bits << 8 | bytes[i - 1];
    }
    return push_integer(reader, (int64_t)bits);
}

static Status op_long1(Unpickler *reader) {
    uint64_t length = 0;
    TRY(take_unsigned(reader, 1, &length));
    return push_long(reader, length);
}

static Status op_long4(Unpickler *reader) {
    uint64_t length = 0;
    TRY(take_unsigned(reader, 4, &length));
    return push_long(reader, length);
}

static Status number_line(Unpickler *reader, char out[LINE_BYTES], size_t *length) {
    const uint8_t *bytes = NULL;
    TRY(take_line(reader, &bytes, length));
    if (*length == 0 || *length >= LINE_BYTES) {
        return fail(reader, "a number of no digits, or of too many");
    }
    memcpy(out, bytes, *length);
    out[*length] = '\0';
    return STATUS_OK;
}

static Status op_int(Unpickler *reader) {
    char line[LINE_BYTES];
    size_t length = 0;
    int64_t integer = 0;
    TRY(number_line(reader, line, &length));
    if (strcmp(line, "00") == 0 || strcmp(line, "01") == 0) {
        return push_truth(reader, line[1] == '1');
    }
    return text_parse_int(line, &integer) ? push_integer(reader, integer) : fail(reader, "a number that is none");
}

static Status op_long(Unpickler *reader) {
    char line[LINE_BYTES];
    size_t length = 0;
    int64_t integer = 0;
    TRY(number_line(reader, line, &length));
    if (line[length - 1] == 'L') {
        line[length - 1] = '\0';
    }
    return text_parse_int(line, &integer) ? push_integer(reader, integer) : fail(reader, "a number that is none");
}

static Status push_number(Unpickler *reader, double number) {
    DumpValue *value = NULL;
    TRY(push_new(reader, DUMP_FLOAT, &value));
    value->number = number;
    return STATUS_OK;
}

static Status op_float(Unpickler *reader) {
    char line[LINE_BYTES];
    size_t length = 0;
    double number = 0;
    TRY(number_line(reader, line, &length));
    return text_parse_double(line, &number) ? push_number(reader, number) : fail(reader, "a number that is none");
}

static Status op_bin_float(Unpickler *reader) {
    const uint8_t *bytes = NULL;
    uint64_t bits = 0;
    double number = 0;
    TRY(take(reader, 8, &bytes));
    for (int i = 0; i < 8; i++) {  // big-endian
        bits = bits << 8 | bytes[i];
    }
    memcpy(&number, &bits, sizeof number);
    return push_number(reader, number);
}

static Status text_of_width(Unpickler *reader, int width) {
    uint64_t length = 0;
    const uint8_t *bytes = NULL;
    TRY(take_unsigned(reader, width, &length));
    TRY(take(reader, length, &bytes));
    return push_text(reader, bytes, (size_t)length);
}

static Status op_text1(Unpickler *reader) {
    return text_of_width(reader, 1);
}

static Status op_text4(Unpickler *reader) {
    return text_of_width(reader, 4);
}

static Status op_text8(Unpickler *reader) {
    return text_of_width(reader, 8);
}

static Status op_unicode(Unpickler *reader) {  // escapes stay as they are written
    const uint8_t *bytes = NULL;
    size_t length = 0;
    TRY(take_line(reader, &bytes, &length));
    return push_text(reader, bytes, length);
}

// ---------------------------------------------------------------------------------------------- containers

static Status op_mark(Unpickler *reader) {
    if (reader->mark_count == MOST_MARKS) {
        return fail(reader, "containers lie deeper in one another than in any dump");
    }
    reader->marks[reader->mark_count++] = reader->depth;
    return STATUS_OK;
}

static Status op_empty_list(Unpickler *reader) {
    DumpValue *value = NULL;
    return push_new(reader, DUMP_LIST, &value);
}

static Status op_empty_dict(Unpickler *reader) {
    DumpValue *value = NULL;
    return push_new(reader, DUMP_DICT, &value);
}

static Status op_append(Unpickler *reader) {
    TRY(need(reader, 2));
    return add_to_top(reader, reader->depth - 1, DUMP_LIST);
}

static Status op_appends(Unpickler *reader) {
    size_t from = 0;
    TRY(pop_mark(reader, &from));
    return add_to_top(reader, from, DUMP_LIST);
}

static Status op_set_item(Unpickler *reader) {
    TRY(need(reader, 3));
    return add_to_top(reader, reader->depth - 2, DUMP_DICT);
}

static Status op_set_items(Unpickler *reader) {
    size_t from = 0;
    TRY(pop_mark(reader, &from));
    return add_to_top(reader, from, DUMP_DICT);
}

static Status op_list(Unpickler *reader) {  // and a tuple from a mark on
    size_t from = 0;
    TRY(pop_mark(reader, &from));
    return gather(reader, from, DUMP_LIST);
}

static Status op_dict(Unpickler *reader) {
    size_t from = 0;
    TRY(pop_mark(reader, &from));
    return gather(reader, from, DUMP_DICT);
}

static Status tuple_of(Unpickler *reader, size_t count) {
    TRY(need(reader, count));
    return gather(reader, reader->depth - count, DUMP_LIST);
}

static Status op_tuple1(Unpickler *reader) {
    return tuple_of(reader, 1);
}

static Status op_tuple2(Unpickler *reader) {
    return tuple_of(reader, 2);
}

static Status op_tuple3(Unpickler *reader) {
    return tuple_of(reader, 3);
}

static Status op_pop(Unpickler *reader) {
    TRY(need(reader, 1));
    reader->depth--;
    return STATUS_OK;
}

static Status op_pop_mark(Unpickler *reader) {
    return pop_mark(reader, &reader->depth);
}

// ---------------------------------------------------------------------------------------------- the memo

typedef Status MemoAct(Unpickler *reader, uint64_t number);

static Status remember(Unpickler *reader, uint64_t number) {
    TRY(need(reader, 1));
    if (number >= MOST_MEMOS || number > reader->size) {
        return fail(reader, "a memo of a number that no dump has");
    }
    while (reader->memo_size <= number) {
        reader->memo =
            arena_grow(reader->arena, reader->memo, reader->memo_size, &reader->memo_capacity, sizeof *reader->memo);
        reader->memo[reader->memo_size++] = NULL;
    }
    reader->memo_count += reader->memo[number] == NULL;
    reader->memo[number] = reader->stack[reader->depth - 1];
    return STATUS_OK;
}

static Status recall(Unpickler *reader, uint64_t number) {
    if (number >= reader->memo_size || !reader->memo[number]) {
        return fail(reader, "a memo that was never made");
    }
    return push_value(reader, reader->memo[number]);
}

static Status memo_of_width(Unpickler *reader, int width, MemoAct *act) {
    uint64_t number = 0;
    TRY(take_unsigned(reader, width, &number));
    return act(reader, number);
}

static Status memo_of_line(Unpickler *reader, MemoAct *act) {
    char line[LINE_BYTES];
    size_t length = 0;
    int64_t number = 0;
    TRY(number_line(reader, line, &length));
    return text_parse_int(line, &number) && number >= 0 ? act(reader, (uint64_t)number)
                                                        : fail(reader, "a number that is none");
}

static Status op_put(Unpickler *reader) {
    return memo_of_line(reader, remember);
}

static Status op_put1(Unpickler *reader) {
    return memo_of_width(reader, 1, remember);
}

static Status op_put4(Unpickler *reader) {
    return memo_of_width(reader, 4, remember);
}

static Status op_get(Unpickler *reader) {
    return memo_of_line(reader, recall);
}

static Status op_get1(Unpickler *reader) {
    return memo_of_width(reader, 1, recall);
}

static Status op_get4(Unpickler *reader) {
    return memo_of_width(reader, 4, recall);
}

static Status op_memoize(Unpickler *reader) {
    return remember(reader, reader->memo_count);
}

// ---------------------------------------------------------------------------------------------- the program

static Status op_protocol(Unpickler *reader) {
    uint64_t protocol = 0;
    TRY(take_unsigned(reader, 1, &protocol));
    return protocol > NEWEST_PROTOCOL ? fail(reader, "a protocol newer than 5") : STATUS_OK;
}

static Status op_frame(Unpickler *reader) {  // frames only say how to read ahead
    uint64_t length = 0;
    return take_unsigned(reader, 8, &length);
}

static Status op_stop(Unpickler *reader) {
    reader->stopped = true;
    return reader->depth == 1 && reader->mark_count == 0
               ? STATUS_OK
               : fail(reader, "the pickle ends with more or less than one value");
}

typedef struct Opcode {
    const char *name;
    Status (*run)(Unpickler *reader);  // NULL = refused
} Opcode;

// Those without a function would import, call, build or ask for something.
static const Opcode opcodes[256] = {
    ['('] = {"MARK", op_mark},
    ['.'] = {"STOP", op_stop},
    ['0'] = {"POP", op_pop},
    ['1'] = {"POP_MARK", op_pop_mark},
    ['2'] = {"DUP", NULL},
    ['F'] = {"FLOAT", op_float},
    ['I'] = {"INT", op_int},
    ['J'] = {"BININT", op_bin_int},
    ['K'] = {"BININT1", op_bin_int1},
    ['L'] = {"LONG", op_long},
    ['M'] = {"BININT2", op_bin_int2},
    ['N'] = {"NONE", op_none},
    ['P'] = {"PERSID", NULL},
    ['Q'] = {"BINPERSID", NULL},
    ['R'] = {"REDUCE", NULL},
    ['S'] = {"STRING", NULL},
    ['T'] = {"BINSTRING", op_text4},
    ['U'] = {"SHORT_BINSTRING", op_text1},
    ['V'] = {"UNICODE", op_unicode},
    ['X'] = {"BINUNICODE", op_text4},
    ['a'] = {"APPEND", op_append},
    ['b'] = {"BUILD", NULL},
    ['c'] = {"GLOBAL", NULL},
    ['d'] = {"DICT", op_dict},
    ['}'] = {"EMPTY_DICT", op_empty_dict},
    ['e'] = {"APPENDS", op_appends},
    ['g'] = {"GET", op_get},
    ['h'] = {"BINGET", op_get1},
    ['i'] = {"INST", NULL},
    ['j'] = {"LONG_BINGET", op_get4},
    ['l'] = {"LIST", op_list},
    [']'] = {"EMPTY_LIST", op_empty_list},
    ['o'] = {"OBJ", NULL},
    ['p'] = {"PUT", op_put},
    ['q'] = {"BINPUT", op_put1},
    ['r'] = {"LONG_BINPUT", op_put4},
    ['s'] = {"SETITEM", op_set_item},
    ['t'] = {"TUPLE", op_list},
    [')'] = {"EMPTY_TUPLE", op_empty_list},
    ['u'] = {"SETITEMS", op_set_items},
    ['G'] = {"BINFLOAT", op_bin_float},
    ['B'] = {"BINBYTES", op_text4},
    ['C'] = {"SHORT_BINBYTES", op_text1},
    [0x80] = {"PROTO", op_protocol},
    [0x81] = {"NEWOBJ", NULL},
    [0x82] = {"EXT1", NULL},
    [0x83] = {"EXT2", NULL},
    [0x84] = {"EXT4", NULL},
    [0x85] = {"TUPLE1", op_tuple1},
    [0x86] = {"TUPLE2", op_tuple2},
    [0x87] = {"TUPLE3", op_tuple3},
    [0x88] = {"NEWTRUE", op_true},
    [0x89] = {"NEWFALSE", op_false},
    [0x8a] = {"LONG1", op_long1},
    [0x8b] = {"LONG4", op_long4},
    [0x8c] = {"SHORT_BINUNICODE", op_text1},
    [0x8d] = {"BINUNICODE8", op_text8},
    [0x8e] = {"BINBYTES8", op_text8},
    [0x8f] = {"EMPTY_SET", NULL},
    [0x90] = {"ADDITEMS", NULL},
    [0x91] = {"FROZENSET", NULL},
    [0x92] = {"NEWOBJ_EX", NULL},
    [0x93] = {"STACK_GLOBAL", NULL},
    [0x94] = {"MEMOIZE", op_memoize},
    [0x95] = {"FRAME", op_frame},
    [0x96] = {"BYTEARRAY8", NULL},
    [0x97] = {"NEXT_BUFFER", NULL},
    [0x98] = {"READONLY_BUFFER", NULL},
};

static Status run_opcode(Unpickler *reader, uint8_t code) {
    const Opcode *opcode = &opcodes[code];
    if (opcode->run) {
        return opcode->run(reader);
    }
    return opcode->name ? error_set(reader->error, STATUS_USAGE,
                                    "byte %zu: opcode %s (0x%02x) is refused: a dump is data, and nothing of it is run",
                                    reader->opcode_at, opcode->name, code)
                        : error_set(reader->error, STATUS_USAGE, "byte %zu: 0x%02x is no opcode of a pickle",
                                    reader->opcode_at, code);
}

Status dump_read_pickle(const uint8_t *bytes, size_t size, Arena *arena, const DumpValue **root, Error *error) {
    Unpickler reader = {.bytes = bytes, .size = size, .arena = arena, .error = error};
    while (!reader.stopped) {
        const uint8_t *code = NULL;
        reader.opcode_at = reader.at;
        TRY(take(&reader, 1, &code));
        TRY(run_opcode(&reader, *code));
    }
    *root = reader.stack[0];
    return STATUS_OK;
}

// Python's pickle as pure data: a stack of values, marks and a memo. What is not in the opcode table is refused. The
// opcodes are those of CPython's Lib/pickletools.py.

#include <string.h>

#include "autotune/blame/dump_value.h"
#include "sim/base/text.h"

enum {
    MOST_MARKS = 256,       // containers open at once; a dump of torch has 7
    MOST_VALUES = 1 << 24,  // in the at most 64 MiB of a file; 1 GiB of memory
    MOST_MEMOS = 1 << 24,
    LINE_BYTES = 64,  // of a number in protocol 0
    NEWEST_PROTOCOL = 5
};

typedef struct Unpickler {
    const uint8_t *bytes;
    size_t size, at, opcode_at;
    int of;  // the table's argument for the current opcode
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
    FAIL_WITH(count > reader->size - reader->at, fail(reader, "the pickle ends in the middle of a value"));
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

// Up to the end of the line, excluding it.
static Status take_line(Unpickler *reader, const uint8_t **bytes, size_t *length) {
    const uint8_t *end = memchr(reader->bytes + reader->at, '\n', reader->size - reader->at);
    FAIL_WITH(!end, fail(reader, "the pickle ends in the middle of a line"));
    *length = (size_t)(end - (reader->bytes + reader->at));
    TRY(take(reader, *length + 1, bytes));
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- the stack

static Status push_value(Unpickler *reader, DumpValue *value) {
    ARENA_PUSH(reader->arena, reader->stack, reader->depth, &reader->stack_capacity) = value;
    return STATUS_OK;
}

static Status push(Unpickler *reader, DumpValue value) {
    FAIL_WITH(++reader->values > MOST_VALUES, fail(reader, "more values than a dump has"));
    DumpValue *made = ARENA_NEW(reader->arena, DumpValue);
    *made = value;
    return push_value(reader, made);
}

static size_t floor_of(const Unpickler *reader) {  // values below the last mark are outside the current container
    return reader->mark_count > 0 ? reader->marks[reader->mark_count - 1] : 0;
}

static Status need(Unpickler *reader, size_t count) {
    return reader->depth - floor_of(reader) < count ? fail(reader, "an opcode finds too few values") : STATUS_OK;
}

static Status pop_mark(Unpickler *reader, size_t *from) {
    FAIL_WITH(reader->mark_count == 0, fail(reader, "an opcode finds no mark"));
    *from = reader->marks[--reader->mark_count];
    return STATUS_OK;
}

// The container below the mark, or below the last `count` values, that takes what is above it.
static Status add_to_top(Unpickler *reader, size_t from, DumpType type) {
    FAIL_WITH(from <= floor_of(reader), fail(reader, "nothing is there to be filled"));
    DumpValue *container = reader->stack[from - 1];
    FAIL_WITH(container->type != type || (type == DUMP_DICT && (reader->depth - from) % 2 != 0),
              fail(reader, type == DUMP_DICT ? "keys and values for what is no dictionary, or a key without a value"
                                             : "items for what is no list"));
    for (size_t i = from; i < reader->depth; i++) {
        dump_value_append(container, reader->stack[i], reader->arena);
    }
    reader->depth = from;
    return STATUS_OK;
}

// Collapses the values from there on into one container.
static Status gather(Unpickler *reader, size_t from, DumpType type) {
    const size_t end = reader->depth;
    FAIL_WITH(type == DUMP_DICT && (end - from) % 2 != 0, fail(reader, "a key without a value"));
    TRY(push(reader, (DumpValue){.type = type}));
    DumpValue *container = reader->stack[end];
    for (size_t i = from; i < end; i++) {
        dump_value_append(container, reader->stack[i], reader->arena);
    }
    reader->stack[from] = container;
    reader->depth = from + 1;
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- values

static Status push_integer(Unpickler *reader, int64_t integer) {
    return push(reader, (DumpValue){.type = DUMP_INT, .integer = integer});
}

static Status push_truth(Unpickler *reader, bool truth) {
    return push(reader, (DumpValue){.type = DUMP_BOOL, .truth = truth});
}

static Status push_text(Unpickler *reader, const uint8_t *bytes, size_t length) {
    char *text = arena_alloc(reader->arena, length + 1);
    memcpy(text, bytes, length);
    return push(reader, (DumpValue){.type = DUMP_TEXT, .text = text, .count = length});
}

static Status op_empty(Unpickler *reader) {
    return push(reader, (DumpValue){.type = (DumpType)reader->of});
}

static Status op_truth(Unpickler *reader) {
    return push_truth(reader, reader->of);
}

static Status op_unsigned(Unpickler *reader) {
    uint64_t bits = 0;
    TRY(take_unsigned(reader, reader->of, &bits));
    return push_integer(reader, (int64_t)bits);
}

// Two's complement of any length; dumps contain no numbers beyond 64 bits.
static Status push_long(Unpickler *reader, uint64_t length) {
    const uint8_t *bytes = NULL;
    TRY(take(reader, length, &bytes));
    FAIL_WITH(length > sizeof(int64_t), fail(reader, "an integer of more than 64 bits"));
    uint64_t bits = length > 0 && bytes[length - 1] >= 0x80 ? UINT64_MAX : 0;
    for (uint64_t i = length; i > 0; i--) {
        bits = bits << 8 | bytes[i - 1];
    }
    return push_integer(reader, (int64_t)bits);
}

static Status op_signed(Unpickler *reader) {
    return push_long(reader, (uint64_t)reader->of);
}

static Status op_long(Unpickler *reader) {
    uint64_t length = 0;
    TRY(take_unsigned(reader, reader->of, &length));
    return push_long(reader, length);
}

static Status number_line(Unpickler *reader, char out[LINE_BYTES], size_t *length) {
    const uint8_t *bytes = NULL;
    TRY(take_line(reader, &bytes, length));
    FAIL_WITH(*length == 0 || *length >= LINE_BYTES, fail(reader, "a number of no digits, or of too many"));
    memcpy(out, bytes, *length);
    out[*length] = '\0';
    return STATUS_OK;
}

// A number of protocol 0, which may end in its opcode's letter; without one, 00 and 01 are booleans.
static Status op_int_line(Unpickler *reader) {
    char line[LINE_BYTES];
    size_t length = 0;
    int64_t integer = 0;
    TRY(number_line(reader, line, &length));
    if (!reader->of && (strcmp(line, "00") == 0 || strcmp(line, "01") == 0)) {
        return push_truth(reader, line[1] == '1');
    }
    if (reader->of && line[length - 1] == reader->of) {
        line[length - 1] = '\0';
    }
    return text_parse_int(line, &integer) ? push_integer(reader, integer) : fail(reader, "a number that is none");
}

static Status push_number(Unpickler *reader, double number) {
    return push(reader, (DumpValue){.type = DUMP_FLOAT, .number = number});
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

static Status op_text(Unpickler *reader) {
    uint64_t length = 0;
    const uint8_t *bytes = NULL;
    TRY(take_unsigned(reader, reader->of, &length));
    TRY(take(reader, length, &bytes));
    return push_text(reader, bytes, (size_t)length);
}

static Status op_unicode(Unpickler *reader) {  // escapes are kept as written
    const uint8_t *bytes = NULL;
    size_t length = 0;
    TRY(take_line(reader, &bytes, &length));
    return push_text(reader, bytes, length);
}

// ---------------------------------------------------------------------------------------------- containers

static Status op_mark(Unpickler *reader) {
    FAIL_WITH(reader->mark_count == MOST_MARKS, fail(reader, "containers lie deeper in one another than in any dump"));
    reader->marks[reader->mark_count++] = reader->depth;
    return STATUS_OK;
}

// Moves the last value, or the last key and value, into the container below.
static Status op_add(Unpickler *reader) {
    const size_t count = reader->of == DUMP_DICT ? 2 : 1;
    TRY(need(reader, count + 1));
    return add_to_top(reader, reader->depth - count, (DumpType)reader->of);
}

static Status op_add_marked(Unpickler *reader) {
    size_t from = 0;
    TRY(pop_mark(reader, &from));
    return add_to_top(reader, from, (DumpType)reader->of);
}

static Status op_gather_marked(Unpickler *reader) {
    size_t from = 0;
    TRY(pop_mark(reader, &from));
    return gather(reader, from, (DumpType)reader->of);
}

static Status op_tuple(Unpickler *reader) {
    TRY(need(reader, (size_t)reader->of));
    return gather(reader, reader->depth - (size_t)reader->of, DUMP_LIST);
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

static Status remember(Unpickler *reader, uint64_t number) {
    TRY(need(reader, 1));
    FAIL_WITH(number >= MOST_MEMOS || number > reader->size, fail(reader, "a memo of a number that no dump has"));
    while (reader->memo_size <= number) {
        ARENA_PUSH(reader->arena, reader->memo, reader->memo_size, &reader->memo_capacity) = NULL;
    }
    reader->memo_count += reader->memo[number] == NULL;
    reader->memo[number] = reader->stack[reader->depth - 1];
    return STATUS_OK;
}

static Status recall(Unpickler *reader, uint64_t number) {
    FAIL_WITH(number >= reader->memo_size || !reader->memo[number], fail(reader, "a memo that was never made"));
    return push_value(reader, reader->memo[number]);
}

// With a length field of that many bytes; 0 = up to the end of the line.
static Status take_number(Unpickler *reader, uint64_t *number) {
    char line[LINE_BYTES];
    size_t length = 0;
    int64_t written = 0;
    if (reader->of > 0) {
        return take_unsigned(reader, reader->of, number);
    }
    TRY(number_line(reader, line, &length));
    FAIL_WITH(!text_parse_int(line, &written) || written < 0, fail(reader, "a number that is none"));
    *number = (uint64_t)written;
    return STATUS_OK;
}

static Status op_put(Unpickler *reader) {
    uint64_t number = 0;
    TRY(take_number(reader, &number));
    return remember(reader, number);
}

static Status op_get(Unpickler *reader) {
    uint64_t number = 0;
    TRY(take_number(reader, &number));
    return recall(reader, number);
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

static Status op_frame(Unpickler *reader) {  // frames are only read-ahead hints
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
    int of;  // the type it makes or fills, the bytes of its number or length, or how many values it takes
} Opcode;

// Opcodes without a function would import, call, build or fetch something.
static const Opcode opcodes[256] = {
    ['('] = {"MARK", op_mark, 0},
    ['.'] = {"STOP", op_stop, 0},
    ['0'] = {"POP", op_pop, 0},
    ['1'] = {"POP_MARK", op_pop_mark, 0},
    ['2'] = {"DUP", NULL, 0},
    ['F'] = {"FLOAT", op_float, 0},
    ['I'] = {"INT", op_int_line, 0},
    ['J'] = {"BININT", op_signed, 4},
    ['K'] = {"BININT1", op_unsigned, 1},
    ['L'] = {"LONG", op_int_line, 'L'},
    ['M'] = {"BININT2", op_unsigned, 2},
    ['N'] = {"NONE", op_empty, DUMP_NONE},
    ['P'] = {"PERSID", NULL, 0},
    ['Q'] = {"BINPERSID", NULL, 0},
    ['R'] = {"REDUCE", NULL, 0},
    ['S'] = {"STRING", NULL, 0},
    ['T'] = {"BINSTRING", op_text, 4},
    ['U'] = {"SHORT_BINSTRING", op_text, 1},
    ['V'] = {"UNICODE", op_unicode, 0},
    ['X'] = {"BINUNICODE", op_text, 4},
    ['a'] = {"APPEND", op_add, DUMP_LIST},
    ['b'] = {"BUILD", NULL, 0},
    ['c'] = {"GLOBAL", NULL, 0},
    ['d'] = {"DICT", op_gather_marked, DUMP_DICT},
    ['}'] = {"EMPTY_DICT", op_empty, DUMP_DICT},
    ['e'] = {"APPENDS", op_add_marked, DUMP_LIST},
    ['g'] = {"GET", op_get, 0},
    ['h'] = {"BINGET", op_get, 1},
    ['i'] = {"INST", NULL, 0},
    ['j'] = {"LONG_BINGET", op_get, 4},
    ['l'] = {"LIST", op_gather_marked, DUMP_LIST},
    [']'] = {"EMPTY_LIST", op_empty, DUMP_LIST},
    ['o'] = {"OBJ", NULL, 0},
    ['p'] = {"PUT", op_put, 0},
    ['q'] = {"BINPUT", op_put, 1},
    ['r'] = {"LONG_BINPUT", op_put, 4},
    ['s'] = {"SETITEM", op_add, DUMP_DICT},
    ['t'] = {"TUPLE", op_gather_marked, DUMP_LIST},
    [')'] = {"EMPTY_TUPLE", op_empty, DUMP_LIST},
    ['u'] = {"SETITEMS", op_add_marked, DUMP_DICT},
    ['G'] = {"BINFLOAT", op_bin_float, 0},
    ['B'] = {"BINBYTES", op_text, 4},
    ['C'] = {"SHORT_BINBYTES", op_text, 1},
    [0x80] = {"PROTO", op_protocol, 0},
    [0x81] = {"NEWOBJ", NULL, 0},
    [0x82] = {"EXT1", NULL, 0},
    [0x83] = {"EXT2", NULL, 0},
    [0x84] = {"EXT4", NULL, 0},
    [0x85] = {"TUPLE1", op_tuple, 1},
    [0x86] = {"TUPLE2", op_tuple, 2},
    [0x87] = {"TUPLE3", op_tuple, 3},
    [0x88] = {"NEWTRUE", op_truth, 1},
    [0x89] = {"NEWFALSE", op_truth, 0},
    [0x8a] = {"LONG1", op_long, 1},
    [0x8b] = {"LONG4", op_long, 4},
    [0x8c] = {"SHORT_BINUNICODE", op_text, 1},
    [0x8d] = {"BINUNICODE8", op_text, 8},
    [0x8e] = {"BINBYTES8", op_text, 8},
    [0x8f] = {"EMPTY_SET", NULL, 0},
    [0x90] = {"ADDITEMS", NULL, 0},
    [0x91] = {"FROZENSET", NULL, 0},
    [0x92] = {"NEWOBJ_EX", NULL, 0},
    [0x93] = {"STACK_GLOBAL", NULL, 0},
    [0x94] = {"MEMOIZE", op_memoize, 0},
    [0x95] = {"FRAME", op_frame, 0},
    [0x96] = {"BYTEARRAY8", NULL, 0},
    [0x97] = {"NEXT_BUFFER", NULL, 0},
    [0x98] = {"READONLY_BUFFER", NULL, 0},
};

static Status run_opcode(Unpickler *reader, uint8_t code) {
    const Opcode *opcode = &opcodes[code];
    if (opcode->run) {
        reader->of = opcode->of;
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

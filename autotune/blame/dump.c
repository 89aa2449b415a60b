// Converts parsed values into a dump.

#include "autotune/blame/dump.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/text.h"

enum { MOST_RANKS = 1 << 20, MOST_DIMENSIONS = 64, MOST_TOGETHER = 1024 };

static const int64_t MOST_NUMBER = (int64_t)1 << 60;    // of a collective
static const int64_t MOST_TIME = (int64_t)1 << 62;      // ns: the year 2116
static const int64_t MOST_ELEMENTS = (int64_t)1 << 50;  // of a collective; more is an overflow

const DumpOpRow dump_op_rows[DUMP_OP_COUNT] = {
    [DUMP_ALL_REDUCE] = {"all-reduce", true, true, false},
    [DUMP_ALL_GATHER] = {"all-gather", true, true, false},
    [DUMP_REDUCE_SCATTER] = {"reduce-scatter", true, true, false},
    [DUMP_BROADCAST] = {"broadcast", false, true, true},
    [DUMP_REDUCE] = {"reduce", true, false, true},
    [DUMP_GATHER] = {"gather", true, false, true},
    [DUMP_SCATTER] = {"scatter", false, true, true},
    [DUMP_ALL_TO_ALL] = {"all-to-all", false, false, false},
    [DUMP_BARRIER] = {"barrier", false, false, false},
    [DUMP_SEND] = {"send", true, true, true},
    [DUMP_RECEIVE] = {"receive", true, true, false},
    [DUMP_COALESCED] = {"coalesced", false, false, false},
    [DUMP_OTHER] = {"collective", false, false, false},
};

// The operation names of torch's backends, longest first where one is a prefix of another (ProcessGroupNCCL.cpp,
// ProcessGroupGloo.cpp and flight_recorder/components/types.py).
static const struct {
    const char *name;
    DumpOp op;
} names[] = {
    {"all_reduce_barrier", DUMP_BARRIER},
    {"all_reduce", DUMP_ALL_REDUCE},
    {"allreduce", DUMP_ALL_REDUCE},
    {"sparse_all_reduce", DUMP_ALL_REDUCE},
    {"all_gather", DUMP_ALL_GATHER},
    {"_all_gather", DUMP_ALL_GATHER},
    {"allgather", DUMP_ALL_GATHER},
    {"reduce_scatter", DUMP_REDUCE_SCATTER},
    {"_reduce_scatter", DUMP_REDUCE_SCATTER},
    {"broadcast", DUMP_BROADCAST},
    {"_broadcast", DUMP_BROADCAST},
    {"reduce", DUMP_REDUCE},
    {"_reduce", DUMP_REDUCE},
    {"gather", DUMP_GATHER},
    {"scatter", DUMP_SCATTER},
    {"all_to_all", DUMP_ALL_TO_ALL},
    {"alltoall", DUMP_ALL_TO_ALL},
    {"barrier", DUMP_BARRIER},
    {"send", DUMP_SEND},
    {"recv", DUMP_RECEIVE},
    {"coalesced", DUMP_COALESCED},
};

// c10::ScalarType's names, c10/core/ScalarType.h; sub-byte formats are left unknown.
static const struct {
    const char *name;
    int bytes;
} types[] = {
    {"Float", 4},
    {"BFloat16", 2},
    {"Half", 2},
    {"Double", 8},
    {"Long", 8},
    {"Int", 4},
    {"Short", 2},
    {"Byte", 1},
    {"Char", 1},
    {"Bool", 1},
    {"Float8_e4m3fn", 1},
    {"Float8_e5m2", 1},
    {"Float8_e8m0fnu", 1},
    {"Float8_e4m3fnuz", 1},
    {"Float8_e5m2fnuz", 1},
    {"ComplexFloat", 8},
    {"ComplexDouble", 16},
};

static DumpOp op_of(const char *name) {
    const char *colon = strrchr(name, ':');  // after the backend
    const char *word = colon ? colon + 1 : name;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (size_t at = 0; at <= strlen(names[i].name); at++) {
            if (!names[i].name[at]) {
                return names[i].op;
            }
            if ((word[at] | 0x20) != (names[i].name[at] | 0x20)) {  // letters in either case; '_' is only itself
                break;
            }
        }
    }
    return DUMP_OTHER;
}

static int type_bytes(const char *dtype) {
    const int row = TEXT_ROW(types, sizeof types / sizeof *types, name, dtype);
    return row < 0 ? -1 : types[row].bytes;
}

// Number of elements in a list of shapes, up to that maximum.
static int64_t elements_of(const DumpValue *shapes) {
    int64_t sum = 0;
    for (size_t i = 0; shapes && shapes->type == DUMP_LIST && i < shapes->count; i++) {
        const DumpValue *shape = shapes->items[i];
        int64_t product = 1;
        for (size_t k = 0; shape->type == DUMP_LIST && k < shape->count && k < MOST_DIMENSIONS; k++) {
            const DumpValue *size = shape->items[k];
            const int64_t length = size->type == DUMP_INT && size->integer >= 0 ? size->integer : 0;
            if (__builtin_mul_overflow(product, length, &product)) {
                return MOST_ELEMENTS;
            }
        }
        sum = product < MOST_ELEMENTS - sum ? sum + product : MOST_ELEMENTS;
    }
    return sum;
}

static const char *first_text(const DumpValue *list, Arena *arena) {
    const char *text =
        list && list->type == DUMP_LIST && list->count > 0 ? dump_value_text(list->items[0], arena) : NULL;
    return text ? text : "";
}

// The innermost user frame: outside torch's own files.
static const char *caller_of(const DumpValue *frames, Arena *arena) {
    for (size_t i = 0; frames && frames->type == DUMP_LIST && i < frames->count; i++) {
        const char *file = dump_text_or(frames->items[i], "filename", "", arena);
        if (file[0] && !strstr(file, "/torch/") && !strstr(file, "c10/") && file[0] != '<' && file[0] != '?') {
            const char *slash = strrchr(file, '/');
            return arena_format(arena, "%s at %s:%lld", dump_text_or(frames->items[i], "name", "", arena),
                                slash ? slash + 1 : file, (long long)dump_integer_or(frames->items[i], "line", 0));
        }
    }
    return NULL;
}

// "send 0->1" is issued by 0 with peer 1, as is "recv 0<-1".
static void read_ends(const char *name, DumpEntry *entry) {
    const char *arrow = strstr(name, entry->op == DUMP_SEND ? "->" : "<-"), *space = strrchr(name, ' ');
    const long own = arrow && space ? strtol(space, NULL, 10) : -1, peer = arrow ? strtol(arrow + 2, NULL, 10) : -1;
    const bool both = own >= 0 && own < MOST_RANKS && peer >= 0 && peer < MOST_RANKS;
    entry->own = both ? (int)own : -1;
    entry->peer = both ? (int)peer : -1;
}

// ---------------------------------------------------------------------------------------------- groups

static int compare_ints(const void *a, const void *b) {
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

// "[0, 2]"; NULL where it is not such a list.
static const int *read_ranks(const char *text, Arena *arena, int *count) {
    int *ranks = NULL;
    size_t capacity = 0;
    *count = 0;
    for (const char *at = text; *at;) {
        if (*at < '0' || *at > '9') {
            at++;
            continue;
        }
        char *end = NULL;
        const unsigned long rank = strtoul(at, &end, 10);
        if (rank >= MOST_RANKS || *count >= MOST_RANKS) {
            return NULL;
        }
        ARENA_PUSH(arena, ranks, *count, &capacity) = (int)rank;
        at = end;
    }
    if (*count > 0) {
        qsort(ranks, (size_t)*count, sizeof *ranks, compare_ints);
    }
    return ranks;
}

typedef struct Reading {
    Dump *dump;
    Arena *arena;
    size_t group_capacity, entry_capacity;
} Reading;

static int add_group(Reading *reading, const char *name, const char *desc) {
    Dump *dump = reading->dump;
    ARENA_PUSH(reading->arena, dump->groups, dump->group_count, &reading->group_capacity) =
        (DumpGroup){.name = name, .desc = strcmp(desc, "undefined") == 0 ? "" : desc};
    return dump->group_count - 1;
}

static void read_groups(Reading *reading, const DumpValue *config) {
    for (size_t i = 0; config && config->type == DUMP_DICT && i + 1 < config->count; i += 2) {
        const char *name = dump_value_text(config->items[i], reading->arena);
        const DumpValue *row = config->items[i + 1];
        if (!name || name[0] == '\0') {  // a Gloo group before it has a name
            continue;
        }
        const int g = add_group(reading, name, dump_text_or(row, "desc", "", reading->arena));
        DumpGroup *group = &reading->dump->groups[g];
        group->ranks = read_ranks(dump_text_or(row, "ranks", "", reading->arena), reading->arena, &group->rank_count);
    }
}

static int group_of(Reading *reading, const DumpValue *pair) {
    const bool known = pair && pair->type == DUMP_LIST && pair->count == 2;
    const char *name = known ? dump_value_text(pair->items[0], reading->arena) : NULL;
    const char *desc = known ? dump_value_text(pair->items[1], reading->arena) : NULL;
    const int at = name ? TEXT_ROW(reading->dump->groups, reading->dump->group_count, name, name) : -1;
    return name && at < 0 ? add_group(reading, name, desc ? desc : "") : at;
}

// ---------------------------------------------------------------------------------------------- entries

static int64_t between(int64_t value, int64_t most, int64_t otherwise) {
    return value >= 0 && value <= most ? value : otherwise;
}

static void add_entry(Reading *reading, const DumpValue *value) {
    Dump *dump = reading->dump;
    Arena *arena = reading->arena;
    const int group = group_of(reading, dump_value_of(value, "process_group"));
    const int64_t seq = dump_integer_or(value, "collective_seq_id", dump_integer_or(value, "seq_id", -1));
    const double duration_ms = dump_number_or(value, "duration_ms", -1);
    if (value->type != DUMP_DICT || group < 0 || between(seq, MOST_NUMBER, -1) < 0) {
        return;
    }
    const char *name = dump_text_or(value, "profiling_name", "", arena);
    const char *dtype = first_text(dump_value_of(value, "input_dtypes"), arena);
    const char *state = dump_text_or(value, "state", "", arena);
    const DumpOp op = op_of(name);
    DumpEntry entry = {.group = group,
                       .seq = seq,
                       .op = op,
                       .name = name,
                       .in = elements_of(dump_value_of(value, "input_sizes")),
                       .out = elements_of(dump_value_of(value, "output_sizes")),
                       .dtype = dtype[0] ? dtype : first_text(dump_value_of(value, "output_dtypes"), arena),
                       .own = -1,
                       .peer = -1,
                       .p2p = dump_truth_or(value, "is_p2p", dump_op_is_message(op)),
                       .p2p_seq = dump_integer_or(value, "p2p_seq_id", -1),
                       .completed = strcmp(state, "completed") == 0,
                       .retired = dump_truth_or(value, "retired", false),
                       .created_ns = between(dump_integer_or(value, "time_created_ns", 0), MOST_TIME, 0),
                       .completed_ns = between(dump_integer_or(value, "time_discovered_completed_ns", 0), MOST_TIME, 0),
                       .duration_ms = isfinite(duration_ms) ? duration_ms : -1,
                       .timeout_ms = dump_integer_or(value, "timeout_ms", 0),
                       .caller = caller_of(dump_value_of(value, "frames"), arena)};
    const int64_t larger = entry.in > entry.out ? entry.in : entry.out;
    const int width = type_bytes(entry.dtype);
    entry.bytes = width > 0 && larger < MOST_ELEMENTS ? larger * width : larger == 0 ? 0 : -1;
    if (dump_op_is_message(op)) {
        read_ends(name, &entry);
    }
    dump->says_complete |= entry.completed;
    dump->wrapped |= dump->entry_count == 0 && dump_integer_or(value, "record_id", 0) > 0;
    ARENA_PUSH(arena, dump->entries, dump->entry_count, &reading->entry_capacity) = entry;
}

// Coalesced messages have no state of their own: they complete with the entry that follows them, which has their
// number.
static void settle_batches(Dump *dump) {
    for (int e = dump->entry_count - 1; e > 0; e--) {
        const DumpEntry *batch = &dump->entries[e];
        if (batch->op != DUMP_COALESCED || !batch->p2p) {
            continue;
        }
        for (int m = e - 1; m >= 0 && m >= e - MOST_TOGETHER; m--) {
            DumpEntry *message = &dump->entries[m];
            if (message->group != batch->group || !message->p2p) {
                continue;
            }
            if (!dump_op_is_message(message->op) || message->p2p_seq != batch->p2p_seq) {
                break;
            }
            message->completed = batch->completed;
            message->retired = batch->retired;
            message->completed_ns = batch->completed_ns;
            message->duration_ms = batch->duration_ms;
        }
    }
}

Status dump_of_value(const DumpValue *root, Arena *arena, Dump *dump, Error *error) {
    Reading reading = {.dump = dump, .arena = arena};
    const DumpValue *entries = dump_value_of(root, "entries"), *config = dump_value_of(root, "pg_config");
    FAIL_IF(root->type != DUMP_DICT || !(entries || config), error, STATUS_USAGE,
            "no dump of a flight recorder: neither entries nor pg_config in it");
    FAIL_IF(entries && entries->type != DUMP_LIST, error, STATUS_USAGE, "its entries are no list");
    dump->version = dump_text_or(root, "version", "", arena);
    dump->host = dump_text_or(root, "host_name", dump_text_or(root, "hostname", NULL, arena), arena);
    read_groups(&reading, config);
    for (size_t i = 0; entries && i < entries->count; i++) {
        add_entry(&reading, entries->items[i]);
    }
    settle_batches(dump);
    return STATUS_OK;
}

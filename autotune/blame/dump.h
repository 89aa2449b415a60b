// One rank's dump of PyTorch's flight recorder: what it issued on which process group, in issue order. Read from the
// files of torch 2.4 to 2.15 (TORCH_FR_DUMP_TEMP_FILE, before 2.8 TORCH_NCCL_DEBUG_INFO_TEMP_FILE), whose keys are
// those of torch/csrc/distributed/c10d/FlightRecorder.hpp; keys that a version lacks are unknown, not errors.

#pragma once

#include "autotune/blame/dump_value.h"

typedef enum {
    DUMP_ALL_REDUCE,
    DUMP_ALL_GATHER,
    DUMP_REDUCE_SCATTER,
    DUMP_BROADCAST,
    DUMP_REDUCE,
    DUMP_GATHER,
    DUMP_SCATTER,
    DUMP_ALL_TO_ALL,
    DUMP_BARRIER,
    DUMP_SEND,
    DUMP_RECEIVE,
    DUMP_COALESCED,  // the end of a coalesced batch
    DUMP_OTHER,
    DUMP_OP_COUNT
} DumpOp;

typedef struct DumpOpRow {
    const char *words;       // "all-reduce"
    bool same_in, same_out;  // every member's input, output has equally many elements
    bool alone;              // may complete on one rank before the others arrive
} DumpOpRow;

extern const DumpOpRow dump_op_rows[DUMP_OP_COUNT];

static inline bool dump_op_is_message(DumpOp op) {
    return op == DUMP_SEND || op == DUMP_RECEIVE;
}

typedef struct DumpEntry {
    int group;    // index into the dump's groups
    int64_t seq;  // number of the collective in its group
    DumpOp op;
    const char *name;  // "nccl:all_reduce"
    int64_t in, out;   // elements over all tensors
    int64_t bytes;     // of the larger side; -1 = unknown type
    const char *dtype;
    int own, peer;  // of sends and receives: indices in the group; -1 = unknown
    bool p2p;
    int64_t p2p_seq;  // number of the batch it was issued in; -1 = unknown
    bool completed, retired;
    int64_t created_ns, completed_ns;  // by its host's clock; 0 = unknown
    double duration_ms;                // < 0 = unknown
    int64_t timeout_ms;                // 0 = unknown
    const char *caller;                // the innermost frame outside torch, "step at train.py:12"; NULL = unknown
} DumpEntry;

typedef struct DumpGroup {
    const char *name, *desc;  // desc "" where none was given
    const int *ranks;         // ascending; NULL = unknown
    int rank_count;
} DumpGroup;

typedef struct Dump {
    int rank;
    const char *path, *host;  // host NULL = unknown
    const char *version;      // version of the format
    DumpGroup *groups;
    int group_count;
    DumpEntry *entries;  // in issue order
    int entry_count;
    bool wrapped;        // the ring buffer has overwritten the oldest entries
    bool says_complete;  // some entry is marked completed; else only retired is known (Gloo)
    int64_t written_ns;  // the file's mtime; 0 = unknown
} Dump;

static inline bool dump_is_over(const Dump *dump, const DumpEntry *entry) {
    return entry->completed || (!dump->says_complete && entry->retired);
}

// Interprets the values of one file. Texts go to the arena; a value that is not a dump is an error.
Status dump_of_value(const DumpValue *root, Arena *arena, Dump *dump, Error *error);

// Who holds a job of PyTorch's up, from the dumps of its flight recorder: one cause, found by following who waits for
// whom, and what each rank did against what its group did.

#pragma once

#include "autotune/blame/job.h"

typedef enum {
    VERDICT_HEALTHY,   // nobody is blamed
    VERDICT_MISSING,   // never arrived at a collective
    VERDICT_SKIPPED,   // went past one that its group is in
    VERDICT_EXTRA,     // issued one that its group does not have
    VERDICT_MISMATCH,  // issued another operation than its group
    VERDICT_ORDER,     // issued its group's in another order
    VERDICT_SIZE,      // issued it with another size or type
    VERDICT_SLOW,      // everybody goes on, and everybody waits for it
    VERDICT_STUCK,     // all are in it, and nobody comes out
    VERDICT_KIND_COUNT
} VerdictKind;

typedef struct VerdictKindRow {
    const char *name;   // of JSON: "skipped"
    const char *words;  // "skipped a collective"
} VerdictKindRow;

extern const VerdictKindRow verdict_kinds[VERDICT_KIND_COUNT];

// A collective as one rank issued it, or should have.
typedef struct VerdictPlace {
    int group;  // of the job; -1 = none
    int64_t seq;
    DumpOp op;
    int64_t in, out, bytes;  // bytes -1 = unknown
    const char *dtype, *caller;
    bool inside;        // issued and not over
    double waited_s;    // so long, < 0 = unknown
    const char *layer;  // where our step has it: "layer 3, forward, task 'gather layer'"; NULL = unknown
} VerdictPlace;

typedef struct Verdict {
    VerdictKind kind;
    int *ranks;  // who is blamed
    int rank_count;
    bool guilty_unknown;          // the ranks disagree, and the dumps do not tell who is wrong
    VerdictPlace did;             // the collective that the blamed rank is in, or was in last; group -1 = none
    VerdictPlace due;             // the one that its group is in
    int *waiting, waiting_count;  // in it, for the blamed
    int *held, held_count;        // by others that wait
    VerdictPlace *awaited;        // of a missing rank: where others wait for it, as it should have issued it
    int awaited_count;
    double excess;  // of a slow rank: of the time, what the others wait for it
    double longest_wait_s;
    VerdictPlace *stands;  // by rank: its last
    const char **unknown;  // sentences: what the dumps do not tell
    int unknown_count;
} Verdict;

// hang_s: how long a wait has to be to count; 0 = the time-out of the collective, or longer than ten times what the job
// had waited before.
void verdict_find(const Job *job, double hang_s, Arena *arena, Verdict *verdict);

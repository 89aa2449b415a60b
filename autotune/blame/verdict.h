// Which rank holds up a PyTorch job, from its flight recorder dumps: one cause, found by following which rank waits for
// which, and by comparing what each rank did with what its group did.

#pragma once

#include "autotune/blame/job.h"

typedef enum {
    VERDICT_HEALTHY,   // nobody is blamed
    VERDICT_MISSING,   // never arrived at a collective
    VERDICT_SKIPPED,   // skipped a collective that its group issued
    VERDICT_EXTRA,     // issued one that its group did not
    VERDICT_MISMATCH,  // issued another operation than its group
    VERDICT_ORDER,     // issued its group's collectives in another order
    VERDICT_SIZE,      // issued it with another size or dtype
    VERDICT_SLOW,      // the job makes progress, and everybody waits for it
    VERDICT_STUCK,     // all ranks are in it, and none leaves
    VERDICT_KIND_COUNT
} VerdictKind;

typedef struct VerdictKindRow {
    const char *name;   // the JSON name: "skipped"
    const char *words;  // "skipped a collective"
} VerdictKindRow;

extern const VerdictKindRow verdict_kinds[VERDICT_KIND_COUNT];

// A collective as one rank issued it, or should have.
typedef struct VerdictPlace {
    int rank;   // whose, of `stands`
    int group;  // index into the job's groups; -1 = none
    int64_t seq;
    DumpOp op;
    int64_t in, out, bytes;  // bytes -1 = unknown
    const char *dtype, *caller;
    bool inside;        // issued and not completed
    double waited_s;    // < 0 = unknown
    const char *layer;  // its place in our step: "layer 3, forward, task 'gather layer'"; NULL = unknown
} VerdictPlace;

typedef struct Verdict {
    VerdictKind kind;
    int *ranks;  // the blamed ranks
    int rank_count;
    bool guilty_unknown;          // the ranks disagree, and the dumps do not tell who is wrong
    VerdictPlace did;             // the collective that the blamed rank is in, or was last in; group -1 = none
    VerdictPlace due;             // the one that its group is in
    int *waiting, waiting_count;  // ranks in it, waiting for the blamed
    int *held, held_count;        // ranks held up by other waits
    VerdictPlace *awaited;        // of a missing rank: where others wait for it, as it should have issued it
    int awaited_count;
    double excess;  // of a slow rank: share of the time that the others wait for it
    double longest_wait_s;
    VerdictPlace *stands;  // by rank: its last collective
    const char **unknown;  // sentences: what the dumps do not tell
    int unknown_count;
} Verdict;

// hang_s: how long a wait has to be to count; 0 = the collective's timeout, or longer than ten times the rank's longest
// pause before.
void verdict_find(const Job *job, double hang_s, Arena *arena, Verdict *verdict);

// Is a config file right: does its plan run, does it fit, is it near the best plan with the same batch; and what does a
// change to the file cost?

#pragma once

#include "autotune/explain/advice.h"
#include "autotune/import/config_change.h"
#include "autotune/import/import.h"

typedef enum { CHECK_ERROR, CHECK_WARNING, CHECK_NOTICE, CHECK_LEVEL_COUNT } CheckLevel;

extern const char *const check_level_names[CHECK_LEVEL_COUNT];  // "error" "warning" "notice"

// A message about lines of a file.
typedef struct CheckNote {
    CheckLevel level;
    const char *key;  // NULL = about no key in the file
    int first, last;  // line numbers; 0 = the file as a whole
    const char *sentence;
} CheckNote;

typedef struct CheckQuestion {
    const Import *import;
    const TuneRequest *request;
    const AdviceReport *advice;
    double tolerance;  // how much slower than the best still passes: 0.1
} CheckQuestion;

typedef struct CheckReport {
    const CheckQuestion *question;
    bool runs, fits, near_best;  // each implies the ones before; a file passes with all three
    double slower;               // tokens/s below the best, as a share of the best; 0 = the plan has no time
    const char *verdict;         // one sentence, without the file's name
    CheckNote *notes;            // errors first
    int note_count;
} CheckReport;

// What the framework stops at, though a plan follows from the file: the first sentence; NULL.
const char *check_stopped(const Import *import);

// STATUS_OK where the plan runs and fits, else a sentence with the reason.
Status check_runs(const Import *import, const AdviceReport *advice, Error *error);

// Texts in the arena.
void check_judge(const CheckQuestion *question, Arena *arena, CheckReport *report);

// ---- two files

// One change applied to the first file, alone; or together with all others that cannot be applied alone.
typedef struct CheckChange {
    ConfigChange change;
    bool alone;
    bool priced;        // false: there are too many, or no plan follows from them
    double slower;      // than the first file: 1 - relative tokens/s; negative = faster
    double more_bytes;  // of reserved memory
} CheckChange;

enum { CHECK_PRICED_CHANGES = 16 };

// One side of the comparison: the outcome of its plan.
typedef struct CheckSide {
    const Import *import;
    const TuneRequest *request;
    Prediction own;
    bool legal;
    const char *reason;  // why it does not run, or does not fit; NULL
} CheckSide;

typedef struct CheckPair {
    CheckSide before, after;
    CheckChange *changes;
    int change_count;
    double tolerance;
    bool timed;     // both have a time: slower and more_bytes are known
    double slower;  // of `after` against `before`, per token
    double more_bytes;
    bool passed;          // `after` runs, fits and is not slower than `before` by more than the tolerance
    const char *verdict;  // one sentence
} CheckPair;

// The outcome of the first file as this tree; nothing where no plan follows from it.
typedef Status (*CheckPredict)(void *context, ConfigNode *root, CheckSide *side, Error *error);

// Prices each change from one file to the other.
Status check_changes(CheckPair *pair, const char *before, const char *after, CheckPredict predict, void *context,
                     Arena *arena, Error *error);

// Fills in what follows from the two sides and the tolerance.
void check_compare(CheckPair *pair, Arena *arena);

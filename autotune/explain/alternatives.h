// Alternatives to the request that was answered: a batch near it that lets a faster shape run, fewer ranks, other
// number formats. By estimate.

#pragma once

#include "autotune/search/search.h"

// Of a world that fills its last node in part: the ranks to leave idle where the full nodes alone are faster; 0 = none.
typedef struct IdleAlternative {
    int idle;
    Mesh mesh;    // of the best plan on the rest
    double gain;  // its tokens per second over the best on all, minus one
} IdleAlternative;

Status alternative_idle(const TuneResult *result, Arena *arena, IdleAlternative *alternative, Error *error);

// Of a search that left shapes out for the global batch.
typedef struct BatchAlternative {
    int64_t global_batch;  // 0 = none is better
    Mesh mesh;             // of its best plan
    double gain;           // tokens/s over the best with the batch that was asked, minus one; 0 = nothing ran with it
    int shapes_near;       // to which the search was bound, near the best with the batch that was asked; 0 = it was not
} BatchAlternative;

// known: what the search learnt for this; if NULL or empty, it is learnt again.
Status alternative_batch(const TuneResult *result, const SearchKnown *known, Arena *arena,
                         BatchAlternative *alternative, Error *error);

// What the best plan would come to with number formats that change the training numerics: never searched by default.
typedef struct FormatAlternative {
    const char *words, *option;  // "bf16 weights and states", "--master-weights bf16"
    double step;                 // its step time over the best plan's, minus one
    double saved_bytes;          // of reserved memory
} FormatAlternative;

enum { ALTERNATIVE_FORMATS = 4 };
Status alternative_formats(const TuneResult *result, Arena *arena, FormatAlternative formats[ALTERNATIVE_FORMATS],
                           int *count, Error *error);

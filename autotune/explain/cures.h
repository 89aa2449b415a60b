// Where nothing fits: the changes to a request that make something fit, each with its cost. By estimate.

#pragma once

#include "autotune/result.h"

enum { CURES_MOST = 8 };

// The least change of each kind that lets something fit; the nearest first: what keeps the training and the
// accelerators, then more accelerators, then what changes the training, adapters last, each by the speed of an
// accelerator. With nothing of the first kind two of them together. At most CURES_MOST, in the arena. The request has
// no slow ranks.
Status cures_find(const TuneRequest *request, Arena *arena, const Cure **cures, int *count, Error *error);

enum { CURE_BYTES = 256 };
#define CURE_BUFFER ((char[CURE_BYTES]){0})  // room for one text: lives as long as the block around it

// "--offload parameters,optimizer (dp_shard=8, 7.21 k tokens/s, 76 % slower)".
char *cure_text(const Cure *cure, char out[CURE_BYTES]);

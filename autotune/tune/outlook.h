// The likely winner, and the most informative next run, by sampling the belief.
//   winner       the shape that is expected to lose least against the fastest. It is good enough where it is within
//                `tolerance` of the fastest: an indifference zone, since two shapes that are equally good cannot be
//                told apart by any number of runs (Bechhofer 1954)
//   next run     the one that is expected to lower the entropy of "which shape is the fastest" most (Villemonteix,
//                Vazquez, Walter 2009; Hennig and Schuler 2012, Entropy Search, for finitely many candidates), one step
//                ahead. What a run would say is averaged over equally probable outcomes; each moves the samples as
//                Matheron's rule says, so that the same samples serve all candidates (common random numbers);
//                where runs tell equally much, that of the likeliest winner

#pragma once

#include "autotune/tune/belief.h"

enum { OUTLOOK_DRAWS = 4096, OUTLOOK_ACQUIRE_DRAWS = 512, OUTLOOK_OUTCOMES = 16 };

typedef struct Outlook {
    int winner;          // -1: every shape is out
    double probability;  // that nothing is faster by more than the tolerance
    double regret;       // expected: time of the winner over that of the fastest, minus one
    double entropy;      // of which is the fastest, in bits
    const double *good;  // per shape: within the tolerance of the fastest
    const double *best;  // per shape: the fastest
    const double *draws;
} Outlook;

// tolerance: 0.01 = 1 %.
Status outlook_take(const Belief *belief, double tolerance, uint64_t seed, Arena *arena, Outlook *outlook,
                    Error *error);

// The shape whose next run tells most; gain: bits that it is expected to bring. -1 where none is left.
int outlook_next(const Belief *belief, const Outlook *outlook, uint64_t seed, Arena *arena, double *gain);

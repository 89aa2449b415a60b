// How a tuner explores a sweep, replayed from its measured runs.

#pragma once

#include "tests/accuracy/sweep/sweep.h"

enum { MOST_STEPS = 256 };

// After run k (0 = before the first) the strategy would name a shape; runs: how many it made before it stopped.
typedef struct Course {
    int named[MOST_STEPS];
    int runs;
    double probability;  // that it states at the end; NAN where it states none
} Course;

typedef struct CourseOptions {
    double tolerance;  // how much slower than the fastest is as good
    int max_runs;
    uint64_t seed;
} CourseOptions;

// The loop as `ndtune tune` runs it.
Status course_tuned(const Sweep *sweep, const CourseOptions *options, Course *course, Error *error);

// All shapes once, in a random order; names the fastest so far, before that what was predicted best.
void course_random(const Sweep *sweep, uint64_t seed, Course *course);

// Is the last that it names within so much of the best, or tied with it?
bool course_right(const Sweep *sweep, const Course *course, double tolerance, Arena *arena);

// Runs after which it names a shape within 1 % of the best and stays with such; -1 = at its end it does not.
int course_found(const Sweep *sweep, const Course *course);
// Regret of what it names after that many runs, or at its end.
double course_regret(const Sweep *sweep, const Course *course, int runs);

// How a tuner explores a sweep, replayed from its measured runs.

#pragma once

#include "tests/accuracy/sweep/sweep.h"

enum { MOST_STEPS = 256 };

// The shape that the strategy would name after run k (0 = before the first); runs: how many it made until it stopped.
typedef struct Course {
    int named[MOST_STEPS];
    int runs;
    double probability;  // stated at the end; NAN if none is stated
} Course;

typedef struct CourseOptions {
    double tolerance;  // how much slower than the fastest still counts as equal
    int max_runs;
    uint64_t seed;
} CourseOptions;

// The loop as `ndtune tune` runs it.
Status course_tuned(const Sweep *sweep, const CourseOptions *options, Course *course, Error *error);

// All shapes once, in random order; names the fastest so far, before the first run the one predicted best.
void course_random(const Sweep *sweep, uint64_t seed, Course *course);

// Whether the last shape that it names is within the tolerance of the best, or tied with it.
bool course_right(const Sweep *sweep, const Course *course, double tolerance, Arena *arena);

// Number of runs after which it always names a shape within 1 % of the best; -1 = not even at the end.
int course_found(const Sweep *sweep, const Course *course);
// Regret of the shape that it names after that many runs, or at its end.
double course_regret(const Sweep *sweep, const Course *course, int runs);

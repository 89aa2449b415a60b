// Published kernel measurements: the rows of gemm.csv, attention.csv and collectives.csv next to this file, and error
// statistics over them.

#pragma once

#include "sim/axes/mesh.h"

enum { SAMPLE_NAME = 32, SAMPLES_MAX = 2048 };

typedef struct GemmSample {
    char profile[SAMPLE_NAME];
    char load[SAMPLE_NAME];  // "burst": isolated repeats; "sustained": inside a running model
    char dtype[SAMPLE_NAME];
    int64_t m, n, k;
    double time_s;
} GemmSample;

typedef struct AttentionSample {
    char profile[SAMPLE_NAME];
    char kernel[SAMPLE_NAME];
    char direction[SAMPLE_NAME];  // "forward", "backward", or "both" together
    int sequences, heads, seq, head_dim, causal;
    double time_s;
} AttentionSample;

typedef struct CollectiveSample {
    char profile[SAMPLE_NAME];
    char set[SAMPLE_NAME];  // kind of machine; test_kernel_accuracy.c lists what was fitted on it
    char kind[SAMPLE_NAME];
    char algorithm[SAMPLE_NAME];  // "any", or the one forced by the source
    int nodes, per_node;
    double bytes, time_s;
} CollectiveSample;

// Rows read into samples (at most SAMPLES_MAX); fails the test on a malformed row.
int gemm_samples(GemmSample *samples);
int attention_samples(AttentionSample *samples);
int collective_samples(CollectiveSample *samples);

// predicted / measured - 1 for a subset.
typedef struct Errors {
    double signed_error[SAMPLES_MAX];
    int count;
} Errors;

typedef struct ErrorSummary {
    double median_abs, p90_abs, bias;  // bias: median of the signed error
} ErrorSummary;

void errors_add(Errors *errors, double predicted, double measured);
ErrorSummary errors_print(const char *label, const Errors *errors);  // one table row to stderr

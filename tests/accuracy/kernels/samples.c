// Reads the samples: comma-separated, one header line, the source of each figure in the last column (not needed here).

#include "tests/accuracy/kernels/samples.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "sim/base/sorted.h"

enum { LINE_BYTES = 512 };

static FILE *samples_open(const char *name) {
    char path[LINE_BYTES], header[LINE_BYTES];
    snprintf(path, sizeof(path), "%s/tests/accuracy/kernels/%s", NDTUNE_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    cr_assert_not_null(fgets(header, sizeof(header), file));
    return file;
}

int gemm_samples(GemmSample *samples) {
    FILE *file = samples_open("gemm.csv");
    char line[LINE_BYTES];
    int count = 0;
    while (fgets(line, sizeof(line), file)) {
        GemmSample *row = &samples[count++];
        cr_assert_leq(count, SAMPLES_MAX);
        double time_us;
        long m, n, k;
        const int read = sscanf(line, "%31[^,],%31[^,],%31[^,],%ld,%ld,%ld,%lf,", row->profile, row->load, row->dtype,
                                &m, &n, &k, &time_us);
        cr_assert_eq(read, 7, "%s", line);
        row->m = m, row->n = n, row->k = k;
        row->time_s = time_us * 1e-6;
    }
    fclose(file);
    return count;
}

int attention_samples(AttentionSample *samples) {
    FILE *file = samples_open("attention.csv");
    char line[LINE_BYTES];
    int count = 0;
    while (fgets(line, sizeof(line), file)) {
        AttentionSample *row = &samples[count++];
        cr_assert_leq(count, SAMPLES_MAX);
        double time_us;
        const int read =
            sscanf(line, "%31[^,],%31[^,],%31[^,],%d,%d,%d,%d,%d,%lf,", row->profile, row->kernel, row->direction,
                   &row->sequences, &row->heads, &row->seq, &row->head_dim, &row->causal, &time_us);
        cr_assert_eq(read, 9, "%s", line);
        row->time_s = time_us * 1e-6;
    }
    fclose(file);
    return count;
}

int collective_samples(CollectiveSample *samples) {
    FILE *file = samples_open("collectives.csv");
    char line[LINE_BYTES];
    int count = 0;
    while (fgets(line, sizeof(line), file)) {
        CollectiveSample *row = &samples[count++];
        cr_assert_leq(count, SAMPLES_MAX);
        double time_us;
        const int read = sscanf(line, "%31[^,],%31[^,],%31[^,],%d,%d,%lf,%31[^,],%lf,", row->profile, row->set,
                                row->kind, &row->nodes, &row->per_node, &row->bytes, row->algorithm, &time_us);
        cr_assert_eq(read, 8, "%s", line);
        row->time_s = time_us * 1e-6;
    }
    fclose(file);
    return count;
}

void errors_add(Errors *errors, double predicted, double measured) {
    cr_assert_lt(errors->count, SAMPLES_MAX);
    errors->signed_error[errors->count++] = predicted / measured - 1;
}

ErrorSummary errors_print(const char *label, const Errors *errors) {
    cr_assert_gt(errors->count, 0, "%s: no rows", label);
    Errors sorted = *errors;
    sorted_doubles(sorted.signed_error, sorted.count);
    ErrorSummary summary = {.bias = sorted.signed_error[sorted.count / 2]};
    for (int i = 0; i < sorted.count; i++) {
        sorted.signed_error[i] = fabs(sorted.signed_error[i]);
    }
    sorted_doubles(sorted.signed_error, sorted.count);
    summary.median_abs = sorted.signed_error[sorted.count / 2];
    summary.p90_abs = sorted.signed_error[sorted.count * 9 / 10];
    fprintf(stderr, "%-44s rows %4d  median %5.1f %%  p90 %5.1f %%  bias %+5.1f %%\n", label, sorted.count,
            100 * summary.median_abs, 100 * summary.p90_abs, 100 * summary.bias);
    return summary;
}

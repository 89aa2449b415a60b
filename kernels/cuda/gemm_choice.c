// Shapes and choices as data: needs neither GPU nor library.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/gemm.h"

static const char *const type_names[GEMM_TYPES] = {"fp32", "bf16"};

bool gemm_shape_equal(const GemmShape *a, const GemmShape *b) {
    return a->m == b->m && a->n == b->n && a->k == b->k && a->trans_a == b->trans_a && a->trans_b == b->trans_b &&
           a->input == b->input && a->output == b->output && a->accumulate == b->accumulate && a->bias == b->bias &&
           a->alignment == b->alignment && a->sms == b->sms;
}

const char *gemm_shape_text(const GemmShape *shape, char out[GEMM_SHAPE_TEXT_BYTES]) {
    snprintf(out, GEMM_SHAPE_TEXT_BYTES, "%" PRId64 "x%" PRId64 "x%" PRId64 " %c%c %s>%s %s %s align %d sms %d",
             shape->m, shape->n, shape->k, shape->trans_a ? 't' : 'n', shape->trans_b ? 't' : 'n',
             type_names[shape->input], type_names[shape->output], shape->accumulate ? "add" : "set",
             shape->bias ? "bias" : "plain", shape->alignment, shape->sms);
    return out;
}

static bool type_parse(const char *name, GemmType *type) {
    for (int i = 0; i < GEMM_TYPES; i++) {
        if (strcmp(type_names[i], name) == 0) {
            *type = (GemmType)i;
            return true;
        }
    }
    return false;
}

bool gemm_shape_parse(const char *text, GemmShape *shape) {
    char a = 0, b = 0, input[8], output[8], sum[8], bias[8], again[GEMM_SHAPE_TEXT_BYTES];
    *shape = (GemmShape){0};
    if (sscanf(text, "%" SCNd64 "x%" SCNd64 "x%" SCNd64 " %c%c %4[a-z0-9]>%4[a-z0-9] %3[a-z] %5[a-z] align %d sms %d",
               &shape->m, &shape->n, &shape->k, &a, &b, input, output, sum, bias, &shape->alignment,
               &shape->sms) != 11 ||
        !type_parse(input, &shape->input) || !type_parse(output, &shape->output)) {
        return false;
    }
    shape->trans_a = a == 't';
    shape->trans_b = b == 't';
    shape->accumulate = strcmp(sum, "add") == 0;
    shape->bias = strcmp(bias, "bias") == 0;
    return strcmp(gemm_shape_text(shape, again), text) == 0;  // nothing else is a valid shape
}

int gemm_alignment(uint64_t address) {
    const uint64_t most = 256;
    const uint64_t low = address & (~address + 1);
    return (int)(low == 0 || low > most ? most : low);
}

const GemmChoice *gemm_choice_find(const GemmChoice *choices, int count, const GemmShape *shape) {
    for (int i = 0; i < count; i++) {
        if (gemm_shape_equal(&choices[i].shape, shape)) {
            return &choices[i];
        }
    }
    return NULL;
}

static double median(const double *seconds, int repeats) {
    for (int i = 0; i < repeats; i++) {
        int below = 0;
        for (int j = 0; j < repeats; j++) {
            below += seconds[j] < seconds[i] || (seconds[j] == seconds[i] && j < i);
        }
        if (below == (repeats - 1) / 2) {
            return seconds[i];
        }
    }
    return seconds[0];
}

int gemm_fastest(const double *seconds, int candidates, int repeats) {
    int best = 0;
    for (int i = 1; i < candidates; i++) {
        if (median(seconds + i * repeats, repeats) < median(seconds + best * repeats, repeats)) {
            best = i;
        }
    }
    return best;
}

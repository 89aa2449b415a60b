// A GPU's numbers from the samples of its own kernels. What only long runs show (the sustained rate, the spread between
// chips), attention, links and network stay those of the extended profile.

#include <math.h>
#include <string.h>

#include "autotune/accuracy/statistics.h"
#include "autotune/cli/probe_builder.h"

enum { MOST_RATES = 32 };
static const double LARGE_GEMM = 2048;     // every side: fills all multiprocessors several times
static const double BEYOND_CACHE = 100e6;  // bytes: twice the L2 of an H100 or H200
// Bytes of an element: bf16 operands of add, norm and SwiGLU; AdamW's fp32 gradient, master and moments in, the latter out.
static const double BYTES_PER_ADD = 6, BYTES_PER_NORM = 4, BYTES_PER_SWIGLU = 6, BYTES_PER_ADAMW = 28;

static double stream_bytes(const ProbeSample *sample) {
    const double per_element = strcmp(sample->name, "adamw") == 0    ? BYTES_PER_ADAMW
                               : strcmp(sample->name, "norm") == 0   ? BYTES_PER_NORM
                               : strcmp(sample->name, "swiglu") == 0 ? BYTES_PER_SWIGLU
                                                                     : BYTES_PER_ADD;
    return per_element * sample->size[0];
}

static Status fit_products(const ProbeBuilder *builder, Error *error) {
    double rates[MOST_RATES];
    int count = 0;
    for (int i = 0; i < builder->probe->sample_count && count < MOST_RATES; i++) {
        const ProbeSample *sample = &builder->probe->samples[i];
        if (sample->kind == PROBE_GEMM && fmin(sample->size[0], fmin(sample->size[1], sample->size[2])) >= LARGE_GEMM) {
            rates[count++] = probe_gemm_rate(sample, 0);
        }
    }
    if (count == 0) {
        return error_set(error, STATUS_ENVIRONMENT, "the probe has no large product: %s is too slow for one",
                         builder->probe->chip);
    }
    probe_put(builder, "accelerator.gemm.bf16.burst_flop_per_s", statistics_median(rates, count),
              "median of %d products with sides of 2048 to 28672, ten in a row, the fastest of cuBLASLt's algorithms",
              count);
    return STATUS_OK;
}

static Status fit_memory(const ProbeBuilder *builder, Error *error) {
    double rates[MOST_RATES], best = 0, floor_s = 0;
    int count = 0;
    for (int i = 0; i < builder->probe->sample_count && count < MOST_RATES; i++) {
        const ProbeSample *sample = &builder->probe->samples[i];
        if (sample->kind == PROBE_STREAM && strcmp(sample->name, "floor") == 0) {
            floor_s = sample->seconds;
        } else if (sample->kind == PROBE_STREAM && stream_bytes(sample) > BEYOND_CACHE) {
            rates[count] = stream_bytes(sample) / sample->seconds;
            best = fmax(best, rates[count++]);
        }
    }
    if (count == 0 || floor_s <= 0) {
        return error_set(error, STATUS_ENVIRONMENT, "the probe has no stream beyond the caches of %s",
                         builder->probe->chip);
    }
    probe_put(builder, "accelerator.memory_bytes_per_s", best, "best of add, norm, SwiGLU and AdamW beyond the caches");
    probe_put(builder, "accelerator.memory_efficiency", statistics_median(rates, count) / best,
              "median of those %d against the best", count);
    probe_put(builder, "accelerator.kernel_floor_s", floor_s, "adding 4096 elements, ten in a row, pauses included");
    probe_put(builder, "accelerator.kernel_gap_s", 0, "counted in the floor");
    return STATUS_OK;
}

Status probe_gpu(ProbeBuilder *builder, Error *error) {
    const char *chip = builder->probe->chip;
    json_object_set_new(
        builder->root, "accelerator",
        json_pack("{s:s}", "name",
                  arena_format(builder->arena, "%.*s", (int)fmin(40, (double)strcspn(chip, ",")), chip)));
    TRY(fit_products(builder, error));
    return fit_memory(builder, error);
}

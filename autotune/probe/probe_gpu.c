// A GPU's numbers from the samples of its own kernels, and curves of its collectives where the transport reaches its
// memory. Streams and attention less what the smallest kernel takes. What no sample shows stays that of the extended
// profile: the terms of tiles and waves, the pause between kernels (only a kernel with its pause can be timed), links
// and network outside of the curves, the spread between chips. The description says so.

#include <math.h>
#include <string.h>

#include "autotune/accuracy/statistics.h"
#include "autotune/probe/chip_name.h"
#include "autotune/probe/probe_builder.h"

enum { MOST_RATES = 32 };
static const double LARGE_GEMM = 2048;     // every side, on a full chip: fills all multiprocessors several times
static const double BEYOND_CACHE = 2;      // times the last cache
static const double LEAST_ALONE = 0.5;     // of a stream beyond the caches; a floor that takes more was disturbed
static const double LEAST_FLOOR_S = 1e-7;  // where the pause of the extended profile is longer than kernel and pause
// Bytes of an element: bf16 operands of add, norm and SwiGLU; AdamW's fp32 gradient, master and moments in, the latter
// out.
static const ProbeBytes BYTES = {.add = 6, .norm = 4, .swiglu = 6, .adamw = 28};

static double least_side(const ProbeSample *sample) {
    return fmin(sample->size[0], fmin(sample->size[1], sample->size[2]));
}

static Status fit_rates(ProbeBuilder *builder, Error *error) {
    const ProbeResult *probe = builder->probe;
    const ProbeSample *sustained = NULL, *last = NULL;
    double rates[MOST_RATES];
    int count = 0;
    while ((last = probe_next(probe, last, PROBE_SUSTAINED, NULL))) {
        sustained = last;
    }
    for (const ProbeSample *sample = NULL;
         count < MOST_RATES && (sample = probe_next(probe, sample, PROBE_GEMM, NULL));) {
        if (least_side(sample) * probe->device.divisor >= LARGE_GEMM) {
            rates[count++] = probe_gemm_rate(sample, 0);
        }
    }
    FAIL_IF(count == 0 || !sustained, error, STATUS_ENVIRONMENT,
            "the probe has no large product: %s is too slow for one", probe->chip);
    const double median = statistics_median(rates, count), long_run = probe_gemm_rate(sustained, 0);
    const double burst = fmax(median, long_run);
    probe_put(builder, "accelerator.gemm.bf16.burst_flop_per_s", burst,
              "median of %d large products, a few in a row, the fastest of cuBLASLt's algorithms%s", count,
              long_run > median ? "; the long run below was faster" : "");
    probe_put(builder, "accelerator.gemm.bf16.sustained_flop_per_s", long_run,
              "one product of %.0f a side over and over, the later half of the time", sustained->size[0]);
    return STATUS_OK;
}

// Each product individually, in addition to the rates.
static void add_products(const ProbeBuilder *builder) {
    const ProbeResult *probe = builder->probe;
    json_t *points = json_array();
    for (const ProbeSample *sample = NULL; (sample = probe_next(probe, sample, PROBE_GEMM, NULL));) {
        const char *words = arena_format(builder->arena, "%.0fx%.0fx%.0f nt bf16>bf16 set", sample->size[0],
                                         sample->size[1], sample->size[2]);
        json_array_append_new(points, json_pack("[s, f]", words, sample->seconds));
    }
    const char *source =
        arena_format(builder->arena, "a few in a row, the fastest of cuBLASLt's algorithms; probe of %s on %s, %s",
                     probe->hosts[0].name, builder->about->when, builder->about->program);
    json_object_set_new(builder->root, "products",
                        json_pack("{s:o, s:s, s:s}", "points", points, "source", source, "grade", "measured"));
}

static Status fit_memory(ProbeBuilder *builder, Error *error) {
    const ProbeResult *probe = builder->probe;
    double rates[MOST_RATES], best = 0;
    int count = 0;
    for (const ProbeSample *least = NULL; (least = probe_next(probe, least, PROBE_STREAM, "floor"));) {
        builder->floor_s = least->seconds;
    }
    for (const ProbeSample *sample = NULL;
         count < MOST_RATES && (sample = probe_next(probe, sample, PROBE_STREAM, NULL));) {
        if (strcmp(sample->name, "floor") != 0 &&
            probe_stream_bytes(&BYTES, sample) > BEYOND_CACHE * probe->device.cache_bytes) {
            const double alone_s = fmax(sample->seconds - builder->floor_s, LEAST_ALONE * sample->seconds);
            rates[count] = probe_stream_bytes(&BYTES, sample) / alone_s;
            best = fmax(best, rates[count++]);
        }
    }
    FAIL_IF(count == 0 || builder->floor_s <= 0, error, STATUS_ENVIRONMENT,
            "the probe has no stream beyond the caches of %s", probe->chip);
    probe_put(builder, "accelerator.memory_bytes_per_s", best, "best of add, norm, SwiGLU and AdamW beyond the caches");
    probe_put(builder, "accelerator.memory_efficiency", statistics_median(rates, count) / best,
              "median of those %d against the best", count);
    return STATUS_OK;
}

static void fit_kernels(const ProbeBuilder *builder) {
    const ProbeResult *probe = builder->probe;
    const double gap_s = builder->about->parent->accelerator.kernel_gap_s;
    probe_put(builder, "accelerator.kernel_floor_s", fmax(builder->floor_s - gap_s, LEAST_FLOOR_S),
              "adding 4096 elements: %.2f us from one to the next, less the pause of %.2f us that %s states",
              1e6 * builder->floor_s, 1e6 * gap_s, builder->about->extends);
    probe_put(builder, "accelerator.sm_count", probe->device.processors, "as the driver counts them");
    if (probe->world == 1 && probe->device.memory_bytes > 0) {  // several ranks may share a GPU
        probe_put(builder, "accelerator.memory_bytes", probe->device.memory_bytes,
                  "free for one process, after the driver's part");
    }
}

static bool fit_attention(const ProbeBuilder *builder) {
    static const struct {
        const char *way, *kernel, *by;
    } kernels[] = {{"own", "flash", "tier own, ndtune's kernel; "}, {"cudnn", "cudnn", "tier cudnn; "}};
    static const int head_dims[] = {64, 128};
    bool any = false;
    for (int i = 0; i < 4; i++) {
        const ProbeAttention about = {.way = kernels[i / 2].way,
                                      .kernel = kernels[i / 2].kernel,
                                      .by = kernels[i / 2].by,
                                      .head_dim = head_dims[i % 2],
                                      .processors = builder->probe->device.processors,
                                      .kept = 1,
                                      .peak_flop_per_s =
                                          builder->about->parent->accelerator.gemm[DTYPE_BF16].peak_flop_per_s};
        any = probe_attention(builder, &about) || any;
    }
    return any;
}

Status probe_gpu(ProbeBuilder *builder, Error *error) {
    const ProbeResult *probe = builder->probe;
    json_object_set_new(builder->root, "accelerator",
                        json_pack("{s:s}", "name", chip_name(probe->chip, builder->arena)));
    TRY(fit_rates(builder, error));
    TRY(fit_memory(builder, error));
    add_products(builder);
    fit_kernels(builder);
    const bool attention = fit_attention(builder),
               collectives = probe_next(probe, NULL, PROBE_COLLECTIVE, NULL) != NULL;
    if (collectives) {
        probe_curves(builder);
    }
    builder->not_measured = arena_format(
        builder->arena, "; of %s: peak, tile and wave terms, pauses between kernels, %s%sinterference, network",
        builder->about->extends, attention ? "" : "attention, ", collectives ? "" : "links, ");
    return STATUS_OK;
}

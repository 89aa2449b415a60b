// A processor's core. Rates are those of a core on a busy machine: what one rank reaches alone, times what all at once
// keep of it (memory, caches, hyperthreads), both per second of computing.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autotune/accuracy/statistics.h"
#include "autotune/probe/probe_builder.h"
#include "sim/cost/compute.h"

enum { MOST_VALUES = 64 };
static const double LARGE_GEMM = 256;  // every side: burst and peak
// adamw: g, master, m, v in, master, m, v out; ndtune's row of the target table.
static const ProbeBytes BYTES = {.add = 12, .norm = 8, .swiglu = 12, .adamw = 28};

// ---------------------------------------------------------------------------------------------- cores

// One kernel over the rounds, in seconds of a call: of a rank alone, of all at once, and of the slowest of these.
typedef struct Rounds {
    double alone_s, all_s, slowest_s, fastest_s;  // the last of all rounds and ranks
    int count;
} Rounds;

// False: the probe has no samples of it.
static bool find_rounds(const ProbeResult *probe, const char *name, Rounds *rounds) {
    int alone = 0;
    *rounds = (Rounds){.fastest_s = INFINITY};
    for (const ProbeSample *sample = NULL; (sample = probe_next(probe, sample, PROBE_SHARED, name));) {
        if (sample->repeats == 1) {
            rounds->alone_s += sample->seconds;
            alone++;
        } else {
            rounds->all_s += sample->seconds;
            rounds->slowest_s += sample->high;
            rounds->count++;
        }
        rounds->fastest_s = fmin(rounds->fastest_s, sample->low);
    }
    rounds->alone_s /= fmax(1, alone);
    rounds->all_s /= fmax(1, rounds->count);
    rounds->slowest_s /= fmax(1, rounds->count);
    return alone > 0 && rounds->count > 0;
}

// Machines of a probe that run on one kernel (namespaces, containers) share its cores.
static int machines_of_kernel(const ProbeResult *probe) {
    int machines = 0;
    for (int rank = 0; rank < probe->world; rank++) {
        const ProbeHost *host = &probe->hosts[rank];
        machines += host->node == machines && strcmp(host->boot, probe->hosts[0].boot) == 0;
    }
    return machines > 0 ? machines : 1;
}

static int cores_at_once(const ProbeResult *probe, int machines) {
    const double cores = (double)probe->hosts[0].cores / machines * probe->nodes;
    return (int)fmin(probe->world, fmax(1, cores));
}

static Status fit_cores(ProbeBuilder *builder, Error *error) {
    const ProbeResult *probe = builder->probe;
    Rounds products, streams;
    FAIL_IF(!find_rounds(probe, "gemm", &products) || !find_rounds(probe, "stream", &streams), error,
            STATUS_ENVIRONMENT, "the probe has no sample of all ranks at once");
    const int machines = machines_of_kernel(probe);
    builder->gemm_kept = probe_clamp(products.alone_s / products.all_s, 0.05, 1);
    builder->stream_kept = probe_clamp(streams.alone_s / streams.all_s, 0.05, 1);
    probe_put(builder, "node.cores", fmax(1, floor((double)probe->hosts[0].cores / machines)),
              "the system counts %d cores%s; with %d ranks at once a core keeps %.0f %% of its GEMM rate, %.0f %% of "
              "streaming",
              probe->hosts[0].cores, machines > 1 ? ", which the machines of this probe share (one kernel)" : "",
              probe->world, 100 * builder->gemm_kept, 100 * builder->stream_kept);
    // Backwards through slowest_chip_factor. Time-shared cores are equally fast.
    const double sigmas = slowest_chip_sigmas(cores_at_once(probe, machines));
    if (sigmas > 0) {
        probe_put(
            builder, "accelerator.chip_spread", probe_clamp((1 - products.all_s / products.slowest_s) / sigmas, 0, 0.2),
            "in %d rounds of all %d ranks the slowest core took %.2f times the mean; a core's mean is %.2f times "
            "its best",
            products.count, probe->world, products.slowest_s / products.all_s, products.alone_s / products.fastest_s);
    }
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- kernels

static const ProbeSample *find_gemm(const ProbeResult *probe, const char *name, double m, double n, double k) {
    const ProbeSample *sample = NULL;
    do {
        sample = probe_next(probe, sample, PROBE_GEMM, name);
    } while (sample && fabs(sample->size[0] - m) + fabs(sample->size[1] - n) + fabs(sample->size[2] - k) >= 0.5);
    return sample;
}

// Of products in one format.
typedef struct GemmFit {
    double peak, burst, launch_s;
    int shapes;
    const ProbeSample *tiny, *tiles[3];
} GemmFit;

// False: the probe has not all samples of it.
static bool find_gemm_fit(const ProbeResult *probe, const char *name, GemmFit *fit) {
    double rates[MOST_VALUES];
    *fit = (GemmFit){.tiny = find_gemm(probe, name, 1, 1, 1),
                     .tiles = {find_gemm(probe, name, 128, 128, 256), find_gemm(probe, name, 64, 128, 256),
                               find_gemm(probe, name, 64, 64, 256)}};
    for (const ProbeSample *sample = NULL;
         fit->shapes < MOST_VALUES && (sample = probe_next(probe, sample, PROBE_GEMM, name));) {
        if (fmin(sample->size[0], fmin(sample->size[1], sample->size[2])) >= LARGE_GEMM) {
            rates[fit->shapes++] = probe_gemm_rate(sample, 0);
            fit->peak = fmax(fit->peak, rates[fit->shapes - 1]);
        }
    }
    if (!fit->tiny || !fit->tiles[0] || !fit->tiles[1] || !fit->tiles[2] || fit->shapes == 0) {
        return false;
    }
    fit->burst = statistics_median(rates, fit->shapes);
    fit->launch_s = fit->tiny->seconds;
    return true;
}

static void put_gemm(const ProbeBuilder *builder, const char *dtype, const GemmFit *fit) {
    char path[96];
    const int before = snprintf(path, sizeof path, "accelerator.gemm.%s.", dtype);
    char *const leaf = path + before;
    const size_t room = sizeof path - (size_t)before;
    snprintf(leaf, room, "peak_flop_per_s");
    probe_put(builder, path, fit->peak,
              "best of %d GEMM shapes from 256 to 3072 on one core: the datasheet's peak is not known", fit->shapes);
    snprintf(leaf, room, "burst_flop_per_s");
    probe_put(builder, path, fit->burst, "median of %d GEMM shapes on one core, others idle", fit->shapes);
    snprintf(leaf, room, "sustained_flop_per_s");
    probe_put(builder, path, fit->burst * builder->gemm_kept, "%.0f %% of that is kept with all cores busy",
              100 * builder->gemm_kept);
    snprintf(leaf, room, "launch_s");
    probe_put(builder, path, fit->launch_s, "GEMM of 1 x 1 x 1, median of %d", fit->tiny->repeats);
    for (int i = 0; i < 3; i++) {
        const ProbeSample *tile = fit->tiles[i];
        snprintf(leaf, room, "class_efficiency_%d", i + 1);
        probe_put(builder, path, probe_clamp(probe_gemm_rate(tile, fit->launch_s) / fit->burst, 0.01, 1.5),
                  "GEMM of %.0f x %.0f x %.0f against the large ones", tile->size[0], tile->size[1], tile->size[2]);
    }
}

// Rows of a group at which its rate is half of that of large products: what the samples say in the middle.
static void fit_grouped(const ProbeBuilder *builder, const GemmFit *fit) {
    const ProbeResult *probe = builder->probe;
    double ramps[MOST_VALUES];
    int count = 0;
    for (const ProbeSample *sample = NULL;
         count < MOST_VALUES && (sample = probe_next(probe, sample, PROBE_GEMM, "grouped"));) {
        const double rate = sample->size[3] * probe_gemm_rate(sample, 0) * sample->seconds /
                            fmax(sample->seconds - sample->size[3] * fit->launch_s, 1e-9);
        ramps[count++] = fmax(0, sample->size[0] * (fit->burst / rate - 1));
    }
    if (count > 0) {
        probe_put(builder, "accelerator.grouped_ramp_rows", statistics_median(ramps, count),
                  "median of %d grouped products of 8 to 128 rows each, against the large ones", count);
    }
}

static Status fit_gemm(ProbeBuilder *builder, Error *error) {
    GemmFit fit, half;
    FAIL_IF(!find_gemm_fit(builder->probe, "nt", &fit), error, STATUS_ENVIRONMENT,
            "the probe has not all samples of the GEMM");
    builder->launch_s = fit.launch_s;
    builder->peak_flop_per_s = fit.peak;
    builder->sustained_flop_per_s = fit.burst * builder->gemm_kept;
    put_gemm(builder, "fp32", &fit);
    fit_grouped(builder, &fit);
    if (find_gemm_fit(builder->probe, "nt bf16", &half)) {  // processors that multiply in it
        put_gemm(builder, "bf16", &half);
        probe_put(builder, "accelerator.gemm.bf16.wave_quantisation", 0, "one core: there are no partial waves");
        probe_put(builder, "accelerator.gemm.bf16.tile_overhead_s", 0, "as in fp32");
        probe_put(builder, "accelerator.gemm.bf16.bandwidth_factor", 1, "operands stream as in fp32");
    }
    return STATUS_OK;
}

// Streams whose operands come from memory, and the most bytes of which an addition is nearer to its rate in the caches.
// The probe of an older program has no such samples.
static void fit_far_streams(const ProbeBuilder *builder) {
    const ProbeResult *probe = builder->probe;
    double widest = 0, near_rate = 0, far_rate = 0, rates[MOST_VALUES], cache = 0;
    int count = 0;
    for (const ProbeSample *sample = NULL; (sample = probe_next(probe, sample, PROBE_FAR, NULL));) {
        widest = fmax(widest, sample->size[1]);
    }
    for (int i = 0; i < probe->sample_count && count < MOST_VALUES; i++) {
        const ProbeSample *sample = &probe->samples[i];
        const double rate = probe_stream_bytes(&BYTES, sample) / fmax(sample->seconds, 1e-9);
        const bool add = strcmp(sample->name, "add") == 0, far = sample->kind == PROBE_FAR;
        if (sample->kind == PROBE_STREAM && add && rate > near_rate) {
            near_rate = rate;
            cache = probe_stream_bytes(&BYTES, sample);
        }
        if (far && sample->size[1] >= widest) {
            rates[count++] = rate;
            far_rate = add ? rate : far_rate;
        }
    }
    for (const ProbeSample *sample = NULL; (sample = probe_next(probe, sample, PROBE_FAR, "add"));) {
        if (pow(probe_stream_bytes(&BYTES, sample) / sample->seconds, 2) >= near_rate * far_rate) {
            cache = fmax(cache, sample->size[1]);
        }
    }
    if (count > 0 && cache < widest) {
        probe_put(builder, "accelerator.cache_bytes", cache,
                  "add is nearer to its best, %.1f GB/s, than to that of %.0f MB", near_rate / 1e9, widest / 1e6);
        probe_put(builder, "accelerator.beyond_cache_bytes_per_s", statistics_median(rates, count),
                  "median of add, norm, SwiGLU and AdamW through %.0f MB of one core", widest / 1e6);
    }
}

static Status fit_streams(ProbeBuilder *builder, Error *error) {
    const ProbeResult *probe = builder->probe;
    double rates[MOST_VALUES], best = 0, adamw = 0, beyond = 0;
    int count = 0;
    for (const ProbeSample *sample = NULL;
         count < MOST_VALUES && (sample = probe_next(probe, sample, PROBE_STREAM, NULL));) {
        if (strcmp(sample->name, "floor") == 0) {
            builder->floor_s = sample->seconds;
            continue;
        }
        const double rate = probe_stream_bytes(&BYTES, sample) / fmax(sample->seconds - builder->floor_s, 1e-9);
        const bool fits_cache = probe_stream_bytes(&BYTES, sample) < 20e6;
        if (fits_cache) {
            rates[count++] = rate;
            best = fmax(best, rate);
        } else if (strcmp(sample->name, "add") == 0) {
            beyond = rate;
        }
        adamw = strcmp(sample->name, "adamw") == 0 ? sample->size[0] / sample->seconds : adamw;
    }
    FAIL_IF(count == 0 || builder->floor_s <= 0, error, STATUS_ENVIRONMENT,
            "the probe has no samples of streaming kernels");
    const double middle = statistics_median(rates, count);
    probe_put(
        builder, "accelerator.memory_bytes_per_s", best * builder->stream_kept,
        "best of add, norm, SwiGLU and AdamW inside the caches, one core, %.0f %% kept with all busy; add beyond the "
        "caches %.1f GB/s",
        100 * builder->stream_kept, beyond / 1e9);
    probe_put(builder, "accelerator.memory_efficiency", probe_clamp(middle / best, 0.01, 1),
              "median of those %d samples against the best; AdamW of 4 M parameters %.2f G parameters/s", count,
              adamw / 1e9);
    probe_put(builder, "accelerator.kernel_floor_s", builder->floor_s, "adding 16 elements");
    fit_far_streams(builder);
    for (const ProbeSample *gap = NULL; (gap = probe_next(probe, gap, PROBE_GAP, NULL));) {
        probe_put(builder, "accelerator.kernel_gap_s", fmax(0, gap->seconds),
                  "median of %d pauses between compute tasks of a rank in real steps", gap->repeats);
    }
    return STATUS_OK;
}

static void fit_attention(const ProbeBuilder *builder, int head_dim) {
    probe_attention(builder, &(ProbeAttention){.way = "",
                                               .by = "",
                                               .kernel = "cpu",
                                               .head_dim = head_dim,
                                               .processors = 1,
                                               .kept = builder->gemm_kept,
                                               .peak_flop_per_s = builder->peak_flop_per_s});
}

Status probe_cpu(ProbeBuilder *builder, Error *error) {
    const ProbeResult *probe = builder->probe;
    const ProbeHost *host = &probe->hosts[0];
    json_object_set_new(builder->root, "accelerator",
                        json_pack("{s:s}", "name", arena_format(builder->arena, "core of %.35s", host->processor)));
    TRY(fit_cores(builder, error));
    const double ranks = fmax(8, probe->per_node);  // local-cpu's most ranks on one machine
    probe_put(builder, "accelerator.memory_bytes",
              floor(0.9 * host->memory_bytes / (probe->nodes > 1 ? probe->per_node : ranks)),
              "nine tenths of the %.1f GB that were free, for %.0f ranks", host->memory_bytes / 1e9,
              probe->nodes > 1 ? probe->per_node : ranks);
    TRY(fit_gemm(builder, error));
    TRY(fit_streams(builder, error));
    fit_attention(builder, 16);
    fit_attention(builder, 64);
    fit_attention(builder, 128);
    probe_links(builder);
    probe_curves(builder);
    return STATUS_OK;
}

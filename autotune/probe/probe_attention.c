// Attention's plateau and ramp from whole blocks of two lengths, its loss on the diagonal from causal blocks of the
// same: the formula of sim/cost/compute_attention.c read backwards.

#include <math.h>
#include <stdio.h>

#include "autotune/accuracy/statistics.h"
#include "autotune/probe/probe_builder.h"
#include "sim/cost/compute.h"

typedef struct Plateau {
    double rate, ramp;
} Plateau;

static const char *sample_name(const ProbeBuilder *builder, const ProbeAttention *about, const char *direction) {
    return arena_format(builder->arena, "%s%s%s", about->way, about->way[0] ? " " : "", direction);
}

static const ProbeSample *find(const ProbeBuilder *builder, const ProbeAttention *about, const char *name,
                               double length, bool causal) {
    const ProbeSample *sample = NULL;
    do {
        sample = probe_next(builder->probe, sample, PROBE_ATTENTION, name);
    } while (sample && !(fabs(sample->size[0] - length) < 0.5 && (sample->size[1] < 0.5) == causal &&
                         fabs(sample->size[3] - about->head_dim) < 0.5));
    return sample;
}

// The shortest and the longest of the name; false with fewer than two.
static bool find_lengths(const ProbeBuilder *builder, const ProbeAttention *about, const char *name,
                         double lengths[2]) {
    lengths[0] = INFINITY;
    lengths[1] = 0;
    for (const ProbeSample *sample = NULL; (sample = probe_next(builder->probe, sample, PROBE_ATTENTION, name));) {
        if (fabs(sample->size[3] - about->head_dim) < 0.5) {
            lengths[0] = fmin(lengths[0], sample->size[0]);
            lengths[1] = fmax(lengths[1], sample->size[0]);
        }
    }
    return lengths[0] < lengths[1];
}

// Of a full machine, counting what the mask lets through; 0 = no such sample.
static double rate_of(const ProbeBuilder *builder, const ProbeAttention *about, const ProbeSample *sample,
                      bool backward) {
    if (!sample) {
        return 0;
    }
    const double length = sample->size[0], heads = sample->size[2];
    const double flops = 4.0 * heads * length * length * about->head_dim * (sample->size[1] < 0.5 ? 0.5 : 1) *
                         (backward ? attention_backward_flops : 1);
    const double waves = heads * ceil(length / attention_query_tile) / about->processors;
    const double occupancy = waves < 1 ? waves : waves / (0.5 * ceil(waves) + 0.5 * waves);
    return flops / fmax(sample->seconds - builder->floor_s, 1e-9) / occupancy;
}

// rate(S) = plateau S / (S + ramp) through two lengths.
static Plateau plateau_of(const double length[2], const double rate[2]) {
    const double slope = (1 / rate[0] - 1 / rate[1]) / (1 / length[0] - 1 / length[1]);
    if (slope <= 0) {
        return (Plateau){.rate = 0.5 * (rate[0] + rate[1])};
    }
    const double plateau = 1 / (1 / rate[1] - slope / length[1]);
    return plateau > 0 && plateau < 4 * rate[1] ? (Plateau){plateau, slope * plateau} : (Plateau){.rate = rate[1]};
}

bool probe_attention(const ProbeBuilder *builder, const ProbeAttention *about) {
    static const char *const directions[] = {"forward", "backward"};
    double causal[4], length[2];
    int count = 0;
    char path[96];
    for (int d = 0; d < 2; d++) {
        const char *name = sample_name(builder, about, directions[d]);
        if (!find_lengths(builder, about, name, length)) {
            return false;
        }
        const double rate[2] = {rate_of(builder, about, find(builder, about, name, length[0], false), d == 1),
                                rate_of(builder, about, find(builder, about, name, length[1], false), d == 1)};
        if (rate[0] <= 0 || rate[1] <= 0) {
            return false;
        }
        const Plateau plateau = plateau_of(length, rate);
        snprintf(path, sizeof path, "accelerator.attention.%s-%d.%s_efficiency", about->kernel, about->head_dim,
                 directions[d]);
        probe_put(builder, path, probe_clamp(plateau.rate * about->kept / about->peak_flop_per_s, 0.001, 1),
                  "%swhole blocks of %.0f and %.0f tokens: %.0f and %.0f GFLOP/s", about->by, length[0], length[1],
                  rate[0] / 1e9, rate[1] / 1e9);
        snprintf(path, sizeof path, "accelerator.attention.%s-%d.%s_ramp", about->kernel, about->head_dim,
                 directions[d]);
        probe_put(builder, path, probe_clamp(plateau.ramp, 0, 1e6), "%sthe same two", about->by);
        for (int s = 0; s < 2; s++) {
            const double keys = 0.5 * length[s];
            const double expected =
                plateau.rate * keys / (keys + plateau.ramp) * length[s] / (length[s] + attention_diagonal_tile);
            causal[count++] = rate_of(builder, about, find(builder, about, name, length[s], true), d == 1) / expected;
        }
    }
    snprintf(path, sizeof path, "accelerator.attention.%s-%d.causal_factor", about->kernel, about->head_dim);
    probe_put(builder, path, probe_clamp(statistics_median(causal, count), 0.1, 2),
              "%scausal blocks of %.0f and %.0f tokens, both directions", about->by, length[0], length[1]);
    return true;
}

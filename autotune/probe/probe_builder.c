// Writing numbers with their source, and finding samples.

#include "autotune/probe/probe_builder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DETAIL_BYTES = 512 };

static json_t *section_of(json_t *root, const char *path, const char **leaf) {
    json_t *at = root;
    for (const char *dot = strchr(path, '.'); dot; dot = strchr(path, '.')) {
        char key[32];
        snprintf(key, sizeof key, "%.*s", (int)(dot - path), path);
        if (!json_object_get(at, key)) {
            json_object_set_new(at, key, json_object());
        }
        at = json_object_get(at, key);
        path = dot + 1;
    }
    *leaf = path;
    return at;
}

void probe_put(const ProbeBuilder *builder, const char *path, double value, const char *format, ...) {
    char detail[DETAIL_BYTES], source[2 * DETAIL_BYTES];
    WITH_VALUES(format, vsnprintf(detail, sizeof detail, format, values));
    snprintf(source, sizeof source, "%s; probe of %s on %s, %s", detail, builder->probe->hosts[0].name,
             builder->about->when, builder->about->program);
    const char *leaf;
    json_t *section = section_of(builder->root, path, &leaf);
    const double rounded = floor(value);
    json_t *number =
        value >= rounded && value <= rounded && fabs(value) < 1e15 ? json_integer((json_int_t)value) : json_real(value);
    json_object_set_new(section, leaf,
                        json_pack("{s:o, s:s, s:s}", "value", number, "source", source, "grade", "measured"));
}

double probe_clamp(double value, double low, double high) {
    return fmin(high, fmax(low, value));
}

double probe_gemm_rate(const ProbeSample *sample, double launch_s) {
    const double flops = 2 * sample->size[0] * sample->size[1] * sample->size[2];
    return flops / fmax(sample->seconds - launch_s, 1e-9);
}

const ProbeSample *probe_next(const ProbeResult *probe, const ProbeSample *last, ProbeKind kind, const char *name) {
    const ProbeSample *sample = last ? last + 1 : probe->samples, *end = probe->samples + probe->sample_count;
    while (sample < end && !(sample->kind == kind && (!name || strcmp(sample->name, name) == 0))) {
        sample++;
    }
    return sample < end ? sample : NULL;
}

double probe_stream_bytes(const ProbeBytes *per_element, const ProbeSample *sample) {
    const double bytes = strcmp(sample->name, "adamw") == 0    ? per_element->adamw
                         : strcmp(sample->name, "norm") == 0   ? per_element->norm
                         : strcmp(sample->name, "swiglu") == 0 ? per_element->swiglu
                                                               : per_element->add;
    return bytes * sample->size[0];
}

// A probe is a worker job like a run: the workers hold a small model, so that device and step are the real ones.

#include "exec/launch/probe.h"

#include <string.h>

#include "sim/base/text.h"

static const char SCHEMA[] = "ndtune.probe-result/1";
static const char *const kinds[PROBE_KIND_COUNT] = {"gemm",   "stream",     "attention", "sustained",
                                                    "shared", "collective", "gap",       "far"};

static Status read_sample(const json_t *row, Arena *arena, ProbeSample *sample, Error *error) {
    const char *what = "", *name = "";
    json_error_t where;
    FAIL_IF(json_unpack_ex((json_t *)row, &where, 0, "{s:s, s:s, s:[F,F,F,F], s:i, s:i, s:F, s:F, s:F, s:i}", "what",
                           &what, "name", &name, "size", &sample->size[0], &sample->size[1], &sample->size[2],
                           &sample->size[3], "nodes", &sample->nodes, "per_node", &sample->per_node, "seconds",
                           &sample->seconds, "low", &sample->low, "high", &sample->high, "repeats",
                           &sample->repeats) != 0,
            error, STATUS_INTERNAL, "a sample of the probe: %s", where.text);
    sample->name = arena_text(arena, name);
    const int found = text_index(kinds, PROBE_KIND_COUNT, what);
    FAIL_IF(found < 0, error, STATUS_INTERNAL, "a sample of the probe is of no known kind: %s", what);
    sample->kind = (ProbeKind)found;
    return STATUS_OK;
}

static Status read_host(const json_t *row, Arena *arena, ProbeHost *host, Error *error) {
    const char *name = "", *processor = "", *core_type = "", *boot = "";
    json_error_t where;
    FAIL_IF(json_unpack_ex((json_t *)row, &where, 0, "{s:s, s:s, s:s, s:s, s:i, s:i, s:F}", "name", &name, "boot",
                           &boot, "processor", &processor, "core_type", &core_type, "node", &host->node, "cores",
                           &host->cores, "memory_bytes", &host->memory_bytes) != 0,
            error, STATUS_INTERNAL, "a host of the probe: %s", where.text);
    host->name = arena_text(arena, name);
    host->processor = arena_text(arena, processor);
    host->core_type = arena_text(arena, core_type);
    host->boot = arena_text(arena, boot);
    return STATUS_OK;
}

static Status read_device(const json_t *row, ProbeDevice *device, Error *error) {
    json_error_t where;
    FAIL_IF(json_unpack_ex((json_t *)row, &where, 0, "{s:i, s:i, s:F, s:F}", "divisor", &device->divisor, "processors",
                           &device->processors, "memory_bytes", &device->memory_bytes, "cache_bytes",
                           &device->cache_bytes) != 0,
            error, STATUS_INTERNAL, "the device of the probe: %s", where.text);
    return STATUS_OK;
}

static Status read_root(const json_t *root, Arena *arena, ProbeResult *result, Error *error) {
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *hosts = json_object_get(root, "hosts"), *samples = json_object_get(root, "samples");
    FAIL_IF(!schema || strcmp(schema, SCHEMA) != 0 || json_array_size(hosts) == 0, error, STATUS_INTERNAL,
            "not the result of a probe (%s)", SCHEMA);
    const char *chip = json_string_value(json_object_get(root, "chip"));
    result->chip = chip ? arena_text(arena, chip) : NULL;
    TRY(read_device(json_object_get(root, "device"), &result->device, error));
    result->world = (int)json_array_size(hosts);
    result->hosts = ARENA_ARRAY(arena, ProbeHost, result->world);
    int of_first = 0;
    for (int i = 0; i < result->world; i++) {
        TRY(read_host(json_array_get(hosts, (size_t)i), arena, &result->hosts[i], error));
        result->nodes = result->hosts[i].node + 1 > result->nodes ? result->hosts[i].node + 1 : result->nodes;
        of_first += result->hosts[i].node == 0;
    }
    result->per_node = of_first;
    result->sample_count = (int)json_array_size(samples);
    result->samples = ARENA_ARRAY(arena, ProbeSample, result->sample_count + 1);
    for (int i = 0; i < result->sample_count; i++) {
        TRY(read_sample(json_array_get(samples, (size_t)i), arena, &result->samples[i], error));
    }
    return STATUS_OK;
}

static Status read_result(const json_t *root, const StepPrograms *programs, Arena *arena, void *result, Error *error) {
    (void)programs;
    return read_root(root, arena, result, error);
}

Status exec_probe(const Mesh *mesh, const RunOptions *options, const ExecOptions *exec_options, Arena *arena,
                  ProbeResult *result, Error *error) {
    enum { SEQ = 128, SEQ_OF_RANK = 16, STEPS = 6 };         // real steps, for the time between tasks
    const bool cuda = strcmp(options->device, "cuda") == 0;  // its kernels are measured at specific sizes, no steps
    RunRequest request = {.job = JOB_PROBE, .options = *options};
    *result = (ProbeResult){0};
    TRY(model_find("tiny", arena, &request.model, error));
    request.model.layers = 2;
    TRY(target_find(TARGET_EXECUTOR, &request.target, error));
    request.plan = (TrainPlan){.mesh = *mesh,
                               .seq = cuda ? SEQ_OF_RANK * mesh->size[AXIS_CP] : SEQ,
                               .micro_batch = 1,
                               .grad_accum = 1,
                               .zero = target_default_zero(request.target, mesh),
                               .precision = cuda ? DTYPE_BF16 : DTYPE_FP32};
    request.options.steps = STEPS;
    request.options.spans = true;
    request.options.threads = 1;  // the rates in a profile are per core
    return exec_job(&request, exec_options, read_result, arena, result, error);
}

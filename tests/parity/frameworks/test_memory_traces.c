// Live and reserved bytes of target torchtitan@0.2 at full size against the framework's own program, run on fake
// tensors (tests/frameworks/trace_memory.py). The remaining difference: casts inside the framework's norms, and the
// order in which a layer's temporaries come and go, which moves the allocator's holes.

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/memory/cached_bytes.h"
#include "sim/memory/memory.h"
#include "tests/parity/frameworks/trace.h"

enum { MAX_TRACES = 64 };
static const double LIVE_TOLERANCE = 0.025, RESERVED_TOLERANCE = 0.07;
static const double LEAST_CASES = 8;

typedef struct Recorded {
    LoweredRequest request;
    char mesh[4 * TRACE_TEXT];
    double live_bytes, reserved_bytes[2];  // segments, expandable
} Recorded;

static const char *text_at(const json_t *file, const char *key) {
    const char *text = json_string_value(json_object_get(file, key));
    cr_assert_not_null(text, "no \"%s\"", key);
    return text;
}

static void read_recorded(const char *name, Recorded *recorded) {
    static const char *const recomputes[] = {"none", "full", "selective"};
    char path[8192];
    snprintf(path, sizeof path, "%s/tests/frameworks/traces/memory/%s.json", NDTUNE_SOURCE_DIR, name);
    json_t *file = json_load_file(path, 0, NULL);
    cr_assert_not_null(file, "%s", path);
    const json_t *mesh = json_object_get(file, "mesh"), *reserved = json_object_get(file, "reserved_bytes");
    *recorded = (Recorded){.request = {.target = "torchtitan", .bf16 = true, .eager = true}};
    snprintf(recorded->mesh, sizeof recorded->mesh, "dp_replicate=%d,dp_shard=%d,tp=%d",
             (int)json_integer_value(json_object_get(mesh, "dp_replicate")),
             (int)json_integer_value(json_object_get(mesh, "dp_shard")),
             (int)json_integer_value(json_object_get(mesh, "tp")));
    recorded->request.mesh = recorded->mesh;
    cr_assert_str_eq(text_at(file, "model"), "8B");
    recorded->request.model = "llama-3-8b";
    recorded->request.seq = (int)json_integer_value(json_object_get(file, "seq"));
    recorded->request.micro_batch = (int)json_integer_value(json_object_get(file, "micro_batch"));
    recorded->request.reshard = strcmp(text_at(file, "reshard"), "never") == 0 ? RESHARD_NEVER : RESHARD_ALWAYS;
    for (int i = 0; i < RECOMPUTE_COUNT; i++) {
        recorded->request.recompute =
            strcmp(text_at(file, "recompute"), recomputes[i]) == 0 ? (Recompute)i : recorded->request.recompute;
    }
    recorded->live_bytes = (double)json_integer_value(json_object_get(file, "live_bytes"));
    recorded->reserved_bytes[0] = (double)json_integer_value(json_object_get(reserved, "segments"));
    recorded->reserved_bytes[1] = (double)json_integer_value(json_object_get(reserved, "expandable"));
    json_decref(file);
}

// Prints the values outside the tolerance, returns their number.
static int compare(const char *name, const char *what, double ours, double theirs, double tolerance) {
    const double error = ours / theirs - 1;
    if (fabs(error) <= tolerance) {
        return 0;
    }
    fprintf(stderr, "%s: %s %.2f GiB, recorded %.2f (%+.1f %%)\n", name, what, ours / 0x1p30, theirs / 0x1p30,
            100 * error);
    return 1;
}

static double cached(const StepProgram *program, AllocatorFlavour allocator) {
    Target target = *program->target;
    StepProgram held = *program;
    Error error = {0};
    double bytes = 0;
    target.allocator = allocator;
    held.target = &target;
    LiveTraces traces = {0};
    cr_assert_eq(memory_cached_bytes(&held, 0, &traces, &bytes, &error), STATUS_OK, "%s", error.message);
    live_traces_free(&traces);
    return bytes;
}

Test(memory_traces, live_and_reserved_bytes_are_those_of_torchtitans_own_program) {
    static char names[MAX_TRACES][TRACE_NAME];
    static Recorded recorded;
    const int count = trace_names("memory", names, MAX_TRACES);
    int failed = 0;
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        Error error = {0};
        MemoryBreakdown breakdown;
        read_recorded(names[i], &recorded);
        const StepProgram program = lowered(&arena, recorded.request);
        cr_assert_eq(memory_breakdown(&program, &arena, &breakdown, &error), STATUS_OK, "%s", error.message);
        failed += compare(names[i], "live", breakdown.peak_bytes, recorded.live_bytes, LIVE_TOLERANCE);
        failed += compare(names[i], "reserved in segments", cached(&program, ALLOCATOR_SEGMENTS),
                          recorded.reserved_bytes[0], RESERVED_TOLERANCE);
        failed += compare(names[i], "reserved in growing segments", cached(&program, ALLOCATOR_EXPANDABLE),
                          recorded.reserved_bytes[1], RESERVED_TOLERANCE);
        arena_free(&arena);
    }
    cr_assert_geq(count, LEAST_CASES);
    cr_assert_eq(failed, 0, "%d figures of %d traces", failed, count);
}

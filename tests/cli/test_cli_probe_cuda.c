// ndtune probe --device cuda end to end, on a small GPU: the stand-in of the CUDA runtime with two multiprocessors. Its
// times are those of this processor; the checks are that every number has its measurement, that the profile is read,
// and that findings of runs on the chip are used in predictions for it.

#define _GNU_SOURCE  // setenv

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli.h"

static char *folder;
static char profile[600], db[600];

static void begin(void) {
    folder = temp_dir_make();
    snprintf(profile, sizeof profile, "%s/mine.json", folder);
    snprintf(db, sizeof db, "%s/ndtune.db", folder);
    setenv("NDTUNE_WORKER", CUDA_HOST_WORKER, 1);
    setenv("NDTUNE_CUDA_HOST_PROCESSORS", "2", 1);
}

static void end(void) {
    temp_dir_remove(folder);
}

TestSuite(cli_probe_cuda, .init = begin, .fini = end);

static const char *source_of(const json_t *root, const char *const *path) {
    const json_t *at = root;
    for (; *path; path++) {
        at = json_object_get(at, *path);
    }
    const char *source = json_string_value(json_object_get(at, "source"));
    return source ? source : "";
}
#define SOURCE(...) source_of(probed, (const char *const[]){__VA_ARGS__, NULL})

static bool assumes(const json_t *request, const char *words) {
    const json_t *sentences = json_object_get(request, "assumptions");
    for (size_t i = 0; i < json_array_size(sentences); i++) {
        if (strstr(json_string_value(json_array_get(sentences, i)), words)) {
            return true;
        }
    }
    return false;
}

static void check_sources(const json_t *probed) {
    cr_expect_not_null(strstr(SOURCE("accelerator", "gemm", "bf16", "burst_flop_per_s"), "probe of"));
    cr_expect_not_null(strstr(SOURCE("accelerator", "gemm", "bf16", "sustained_flop_per_s"), "over and over"));
    cr_expect_not_null(strstr(SOURCE("accelerator", "memory_bytes"), "probe of"));
    cr_expect_not_null(strstr(SOURCE("accelerator", "memory_bytes_per_s"), "probe of"));
    cr_expect_not_null(strstr(SOURCE("accelerator", "attention", "flash-64", "forward_efficiency"), "tier own"));
    cr_expect_not_null(strstr(SOURCE("accelerator", "attention", "flash-128", "backward_efficiency"), "tier own"));
    cr_expect_not_null(strstr(SOURCE("products"), "probe of"));
    cr_expect(SOURCE("accelerator", "kernel_gap_s")[0] == '\0', "the pause is the built-in profile's");
}

Test(cli_probe_cuda, a_gpu_is_probed_run_and_predicted_by_what_was_measured) {
    ProgramRun probe = CLI("probe", "--device", "cuda", "--out", profile);
    cr_assert_eq(probe.exit_code, 0, "%s", probe.err);
    program_run_free(&probe);
    json_error_t where;
    json_t *probed = json_load_file(profile, 0, &where);
    cr_assert_not_null(probed, "%s", where.text);
    check_sources(probed);
    json_decref(probed);
#define MODEL "--model", "tiny", "--seq", "16", "--mesh", "dp_shard=1", "--micro-batch", "1"
    json_t *before = CLI_JSON(0, "predict", "--cluster", profile, "--target", "ndtune", "--precision", "bf16", MODEL,
                              "--db", db, "--format", "json");
    cr_expect_not(assumes(json_object_get(before, "request"), "of the store"));
    ProgramRun run = CLI("run", "--device", "cuda", "--cluster", profile, "--steps", "2", MODEL, "--db", db);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
    json_t *after = CLI_JSON(0, "predict", "--cluster", profile, "--target", "ndtune", "--precision", "bf16", MODEL,
                             "--db", db, "--format", "json");
    cr_expect(assumes(json_object_get(after, "request"), "products take the time that runs on"));
    cr_expect_neq(cli_number(before, "step_time_s"), cli_number(after, "step_time_s"));
    json_decref(before);
    json_decref(after);
}

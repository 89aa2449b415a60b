// A run on a file of tokens trains as one rank does, whatever the mesh, the target and the type of the file; and it
// reads the file.

#define _DEFAULT_SOURCE  // mkstemps

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/parity/exec/flavour_case.h"

enum { TOKENS = 4000, VOCAB = 256 };

static Arena arena;
static char path[64];

static void clean(void) {
    unlink(path);
    arena_free(&arena);
}

TestSuite(token_data, .fini = clean);

// Each token is mostly the one before plus 7: something to learn.
static void write_tokens(int width, const char *end) {
    snprintf(path, sizeof path, "/tmp/ndtune-tokens-XXXXXX%s", end);
    const int fd = mkstemps(path, 4);
    FILE *file = fdopen(fd, "wb");
    cr_assert_not_null(file);
    unsigned token = 0;
    for (unsigned i = 0; i < TOKENS; i++) {
        token = (token + (i % 10 == 0 ? i / 10 : 7)) % VOCAB;
        const unsigned char bytes[4] = {(unsigned char)token, 0, 0, 0};
        fwrite(bytes, 1, (size_t)width, file);
    }
    fclose(file);
}

static RunResult trained(const char *target, const char *mesh_words, int grad_accum) {
    Mesh mesh;
    TrainPlan plan;
    const Target *row;
    Error error = {0};
    cr_assert(mesh_parse(mesh_words, &mesh, &error) == STATUS_OK && case_plan(&mesh, grad_accum, &plan));
    cr_assert(target_find(target, &row, &error) == STATUS_OK, "%s", error.message);
    plan.zero = plan_shard_count(&plan) > 1 ? 3 : 0;
    RunRequest request = flavour_request(row, &plan);
    request.options.data_path = path;
    return case_run_request(&request, &arena);
}

static void all_meshes_agree(void) {
    static const struct {
        const char *target, *mesh;
        int grad_accum;
    } others[] = {{"ndtune", "dp_shard=2,cp=2", 2},
                  {"ndtune", "tp=4", 1},
                  {"accelerate", "dp_replicate=2,dp_shard=2", 2},
                  {"axolotl", "cp=2", 1},
                  {"ndtune", "cp=2,tp=2", 1}};
    const RunResult reference = trained("ndtune", "dp_shard=1", 1);
    cr_assert_lt(reference.loss[CASE_STEPS - 1], reference.loss[0] - 0.5);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const RunResult run = trained(others[i].target, others[i].mesh, others[i].grad_accum);
        for (int step = 0; step < CASE_STEPS; step++) {
            const double bound = (step == 0 ? 2e-6 : 1e-4) * reference.loss[step];  // sim/SOURCES.md X3
            cr_expect_float_eq(run.loss[step], reference.loss[step], bound, "%s, step %d: %.9g, one rank %.9g",
                               others[i].mesh, step + 1, run.loss[step], reference.loss[step]);
        }
    }
}

Test(token_data, of_uint16_trains_every_mesh_as_one_rank) {
    write_tokens(2, ".bin");
    all_meshes_agree();
}

Test(token_data, of_uint32_trains_as_uint16_does) {
    write_tokens(2, ".bin");
    const RunResult narrow = trained("ndtune", "dp_shard=2", 1);
    unlink(path);
    write_tokens(4, ".u32");
    const RunResult wide = trained("ndtune", "dp_shard=2", 1);
    for (int step = 0; step < CASE_STEPS; step++) {
        cr_assert_eq(narrow.loss[step], wide.loss[step]);
    }
}

// Which core's kernels OpenBLAS should run: judged by what processors report, and checked to be close to the best on
// this processor.

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/core_type.h"
#include "tests/support/run_program.h"

// ---------------------------------------------------------------------------------------------- table

static const uint32_t SSE = 0;
static const uint32_t AVX_ONLY = LEAF1_OSXSAVE | LEAF1_AVX;
static const uint32_t FMA = LEAF1_OSXSAVE | LEAF1_AVX | LEAF1_FMA;
static const uint32_t AVX2 = LEAF7_AVX2;
#define AVX512 (LEAF7_AVX2 | LEAF7_AVX512F | LEAF7_AVX512DQ | LEAF7_AVX512BW | LEAF7_AVX512VL)
enum { SAVES_SSE = 0x3, SAVES_AVX = 0x7, SAVES_AVX512 = 0xe7 };

static const char INTEL[] = "GenuineIntel", AMD[] = "AuthenticAMD";

typedef struct Row {
    const char *name, *vendor;
    uint32_t signature, leaf1_ecx, leaf7_ebx, xcr0;
    const char *core;
} Row;

// Signatures and features: Intel's and AMD's processor manuals, InstLatX64's dumps.
#define ROWS                                                                                                           \
    {"Nehalem", INTEL, 0x106a5, SSE, 0, 0, NULL}, {"Westmere", INTEL, 0x206c2, SSE, 0, 0, NULL},                       \
        {"Sandy Bridge", INTEL, 0x206a7, AVX_ONLY, 0, SAVES_AVX, NULL},                                                \
        {"Haswell", INTEL, 0x306c3, FMA, AVX2, SAVES_AVX, "Haswell"},                                                  \
        {"Broadwell", INTEL, 0x406f1, FMA, AVX2, SAVES_AVX, "Haswell"},                                                \
        {"Skylake client", INTEL, 0x506e3, FMA, AVX2, SAVES_AVX, "Haswell"},                                           \
        {"Skylake-X", INTEL, 0x50654, FMA, AVX512, SAVES_AVX512, "SkylakeX"},                                          \
        {"Cascade Lake", INTEL, 0x50657, FMA, AVX512, SAVES_AVX512, "SkylakeX"},                                       \
        {"Ice Lake", INTEL, 0x606a6, FMA, AVX512, SAVES_AVX512, "SkylakeX"},                                           \
        {"Sapphire Rapids", INTEL, 0x806f8, FMA, AVX512, SAVES_AVX512, "SkylakeX"},                                    \
        {"Emerald Rapids", INTEL, 0xc06f2, FMA, AVX512, SAVES_AVX512, "SkylakeX"},                                     \
        {"Granite Rapids", INTEL, 0xa06d1, FMA, AVX512, SAVES_AVX512, "SkylakeX"},                                     \
        {"Alder Lake, no AVX-512", INTEL, 0x90672, FMA, AVX2, SAVES_AVX, "Haswell"},                                   \
        {"Sierra Forest", INTEL, 0xa06f3, FMA, AVX2, SAVES_AVX, "Haswell"}, {"Knights Landing: F without DQ, BW, VL",  \
                                                                             INTEL,                                    \
                                                                             0x50671,                                  \
                                                                             FMA,                                      \
                                                                             LEAF7_AVX2 | LEAF7_AVX512F,               \
                                                                             SAVES_AVX512,                             \
                                                                             "Haswell"},                               \
        {"Zen 1", AMD, 0x800f12, FMA, AVX2, SAVES_AVX, "Zen"}, {"Zen 2", AMD, 0x830f10, FMA, AVX2, SAVES_AVX, "Zen"},  \
        {"Zen 3", AMD, 0xa00f11, FMA, AVX2, SAVES_AVX, "Zen"},                                                         \
        {"Zen 4", AMD, 0xa10f11, FMA, AVX512, SAVES_AVX512, "SkylakeX"},                                               \
        {"Zen 5", AMD, 0xb00f21, FMA, AVX512, SAVES_AVX512, "SkylakeX"},                                               \
        {"Dhyana", "HygonGenuine", 0x900f02, FMA, AVX2, SAVES_AVX, "Zen"},                                             \
        {"Ice Lake, AVX-512 masked by a hypervisor", INTEL, 0x606a6, FMA, AVX2, SAVES_AVX, "Haswell"},                 \
        {"Zen 4, AVX-512 masked by a hypervisor", AMD, 0xa10f11, FMA, AVX2, SAVES_AVX, "Zen"},                         \
        {"Ice Lake, a system that does not save AVX-512", INTEL, 0x606a6, FMA, AVX512, SAVES_AVX, "Haswell"},          \
        {"Haswell, a system that does not save AVX", INTEL, 0x306c3, FMA, AVX2, SAVES_SSE, NULL},                      \
        {"no x86-64", "", 0, 0, 0, 0, NULL},

Test(core_type, is_the_widest_that_a_processor_and_its_system_run) {
    const Row rows[] = {ROWS};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const Row *row = &rows[i];
        Cpuid cpuid = {
            .signature = row->signature, .leaf1_ecx = row->leaf1_ecx, .leaf7_ebx = row->leaf7_ebx, .xcr0 = row->xcr0};
        snprintf(cpuid.vendor, sizeof cpuid.vendor, "%s", row->vendor);
        const char *core = core_type_of(&cpuid);
        cr_expect((!core && !row->core) || (core && row->core && strcmp(core, row->core) == 0), "%s: %s, not %s",
                  row->name, core ? core : "none", row->core ? row->core : "none");
    }
}

Test(core_type, replaces_what_openblas_takes_only_where_that_is_narrower) {
    cr_expect(core_type_is_narrow("Prescott", "SkylakeX"));  // Sapphire and Emerald Rapids under OpenBLAS 0.3.21
    cr_expect(core_type_is_narrow("Haswell", "SkylakeX"));
    cr_expect(core_type_is_narrow("Prescott", "Haswell"));
    cr_expect(core_type_is_narrow("Sandybridge", "Zen"));
    cr_expect(!core_type_is_narrow("Cooperlake", "SkylakeX"));
    cr_expect(!core_type_is_narrow("Sapphirerapids", "SkylakeX"));
    cr_expect(!core_type_is_narrow("Haswell", "Zen"));
    cr_expect(!core_type_is_narrow("a core of a later version", "SkylakeX"));
    cr_expect(!core_type_is_narrow("Nehalem", NULL));
}

// ---------------------------------------------------------------------------------------------- this processor

typedef struct Rate {
    char core[32];
    double gflop_per_s;
} Rate;

static Rate rate_of(const char *setting, const char *seconds) {
    const char *const words[] = {NDTUNE_CORE_RATE, seconds, NULL};
    const char *const environment[] = {setting, NULL};
    ProgramRun run = program_run(words, environment, 50);
    Rate rate = {0};
    cr_assert(run.exit_code == 0 && sscanf(run.out, "%31s %lf", rate.core, &rate.gflop_per_s) == 2, "%s%s", run.out,
              run.err);
    program_run_free(&run);
    return rate;
}

static const char *own_core(void) {
    Cpuid cpuid;
    cpuid_read(&cpuid);
    const char *core = core_type_of(&cpuid);
    if (!core) {
        cr_skip_test("this processor has no AVX2: OpenBLAS chooses");
    }
    return core;
}

Test(core_type, of_an_older_core_is_left_out_and_a_wide_one_kept) {
    const char *own = own_core();
    char wide[64];
    snprintf(wide, sizeof wide, "OPENBLAS_CORETYPE=%s", own);
    const Rate left_out = rate_of("OPENBLAS_CORETYPE=Prescott", "0"), kept = rate_of(wide, "0"),
               asked = rate_of("NDTUNE_CORE_TYPE=Prescott", "0");
    cr_expect(!core_type_is_narrow(left_out.core, own), "%s", left_out.core);
    cr_expect_str_eq(kept.core, own);
    cr_expect_str_eq(asked.core, "Prescott");
}

// Alternating, the best of three: a crowded machine slows all of them down.
Test(core_type, chosen_here_is_not_far_below_the_best_of_the_forced_ones) {
    static const char *const forced[] = {"NDTUNE_CORE_TYPE=SkylakeX", "NDTUNE_CORE_TYPE=Haswell",
                                         "NDTUNE_CORE_TYPE=Zen"};
    own_core();
    Rate chosen = {0}, best = {0};
    for (int round = 0; round < 3; round++) {
        const Rate now = rate_of(NULL, "0.1");
        chosen = now.gflop_per_s > chosen.gflop_per_s ? now : chosen;
        for (size_t i = 0; i < sizeof forced / sizeof forced[0]; i++) {
            if (strcmp(own_core(), "SkylakeX") != 0 && i == 0) {
                continue;  // instructions that it does not have
            }
            const Rate rate = rate_of(forced[i], "0.1");
            best = rate.gflop_per_s > best.gflop_per_s ? rate : best;
        }
    }
    cr_log_info("chosen %s: %.0f GFLOP/s, best of the forced %s: %.0f", chosen.core, chosen.gflop_per_s, best.core,
                best.gflop_per_s);
    cr_expect(chosen.gflop_per_s > 0.6 * best.gflop_per_s, "%s has %.0f GFLOP/s, %s %.0f", chosen.core,
              chosen.gflop_per_s, best.core, best.gflop_per_s);
}

// The CPU features that a core's kernels need are those of OpenBLAS' DYNAMIC_ARCH build: SkylakeX is compiled with
// AVX-512 F, DQ, BW and VL, Haswell and Zen with AVX2 and FMA. A hypervisor that masks a feature masks the core.

#include "kernels/cpu/core_type.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#if defined(__x86_64__)
#include <cpuid.h>

void cpuid_read(Cpuid *out) {
    *out = (Cpuid){0};
    uint32_t most, eax, ebx, ecx, edx;
    if (!__get_cpuid(0, &most, &ebx, &ecx, &edx)) {
        return;
    }
    memcpy(out->vendor, &ebx, sizeof ebx);
    memcpy(out->vendor + 4, &edx, sizeof edx);
    memcpy(out->vendor + 8, &ecx, sizeof ecx);
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) {
        out->signature = eax;
        out->leaf1_ecx = ecx;
    }
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        out->leaf7_ebx = ebx;
        out->leaf7_edx = edx;
    }
    if (__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) {
        out->leaf71_eax = eax;
    }
    if (out->leaf1_ecx & LEAF1_OSXSAVE) {
        __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
        out->xcr0 = eax;
    }
}
#else
void cpuid_read(Cpuid *out) {
    *out = (Cpuid){0};
}
#endif

static bool has(uint32_t set, uint32_t wanted) {
    return (set & wanted) == wanted;
}

static bool has_avx512(const Cpuid *cpuid) {
    return has(cpuid->leaf7_ebx, LEAF7_AVX512F | LEAF7_AVX512DQ | LEAF7_AVX512BW | LEAF7_AVX512VL) &&
           has(cpuid->xcr0, XCR0_AVX512);
}

const char *core_half_of(const Cpuid *cpuid) {
    if (!has_avx512(cpuid)) {
        return NULL;
    }
    if (has(cpuid->leaf7_edx, LEAF7_EDX_AMX_BF16 | LEAF7_EDX_AMX_TILE) && has(cpuid->xcr0, XCR0_AMX)) {
        return "AMX-BF16";
    }
    return has(cpuid->leaf71_eax, LEAF71_AVX512_BF16) ? "AVX512_BF16" : NULL;
}

const char *core_type_of(const Cpuid *cpuid) {
    const bool avx2 = has(cpuid->leaf1_ecx, LEAF1_OSXSAVE | LEAF1_AVX | LEAF1_FMA) &&
                      has(cpuid->leaf7_ebx, LEAF7_AVX2) && has(cpuid->xcr0, XCR0_AVX);
    if (!avx2) {
        return NULL;
    }
    if (has_avx512(cpuid)) {
        return "SkylakeX";
    }
    const bool amd = strcmp(cpuid->vendor, "AuthenticAMD") == 0 || strcmp(cpuid->vendor, "HygonGenuine") == 0;
    return amd ? "Zen" : "Haswell";
}

// Width of the registers that the products of OpenBLAS 0.3.21's x86-64 cores use (driver/others/dynamic.c).
static int width_bits(const char *core) {
    static const struct {
        const char *core;
        int bits;
    } cores[] = {
        {"Unknown", 128},     {"Generic", 128},    {"Katmai", 128},      {"Coppermine", 128}, {"Northwood", 128},
        {"Prescott", 128},    {"Banias", 128},     {"Atom", 128},        {"Core2", 128},      {"Penryn", 128},
        {"Dunnington", 128},  {"Nehalem", 128},    {"Athlon", 128},      {"Opteron", 128},    {"Opteron_SSE3", 128},
        {"Barcelona", 128},   {"Nano", 128},       {"Bobcat", 128},      {"Bulldozer", 128},  {"Piledriver", 128},
        {"Steamroller", 128}, {"Excavator", 256},  {"Sandybridge", 128}, {"Haswell", 256},    {"Zen", 256},
        {"SkylakeX", 512},    {"Cooperlake", 512},
    };
    for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++) {
        if (strcasecmp(cores[i].core, core) == 0) {
            return cores[i].bits;
        }
    }
    return 512;
}

bool core_type_is_narrow(const char *taken, const char *best) {
    return best && width_bits(taken) < width_bits(best);
}

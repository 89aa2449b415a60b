// Which of OpenBLAS' cores a processor can run, judged by its instructions alone: OpenBLAS goes by family and model,
// and falls back to SSE kernels (0.3.21: Prescott) on processors newer than itself.

#pragma once

#include <stdbool.h>
#include <stdint.h>

// As reported by cpuid and xgetbv.
typedef struct Cpuid {
    char vendor[13];     // leaf 0: "GenuineIntel"
    uint32_t signature;  // leaf 1, eax: family, model, stepping
    uint32_t leaf1_ecx, leaf7_ebx, leaf7_edx;
    uint32_t leaf71_eax;  // leaf 7, subleaf 1
    uint32_t xcr0;        // register state that the OS saves
} Cpuid;

enum {
    LEAF1_FMA = 1 << 12,
    LEAF1_OSXSAVE = 1 << 27,
    LEAF1_AVX = 1 << 28,
    LEAF7_AVX2 = 1 << 5,
    LEAF7_AVX512F = 1 << 16,
    LEAF7_AVX512DQ = 1 << 17,
    LEAF7_AVX512BW = 1 << 30,
    LEAF7_EDX_AMX_BF16 = 1 << 22,
    LEAF7_EDX_AMX_TILE = 1 << 24,
    LEAF71_AVX512_BF16 = 1 << 5,
    XCR0_AVX = 0x06,     // SSE and AVX state
    XCR0_AVX512 = 0xe6,  // plus masks, upper halves, upper registers
    XCR0_AMX = 0x60000,  // tile configuration and tile data
};
static const uint32_t LEAF7_AVX512VL = UINT32_C(1) << 31;

void cpuid_read(Cpuid *out);  // all 0 on processors other than x86-64

// "SkylakeX", "Haswell" or "Zen": the widest kernels that the processor runs; NULL = SSE, where OpenBLAS chooses.
const char *core_type_of(const Cpuid *cpuid);

// Whether the kernels for core `taken` are narrower than those for core `best` (NULL: never). A core not listed here is
// newer, and counts as not narrower.
bool core_type_is_narrow(const char *taken, const char *best);

// "AMX-BF16" or "AVX512_BF16", whichever it multiplies bf16 with; NULL = neither.
const char *core_half_of(const Cpuid *cpuid);

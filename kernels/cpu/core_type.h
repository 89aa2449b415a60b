// Which of OpenBLAS' cores a processor can run, by its instructions alone: OpenBLAS goes by family and model, and takes
// SSE kernels (0.3.21: Prescott) on processors that came after it.

#pragma once

#include <stdbool.h>
#include <stdint.h>

// As cpuid and xgetbv have them.
typedef struct Cpuid {
    char vendor[13];     // leaf 0: "GenuineIntel"
    uint32_t signature;  // leaf 1, eax: family, model, stepping
    uint32_t leaf1_ecx, leaf7_ebx, leaf7_edx;
    uint32_t leaf71_eax;  // leaf 7, subleaf 1
    uint32_t xcr0;        // register sets that the system saves
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
    XCR0_AVX512 = 0xe6,  // and masks, upper halves, upper registers
    XCR0_AMX = 0x60000,  // shapes and contents of tiles
};
static const uint32_t LEAF7_AVX512VL = UINT32_C(1) << 31;

void cpuid_read(Cpuid *out);  // all 0 on processors that are no x86-64

// "SkylakeX", "Haswell" or "Zen": the widest kernels that it runs; NULL = SSE, where OpenBLAS chooses.
const char *core_type_of(const Cpuid *cpuid);

// Are kernels for core `taken` narrower than those for core `best` (NULL: nothing is)? A core that is not known here
// came later, and is not.
bool core_type_is_narrow(const char *taken, const char *best);

// "AMX-BF16" or "AVX512_BF16", by which it multiplies in bf16; NULL = neither.
const char *core_half_of(const Cpuid *cpuid);

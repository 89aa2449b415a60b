// The terms of a memory breakdown, once: what JSON calls them, what people read, and how large they are.

#pragma once

#include "sim/memory/memory.h"

typedef struct MemoryTerm {
    const char *key, *words;  // "gathered_parameters", "gathered parameters"
    double bytes;
} MemoryTerm;

enum { MEMORY_TERMS = 8 };

// In the order of DESIGN section 9; they sum to peak_bytes.
void memory_terms(const MemoryBreakdown *memory, MemoryTerm terms[MEMORY_TERMS]);

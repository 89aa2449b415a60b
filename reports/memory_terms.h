// The terms of a memory breakdown, once: what JSON calls them, what people read, and how large they are.

#pragma once

#include "sim/memory/memory.h"
#include "sim/step/step.h"

typedef struct MemoryTerm {
    const char *key, *words;  // "gathered_parameters", "gathered parameters"
    double bytes;
} MemoryTerm;

enum { MEMORY_TERMS = 8 };

// The same words by what a buffer is for.
extern const char *const memory_role_words[ROLE_COUNT];

// In the order in which every answer has them; they sum to peak_bytes.
void memory_terms(const MemoryBreakdown *memory, MemoryTerm terms[MEMORY_TERMS]);

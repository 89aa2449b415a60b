// The terms of a memory breakdown.

#include "reports/memory_terms.h"

#include <string.h>

const char *const memory_role_words[ROLE_COUNT] = {
    [ROLE_PARAMETER] = "parameters",        [ROLE_GRADIENT] = "gradients", [ROLE_OPTIMIZER] = "optimizer",
    [ROLE_ACTIVATION] = "activations",      [ROLE_LOGITS] = "logits",      [ROLE_GATHERED] = "gathered parameters",
    [ROLE_COMMUNICATION] = "communication", [ROLE_RUNTIME] = "runtime"};

void memory_terms(const MemoryBreakdown *memory, MemoryTerm terms[MEMORY_TERMS]) {
    const MemoryTerm all[MEMORY_TERMS] = {
        {"parameters", "parameters", memory->parameters},
        {"gradients", "gradients", memory->gradients},
        {"optimizer", "optimizer", memory->optimizer},
        {"activations", "activations", memory->activations},
        {"logits", "logits", memory->logits},
        {"gathered_parameters", "gathered parameters", memory->gathered_parameters},
        {"communication", "communication", memory->communication},
        {"runtime", "runtime", memory->runtime},
    };
    memcpy(terms, all, sizeof all);
}

// Of several names for one optimizer the first is written. Left out: those with states that no row describes (AdEMAMix,
// GaLore, APOLLO, LOMO, schedule-free).

#include "sim/frameworks/hf_optimizers.h"

#include <string.h>

#include "sim/frameworks/import_python.h"

// trainer_optimizer.py of 5.23; the ao_ names are those of one that adds to it (utils/schemas/enums.py of its 0.19).
static const struct {
    const char *name;
    Optimizer optimizer;
    const char *left_out;  // what the prediction does not have of it; NULL
} names[] = {
    {"adamw_torch_fused", OPTIMIZER_ADAMW_FUSED, NULL},
    {"adamw_apex_fused", OPTIMIZER_ADAMW_FUSED, NULL},
    {"adamw_torch", OPTIMIZER_ADAMW_FOREACH, NULL},
    {"adamw_hf", OPTIMIZER_ADAMW_FOREACH, NULL},
    {"adamw_bnb_8bit", OPTIMIZER_ADAMW_8BIT, NULL},
    {"adamw_8bit", OPTIMIZER_ADAMW_8BIT, NULL},
    {"paged_adamw_8bit", OPTIMIZER_ADAMW_8BIT_PAGED, "paged"},
    {"paged_adamw_32bit", OPTIMIZER_ADAMW_32BIT_PAGED, "paged"},
    {"adamw_torch_8bit", OPTIMIZER_ADAMW_8BIT_TORCHAO, NULL},
    {"ao_adamw_8bit", OPTIMIZER_ADAMW_8BIT_TORCHAO, NULL},
    {"ao_adamw_fp8", OPTIMIZER_ADAMW_8BIT_TORCHAO, NULL},  // of the same bytes
    {"adamw_torch_4bit", OPTIMIZER_ADAMW_4BIT_TORCHAO, NULL},
    {"ao_adamw_4bit", OPTIMIZER_ADAMW_4BIT_TORCHAO, NULL},
    {"lion_32bit", OPTIMIZER_LION, NULL},
    {"paged_lion_32bit", OPTIMIZER_LION, "paged"},
    {"lion_8bit", OPTIMIZER_LION_8BIT, NULL},
    {"paged_lion_8bit", OPTIMIZER_LION_8BIT, "paged"},
    {"sgd", OPTIMIZER_SGD, NULL},
    {"adafactor", OPTIMIZER_ADAFACTOR, "one by one"},
    {"muon", OPTIMIZER_MUON, "one by one"},
};
enum { NAMES = sizeof names / sizeof names[0] };

Status hf_optimizer_read(Import *import, const char *path, Error *error) {
    const char *name = NULL;
    python_leave_choice(import, path, PLAN_OPTIMIZER);
    TRY(import_word(import, path, &name, error));
    for (int i = 0; name && i < NAMES; i++) {
        if (strcmp(name, names[i].name) != 0) {
            continue;
        }
        import->said.choice[PLAN_OPTIMIZER] = names[i].optimizer;
        if (names[i].left_out && strcmp(names[i].left_out, "paged") == 0) {
            import_find(import, FINDING_UNMODELLED, path,
                        "%s pages its states to the host when memory runs out: the figures keep them on the "
                        "accelerator, so your run may need less memory and more time",
                        name);
        } else if (names[i].left_out) {
            import_find(import, FINDING_UNMODELLED, path,
                        "%s updates one tensor after the other: what the host needs for that is not in the figures",
                        name);
        }
        return STATUS_OK;
    }
    FIND_IF(name, import, FINDING_UNMODELLED, path, "optimizer %s: the prediction has fused AdamW with two states",
            name);
    return STATUS_OK;
}

const char *hf_optimizer_name(Optimizer optimizer) {
    for (int i = 0; i < NAMES; i++) {
        if (names[i].optimizer == optimizer) {
            return names[i].name;
        }
    }
    return NULL;
}

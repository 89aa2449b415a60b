// The precision-aware optimizer, of Transformer Engine's FusedAdam: the number formats of its two states, by flags
// (--exp-avg-dtype, --exp-avg-sq-dtype of megatron/training/arguments.py) or by a configuration's attributes. Left out:
// fp16, one state in bf16 alone, masters in fp16.

#include <string.h>

#include "sim/frameworks/megatron/megatron_files.h"

static const MegatronStates rows[] = {{OPTIMIZER_ADAMW_BF16, "bf16", "bf16"},
                                      {OPTIMIZER_ADAMW_REMAINDERS, "fp32", "fp32"},
                                      {OPTIMIZER_ADAMW_FP8, "fp8", "fp8"},
                                      {OPTIMIZER_ADAMW_FP8_BF16, "fp8", "bf16"}};

enum { ROWS = sizeof rows / sizeof rows[0] };

bool megatron_shards_one(const TrainPlan *plan) {
    return plan->zero == 0 && (OPTIMIZER_BIT(plan->optimizer) & MEGATRON_AWARE || plan->fp8_parameters);
}

const MegatronStates *megatron_states(Optimizer optimizer) {
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].optimizer == optimizer) {
            return &rows[i];
        }
    }
    return NULL;
}

// torch.bfloat16, torch.float32 and torch.uint8 in a configuration.
static bool is_format(const char *said, const char *flag) {
    static const char *const attributes[][2] = {{"bf16", "bfloat16"}, {"fp32", "float32"}, {"fp8", "uint8"}};
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        if (strcmp(attributes[i][0], flag) == 0 && strstr(said, attributes[i][1])) {
            return true;
        }
    }
    return strstr(said, flag);
}

const MegatronStates *megatron_states_of(const char *average, const char *square) {
    for (int i = 0; i < ROWS; i++) {
        if (is_format(average, rows[i].average) && is_format(square, rows[i].square)) {
            return &rows[i];
        }
    }
    return NULL;
}

// The precision-aware optimizer, of Transformer Engine's FusedAdam: the number formats of its two states, by flags
// (--exp-avg-dtype, --exp-avg-sq-dtype of megatron/training/arguments.py) or by a configuration's attributes. Left out:
// fp16, one state in bf16 alone, masters in fp16.

#include <string.h>

#include "sim/frameworks/megatron/megatron_files.h"
#include "sim/frameworks/megatron/megatron_read.h"

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

const char *megatron_state_type(const char *flag) {
    static const char *const types[][2] = {
        {"bf16", "bfloat16"}, {"fp32", "float32"}, {"fp8", "uint8"}, {"fp16", "float16"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i][0], flag) == 0) {
            return types[i][1];
        }
    }
    return flag;
}

// Also torch.bfloat16 and the like, of a configuration.
static bool is_format(const char *said, const char *flag) {
    const char *dot = strrchr(said, '.');
    const char *word = dot ? dot + 1 : said;
    return strcmp(word, flag) == 0 || strcmp(word, megatron_state_type(flag)) == 0;
}

// The choices of both flags (megatron/training/arguments.py).
static bool is_state_type(const char *said) {
    static const char *const flags[] = {"fp32", "bf16", "fp16", "fp8"};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (is_format(said, flags[i])) {
            return true;
        }
    }
    return false;
}

const MegatronStates *megatron_states_of(const char *average, const char *square) {
    for (int i = 0; i < ROWS; i++) {
        if (is_format(average, rows[i].average) && is_format(square, rows[i].square)) {
            return &rows[i];
        }
    }
    return NULL;
}

bool megatron_are_state_types(Import *import, const char *average, const char *square) {
    const struct {
        int key;
        const char *said;
    } states[] = {{M_AVERAGE_TYPE, average}, {M_SQUARE_TYPE, square}};
    bool known = true;
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        const bool is = is_state_type(states[i].said);
        FIND_IF(!is, import, FINDING_REFUSED, megatron_key(import, states[i].key), "%s is no format of a state: use %s",
                states[i].said,
                megatron_is_bridge(import) ? "torch.float32, torch.bfloat16, torch.float16 or torch.uint8"
                                           : "fp32, bf16, fp16 or fp8");
        known &= is;
    }
    return known;
}

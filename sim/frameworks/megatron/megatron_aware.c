// The precision-aware optimizer, of Transformer Engine's FusedAdam: the number formats of its two states, by flags
// (--exp-avg-dtype, --exp-avg-sq-dtype of megatron/training/arguments.py) or by a configuration's attributes. Left out:
// fp16, one state in bf16 alone, masters in fp16.

#include <string.h>

#include "sim/base/text.h"
#include "sim/frameworks/megatron/megatron_files.h"
#include "sim/frameworks/megatron/megatron_read.h"

typedef struct Format {
    const char *flag, *type;  // as arguments choose it; as torch names it
} Format;

// The choices of both flags (megatron/training/arguments.py).
static const Format formats[] = {{"fp32", "float32"}, {"bf16", "bfloat16"}, {"fp16", "float16"}, {"fp8", "uint8"}};

static const MegatronStates rows[] = {{OPTIMIZER_ADAMW_BF16, "bf16", "bf16"},
                                      {OPTIMIZER_ADAMW_REMAINDERS, "fp32", "fp32"},
                                      {OPTIMIZER_ADAMW_FP8, "fp8", "fp8"},
                                      {OPTIMIZER_ADAMW_FP8_BF16, "fp8", "bf16"}};

enum { ROWS = sizeof rows / sizeof rows[0], FORMATS = sizeof formats / sizeof formats[0] };

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

// Also torch.bfloat16 and the like, of a configuration; NULL: it is none.
static const Format *format_of(const char *said) {
    const char *dot = strrchr(said, '.'), *word = dot ? dot + 1 : said;
    for (int i = 0; i < FORMATS; i++) {
        if (strcmp(word, formats[i].flag) == 0 || strcmp(word, formats[i].type) == 0) {
            return &formats[i];
        }
    }
    return NULL;
}

const char *megatron_state_type(const char *flag) {
    return format_of(flag)->type;
}

const MegatronStates *megatron_states_of(const char *average, const char *square) {
    for (int i = 0; i < ROWS; i++) {
        if (format_of(average) == format_of(rows[i].average) && format_of(square) == format_of(rows[i].square)) {
            return &rows[i];
        }
    }
    return NULL;
}

// "fp32, bf16, fp16 or fp8", or as a configuration has them.
static const char *format_words(const Import *import) {
    const bool bridge = megatron_is_bridge(import);
    const char *words[FORMATS];
    for (int i = 0; i < FORMATS; i++) {
        words[i] = bridge ? arena_format(import->arena, "torch.%s", formats[i].type) : formats[i].flag;
    }
    return text_of_bits(words, (1u << FORMATS) - 1, import->arena);
}

bool megatron_are_state_types(Import *import, const char *average, const char *square) {
    const struct {
        int key;
        const char *said;
    } states[] = {{M_AVERAGE_TYPE, average}, {M_SQUARE_TYPE, square}};
    bool known = true;
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        const bool is = format_of(states[i].said);
        FIND_IF(!is, import, FINDING_REFUSED, megatron_key(import, states[i].key), "%s is no format of a state: use %s",
                states[i].said, format_words(import));
        known &= is;
    }
    return known;
}

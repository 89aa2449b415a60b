// Legality of packed documents: variable-length attention is flash's and cuDNN's, and no framework here cuts packed
// sequences over ranks in a way that is priced.

#include "sim/frameworks/plan_rules.h"

const char *pack_rule(const Target *target, const TrainPlan *plan, Arena *arena) {
    const int cp = plan->mesh.size[AXIS_CP];
    if (plan->pack == 0) {
        return NULL;
    }
    REFUSE_IF(arena, target->pack_flavour == PACKS_NOT, "%s@%s has no attention of packed documents: use pack 0",
              target->name, target->version);
    const bool by_mask = target->pack_flavour == PACKS_BY_MASK || target->pack_flavour == PACKS_BY_MASK_ALWAYS;
    REFUSE_IF(arena, plan->attention == ATTENTION_EAGER || (plan->attention == ATTENTION_TRITON && !by_mask),
              "pack=%d needs a kernel of variable lengths, attention=%s has none: use attention flash", plan->pack,
              attention_names[plan->attention]);
    REFUSE_IF(arena, cp > 1, "packed documents (pack=%d) cut over cp=%d are not predicted: use cp=1 or pack 0",
              plan->pack, cp);
    REFUSE_IF(arena, target->pack_flavour == PACKS_ONE_ROW && plan->micro_batch > 1,
              "%s trains packed sequences with a micro-batch of 1 only, micro_batch=%d: use micro_batch 1",
              target->name, plan->micro_batch);
    return NULL;
}

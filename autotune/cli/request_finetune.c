// Which parameters are trained, as sentences, and the corresponding batch.

#include "autotune/cli/request_finetune.h"

static bool has_adapters(Cli *cli) {
    const OptionId option = option_of(PLAN_FINETUNE);
    return cli_given(cli, option) && plan_field_value(PLAN_FINETUNE, cli_value(cli, option)->text) != FINETUNE_FULL;
}

int64_t request_finetune_batch(Cli *cli, int world) {
    enum { USUAL = 64 };
    return !has_adapters(cli) ? 0 : world > USUAL ? world : USUAL;
}

Status request_check_finetune(Cli *cli, Error *error) {
    static const PlanFieldId of_adapters[] = {PLAN_LORA_RANK, PLAN_LORA_TARGETS};
    for (int i = 0; i < 2; i++) {
        const OptionId option = option_of(of_adapters[i]);
        if (cli_given(cli, option) && !has_adapters(cli)) {
            return cli_refuse(cli, option, error,
                              "--%s goes with --finetune lora, qlora or lora-int8; without it all is trained",
                              plan_fields[of_adapters[i]].option.name);
        }
    }
    return STATUS_OK;
}

static const char *finetune_text(const TrainPlan *plan, Arena *arena) {
    static const char *const layers[LORA_TARGETS_COUNT] = {[LORA_ALL] = "all linear layers",
                                                           [LORA_ATTENTION] = "the linear layers of attention",
                                                           [LORA_QUERY_VALUE] = "the query and value projections"};
    static const char *const weights[FINETUNE_COUNT] = {[FINETUNE_LORA] = "",
                                                        [FINETUNE_QLORA] = ", whose weights are in 4 bits (nf4)",
                                                        [FINETUNE_LORA_INT8] = ", whose weights are in int8"};
    return arena_format(arena, "adapters of rank %d beside %s of each block%s", plan_lora_rank(plan),
                        layers[plan->lora_targets], weights[plan->finetune]);
}

static const char *pack_text(const TrainPlan *plan, Arena *arena) {
    return arena_format(arena,
                        "documents of %d tokens in the mean share a sequence and see themselves only, lengths as of an "
                        "exponential: a token's has %.0f; one to a sequence would leave %.0f %% of it padding",
                        plan->pack, plan_document_tokens(plan), 100 * (1 - plan_unpacked_share(plan)));
}

int request_training_texts(const TuneRequest *request, const TrainPlan *plan, Arena *arena,
                           const char *texts[TRAINING_TEXTS]) {
    int count = 0;
    if (plan->finetune != FINETUNE_FULL) {
        texts[count++] = finetune_text(plan, arena);
    }
    if (plan->bf16_master) {
        texts[count++] = plan->optimizer == OPTIMIZER_TARGET
                             ? "parameters, gradients and optimizer state in bf16, without an fp32 master"
                             : "parameters and gradients in bf16, without an fp32 master";
    }
    if (plan->pack > 0) {
        texts[count++] = pack_text(plan, arena);
    }
    return count + request_expert_texts(request, plan, arena, texts + count);
}

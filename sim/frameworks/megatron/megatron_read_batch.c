// How many ranks a script of Megatron's starts, what a step of theirs trains on, and what the loader brings with it.

#include "sim/base/text.h"
#include "sim/frameworks/megatron/megatron_read.h"

static void read_world(Import *import) {
    static const char *const nodes[] = {"launcher.--nnodes", "launcher.--nodes", NULL};
    static const char *const ranks[] = {"launcher.--nproc_per_node", "launcher.--nproc-per-node", NULL};
    const ConfigNode *node = NULL, *rank = NULL;
    for (int i = 0; i < 2; i++) {
        node = import_at(import, nodes[i]) ? import_at(import, nodes[i]) : node;
        rank = import_at(import, ranks[i]) ? import_at(import, ranks[i]) : rank;
    }
    int64_t count = 1, each = 0;
    const bool known = rank && rank->kind == NODE_SCALAR && text_parse_int(rank->text, &each) &&
                       (!node || (node->kind == NODE_SCALAR && text_parse_int(node->text, &count)));
    if (known && each > 0 && count > 0 && each <= MESH_MAX_WORLD && count <= MESH_MAX_WORLD / each) {
        import->said.world = (int)(each * count);
    }
}

// For each sequence of a micro-step the loader makes a byte for each pair of its tokens, which causal kernels do not
// read (core/datasets/gpt_dataset.py, _get_ltor_masks_and_position_ids), and all of it goes to the device, with cp too
// (core/utils.py, get_batch_on_this_tp_rank, and get_batch_on_this_cp_rank behind it). Documents that are masked by
// their lengths have none (arguments.py).
static void find_mask(Import *import) {
    static const char flag[] = "--no-create-attention-mask-in-dataloader";
    static const double worth_a_line = 1024.0 * 1024 * 1024;
    const ImportChoices *said = &import->said;
    const double micro_batch = said->micro_batch > 0 ? said->micro_batch : 1;
    const double bytes = micro_batch * (double)said->seq * (double)said->seq;
    const bool made = !import_is_on(import, flag) && !import_is_on(import, "--dataloader-inter-document-masking");
    FIND_IF(made && bytes >= worth_a_line, import, FINDING_UNMODELLED, flag,
            "without it the loader hands ranks a mask of sequence x sequence that causal kernels do not read, %.1f "
            "GiB a micro-step: the prediction has none, your run needs that and the time to make and copy it",
            bytes / worth_a_line);
}

Status megatron_read_batch(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    read_world(import);
    TRY(megatron_int(import, M_MICRO_BATCH, 1, 1 << 20, &said->micro_batch, error));
    TRY(import_big(import, megatron_key(import, M_BATCH), 1, 1000000000, &said->global_batch, error));
    TRY(megatron_int(import, M_SEQ, 1, 1 << 24, &said->seq, error));
    if (!megatron_is_bridge(import)) {
        said->grad_accum = said->global_batch > 0 ? 0 : 1;
        FIND_IF(said->global_batch > 0 && import_has(import, "--step-batch-size-schedule"), import, FINDING_REFUSED,
                "--step-batch-size-schedule", "Cannot specify both --step-batch-size-schedule and --global-batch-size");
        find_mask(import);
        return STATUS_OK;
    }
    TRY(import_int(import, "dataset.seq_length", 1, 1 << 24, &said->seq, error));
    return STATUS_OK;
}

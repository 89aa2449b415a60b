// Stages of a file of Megatron's as a plan's: the counterpart of megatron_stages.c. Chunks that no plan holds (inner
// ones that differ) are refused with a reason. Asserts as in validate_args (megatron/training/arguments.py).

#include <string.h>

#include "sim/base/text.h"
#include "sim/frameworks/megatron/megatron_read.h"
#include "sim/frameworks/pp_layout.h"

enum { LAYERS_MOST = 1 << 16 };

// What is a text of signs in flags may be lists of words, a stage each, in Python and YAML; NULL where it is neither:
// lists that only the script's run knows are none.
static const char *layout_text(Arena *arena, const ConfigNode *layout) {
    static const char *const words[] = {"embedding", "decoder", "mtp", "loss"};
    static const char signs[] = "EtmL";
    if (layout->kind != NODE_LIST) {
        return layout->kind == NODE_SCALAR && !strchr(layout->text, '[') ? layout->text : NULL;
    }
    size_t most = 1;
    for (const ConfigNode *stage = layout->first; stage; stage = stage->next) {
        most += stage->child_count + 1;
    }
    char *text = ARENA_ARRAY(arena, char, most), *at = text;
    for (const ConfigNode *stage = layout->first; stage; stage = stage->next) {
        if (stage->kind != NODE_LIST) {
            return NULL;
        }
        for (const ConfigNode *word = stage->first; word; word = word->next) {
            const int sign =
                word->kind == NODE_SCALAR ? text_index(words, sizeof words / sizeof words[0], word->text) : -1;
            if (sign < 0) {
                return NULL;
            }
            *at++ = signs[sign];
        }
        *at++ = PP_LAYOUT_SIGN;
    }
    at[at > text ? -1 : 0] = '\0';
    return text;
}

// NULL where none is said.
static Status read_layout(Import *import, const char **text, Error *error) {
    const char *key = megatron_key(import, M_LAYOUT);
    const ConfigNode *layout = import_at(import, key);
    const char *signs = layout ? layout_text(import->arena, layout) : NULL;
    IMPORT_REFUSE_IF(layout && !signs, import, key,
                     "a layout that is neither a text nor lists of embedding, decoder, mtp and loss");
    FAIL_IF(signs && signs[0] == '\0' && !megatron_is_bridge(import), error, STATUS_USAGE,
            "%s:%d: %s is empty: it takes a layout such as %s", import->path, layout->line, key, pp_layout_such_as);
    if (signs && layout->kind == NODE_SCALAR) {
        return megatron_word(import, M_LAYOUT, text, error);
    }
    *text = signs && signs[0] != '\0' ? signs : NULL;
    return STATUS_OK;
}

static Status take_layout(Import *import, const char *text, int layers, Error *error) {
    const char *key = megatron_key(import, M_LAYOUT);
    const ConfigNode *node = import_at(import, key);
    const int pp = import->said.size[AXIS_PP];
    PpLayout *layout = ARENA_NEW(import->arena, PpLayout);
    if (node->alone) {
        const char *layout_such_as = arena_format(import->arena, "a layout such as %s", pp_layout_such_as);
        return import_wrong(import, node, key, layout_such_as, error);
    }
    FAIL_IF(!pp_layout_read(text, layout), error, STATUS_USAGE, "%s:%d: %s %s has %s", import->path, node->line, key,
            text, layout->wrong);
    if (layout->count % pp != 0) {
        import_find(import, FINDING_REFUSED, key,
                    "The length of pipeline_model_parallel_layout must be divisible by pipeline_model_parallel_size "
                    "(num_stages=%d, pipeline_model_parallel_size=%d)",
                    layout->count, pp);
        return STATUS_OK;
    }
    import->said.choice[PLAN_VIRTUAL_STAGES] = layout->count / pp;
    const int further = import->said.choice[PLAN_MTP] > 0 ? import->said.choice[PLAN_MTP] : 0;
    const char *reason = pp_layout_refuse(layout, layers, further, import->arena);
    if (reason) {
        import_find(import, FINDING_REFUSED, key, "%s", reason);
    } else if (layout->further > 0 && layout->further_at < layout->count - 1) {
        import_find(import, FINDING_UNMODELLED, key,
                    "m, layers that predict further tokens, on a stage before the last: predicted on the last one");
    }
    PpLayoutSplit split;
    if (!pp_layout_split(layout, pp, LAYERS_EDGES_IF_UNEVEN, &split)) {
        import_refuse(import, key, "the layout %s", pp_layout_unheld(layout, import->arena));
    } else if (split.split != SPLIT_TARGET) {
        import->said.choice[PLAN_PP_SPLIT] = (int)split.split;
        import->said.choice[PLAN_PP_FIRST] = split.first;
        import->said.choice[PLAN_PP_LAST] = split.last;
    }
    return STATUS_OK;
}

static Status read_virtual(Import *import, int layers, int counted, Error *error) {
    const int pp = import->said.size[AXIS_PP];
    int each = 0, chunks = 1;
    TRY(megatron_int(import, M_VIRTUAL, 1, 1024, &chunks, error));
    if (!megatron_is_bridge(import)) {
        TRY(megatron_int(import, M_PER_VIRTUAL, 1, 1024, &each, error));
    }
    if (each > 0 && megatron_says(import, M_VIRTUAL)) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_PER_VIRTUAL),
                    "No more than one of the following arguments can be set at the same time: "
                    "--num-layers-per-virtual-pipeline-stage, --num-virtual-stages-per-pipeline-rank, "
                    "--pipeline-model-parallel-layout.");
    } else if (each > 0 && layers == 0) {
        import_refuse(import, megatron_key(import, M_PER_VIRTUAL),
                      "chunks of a stage follow from the layers of the model, and the file has no --num-layers");
    } else if (each > 0 && (layers + counted) % pp != 0) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_PER_VIRTUAL),
                    "number of layers of the model must be divisible pipeline model parallel size");
    } else if (each > 0 && (layers + counted) / pp % each != 0) {
        import_find(
            import, FINDING_REFUSED, megatron_key(import, M_PER_VIRTUAL),
            "number of layers per pipeline stage must be divisible number of layers per virtual pipeline stage");
    } else if (each > 0) {
        chunks = (layers + counted) / pp / each;
    }
    import->said.choice[PLAN_VIRTUAL_STAGES] = chunks;
    return STATUS_OK;
}

// Layers of the first and last stage; where only one is said the others have as many each.
static Status read_ends(Import *import, int layers, Error *error) {
    const int pp = import->said.size[AXIS_PP];
    int first = 0, last = 0;
    TRY(megatron_int(import, M_FIRST, 0, 1024, &first, error));
    TRY(megatron_int(import, M_LAST, 0, 1024, &last, error));
    if (first == 0 && last == 0) {
        return STATUS_OK;
    }
    const int rest = layers - first - last, others = pp - (first > 0) - (last > 0);
    if (layers == 0 && (first == 0 || last == 0)) {
        import_refuse(import, megatron_key(import, first > 0 ? M_FIRST : M_LAST),
                      "the layers of the other stages follow from those of the model, which the file does not say");
        return STATUS_OK;
    }
    if (layers > 0 && others > 0 && (rest < 0 || rest % others != 0)) {
        import_find(import, FINDING_REFUSED, megatron_key(import, first > 0 ? M_FIRST : M_LAST),
                    "With uneven pipelineing the left over layers must be divisible by left over stages");
        return STATUS_OK;
    }
    import->said.choice[PLAN_PP_SPLIT] = SPLIT_ENDS;
    import->said.choice[PLAN_PP_FIRST] = first > 0 ? first : rest / others;
    import->said.choice[PLAN_PP_LAST] = last > 0 ? last : rest / others;
    return STATUS_OK;
}

// Embedding and loss counted as layers; what it does by itself where the layers do not divide (LAYERS_EDGES_IF_UNEVEN)
// is the target's own split.
static void take_counted(Import *import, int layers, bool embedding, bool loss) {
    const int chunks = import->said.size[AXIS_PP] * import->said.choice[PLAN_VIRTUAL_STAGES];
    const bool both = embedding && loss;
    const bool own = layers > 0 && layers % chunks != 0 && loss && (layers + 1 + both) % chunks == 0 &&
                     (both || (layers + 2) % chunks != 0);
    if ((embedding || loss) && !own) {
        import->said.choice[PLAN_PP_SPLIT] = SPLIT_WEIGHTED;
        import->said.choice[PLAN_PP_FIRST] = embedding;
        import->said.choice[PLAN_PP_LAST] = loss;
    } else if (!embedding && !loss && import->said.choice[PLAN_PP_SPLIT] == IMPORT_UNSAID && layers % chunks != 0) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_LAYERS),
                    "Number of layers should be divisible by the pipeline-model-parallel size");
    }
}

static void mark_stages(Import *import) {
    static const MegatronKey alone[] = {M_LAYOUT,      M_FIRST,           M_LAST,       M_VIRTUAL,
                                        M_PER_VIRTUAL, M_COUNT_EMBEDDING, M_COUNT_LOSS, M_GROUP,
                                        M_P2P_WAITS,   M_P2P_OVERLAP,     M_P2P_BATCH};
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
        import_known(import, (const char *const[]){megatron_key(import, alone[i]), NULL});
    }
}

// What pipeline_parallel/schedules.py raises.
static void refuse_messages(Import *import, bool chunks, bool overlaps, bool batched) {
    if (chunks && batched && overlaps) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_P2P_BATCH),
                    "Can not use both overlap_p2p_comm and batch_p2p_comm");
    } else if (!chunks && overlaps) {
        import_find(import, FINDING_REFUSED, megatron_key(import, M_P2P_OVERLAP),
                    "Non-interleaved pipeline parallelism does not support overlapping p2p communication");
    }
}

static void find_unset_messages(Import *import, bool chunks) {
    static const char *const models[] = {"model.overlap_p2p_comm", "model.batch_p2p_comm"};
    const bool sets = megatron_sets_overlap(import);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        FIND_IF(sets && import_has(import, models[i]), import, FINDING_TRAP, models[i],
                "comm_overlap sets it anew before training: say it in the CommOverlapConfig");
    }
    FIND_IF(!sets && chunks && !megatron_says(import, M_P2P_OVERLAP), import, FINDING_ASSUMED, NULL,
            "stages wait for the messages between them: without a CommOverlapConfig model.overlap_p2p_comm is "
            "False");
}

// A CommOverlapConfig overlaps the messages of several chunks unless it says otherwise (training/comm_overlap.py);
// without one the model's overlap_p2p_comm is False and its batch_p2p_comm True (core/model_parallel_config.py).
static Status read_messages(Import *import, bool chunks, Error *error) {
    const bool sets = megatron_sets_overlap(import);
    int waits = 0, overlaps = chunks && sets, batched = !overlaps;
    if (!megatron_is_bridge(import)) {
        TRY(megatron_bool(import, M_P2P_WAITS, &waits, error));
    } else {
        TRY(megatron_bool(import, M_P2P_OVERLAP, &overlaps, error));
        TRY(megatron_bool(import, M_P2P_BATCH, &batched, error));
        refuse_messages(import, chunks, overlaps, batched);
        find_unset_messages(import, chunks);
        waits = !overlaps;
    }
    import->said.choice[PLAN_P2P_OVERLAP] = chunks ? waits : IMPORT_UNSAID;
    return STATUS_OK;
}

Status megatron_read_stages(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    const char *layout = NULL;
    int layers = 0, embedding = 0, loss = 0;
    TRY(megatron_int(import, M_LAYERS, 1, LAYERS_MOST, &layers, error));
    if (said->size[AXIS_PP] <= 1) {
        mark_stages(import);
        return STATUS_OK;
    }
    TRY(megatron_bool(import, M_COUNT_EMBEDDING, &embedding, error));
    TRY(megatron_bool(import, M_COUNT_LOSS, &loss, error));
    TRY(read_virtual(import, layers, embedding + loss, error));
    TRY(read_ends(import, layers, error));
    TRY(read_layout(import, &layout, error));
    if (import->refusal) {
        return STATUS_OK;
    }
    if (layout) {
        TRY(take_layout(import, layout, layers, error));
    } else {
        take_counted(import, layers, embedding, loss);
    }
    int group = said->size[AXIS_PP];
    TRY(megatron_int(import, M_GROUP, 1, plan_fields[PLAN_PP_GROUP].high, &group, error));
    const int chunks = said->choice[PLAN_VIRTUAL_STAGES];
    said->choice[PLAN_PP_GROUP] = chunks > 1 ? group : IMPORT_UNSAID;
    said->choice[PLAN_PP_SCHEDULE] = chunks > 1 ? PP_INTERLEAVED : PP_1F1B;
    said->choice[PLAN_VIRTUAL_STAGES] = chunks > 1 ? chunks : IMPORT_UNSAID;
    return read_messages(import, chunks > 1, error);
}

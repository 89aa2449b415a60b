// Megatron's layout of a pipeline, "Et*3|t*4|t*4|t*3L", given as --pp-split: replaced by the choices that hold the same
// layers. Where inner chunks differ, and inner stages too, there are none: a plan holds the layers of the first and of
// the last one.

#include <string.h>

#include "autotune/request/request_internal.h"
#include "sim/frameworks/pp_layout.h"

static const char *counted(int number, const char *what, Arena *arena) {
    return arena_format(arena, "%d %s%s", number, what, number == 1 ? "" : "s");
}

static int further_layers(const Builder *builder) {
    const char *said = builder->asked->choices[PLAN_MTP];
    const int further = said ? plan_field_value(PLAN_MTP, said) : PLAN_ANY;
    return further == PLAN_ANY ? 0 : further;
}

// As --mesh and --model have them, in numbers; the rest of what Megatron asserts in its words.
static Status check_layout(Builder *builder, const PpLayout *layout, Error *error) {
    Arena *arena = builder->arena;
    const ModelSpec *model = &builder->request->model;
    const int pp = mesh_stages(&builder->request->mesh), layers = pp_layout_layers(layout);
    const int further = further_layers(builder);
    FAIL_IF(layout->count % pp != 0 || pp == 1, error, STATUS_USAGE,
            "the layout of --pp-split has %s of layers, and pp is %d: use %s", counted(layout->count, "chunk", arena),
            pp, pp_layout_stages(layout, arena));
    FAIL_IF(layers != model->layers, error, STATUS_USAGE,
            "the layout of --pp-split has %s (t), and %s has %d: use %d %s", counted(layers, "layer", arena),
            model->name, model->layers, layers < model->layers ? model->layers - layers : layers - model->layers,
            layers < model->layers ? "more" : "fewer");
    FAIL_IF(
        layout->further != further, error, STATUS_USAGE,
        "the layout of --pp-split has %d m, layers that predict further tokens, and --mtp is %d: use --mtp %d, or as "
        "many m",
        layout->further, further, layout->further);
    const char *reason = pp_layout_refuse(layout, model->layers, further, arena);
    FAIL_IF(reason, error, STATUS_USAGE, "--pp-split %s: %s", builder->asked->choices[PLAN_PP_SPLIT], reason);
    if (layout->further > 0 && layout->further_at < layout->count - 1) {
        assume(builder, "layers that predict further tokens (m of the layout) are predicted on the last stage");
    }
    return STATUS_OK;
}

// The choices that hold these layers.
static Status take(Builder *builder, const PpLayout *layout, Error *error) {
    static const char whose[] = "the layout of --pp-split";
    const char **choices = builder->asked->choices;
    const int pp = mesh_stages(&builder->request->mesh), chunks = layout->count / pp;
    PpLayoutSplit split;
    FAIL_IF(!pp_layout_split(layout, pp, builder->request->target->layer_rule, &split), error, STATUS_USAGE, "%s %s",
            whose, pp_layout_unheld(layout, builder->arena));
    if (chunks > 1 && !choices[PLAN_PP_SCHEDULE]) {
        choices[PLAN_PP_SCHEDULE] = pp_schedule_names[PP_INTERLEAVED];
    }
    TRY(say_number(builder, PLAN_VIRTUAL_STAGES, whose, "chunks of layers on each stage", chunks, error));
    choices[PLAN_PP_SPLIT] = pp_split_names[split.split];
    if (split.split == SPLIT_TARGET) {
        return STATUS_OK;
    }
    const int most = (int)plan_fields[PLAN_PP_FIRST].high, more = split.first > split.last ? split.first : split.last;
    FAIL_IF(more > most, error, STATUS_USAGE, "%s has %d layers at one end, and a plan holds 0 to %d: use fewer", whose,
            more, most);
    const char *unit = split.split == SPLIT_ENDS ? "stage" : "chunk";
    TRY(say_number(builder, PLAN_PP_FIRST, whose, arena_format(builder->arena, "layers on the first %s", unit),
                   split.first, error));
    return say_number(builder, PLAN_PP_LAST, whose, arena_format(builder->arena, "layers on the last %s", unit),
                      split.last, error);
}

Status choose_layout(Builder *builder, Error *error) {
    const char *text = builder->asked->choices[PLAN_PP_SPLIT];
    if (!text || !strchr(text, PP_LAYOUT_SIGN)) {
        return STATUS_OK;
    }
    about(builder->asked, ASKED_CHOICE + PLAN_PP_SPLIT, error);
    FAIL_IF(!builder->defaults->single_plan || builder->asked->world > 0, error, STATUS_USAGE,
            "a layout is the layers of one pipeline: give it to predict, run or export, with --mesh");
    PpLayout *layout = ARENA_NEW(builder->arena, PpLayout);
    FAIL_IF(!pp_layout_read(text, layout), error, STATUS_USAGE, "--pp-split %s has %s: a layout is such as %s", text,
            layout->wrong, pp_layout_such_as);
    TRY(check_layout(builder, layout, error));
    return take(builder, layout, error);
}

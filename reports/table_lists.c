// The tables of `ndtune models` and `ndtune clusters`.

#include "reports/grid.h"
#include "reports/reports.h"
#include "sim/base/text.h"

Status table_models(FILE *out, Error *error) {
    static const GridColumn columns[] = {{"model", false}, {"alias", false},  {"parameters", true}, {"layers", true},
                                         {"hidden", true}, {"heads", true},   {"kv heads", true},   {"ffn", true},
                                         {"vocab", true},  {"longest", true}, {"type", false},      {"source", false}};
    Grid *grid = grid_new(columns, 12);
    int count = 0;
    const ModelPreset *presets = model_presets(&count);
    char text[TEXT_UNIT_BYTES];
    for (int i = 0; i < count; i++) {
        const ModelSpec *model = &presets[i].spec;
        grid_row(grid);
        grid_cell(grid, "%s", model->name);
        grid_cell(grid, "%s", presets[i].alias ? presets[i].alias : "");
        grid_cell(grid, "%s", text_count(text, (double)model_parameters(model)));
        const int numbers[] = {model->layers, model->hidden, model->heads,  model->kv_heads,
                               model->ffn,    model->vocab,  model->max_seq};
        for (size_t j = 0; j < sizeof numbers / sizeof numbers[0]; j++) {
            grid_cell(grid, "%d", numbers[j]);
        }
        grid_cell(grid, "%s", model->type);
        grid_cell(grid, "%s", model->source);
    }
    return grid_print(grid, out, error);
}

Status table_clusters(const ClusterProfile *profiles, int count, FILE *out, Error *error) {
    static const GridColumn columns[] = {
        {"cluster", false}, {"accelerator", false}, {"per node", true}, {"memory", true}, {"what", false}};
    Grid *grid = grid_new(columns, 5);
    char text[TEXT_UNIT_BYTES];
    for (int i = 0; i < count; i++) {
        grid_row(grid);
        grid_cell(grid, "%s", profiles[i].name);
        grid_cell(grid, "%s", profiles[i].accelerator.name);
        grid_cell(grid, "%d", profiles[i].node.accelerators);
        grid_cell(grid, "%s", text_bytes(text, profiles[i].accelerator.memory_bytes));
        grid_cell(grid, "%s", profiles[i].description ? profiles[i].description : "");
    }
    return grid_print(grid, out, error);
}

Status table_cluster(const ClusterProfile *profile, FILE *out, Error *error) {
    fprintf(out, "%s: %s\nstack %s, dated %s\n", profile->name, profile->description ? profile->description : "",
            profile->stack ? profile->stack : "not said", profile->date ? profile->date : "not said");
    if (profile->extends) {
        fprintf(out, "extends %s: what its own file does not state comes from there\n", profile->extends);
    }
    fputc('\n', out);
    static const GridColumn columns[] = {{"field", false}, {"value", true}, {"grade", false}, {"source", false}};
    Grid *grid = grid_new(columns, 4);
    for (int i = 0; i < profile->provenance_count; i++) {
        const Provenance *row = &profile->provenance[i];
        grid_row(grid);
        grid_cell(grid, "%s", row->path);
        grid_cell(grid, "%g", row->value);
        grid_cell(grid, "%s", grade_name(row->grade));
        grid_cell(grid, "%s", row->source);
    }
    return grid_print(grid, out, error);
}

// The tables of `ndtune models` and `ndtune clusters`.

#include "reports/grid.h"
#include "reports/reports.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

static void row_of_number(Grid *grid, const char *name, int value) {
    grid_row(grid);
    grid_cell(grid, "%s", name);
    grid_cell(grid, "%d", value);
}

static void row_of_count(Grid *grid, const char *name, int64_t value) {
    char text[TEXT_UNIT_BYTES];
    grid_row(grid);
    grid_cell(grid, "%s", name);
    grid_cell(grid, "%lld", (long long)value);
    grid_cell(grid, "%s", text_count(text, (double)value));
}

// Sizes of tp that every head's work divides by.
static void print_tp_sizes(const ModelSpec *model, FILE *out) {
    fputs("tp sizes that divide its key-value heads:", out);
    for (int tp = 1; tp <= model->kv_heads; tp++) {
        if (model->kv_heads % tp == 0) {
            fprintf(out, " %d", tp);
        }
    }
    fputc('\n', out);
}

Status table_model(const ModelSpec *model, FILE *out, Error *error) {
    static const GridColumn columns[] = {{"what", false}, {"value", true}, {"", true}};
    fprintf(out, "%s, of type %s, from %s\n\n", model->name, model->type ? model->type : "llama", model->source);
    Grid *grid = grid_new(columns, 3);
    const int64_t all = model_parameters(model);
    row_of_count(grid, "parameters", all);
    row_of_count(grid, "of a layer", model_layer_parameters(model, model_run(model, 0).kind));
    row_of_count(grid, "outside of layers", all - model_layers_parameters(model));
    row_of_number(grid, "layers", model->layers);
    row_of_number(grid, "hidden", model->hidden);
    row_of_number(grid, "heads", model->heads);
    row_of_number(grid, "key-value heads", model->kv_heads);
    row_of_number(grid, "head dimension", model->head_dim);
    row_of_number(grid, "feed-forward width", model->ffn);
    row_of_number(grid, "vocabulary", model->vocab);
    row_of_number(grid, "longest sequence", model->max_seq);
    TRY(grid_print(grid, out, error));
    fprintf(out, "\nembeddings %s\n", model->tied_embeddings ? "tied: the head is the embedding's matrix" : "not tied");
    print_tp_sizes(model, out);
    if (model->note) {
        fprintf(out, "%s\n", model->note);
    }
    return STATUS_OK;
}

Status table_cluster(const ClusterProfile *profile, FILE *out, Error *error) {
    fprintf(out, "%s: %s\nstack %s, dated %s\n", profile->name, profile->description ? profile->description : "",
            profile->stack ? profile->stack : "not said", profile->date ? profile->date : "not said");
    if (profile->extends) {
        fprintf(out, "extends %s: what its own file does not state comes from there\n", profile->extends);
    }
    fputc('\n', out);
    return record_table(&schema_provenance, profile->provenance, profile->provenance_count, out, error);
}

// What `ndtune models` and `ndtune clusters` answer.

#include "reports/grid.h"
#include "reports/json_objects.h"
#include "reports/reports.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

static void row_of_number(Grid *grid, const char *name, int value) {
    grid_row(grid);
    grid_cell(grid, "%s", name);
    grid_cell(grid, "%d", value);
}

static void row_of_count(Grid *grid, const char *name, int64_t value) {
    grid_row(grid);
    grid_cell(grid, "%s", name);
    grid_cell(grid, "%lld", (long long)value);
    grid_cell(grid, "%s", text_count(UNIT_BUFFER, (double)value));
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

static Status table_model(const ModelSpec *model, FILE *out, Error *error) {
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

static Status table_cluster(const void *answer, FILE *out, Error *error) {
    const ClusterProfile *profile = answer;
    fprintf(out, "%s: %s\nstack %s, dated %s\n", profile->name, profile->description ? profile->description : "",
            profile->stack ? profile->stack : "not said", profile->date ? profile->date : "not said");
    if (profile->extends) {
        fprintf(out, "extends %s: what its own file does not state comes from there\n", profile->extends);
    }
    fputc('\n', out);
    return record_table(&schema_provenance, profile->provenance, profile->provenance_count, out, error);
}

static Status json_models(const void *answer, FILE *out, Error *error) {
    const ModelsReport *report = answer;
    json_t *models = json_array();
    for (int i = 0; i < report->count; i++) {
        json_t *model = json_model(&report->presets[i].spec);
        json_object_set_new(model, "alias",
                            report->presets[i].alias ? json_string(report->presets[i].alias) : json_null());
        json_array_append_new(models, model);
    }
    return json_print(json_pack("{s:s, s:o}", "schema", "ndtune.models/1", "models", models), out, error);
}

static Status json_clusters(const void *answer, FILE *out, Error *error) {
    const ClustersReport *report = answer;
    json_t *clusters = json_array();
    for (int i = 0; i < report->count; i++) {
        json_array_append_new(clusters, json_profile(&report->profiles[i], 0));
    }
    return json_print(json_pack("{s:s, s:o}", "schema", "ndtune.clusters/1", "clusters", clusters), out, error);
}

static Status table_models(const void *answer, FILE *out, Error *error) {
    const ModelsReport *report = answer;
    return report->in_full ? table_model(&report->presets[0].spec, out, error)
                           : record_table(&schema_models, report->presets, report->count, out, error);
}

static Status csv_models(const void *answer, FILE *out, Error *error) {
    const ModelsReport *report = answer;
    return record_csv(&schema_models, report->presets, report->count, out, error);
}

static Status table_clusters(const void *answer, FILE *out, Error *error) {
    const ClustersReport *report = answer;
    return record_table(&schema_clusters, report->profiles, report->count, out, error);
}

static Status csv_clusters(const void *answer, FILE *out, Error *error) {
    const ClustersReport *report = answer;
    return record_csv(&schema_clusters, report->profiles, report->count, out, error);
}

static Status csv_cluster(const void *answer, FILE *out, Error *error) {
    const ClusterProfile *profile = answer;
    return record_csv(&schema_provenance, profile->provenance, profile->provenance_count, out, error);
}

static Status json_cluster(const void *answer, FILE *out, Error *error) {
    return json_clusters(&(ClustersReport){answer, 1}, out, error);
}

const Answer answer_models = {.table = table_models, .json = json_models, .csv = csv_models};
const Answer answer_clusters = {.table = table_clusters, .json = json_clusters, .csv = csv_clusters};
const Answer answer_cluster = {.table = table_cluster, .json = json_cluster, .csv = csv_cluster};

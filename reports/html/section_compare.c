// Why this one: the best against the runner-up, the rules of thumb and the user's baseline, term by term. Times are per
// million tokens, because two shapes need not take the same number of tokens in a step.

#include <math.h>

#include "reports/explain_terms.h"
#include "reports/format.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "sim/base/text.h"

enum { MOST_RIVALS = 6 };

typedef struct Rival {
    const char *name;
    Mesh mesh;
    Baseline found;
} Rival;

typedef struct Rivals {
    const TuneResult *result;
    Arena *arena;
    Rival rows[MOST_RIVALS];
    int count;
} Rivals;

static Mesh shape_of(int replicate, int shard, int tp) {
    Mesh mesh = mesh_of_one();
    mesh.size[AXIS_DP_REPLICATE] = replicate;
    mesh.size[AXIS_DP_SHARD] = shard;
    mesh.size[AXIS_TP] = tp;
    return mesh;
}

// A shape is listed once, under all of its names.
static void add_rival(Rivals *rivals, const char *name, Mesh mesh) {
    for (int i = 0; i < rivals->count; i++) {
        Rival *row = &rivals->rows[i];
        if (mesh_same_shape(&row->mesh, &mesh)) {
            row->name = arena_format(rivals->arena, "%s; %s", row->name, name);
            return;
        }
    }
    Rival *row = &rivals->rows[rivals->count];
    *row = (Rival){name, mesh, baseline_rival(rivals->result, &mesh)};
    rivals->count += row->found.entry || row->found.reason;
}

static void collect_rivals(Rivals *rivals) {
    const TuneResult *result = rivals->result;
    const TuneRequest *request = result->request;
    const int world = request->world, node = request->cluster.node.accelerators;
    add_rival(rivals, "best", result->entries[0].plan.mesh);
    if (mesh_world(&request->baseline) > 0) {
        add_rival(rivals, "your baseline", request->baseline);
    }
    if (result->entry_count > 1) {
        add_rival(rivals, "runner-up", result->entries[1].plan.mesh);
    }
    add_rival(rivals, "plain FSDP *", shape_of(1, world, 1));
    if (world > node && world % node == 0) {
        add_rival(rivals, "HSDP, a shard per node *", shape_of(world / node, node, 1));
        add_rival(rivals, "tp in the node, FSDP across *", shape_of(1, world / node, node));
    }
}

static void write_row(MarkupTable *table, const TuneResult *result, const Rival *rival) {
    const Prediction *best = &result->entries[0], *entry = rival->found.entry;
    table_row(table, NULL);
    table_cells(table, "ss", rival->name, format_mesh(&rival->mesh, FORMAT_BUFFER));
    if (!entry) {
        table_rest(table, "cannot run: %s", rival->found.reason);
        return;
    }
    double exposed = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        exposed += entry->exposed_s[axis];
    }
    const double millions = 1e-6 * (double)plan_tokens_per_step(&entry->plan);  // of tokens
    table_cells(table, "dc", rival->found.place, entry->tokens_per_s);
    table_cell(table, "%+.1f %%", 100 * (entry->tokens_per_s / best->tokens_per_s - 1));
    table_cells(table, "tttt", entry->compute_s / millions, exposed / millions, entry->optimizer_s / millions,
                entry->overhead_s / millions);
    table_cell(table, "%d × %d", entry->plan.micro_batch, entry->plan.grad_accum);
    table_cells(table, "b", entry->memory.reserved_bytes);
}

// The term that decides between the best and the next.
static void write_reason(const TuneResult *result, FILE *out) {
    const Explanation pair = {.best = &result->entries[0], .runner_up = &result->entries[1]};
    const ExplainTerm most = explain_most_saved(&pair);
    const double apart = 1 - pair.runner_up->tokens_per_s / pair.best->tokens_per_s;
    if (most.name) {
        fputs("<p>", out);
        if (fabs(apart) < tie_share(result)) {
            markup_format(out, "The runner-up is a tie: %.1f %% apart by prediction; it loses most in ",
                          100 * fabs(apart));
        } else {
            fputs("What it saves over the runner-up, it saves most of all in ", out);
        }
        markup_format(out, "%s: %s per million tokens.", most.name, text_seconds(UNIT_BUFFER, most.next - most.best));
        fputs("</p>\n", out);
    }
}

void section_compare(const HtmlReport *report, FILE *out) {
    const TuneResult *result = report->result;
    if (result->entry_count == 0) {
        fputs("<p>Nothing runs, so there is nothing to compare.</p>\n", out);
        return;
    }
    if (result->entry_count > 1) {
        write_reason(result, out);
    }
    Rivals rivals = {.result = result, .arena = report->arena};
    collect_rivals(&rivals);
    MarkupTable table = table_begin("table-compare", "The best against its rivals; times are per million tokens",
                                    "|mesh|#place|#tokens/s|#against best|#compute|#exposed comm.|#optimizer|"
                                    "#overhead|#micro × accum|#memory",
                                    out);
    for (int i = 0; i < rivals.count; i++) {
        write_row(&table, result, &rivals.rows[i]);
    }
    table_end(&table);
    fputs("<p>* A rule of thumb: what people run when nobody has calculated.</p>\n", out);
    if (mesh_world(&result->request->baseline) == 0) {
        fputs("<p>Your own shape stands here too with <code>--baseline AXIS=N,…</code>.</p>\n", out);
    }
}

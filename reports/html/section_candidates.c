// The ranked shapes as a table that reads without the script. With it, the table holds every candidate, filtered and
// sorted.

#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/words.h"
#include "sim/base/text.h"

static void write_row(MarkupTable *table, const TuneRequest *request, int place, const Prediction *entry) {
    const TrainPlan *plan = &entry->plan;
    char text[WORDS_BYTES], number[TEXT_UNIT_BYTES], recompute[PLAN_RECOMPUTE_BYTES];
    table_row(table, NULL);
    table_cell(table, "%d", place);
    table_cell(table, "%s", words_layout(&plan->mesh, text));
    table_cell(table, "%d", plan->micro_batch);
    table_cell(table, "%d", plan->grad_accum);
    table_cell(table, "%s", plan_recompute_text(plan, recompute));
    table_cell(table, "%s", plan->zero == 3 ? reshard_names[plan->reshard] : "–");
    table_cell(table, "%s", plan->mesh.size[AXIS_CP] > 1 ? cp_rotate_names[plan->cp_rotate] : "–");
    table_cell(table, "%s", words_interval(entry, text));
    table_cell(table, "%s", text_count(number, entry->tokens_per_s));
    table_cell(table, "%.1f %%", 100 * entry->mfu);
    table_cell(table, "%s", text_bytes(number, entry->memory.reserved_bytes));
    table_cell(table, "%.0f %%", 100 * entry->memory.reserved_bytes / request->memory_limit_bytes);
    table_cell(table, "%s", entry->pareto ? "yes" : "");
}

void section_candidates(const HtmlReport *report, FILE *out) {
    const TuneResult *result = report->result;
    static const MarkupColumn columns[] = {
        {"#", true},          {"mesh", false},    {"micro", true},   {"accum", true},
        {"recompute", false}, {"reshard", false}, {"rotate", false}, {"step (80 % interval)", false},
        {"tokens/s", true},   {"MFU", true},      {"memory", true},  {"of limit", true},
        {"front", false}};
    MarkupTable table = table_begin("table-ranking",
                                    "The best choice of each shape that fits, ranked: micro-batch, accumulation and "
                                    "the rest; on the front no other shape is as fast with less memory",
                                    columns, (int)(sizeof columns / sizeof columns[0]), out);
    for (int i = 0; i < result->entry_count && i < HTML_DETAILED; i++) {
        write_row(&table, result->request, i + 1, &result->entries[i]);
    }
    table_end(&table);
    if (result->entry_count > HTML_DETAILED) {
        markup_format(out, "%d further shapes fit; ", result->entry_count - HTML_DETAILED);
        fputs("<code>ndtune plan --csv FILE</code> writes them all.\n", out);
    }
    if (result->candidate_count > HTML_MOST_CANDIDATES) {
        markup_format(out, "The page holds %d of %d candidates, ", HTML_MOST_CANDIDATES, result->candidate_count);
        fputs("<code>ndtune plan --csv FILE</code> all of them.\n", out);
    }
}

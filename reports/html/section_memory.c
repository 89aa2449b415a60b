// Does it fit, and what would exceed memory: the contributors at the peak against the limit, and the nearest choice of
// the same shape that does not fit.

#include <string.h>

#include "reports/format.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/memory_terms.h"
#include "sim/base/text.h"

enum { ROWS = 12 };
static const double GIB = 1024.0 * 1024 * 1024;

// The choice of the best shape that exceeds memory by the least.
static const Candidate *nearest_misfit(const TuneResult *result) {
    const Candidate *nearest = NULL;
    for (int i = 0; i < result->candidate_count; i++) {
        const Candidate *candidate = &result->candidates[i];
        if (candidate->state == CANDIDATE_REJECTED && candidate->rule && strcmp(candidate->rule, "memory") == 0 &&
            mesh_same_shape(&candidate->plan.mesh, &result->entries[0].plan.mesh) && candidate->reserved_bytes > 0 &&
            (!nearest || candidate->reserved_bytes < nearest->reserved_bytes)) {
            nearest = candidate;
        }
    }
    return nearest;
}

static void write_headroom(const HtmlReport *report, const Prediction *best, FILE *out) {
    const double limit = report->result->request->memory_limit_bytes, reserved = best->memory.reserved_bytes;
    fputs("<p>", out);
    markup_format(out, "It fits: %s of %s are reserved, %s (%.0f %%) are left. ", text_bytes(UNIT_BUFFER, reserved),
                  text_bytes(UNIT_BUFFER, limit), text_bytes(UNIT_BUFFER, limit - reserved),
                  100 * (1 - reserved / limit));
    markup_format(out, "The peak is in the %s phase, where the largest buffer is %s with %s.", best->memory.peak_phase,
                  best->memory.top_name, text_bytes(UNIT_BUFFER, best->memory.top_bytes));
    fputs("</p>\n", out);
    const Candidate *misfit = nearest_misfit(report->result);
    if (misfit) {
        fputs("<p>What breaks it: ", out);
        markup_format(out, "micro-batch %d with recompute %s", misfit->plan.micro_batch,
                      plan_recompute_text(&misfit->plan, RECOMPUTE_BUFFER));
        markup_format(out, "%s %s.", misfit->plan.reshard == RESHARD_NEVER ? ", reshard never," : "", misfit->reason);
        fputs("</p>\n", out);
    } else {
        fputs("<p>No choice of this shape that was tried breaks the limit.</p>\n", out);
    }
}

static void write_row(MarkupTable *table, const Prediction *entry) {
    MemoryTerm terms[MEMORY_TERMS];
    memory_terms(&entry->memory, terms);
    table_row(table, NULL);
    table_cell(table, "%s", format_layout(&entry->plan.mesh, FORMAT_BUFFER));
    for (int i = 0; i < MEMORY_TERMS; i++) {
        table_cell(table, "%.2f", terms[i].bytes / GIB);
    }
    table_cell(table, "%.2f", entry->memory.peak_bytes / GIB);
    table_cell(table, "%.2f", (entry->memory.reserved_bytes - entry->memory.peak_bytes) / GIB);
    table_cell(table, "%.2f", entry->memory.reserved_bytes / GIB);
}

void section_memory(const HtmlReport *report, FILE *out) {
    const TuneResult *result = report->result;
    const Prediction *best = report_best(report);
    if (!best) {
        fputs("<p>No shape fits and runs; <a href=\"#rejected\">the reasons</a> name what breaks each.</p>\n", out);
        return;
    }
    write_headroom(report, best, out);
    fputs("<details><summary>Table behind the chart</summary>\n", out);
    MarkupTable table = table_begin("table-memory", "GiB per accelerator, alive at the peak",
                                    "mesh|#parameters|#gradients|#optimizer|#activations|#logits|#gathered parameters|"
                                    "#communication|#runtime|#peak|#allocator, context, communicators|#reserved",
                                    out);
    for (int i = 0; i < result->entry_count && i < ROWS; i++) {
        write_row(&table, &result->entries[i]);
    }
    table_end(&table);
    fputs("</details>\n", out);
}

// The functions that fill the placeholders of template/page.html, one file each.

#pragma once

#include <jansson.h>

#include "reports/export/export.h"
#include "reports/html/html.h"

// Each writes the contents of its placeholder in section_table; if there is nothing to show, a sentence says so.
typedef void (*SectionWriter)(const HtmlReport *report, FILE *out);

void section_title(const HtmlReport *report, FILE *out);
void section_verdict(const HtmlReport *report, FILE *out);
void section_config(const HtmlReport *report, FILE *out);
void section_compare(const HtmlReport *report, FILE *out);
void section_time(const HtmlReport *report, FILE *out);
void section_memory(const HtmlReport *report, FILE *out);
void section_stages(const HtmlReport *report, FILE *out);
void section_timeline(const HtmlReport *report, FILE *out);
void section_candidates(const HtmlReport *report, FILE *out);
void section_tuning(const HtmlReport *report, FILE *out);
void section_measured(const HtmlReport *report, FILE *out);
void section_preflight(const HtmlReport *report, FILE *out);
void section_rejected(const HtmlReport *report, FILE *out);
void section_batch(const HtmlReport *report, FILE *out);
void section_topology(const HtmlReport *report, FILE *out);
void section_sensitivity(const HtmlReport *report, FILE *out);
void section_tornado(const HtmlReport *report, FILE *out);
void section_cost(const HtmlReport *report, FILE *out);
void section_assumptions(const HtmlReport *report, FILE *out);
void section_calibration(const HtmlReport *report, FILE *out);
void section_sources(const HtmlReport *report, FILE *out);
void section_provenance(const HtmlReport *report, FILE *out);

// The data for the charts and the candidate table (ndtune.report-data/1).
Status report_data(const HtmlReport *report, FILE *out, Error *error);
// Adds a value to the column of that name, which is there from its first value on.
void columns_append(json_t *columns, const char *name, json_t *value);
json_t *timeline_data(const HtmlReport *report);
json_t *stages_data(const HtmlReport *report);
json_t *tuning_data(const HtmlReport *report);
json_t *memory_curve(const HtmlReport *report);

// The lines of a written file that distinguish its plan (an entry) from the others; false where there are none.
bool config_lines(const HtmlReport *report, const ExportFormat *format, int place, const char *text, FILE *out);

// The best entry, or NULL.
static inline const Prediction *report_best(const HtmlReport *report) {
    return report->result->entry_count > 0 ? &report->result->entries[0] : NULL;
}

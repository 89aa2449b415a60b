// The ranked shapes as a table that is readable without the script. With it, the table holds every candidate, filtered
// and sorted.

#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/schemas.h"

void section_candidates(const HtmlReport *report, FILE *out) {
    const TuneResult *result = report->result;
    const RecordSchema schema = record_about(&schema_entries, result);
    table_records("table-ranking",
                  "The best choice of each shape that fits, ranked: micro-batch, accumulation and the rest; on the "
                  "front (*) no other shape is as fast with less memory",
                  &schema, result->entries, result->entry_count < HTML_DETAILED ? result->entry_count : HTML_DETAILED,
                  out);
    if (result->entry_count > HTML_DETAILED) {
        markup_format(out, "%d further shapes fit; ", result->entry_count - HTML_DETAILED);
        fputs("<code>ndtune plan --csv FILE</code> writes them all.\n", out);
    }
    if (result->candidate_count > HTML_MOST_CANDIDATES) {
        markup_format(out, "The page holds %d of %d candidates, ", HTML_MOST_CANDIDATES, result->candidate_count);
        fputs("<code>ndtune plan --csv FILE</code> all of them.\n", out);
    }
}

// What was rejected and why, and what the search did with the rest.

#include "reports/format.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/schemas.h"

enum { MOST_ROWS = 300 };

static void write_ledger(const TuneResult *result, FILE *out) {
    const SearchCounts *search = &result->search;
    markup_element(out, "p", "%d shapes: %d ranked, %d rejected. %s.", search->shapes, result->entry_count,
                   result->rejected_count, format_search(search, FORMAT_BUFFER));
}

void section_rejected(const HtmlReport *report, FILE *out) {
    const TuneResult *result = report->result;
    write_ledger(result, out);
    if (result->rejected_count == 0) {
        fputs("<p>No shape was rejected.</p>\n", out);
        return;
    }
    table_records("table-rejected", "Shapes that were rejected", &schema_rejected, result->rejected,
                  result->rejected_count < MOST_ROWS ? result->rejected_count : MOST_ROWS, out);
    if (result->rejected_count > MOST_ROWS) {
        fputs("<p>", out);
        markup_format(out, "%d further shapes were rejected; ", result->rejected_count - MOST_ROWS);
        fputs("<code>ndtune plan --csv FILE</code> has the reason of each.</p>\n", out);
    }
}

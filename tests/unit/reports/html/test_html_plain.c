// The page of a build without the chart runtime.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/reports/html/page.h"

Test(html_plain, says_that_charts_are_missing_and_keeps_text_and_tables) {
    Page page;
    page_begin(&page);
    page_write(&page);
    cr_assert_not(html_has_charts());
    cr_expect_not_null(strstr(page.text, "This page has no charts: the chart runtime"));
    cr_expect_not_null(strstr(page.text, "<html lang=\"en\" class=\"no-charts\">"));
    static const char *const tables[] = {"table-compare", "table-time",     "table-memory",
                                         "table-ranking", "table-rejected", "table-sources"};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char id[64];
        snprintf(id, sizeof id, "id=\"%s\"", tables[i]);
        cr_expect_not_null(strstr(page.text, id), "%s", tables[i]);
    }
    cr_expect_not_null(strstr(page.text, "</script>\n<script></script>\n</body>"),
                       "there is a script behind the page's own");
    cr_expect_lt(strlen(page.text), 150000u);
    page_end(&page);
}

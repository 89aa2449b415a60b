// The fixture as a page.

#include "tests/unit/reports/html/page.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

void page_begin(Page *page) {
    *page = (Page){0};
    fixture_fill(&page->fixture);
    page->report = (HtmlReport){.result = &page->fixture.result, .arena = &page->arena};
}

void page_write(Page *page) {
    size_t bytes = 0;
    FILE *out = open_memstream(&page->text, &bytes);
    cr_assert_not_null(out);
    Error error = {0};
    const Status status = html_report(&page->report, out, &error);
    fclose(out);
    cr_assert_eq(status, STATUS_OK, "%s", error.message);
}

void page_end(Page *page) {
    free(page->text);
    arena_free(&page->arena);
}

char *page_between(const Page *page, const char *open, const char *close) {
    const char *from = strstr(page->text, open);
    cr_assert_not_null(from, "%s", open);
    from += strlen(open);
    const char *to = strstr(from, close);
    cr_assert_not_null(to, "%s", close);
    return strndup(from, (size_t)(to - from));
}

json_t *page_data(const Page *page) {
    char *text = page_between(page, "<script type=\"application/json\" id=\"report-data\">", "</script>");
    json_error_t where;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    cr_assert_not_null(root, "%s at %d", where.text, where.position);
    free(text);
    return root;
}

// A page of the hand-made answer, and its parts read back.

#pragma once

#include <jansson.h>

#include "reports/html/html.h"
#include "tests/unit/reports/fixture.h"

typedef struct Page {
    Fixture fixture;
    HtmlReport report;
    Arena arena;
    char *text;
} Page;

void page_begin(Page *page);  // the fixture's two entries; a test changes only what it tests
void page_write(Page *page);  // fills text; fails the test where that fails
void page_end(Page *page);
json_t *page_data(const Page *page);  // what the charts read; the caller frees

// The text between the first `open` and the next `close` after it; the caller frees.
char *page_between(const Page *page, const char *open, const char *close);

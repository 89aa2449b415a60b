// The page of ndtune blame: one self-contained file without a script.

#pragma once

#include "reports/blame.h"

typedef struct BlamePage {
    const BlameReport *report;
    const char *again;  // the command that regenerates this page
    Arena *arena;       // for texts
} BlamePage;

Status html_blame(const void *page, FILE *out, Error *error);

// Its placeholders, one function each.
void blame_page_group(const BlamePage *page, FILE *out);
void blame_page_stands(const BlamePage *page, FILE *out);
void blame_page_lanes(const BlamePage *page, FILE *out);

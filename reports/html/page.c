// The page: template/page.html with its placeholders filled. Style, script and charts are embedded files; a strict
// content security policy names their hashes, so that nothing else on the page can run.

#include <string.h>

#include "reports/html/html_assets.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "sim/base/text.h"

typedef struct Place {
    const char *name;  // {{name}} in the template
    SectionWriter write;
    const char *text;  // where nothing writes
} Place;

static void write_charts_note(const HtmlReport *report, FILE *out) {
    (void)report;
    if (!html_has_charts()) {
        fputs(
            "<p class=\"note\" id=\"no-charts\">This page has no charts: the chart runtime (Debian packages node-vega "
            "and esbuild) was missing when ndtune was built. Every number is in the text and the tables.</p>\n",
            out);
    }
}

static void write_charts_class(const HtmlReport *report, FILE *out) {
    (void)report;
    fputs(html_has_charts() ? "charts" : "no-charts", out);
}

static const Place places[] = {
    {"title", .write = section_title},
    {"style", .text = asset_style},
    {"style-hash", .text = asset_style_sha256},  // of the contents of the page's elements
    {"script", .text = asset_script},
    {"script-hash", .text = asset_script_sha256},
    {"charts", .text = asset_charts},
    {"charts-hash", .text = asset_charts_sha256},
    {"charts-note", .write = write_charts_note},
    {"charts-class", .write = write_charts_class},
    {"verdict", .write = section_verdict},
    {"config", .write = section_config},
    {"compare", .write = section_compare},
    {"time", .write = section_time},
    {"memory", .write = section_memory},
    {"stages", .write = section_stages},
    {"timeline", .write = section_timeline},
    {"candidates", .write = section_candidates},
    {"tuning", .write = section_tuning},
    {"measured", .write = section_measured},
    {"preflight", .write = section_preflight},
    {"rejected", .write = section_rejected},
    {"batch", .write = section_batch},
    {"topology", .write = section_topology},
    {"sensitivity", .write = section_sensitivity},
    {"tornado", .write = section_tornado},
    {"cost", .write = section_cost},
    {"assumptions", .write = section_assumptions},
    {"sources", .write = section_sources},
    {"provenance", .write = section_provenance},
    {"calibration", .write = section_calibration},
};

bool html_has_charts(void) {
    return asset_charts[0] != '\0';
}

static Status write_place(const void *what, const char *name, FILE *out, Error *error) {
    if (strcmp(name, "data") == 0) {
        return report_data(what, out, error);
    }
    const Place *place = TEXT_FIND(places, sizeof places / sizeof places[0], name, name);
    FAIL_WITH(!place, markup_no_place(name, error));
    place->write ? place->write(what, out) : (void)fputs(place->text, out);
    return STATUS_OK;
}

Status html_report(const void *what, FILE *out, Error *error) {
    const HtmlReport *report = what;
    return markup_page(asset_page, write_place, report, out, error);
}

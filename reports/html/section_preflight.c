// A preflight with as many ranks on this machine: its findings, and each collective next to what the profile predicts.
// Empty where none was made.

#include "autotune/run_record.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/schemas.h"

static void write_findings(const StoredPreflight *preflight, FILE *out) {
    if (preflight->finding_count == 0) {
        fputs("<p>No link is slow and no host deviates.</p>\n", out);
        return;
    }
    fputs("<ul>\n", out);
    for (int i = 0; i < preflight->finding_count; i++) {
        const StoredFinding *finding = &preflight->findings[i];
        fputs(finding->bad ? "<li><strong>wrong:</strong> " : "<li>note: ", out);
        markup_text(finding->sentence, out);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
}

void section_preflight(const HtmlReport *report, FILE *out) {
    const StoredPreflight *preflight = report->preflight;
    if (!preflight) {
        return;
    }
    fputs("<details id=\"preflight\"><summary>", out);
    markup_format(out, "Preflight of %d ranks: %s", preflight->world, preflight->ready ? "ready" : "not ready");
    fputs("</summary>\n<p>", out);
    markup_format(out, "%s on %s over %s, %s, %s.", preflight->mesh, preflight->hosts, preflight->transport,
                  preflight->device, preflight->checked_at);
    if (!report->preflight_of_best) {
        fputs(" The best shape has other groups: what is said of ranks and hosts holds for it, what is said of groups "
              "may not.",
              out);
    }
    fputs("</p>\n", out);
    write_findings(preflight, out);
    table_records("table-preflight", "Collectives on all groups at once, by the slowest rank", &schema_groups,
                  preflight->groups, preflight->group_count, out);
    fputs("</details>\n", out);
}

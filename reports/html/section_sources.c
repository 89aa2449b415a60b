// Where the numbers come from: the cluster profile with source and grade of each, and what made this page.

#include "autotune/predict/evidence.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

static void write_grades(const ClusterProfile *profile, FILE *out) {
    int counts[GRADE_COUNT] = {0};
    for (int i = 0; i < profile->provenance_count; i++) {
        counts[profile->provenance[i].grade]++;
    }
    fputs("<p>", out);
    markup_format(out, "%s: %s, nodes of %d", profile->name, profile->accelerator.name, profile->node.accelerators);
    if (profile->fabric.nics > 0) {
        markup_format(out, ", %d network ports of %.0f Gbit/s each", profile->fabric.nics,
                      8e-9 * profile->fabric.nic_bytes_per_s);
    }
    markup_format(out, "%s%s. Of %d numbers", profile->date ? "; as of " : "", profile->date ? profile->date : "",
                  profile->provenance_count);
    const char *comma = "";
    for (int grade = 0; grade < GRADE_COUNT; grade++) {
        if (counts[grade] > 0) {
            markup_format(out, "%s %d %s", comma, counts[grade], grade_name((Grade)grade));
            comma = ",";
        }
    }
    fputs(".</p>\n", out);
    if (profile->extends) {
        fputs("<p>", out);
        markup_format(out, "It extends the profile %s", profile->extends);
        markup_format(out, "%s%s.", profile->stack ? ", for " : "", profile->stack ? profile->stack : "");
        fputs("</p>\n", out);
    }
}

void section_sources(const HtmlReport *report, FILE *out) {
    const ClusterProfile *profile = &report->result->request->cluster;
    write_grades(profile, out);
    fputs("<details><summary>Every number with its source</summary>\n", out);
    table_records("table-sources", "The cluster profile", &schema_provenance, profile->provenance,
                  profile->provenance_count, out);
    fputs("</details>\n", out);
}

static void fact(const char *name, const char *value, FILE *out) {
    fputs("<dt>", out);
    markup_text(name, out);
    fputs("</dt><dd>", out);
    markup_text(value, out);
    fputs("</dd>\n", out);
}

void section_provenance(const HtmlReport *report, FILE *out) {
    const TuneRequest *request = report->result->request;
    Hash model = hash_begin(), cluster = hash_begin();
    model_hash(&request->model, &model);
    cluster_hash(&request->cluster, &cluster);
    fputs("<dl class=\"facts\">\n", out);
    fact("asked by", request->command, out);
    fact("this page again", report->again ? report->again : request->command, out);
    fact("model",
         arena_format(report->arena, "%s, %s parameters, hash %s", request->model.name,
                      text_count(UNIT_BUFFER, (double)model_parameters(&request->model)),
                      hash_hex(hash_end(&model), HASH_BUFFER)),
         out);
    fact("cluster",
         arena_format(report->arena, "%s, hash %s", request->cluster.name, hash_hex(hash_end(&cluster), HASH_BUFFER)),
         out);
    fact("target",
         arena_format(report->arena, "%s@%s; %s", request->target->name, request->target->version,
                      evidence_text(request, EVIDENCE_BUFFER)),
         out);
    fact("numbers made by", tune_engine_version(), out);
    fputs("</dl>\n", out);
}

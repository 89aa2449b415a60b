// A profile that was calibrated, or that states a target's numbers itself, has evidence of its own and says so.

#include "autotune/predict/evidence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

Evidence evidence_of(const Target *target, const ClusterProfile *cluster, int world) {
    const Framework *framework = evidence_framework(target);
    Evidence evidence = {0};
    for (const MeasuredChip *chip = framework ? framework->measured : NULL; chip && chip->accelerator; chip++) {
        evidence.runs += chip->runs;
        if (strcmp(chip->accelerator, cluster->accelerator.name) == 0) {
            evidence.here = chip;
            evidence.beyond = world > chip->largest_world;
        }
    }
    return evidence;
}

static bool has_own(const TuneRequest *request) {
    for (int i = 0; i < request->cluster.target_count; i++) {
        if (strncmp(request->cluster.targets[i].name, request->target->name, strlen(request->target->name)) == 0) {
            return true;
        }
    }
    return false;
}

// "off by 3 % in the middle", "predicted 29 % too fast"
static void say_bias(double error, double bias, char *out, size_t bytes) {
    const double percent = 100 * fabs(bias);
    if (percent < 1) {
        snprintf(out, bytes, "off by %.0f %% in the middle", 100 * error);
    } else {
        snprintf(out, bytes, "predicted %.0f %% too %s", percent, bias < 0 ? "fast" : "slow");
    }
}

static char *of_framework(const TuneRequest *request, char out[EVIDENCE_BYTES]) {
    const Target *target = request->target;
    const Evidence evidence = evidence_of(target, &request->cluster, request->world);
    const char *chip = request->cluster.accelerator.name;
    const bool none = strcmp(target->evidence, "unvalidated") == 0;
    if (has_own(request) || evidence.runs == 0) {
        snprintf(out, EVIDENCE_BYTES, none ? "no measured run of %s %s" : "%s", none ? target->name : target->evidence,
                 target->version);
        return out;
    }
    int used = none ? snprintf(out, EVIDENCE_BYTES, "no measured run of %s %s; %d of other versions", target->name,
                               target->version, evidence.runs)
                    : snprintf(out, EVIDENCE_BYTES, "%d published runs of %s", evidence.runs, target->name);
    if (!evidence.here) {
        snprintf(out + used, (size_t)(EVIDENCE_BYTES - used), ", none on %s", chip);
        return out;
    }
    char bias[64];
    say_bias(evidence.here->error, evidence.here->bias, bias, sizeof bias);
    snprintf(out + used, (size_t)(EVIDENCE_BYTES - used), ", %d of them on %s (up to %d ranks%s), there %s",
             evidence.here->runs, chip, evidence.here->largest_world,
             evidence.beyond ? "; the interval is wider beyond" : "", bias);
    return out;
}

static void of_experts(const Target *target, char *out, size_t bytes) {
    const Framework *framework = evidence_framework(target);
    const char *unpriced = target->axes & AXIS_BIT(AXIS_EP)
                               ? ""
                               : ", and experts spread over ranks (ep) are not predicted for this framework yet";
    if (!framework || framework->experts.runs == 0) {
        snprintf(out, bytes, "; none with experts: their part is a guess%s", unpriced);
        return;
    }
    char bias[64];
    say_bias(framework->experts.error, framework->experts.bias, bias, sizeof bias);
    snprintf(out, bytes, "; %d more with experts, %s%s", framework->experts.runs, bias, unpriced);
}

char *evidence_text(const TuneRequest *request, char out[EVIDENCE_BYTES]) {
    of_framework(request, out);
    if (request->model.experts.count > 0) {
        const size_t used = strlen(out);
        of_experts(request->target, out + used, EVIDENCE_BYTES - used);
    }
    return out;
}

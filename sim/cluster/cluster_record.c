// Where the numbers of a profile come from, after a program has changed them: a fit scales many fields at once, and
// each must say so.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/text.h"
#include "sim/cluster/cluster_fields.h"

// Six digits are far below what a fit knows and keep a file readable.
static double rounded(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    return strtod(text, NULL);
}

const Provenance *cluster_provenance(const ClusterProfile *profile, const char *path) {
    return TEXT_FIND(profile->provenance, profile->provenance_count, path, path);
}

static bool same_curve(const MeasuredCurve *a, const MeasuredCurve *b) {
    return a->count == b->count && memcmp(a->seconds, b->seconds, (size_t)a->count * sizeof *a->seconds) == 0 &&
           memcmp(a->bytes, b->bytes, (size_t)a->count * sizeof *a->bytes) == 0;
}

static Provenance products_row(const ClusterProfile *profile, const ClusterProfile *before, const char *source,
                               Grade grade) {
    const Accelerator *now = &profile->accelerator, *then = &before->accelerator;
    const Provenance *old = cluster_provenance(before, CLUSTER_PRODUCTS_PATH);
    bool kept = old && now->product_count == then->product_count;
    for (int i = 0; kept && i < now->product_count; i++) {
        kept = memcmp(&now->products[i].seconds, &then->products[i].seconds, sizeof(double)) == 0;
    }
    return kept ? *old
                : (Provenance){
                      .path = CLUSTER_PRODUCTS_PATH, .value = now->product_count, .source = source, .grade = grade};
}

void cluster_record(ClusterProfile *profile, const ClusterProfile *before, const char *source, Grade grade,
                    Arena *arena) {
    const ClusterSlots slots = cluster_slots(profile, cluster_dtypes(profile), arena);
    const int count = slots.count + profile->curve_count + cluster_product_rows(profile);
    Provenance *rows = ARENA_ARRAY(arena, Provenance, count);
    for (int i = 0; i < slots.count; i++) {
        const ClusterSlot *slot = &slots.rows[i];
        const Provenance *old = cluster_provenance(before, slot->path);
        double value = cluster_slot_value(slot);
        if (old && !(value < old->value || value > old->value)) {
            rows[i] = *old;
            continue;
        }
        value = slot->field->type == FIELD_INTEGER ? value
                                                   : fmin(fmax(rounded(value), slot->field->low), slot->field->high);
        cluster_slot_store(slot, value);
        rows[i] = (Provenance){.path = slot->path, .value = value, .source = source, .grade = grade};
    }
    for (int i = 0; i < profile->curve_count; i++) {
        const char *path = cluster_curve_path(&profile->curves[i], arena);
        const Provenance *old = cluster_provenance(before, path);
        const bool kept = old && i < before->curve_count && same_curve(&profile->curves[i], &before->curves[i]);
        rows[slots.count + i] =
            kept ? *old
                 : (Provenance){.path = path, .value = profile->curves[i].count, .source = source, .grade = grade};
    }
    if (cluster_product_rows(profile)) {
        rows[count - 1] = products_row(profile, before, source, grade);
    }
    profile->provenance = rows;
    profile->provenance_count = count;
}

// The field table of a cluster profile: the path, place, unit and range of every number. Reader, writer, --set,
// provenance and hash all walk the same list of slots. Private to sim/cluster and its tests.

#pragma once

#include "sim/base/json.h"
#include "sim/cluster/cluster.h"

typedef enum { FIELD_NUMBER, FIELD_INTEGER } FieldType;

// OPTIONAL: in a hash of their own. WHAT_IF: optional, and hashed where it is not 0.
typedef enum { FIELD_REQUIRED, FIELD_OPTIONAL, FIELD_WHAT_IF } FieldNeed;

typedef struct ClusterField {
    const char *path;  // below its section
    size_t offset;     // in ClusterProfile, GemmRate or AttentionRate
    FieldType type;
    const char *unit;  // "bytes", "bytes/s", "s", "flop/s", "W", "usd/h", "1"
    double low, high;  // inclusive
    FieldNeed need;    // optional: 0 where a file omits it, such as files older than the field
} ClusterField;

// A field of one profile: the table row and where its value is.
typedef struct ClusterSlot {
    const char *path;  // whole path, in the arena
    const ClusterField *field;
    void *place;
} ClusterSlot;

typedef struct ClusterSlots {
    ClusterSlot *rows;
    int count;
} ClusterSlots;

typedef struct ClusterText {
    const char *path;
    const char *what;  // for the error of an empty one
} ClusterText;

enum { CLUSTER_TEXT_COUNT = 7 };
extern const ClusterText cluster_texts[CLUSTER_TEXT_COUNT];  // "schema", "name", ... in file order

#define CLUSTER_SCHEMA "ndtune.cluster/1"

extern const char *const device_class_names[DEVICE_CLASS_COUNT];  // "gpu" "cpu"

// Every slot of a profile that has GEMM rates for the dtypes of the mask (bit 1 << dtype), its attention_count kernels
// and its group_count groups.
ClusterSlots cluster_slots(ClusterProfile *profile, unsigned dtypes, Arena *arena);

// The dtypes that the profile supports: those with a peak rate.
unsigned cluster_dtypes(const ClusterProfile *profile);

// Sorts what a file lists by key, where the order has no meaning: attention kernels, targets.
void cluster_order(ClusterProfile *profile);

double cluster_slot_value(const ClusterSlot *slot);
void cluster_slot_store(const ClusterSlot *slot, double value);

// Stores a number of that path with its source and grade; nothing is checked or dropped.
void cluster_put(ClusterProfile *profile, const char *path, double value, const Provenance *origin, Arena *arena);

// Checks across fields: sustained within peak, a fabric that is whole or absent (cluster_check.c).
Status cluster_check(const ClusterProfile *profile, Error *error);

// Reads a parsed profile file; origin names it in errors.
Status cluster_read(json_t *root, const char *origin, Arena *arena, ClusterProfile *profile, Error *error);

// The profile file with everything that it inherits: a new reference, the file's own tree where it extends nothing.
Status cluster_extend(json_t *root, const char *origin, Arena *arena, json_t **whole, Error *error);

// Measured curves (cluster_curves.c): reading the section, the path of one ("curves.all_reduce-2x8") and its points.
Status cluster_curves_read(const JsonReader *root, Arena *arena, ClusterProfile *profile, Error *error);
const char *cluster_curve_path(const MeasuredCurve *curve, Arena *arena);
json_t *cluster_curve_points(const MeasuredCurve *curve);

// Timed products (cluster_products.c): reading the section, its points, and its one row of provenance, the last.
#define CLUSTER_PRODUCTS_PATH "products"
Status cluster_products_read(const JsonReader *root, Arena *arena, ClusterProfile *profile, Error *error);
json_t *cluster_products_points(const Accelerator *accelerator, Arena *arena);
void cluster_products_drop(ClusterProfile *profile);
const char *cluster_product_text(const TimedGemm *product, Arena *arena);
static inline int cluster_product_rows(const ClusterProfile *profile) {
    return profile->accelerator.product_count > 0;
}

// The section "calibration" (cluster_calibration.c); absent: NULL.
Status cluster_calibration_read(const JsonReader *root, Arena *arena, ClusterProfile *profile, Error *error);
json_t *cluster_calibration_json(const ClusterCalibration *calibration);

typedef struct EmbeddedProfile {
    const char *name;
    const char *text;  // NUL-terminated JSON
} EmbeddedProfile;

// Generated from cluster-profiles/*.json at build time.
extern const EmbeddedProfile embedded_profiles[];
extern const char *const embedded_profile_names[];
extern const int embedded_profile_count;

// The path that a short name of --set stands for, "node.accelerators" for "node.gpus"; NULL.
const char *cluster_short_name(const char *key);

// Measured curves of a profile: "curves": {"all_reduce-2x8": {"points": [[bytes, seconds], ...], "source", "grade"}},
// the key being collective-NODESxRANKS_PER_NODE. Points ascend in bytes and never in time descend, so a larger message
// is never cheaper; holes of a protocol switch are therefore written as the level they rise to.

#include <stdlib.h>
#include <string.h>

#include "sim/base/text.h"
#include "sim/cluster/cluster_fields.h"

static const char *const curve_kind_names[CURVE_KIND_COUNT] = {"all_gather", "reduce_scatter", "all_reduce",
                                                               "send_recv", "all_to_all"};

enum { MAX_NODES = 1 << 20, MAX_PER_NODE = 1024, MAX_POINTS = 4096 };
static const double bytes_high = 1e15, seconds_high = 1e6;

// "2x8", both of them counts.
static bool parse_shape(const char *text, MeasuredCurve *curve) {
    char nodes_text[16];
    const char *cross = strchr(text, 'x');
    const size_t length = cross ? (size_t)(cross - text) : 0;
    int64_t nodes = 0, per_node = 0;
    if (length == 0 || length >= sizeof nodes_text) {
        return false;
    }
    memcpy(nodes_text, text, length);
    nodes_text[length] = '\0';
    if (!text_parse_int(nodes_text, &nodes) || !text_parse_int(cross + 1, &per_node) || nodes < 1 ||
        nodes > MAX_NODES || per_node < 1 || per_node > MAX_PER_NODE || nodes * per_node < 2) {
        return false;
    }
    curve->nodes = (int)nodes;
    curve->per_node = (int)per_node;
    return true;
}

static bool parse_key(const char *key, MeasuredCurve *curve) {
    for (int kind = 0; kind < CURVE_KIND_COUNT; kind++) {
        const size_t length = strlen(curve_kind_names[kind]);
        if (strncmp(key, curve_kind_names[kind], length) == 0 && key[length] == '-') {
            curve->kind = (CurveKind)kind;
            return parse_shape(key + length + 1, curve);
        }
    }
    return false;
}

static bool number_within(const json_t *value, double high, double *out) {
    *out = json_number_value(value);
    return json_is_number(value) && *out >= TEXT_LEAST_NUMBER && *out <= high;
}

static Status read_points(const JsonReader *at, MeasuredCurve *curve, Arena *arena, Error *error) {
    const json_t *points = json_object_get(at->object, "points");
    const size_t count = json_array_size(points);
    JSON_FAIL_IF(count < 2 || count > MAX_POINTS, at, "points", error,
                 "must be a list of 2 to %d pairs [bytes, seconds]", MAX_POINTS);
    double *bytes = ARENA_ARRAY(arena, double, count), *seconds = ARENA_ARRAY(arena, double, count);
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(points, i);
        JSON_FAIL_IF(json_array_size(pair) != 2 || !number_within(json_array_get(pair, 0), bytes_high, &bytes[i]) ||
                         !number_within(json_array_get(pair, 1), seconds_high, &seconds[i]),
                     at, "points", error, "pair %zu must be [bytes, seconds], both above 0 and at most %g and %g",
                     i + 1, bytes_high, seconds_high);
        JSON_FAIL_IF(i > 0 && (bytes[i] <= bytes[i - 1] || seconds[i] < seconds[i - 1]), at, "points", error,
                     "pair %zu: bytes must ascend and seconds must not descend, got "
                     "[%.10g, %.10g] after [%.10g, %.10g]",
                     i + 1, bytes[i], seconds[i], bytes[i - 1], seconds[i - 1]);
    }
    curve->count = (int)count;
    curve->bytes = bytes;
    curve->seconds = seconds;
    return STATUS_OK;
}

// An order of their own (cluster_order.c): that of polaris.json, whose hash stores hold.
static int by_kind_and_shape(const void *a, const void *b) {
    const MeasuredCurve *left = a, *right = b;
    return left->kind != right->kind     ? (int)right->kind - (int)left->kind
           : left->nodes != right->nodes ? left->nodes - right->nodes
                                         : left->per_node - right->per_node;
}

Status cluster_curves_read(const JsonReader *root, Arena *arena, ClusterProfile *profile, Error *error) {
    json_t *section = json_object_get(root->object, "curves");
    if (!section) {
        return STATUS_OK;
    }
    JSON_FAIL_IF(!json_is_object(section), root, "curves", error, "must be an object");
    MeasuredCurve *curves = ARENA_ARRAY(arena, MeasuredCurve, json_object_size(section));
    const char *key;
    json_t *value;
    json_object_foreach(section, key, value) {
        MeasuredCurve *curve = &curves[profile->curve_count];
        const JsonReader at = {
            .origin = root->origin, .path = arena_format(arena, "curves.%.80s", key), .object = value};
        JSON_FAIL_IF(!parse_key(key, curve), &at, "", error,
                     "curves are named collective-NODESxRANKS_PER_NODE, such as all_reduce-2x8; collectives "
                     "are all_gather, reduce_scatter, all_reduce, send_recv and all_to_all");
        JSON_FAIL_IF(!json_is_object(value), &at, "", error, "must be an object with points, source and grade");
        TRY(read_points(&at, curve, arena, error));
        profile->curve_count++;
    }
    qsort(curves, (size_t)profile->curve_count, sizeof *curves, by_kind_and_shape);
    profile->curves = curves;
    return STATUS_OK;
}

const char *cluster_curve_path(const MeasuredCurve *curve, Arena *arena) {
    return arena_format(arena, "curves.%s-%dx%d", curve_kind_names[curve->kind], curve->nodes, curve->per_node);
}

json_t *cluster_curve_points(const MeasuredCurve *curve) {
    json_t *points = json_array();
    for (int i = 0; i < curve->count; i++) {
        json_array_append_new(points, json_pack("[f, f]", curve->bytes[i], curve->seconds[i]));
    }
    return points;
}

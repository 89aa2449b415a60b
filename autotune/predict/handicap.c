// "rank.N.slowdown", "rank.N.link_slowdown" and likewise for node.N (all ranks of one node) become factors per rank.
// link_slowdown is that of every collective that the rank is in, inside its node too: which cable is slow is not
// modelled.

#include "autotune/predict/handicap.h"

#include <string.h>

#include "sim/base/text.h"
#include "sim/cost/cost.h"

static const double LARGEST = 1000;  // beyond it a rank is not slow but gone
enum { NUMBER_BYTES = 16 };

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

bool handicap_named(const char *assignment) {
    const bool of_node = starts_with(assignment, "node.");
    const char first = assignment[of_node ? 5 : 0];
    const bool numbered = (first >= '0' && first <= '9') || first == '-';
    return starts_with(assignment, "rank.") || starts_with(assignment, "link.") || (of_node && numbered);
}

static Status parse_index(const char *text, size_t length, Handicap *handicap, Error *error) {
    char number[NUMBER_BYTES] = "";
    int64_t index = -1;
    memcpy(number, text, length < NUMBER_BYTES ? length : 0);
    const bool number_read = text_parse_int(number, &index);
    FAIL_IF(!number_read || index < 0 || index >= MESH_MAX_WORLD, error, STATUS_USAGE,
            "%.*s is not the number of a %s; they count from 0", (int)length, text,
            handicap->of_node ? "node" : "rank");
    handicap->index = (int)index;
    return STATUS_OK;
}

static Status parse_factor(const char *key, size_t key_length, const char *text, Handicap *handicap, Error *error) {
    const bool number_read = text_parse_double(text, &handicap->factor);
    FAIL_IF(!number_read || !(handicap->factor >= 1 && handicap->factor <= LARGEST), error, STATUS_USAGE,
            "%.*s must be a number from 1 (as fast as the others) to %g, not %s", (int)key_length, key, LARGEST,
            text[0] ? text : "nothing");
    return STATUS_OK;
}

Status handicap_parse(const char *assignment, Handicap *handicap, Error *error) {
    *handicap = (Handicap){.of_node = starts_with(assignment, "node.")};
    FAIL_IF(starts_with(assignment, "link."), error, STATUS_USAGE,
            "\"%s\": links have no numbers; slow ones are those of a rank or a node: "
            "rank.N.link_slowdown=FACTOR or node.N.link_slowdown=FACTOR",
            assignment);
    const char *index = assignment + 5;
    const char *equals = strchr(assignment, '=');
    const char *dot = strchr(index, '.');
    FAIL_IF(!equals || !dot || dot > equals, error, STATUS_USAGE,
            "\"%s\" must be %.4s.N.slowdown=FACTOR or %.4s.N.link_slowdown=FACTOR", assignment, assignment, assignment);
    TRY(parse_index(index, (size_t)(dot - index), handicap, error));
    const char *property = dot + 1;
    handicap->of_links = starts_with(property, "link_slowdown=");
    FAIL_IF(!handicap->of_links && !starts_with(property, "slowdown="), error, STATUS_USAGE,
            "a %s has no \"%.*s\"; it has slowdown and link_slowdown", handicap->of_node ? "node" : "rank",
            (int)(equals - property), property);
    return parse_factor(assignment, (size_t)(equals - assignment), equals + 1, handicap, error);
}

static int ranks_per_node(const TuneRequest *request) {
    Mesh flat = mesh_of_one();
    flat.size[AXIS_DP_SHARD] = request->world;
    return cost_ranks_per_node(&request->cluster, &flat);
}

Status handicap_check(const Handicap *handicap, const TuneRequest *request, Error *error) {
    const int per_node = ranks_per_node(request);
    const int count = handicap->of_node ? (request->world + per_node - 1) / per_node : request->world;
    if (handicap->index < count) {
        return STATUS_OK;
    }
    const char *what = handicap->of_node ? "node" : "rank";
    return error_set(error, STATUS_USAGE, "there is no %s %d: a world of %d has %d %s%s, counted from 0", what,
                     handicap->index, request->world, count, what, count == 1 ? "" : "s");
}

const char *handicap_text(const Handicap *handicap, Arena *arena) {
    if (handicap->of_links) {
        return arena_format(arena, "what if: collectives with %s %d take %g times as long",
                            handicap->of_node ? "a rank of node" : "rank", handicap->index, handicap->factor);
    }
    return arena_format(arena, "what if: %s %d computes %g times as long",
                        handicap->of_node ? "each rank of node" : "rank", handicap->index, handicap->factor);
}

const float *handicap_factors(const TuneRequest *request, bool of_links, Arena *arena) {
    const int per_node = ranks_per_node(request);
    float *factors = NULL;
    for (int i = 0; i < request->handicap_count; i++) {
        const Handicap *handicap = &request->handicaps[i];
        if (handicap->of_links != of_links) {
            continue;
        }
        if (!factors) {
            factors = ARENA_ARRAY(arena, float, request->world);
            for (int rank = 0; rank < request->world; rank++) {
                factors[rank] = 1;
            }
        }
        const int width = handicap->of_node ? per_node : 1;
        const int first = handicap->index * width;
        for (int rank = first; rank < first + width && rank < request->world; rank++) {
            factors[rank] = (float)handicap->factor;
        }
    }
    return factors;
}

void handicap_hash(const TuneRequest *request, Hash *hash) {
    for (int i = 0; i < request->handicap_count; i++) {
        const Handicap *handicap = &request->handicaps[i];
        hash_text(hash, "handicap");
        hash_int(hash, handicap->of_node);
        hash_int(hash, handicap->of_links);
        hash_int(hash, handicap->index);
        hash_double(hash, handicap->factor);
    }
}

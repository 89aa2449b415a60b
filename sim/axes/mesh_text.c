// A mesh as text: "dp_shard=8,tp=2" and the axes of a group.

#include <stdio.h>
#include <string.h>

#include "sim/axes/mesh.h"
#include "sim/base/text.h"

static char *sizes_text(const Mesh *mesh, AxisMask axes, char out[MESH_TEXT_BYTES]) {
    size_t used = 0;
    out[0] = '\0';
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (axes & AXIS_BIT(axis)) {
            used = text_put(out, MESH_TEXT_BYTES, used, used > 0 ? "," : "");
            used = text_put(out, MESH_TEXT_BYTES, used, axis_names[axis]);
            used = text_put(out, MESH_TEXT_BYTES, used, "=");
            used = text_put_int(out, MESH_TEXT_BYTES, used, mesh->size[axis]);
        }
    }
    return out;
}

char *mesh_text(const Mesh *mesh, char out[MESH_TEXT_BYTES]) {
    return sizes_text(mesh, mesh_named_axes(mesh), out);
}

char *mesh_short_text(const Mesh *mesh, char out[MESH_TEXT_BYTES]) {
    const AxisMask real = mesh_real_axes(mesh, AXIS_ALL);
    return sizes_text(mesh, real ? real : AXIS_BIT(AXIS_DP_SHARD), out);
}

char *mesh_coordinates_text(const Mesh *mesh, const MeshCoordinates *at, char out[MESH_TEXT_BYTES]) {
    const AxisMask named = mesh_named_axes(mesh);
    int used = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (named & AXIS_BIT(axis)) {
            used += snprintf(out + used, (size_t)(MESH_TEXT_BYTES - used), "%s%s %d", used > 0 ? ", " : "",
                             axis_names[axis], at->at[axis]);
        }
    }
    return out;
}

static Status unknown_axis(const char *word, const char *text, Error *error) {
    const Status status = error_set(error, STATUS_USAGE, "mesh \"%s\": unknown axis \"%s\"; axes are %s", text, word,
                                    axes_text(AXIS_ALL, ", ", AXES_BUFFER));
    const char *known = axis_called(word);
    if (known) {
        return error_hint(error, "%s", known);
    }
    const char *nearest = text_nearest(word, axis_names, AXIS_COUNT);
    return nearest ? error_hint(error, "did you mean %s?", nearest) : status;
}

// One "axis=size" word.
static Status parse_axis(char *word, const char *text, Mesh *mesh, bool seen[AXIS_COUNT], Error *error) {
    char *equals = strchr(word, '=');
    if (!equals) {
        error_set(error, STATUS_USAGE, "mesh \"%s\": \"%s\" must be axis=size, such as tp=8", text, word);
        int slow, fast;
        char by;
        return sscanf(word, "%d%c%d", &slow, &by, &fast) == 3 && (by == 'x' || by == 'X' || by == '*')
                   ? error_hint(error, "8x4 may be dp_shard=8,tp=4 or dp_replicate=8,dp_shard=4")
                   : STATUS_USAGE;
    }
    *equals = '\0';
    const Axis axis = axis_find(word);
    if (axis == AXIS_COUNT) {
        return unknown_axis(word, text, error);
    }
    int64_t size = 0;
    FAIL_IF(!text_parse_int(equals + 1, &size) || size < 1 || size > MESH_MAX_WORLD, error, STATUS_USAGE,
            "mesh \"%s\": %s must be a whole number from 1 to %d, got \"%s\"", text, axis_names[axis], MESH_MAX_WORLD,
            equals + 1);
    FAIL_IF(seen[axis], error, STATUS_USAGE, "mesh \"%s\": %s is given twice", text, axis_names[axis]);
    seen[axis] = true;
    mesh->size[axis] = (int)size;
    return STATUS_OK;
}

// "1, 2, 4": the sizes that a borrowed axis can have.
static const char *lendable(const Mesh *mesh, int axis, char *out, size_t bytes) {
    const int most = mesh_group_size(mesh, axis_lenders[axis]);
    size_t used = 0;
    for (int size = 1; size <= most && used < bytes; size++) {
        if (mesh_lends_ranks(mesh, axis_lenders[axis], size)) {
            used += (size_t)snprintf(out + used, bytes - used, "%s%d", used > 0 ? ", " : "", size);
        }
    }
    return out;
}

static Status check_borrowed(const Mesh *mesh, const char *text, Error *error) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        Mesh alone = *mesh;  // with no other borrowed axis, so that the one at fault is named
        for (int other = 0; other < AXIS_COUNT; other++) {
            alone.size[other] = other == axis || (AXES_OWN & AXIS_BIT(other)) ? alone.size[other] : 1;
        }
        FAIL_IF((AXES_BORROWED & AXIS_BIT(axis)) && !mesh_lends_evenly(&alone), error, STATUS_USAGE,
                "mesh \"%s\": %s=%d must divide the ranks that it is taken from: use %s %s", text, axis_names[axis],
                mesh->size[axis], axis_names[axis], lendable(&alone, axis, (char[128]){0}, 128));
    }
    return STATUS_OK;
}

Status mesh_parse(const char *text, Mesh *mesh, Error *error) {
    Mesh parsed = mesh_of_one();
    bool seen[AXIS_COUNT] = {false};
    char words[4 * MESH_TEXT_BYTES];
    const size_t length = strlen(text);
    FAIL_IF(length == 0 || length >= sizeof words, error, STATUS_USAGE,
            "mesh \"%.60s\": must be a list such as dp_shard=8,tp=2", text);
    memcpy(words, text, length + 1);
    for (char *word = words; word;) {
        char *comma = strchr(word, ',');
        if (comma) {
            *comma = '\0';
        }
        TRY(parse_axis(word, text, &parsed, seen, error));
        word = comma ? comma + 1 : NULL;
    }
    int64_t world = 1;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        world *= mesh_extent(&parsed, (Axis)axis);
        FAIL_IF(world > MESH_MAX_WORLD, error, STATUS_USAGE, "mesh \"%s\": more than %d ranks", text, MESH_MAX_WORLD);
    }
    TRY(check_borrowed(&parsed, text, error));
    *mesh = parsed;
    return STATUS_OK;
}

const char *mesh_axes_words(AxisMask axes, Arena *arena) {
    return arena_text(arena, axes_text(axes, " x ", AXES_BUFFER));
}

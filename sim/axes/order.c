// The order of the mesh's dimensions. Which orders a framework can run is the target's matter (sim/plan).

#include <stdio.h>
#include <string.h>

#include "sim/axes/mesh.h"
#include "sim/base/text.h"

static AxisOrder axis_order(const Axis slow_to_fast[AXIS_COUNT]) {
    AxisOrder order;
    for (int place = 0; place < AXIS_COUNT; place++) {
        order.shift[place] = (uint8_t)(((int)slow_to_fast[place] + AXIS_COUNT - place) % AXIS_COUNT);
    }
    return order;
}

// The next permutation in lexicographic order; after the last the first, and false.
static bool next_permutation(Axis *axes, int count) {
    int pivot = count - 2;
    while (pivot >= 0 && axes[pivot] >= axes[pivot + 1]) {
        pivot--;
    }
    for (int low = pivot + 1, high = count - 1; low < high; low++, high--) {
        const Axis kept = axes[low];
        axes[low] = axes[high];
        axes[high] = kept;
    }
    if (pivot < 0) {
        return false;
    }
    int other = pivot + 1;
    while (axes[other] < axes[pivot]) {
        other++;
    }
    const Axis kept = axes[pivot];
    axes[pivot] = axes[other];
    axes[other] = kept;
    return true;
}

// Axes larger than 1 as the mesh orders them; how many.
static int real_order(const Mesh *mesh, Axis slow_to_fast[AXIS_COUNT]) {
    int count = 0;
    for (int place = 0; place < AXIS_COUNT; place++) {
        const Axis axis = mesh_axis_at(mesh, place);
        if (mesh_extent(mesh, axis) > 1) {
            slow_to_fast[count++] = axis;
        }
    }
    return count;
}

// Lays the axes larger than 1 over their default places; the others are in theirs.
static void set_order(Mesh *mesh, const Axis real[AXIS_COUNT]) {
    Axis slow_to_fast[AXIS_COUNT];
    int next = 0;
    for (int place = 0; place < AXIS_COUNT; place++) {
        slow_to_fast[place] = mesh_extent(mesh, (Axis)place) > 1 ? real[next++] : (Axis)place;
    }
    mesh->order = axis_order(slow_to_fast);
}

bool mesh_next_order(Mesh *mesh) {
    Axis real[AXIS_COUNT];
    const int count = real_order(mesh, real);
    const bool another = next_permutation(real, count);
    set_order(mesh, real);
    return another;
}

static bool is_default(const AxisOrder *order) {
    const AxisOrder usual = {{0}};
    return memcmp(order, &usual, sizeof usual) == 0;
}

void mesh_canonical_order(Mesh *mesh) {
    if (is_default(&mesh->order)) {
        return;
    }
    Axis real[AXIS_COUNT];
    real_order(mesh, real);
    set_order(mesh, real);
}

void axis_order_hash(const AxisOrder *order, Hash *hash) {
    const Mesh mesh = {.order = *order};
    for (int place = 0; place < AXIS_COUNT; place++) {
        const Axis axis = mesh_axis_at(&mesh, place);
        if ((AXES_FIRST & AXIS_BIT(axis)) || (int)axis != place) {
            hash_int(hash, axis_rows[axis]->number);
        }
    }
}

bool mesh_has_default_order(const Mesh *mesh) {
    Mesh canonical = *mesh;
    mesh_canonical_order(&canonical);
    return is_default(&canonical.order);
}

bool mesh_same_shape(const Mesh *a, const Mesh *b) {
    return memcmp(a->size, b->size, sizeof a->size) == 0;
}

char *mesh_order_text(const Mesh *mesh, char out[MESH_TEXT_BYTES]) {
    if (mesh_has_default_order(mesh)) {
        snprintf(out, MESH_TEXT_BYTES, "default");
        return out;
    }
    out[0] = '\0';
    for (int place = 0; place < AXIS_COUNT; place++) {
        const Axis axis = mesh_axis_at(mesh, place);
        if (mesh_extent(mesh, axis) > 1) {
            const size_t used = strlen(out);
            snprintf(out + used, MESH_TEXT_BYTES - used, "%s%s", used ? "," : "", axis_names[axis]);
        }
    }
    return out;
}

// The axes of the list, slow to fast; how many, or -1 with the error set.
static int parse_list(const char *text, Axis named[AXIS_COUNT], Error *error) {
    char words[2 * MESH_TEXT_BYTES];
    snprintf(words, sizeof words, "%s", text);
    int count = 0;
    for (char *word = words; word;) {
        char *comma = strchr(word, ',');
        if (comma) {
            *comma = '\0';
        }
        const Axis axis = axis_find(word);
        if (axis == AXIS_COUNT) {
            error_set(
                error, STATUS_USAGE,
                "rank order \"%.80s\": unknown axis \"%.40s\"; it is \"default\" or a list of %s from slow to fast",
                text, word, axes_text(AXIS_ALL, ", ", AXES_BUFFER));
            const char *called = axis_called(word), *nearest = text_nearest(word, axis_names, AXIS_COUNT);
            if (called) {
                error_hint(error, "%s", called);
            } else if (nearest) {
                error_hint(error, "did you mean %s?", nearest);
            }
            return -1;
        }
        for (int i = 0; i < count; i++) {
            if (named[i] == axis) {
                error_set(error, STATUS_USAGE, "rank order \"%.80s\": %s is named twice", text, axis_names[axis]);
                return -1;
            }
        }
        named[count++] = axis;
        word = comma ? comma + 1 : NULL;
    }
    return count;
}

Status axis_order_parse(const char *text, AxisOrder *order, Error *error) {
    *order = (AxisOrder){{0}};
    if (text_same_word(text, "default")) {
        return STATUS_OK;
    }
    Axis named[AXIS_COUNT], slow_to_fast[AXIS_COUNT];
    const int count = parse_list(text, named, error);
    if (count < 0) {
        return error->status;
    }
    int place = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        bool is_named = false;
        for (int i = 0; i < count; i++) {
            is_named = is_named || named[i] == (Axis)axis;
        }
        if (!is_named) {
            slow_to_fast[place++] = (Axis)axis;
        }
    }
    memcpy(slow_to_fast + place, named, (size_t)count * sizeof *named);
    *order = axis_order(slow_to_fast);
    return STATUS_OK;
}

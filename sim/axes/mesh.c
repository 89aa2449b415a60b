// Rank arithmetic of the mesh. Row-major with dp_replicate slowest and tp fastest, as torch's init_device_mesh and
// Megatron's default order place ranks, or with the axes in another order. Every function is a loop over the places of
// the axes; a new axis is a new row.

#include "sim/axes/mesh.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/text.h"

const char *const axis_names[AXIS_COUNT] = {"dp_replicate", "dp_shard", "cp", "tp"};

int mesh_world(const Mesh *mesh) {
    int world = 1;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        world *= mesh->size[axis];
    }
    return world;
}

MeshCoordinates mesh_coordinates(const Mesh *mesh, int rank) {
    MeshCoordinates at;
    for (int place = AXIS_COUNT - 1; place >= 0; place--) {
        const Axis axis = mesh_axis_at(mesh, place);
        at.at[axis] = rank % mesh->size[axis];
        rank /= mesh->size[axis];
    }
    return at;
}

int mesh_rank(const Mesh *mesh, const MeshCoordinates *at) {
    int rank = 0;
    for (int place = 0; place < AXIS_COUNT; place++) {
        const Axis axis = mesh_axis_at(mesh, place);
        rank = rank * mesh->size[axis] + at->at[axis];
    }
    return rank;
}

int mesh_group_size(const Mesh *mesh, AxisMask mask) {
    int size = 1;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        size *= mask & AXIS_BIT(axis) ? mesh->size[axis] : 1;
    }
    return size;
}

int mesh_group_index(const Mesh *mesh, AxisMask mask, const MeshCoordinates *at) {
    int index = 0;
    for (int place = 0; place < AXIS_COUNT; place++) {
        const Axis axis = mesh_axis_at(mesh, place);
        index = mask & AXIS_BIT(axis) ? index * mesh->size[axis] + at->at[axis] : index;
    }
    return index;
}

int mesh_group_member(const Mesh *mesh, AxisMask mask, const MeshCoordinates *at, int index) {
    MeshCoordinates member = *at;
    for (int place = AXIS_COUNT - 1; place >= 0; place--) {
        const Axis axis = mesh_axis_at(mesh, place);
        if (mask & AXIS_BIT(axis)) {
            member.at[axis] = index % mesh->size[axis];
            index /= mesh->size[axis];
        }
    }
    return mesh_rank(mesh, &member);
}

// Splits `rest` over the axes from `axis` on, smallest sizes of the slow axes first.
static int enumerate_axes(int rest, int axis, Mesh mesh, Mesh *meshes, int capacity, int count) {
    if (axis == AXIS_COUNT - 1) {
        mesh.size[axis] = rest;
        if (count < capacity) {
            meshes[count] = mesh;
        }
        return count + 1;
    }
    for (int size = 1; size <= rest; size++) {
        if (rest % size == 0) {
            mesh.size[axis] = size;
            count = enumerate_axes(rest / size, axis + 1, mesh, meshes, capacity, count);
        }
    }
    return count;
}

int mesh_enumerate(int world, Mesh *meshes, int capacity) {
    return enumerate_axes(world, 0, (Mesh){.size = {1, 1, 1, 1}}, meshes, capacity, 0);
}

char *mesh_text(const Mesh *mesh, char out[MESH_TEXT_BYTES]) {
    int used = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        used += snprintf(out + used, (size_t)(MESH_TEXT_BYTES - used), "%s%s=%d", axis == 0 ? "" : ",",
                         axis_names[axis], mesh->size[axis]);
    }
    return out;
}

char *mesh_short_text(const Mesh *mesh, char out[MESH_TEXT_BYTES]) {
    int used = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (mesh->size[axis] > 1) {
            used += snprintf(out + used, (size_t)(MESH_TEXT_BYTES - used), "%s%s=%d", used > 0 ? "," : "",
                             axis_names[axis], mesh->size[axis]);
        }
    }
    if (used == 0) {
        snprintf(out, MESH_TEXT_BYTES, "dp_shard=1");
    }
    return out;
}

// What other tools call the axes, and what is none of them.
static const TextSynonym axis_synonyms[] = {
    {"dp", "data parallelism is dp_shard (parameters sharded, FSDP) or dp_replicate (whole copies, DDP)"},
    {"ddp", "whole copies are dp_replicate"},
    {"replicate", "did you mean dp_replicate?"},
    {"fsdp", "the axis that FSDP shards over is dp_shard"},
    {"shard", "did you mean dp_shard?"},
    {"zero", "the axis that ZeRO shards over is dp_shard; its stage is --zero"},
    {"hsdp", "hybrid sharding is dp_replicate with dp_shard"},
    {"tensor", "did you mean tp?"},
    {"context", "did you mean cp?"},
    {"sp", "sequence parallelism goes with tp where the target has it; long sequences are cut by cp"},
    {"ulysses", "sequences are cut by cp; Ulysses is not predicted yet"},
    {"pp", "pipeline parallelism is not predicted yet"},
    {"ep", "expert parallelism is not predicted yet"},
};

static Status unknown_axis(const char *word, const char *text, Error *error) {
    const Status status = error_set(
        error, STATUS_USAGE, "mesh \"%s\": unknown axis \"%s\"; axes are dp_replicate, dp_shard, cp, tp", text, word);
    const char *known = text_synonym(word, axis_synonyms, sizeof axis_synonyms / sizeof axis_synonyms[0]);
    if (known) {
        return error_hint(error, "%s", known);
    }
    const char *nearest = text_nearest(word, axis_names, AXIS_COUNT);
    return nearest ? error_hint(error, "did you mean %s?", nearest) : status;
}

Axis axis_find(const char *word) {
    int axis = 0;
    while (axis < AXIS_COUNT && !text_same_word(word, axis_names[axis])) {
        axis++;
    }
    return (Axis)axis;
}

// One "axis=size" word.
static Status parse_axis(char *word, const char *text, Mesh *mesh, bool seen[AXIS_COUNT], Error *error) {
    char *equals = strchr(word, '=');
    if (!equals) {
        return error_set(error, STATUS_USAGE, "mesh \"%s\": \"%s\" must be axis=size, such as tp=8", text, word);
    }
    *equals = '\0';
    const Axis axis = axis_find(word);
    if (axis == AXIS_COUNT) {
        return unknown_axis(word, text, error);
    }
    int64_t size = 0;
    if (!text_parse_int(equals + 1, &size) || size < 1 || size > MESH_MAX_WORLD) {
        return error_set(error, STATUS_USAGE, "mesh \"%s\": %s must be a whole number from 1 to %d, got \"%s\"", text,
                         axis_names[axis], MESH_MAX_WORLD, equals + 1);
    }
    if (seen[axis]) {
        return error_set(error, STATUS_USAGE, "mesh \"%s\": %s is given twice", text, axis_names[axis]);
    }
    seen[axis] = true;
    mesh->size[axis] = (int)size;
    return STATUS_OK;
}

Status mesh_parse(const char *text, Mesh *mesh, Error *error) {
    Mesh parsed = {.size = {1, 1, 1, 1}};
    bool seen[AXIS_COUNT] = {false};
    char words[4 * MESH_TEXT_BYTES];
    const size_t length = strlen(text);
    if (length == 0 || length >= sizeof words) {
        return error_set(error, STATUS_USAGE, "mesh \"%.60s\": must be a list such as dp_shard=8,tp=2", text);
    }
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
        world *= parsed.size[axis];
        if (world > MESH_MAX_WORLD) {
            return error_set(error, STATUS_USAGE, "mesh \"%s\": more than %d ranks", text, MESH_MAX_WORLD);
        }
    }
    *mesh = parsed;
    return STATUS_OK;
}

const char *mesh_axes_words(AxisMask axes, Arena *arena) {
    const char *words = "";
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (axes & AXIS_BIT(axis)) {
            words = arena_format(arena, "%s%s%s", words, words[0] ? " x " : "", axis_names[axis]);
        }
    }
    return words;
}

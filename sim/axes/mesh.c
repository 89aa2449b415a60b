// Rank arithmetic of the mesh. Row-major with the first axis of the table slowest and the last fastest, as torch's
// init_device_mesh and Megatron's default order place ranks, or with the axes in another order. Every function is a
// loop over the places of the axes.

#include "sim/axes/mesh.h"

Mesh mesh_of_one(void) {
    Mesh mesh = {.order = {{0}}};
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        mesh.size[axis] = 1;
    }
    return mesh;
}

int mesh_world(const Mesh *mesh) {
    return mesh_group_size(mesh, AXES_OWN);
}

MeshCoordinates mesh_coordinates(const Mesh *mesh, int rank) {
    MeshCoordinates at;
    for (int place = AXIS_COUNT - 1; place >= 0; place--) {
        const Axis axis = mesh_axis_at(mesh, place);
        at.at[axis] = rank % mesh_extent(mesh, axis);
        rank /= mesh_extent(mesh, axis);
    }
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (AXES_BORROWED & AXIS_BIT(axis)) {
            at.at[axis] = mesh_group_index(mesh, AXIS_BIT(axis), &at);
        }
    }
    return at;
}

int mesh_rank(const Mesh *mesh, const MeshCoordinates *at) {
    return mesh_group_index(mesh, AXES_OWN, at);
}

// Lenders give from the fastest on.
int mesh_nearest_extent(const Mesh *mesh, AxisMask lenders, int ranks, Axis axis) {
    int rest = ranks;
    for (int lender = AXIS_COUNT - 1; lender > (int)axis; lender--) {
        if (lenders & AXIS_BIT(lender)) {
            rest /= rest < mesh->size[lender] ? rest : mesh->size[lender];
        }
    }
    return rest < mesh->size[axis] ? rest : mesh->size[axis];
}

int mesh_lent_extent(const Mesh *mesh, AxisMask mask, Axis axis) {
    int most = 1;
    for (int borrowed = 0; borrowed < AXIS_COUNT; borrowed++) {
        if ((mask & AXES_BORROWED & AXIS_BIT(borrowed)) && mesh->size[borrowed] > 1 &&
            (axis_lenders[borrowed] & AXIS_BIT(axis))) {
            const int here = mesh_nearest_extent(mesh, axis_lenders[borrowed], mesh->size[borrowed], axis);
            most = here > most ? here : most;
        }
    }
    return most;
}

bool mesh_lends_ranks(const Mesh *mesh, AxisMask lenders, int ranks) {
    int rest = ranks;
    for (int lender = AXIS_COUNT - 1; lender >= 0 && rest > 1; lender--) {
        if (lenders & AXIS_BIT(lender)) {
            const int size = mesh->size[lender], given = rest < size ? rest : size;
            if (rest % given != 0 || size % given != 0) {
                return false;
            }
            rest /= given;
        }
    }
    return rest == 1;
}

bool mesh_lends_evenly(const Mesh *mesh) {
    bool evenly = true;
    for (int borrowed = 0; borrowed < AXIS_COUNT && evenly; borrowed++) {
        evenly = !(AXES_BORROWED & AXIS_BIT(borrowed)) ||
                 mesh_lends_ranks(mesh, axis_lenders[borrowed], mesh->size[borrowed]);
    }
    return evenly;
}

int mesh_group_index(const Mesh *mesh, AxisMask mask, const MeshCoordinates *at) {
    int index = 0;
    for (int place = 0; place < AXIS_COUNT; place++) {
        const Axis axis = mesh_axis_at(mesh, place);
        const int extent = mesh_extent(mesh, axis) > 1 ? mesh_group_extent(mesh, mask, axis) : 1;
        if (extent > 1) {
            index = index * extent + at->at[axis] / mesh_group_step(mesh, mask, axis) % extent;
        }
    }
    return index;
}

int mesh_group_member(const Mesh *mesh, AxisMask mask, const MeshCoordinates *at, int index) {
    MeshCoordinates member = *at;
    for (int place = AXIS_COUNT - 1; place >= 0; place--) {
        const Axis axis = mesh_axis_at(mesh, place);
        const int extent = mesh_extent(mesh, axis) > 1 ? mesh_group_extent(mesh, mask, axis) : 1;
        if (extent > 1) {
            const int step = mesh_group_step(mesh, mask, axis);
            member.at[axis] += (index % extent - member.at[axis] / step % extent) * step;
            index /= extent;
        }
    }
    return mesh_rank(mesh, &member);
}

// Ranks between neighbours of an axis.
static int64_t axis_stride(const Mesh *mesh, Axis axis) {
    int64_t stride = 1;
    for (int place = AXIS_COUNT - 1; mesh_axis_at(mesh, place) != axis; place--) {
        stride *= mesh_extent(mesh, mesh_axis_at(mesh, place));
    }
    return stride;
}

// A rank of the stage is r = (i x stages + stage) x stride + j, its counterpart `ahead` further. Node boundaries repeat
// after as many i as a node has ranks, and stages less than a node apart have no more j than that.
bool mesh_stages_cross(const Mesh *mesh, int stage, int other, int ranks_per_node) {
    const Axis axis = axes_slowest(AXES_STAGE);
    const int64_t stride = axis_stride(mesh, axis), stages = mesh->size[axis];
    const int64_t lower = stage < other ? stage : other,
                  ahead = (stage < other ? other - stage : stage - other) * stride;
    const int64_t times = mesh_world(mesh) / (stride * stages);
    if (ahead >= ranks_per_node) {
        return true;
    }
    for (int64_t i = 0; i < times && i < ranks_per_node; i++) {
        const int64_t first = (i * stages + lower) * stride;
        for (int64_t rank = first; rank < first + stride; rank++) {
            if (rank / ranks_per_node != (rank + ahead) / ranks_per_node) {
                return true;
            }
        }
    }
    return false;
}

AxisMask mesh_real_axes(const Mesh *mesh, AxisMask axes) {
    AxisMask real = axes & ~AXIS_ALL;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        real |= mesh->size[axis] > 1 ? axes & AXIS_BIT(axis) : 0;
    }
    return real;
}

AxisMask mesh_named_axes(const Mesh *mesh) {
    return AXES_FIRST | mesh_real_axes(mesh, AXIS_ALL);
}

typedef struct Enumeration {
    AxisMask axes;
    Mesh mesh, *meshes;
    int capacity, count;
} Enumeration;

// Every size of the borrowed axes from `axis` on.
static void enumerate_borrowed(Enumeration *all, int axis) {
    const AxisMask wanted = all->axes & AXES_BORROWED;
    while (axis < AXIS_COUNT && !(wanted & AXIS_BIT(axis))) {
        axis++;
    }
    if (axis >= AXIS_COUNT) {
        if (all->count < all->capacity) {
            all->meshes[all->count] = all->mesh;
        }
        all->count++;
        return;
    }
    const int most = mesh_group_size(&all->mesh, axis_lenders[axis]);
    for (int size = 1; size <= most; size++) {
        all->mesh.size[axis] = size;
        if (mesh_lends_evenly(&all->mesh)) {
            enumerate_borrowed(all, axis + 1);
        }
    }
    all->mesh.size[axis] = 1;
}

// Splits `rest` over the axes from `axis` on, smallest sizes of the slow axes first.
static void enumerate_own(Enumeration *all, int rest, int axis) {
    const AxisMask wanted = all->axes & AXES_OWN;
    while (axis < AXIS_COUNT && !(wanted & AXIS_BIT(axis))) {
        axis++;
    }
    if (axis >= AXIS_COUNT) {
        enumerate_borrowed(all, 0);
        return;
    }
    const bool is_last = wanted >> axis == 1;  // it takes what is left
    for (int size = is_last ? rest : 1; size <= rest; size++) {
        if (rest % size == 0) {
            all->mesh.size[axis] = size;
            enumerate_own(all, rest / size, axis + 1);
        }
    }
}

int mesh_enumerate(int world, AxisMask axes, Mesh *meshes, int capacity) {
    Enumeration all = {.axes = axes, .mesh = mesh_of_one(), .meshes = meshes, .capacity = capacity};
    ASSERT((axes & AXES_OWN) != 0);
    enumerate_own(&all, world, 0);
    return all.count;
}

void mesh_hash_sizes(const Mesh *mesh, Hash *hash) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const bool first = AXES_FIRST & AXIS_BIT(axis);
        if (!first && mesh->size[axis] > 1) {
            hash_text(hash, axis_names[axis]);
        }
        if (first || mesh->size[axis] > 1) {
            hash_int(hash, mesh->size[axis]);
        }
    }
}

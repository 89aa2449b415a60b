// Reassembles shards into flat units (one per tp rank), and flat units into tensors. Replicas are identical: the first
// one is used.

#include "exec/worker/gather_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exec/worker/gather.h"

typedef struct Destination {
    GatherState state;
    FILE *file;  // rank 0's; NULL elsewhere
} Destination;

// An instance of a unit on the stage that holds it.
typedef struct Held {
    int32_t unit;
    int instance;
} Held;

// All ranks' shards of one instance of a unit.
typedef struct Shards {
    const Unit *unit;
    const float *of_rank;  // [world][shard_elements]
    const int *owner;      // [ep][tp][shards]: a rank that holds the shard
    int tp;
} Shards;

// Whether ep ranks hold different blocks of the unit; other units are the same on all of them.
static bool is_spread(const StepProgram *program, const Unit *unit) {
    return unit->slice_count > 0 && program->slices[unit->first_slice].spread;
}

// A table that the first stage writes.
static bool is_copy(const StepProgram *program, const ParamSlice *slice) {
    return slice->part == UNIT_EMBEDDING && !program->held.embedding;
}

static int *shard_owners(const StepProgram *program, const Unit *unit, Arena *arena) {
    const Mesh *mesh = &program->plan.mesh;
    const int sets = is_spread(program, unit) ? mesh->size[AXIS_EP] : 1;
    int *owner = ARENA_ARRAY(arena, int, (int64_t)sets * mesh->size[AXIS_TP] * unit->shards);
    for (int rank = mesh_world(mesh) - 1; rank >= 0; rank--) {
        const MeshCoordinates at = mesh_coordinates(mesh, rank);
        const int set = sets > 1 ? mesh_group_index(mesh, AXIS_BIT(AXIS_EP), &at) : 0;
        const int shard = unit->shards > 1 ? mesh_group_index(mesh, program->groups[unit->shard_group].axes, &at) : 0;
        const int tp = sets > 1 ? 0 : at.at[AXIS_TP];  // tp does not split experts that are spread
        if (mesh_stage_of(mesh, rank) == program->stage) {
            owner[(set * mesh->size[AXIS_TP] + tp) * unit->shards + shard] = rank;
        }
    }
    return owner;
}

static float shard_element(const Shards *shards, const SliceRow *at, int64_t element) {
    const int64_t size = shards->unit->shard_elements;
    const int set = at->ep_index * shards->tp + at->tp_index;
    const int rank = shards->owner[set * shards->unit->shards + element / size];
    return shards->of_rank[rank * size + element % size];
}

static void write_slice(const Shards *shards, const ParamSlice *slice, FILE *file) {
    for (int64_t row = 0; row < slice->global_rows; row++) {
        SliceRow at = slice_row_of(slice, row);
        for (int64_t col = 0; col < slice->global_cols; col++) {
            at.tp_index = slice->split == SPLIT_COLS ? (int)(col / slice->local_cols) : at.tp_index;
            const int64_t local = at.local * slice->local_cols + col % slice->local_cols;
            const float x = shard_element(shards, &at, slice->offset_elements + local);
            fwrite(&x, sizeof x, 1, file);
        }
    }
}

// This rank's shard of the moments or the weights; ZeRO stages 0 to 2 keep all weights.
static SlotBytes shard_at(const Session *session, const Unit *unit, GatherState state, int instance) {
    const int64_t bytes = unit->shard_elements * (int64_t)sizeof(float);
    if (state == GATHER_MOMENTS) {
        return (SlotBytes){unit->moment1, instance, 0, bytes};
    }
    const bool whole =
        session->program.buffers[unit->master].slot_bytes >= unit->padded_elements * (int64_t)sizeof(float);
    int64_t first = 0, count = 0;
    step_shard_range(&session->program, unit, &session->at, &first, &count);
    return (SlotBytes){unit->master, instance, whole ? first * (int64_t)sizeof(float) : 0, bytes};
}

// A unit of this program's stage; ranks of other stages contribute nothing.
static Status gather_unit(Session *session, const StepProgram *program, const Held *held, const Destination *to,
                          Arena *arena, Error *error) {
    const TrainPlan *plan = &program->plan;
    const Unit *unit = &program->units[held->unit];
    float *own = ARENA_ARRAY(arena, float, unit->shard_elements);
    float *whole = ARENA_ARRAY(arena, float, unit->shard_elements *mesh_world(&plan->mesh));
    const Shards shards = {unit, whole, shard_owners(program, unit, arena), plan->mesh.size[AXIS_TP]};
    if (program->stage == session->program.stage) {
        const SlotBytes from = shard_at(session, unit, to->state, held->instance);
        TRY(session_read(session, &from, own, error));
    }
    TRY(gather(session, own, whole, unit->shard_elements * (int64_t)sizeof *own, error));
    for (int32_t s = 0; to->file && s < unit->slice_count; s++) {
        const ParamSlice *slice = &program->slices[unit->first_slice + s];
        if (!is_copy(program, slice)) {
            write_slice(&shards, slice, to->file);
        }
    }
    return STATUS_OK;
}

// Whether the stage holds this instance of a unit, counted over the whole model, and its index there.
static bool find_held(const StepProgram *program, int32_t unit, int instance, Held *held) {
    const int instances = program->units[unit].instances;
    *held = (Held){.unit = unit};
    for (; held->instance < instances; held->instance++) {
        const bool layered = program->units[unit].layered;
        if ((layered ? stage_model_layer(&program->held, held->instance) : 0) == instance) {
            return true;
        }
    }
    return false;
}

static Status gather_units(Session *session, const Destination *to, Arena *arena, Error *error) {
    for (int32_t u = 0; u < session->program.unit_count; u++) {
        const int instances = session->program.units[u].layered ? session->request->model.layers : 1;
        for (int i = 0; i < instances; i++) {
            for (int stage = 0; stage < session->programs.count; stage++) {
                const StepProgram *program = &session->programs.of[stage];
                Held held;
                if (find_held(program, u, i, &held)) {
                    TRY(gather_unit(session, program, &held, to, arena, error));
                }
            }
        }
    }
    return STATUS_OK;
}

Status gather_state(Session *session, GatherState state, const char *path, Arena *arena, Error *error) {
    FILE *file = session->rank == 0 ? fopen(path, "wb") : NULL;
    FAIL_IF(session->rank == 0 && !file, error, STATUS_ENVIRONMENT, "%s: cannot be written: %s", path, strerror(errno));
    Status status = gather_units(session, &(Destination){state, file}, arena, error);
    if (file && (ferror(file) | fclose(file)) != 0 && status == STATUS_OK) {
        status = error_set(error, STATUS_ENVIRONMENT, "%s: cannot be written whole", path);
    }
    return status;
}

// Measured spans of a step as sums per kind. A rank that waits for the others of its group stands inside its
// collective: the shortest time among a group's members is what the transfer took, since the last rank to arrive does
// not wait. Clocks of different ranks are never compared. Not used: spans of ranks that share cores, which include
// other ranks' time slices, and of lanes that ran concurrently.

#include <string.h>

#include "autotune/calibrate/calibrate_internal.h"
#include "sim/cost/cost.h"

// Mean over the groups of the least time of each one's members.
static double group_seconds(const StepProgram *program, const Task *task, const Span *spans, int64_t per_rank,
                            int64_t place, int world, double *least) {
    const AxisMask axes = program->groups[task->group].axes;
    double sum = 0;
    for (int rank = 0; rank < world; rank++) {
        least[rank] = -1;
    }
    for (int rank = 0; rank < world; rank++) {
        const Span *span = &spans[rank * per_rank + place];
        const MeshCoordinates at = mesh_coordinates(&program->plan.mesh, rank);
        const int first = mesh_group_member(&program->plan.mesh, axes, &at, 0);
        const double seconds = span->end_s - span->start_s;
        least[first] = least[first] < 0 || seconds < least[first] ? seconds : least[first];
    }
    int groups = 0;
    for (int rank = 0; rank < world; rank++) {
        groups += least[rank] >= 0;
        sum += least[rank] >= 0 ? least[rank] : 0;
    }
    return sum / groups;
}

// As many spans of every rank, in its order?
static bool complete(const Timeline *timeline, int64_t per_rank, int world) {
    if (timeline->span_count != per_rank * world || per_rank == 0) {
        return false;
    }
    for (int rank = 0; rank < world; rank++) {
        if (timeline->spans[rank * per_rank].rank != rank || timeline->spans[(rank + 1) * per_rank - 1].rank != rank) {
            return false;
        }
    }
    return true;
}

bool calibration_spans(const CalibrationCase *what, const StepProgram *program, const Timeline *timeline,
                       Arena *scratch, double span_s[SPAN_KIND_COUNT]) {
    memset(span_s, 0, SPAN_KIND_COUNT * sizeof *span_s);
    const Mesh *mesh = &what->plan.mesh;
    const int world = mesh_world(mesh), per_node = cost_ranks_per_node(what->cluster, mesh);
    const int ranks_on_node = world < per_node ? world : per_node;
    const bool cpu = what->cluster->accelerator.device_class == DEVICE_CLASS_CPU;
    const int64_t per_rank = timeline->span_count / world;
    if (!what->serial_lanes || (cpu && ranks_on_node > what->cluster->node.cores) ||
        !complete(timeline, per_rank, world)) {
        return false;
    }
    double *least = ARENA_ARRAY(scratch, double, world);
    for (int64_t place = 0; place < per_rank; place++) {
        const Task *task = &program->tasks[timeline->spans[place].task];
        double *sum = &span_s[calibration_span_kind(program, what->cluster, task)];
        if (task_is_collective(task)) {
            *sum += group_seconds(program, task, timeline->spans, per_rank, place, world, least);
            continue;
        }
        for (int rank = 0; rank < world; rank++) {
            const Span *span = &timeline->spans[rank * per_rank + place];
            *sum += (span->end_s - span->start_s) / world;
        }
    }
    return true;
}

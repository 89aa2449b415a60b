// Lists of samples, and those of a run file.

#include "autotune/calibrate/samples.h"

#include <string.h>

#include "autotune/accuracy/run_case.h"
#include "autotune/accuracy/run_machine.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

void samples_add(SampleList *list, const CalibrationSample *sample) {
    ARENA_PUSH(list->arena, list->rows, list->count, &list->capacity) = *sample;
}

void samples_leave_out(SampleList *list, const char *reason) {
    int at = 0;
    while (at < list->left_out_count && strcmp(list->left_out[at].reason, reason) != 0) {
        at++;
    }
    if (at == LEFT_OUT_MOST) {
        at--;
        reason = "other reasons, too";
    }
    list->left_out[at].reason = reason;
    list->left_out[at].runs++;
    list->left_out_count += at == list->left_out_count;
}

bool samples_want(SampleList *list, const char *target) {
    const Target *wanted = list->target;
    if (!wanted) {
        return true;
    }
    const size_t name = strlen(wanted->name);
    const bool same = strncmp(target, wanted->name, name) == 0 && target[name] == '@' &&
                      (list->any_version || strcmp(target + name + 1, wanted->version) == 0);
    if (!same) {
        samples_leave_out(list, arena_format(list->arena, "target %s is not %s", target, wanted->name));
    }
    return same;
}

bool samples_want_cluster(SampleList *list, const char *cluster, const char *wanted) {
    const bool same = calibration_same_machine(cluster, list->base->name);
    if (!same) {
        samples_leave_out(list, arena_format(list->arena, "cluster %s is not %s", cluster, wanted));
    }
    return same;
}

Status samples_base(SampleList *list, const char *text, Error *error) {
    ClusterProfile *base = ARENA_NEW(list->arena, ClusterProfile);
    TRY(cluster_find(text, list->arena, base, error));
    list->base = base;
    list->base_text = text;
    return STATUS_OK;
}

const char *samples_usual_cluster(const RunFile *file, Arena *arena) {
    const char **machines = ARENA_ARRAY(arena, const char *, (size_t)file->count), *best = NULL;
    int most = 0;
    for (int i = 0; i < file->count; i++) {
        machines[i] = row_machine(&file->rows[i]);
    }
    for (int i = 0; i < file->count; i++) {
        int same = 0;
        for (int j = 0; j < file->count; j++) {
            same += strcmp(machines[i], machines[j]) == 0;
        }
        if (same > most && machines[i][0] != '\0') {
            most = same;
            best = machines[i];
        }
    }
    return best;
}

static void add_case(SampleList *list, const RunCase *run) {
    const Target *target = run->request.target;
    if (run->skipped) {
        samples_leave_out(list, run->skipped);
    } else if (run->measured_step_s <= 0) {
        samples_leave_out(list, "no step time");
    } else if (target_is_executor(target) ||
               samples_want(list, arena_format(list->arena, "%s@%s", target->name, target->version))) {
        const bool reserved = strcmp(run->row->mem_kind, "reserved") == 0;
        samples_add(list, &(CalibrationSample){.what = calibration_case(&run->request, &run->plan),
                                               .id = run->row->id,
                                               .set = run->row->source,
                                               .step_s = run->measured_step_s,
                                               .reserved_bytes = reserved ? run->row->peak_mem_gb * GIB : 0});
    }
}

// Where a row names the wanted cluster, but its source ran on another: that one is said.
static bool is_of_base(SampleList *list, const RunRow *row, const char *machine) {
    const char *base = list->base->name;
    const bool moved = strcmp(machine, row->cluster) != 0 && calibration_same_machine(row->cluster, base);
    if (strcmp(machine, list->base_text) == 0) {
        return true;
    }
    if (moved && !calibration_same_machine(machine, base)) {
        samples_leave_out(list, arena_format(list->arena, "their source ran on %s: --cluster %s", machine, machine));
        return false;
    }
    return samples_want_cluster(list, machine, list->base_text);
}

void samples_of_file(SampleList *list, const RunFile *file, const char *path) {
    RunMapper *mapper = run_mapper_new(list->arena);
    for (int i = 0; i < file->count; i++) {
        const RunRow *row = &file->rows[i];
        const char *machine = row_machine(row);
        if (is_of_base(list, row, machine)) {
            RunCase *run = ARENA_NEW(list->arena, RunCase);
            run_mapper_give(mapper, machine, list->base);
            run_case_build(mapper, row, run);
            add_case(list, run);
        }
    }
    list->from = list->from ? arena_format(list->arena, "%s, %s", list->from, path) : path;
}

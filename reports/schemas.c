// The schemas that several reports share. Others are defined next to their answer.

#include "reports/schemas.h"

#include <string.h>

#include "autotune/calibrate/calibrate.h"
#include "autotune/run_record.h"
#include "autotune/validate/validate.h"
#include "reports/json_objects.h"
#include "sim/base/text.h"
#include "sim/cluster/cluster.h"
#include "sim/model/model.h"

// ---- models, clusters

MADE(parameters_of, ModelSpec, record_of_whole(model_parameters(of)))
MADE(type_of, ModelSpec, record_of_text(of->type ? of->type : "llama"))

static const RecordField models[] = {
    {FIELD("name", NAME, ModelSpec, name), COLUMN(1, "model")},
    {FIELD("alias", TEXT, ModelPreset, alias), COLUMN(2, "alias"), .missing = "", .no_json = true},
    {.key = "parameters", BY(parameters_of), COLUMN(3, "parameters"), .unit = AS_COUNT},
    {FIELD("layers", INT, ModelSpec, layers), COLUMN(4, "layers")},
    {FIELD("hidden", INT, ModelSpec, hidden), COLUMN(5, "hidden")},
    {FIELD("heads", INT, ModelSpec, heads), COLUMN(6, "heads")},
    {FIELD("kv_heads", INT, ModelSpec, kv_heads), COLUMN(7, "kv heads")},
    {FIELD("head_dim", INT, ModelSpec, head_dim), COLUMN(8, "head dim")},
    {FIELD("ffn", INT, ModelSpec, ffn), COLUMN(9, "ffn")},
    {FIELD("vocab", INT, ModelSpec, vocab), COLUMN(10, "vocab")},
    {FIELD("max_seq", INT, ModelSpec, max_seq), COLUMN(11, "longest")},
    {FIELD("tied_embeddings", FLAG, ModelSpec, tied_embeddings), .no_csv = true},
    {.key = "type", BY(type_of), COLUMN(12, "type")},
    {FIELD("note", TEXT, ModelSpec, note)},
    {FIELD("source", TEXT, ModelSpec, source), COLUMN(13, "source")},
};
SCHEMA(models, ModelPreset);

static const RecordField clusters[] = {
    {FIELD("name", NAME, ClusterProfile, name), COLUMN(1, "cluster")},
    {FIELD("accelerator", NAME, ClusterProfile, accelerator.name), COLUMN(2, "accelerator")},
    {FIELD("accelerators_per_node", INT, ClusterProfile, node.accelerators), COLUMN(3, "per node")},
    {FIELD("memory_bytes", REAL, ClusterProfile, accelerator.memory_bytes), COLUMN(4, "memory"), .unit = AS_BYTES},
    {FIELD("description", TEXT, ClusterProfile, description), COLUMN(5, "what"), .missing = ""},
    {FIELD("date", TEXT, ClusterProfile, date)},
};
SCHEMA(clusters, ClusterProfile);

MADE(grade_of, Provenance, record_of_text(grade_name(of->grade)))

static const RecordField provenance[] = {
    {FIELD("field", TEXT, Provenance, path), COLUMN(1, "field")},
    {FIELD("value", REAL, Provenance, value), COLUMN(2, "value")},
    {.key = "grade", BY(grade_of), COLUMN(3, "grade")},
    {FIELD("source", TEXT, Provenance, source), COLUMN(4, "source"), .missing = "not said"},
};
SCHEMA(provenance, Provenance);

// ---- what the store remembers

static const RecordField requests[] = {
    {FIELD("id", LONG, StoredRequest, id), COLUMN(1, "#")},
    {FIELD("asked_at", TEXT, StoredRequest, asked_at), COLUMN(2, "last asked")},
    {FIELD("command", TEXT, StoredRequest, command)},
    {FIELD("model", TEXT, StoredRequest, model), COLUMN(4, "model")},
    {FIELD("cluster", TEXT, StoredRequest, cluster), COLUMN(6, "cluster")},
    {FIELD("target", TEXT, StoredRequest, target), COLUMN(7, "target")},
    {FIELD("world", INT, StoredRequest, world), COLUMN(5, "world")},
    {FIELD("times_asked", INT, StoredRequest, times_asked), COLUMN(3, "times")},
    {FIELD("best_plan", TEXT, StoredRequest, best_plan), COLUMN(8, "best plan"), .missing = "nothing simulated"},
    {FIELD("best_step_s", ABOVE, StoredRequest, best_step_s), COLUMN(9, "step"), .unit = AS_SECONDS},
};
SCHEMA(requests, StoredRequest);

// "failed: rank 1 left"
static RecordValue joined(const char *state, const char *why, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "%s%s%s", state, why ? ": " : "", why ? why : "");
    return record_of_text(text);
}

MADE(state_of_run, StoredRun, joined(of->state, of->failure, text))

static const RecordField runs[] = {
    {FIELD("id", LONG, StoredRun, id), COLUMN(1, "#")},
    {FIELD("started_at", TEXT, StoredRun, started_at), COLUMN(2, "started")},
    {FIELD("host", TEXT, StoredRun, host), COLUMN(3, "host")},
    {FIELD("model", TEXT, StoredRun, model), COLUMN(4, "model")},
    {FIELD("plan", TEXT, StoredRun, plan), COLUMN(8, "plan")},
    {FIELD("device", TEXT, StoredRun, device)},
    {FIELD("transport", TEXT, StoredRun, transport)},
    {FIELD("state", TEXT, StoredRun, state)},
    {FIELD("failure", TEXT, StoredRun, failure)},
    {FIELD("steps", INT, StoredRun, steps), COLUMN(5, "steps")},
    {FIELD("measured_step_s", ABOVE, StoredRun, measured_step_s), COLUMN(6, "measured"), .unit = AS_SECONDS},
    {FIELD("predicted_step_s", ABOVE, StoredRun, predicted_step_s), COLUMN(7, "predicted"), .unit = AS_SECONDS},
    {BY(state_of_run), COLUMN(9, "state")},
};
SCHEMA(runs, StoredRun);

MADE(reason_of, StoredPreflight, record_of_text(of->finding_count > 0 ? of->findings[0].sentence : NULL))
MADE(state_of_preflight, StoredPreflight,
     joined(of->ready ? "ready" : "not ready", reason_of(of, NULL, text).text, text))

static const RecordField preflights[] = {
    {FIELD("id", LONG, StoredPreflight, id), COLUMN(1, "#")},
    {FIELD("checked_at", TEXT, StoredPreflight, checked_at), COLUMN(2, "checked")},
    {FIELD("command", TEXT, StoredPreflight, command)},
    {FIELD("cluster", TEXT, StoredPreflight, cluster)},
    {FIELD("hosts", TEXT, StoredPreflight, hosts), COLUMN(3, "hosts")},
    {FIELD("device", TEXT, StoredPreflight, device), COLUMN(6, "device")},
    {FIELD("transport", TEXT, StoredPreflight, transport), COLUMN(5, "transport")},
    {FIELD("mesh", TEXT, StoredPreflight, mesh), COLUMN(8, "mesh")},
    {FIELD("world", INT, StoredPreflight, world), COLUMN(4, "ranks")},
    {FIELD("ready", FLAG, StoredPreflight, ready)},
    {.key = "reason", BY(reason_of)},
    {BY(state_of_preflight), COLUMN(7, "state")},
};
SCHEMA(preflights, StoredPreflight);

// ---- measured against predicted

// On other lanes than compute a measured time is mostly waiting.
static RecordValue ratio_of(const char *lane, double measured_s, double predicted_s) {
    return record_of_real(measured_s > 0 && strcmp(lane, "compute") == 0, predicted_s / measured_s);
}

MADE(ratio_of_task, RunTask, ratio_of(of->lane, of->measured_s, of->predicted_s))
MADE(ratio_of_kind, ValidateKind, ratio_of(of->lane, of->measured_s, of->predicted_s))

static const RecordField tasks[] = {
    {FIELD("name", TEXT, RunTask, name), COLUMN(1, "task")},
    {FIELD("kind", TEXT, RunTask, kind)},
    {FIELD("lane", TEXT, RunTask, lane), COLUMN(2, "lane")},
    {FIELD("count", LONG, RunTask, count), COLUMN(3, "per step")},
    {FIELD("measured_s", REAL, RunTask, measured_s), COLUMN(4, "measured"), .unit = AS_SECONDS},
    {FIELD("predicted_s", REAL, RunTask, predicted_s), COLUMN(5, "predicted"), .unit = AS_SECONDS},
    {BY(ratio_of_task), COLUMN(6, "predicted / measured"), .unit = AS_RATIO, .missing = ""},
};
SCHEMA(tasks, RunTask);

static const RecordField kinds[] = {
    {FIELD("lane", TEXT, ValidateKind, lane), COLUMN(1, "lane")},
    {FIELD("kind", TEXT, ValidateKind, kind), COLUMN(2, "kind")},
    {FIELD("count", LONG, ValidateKind, count), COLUMN(3, "tasks")},
    {FIELD("measured_s", REAL, ValidateKind, measured_s), COLUMN(4, "measured"), .unit = AS_SECONDS},
    {FIELD("predicted_s", REAL, ValidateKind, predicted_s), COLUMN(5, "predicted"), .unit = AS_SECONDS},
    {BY(ratio_of_kind), COLUMN(6, "predicted / measured"), .unit = AS_RATIO, .missing = ""},
};
SCHEMA(kinds, ValidateKind);

MADE(ratio_of_groups, StoredGroups, record_of_real(of->predicted_s > 0, of->measured_s / of->predicted_s))

static const RecordField groups[] = {
    {FIELD("axes", TEXT, StoredGroups, axes), COLUMN(1, "groups over")},
    {FIELD("ranks", INT, StoredGroups, ranks), COLUMN(2, "ranks")},
    {FIELD("collective", TEXT, StoredGroups, collective), COLUMN(3, "collective")},
    {FIELD("payload_bytes", REAL, StoredGroups, payload_bytes), COLUMN(4, "payload"), .unit = AS_BYTES},
    {FIELD("measured_s", REAL, StoredGroups, measured_s), COLUMN(5, "measured"), .unit = AS_SECONDS},
    {FIELD("predicted_s", ABOVE, StoredGroups, predicted_s), COLUMN(6, "predicted"), .unit = AS_SECONDS},
    {BY(ratio_of_groups), COLUMN(7, "measured / predicted"), .unit = AS_RATIO},
    {FIELD("wrong_elements", REAL, StoredGroups, wrong_elements), COLUMN(8, "wrong elements")},
};
SCHEMA(groups, StoredGroups);

// ---- plans of a calibration

// "1.20 s (+3.0 %)"
static RecordValue beside(double seconds, double measured_s, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "%s (%+.1f %%)", text_seconds(UNIT_BUFFER, seconds), 100 * (seconds / measured_s - 1));
    return record_of_text(seconds > 0 && measured_s > 0 ? text : NULL);
}

MADE(model_of, CalibrationShape, record_of_text(of->what.model->name))
MADE(target_of, CalibrationShape, record_of_text(of->what.target->name))
MADE(plan_of, CalibrationShape, record_of_text(plan_text(&of->what.plan, text)))
MADE(batch_of, CalibrationShape, record_of_product(of->what.plan.micro_batch, of->what.plan.grad_accum, text))
MADE(before_of, CalibrationShape, beside(of->before_s, of->measured_s, text))
MADE(after_of, CalibrationShape, beside(of->after_s, of->measured_s, text))
MADE(held_out_of, CalibrationShape, beside(of->held_out_s, of->measured_s, text))

NESTED_IN(plan_object_of, CalibrationShape, void, json_train_plan(of->what.target, &of->what.plan))

static const RecordField calibrated[] = {
    {.key = "model", BY(model_of), COLUMN(1, "model")},
    {.key = "target", BY(target_of)},
    {FIELD("mesh", MESH, CalibrationShape, what.plan.mesh), COLUMN(2, "mesh"), .no_csv = true},
    {.key = "plan", .nested = plan_object_of},
    {.key = "plan", BY(plan_of), .no_json = true},
    {FIELD("runs", INT, CalibrationShape, runs), COLUMN(5, "runs")},
    {FIELD("measured_step_time_s", ABOVE, CalibrationShape, measured_s), COLUMN(6, "measured"), .unit = AS_SECONDS},
    {FIELD("before_step_time_s", REAL, CalibrationShape, before_s)},
    {FIELD("after_step_time_s", ABOVE, CalibrationShape, after_s)},
    {FIELD("held_out_step_time_s", ABOVE, CalibrationShape, held_out_s)},
    {FIELD("weight", REAL, CalibrationShape, weight)},
    {FIELD(NULL, INT, CalibrationShape, what.plan.seq), COLUMN(3, "seq")},
    {BY(batch_of), COLUMN(4, "batch"), .right = true},
    {BY(before_of), COLUMN(7, "before"), .right = true},
    {BY(after_of), COLUMN(8, "after"), .right = true},
    {BY(held_out_of), COLUMN(9, "held out"), .right = true},
};
SCHEMA(calibrated, CalibrationShape);

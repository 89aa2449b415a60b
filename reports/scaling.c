// The scaling curve: one row for each world, and what training to a number of tokens takes.

#include "reports/colour.h"
#include "reports/format.h"
#include "reports/json_objects.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

static RecordValue number_of(const ScalingPoint *point, double value) {
    return record_of_real(point->feasible && value > 0, value);
}

static double training_s(const ScalingPoint *point) {
    return point->feasible ? scaling_seconds(&point->best, point->request->tokens) : 0;
}

static double training_usd(const ScalingPoint *point) {
    return point->feasible ? scaling_usd(point->request, &point->best, point->request->tokens) : 0;
}

static RecordValue dollars(const ScalingPoint *point, char text[RECORD_BYTES]) {
    const double usd = training_usd(point);
    snprintf(text, RECORD_BYTES, usd > 0 ? "$%.0f" : "-", usd);
    return record_of_text(point->feasible ? text : "");
}

KNOWN(runs, ScalingPoint, of->feasible)
KNOWN(trains, ScalingPoint, of->request->tokens > 0)
MADE(global_batch, ScalingPoint, record_of_whole(of->feasible ? (int64_t)plan_global_batch(&of->best.plan) : 0))
MADE(seconds, ScalingPoint, number_of(of, training_s(of)))
MADE(usd, ScalingPoint, number_of(of, training_usd(of)))
MADE(batch, ScalingPoint, record_of_product(of->best.plan.micro_batch, of->best.plan.grad_accum, text))
MADE(interval, ScalingPoint, record_of_text(format_interval(&of->best, text)))
MADE(duration, ScalingPoint, record_of_text(of->feasible ? format_duration(training_s(of), text) : ""))
MADE(cost, ScalingPoint, dollars(of, text))
NESTED_IN(best, ScalingPoint, void,
          of->feasible ? json_prediction_object(of->request, &of->best, true, NULL) : json_null())

static const RecordField scaling[] = {
    {FIELD_OF("world", INT, ScalingPoint, request, TuneRequest, world), COLUMN(1, "world")},
    {FIELD("feasible", FLAG, ScalingPoint, feasible)},
    {FIELD("reason", TEXT, ScalingPoint, reason), .no_csv = true},
    {.key = "best", .nested = best},
    {FIELD("mesh", MESH, ScalingPoint, best.plan.mesh), COLUMN(2, "best mesh"), .known = runs,
     .missing = "nothing runs", .no_json = true},
    {FIELD("micro_batch", INT, ScalingPoint, best.plan.micro_batch), .known = runs, .no_json = true},
    {FIELD("grad_accum", INT, ScalingPoint, best.plan.grad_accum), .known = runs, .no_json = true},
    {.key = "global_batch",
     BY(global_batch),
     COLUMN(4, "global batch"),
     .known = runs,
     .missing = "",
     .right = true,
     .no_json = true},
    {FIELD("step_time_s", REAL, ScalingPoint, best.step_s), .known = runs, .no_json = true},
    {FIELD("tokens_per_s", REAL, ScalingPoint, best.tokens_per_s), COLUMN(6, "tokens/s"), .unit = AS_COUNT,
     .known = runs, .missing = "", .no_json = true},
    {FIELD("mfu", REAL, ScalingPoint, best.mfu), COLUMN(7, "MFU"), .unit = AS_PERCENT, .known = runs, .missing = "",
     .no_json = true},
    {FIELD("efficiency", REAL, ScalingPoint, efficiency), COLUMN(8, "efficiency"), .unit = AS_PERCENT, .known = runs,
     .missing = ""},
    {FIELD("reserved_bytes", REAL, ScalingPoint, best.memory.reserved_bytes), .known = runs, .no_json = true},
    {.key = "training_s", BY(seconds)},
    {.key = "training_usd", BY(usd)},
    {FIELD("reason", TEXT, ScalingPoint, reason), .no_json = true},
    {BY(batch), COLUMN(3, "micro x accum"), .known = runs, .missing = "", .right = true},
    {BY(interval), COLUMN(5, "step (80 % interval)"), .known = runs, .missing = ""},
    {BY(duration), COLUMN(9, "time"), .known = trains, .optional = true, .right = true},
    {BY(cost), COLUMN(10, "cost"), .known = trains, .optional = true, .right = true},
};
SCHEMA(scaling, ScalingPoint);

static void print_best(const ScalingCurve *curve, FILE *out) {
    const ScalingPoint *best = &curve->points[curve->best];
    static const char *const praise[OBJECTIVE_COUNT] = {"fastest", "least memory", "least cost per token"};
    fprintf(out, "\n%sBest (%s): world %d, %s%s\n", colour(out, COLOUR_GOOD), praise[best->request->objective],
            best->request->world, format_mesh_options(&best->best.plan.mesh, FORMAT_BUFFER), colour(out, COLOUR_END));
}

// What a smaller world loses against the one before it: a node that fails, or is left out.
static void print_losses(const ScalingCurve *curve, FILE *out) {
    for (int i = 1; i < curve->count; i++) {
        const ScalingPoint *before = &curve->points[i - 1], *now = &curve->points[i];
        if (before->feasible && now->feasible && now->request->world < before->request->world) {
            fprintf(out, "%d instead of %d: %.1f %% fewer accelerators, %.1f %% fewer tokens per second\n",
                    now->request->world, before->request->world,
                    100 * (1 - (double)now->request->world / before->request->world),
                    100 * (1 - now->best.tokens_per_s / before->best.tokens_per_s));
        }
    }
}

static Status table_scaling(const void *answer, FILE *out, Error *error) {
    const ScalingCurve *curve = answer;
    const TuneRequest *first = curve->points[0].request;
    fprintf(out, "%s on %s (%s), for %s %s", first->model.name, first->cluster.accelerator.name, first->cluster.name,
            first->target->name, first->target->version);
    if (first->tokens > 0) {
        fprintf(out, ", to %s tokens", text_count(UNIT_BUFFER, first->tokens));
    }
    fputs("\n\n", out);
    TRY(record_table(&schema_scaling, curve->points, curve->count, out, error));
    for (int i = 0; i < curve->count; i++) {
        if (!curve->points[i].feasible) {
            fprintf(out, "world %d: %s\n", curve->points[i].request->world, curve->points[i].reason);
        }
    }
    if (curve->best >= 0) {
        print_best(curve, out);
    }
    print_losses(curve, out);
    fprintf(out, "Efficiency is tokens/s per accelerator over that of the smallest world that runs.\n");
    format_assumptions(first, out);
    return STATUS_OK;
}

static Status json_scaling(const void *answer, FILE *out, Error *error) {
    const ScalingCurve *curve = answer;
    const bool any = curve->best >= 0;
    return json_print(json_pack("{s:s, s:o, s:o, s:o}", "schema", "ndtune.scaling/1", "request",
                                json_request(curve->points[0].request), "best_world",
                                any ? json_integer(curve->points[curve->best].request->world) : json_null(), "worlds",
                                record_array(&schema_scaling, curve->points, curve->count)),
                      out, error);
}

static Status csv_scaling(const void *answer, FILE *out, Error *error) {
    const ScalingCurve *curve = answer;
    return record_csv(&schema_scaling, curve->points, curve->count, out, error);
}

const Answer answer_scaling = {.table = table_scaling, .json = json_scaling, .csv = csv_scaling};

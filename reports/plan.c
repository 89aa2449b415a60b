// What `ndtune plan` answers. The table of --verbose: the best shapes, then what a reader needs to trust or doubt them:
// the batch arithmetic, the network, every rejected shape accounted for, the search, and what was assumed.

#include <math.h>
#include <string.h>

#include "autotune/predict/evidence.h"
#include "reports/colour.h"
#include "reports/format.h"
#include "reports/json_objects.h"
#include "reports/reports.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

enum { MAX_RULES = 16 };

static void print_title(const TuneRequest *request, FILE *out) {
    const int per_node = request->cluster.node.accelerators;
    fprintf(out, "%s (%s parameters) on %d x %s, %d per node (%s), for %s %s\n\n", request->model.name,
            text_count(UNIT_BUFFER, (double)model_parameters(&request->model)), request->world,
            request->cluster.accelerator.name, per_node, request->cluster.name, request->target->name,
            request->target->version);
}

static RecordValue choices_of(const TuneResult *result, const TrainPlan *plan, char text[RECORD_BYTES]) {
    return record_of_text(format_choices(result->request->target, plan, text)[0] ? text : NULL);
}

static RecordValue memory_of(const Prediction *entry, double limit_bytes, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "%s of %s", text_bytes(UNIT_BUFFER, entry->memory.reserved_bytes),
             text_bytes(UNIT_BUFFER, limit_bytes));
    return record_of_text(text);
}

MADE_IN(place, Prediction, TuneResult, record_of_whole(of - in->entries + 1))
MADE(batch, Prediction, record_of_product(of->plan.micro_batch, of->plan.grad_accum, text))
MADE(recompute, Prediction, record_of_text(plan_recompute_text(&of->plan, text)))
MADE(reshard, Prediction, record_of_text(of->plan.zero == 3 ? reshard_names[of->plan.reshard] : NULL))
MADE(rotate, Prediction, record_of_text(of->plan.mesh.size[AXIS_CP] > 1 ? cp_rotate_names[of->plan.cp_rotate] : NULL))
MADE_IN(besides, Prediction, TuneResult, choices_of(in, &of->plan, text))
MADE(interval, Prediction, record_of_text(format_interval(of, text)))
MADE(front, Prediction, record_of_text(of->pareto ? "*" : ""))
MADE_IN(memory, Prediction, TuneResult, memory_of(of, in->request->memory_limit_bytes, text))
MADE_IN(share, Prediction, TuneResult,
        record_of_real(true, of->memory.reserved_bytes / in->request->memory_limit_bytes))

// Columns alone: JSON has a whole prediction for each, CSV every field of its plan (csv.c).
static const RecordField entries[] = {
    {BY(place), COLUMN(1, "#"), .right = true},
    {FIELD(NULL, MESH, Prediction, plan.mesh), COLUMN(2, "mesh")},
    {BY(batch), COLUMN(3, "micro x accum"), .right = true},
    {BY(recompute), COLUMN(4, "recompute"), .drop = 4},
    {BY(reshard), COLUMN(5, "reshard"), .drop = 2},
    {BY(rotate), COLUMN(6, "rotate"), .drop = 1},
    {BY(besides), COLUMN(7, "besides"), .optional = true, .missing = "", .drop = 5},
    {BY(interval), COLUMN(8, "step (80 % interval)")},
    {FIELD(NULL, REAL, Prediction, tokens_per_s), COLUMN(9, "tokens/s"), .unit = AS_COUNT},
    {FIELD(NULL, REAL, Prediction, mfu), COLUMN(10, "MFU"), .unit = AS_PERCENT, .drop = 3},
    {BY(front), COLUMN(11, "front")},
    {BY(memory), COLUMN(12, "memory"), .right = true},
    {BY(share), COLUMN(13, "of limit"), .place = IN_PAGE, .unit = AS_PERCENT},
};
SCHEMA(entries, Prediction);

MADE(rejected_mesh, Rejection, record_of_text(format_mesh(&of->plan.mesh, text)))
NESTED_IN(rejected_plan, Rejection, TuneResult, json_train_plan(in->request->target, &of->plan))

static const RecordField rejected[] = {
    {FIELD("mesh", MESH, Rejection, plan.mesh)},
    {.key = "plan", .nested = rejected_plan},
    {BY(rejected_mesh), COLUMN(1, "mesh")},
    {FIELD("rule", TEXT, Rejection, rule), COLUMN(2, "rule")},
    {FIELD("reason", TEXT, Rejection, reason), COLUMN(3, "why")},
};
SCHEMA(rejected, Rejection);

static Status print_entries(const TuneResult *result, int rows, FILE *out, Error *error) {
    const int shown = rows == 0 || rows > result->entry_count ? result->entry_count : rows;
    const RecordSchema schema = record_about(&schema_entries, result);
    TRY(record_table(&schema, result->entries, shown, out, error));
    if (shown < result->entry_count) {
        fprintf(out, "... and %d more shape%s that fit%s (--top 0 shows all)\n", result->entry_count - shown,
                result->entry_count - shown == 1 ? "" : "s", result->entry_count - shown == 1 ? "s" : "");
    }
    fprintf(out, "* no other shape is as fast with less memory\n");
    return STATUS_OK;
}

// How far the winner is ahead, against what the prediction can tell apart.
static void print_verdict(const TuneResult *result, FILE *out) {
    const Prediction *best = &result->entries[0];
    fprintf(out, "\n%sBest: %s%s", colour(out, COLOUR_GOOD), format_mesh_options(&best->plan.mesh, FORMAT_BUFFER),
            colour(out, COLOUR_END));
    fprintf(out, ", %s%s\n", result->best_reason, best->origin == ORIGIN_ESTIMATE ? " (estimated, not simulated)" : "");
    fprintf(out, "  evidence: %s\n", evidence_text(result->request, EVIDENCE_BUFFER));
    char close[FORMAT_BYTES];
    if (*format_close_shapes(result, close)) {
        fprintf(out, "  %s: measure them\n", close);
    }
}

static void print_baseline(const TuneResult *result, FILE *out) {
    if (mesh_world(&result->request->baseline) == 0) {
        return;
    }
    const Baseline baseline = baseline_chosen(result);
    char mesh[FORMAT_BYTES];
    format_mesh(&result->request->baseline, mesh);
    if (!baseline.entry) {
        fprintf(out, "  baseline %s: cannot run: %s\n", mesh, baseline.reason ? baseline.reason : "not a shape");
        return;
    }
    fprintf(out, "  baseline %s: place %d, step %s; the best makes %.1f %% %s tokens per second\n", mesh,
            baseline.place, format_interval(baseline.entry, FORMAT_BUFFER), fabs(100 * baseline.gain),
            baseline.gain < 0 ? "fewer" : "more");
}

static void print_winner(const TuneResult *result, FILE *out) {
    const TuneRequest *request = result->request;
    const Prediction *best = &result->entries[0];
    print_verdict(result, out);
    format_rivals(result, out);
    print_baseline(result, out);
    format_training(request, best, out);
    format_batch(request->target, &best->plan, out);
    format_network(&best->plan, request->cluster.node.accelerators, out);
    format_time(best, out);
    format_memory(best, request, out);
    for (int i = 0; i < best->warning_count; i++) {
        fprintf(out, "  %swarning: %s%s\n", colour(out, COLOUR_WARNING), best->warnings[i], colour(out, COLOUR_END));
    }
}

typedef struct RuleCount {
    const char *rule;
    int count;
    const Rejection *example;
} RuleCount;

static int count_rules(const TuneResult *result, RuleCount counts[MAX_RULES]) {
    int rules = 0;
    for (int i = 0; i < result->rejected_count; i++) {
        int at = 0;
        while (at < rules && strcmp(counts[at].rule, result->rejected[i].rule) != 0) {
            at++;
        }
        if (at == rules) {
            ASSERT(rules < MAX_RULES);
            counts[rules++] = (RuleCount){result->rejected[i].rule, 0, &result->rejected[i]};
        }
        counts[at].count++;
    }
    return rules;
}

// What the group of a rule is called; rules are named by autotune's prune table.
static void print_heading(const TuneRequest *request, const char *rule, FILE *out) {
    if (strcmp(rule, "memory") == 0) {
        fprintf(out, "not fitting in %s", text_bytes(UNIT_BUFFER, request->memory_limit_bytes));
    } else if (strcmp(rule, "legality") == 0) {
        fprintf(out, "not legal for %s", request->target->name);
    } else if (strcmp(rule, "batch") == 0) {
        fprintf(out, "unable to make a global batch of %lld", (long long)request->global_batch);
    } else if (strcmp(rule, RULE_BEHIND) == 0) {
        fprintf(out, "behind by 10 %% or more, not priced");
    } else if (strcmp(rule, "slice") == 0) {
        fprintf(out, "cut finer than an attention tile");
    } else if (strcmp(rule, "max-tp") == 0) {
        fprintf(out, "over --max-tp %d", request->max_tp);
    } else {
        fprintf(out, "rejected by rule %s", rule);
    }
}

static void print_shapes(const TuneResult *result, bool all, FILE *out) {
    const TuneRequest *request = result->request;
    RuleCount counts[MAX_RULES];
    const int rules = count_rules(result, counts);
    fprintf(out, "\n%d shape%s: %d ranked", result->search.shapes, result->search.shapes == 1 ? "" : "s",
            result->entry_count);
    for (int i = 0; i < rules; i++) {
        fprintf(out, ", %d ", counts[i].count);
        print_heading(request, counts[i].rule, out);
    }
    fputc('\n', out);
    for (int i = 0; i < rules && !all; i++) {
        fprintf(out, "  ");
        print_heading(request, counts[i].rule, out);
        fprintf(out, ", such as %s: %s\n", format_mesh(&counts[i].example->plan.mesh, FORMAT_BUFFER),
                counts[i].example->reason);
    }
    for (int i = 0; i < result->rejected_count && all; i++) {
        fprintf(out, "  %s: %s\n", format_mesh(&result->rejected[i].plan.mesh, FORMAT_BUFFER),
                result->rejected[i].reason);
    }
    if (result->rejected_count > 0 && !all) {
        fprintf(out, "  (--top 0 gives the reason of each)\n");
    }
    fprintf(out, "%s\n", format_search(&result->search, FORMAT_BUFFER));
}

static Status table_plan(const void *answer, FILE *out, Error *error) {
    const PlanReport *report = answer;
    const TuneResult *result = report->result;
    const int rows = report->rows;
    if (!report->in_full) {
        table_answer(result, rows, out);
        return STATUS_OK;
    }
    print_title(result->request, out);
    if (result->entry_count > 0) {
        TRY(print_entries(result, rows, out, error));
        print_winner(result, out);
    } else {
        fprintf(out, "No shape can run.\n");
    }
    print_shapes(result, rows == 0, out);
    format_assumptions(result->request, out);
    return STATUS_OK;
}

// Where the shape that the user compares with came out.
static json_t *baseline_object(const TuneResult *result) {
    const TuneRequest *request = result->request;
    if (mesh_world(&request->baseline) == 0) {
        return json_null();
    }
    const Baseline baseline = baseline_chosen(result);
    const Prediction *entry = baseline.entry;
    return json_pack("{s:o, s:b, s:s?, s:o, s:o, s:o, s:o}", "mesh", json_mesh(&request->baseline), "feasible",
                     entry != NULL, "reason", baseline.reason, "place",
                     entry ? json_integer(baseline.place) : json_null(), "step_time_s",
                     entry ? json_real(entry->step_s) : json_null(), "tokens_per_s",
                     entry ? json_real(entry->tokens_per_s) : json_null(), "gain_of_best_percent",
                     entry ? json_real(100 * baseline.gain) : json_null());
}

// A plan that is faster than the best and leaves too little memory free.
static json_t *fastest_object(const TuneResult *result) {
    const Prediction *fastest = result->fastest_if_it_fits;
    return fastest ? json_prediction_object(result->request, fastest, true, NULL) : json_null();
}

static json_t *cures_array(const TuneResult *result) {
    static const char *const kinds[] = {
        [CURE_PLAN] = "plan", [CURE_WORLD] = "world", [CURE_TRAINING] = "training", [CURE_ADAPTERS] = "training"};
    json_t *cures = json_array();
    for (int i = 0; i < result->cure_count; i++) {
        const Cure *cure = &result->cures[i];
        json_array_append_new(
            cures, json_pack("{s:s, s:s, s:i, s:o, s:f, s:f, s:I, s:f}", "option", cure->option, "changes",
                             kinds[cure->kind], "world", cure->world, "mesh", json_mesh(&cure->mesh), "step_time_s",
                             cure->step_s, "tokens_per_s", cure->tokens_per_s, "reserved_bytes",
                             (json_int_t)llround(cure->reserved_bytes), "slower_percent", 100 * cure->slower));
    }
    return cures;
}

static json_t *search_object(const SearchCounts *search) {
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:f}", "shapes", search->shapes, "candidates", search->candidates,
                     "pruned", search->pruned, "estimated", search->estimated, "simulated", search->simulated, "cached",
                     search->cached, "elapsed_s", search->elapsed_s);
}

static Status json_plan(const void *answer, FILE *out, Error *error) {
    const TuneResult *result = ((const PlanReport *)answer)->result;
    json_t *ranked = json_array();
    for (int i = 0; i < result->entry_count; i++) {
        json_t *entry = json_prediction_object(result->request, &result->entries[i], true, NULL);
        json_object_set_new(entry, "pareto", json_boolean(result->entries[i].pareto));
        json_array_append_new(ranked, entry);
    }
    const RecordSchema rejected_rows = record_about(&schema_rejected, result);
    return json_print(json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:s?, s:o, s:s?, s:o}", "schema", "ndtune.plan/1",
                                "request", json_request(result->request), "entries", ranked, "rejected",
                                record_array(&rejected_rows, result->rejected, result->rejected_count), "baseline",
                                baseline_object(result), "search", search_object(&result->search), "global_batch",
                                (json_int_t)result->request->global_batch, "best_reason", result->best_reason,
                                "fastest_if_it_fits", fastest_object(result), "if_allowed", result->if_allowed, "cures",
                                cures_array(result)),
                      out, error);
}

const Answer answer_plan = {.table = table_plan, .json = json_plan, .csv = csv_plan};

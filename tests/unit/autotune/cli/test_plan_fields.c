// Every value of every plan field survives a round trip through everything that its row says it is written to. Nothing
// here names a field: a new row is tested without changes here.

#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

#include "autotune/cli/options.h"
#include "autotune/store/store.h"
#include "exec/protocol/request.h"
#include "reports/json_objects.h"
#include "sim/frameworks/target_choices.h"
#include "tests/support/hash_of.h"
#include "tests/support/run_program.h"
#include "tests/unit/autotune/accuracy/runs.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static Error error;

static void end(void) {
    arena_free(&arena);
}

TestSuite(plan_fields, .fini = end);

// A plan in which every other field matters, with one value of one field.
static TrainPlan plan_with(PlanFieldId id, int value) {
    TrainPlan plan = {.seq = 4096,
                      .micro_batch = 1,
                      .grad_accum = 2,
                      .zero = 3,
                      .precision = DTYPE_FP8,
                      .recompute = id == PLAN_RECOMPUTE_MODULES ? RECOMPUTE_SELECTIVE : RECOMPUTE_FULL,
                      .pp_schedule = PP_INTERLEAVED,
                      .virtual_stages = 2,
                      .pp_split = SPLIT_ENDS,
                      .expert_capacity = id == PLAN_PAD_EXPERTS ? 125 : 0,
                      .offload = id == PLAN_OFFLOAD_LAYERS ? OFFLOAD_ACTIVATIONS : OFFLOAD_NONE,
                      .fp8_activation = id == PLAN_OP_FUSER,
                      .finetune = FINETUNE_LORA};
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        plan.mesh.size[axis] = AXES_OWN & AXIS_BIT(axis) ? 2 : 1;
    }
    plan.mesh.size[AXIS_EP] = 2;
    plan_set(&plan, id, value);
    cr_assert(plan_field_matters(&plan, id) || value == plan_fields[id].usual, "%s", plan_fields[id].name);
    plan_canonical(&plan);
    return plan;
}

typedef void (*Check)(PlanFieldId id, int value, const char *text);

// "Every first layer" is each layer, which is 0; a single rank has no neighbours, and with ep cuts no expert.
static bool is_other_spelling(PlanFieldId id, int value) {
    return (id == PLAN_RECOMPUTE_EVERY || id == PLAN_RESHARD_RANKS || id == PLAN_ETP) && value == 1;
}

// Words: all of them; numbers: the least ones.
static void for_each_value(Check check) {
    enum { NUMBERS = 3 };
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanField *field = &plan_fields[i];
        const int last = field->words || field->high < field->low + NUMBERS ? field->high : field->low + NUMBERS;
        for (int value = field->low; value <= last; value++) {
            char text[PLAN_VALUE_BYTES];
            if (!is_other_spelling((PlanFieldId)i, value)) {
                check((PlanFieldId)i, value, plan_value_text((PlanFieldId)i, value, text));
            }
        }
    }
}

static void expect_same(PlanFieldId id, const TrainPlan *plan, const TrainPlan *back) {
    char a[PLAN_TEXT_BYTES], b[PLAN_TEXT_BYTES];
    cr_expect_eq(plan_get(plan, id), plan_get(back, id), "%s", plan_fields[id].name);
    cr_expect_str_eq(plan_text(plan, a), plan_text(back, b));
    cr_expect_eq(hash_of_plan(plan), hash_of_plan(back), "%s", a);
}

static void check_text(PlanFieldId id, int value, const char *text) {
    const TrainPlan plan = plan_with(id, value);
    TrainPlan back;
    char line[PLAN_TEXT_BYTES];
    cr_assert_eq(plan_parse(plan_text(&plan, line), &back, &error), STATUS_OK, "%s", error.message);
    expect_same(id, &plan, &back);
    cr_expect_eq(plan_get(&back, id), value, "%s=%s in %s", plan_fields[id].name, text, line);
}

Test(plan_fields, come_back_from_the_text_of_a_plan) {
    for_each_value(check_text);
}

static void check_hash(PlanFieldId id, int value, const char *text) {
    for (int other = plan_fields[id].low; other < value; other++) {
        if (is_other_spelling(id, other)) {
            continue;
        }
        const TrainPlan plan = plan_with(id, value), less = plan_with(id, other);
        cr_expect_neq(hash_of_plan(&plan), hash_of_plan(&less), "%s=%s", plan_fields[id].name, text);
    }
}

Test(plan_fields, another_value_is_another_hash) {
    for_each_value(check_hash);
}

static void check_option(PlanFieldId id, int value, const char *text) {
    const OptionRow row = option_row(option_of(id));
    if (id == PLAN_PP_SCHEDULE && value == PP_FILE) {
        return;  // said by the name of a file
    }
    const char *const argv[] = {"ndtune", "predict", arena_format(&arena, "--%s", row.name), text};
    ParseContext context = {.argc = 4, .argv = (char *const *)(void *)argv, .first = 2, .command = COMMAND_PREDICT};
    Options options;
    cr_assert_eq(options_parse(&context, &options, &error), STATUS_OK, "%s", error.message);
    const OptionValue *given = &options.values[option_of(id)];
    cr_expect(given->given);
    cr_expect_eq(plan_field_value(id, given->text), value, "--%s %s", row.name, text);
    cr_expect(row.type != VALUE_INT || given->integer == value, "--%s %s", row.name, text);
}

Test(plan_fields, come_back_from_their_options) {
    for_each_value(check_option);
}

Test(plan_fields, a_set_is_read_in_any_order_and_as_a_list) {
    const int both = RECOMPUTE_NORMS | RECOMPUTE_EXPERT_ACTIVATION;
    cr_expect_eq(plan_field_value(PLAN_RECOMPUTE_MODULES, "layernorm+moe_act"), both);
    cr_expect_eq(plan_field_value(PLAN_RECOMPUTE_MODULES, "moe_act+layernorm"), both);
    cr_expect_eq(plan_field_value(PLAN_RECOMPUTE_MODULES, "[layernorm moe_act]"), both);
    cr_expect_eq(plan_field_value(PLAN_RECOMPUTE_MODULES, "moe-act,layernorm"), both);
    cr_expect_eq(plan_field_value(PLAN_RECOMPUTE_MODULES, "layernorm+wings"), PLAN_ANY);
    cr_expect_eq(plan_field_value(PLAN_RECOMPUTE_MODULES, ""), PLAN_ANY);
}

Test(plan_fields, the_words_of_an_option_are_those_of_its_field) {
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const OptionRow row = option_row(option_of((PlanFieldId)i));
        char word[64];
        int words = 0;
        for (int at = 0; row.type == VALUE_WORD && option_word(row.value, at, word, sizeof word); at++) {
            const bool known = plan_field_value((PlanFieldId)i, word) != PLAN_ANY;
            if (option_stands_for_others(word)) {
                words += i == PLAN_PP_SCHEDULE;  // a schedule of its own; a layout is one of the splits
                continue;
            }
            cr_expect(known || (at == 0 && strcmp(word, "auto") == 0), "--%s %s", row.name, word);
            words += known;
        }
        cr_expect(row.type != VALUE_WORD || words == plan_fields[i].high - plan_fields[i].low + 1, "--%s", row.name);
    }
}

static void check_json(PlanFieldId id, int value, const char *text) {
    const TrainPlan plan = plan_with(id, value);
    const Target *target = NULL;
    cr_assert_eq(target_find("ndtune", &target, &error), STATUS_OK);
    const int told = target_told(target, &plan, id);  // what is left to the target is told as what it does
    json_t *object = json_train_plan(target, &plan), *found = json_object_get(object, plan_fields[id].name);
    const int back = json_is_string(found)    ? plan_field_value(id, json_string_value(found))
                     : json_is_boolean(found) ? json_is_true(found)
                                              : (int)json_integer_value(found);
    cr_expect_not_null(found, "%s", plan_fields[id].name);
    cr_expect_eq(back, told == PLAN_ANY ? value : told, "%s: %s", plan_fields[id].name, text);
    cr_expect(told == value || told == PLAN_ANY || value == plan_fields[id].usual, "%s: %s", plan_fields[id].name,
              text);
    json_decref(object);
}

Test(plan_fields, come_back_from_json) {
    for_each_value(check_json);
}

static void check_request(PlanFieldId id, int value, const char *text) {
    RunRequest request = {.plan = plan_with(id, value),
                          .options = run_options_default(),
                          .result_path = "r",
                          .failure_path = "f"},
               back;
    const char *words = NULL;
    (void)text;
    cr_assert_eq(model_find("tiny", &arena, &request.model, &error), STATUS_OK);
    cr_assert_eq(target_find("ndtune", &request.target, &error), STATUS_OK);
    cr_assert_eq(run_request_text(&request, &arena, &words, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(run_request_parse(words, &arena, &back, &error), STATUS_OK, "%s", error.message);
    expect_same(id, &request.plan, &back.plan);
}

Test(plan_fields, come_back_from_a_request_to_the_workers) {
    for_each_value(check_request);
}

// A run file with the columns that are needed, and this one with its value.
static const char *run_file_with(const char *column, const char *word) {
    static const char *const needed[][2] = {{"id", "a"},
                                            {"model", "llama-3-8b"},
                                            {"cluster", "dgx-h100"},
                                            {"target", "torchtitan@head"},
                                            {"dp_replicate", "2"},
                                            {"dp_shard", "2"},
                                            {"cp", "2"},
                                            {"tp", "2"},
                                            {"seq_len", "4096"},
                                            {"micro_batch", "1"},
                                            {"grad_accum", "2"},
                                            {"dtype", "fp8"}};
    const char *header = column, *line = word;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (strcmp(needed[i][0], column) != 0) {
            header = arena_format(&arena, "%s,%s", header, needed[i][0]);
            line = arena_format(&arena, "%s,%s", line, needed[i][1]);
        }
    }
    return arena_format(&arena, "%s\n%s\n", header, line);
}

static void check_run_file(PlanFieldId id, int value, const char *text) {
    const PlanField *field = &plan_fields[id];
    if (!field->column) {
        return;
    }
    const char *word = field->column_is_number ? arena_format(&arena, "%d", value) : text;
    const RunCase run = text_case(&arena, run_file_with(field->column, arena_format(&arena, "\"%s\"", word)));
    // what the target has not is read all the same, and then refused
    cr_expect(!run.skipped || strstr(run.skipped, "use "), "%s=%s: %s", field->column, word, run.skipped);
    const bool as_full = id == PLAN_ZERO && value == 2;  // of FSDP: stage 3 that keeps what it gathered
    const bool matters = plan_field_matters(&run.plan, id) && !as_full;
    TrainPlan said = run.plan;
    plan_set(&said, id, value);
    target_canonical(run.request.target, &said);  // its own optimizer by name is its own
    const bool own = target_told(run.request.target, &said, id) == target_told(run.request.target, &run.plan, id);
    cr_expect(!matters || own || plan_get(&run.plan, id) == plan_get(&said, id), "%s=%s: %d", field->column, word,
              plan_get(&run.plan, id));
}

Test(plan_fields, come_back_from_run_files) {
    for_each_value(check_run_file);
}

static Store *store;
static TuneRequest request;

static void check_store(PlanFieldId id, int value, const char *text) {
    static char line[96];
    snprintf(line, sizeof line, "ndtune --%s %s", plan_fields[id].name, text);
    const Prediction entry = {.plan = plan_with(id, value),
                              .step_s = 1,
                              .tokens_per_s = 1,
                              .fits = true,
                              .memory = {.peak_phase = "loss", .top_name = "logits"}};
    Prediction entries[] = {entry};
    Candidate candidates[] = {{.plan = entry.plan,
                               .state = CANDIDATE_SIMULATED,
                               .step_s = 1,
                               .tokens_per_s = 1,
                               .peak_bytes = 1,
                               .reserved_bytes = 1,
                               .content_hash = hash_of_plan(&entry.plan),
                               .prediction = &entries[0]}};
    entries[0].content_hash = candidates[0].content_hash;
    request.command = line;
    request.memory_limit_bytes += 1;  // another request
    const TuneResult result = {
        .request = &request, .entries = entries, .entry_count = 1, .candidates = candidates, .candidate_count = 1};
    StoredList list;
    cr_assert_eq(store_save_result(store, &result, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(store_list(store, 1000, &arena, &list, &error), STATUS_OK, "%s", error.message);
    bool found = false;
    for (int i = 0; i < list.request_count; i++) {
        if (strcmp(list.requests[i].command, line) == 0) {
            TrainPlan back;
            cr_assert_not_null(list.requests[i].best_plan, "%s", line);
            cr_assert_eq(plan_parse(list.requests[i].best_plan, &back, &error), STATUS_OK, "%s", error.message);
            expect_same(id, &entry.plan, &back);
            found = true;
        }
    }
    cr_expect(found, "%s", line);
}

Test(plan_fields, come_back_from_the_store) {
    char *folder = temp_dir_make();
    char path[STORE_PATH_BYTES];
    snprintf(path, sizeof path, "%s/fields.db", folder);
    request = request_for(&arena, 32, "7b", "dgx-h100", "accelerate");
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    for_each_value(check_store);
    store_close(store);
    temp_dir_remove(folder);
}

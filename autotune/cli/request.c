// Resolves the request once, with explanations: every default taken becomes a sentence in request->assumptions, because
// a number is only as good as its assumptions.

#include "autotune/cli/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "autotune/cli/executor_options.h"
#include "autotune/cli/known_products.h"
#include "autotune/cli/request_finetune.h"
#include "autotune/predict/handicap.h"
#include "autotune/predict/target_on_cluster.h"
#include "autotune/search/batch.h"
#include "autotune/search/space.h"
#include "sim/base/text.h"
#include "sim/frameworks/framework.h"
#include "sim/frameworks/target_choices.h"

enum { MAX_ASSUMPTIONS = 32 + OPTIONS_MAX_SETS, MAX_DEFAULTS = 8 };

enum { RUN_SEQ = 128 };  // judged: seconds on a processor

const RequestDefaults run_defaults = {.cluster = "local-cpu",
                                      .target = TARGET_EXECUTOR,
                                      .seq = RUN_SEQ,
                                      .fp32 = true,
                                      .flash = true,
                                      .single_plan = true};
const RequestDefaults preflight_defaults = {.cluster = "local-cpu",
                                            .target = TARGET_EXECUTOR,
                                            .seq = RUN_SEQ,
                                            .fp32 = true,
                                            .flash = true,
                                            .model = "tiny",
                                            .single_plan = true};
const RequestDefaults validate_defaults = {.cluster = "local-cpu",
                                           .target = TARGET_EXECUTOR,
                                           .seq = RUN_SEQ,
                                           .fp32 = true,
                                           .flash = true,
                                           .small_batch = true};

typedef struct Builder {
    Cli *cli;
    const RequestDefaults *defaults;
    TuneRequest *request;
    const char **assumptions, **defaults_taken;
} Builder;

__attribute__((format(printf, 2, 3))) static void assume(Builder *builder, const char *format, ...) {
    va_list values;
    va_start(values, format);
    ASSERT(builder->request->assumption_count < MAX_ASSUMPTIONS);
    builder->assumptions[builder->request->assumption_count++] = arena_vformat(&builder->cli->arena, format, values);
    va_end(values);
}

// Of what was assumed, the options that say otherwise.
static void assume_option(Builder *builder, OptionId id, const char *value) {
    ASSERT(builder->request->default_count < MAX_DEFAULTS);
    builder->defaults_taken[builder->request->default_count++] =
        arena_format(&builder->cli->arena, "--%s %s", option_row(id).name, value);
}

static Status find_model(Builder *builder, Error *error) {
    Cli *cli = builder->cli;
    TuneRequest *request = builder->request;
    const char *asked = cli_text_or(cli, OPTION_MODEL, builder->defaults->model);
    if (!asked) {
        error_set(error, STATUS_USAGE, "--model is needed: a preset or a config.json");
        return error_hint(error, "ndtune models lists the presets");
    }
    request->model_asked = asked;
    TRY(cli_blame(cli, OPTION_MODEL, model_find(request->model_asked, &cli->arena, &request->model, error)));
    if (cli_given(cli, OPTION_LAYERS)) {
        request->model.layers = (int)cli_value(cli, OPTION_LAYERS)->integer;
        assume(builder, "%s with %d layers", request->model.name, request->model.layers);
    }
    char parameters[TEXT_UNIT_BYTES];
    text_count(parameters, (double)model_parameters(&request->model));
    assume(builder, "%s",
           strcmp(request->model_asked, request->model.name) == 0
               ? arena_format(&cli->arena, "%s has %s parameters", request->model.name, parameters)
               : arena_format(&cli->arena, "model %s is %s, %s parameters", request->model_asked, request->model.name,
                              parameters));
    if (request->model.note) {
        assume(builder, "%s: %s", request->model.name, request->model.note);
    }
    return STATUS_OK;
}

// Only a file names its accelerator as a driver does: no store moves the numbers of a built-in profile.
static Status find_products(Builder *builder, const char *profile, Error *error) {
    ClusterProfile *cluster = &builder->request->cluster;
    int count = 0;
    if (!cluster_is_file(profile)) {
        return STATUS_OK;
    }
    TRY(known_products_add(builder->cli, cluster, &count, error));
    if (count > 0) {
        assume(builder, "%d products take the time that runs on %s had, of the store", count,
               cluster->accelerator.name);
    }
    return STATUS_OK;
}

// --gpus-per-node is --set node.gpus where the profile has another number.
static Status set_node_size(Builder *builder, Error *error) {
    Cli *cli = builder->cli;
    ClusterProfile *cluster = &builder->request->cluster;
    const int each = cli_integer_or(cli, OPTION_GPUS_PER_NODE, cluster->node.accelerators);
    if (each == cluster->node.accelerators) {
        return STATUS_OK;
    }
    return cli_blame(cli, OPTION_GPUS_PER_NODE,
                     cluster_set(cluster, arena_format(&cli->arena, "node.gpus=%d", each), &cli->arena, error));
}

static Status find_cluster(Builder *builder, Error *error) {
    Cli *cli = builder->cli;
    TuneRequest *request = builder->request;
    const bool given = cli_given(cli, OPTION_CLUSTER);
    const char *assumed = cli_on_gpu(cli) ? search_defaults.cluster : builder->defaults->cluster;
    const char *name = given ? cli_value(cli, OPTION_CLUSTER)->text : assumed;
    TRY(cli_blame(cli, OPTION_CLUSTER, cluster_find(name, &cli->arena, &request->cluster, error)));
    TRY(find_products(builder, name, error));
    for (int i = 0; i < cli->options.set_count; i++) {
        if (handicap_named(cli->options.sets[i])) {
            continue;
        }
        const Status status = cluster_set(&request->cluster, cli->options.sets[i], &cli->arena, error);
        if (status != STATUS_OK) {
            cli->blame = cli->options.set_argument[i];
            return status;
        }
        assume(builder, "cluster profile changed: %s", cli->options.sets[i]);
    }
    TRY(set_node_size(builder, error));
    const bool usual = given && !cluster_is_file(name) && strcasecmp(name, request->cluster.name) != 0 &&
                       !text_same_word(name, request->cluster.name);
    assume(builder, "cluster %s (%s), %d per node%s%s%s", request->cluster.name, request->cluster.accelerator.name,
           request->cluster.node.accelerators, usual ? ": the usual node of " : "", usual ? name : "",
           given && !usual ? "" : "; change it with --cluster");
    if (!given || usual) {
        assume_option(builder, OPTION_CLUSTER, request->cluster.name);
    }
    return STATUS_OK;
}

// What --set says about ranks and nodes by their numbers.
static Status find_handicaps(Builder *builder, Error *error) {
    Cli *cli = builder->cli;
    TuneRequest *request = builder->request;
    Handicap *handicaps = ARENA_ARRAY(&cli->arena, Handicap, cli->options.set_count);
    request->handicaps = handicaps;
    for (int i = 0; i < cli->options.set_count; i++) {
        if (!handicap_named(cli->options.sets[i])) {
            continue;
        }
        Handicap *handicap = &handicaps[request->handicap_count++];
        if (handicap_parse(cli->options.sets[i], handicap, error) != STATUS_OK) {
            cli->blame = cli->options.set_argument[i];
            return STATUS_USAGE;
        }
        assume(builder, "%s", handicap_text(handicap, &cli->arena));
    }
    if (request->handicap_count > 0 && cli_given(cli, OPTION_EFFORT) &&
        cli_value(cli, OPTION_EFFORT)->integer == EFFORT_ESTIMATE) {
        return cli_refuse(cli, OPTION_EFFORT, error,
                          "an estimate knows no slow rank, node or link: they have to be simulated");
    }
    return STATUS_OK;
}

static Status find_target(Builder *builder, Error *error) {
    Cli *cli = builder->cli;
    TuneRequest *request = builder->request;
    const bool given = cli_given(cli, OPTION_TARGET);
    const char *name = given                       ? cli_value(cli, OPTION_TARGET)->text
                       : builder->defaults->target ? builder->defaults->target
                                                   : framework_list(&(int){0})[0]->name;
    TRY(cli_blame(cli, OPTION_TARGET, target_find(name, &request->target, error)));
    request->target = target_on_cluster(request->target, &request->cluster, &cli->arena);
    assume(builder, "target %s@%s, evidence: %s%s", request->target->name, request->target->version,
           request->target->evidence, given ? "" : "; change it with --target");
    if (!given) {
        assume_option(builder, OPTION_TARGET, request->target->name);
    }
    return STATUS_OK;
}

static void say_no_pipeline(Builder *builder) {
    const TuneRequest *request = builder->request;
    const Framework *framework = framework_of(request->target->name);
    const bool searched = builder->defaults->single_plan || request->target->axes & AXES_STAGE;
    if (!searched && request->world > request->cluster.node.accelerators && framework && framework->has_pipelines) {
        assume(builder, "no pipeline stages: shapes with them are not in the search, and may be faster");
    }
}

static void choose_sequence(Builder *builder) {
    Cli *cli = builder->cli;
    TuneRequest *request = builder->request;
    const int longest = request->model.max_seq, most = longest < TUNE_DEFAULT_SEQ ? longest : TUNE_DEFAULT_SEQ;
    if (cli_given(cli, OPTION_SEQ)) {
        request->seq = (int)cli_value(cli, OPTION_SEQ)->integer;
    } else {
        request->seq = builder->defaults->seq > 0 ? builder->defaults->seq : most;
    }
    if (request->seq > longest) {
        assume(builder, "sequences of %d tokens, longer than the %d that %s was made for", request->seq, longest,
               request->model.name);
    } else {
        assume(builder, "sequences of %d tokens%s", request->seq,
               cli_given(cli, OPTION_SEQ) ? "" : "; change it with --seq");
    }
    if (!cli_given(cli, OPTION_SEQ)) {
        assume_option(builder, OPTION_SEQ, arena_format(&cli->arena, "%d", request->seq));
    }
}

// "bf16, fp32": what the profile has rates for.
static const char *precisions_of(const ClusterProfile *cluster, Arena *arena) {
    const char *text = "";
    for (int dtype = DTYPE_FP32; dtype <= DTYPE_FP8; dtype++) {
        if (cluster->accelerator.gemm[dtype].burst_flop_per_s > 0) {
            text = arena_format(arena, "%s%s%s", text, text[0] ? ", " : "", dtype_name((Dtype)dtype));
        }
    }
    return text;
}

static Status choose_precision(Builder *builder, Error *error) {
    Cli *cli = builder->cli;
    TuneRequest *request = builder->request;
    const GemmRate *rates = request->cluster.accelerator.gemm;
    Dtype dtype;
    if (!cli_given(cli, OPTION_PRECISION)) {
        const bool gpu = request->cluster.accelerator.device_class == DEVICE_CLASS_GPU;  // processors are asked for it
        const bool bf16 =
            gpu && rates[DTYPE_BF16].burst_flop_per_s > 0 && (!builder->defaults->fp32 || cli_on_gpu(cli));
        const bool fp16 = rates[DTYPE_FP16].burst_flop_per_s > 0 && !builder->defaults->fp32;
        dtype = bf16 ? DTYPE_BF16 : fp16 ? DTYPE_FP16 : DTYPE_FP32;
        assume(builder, "precision %s; change it with --precision", dtype_name(dtype));
        assume_option(builder, OPTION_PRECISION, dtype_name(dtype));
    } else {
        dtype = (Dtype)plan_field_value(PLAN_PRECISION, cli_value(cli, OPTION_PRECISION)->text);
    }
    request->asked[PLAN_PRECISION] = (int)dtype;
    if (!cli_given(cli, OPTION_PRECISION) || rates[dtype].burst_flop_per_s > 0) {
        return STATUS_OK;
    }
    return cli_refuse(cli, OPTION_PRECISION, error, "the profile %s has no rate for %s; it has %s",
                      request->cluster.name, dtype_name(dtype), precisions_of(&request->cluster, &cli->arena));
}

// What goes with a precision and was given with another.
static Status check_formats(Builder *builder, Error *error) {
    Cli *cli = builder->cli;
    const TuneRequest *request = builder->request;
    const char *precision = dtype_name((Dtype)request->asked[PLAN_PRECISION]);
    if (cli_given(cli, OPTION_FP8_RECIPE) && request->asked[PLAN_PRECISION] != DTYPE_FP8) {
        return cli_refuse(cli, OPTION_FP8_RECIPE, error, "--fp8-recipe goes with --precision fp8, not %s", precision);
    }
    if (request->asked[PLAN_MASTER_WEIGHTS] && request->asked[PLAN_PRECISION] == DTYPE_FP32) {
        return cli_refuse(cli, OPTION_MASTER_WEIGHTS, error,
                          "--master-weights bf16 goes with --precision bf16 or fp8, not %s", precision);
    }
    return STATUS_OK;
}

static void say_formats(Builder *builder) {
    const TuneRequest *request = builder->request;
    TrainPlan plan = {.seq = request->seq};
    space_job(request, &plan);
    if (request->asked[PLAN_PRECISION] == DTYPE_FP8) {
        assume(builder, "fp8 with %s scales%s", fp8_recipe_names[plan.fp8_recipe],
               request->asked[PLAN_FP8_RECIPE] == TUNE_ANY ? ": the target's own" : "");
    }
    const char *texts[TRAINING_TEXTS];
    plan.bf16_master = request->asked[PLAN_MASTER_WEIGHTS];
    for (int i = 0, count = request_training_texts(request, &plan, &builder->cli->arena, texts); i < count; i++) {
        assume(builder, "%s", texts[i]);
    }
}

static void choose_batch(Builder *builder) {
    Cli *cli = builder->cli;
    TuneRequest *request = builder->request;
    request->global_batch = cli_value(cli, OPTION_GLOBAL_BATCH)->integer;
    request->micro_batch = (int)cli_value(cli, OPTION_MICRO_BATCH)->integer;  // 0 when absent or auto
    if (builder->defaults->small_batch && request->global_batch == 0) {
        request->global_batch = request->world;
        assume(builder, "global batch %d, a sequence per rank; change it with --global-batch", request->world);
    }
    if (!builder->defaults->single_plan && request->global_batch == 0 &&
        (request->global_batch = request_finetune_batch(cli, request->world)) > 0) {
        assume(builder, "global batch %lld sequences; change it with --global-batch", (long long)request->global_batch);
    }
    if (!builder->defaults->single_plan && request->global_batch == 0) {
        assume(builder,
               "global batch: about %lld sequences (4M tokens), one that all shapes can make; change it with "
               "--global-batch",
               (long long)batch_default(request->seq));
    }
}

static void choose_limits(Builder *builder) {
    Cli *cli = builder->cli;
    TuneRequest *request = builder->request;
    request->max_tp = (int)cli_value(cli, OPTION_MAX_TP)->integer;
    const bool given = cli_given(cli, OPTION_MEMORY_LIMIT);
    const OptionValue *limit_said = cli_value(cli, OPTION_MEMORY_LIMIT);
    const double memory_bytes = request->cluster.accelerator.memory_bytes;
    request->memory_limit_bytes = !given                   ? memory_bytes
                                  : limit_said->number > 0 ? limit_said->number * memory_bytes
                                                           : (double)limit_said->integer;
    char limit[TEXT_UNIT_BYTES];
    text_bytes(limit, request->memory_limit_bytes);
    assume(builder, "memory limit %s per accelerator%s", limit, given ? "" : " (all of it)");
}

static void read_choices(Builder *builder) {
    Cli *cli = builder->cli;
    TuneRequest *request = builder->request;
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        const OptionId option = option_of(id);
        if (id != PLAN_PRECISION) {
            request->asked[id] =
                cli_given(cli, option) ? plan_field_value(id, cli_value(cli, option)->text) : plan_field_unsaid(id);
        }
    }
    if (request->asked[PLAN_ATTENTION] == TUNE_ANY && builder->defaults->flash) {
        request->asked[PLAN_ATTENTION] = ATTENTION_FLASH;
    }
    if (request->asked[PLAN_MASTER_WEIGHTS] == TUNE_ANY) {
        request->asked[PLAN_MASTER_WEIGHTS] = space_usual_master(request->target, request);
    }
    request->effort = (Effort)cli_value(cli, OPTION_EFFORT)->integer;
}

// PyTorch's sdp_utils.cpp: FlashAttention wants sm_80, the memory-efficient kernel sm_50. Profiles of older chips have
// a rate of the latter alone.
static bool lacks_flash(const Accelerator *accelerator) {
    bool efficient = false;
    for (int i = 0; i < accelerator->attention_count; i++) {
        efficient |= strcmp(accelerator->attention[i].kernel, "efficient") == 0;
    }
    return efficient;
}

// The kernels of the plan are those of the target, and of what was said about them.
static void say_kernels(Builder *builder) {
    const TuneRequest *request = builder->request;
    TrainPlan plan = {0};
    space_job(request, &plan);
    space_take(request, &plan, PLAN_FUSED);
    const bool own = request->asked[PLAN_ATTENTION] == TUNE_ANY && request->asked[PLAN_FUSED] == TUNE_ANY;
    const bool open = request->asked[PLAN_FUSED] == TUNE_ANY && target_has_choice(request->target, PLAN_FUSED);
    const bool searched = open && !builder->defaults->single_plan;
    assume(builder, "attention %s%s%s%s", attention_names[plan.attention], searched ? "" : ", other kernels ",
           searched ? "" : fused_names[plan.fused], own ? ": the target's own" : "");
    if (plan.attention != ATTENTION_EAGER && lacks_flash(&request->cluster.accelerator)) {
        assume(builder,
               "attention %s stands for PyTorch's memory-efficient kernel: %s is older than the "
               "chips that FlashAttention runs on",
               attention_names[plan.attention], request->cluster.accelerator.name);
    }
}

static Status choose_order(Builder *builder, Error *error) {
    Cli *cli = builder->cli;
    TuneRequest *request = builder->request;
    const char *text = cli_text_or(cli, OPTION_RANK_ORDER, "auto");
    if (text_same_word(text, "auto")) {
        request->any_order = !builder->defaults->single_plan;
        return STATUS_OK;
    }
    TRY(cli_blame(cli, OPTION_RANK_ORDER, axis_order_parse(text, &request->order, error)));
    if (!text_same_word(text, "default")) {
        assume(builder, "ranks are laid out by %s, from slow to fast", text);
    }
    return STATUS_OK;
}

// What was said of fields that have no sentence of their own.
static void say_others(Builder *builder) {
    static const bool told[PLAN_FIELD_COUNT] = {
        [PLAN_PRECISION] = true,   [PLAN_MASTER_WEIGHTS] = true,  [PLAN_FP8_RECIPE] = true,   [PLAN_ATTENTION] = true,
        [PLAN_FUSED] = true,       [PLAN_TP_OVERLAP] = true,      [PLAN_REDUCE_DTYPE] = true, [PLAN_IMBALANCE] = true,
        [PLAN_PAD_EXPERTS] = true, [PLAN_EXPERT_CAPACITY] = true,
    };
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const int asked = builder->request->asked[i];
        char value[PLAN_VALUE_BYTES];
        if (plan_fields[i].scope == PLAN_OF_JOB && !told[i] && asked != TUNE_ANY && asked != plan_fields[i].usual) {
            assume(builder, "%s %s", plan_fields[i].label, plan_value_text((PlanFieldId)i, asked, value));
        }
    }
}

static void add_open(Builder *builder, const char **open, const char *name, const char *taken) {
    const char *value = builder->defaults->single_plan && taken ? taken : "";
    const char *comma = (*open)[0] ? ", " : "", *space = value[0] ? " " : "";
    *open = arena_format(&builder->cli->arena, "%s%s%s%s%s", *open, comma, name, space, value);
}

// Else the line of the target's own stage says it.
static bool tries_stages(const Builder *builder) {
    return !builder->defaults->single_plan && target_has_choice(builder->request->target, PLAN_ZERO);
}

// The names of what is left open; of a single plan with what is taken, but for what is left to the target anyway.
static const char *open_choices(Builder *builder) {
    static const PlanFieldId first[] = {PLAN_RECOMPUTE, PLAN_RESHARD};
    const TuneRequest *request = builder->request;
    const int said = request->asked[PLAN_ZERO], any = tries_stages(builder) ? 1 : request->target->max_zero;
    PlanFieldId order[PLAN_FIELD_COUNT];
    const char *open = "";
    plan_fields_from(first, sizeof first / sizeof first[0], order);
    if (request->micro_batch == 0) {
        add_open(builder, &open, plan_fields[PLAN_MICRO_BATCH].label, "1");
    }
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanField *field = &plan_fields[order[i]];
        char value[PLAN_VALUE_BYTES];
        const bool alone = builder->defaults->single_plan, apart = order[i] == PLAN_ZERO || order[i] == PLAN_FUSED;
        const bool fitted = space_fits(request, order[i]) && !alone;
        const bool told = !alone || (field->printed == PLAN_PRINTED_ALWAYS && !apart);
        const bool searched = field->searched && request->asked[order[i]] == TUNE_ANY && told &&
                              target_searches(request->target, said == TUNE_ANY ? any : said, order[i]);
        if (fitted || searched) {
            add_open(builder, &open, field->label,
                     target_decides(order[i]) ? "of the target" : plan_value_text(order[i], field->usual, value));
        }
    }
    if (request->any_order && request->target->rank_order_rule != RANK_ORDER_FIXED) {
        add_open(builder, &open, "rank order", NULL);
    }
    return open;
}

static void choose_search(Builder *builder) {
    const TuneRequest *request = builder->request;
    read_choices(builder);
    const char *open = open_choices(builder);
    if (open[0]) {
        const char *what = builder->defaults->single_plan ? "not said, so taken" : "searched for each shape";
        assume(builder, "%s: %s", what, open);
    }
    if (request->asked[PLAN_ZERO] == TUNE_ANY && !tries_stages(builder)) {
        assume(builder, "sharding stage of the target (3 where there is something to shard)");
    }
    say_formats(builder);
    say_kernels(builder);
    if (request->asked[PLAN_TP_OVERLAP] == true) {
        assume(builder, "tensor-parallel collectives run beside the GEMMs that they feed");
    }
    say_others(builder);
}

static const char *price_source(const ClusterProfile *cluster) {
    const Provenance *row = cluster_provenance(cluster, "price_usd_per_accelerator_hour");
    return row ? row->source : "source unknown";
}

// Where a price counts and the profile has none, a number without one would be a guess.
static Status choose_objective(Builder *builder, Error *error) {
    Cli *cli = builder->cli;
    TuneRequest *request = builder->request;
    request->objective = (Objective)cli_value(cli, OPTION_OBJECTIVE)->integer;
    request->tokens = cli_value(cli, OPTION_TOKENS)->number;
    const double price = request->cluster.price_usd_per_accelerator_hour;
    if (request->objective == OBJECTIVE_COST && price <= 0) {
        cli_refuse(cli, OPTION_OBJECTIVE, error, "--objective cost needs a price, and the profile %s has none",
                   request->cluster.name);
        return error_hint(error, "--set price=USD_PER_ACCELERATOR_HOUR");
    }
    if (request->objective == OBJECTIVE_COST) {
        assume(builder, "one price for every shape of a world: within a world the order by cost is that by throughput");
    }
    if (price > 0 && (request->objective == OBJECTIVE_COST || request->tokens > 0)) {
        assume(builder, "$%.2f per accelerator and hour (%s); change it with --set price=", price,
               price_source(&request->cluster));
    }
    return STATUS_OK;
}

static Status choose_baseline(Builder *builder, Error *error) {
    Cli *cli = builder->cli;
    TuneRequest *request = builder->request;
    if (!cli_given(cli, OPTION_BASELINE)) {
        return STATUS_OK;
    }
    TRY(cli_blame(cli, OPTION_BASELINE, mesh_parse(cli_value(cli, OPTION_BASELINE)->text, &request->baseline, error)));
    const int ranks = mesh_world(&request->baseline);
    if (ranks == request->world) {
        return STATUS_OK;
    }
    return cli_refuse(cli, OPTION_BASELINE, error, "the shape of --baseline has %d ranks, the world has %d", ranks,
                      request->world);
}

static Status check_handicaps(Cli *cli, const TuneRequest *request, Error *error) {
    int place = 0;
    for (int i = 0; i < cli->options.set_count; i++) {
        if (handicap_named(cli->options.sets[i]) &&
            handicap_check(&request->handicaps[place++], request, error) != STATUS_OK) {
            cli->blame = cli->options.set_argument[i];
            return STATUS_USAGE;
        }
    }
    return STATUS_OK;
}

Status request_check_world(Cli *cli, const TuneRequest *request, Error *error) {
    const int node = request->cluster.node.accelerators;
    if (request->cluster.fabric.nics > 0 || request->world <= node) {
        return check_handicaps(cli, request, error);
    }
    return cli_refuse(cli, cli_given(cli, OPTION_WORLD) ? OPTION_WORLD : OPTION_MESH, error,
                      "cluster %s is one node of %d without a network; a world of %d does not fit on it",
                      request->cluster.name, node, request->world);
}

static Status choose_world(Builder *builder, Error *error) {
    Cli *cli = builder->cli;
    if (builder->defaults->single_plan) {
        Mesh mesh;
        TRY(request_mesh(cli, &mesh, error));
        builder->request->world = mesh_world(&mesh);
        return STATUS_OK;
    }
    if (!cli_given(cli, OPTION_WORLD) && cli_given(cli, OPTION_NODES)) {  // of the cluster's size
        OptionValue *world = &cli->options.values[OPTION_WORLD];
        *world = *cli_value(cli, OPTION_NODES);
        world->integer *= builder->request->cluster.node.accelerators;
        cli->options.list[0] = world->integer;
        cli->options.list_count = 1;
    }
    if (!cli_given(cli, OPTION_WORLD)) {
        error_set(error, STATUS_USAGE, "--world is needed: how many accelerators to train on");
        return error_hint(error, "ndtune --world 32 --model 7b");
    }
    builder->request->world = (int)cli_value(cli, OPTION_WORLD)->integer;
    return STATUS_OK;
}

static void find_lanes(Builder *builder) {
    if (target_is_executor(builder->request->target)) {
        measuring_serial(builder->request, executor_lanes(builder->cli));
    }
    if (builder->request->serial_lanes) {
        assume(builder, "the executor on CPUs: lanes run one after another, nothing overlaps");
    }
}

Status request_build(Cli *cli, const RequestDefaults *defaults, TuneRequest *request, Error *error) {
    Builder builder = {cli, defaults, request, ARENA_ARRAY(&cli->arena, const char *, MAX_ASSUMPTIONS),
                       ARENA_ARRAY(&cli->arena, const char *, MAX_DEFAULTS)};
    *request =
        (TuneRequest){.command = cli->line, .assumptions = builder.assumptions, .defaults = builder.defaults_taken};
    TRY(request_order_file(cli, defaults, request, error));
    if (defaults->single_plan) {
        TRY(choose_world(&builder, error));
    }
    TRY(find_model(&builder, error));
    TRY(find_cluster(&builder, error));
    if (!defaults->single_plan) {
        TRY(choose_world(&builder, error));
    }
    TRY(find_handicaps(&builder, error));
    TRY(find_target(&builder, error));
    find_lanes(&builder);
    TRY(request_check_world(cli, request, error));
    say_no_pipeline(&builder);
    choose_sequence(&builder);
    TRY(choose_precision(&builder, error));
    choose_batch(&builder);
    TRY(choose_order(&builder, error));
    choose_search(&builder);
    TRY(check_formats(&builder, error));
    TRY(request_check_finetune(cli, error));
    TRY(request_check_experts(cli, request, error));
    choose_limits(&builder);
    TRY(choose_objective(&builder, error));
    return choose_baseline(&builder, error);
}
